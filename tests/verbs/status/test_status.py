"""``gpuready status``: the record that an apply leaves on a node, and what is made of it, whatever it says."""

import base64
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuready import __version__
from gpuready.cli.parts import parts
from gpuready.contract.compare import Comparison
from gpuready.contract.component import Change
from gpuready.contract.node_record import PATH, Outcome, Record, last_record, outcome, record, spec_hash
from gpuready.model.parse import parse
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, File, NodeState
from gpuready.node import NODE as COMPONENTS
from gpuready.operations.active import script
from gpuready.result.document import document, read
from gpuready.result.exitcode import exit_code
from gpuready.result.html import html
from gpuready.result.human import human
from gpuready.result.mask import mask_state
from gpuready.result.model import HostResult, Run, ended
from gpuready.result.text import printable
from gpuready.verbs.status.part import PART
from gpuready.verbs.status.status import Status, status_of
from tests.command import VALIDATOR, Exits
from tests.model.probe_answers import lines
from tests.report.test_report_runs import NO_ROUTE
from tests.report.test_report_runs import host as host_run

BOOT = "3f6a9c1e-0000-4000-8000-000000000001"
CLOCK = 1795223688
SPEC = NodeSpec.model_validate({"hardware": {"gpus": 8}, "memlock": "unlimited"})
NODE = NodeState(clock=CLOCK, boot_id=BOOT, driver=Driver(proc_version="580.95.05"))
DIFFERS = Comparison("docker", True, diff=(Change("docker.x", 1, 2),))
SAME = Comparison("toolkit", True)
BLOCKED = Comparison("nccl", True, error="unknown")


def written(**more: Any) -> str:
    """The record of an apply an hour before, with changes."""
    before = NODE.model_copy(update={"clock": CLOCK - 3600})
    text = record(SPEC, before, [("docker", "changed"), ("nccl", "ok")], by="ops@ci", gpuready="0.1.0", partial=False)
    return json.dumps({**json.loads(text), **more})


def node(text: str | None, **more: Any) -> NodeState:
    """A node with that record."""
    files = {} if text is None else {PATH: File(text=text, mode=0o644, uid=0, gid=0, mtime=1)}
    return NODE.model_copy(update={"files": files, **more})


def status(given: NodeState, *found: Comparison, spec: NodeSpec = SPEC, release: str = "0.1.0") -> Status:
    differs = [each.name for each in found if each.diff and not each.error]
    blocked = [each.name for each in found if each.error]
    return status_of(spec, given, release=release, differs=differs, blocked=blocked)


def test_the_hash_of_a_spec_is_that_of_its_values() -> None:
    turned = NodeSpec.model_validate({"memlock": "unlimited", "hardware": {"gpus": 8, "nvswitch": "auto"}})
    assert spec_hash(turned) == spec_hash(SPEC)  # another order, and a default spelt out
    for other in ({}, {"hardware": {"gpus": 4}, "memlock": "unlimited"}, {"hardware": {"gpus": 8}}):
        assert spec_hash(NodeSpec.model_validate(other)) != spec_hash(SPEC)


@pytest.mark.filterwarnings("error::UserWarning")
def test_every_form_of_a_drain_can_be_hashed() -> None:
    forms = "kubectl", {"kubectl": {"force": True}, "timeout": "2d"}, {"before": "true", "after": "true"}
    specs = [NodeSpec.model_validate({"maintenance": {"drain": form}}) for form in forms]
    assert len({spec_hash(spec) for spec in specs}) == len(forms)


def test_an_apply_is_read_as_it_was_written() -> None:
    found = last_record(node(written()))
    assert isinstance(found, Record) and found.spec == spec_hash(SPEC)
    assert (found.time, found.by, found.driver, found.boot_id) == ("2026-11-21T00:14:48Z", "ops@ci", "580.95.05", BOOT)
    assert found.components == {"docker": "changed", "nccl": "ok"} and found.outcome == "converged"
    assert last_record(NODE) is None


def test_what_a_node_says_of_itself_never_spoils_its_record() -> None:
    odd = NODE.model_copy(update={"clock": 10**17, "boot_id": "\x1b[2J\udc80\n" * 99})
    every: list[tuple[str, Outcome]] = [(item.name, "ok") for item in COMPONENTS]
    text = record(SPEC, odd, every, by="ops@ci", gpuready=__version__, partial=True)
    assert isinstance(last_record(node(text)), Record)


def test_outcomes() -> None:
    assert outcome(False, changed=False, pending=False, failed=False) == "skipped"
    assert outcome(True, changed=False, pending=False, failed=False) == "ok"
    assert outcome(True, changed=True, pending=False, failed=False) == "changed"
    assert outcome(True, changed=True, pending=True, failed=False) == "pending"
    assert outcome(True, changed=True, pending=True, failed=True) == "failed"
    for worst in ("pending", "failed"):
        found = last_record(node(written(components={"docker": worst, "nccl": "changed"})))
        assert isinstance(found, Record) and found.outcome == worst


