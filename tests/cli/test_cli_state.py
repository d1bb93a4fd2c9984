"""plan and verify of recorded states: no connection, no pyinfra, and clear words about files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.cli.app import run
from gpuready.result.mask import mask_state
from tests.command import Exits, imported
from tests.report.test_report_runs import STATE

HOSTS = "all:\n  hosts:\n    gpu[01:02]:\n  vars:\n    gpuready: {hardware: {gpus: none}}\n"


def recorded(**hosts: object) -> dict[str, Any]:
    """As ``gpuready record`` writes it, without what ``--state`` does not read."""
    return {"schema": "gpuready/result/1", "verb": "record", "hosts": {name: {"state": s} for name, s in hosts.items()}}


class Files:
    """An inventory of two hosts, and a place for a state file."""

    def __init__(self, at: Path) -> None:
        self.hosts, self.states = at / "hosts.yaml", at / "states.json"
        self.hosts.write_text(HOSTS)

    def argv(self, verb: str, document: object, *more: str) -> list[str]:
        """Write the document; the command line that reads it."""
        text = document if isinstance(document, str) else json.dumps(document)
        self.states.write_text(text)
        return [verb, "-i", str(self.hosts), "--state", str(self.states), *more]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def state() -> dict[str, Any]:
    return mask_state(STATE)


@pytest.mark.parametrize("verb", ["plan", "verify"])
def test_no_pyinfra_and_no_gevent(verb: str, files: Files, state: dict[str, Any], exits: Exits) -> None:
    argv = files.argv(verb, recorded(gpu01=state, gpu02=state))
    assert not {"pyinfra", "gevent"} & imported(*argv)
    told = exits(0 if verb == "plan" else 3, *argv, "-v").out
    assert "gpu[01-02]" in told and "0 execs" in told


def test_a_document_gives_each_host_its_state(files: Files, state: dict[str, Any], exits: Exits) -> None:
    found = exits(6, *files.argv("plan", recorded(gpu01=state, other={"format": 99}), "--output", "json")).document
    assert found["hosts"]["gpu01"]["outcome"] == "would_change"
    assert found["hosts"]["gpu02"]["outcome"] == "not_attempted"
    assert "the file has no state of this host" in found["hosts"]["gpu02"]["notes"]
    assert "other" not in found["hosts"]


def test_what_probe_prints_reads_back(files: Files, state: dict[str, Any], exits: Exits) -> None:
    told = exits(2, *files.argv("plan", recorded(gpu01=state, gpu02=state), "--detailed-exitcode"))
    assert "docker: would change on gpu[01-02]" in told.out


def test_only_leaves_out_other_components_and_their_checks(files: Files, state: dict[str, Any], exits: Exits) -> None:
    argv = files.argv("plan", recorded(gpu01=state, gpu02=state), "--only", "docker", "--output", "json")
    host = exits(0, *argv).document["hosts"]["gpu01"]
    assert [item["name"] for item in host["components"]] == ["docker"]
    status = {check["id"]: check["status"] for check in host["checks"]}
    assert status["docker.config"] == "fail" and status["toolkit.config"] == status["toolkit.version"] == "skip"


def test_a_surprise_on_one_host_is_that_hosts_outcome(
    files: Files, state: dict[str, Any], exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(catalogue: object, spec: object, state: object, host: str, **more: object) -> tuple[()]:
        return () if host == "gpu01" else 1 / 0  # type: ignore[return-value]

    monkeypatch.setattr("gpuready.run.evaluate.run_checks", judge)
    told = exits(70, *files.argv("plan", recorded(gpu01=state, gpu02=state), "--output", "json"))
    hosts = told.document["hosts"]
    assert hosts["gpu01"]["outcome"] == "would_change"
    assert hosts["gpu02"]["error"]["message"] == "bug in gpuready: ZeroDivisionError: division by zero"
    assert "Traceback" in told.err and "Traceback" not in told.out


def test_a_bare_state_needs_one_host(files: Files, state: dict[str, Any], exits: Exits) -> None:
    assert run(files.argv("plan", state, "--limit", "gpu02")) == 0
    assert "--limit" in exits(5, *files.argv("plan", state)).err


def test_verify_counts_active_checks_that_were_recorded(files: Files, state: dict[str, Any], exits: Exits) -> None:
    state["active"] = {"done": {}}
    found = exits(3, *files.argv("verify", state, "--limit", "gpu01", "--output", "json")).document
    assert "docker.smoke" in [check["id"] for check in found["hosts"]["gpu01"]["checks"]]


BAD = (
    ("", "not JSON"),
    ("[]", "a state document is a mapping"),
    ("[" * 100_000, "not JSON"),
    ({"schema": "gpuready/result/2", "hosts": {}}, "this gpuready reads 'gpuready/result/1'"),
    ({"schema": "gpuready/result/1", "hosts": {}}, "contains no state"),
    ({"schema": "gpuready/result/1", "hosts": {"gpu01": {"outcome": "ok"}}}, "contains no state"),
    ({"schema": "gpuready/result/1"}, "contains no state"),
    (recorded(gpu01={"format": 2}), "state format 2; this gpuready reads format 1"),
    (recorded(gpu01={}), "state format none"),
    (recorded(gpu01=[]), "state format none"),
    (recorded(gpu01={"format": 1, "colour": "blue"}), "colour"),
    (recorded(gpu01={"format": 1, "os": 7}), "os"),
)


@pytest.mark.parametrize(("document", "words"), BAD)
def test_bad_state_files_are_5(document: object, words: str, files: Files, exits: Exits) -> None:
    told = exits(5, *files.argv("verify", document, "--output", "json"))
    assert told.document["error"]["kind"] == "state" and words in told.err and "Traceback" not in told.err


def test_a_missing_state_file_is_5(files: Files, exits: Exits) -> None:
    assert "No such file" in exits(5, "plan", "-i", str(files.hosts), "--state", "/nonexistent.json").err


MESSAGE = "docker: Error response from daemon: unknown or invalid runtime name: nvidia."


def test_explain_judges_a_message_on_recorded_nodes(files: Files, state: dict[str, Any], exits: Exits) -> None:
    """Only the checks of that message, and those that explain them, count and are shown."""
    _, *argv = files.argv("explain", recorded(gpu01=state, gpu02=state))
    known = exits(3, "verify", *argv, "--output", "json").document["hosts"]["gpu01"]["checks"]
    (status,) = (check["status"] for check in known if check["id"] == "docker.runtime")
    code = 3 if status in ("fail", "unknown") else 0
    told = exits(code, "explain", MESSAGE, *argv).out
    assert told.startswith("unknown or invalid runtime name: nvidia\n  likely  ") and "\nVerdicts\n" in told
    assert f"  {status:<7} docker.runtime  gpu[01-02]: " in told and "  -       docker.smoke" in told
    found = exits(code, "explain", MESSAGE, *argv, "--output", "json").document
    assert (found["verb"], found["exit_code"], found["hosts"]["gpu01"]["components"]) == ("explain", code, [])
    assert {check["id"] for check in found["hosts"]["gpu01"]["checks"]} == {"docker.runtime"}


def test_explain_ends_with_what_was_asked(exits: Exits) -> None:
    told = exits(0, "explain", "gpu.count", "-i", "gpu01,", "--state", RECORDED).out
    assert "\nOK: none of these checks failed on 1 node; " in told and "matches its spec" not in told


def test_explain_masks_what_a_node_says(files: Files, state: dict[str, Any], exits: Exits) -> None:
    state["docker"] = {"unknown": "docker info: proxy https://me:hunter2@10.0.0.1 refused"}
    _, *argv = files.argv("explain", recorded(gpu01=state, gpu02=state))
    told = exits(3, "explain", MESSAGE, *argv)
    assert "docker info: proxy https://" in told.out and "hunter2" not in told.out + told.err


RECORDED = str(Path(__file__).parents[1] / "data" / "h200-mounted-driver" / "state.json")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Error 804", "unknown image.compat       gpu01: could not be judged here: it needs a live node, and --state"),
        ('no runtime for "nvidia" is configured', "could not be judged here: no containerd.service on this node"),
        ("containerd", "unknown containerd.config   gpu01: could not be judged here: no containerd.service"),
        ("ibv_modify_qp failed with error Connection timed out", "fabric.ports  gpu01: could not be judged here"),
    ],
)
def test_explain_says_what_it_could_not_judge(text: str, status: str, exits: Exits) -> None:
    told = exits(3, "explain", text, "-i", "gpu01,", "--state", RECORDED).out
    assert status in told and "\ngpu01  CHECKS UNKNOWN  " in told and "\n  fix:     " in told
    assert exits(3, "explain", text, "-i", "gpu01,", "--state", RECORDED, "--output", "json").document


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("20", 40), ("300", 100)])
def test_explain_is_as_wide_as_the_terminal(
    exits: Exits, monkeypatch: pytest.MonkeyPatch, columns: str, widest: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    lines = [
        line for line in exits(0, "explain", "gpu.count", "--color", "never").out.splitlines() if "confirm" not in line
    ]
    assert widest - 15 < max(map(len, lines)) <= widest


def test_explain_of_a_component_has_the_checks_of_what_it_changes_whatever_their_area(exits: Exits) -> None:
    told = exits(0, "explain", "ldso", "-i", "gpu01,", "--state", RECORDED).out
    assert "\n  pass    libcuda.ldcache " in told.partition("Verdicts\n")[2]
    assert "driver.match" in exits(0, "explain", "driver").out


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("Xid 79", "skip    gpu.xid      gpu01: does not apply: a host without GPUs (hardware.gpus: none)", 0),
        ("Error 804", "skip    image.compat       gpu01: does not apply: a host without GPUs", 0),
        ("driver.packages", "skip    driver.packages  gpu01: does not apply: a host without GPUs", 0),
        ("nccl", "skip    nccl.config   gpu01: does not apply: a host without GPUs", 0),
        ("libcuda.so cannot found!", "pass    libcuda.triton ", 0),
        ('no runtime for "nvidia" is configured', "could not be judged here: no containerd.service on this node", 3),
    ],
)
def test_checks_of_gpus_do_not_apply_to_a_host_without_gpus(text: str, status: str, code: int, exits: Exits) -> None:
    told = exits(code, "explain", text, "-i", "gpu01,", "-e", "hardware.gpus=none", "--state", RECORDED).out
    assert status in told and ("could not be judged" in told) == bool(code)


def test_a_host_whose_image_is_unknown_is_not_ok(exits: Exits) -> None:
    argv = ["compat", "-i", "gpu01,", "--state", RECORDED, "--image", "example.com/app:1"]
    assert "\ngpu01  UNKNOWN  -  " in exits(3, *argv).out
    assert ">gpu01" in exits(3, *argv, "--output", "html").out


def test_a_headline_has_no_lone_comma(exits: Exits) -> None:
    told = exits(3, "verify", "-i", "gpu01,", "--state", RECORDED)
    assert told.out.startswith(f"verify: 1 host of gpu01, states from {RECORDED}, 1 probed, ")


def test_explain_of_a_state_names_its_own_option(exits: Exits) -> None:
    told = exits(64, "explain", "Error 804", "--state", "s.json")
    assert "gpuready explain TEXT -i gpu01, --state s.json" in told.err


def test_explain_of_nobodys_text_connects_to_nobody(files: Files, exits: Exits) -> None:
    assert "not known" in exits(64, "explain", "port is already allocated", "-i", str(files.hosts)).err
    assert run(["explain", "docker.runtime", "--output", "json"]) == 64
