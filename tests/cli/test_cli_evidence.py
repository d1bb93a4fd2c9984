"""``verify --output intoto`` and ``report --check-signature``: what a statement says, and which ones are refused."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from gpuready import __version__
from gpuready.contract.check import Level, passed, skip
from gpuready.contract.node_record import spec_hash
from gpuready.cuda import tables
from gpuready.inventory.hosts import load
from gpuready.model.state import NodeState
from gpuready.result.exitcode import exit_code
from gpuready.result.facts import NodeFacts
from gpuready.result.model import INTERRUPTED, TIME, CheckResult, Run, Scope
from gpuready.result.render import render
from tests.command import VALIDATOR, Exits, gpuready, write_hosts, write_states
from tests.pages import ROOT, blocks
from tests.report.test_report_runs import (
    CODES,
    COUNTED,
    LDCACHE,
    LOADED,
    NO_GPU,
    STATE,
    STUB,
    UNSEEN,
    check,
    host,
    sample,
)
from tests.report.test_report_runs import run as made
from tests.secure import Signer

GPU = "GPU-7d5b0f0e-1b52-4f39-9a3a-1d4d1f6a2f11"
HOSTS = "all: {hosts: {gpu01: {gpuready: {}}, gpu02: {gpuready: {hardware: {gpus: 8}}}}}\n"


#: A host whose SSH port is closed.
CLOSED = "all: {hosts: {a: {ansible_host: 127.0.0.1, ansible_port: 1, gpuready: {}}}}"


def statement(of: Run) -> Any:
    return json.loads(render(of, exit_code(of), "intoto"))


def verified(folder: Path) -> Run:
    """A run over the hosts of an inventory, whose GPU checks passed."""
    run = made("verify", host("gpu01", checks=(LOADED, COUNTED, NO_GPU)), host("gpu02", checks=(LOADED,)))
    for each, entry in zip(run.hosts, load([write_hosts(folder, HOSTS)]).chosen, strict=True):
        each.spec = spec_hash(entry.spec)
    run.ended = "2025-11-01T12:00:00Z"
    return run


@pytest.fixture
def ours(tmp_path: Path) -> Signer:
    return Signer(tmp_path, "ours")


def written(folder: Path, run: Run, signer: Signer, form: str = "intoto") -> Path:
    """The run in a file, its signature beside it."""
    path = folder / "evidence.json"
    path.write_text(render(run, exit_code(run), form))
    signer.beside(path, "gpuready-result")
    return path


@pytest.fixture
def signed(tmp_path: Path, ours: Signer) -> Path:
    """A statement, its signature beside it."""
    return written(tmp_path, verified(tmp_path), ours)


def test_it_says_which_gpus_passed_which_tests_under_which_specs(tmp_path: Path) -> None:
    run = verified(tmp_path)
    run.hosts[0].facts = NodeFacts(uuids=(GPU,))
    found = statement(run)
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert [(each["name"], each["annotations"]) for each in found["subject"]] == [
        (GPU, {"hosts": ["gpu01"]}),
        ("gpu02", {"hosts": ["gpu02"]}),
    ]
    for each in found["subject"]:
        assert each["digest"] == {"sha256": hashlib.sha256(each["name"].encode()).hexdigest()}
    predicate = found["predicate"]
    assert predicate["result"] == "PASSED" and predicate["warnedTests"] == predicate["failedTests"] == []
    assert {"gpu01.check.driver.loaded", "gpu01.check.gpu.count"} < {*predicate["passedTests"]}
    used = {each.pop("name"): each for each in predicate["configuration"]}
    assert used["gpuready"]["uri"] == f"pkg:pypi/gpuready@{__version__}"
    assert used["spec/gpu02"]["digest"] == {"sha256": run.hosts[1].spec} != used["spec/gpu01"]["digest"]
    file = tables.DATA / "branches.yaml"
    assert used["tables/branches"]["digest"] == {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    assert used["tables/branches"]["annotations"] == {"date": tables.dated("branches")[0].isoformat()}
    VALIDATOR.validate(predicate["gpuready_result"])
    assert predicate["gpuready_result"] == json.loads(render(run, 0, "json"))
    assert render(run, 0, "intoto") == render(run, 0, "intoto")


def test_a_gpu_that_two_hosts_of_the_inventory_have_names_both(tmp_path: Path) -> None:
    run = verified(tmp_path)
    for each in run.hosts:
        each.facts = NodeFacts(uuids=(GPU,))
    (subject,) = statement(run)["subject"]
    assert (subject["name"], subject["annotations"]) == (GPU, {"hosts": ["gpu01", "gpu02"]})


def test_the_uuids_are_those_that_nvidia_smi_lists() -> None:
    others = "".join(f"<uuid>{text}</uuid>" for text in (f"{GPU}0", "GPU-password=secret", f"MIG-{GPU[4:]}"))
    smi = f'<nvidia_smi_log><gpu id="0"><uuid>{GPU}</uuid>{others}</gpu></nvidia_smi_log>'
    driver = STATE.driver.model_copy(update={"smi": smi})
    assert NodeFacts.of(STATE.model_copy(update={"driver": driver})).uuids == (GPU,)
    assert NodeFacts.of(NodeState()).uuids == ()


@pytest.mark.parametrize("name", [name for name in sorted(CODES) if sample(name).verb in ("verify", "")])
def test_each_result_has_a_statement_that_can_be_read_again(name: str, tmp_path: Path, exits: Exits) -> None:
    run = sample(name)
    found = statement(run)
    predicate = found["predicate"]
    assert found["subject"] and all(each["digest"] for each in found["subject"])
    assert (predicate["result"] == "FAILED") == bool(CODES[name])
    assert bool(predicate["failedTests"]) == bool(CODES[name])
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(found))
    assert json.loads(exits(0, "report", path, "--output", "json").out) == predicate["gpuready_result"]


def test_passed_means_that_a_gpu_check_passed_on_every_host_without_a_warning() -> None:
    words = {name: statement(sample(name))["predicate"]["result"] for name in ("proven", "half-blind", "warnings")}
    assert words == {"proven": "PASSED", "half-blind": "WARNED", "warnings": "WARNED"}
    found = statement(made("verify", host("gpu01", checks=(LOADED, STUB, LDCACHE, NO_GPU))))["predicate"]
    assert found["result"] == "FAILED" and found["failedTests"] == ["gpu01.check.libcuda.stub"]


def test_verify_writes_one_for_a_host_that_it_did_not_reach(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    hosts = write_hosts(tmp_path, CLOSED)
    assert gpuready("verify", "-i", hosts, "--output", f"intoto:{path}").returncode == 4
    found = json.loads(path.read_text())
    assert found["predicate"]["result"] == "FAILED" and found["predicate"]["failedTests"] == ["a.host.host"]
    assert [each["name"] for each in found["subject"]] == ["a"]


def test_a_run_that_never_began_leaves_no_older_statement(tmp_path: Path, exits: Exits) -> None:
    path = tmp_path / "evidence.json"
    path.write_text("{}")
    exits(64, "verify", "-i", write_hosts(tmp_path), "--output", f"intoto:{path}", "--nonsense")
    assert json.loads(path.read_text())["predicate"]["result"] == "FAILED"


def test_a_run_without_hosts_does_not_show_the_password_of_its_source() -> None:
    run = made("verify")
    run.source = "https://joe:s3cret@example.com/hosts.yaml"
    assert [each["name"] for each in statement(run)["subject"]] == ["gpuready"]
    assert "s3cret" not in render(run, 0, "intoto")


def test_a_recording_is_no_evidence_and_only_verify_writes_it(tmp_path: Path, exits: Exits) -> None:
    hosts, states = write_hosts(tmp_path), write_states(tmp_path / "states.json", {"a": STATE})
    told = exits(64, "verify", "-i", hosts, "--state", states, "--output", "intoto").err
    assert "--state is a recording" in told
    for verb in ("plan", "report"):
        assert "no format 'intoto'" in exits(64, verb, *(["-i", hosts] if verb == "plan" else [states]),
                                             "--output", "intoto").err  # fmt: skip


def test_report_shows_what_an_allowed_key_signed(signed: Path, ours: Signer, exits: Exits) -> None:
    told = exits(0, "report", signed, "--check-signature", ours.allowed)
    assert told.err == f"{signed}: signed by ours@example.com\n" and "2 nodes" in told.out
    assert told.out == exits(0, "report", signed).out


def test_the_guide_signs_each_new_result(signed: Path, ours: Signer, exits: Exits) -> None:
    """Without a terminal, as in CI: ssh-keygen cannot ask whether to replace the signature."""
    (line,) = (
        line for text in blocks(ROOT / "docs/guides/ci.md", "sh") for line in text.splitlines() if "sign " in line
    )
    line = line.replace("~/.ssh/id_ed25519", str(ours.key))
    for text in (signed.read_text(), f"{signed.read_text()} "):
        signed.write_text(text)
        subprocess.run(["sh", "-ec", line], cwd=signed.parent, stdin=subprocess.DEVNULL, check=True)
        exits(0, "report", signed, "--check-signature", ours.allowed)


@pytest.mark.fault("changed-evidence")
def test_it_refuses_what_is_changed_or_signed_by_others(
    signed: Path, ours: Signer, tmp_path: Path, exits: Exits
) -> None:
    def refused() -> str:
        told = exits(5, "report", signed, "--check-signature", ours.allowed)
        assert not told.out
        return told.err

    good, expected = signed.read_bytes(), f"expected a signature by a key in {ours.allowed}, got: "
    signed.write_bytes(good.replace(b"PASSED", b"passed"))
    assert f"{expected}the file was changed after it was signed" in refused()
    signed.write_bytes(good)
    Signer(tmp_path, "other").beside(signed, "gpuready-result")
    assert f"{expected}one by another key: ED25519 key SHA256:" in refused()
    ours.beside(signed, "gpuready")
    assert f"{expected}one for another namespace than gpuready-result" in refused()
    ours.beside(signed, "gpuready-result")
    line = ours.allowed.read_text()
    ours.allowed.write_text(line.replace(" ssh-ed25519", ' valid-before="20200101" ssh-ed25519'))
    assert "key has expired" in refused()
    ours.allowed.write_text(line.replace(" ssh-ed25519", ' namespaces="git" ssh-ed25519'))
    assert expected in refused()
    ours.allowed.write_text(f", {line.partition(' ')[2]}")
    assert expected in refused()
    ours.allowed.write_text(line)
    signature = signed.with_name("evidence.json.sig")
    signature.write_text("none")
    assert expected in refused()
    signature.unlink()
    assert "evidence.json.sig: cannot be read: " in refused()


def test_it_refuses_another_spec_and_an_old_result(signed: Path, ours: Signer, tmp_path: Path, exits: Exits) -> None:
    words = ("report", signed, "--check-signature", ours.allowed)
    exits(0, *words, "-i", write_hosts(tmp_path, HOSTS), "--max-age", "999w")
    told = exits(5, *words, "--max-age", "1d")
    assert "the result is from 2025-11-01T12:00:00Z, older than --max-age" in told.err
    path = written(tmp_path, replace(verified(tmp_path), ended="2999-01-01T00:00:00Z"), ours)
    assert f"{path}: its time 2999-01-01T00:00:00Z is in the future" in exits(5, *words, "--max-age", "1d").err
    hosts = write_hosts(tmp_path, HOSTS.replace("8", "4"))
    assert f"{signed}: gpu02 was verified with another spec" in exits(5, *words, "-i", hosts).err
    hosts = write_hosts(tmp_path, HOSTS.replace("gpu01", "gpu03"))
    assert f"{signed}: gpu03 was not verified" in exits(5, *words, "-i", hosts).err


@pytest.mark.skipif(shutil.which("jq") is None, reason="the guide's gate needs jq")
@pytest.mark.parametrize(
    ("checks", "hosts", "opens"),
    [((LOADED,), HOSTS, True), ((NO_GPU,), HOSTS, False), ((LOADED,), HOSTS.replace("8", "4"), False)],
)
def test_the_gate_of_the_guide(
    checks: tuple[CheckResult, ...], hosts: str, opens: bool, tmp_path: Path, ours: Signer
) -> None:
    (gate,) = blocks(ROOT / "docs/guides/ci.md", "bash")
    run = verified(tmp_path)
    run.hosts[1].checks = list(checks)
    run.ended = time.strftime(TIME, time.gmtime())
    written(tmp_path, run, ours)
    ours.allowed.rename(tmp_path / "allowed_signers")
    Path(write_hosts(tmp_path, hosts)).rename(tmp_path / "hosts.yaml")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", gate], cwd=tmp_path, env=env, check=False)
    assert (done.returncode == 0) == opens


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"verb": "plan"}, "a result of plan, not of verify"),
        ({"verb": ""}, "a result of no command, not of verify"),
        ({"error": INTERRUPTED}, "the run of verify failed: interrupted"),
        ({"scope": None}, "the result does not say what was judged"),
        ({"scope": Scope(recorded=True)}, "recorded states were judged (--state), not nodes"),
        ({"scope": Scope(passive=True)}, "no active check ran (--passive)"),
        ({"scope": Scope(components=("docker",))}, "components were left out (--only or --skip)"),
    ],
)  # fmt: skip
def test_it_refuses_a_run_that_verified_nothing(
    changed: dict[str, Any], why: str, tmp_path: Path, ours: Signer, exits: Exits
) -> None:
    for form in ("intoto", "json"):
        path = written(tmp_path, replace(verified(tmp_path), **changed), ours, form)
        found = exits(5, "report", path, "--check-signature", ours.allowed, "-i", write_hosts(tmp_path, HOSTS)).err
        assert f"{path}: {why}" in found


@pytest.mark.parametrize("changed", [{"outcome": "unreachable"}, {"outcome": "not_attempted"}, {"probed": False}])
def test_it_refuses_a_host_that_was_not_verified(
    changed: dict[str, Any], tmp_path: Path, ours: Signer, exits: Exits
) -> None:
    run = verified(tmp_path)
    run.hosts[1] = replace(run.hosts[1], **changed)
    path = written(tmp_path, run, ours)
    words = ("report", path, "--check-signature", ours.allowed, "-i", write_hosts(tmp_path, HOSTS))
    assert f"{path}: gpu02 was not verified" in exits(5, *words).err


def test_a_result_says_that_it_is_of_a_recording(tmp_path: Path, exits: Exits) -> None:
    states = write_states(tmp_path / "states.json", {"a": STATE})
    found = exits(3, "verify", "-i", write_hosts(tmp_path), "--state", states, "--output", "json").document
    assert found["scope"] == {"recorded": True, "passive": False}
    assert found["hosts"]["a"]["asked"] == "effective"


@pytest.mark.parametrize("scope", [Scope(passive=True), Scope(components=("docker", "ldso")), None])
def test_a_narrowed_run_does_not_pass(scope: Scope | None, tmp_path: Path) -> None:
    run = verified(tmp_path)
    run.hosts[0].asked = "effective"
    assert statement(run)["predicate"]["result"] == "PASSED"
    predicate = statement(replace(run, scope=scope))["predicate"]
    assert predicate["result"] == "WARNED"
    used = {each["name"]: each.get("annotations") for each in predicate["configuration"]}
    assert used["gpuready"] == (json.loads(json.dumps(asdict(scope))) if scope else None)
    assert used["spec/gpu01"] == {"level": "effective"}


SMOKE = check("docker.smoke", passed("8 GPUs in a container"), level=Level.smoke)
NO_IMAGE = check("docker.smoke", skip("the spec names no verify.image"), level=Level.smoke)


@pytest.mark.parametrize(
    ("asked", "more", "result"),
    [
        ("smoke", (SMOKE,), "PASSED"),
        ("effective", (NO_IMAGE,), "PASSED"),
        ("smoke", (NO_IMAGE,), "WARNED"),
        ("smoke", (), "WARNED"),
        ("stress", (SMOKE,), "WARNED"),
        ("effective", (replace(UNSEEN, advisory=True),), "WARNED"),
    ],
)
def test_it_passes_only_if_the_level_was_tested_and_nothing_is_unknown(
    asked: str, more: tuple[CheckResult, ...], result: str, tmp_path: Path
) -> None:
    run = verified(tmp_path)
    run.hosts[0].checks += more
    run.hosts[0].asked = asked
    assert exit_code(run) == 0
    assert statement(run)["predicate"]["result"] == result


@pytest.mark.parametrize(
    ("options", "scope"),
    [
        (("--passive",), {"recorded": False, "passive": True}),
        (("--only", "docker"), {"recorded": False, "passive": False, "components": ["docker"]}),
    ],
)
def test_a_result_says_what_was_left_out(options: tuple[str, ...], scope: dict[str, Any], tmp_path: Path) -> None:
    hosts = write_hosts(tmp_path, CLOSED)
    told = gpuready("verify", "-i", hosts, *options, "--output", "json")
    assert json.loads(told.stdout)["scope"] == scope


def test_it_checks_each_of_two_results(signed: Path, ours: Signer, tmp_path: Path, exits: Exits) -> None:
    other = tmp_path / "after.json"
    shutil.copy(signed, other)
    words = ("report", signed, other, "--check-signature", ours.allowed)
    assert "after.json.sig: cannot be read" in exits(5, *words).err
    shutil.copy(f"{signed}.sig", f"{other}.sig")
    assert exits(0, *words).err.count("signed by ours@example.com") == 2
    piped, given = os.pipe()
    os.write(given, ours.allowed.read_bytes())
    os.close(given)
    try:
        assert exits(0, *words[:-1], f"/dev/fd/{piped}").err.count("signed by ours@example.com") == 2
    finally:
        os.close(piped)


def test_usage(signed: Path, ours: Signer, tmp_path: Path, exits: Exits) -> None:
    assert "needs files" in exits(64, "report", tmp_path, "--check-signature", ours.allowed).err
    assert "needs files" in exits(64, "report", "-", "--check-signature", ours.allowed).err
    assert "no such user" in exits(64, "report", signed, "--check-signature", "~nosuchuser/x").err
    assert "none: no such file" in exits(64, "report", signed, "--check-signature", f"{ours.allowed}none").err