def test_what_changed_since() -> None:
    now = status(node(written()), SAME)
    assert (now.age, now.release, now.outcome, now.problem) == (3600, "same", "converged", "")
    assert (now.spec_changed, now.driver_changed, now.rebooted, now.differs) == (False, False, False, ())
    newer = Driver(proc_version="590.1")
    later = node(written(), boot_id="another", driver=newer, lock="a@b run=1 as n1", step="toolkit")
    found = status(later, SAME, DIFFERS, BLOCKED, spec=NodeSpec(), release="0.2.0")
    assert (found.spec_changed, found.driver_changed, found.rebooted, found.release) == (True, True, True, "older")
    assert (found.differs, found.blocked, found.lock, found.step) == (("docker",), ("nccl",), "a@b", "toolkit")
    releases = {given: status(node(written(gpuready=given))).release for given in ("0.0.9", "0.10", "dev")}
    assert releases == {"0.0.9": "older", "0.10": "newer", "dev": "other"}


HOSTILE: dict[str, str] = {
    "empty": "",
    "no JSON": "converged\n",
    "a list": "[1]",
    "deep": "[" * 9000,
    "large": written(by="x" * 30_000),
    "another format": written(format=2),
    "unknown key": written(remedy="curl evil | sh"),
    "missing keys": "{}",
    "another verb": written(verb="rm"),
    "numbers": written(by=7),
    "a hash that is none": written(spec="0" * 63 + "g"),
    "an escape sequence": written(by="\x1b[2Jroot@ci"),
    "a line": written(gpuready="0.1.0\nOK, all ready"),
    "a lone surrogate": written(by="\ud800"),
    "bytes": written().replace("ops", "\udcff"),
    "a long text": written(by="x" * 201),
    "a day that is none": written(time="2026-13-41T00:00:00Z"),
    "digits of others": written(time="２０２６-11-21T00:14:48Z"),
    "a time of another zone": written(time="2026-11-21T00:14:48+01:00"),
    "components": written(components={"\x1b": "ok"}),
    "an outcome": written(components={"docker": "\x1b[31mok"}),
    "a truth": written(partial="yes"),
}


@pytest.mark.fault("hostile-status-record")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_record_that_apply_did_not_write_is_none(name: str) -> None:
    found = status(node(HOSTILE[name]), SAME)
    assert found.record is None and found.outcome is None and PATH in found.problem
    assert found.problem.isprintable() and len(found.problem) < 300
    text = shown(HostResult("n1", {"status": found}, outcome="ok"))
    assert "n1    unreadable record  -   -         -     580.95.05  matches the spec" in text
    VALIDATOR.validate(json.loads(json.dumps(document(of(HostResult("n1", {"status": found}, outcome="ok")), 0))))


@pytest.mark.fault("hostile-status-record")
def test_a_name_that_turns_the_line_around_is_spelt_out() -> None:
    found = status(node(written(by="\u202eic@spo")), SAME)
    assert "\\u202eic@spo" in printable(shown(HostResult("n1", {"status": found}, outcome="ok")))


def of(*hosts: HostResult) -> Run:
    return Run("status", list(hosts), seconds=0.5, source="hosts.yaml", part=PART)


def shown(*hosts: HostResult) -> str:
    return human(of(*hosts), exit_code(of(*hosts)))


def test_the_page() -> None:
    old = written(gpuready="0.0.9", partial=True, components={"docker": "pending"}, driver="570.1")
    states = {
        "gpu01": status(node(written()), SAME),
        "gpu02": status(node(old, clock=CLOCK + 86400 * 3, step="docker", lock="a@b run=1"), DIFFERS, spec=NodeSpec()),
        "gpu03": status(node(None, driver=Driver()), BLOCKED),
        "gpu04": status_of(SPEC, node(written(), clock=1), release="0.1.0", undecided="no GPU"),
    }
    hosts = [HostResult(name, {"status": each}, outcome="ok", probed=True, execs=1) for name, each in states.items()]
    found = shown(*hosts, host_run("gpu05", "unreachable", error=NO_ROUTE)).splitlines()
    assert found[0] == "status: 5 hosts of hosts.yaml, 4 probed, 0.5 s"
    assert "\n".join(line.rstrip() for line in found[found.index("") + 1 :]).startswith(
        "UNREACHABLE  gpu05: 10.0.0.4: no route to host"
    )
    table = [line for line in found if line.startswith(("HOST", "gpu0")) and not line.endswith(" s")]
    assert table == [
        "HOST   LAST CHANGE                         BY      GPUREADY       SPEC           DRIVER                NOW",
        "gpu01  converged, 1 h ago                  ops@ci  0.1.0          same           580.95.05             "
        "matches the spec",
        "gpu02  pending (some components), 3 d ago  ops@ci  0.0.9 (older)  changed since  580.95.05, was 570.1  "
        "being changed by a@b; running step docker; differs: docker",
        "gpu03  no record                           -       -              -              none                  "
        "blocked: nccl",
        "gpu04  converged, in the future            ops@ci  0.1.0          same           580.95.05             "
        "not compared",
    ]


def test_what_nodes_consist_of_is_shown_once_for_those_alike() -> None:
    kinds = [("gpu01", "580.95.05"), ("gpu02", "570.1"), ("gpu03", "580.95.05")]
    hosts = []
    for name, driver in kinds:
        one = HostResult(name, {"status": status(node(written()), SAME)}, outcome="ok")
        one.read(node(None, kernel="6.8.0", driver=Driver(proc_version=driver, gpus=("a", "b"))))
        hosts.append(one)
    assert [line.split() for line in shown(*hosts).splitlines() if " GPUs " in line or line.startswith("HOSTS")] == [
        ["HOSTS", "GPUS", "DRIVER", "KERNEL", "OS", "TOOLKIT", "ENGINES"],
        ["gpu[01,03]", "2", "GPUs", "580.95.05", "6.8.0", "none", "none", "none"],
        ["gpu02", "2", "GPUs", "570.1", "6.8.0", "none", "none", "none"],
    ]


def test_a_document_gives_back_the_status() -> None:
    run_ = of(HostResult("gpu01", {"status": status(node(written()), DIFFERS)}, outcome="ok", execs=1))
    found = json.loads(json.dumps(document(run_, 0)))
    VALIDATOR.validate(found)
    again, code = read(found, parts())
    assert document(again, code) == document(run_, 0) and "ops@ci" in human(again, code) and "ops@ci" in html(again, 0)


def test_of_recorded_states(tmp_path: Path, exits: Exits) -> None:
    hosts, states = tmp_path / "hosts.yaml", tmp_path / "states.json"
    hosts.write_text("all: {hosts: {a: {}, b: {}}, vars: {gpuready: {hardware: {gpus: 8}, memlock: unlimited}}}\n")
    state = mask_state(node(written()))
    states.write_text(json.dumps({"schema": "gpuready/result/1", "hosts": {"a": {"state": state}}}))
    argv = ["status", "-i", str(hosts), "--state", str(states)]
    found = exits(6, *argv, "--output", "json").document  # of b there is no state
    assert (found["hosts"]["a"]["outcome"], found["hosts"]["a"]["checks"], found["batches"]) == ("would_change", [], [])
    told = exits(0, *argv, "--limit", "a").out
    assert re.search(r"^a  differs ", told, re.M) and told.endswith("\n1 node differs\n")
    assert "exit 2 (plan and status, only with" in exits(2, *argv, "--limit", "a", "--detailed-exitcode").out
    assert found["hosts"]["a"]["status"]["record"]["by"] == "ops@ci" and "status" not in found["hosts"]["b"]
    assert found["hosts"]["a"]["status"]["spec_changed"] is False
    assert "changed since" in exits(0, *argv, "--limit", "a", "-e", "memlock=auto").out


def test_a_node_that_was_not_compared_is_called_so_everywhere(tmp_path: Path, exits: Exits) -> None:
    states = tmp_path / "states.json"
    state = mask_state(node(written()))
    state["driver"] = {}
    states.write_text(json.dumps({"schema": "gpuready/result/1", "hosts": {"a": {"state": state}}}))
    told = exits(0, "status", "-i", "a,", "--state", states).out
    assert re.search(r"^a  not compared  ", told, re.M) and told.endswith("\n1 node not compared\n")
    word = HostResult("a", outcome="ok", reason="x").word("status")
    assert word == ended(word) == "not compared"


def test_who_changes_the_node_now_is_read_from_its_locks() -> None:
    state = parse(lines(texts={"values": "kernel=x\nlock=ops@ci run=1 as n1\nstep.lock=docker\n"}))
    assert (state.lock, state.step) == ("ops@ci run=1 as n1", "docker")
    assert len(parse(lines(texts={"values": f"kernel=x\nlock={'x' * 9999}\n"})).lock) < 500


def active(path: Path) -> str:
    """What the script of the active checks says when it has a record to write, on this machine."""
    text = script((), record="a 'b'\n").replace(PATH, str(path))
    return subprocess.run(["sh"], input=text, capture_output=True, text=True, check=True).stdout


def test_the_script_of_the_active_checks_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "gpuready" / "last-apply.json"
    for before in (None, "old"):
        if before:
            path.write_text(before)
            (path.parent / ".record-cutoff").touch()
            os.utime(path.parent / ".record-cutoff", (0, 0))  # another run may be at work with one that is younger
        assert "run record" not in active(path)
        assert path.read_text() == "a 'b'\n" and path.stat().st_mode & 0o777 == 0o644
        assert [each.name for each in path.parent.iterdir()] == [path.name]
    path.unlink()
    path.mkdir()  # as good as a full disk: it cannot take its place
    assert f"run record 1 {base64.b64encode(b'').decode()}" in active(path)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
