"""Slurm's own commands and daemons: drain, idle, resume, jobs that run throughout, the gate, the script of launch.

Slurm is Debian's: 24.11, and 22.05 and 26.05 for the steps alone, with slurmctld and slurmd on one machine. The
disturbance is the exporter's: class recreate, because systemd is reloaded.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from gpuready.base.records import unmarked
from gpuready.components.gate.component import SCRIPT
from gpuready.gpu.node import DRAINED
from gpuready.model import probe
from gpuready.model.parse import parse
from gpuready.model.slurm import SlurmNode
from gpuready.model.state import Unknown
from gpuready.operations.drain import DrainSlurm
from tests.command import write_states
from tests.lab import Lab, image, slurm
from tests.system.disturbed import Disturbed
from tests.system.faults import lock_is_free, until
from tests.system.harness import Gpuready, Inventories
from tests.verbs.launch.test_training import TORCHRUN, over_tcp

PROGRAM = "/etc/slurm/gpuready-gate"
#: A job that ends when it may.
JOB = "until [ -e /var/tmp/end ]; do sleep 0.2; done; echo ended >/var/tmp/said"
#: Back in service, without a job.
CLEAN = """
systemctl kill -s CONT slurmctld || true
systemctl start munge slurmctld slurmd
until scontrol ping | grep -q 'is UP'; do sleep 0.1; done
for u in root gpu; do scancel --signal=KILL --full -u $u; scancel -u $u; done
rm -rf /var/tmp/end /var/tmp/said /run/started
scontrol delete ReservationName=m >/dev/null 2>&1 || true
until [ -z "$(squeue -h)" ]; do sleep 0.2; done
shown() { scontrol show node $(hostname) -o; }
! shown | grep -q State=UNKNOWN || systemctl restart slurmd
while shown | grep -q State=UNKNOWN; do sleep 0.2; done
scontrol update NodeName=$(hostname) State=DRAIN Reason=test
scontrol update NodeName=$(hostname) State=RESUME
"""


class Node(Disturbed):
    """A machine with Slurm and the exporter. ``notes``: what the last step printed for the user."""

    notes = ""

    @property
    def mark(self) -> Path:
        return self.root / DRAINED.lstrip("/")

    def given_back(self) -> None:
        assert not self.mark.exists()

    def drain(self, phase: str, limit: int = 0, meanwhile: str = "", name: str = "") -> tuple[int, str]:
        """Exit code and stderr of the step that drains the node (before) or resumes it (after).

        ``meanwhile``: what happens when the step waits for the first time. After that, it asks often. ``name``: another
        node of Slurm's.
        """
        happens = ""
        if meanwhile:
            once = f"[ -e /run/slept ] || {{ touch /run/slept; {meanwhile}; }}"
            happens = f"rm -f /run/slept\nsleep() {{ {once}; command sleep 0.2; }}\n"
        found = self.run("sh", stdin=happens + DrainSlurm(phase, name, limit).render(), check=False)
        self.notes = found.stdout
        return found.returncode, found.stderr

    def state(self) -> set[str]:
        return set(slurm.shown(self, "State").rstrip("*").split("+")) - {"NOT_RESPONDING"}

    def reason(self) -> str:
        return slurm.shown(self, "Reason")

    def update(self, *words: str) -> None:
        self.run(f"scontrol update NodeName={self.name} {' '.join(words)}")

    def job(self, *options: str, script: str = JOB, runs: bool = True) -> str:
        """Submit a job, wait until it runs, and return its number."""
        wrap = f"sbatch --parsable -o /dev/null {' '.join(options)} --wrap '{script}'"
        number = self.run(wrap).stdout.strip()
        if runs:
            until(lambda: self.of(number, "%T") == "RUNNING", 60)
        return number

    def of(self, number: str, field: str) -> str:
        """A field of a job, as squeue shows it; empty if the job is over."""
        return self.run(f"squeue -h -t all -j {number} -o '{field}'", check=False).stdout.strip()

    def end_jobs(self) -> None:
        self.run("touch /var/tmp/end")


@pytest.fixture(scope="module", params=["debian13", "debian12", image.DNF5])
def made(request: pytest.FixtureRequest, lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    with lab.machine(request.param) as machine:
        slurm.start(machine)
        found = Node(machine, gpuready, inventory)
        found.first()
        yield found


@pytest.fixture
def node(made: Node) -> Node:
    """Idle, whatever the test before did."""
    made.sh(CLEAN)
    slurm.await_state(made, "IDLE", "IDLE+NOT_RESPONDING")
    made.given_back()
    return made


#: Whole runs take long, so the other releases of Slurm get the steps alone.
newest = pytest.mark.parametrize("made", ["debian13"], indirect=True)


class Case(NamedTuple):
    """How the node gets into a state, a word of State= there, and whether gpuready drains it."""

    make: str
    state: str
    drains: bool


CASES = {
    "idle": Case("true", "IDLE", True),
    "reservation": Case(
        "scontrol create reservation ReservationName=m User=root StartTime=now Duration=10 Nodes=ALL Flags=MAINT",
        "IDLE",
        True,
    ),
    "an old reason of ours": Case(
        "scontrol update NodeName=$N State=DRAIN Reason=gpuready; scontrol update NodeName=$N State=RESUME",
        "IDLE",
        True,
    ),
    "drained": Case("scontrol update NodeName=$N State=DRAIN Reason='bad fan'", "DRAIN", False),
    "words that begin like ours": Case(
        "scontrol update NodeName=$N State=DRAIN Reason='gpuready by hand'", "DRAIN", False
    ),
    "the gate's": Case("scontrol update NodeName=$N State=DRAIN Reason='gpuready: gpu.count: 7'", "DRAIN", False),
    "down": Case("scontrol update NodeName=$N State=DOWN Reason=dead", "DOWN", False),
    "fail": Case("scontrol update NodeName=$N State=FAIL Reason=dying", "FAIL", False),
    "down after ours": Case(
        "scontrol update NodeName=$N State=DRAIN Reason=gpuready; scontrol update NodeName=$N State=RESUME;"
        "scontrol update NodeName=$N State=DOWN Reason=gpuready",
        "DOWN",
        False,
    ),
}


@pytest.mark.fault("slurm-others-drain", "slurm-out-of-service", "slurm-old-reason")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_only_what_gpuready_drained_comes_back(node: Node, case: Case) -> None:
    node.sh(f"N={node.name}\n{case.make}")
    before, reason = node.state(), node.reason()
    assert case.state in before
    assert node.drain("before") == (0, "")
    if case.drains:
        assert ("DRAIN" in node.state(), node.reason()) == (True, "gpuready")
        assert node.mark.exists()
    else:
        assert (node.state(), node.reason()) == (before, reason)
        node.given_back()
    assert node.drain("after") == (0, "")
    node.given_back()
    if case.drains:
        assert "DRAIN" not in node.state() and node.notes == ""
        assert node.reason() in ("resumed by gpuready", "")  # 22.05 keeps no reason
    else:
        assert (node.state(), node.reason()) == (before, reason)
        assert f"{node.name} stays " in node.notes


@pytest.mark.fault("slurm-out-of-service")
@newest
def test_a_node_that_is_down_without_a_reason(node: Node) -> None:
    """scontrol sets none down without a reason, but slurm.conf does."""
    shown = node.run(f"scontrol show node {slurm.SPARE} -o").stdout
    assert " State=DOWN" in shown and "Reason=" not in shown
    assert node.drain("before", name=slurm.SPARE) == node.drain("after", name=slurm.SPARE) == (0, "")
    assert node.notes.startswith(f"Slurm's {slurm.SPARE} stays DOWN")
    assert node.notes.endswith(", because gpuready did not set that state: see sinfo -R\n")


@pytest.mark.fault("drained-another-way")
@newest
def test_only_the_way_that_drained_a_node_removes_its_mark(node: Node) -> None:
    for other in ("in Kubernetes, as n1", "by maintenance.drain.before", "in Slurm, as n2"):
        node.mark.write_text(f"{other}\n", "utf-8")
        says = f"an earlier run drained the node {other}: once it is back in service, remove {DRAINED}\n"
        try:
            assert (node.drain("before"), node.notes) == ((1, says), "")
            assert node.state() == {"IDLE"}
            assert (node.drain("after"), node.notes) == ((0, ""), says)
            assert node.mark.read_text("utf-8") == f"{other}\n"
        finally:
            node.mark.unlink()
    for phase in ("before", "before", "after"):  # the second one goes on after a run that was killed
        assert (node.drain(phase), node.notes) == ((0, ""), "")
        if phase == "before":
            assert node.mark.read_text("utf-8") == f"in Slurm, as {node.name}\n"
    node.given_back()


@pytest.mark.fault("drain-mark")
@newest
def test_a_mark_that_cannot_be_written_or_removed(node: Node) -> None:
    """Nothing is drained; or the node is back all the same, and a note says what to do."""
    node.mark.mkdir()  # rm removes no directory
    try:
        code, why = node.drain("before")
        assert code == 1 and why.endswith(f"cannot write {DRAINED}\n")
        assert node.state() == {"IDLE"}
        node.update("State=DRAIN", "Reason=gpuready")
        assert node.drain("after")[0] == 0 and "drain is over" in node.notes and "remove it" in node.notes
        assert node.state() == {"IDLE"}
    finally:
        node.mark.rmdir()


@pytest.mark.fault("slurm-others-drain")
def test_a_drain_of_an_earlier_run_is_finished(node: Node) -> None:
    node.update("State=DRAIN", "Reason=gpuready")
    assert node.drain("before") == node.drain("after") == (0, "")
    assert node.state() == {"IDLE"}
    # Somebody else drains it meanwhile, for another reason.
    node.drain("before")
    node.update("State=DRAIN", "Reason=mine")
    assert node.drain("after") == (0, "")
    assert (node.state(), node.reason()) == ({"IDLE", "DRAIN"}, "mine")
    node.given_back()


@pytest.mark.fault("slurm-jobs-stay")
def test_jobs_that_do_not_end_keep_running(node: Node) -> None:
    """Allocated, draining and completing."""
    number = node.job("-n 2", script='trap "" TERM; while :; do sleep 0.2; done')
    assert "ALLOCATED" in node.state()
    code, why = node.drain("before")
    assert code == 1 and f"there are still Slurm jobs on {node.name}: {number}" in why
    assert node.state() == {"ALLOCATED"} and node.of(number, "%T") == "RUNNING"
    node.given_back()
    node.update("State=DRAIN", "Reason=mine")
    assert node.drain("before")[0] == 1
    assert node.state() == {"ALLOCATED", "DRAIN"} and node.reason() == "mine"
    node.run(f"scancel {number}")
    code, why = node.drain("before")
    assert code == 1 and f": {number}" in why
    assert node.of(number, "%T") == "COMPLETING"


class Fault(NamedTuple):
    """What happens while a step waits for a job, what ends that, what the step says, and whether it is the end of it.

    Without ``says``, the step ends well.
    """

    begins: str
    ends: str = "true"
    says: tuple[str, ...] = ()
    drained: bool = False


STOPS = "the node is still drained: scontrol gives no answer for "
END = """touch /var/tmp/end; until out=$(squeue -h -t R,CG) && [ -z "$out" ]; do command sleep 0.1; done"""
#: The time of the step is over with its next look, however slow the machine is.
OVER = "end=0"
#: slurmctld writes its state some seconds after a change.
KILL = "until grep -qa gpuready /var/lib/slurm/slurmctld/node_state; do command sleep 0.1; done; "
KILL += "systemctl kill -s KILL slurmctld"
RESUME = "scontrol update NodeName=$(hostname) State=RESUME"
#: The step's limit for an answer.
SOON = 'timeout() { shift 3; command timeout -k 1 1 "$@"; }'
FAULTS = {
    "slurmctld killed, and back": Fault(f"{KILL}; systemctl start slurmctld; {END}"),
    "slurmctld hangs": Fault(
        f"systemctl kill -s STOP slurmctld; {SOON}; {OVER}",
        "systemctl kill -s CONT slurmctld",
        ("scontrol gives no answer: timed out after 60 s; ", STOPS),
        True,
    ),
    "munge ends": Fault(
        f"systemctl stop munge; {OVER}", "systemctl start munge", ("scontrol gives no answer", STOPS), True
    ),
    "slurmd killed": Fault(
        f"systemctl kill -s KILL --kill-whom=main slurmd; {OVER}",
        "systemctl start slurmd",
        ("there are still Slurm jobs",),
    ),
    "resumed by others": Fault(RESUME, says=("went back into service",)),
    "resumed by others, and no job is left": Fault(f"{RESUME}; {END}", says=("went back into service",)),
}


@pytest.mark.fault("slurm-controller-down", "slurm-hangs", "slurm-munge-down", "slurm-node-dies", "slurm-resumed")
@newest
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_happens_in_a_drain(node: Node, fault: Fault) -> None:
    """The job runs to its end, and the node is given back, or the step says so and the next run gives it back."""
    number = node.job()
    try:
        code, said = node.drain("before", 1800, fault.begins)
    finally:
        node.sh(fault.ends)
    assert code == bool(fault.says) and all(word in said for word in fault.says), said
    until(lambda: node.run("scontrol ping", check=False).stdout.count("UP"), 60)
    if fault.drained or not fault.says:
        until(lambda: "DRAIN" in node.state() and node.reason() == "gpuready", 60)
        assert node.mark.exists()
    else:
        node.given_back()
        assert "DRAIN" not in node.state()
    assert node.of(number, "%T") in ("RUNNING", "COMPLETED", "")
    node.end_jobs()
    until(lambda: (node.root / "var/tmp/said").exists() and not node.run("squeue -h").stdout, 60)
    assert node.drain("before", 60) == node.drain("after") == (0, "")
    node.given_back()
    assert "DRAIN" not in node.state()


class Down(NamedTuple):
    """How a node goes down while a step waits for a job, what others did before, and whether it stays down."""

    happens: str
    before: str = "true"
    stays: bool = True


MINE = "scontrol update NodeName=$(hostname) State=DOWN Reason=mine"
DOWN = {
    "by others": Down(MINE),
    "drained by others, and down": Down(MINE, "scontrol update NodeName=$(hostname) State=DRAIN Reason=theirs"),
    "as its jobs are asked for": Down(f'timeout() {{ shift 3; [ "$1" != squeue ] || {MINE}; "$@"; }}'),
    # So does slurmctld after SlurmdTimeout; with the shortest one, that takes 10 s.
    "its slurmd is silent": Down(MINE.replace("mine", "'gpuready : Not responding'"), stays=False),
}


@pytest.mark.fault("slurm-node-dies", "slurm-out-of-service")
@newest
@pytest.mark.parametrize("down", DOWN.values(), ids=DOWN)
def test_a_node_that_goes_down_in_a_drain_is_not_disturbed(node: Node, down: Down) -> None:
    """slurmctld requeues its job, so that none is listed any more; but it may still run there."""
    node.job()
    node.sh(down.before)
    code, why = node.drain("before", 1800, down.happens)
    assert (code, why) == (1, f"{node.name} went down while gpuready waited for its jobs\n")
    node.given_back()
    if down.stays:
        assert (node.state(), node.reason()) == ({"DOWN", "DRAIN"}, "mine")
        assert node.notes.startswith(f"Slurm's {node.name} stays DOWN+DRAIN")
    else:
        assert not node.state() & {"DOWN", "DRAIN"} and node.notes == ""


@pytest.mark.fault("slurm-node-dies")
@newest
@pytest.mark.parametrize(("addition", "stays"), [("Not responding", False), ("Low RealMemory", True)])
def test_slurmctld_adds_to_the_reason_in_a_drain(node: Node, addition: str, stays: bool) -> None:
    """It does so while slurmd is silent, as in a reboot. Any other addition is a drain of Slurm's own."""
    assert node.drain("before") == (0, "")
    node.update("State=DOWN", f"Reason='gpuready : {addition}'")
    assert node.drain("after") == (0, "")
    node.given_back()
    assert ("DOWN" in node.state(), f"{node.name} stays DOWN+DRAIN" in node.notes) == (stays, stays)


@pytest.mark.fault("slurm-job-starts")
@newest
def test_a_job_that_starts_just_before_the_drain(node: Node) -> None:
    """Nobody saw it when the node was asked; the drain waits for it."""
    node.script("/usr/local/bin/scontrol", STARTS_A_JOB)
    try:
        code, said = node.drain("before", 2)
    finally:
        node.sh("rm /usr/local/bin/scontrol")
    assert code == 1 and "there are still Slurm jobs on" in said
    assert node.state() == {"MIXED"}
    node.given_back()


#: The first update is that of the drain.
STARTS_A_JOB = """#!/bin/sh
if [ "$1" = update ] && mkdir /run/started 2>/dev/null; then
  sbatch -o /dev/null --wrap 'until [ -e /var/tmp/end ]; do sleep 0.2; done' >/dev/null
  until squeue -h -t R | grep -q .; do sleep 0.1; done
fi
exec /usr/bin/scontrol "$@"
"""


@pytest.mark.fault("controller-killed")
@newest
def test_a_gpuready_that_is_killed_in_a_drain(node: Node) -> None:
    """What it began on the node waits for the job, and the next run changes and resumes the node."""
    number = node.job()
    process = node.begin("apply", "--only", "monitoring", **node.spec_of(restart="drained", drain="slurm"))
    until(lambda: node.reason() == "gpuready" and "DRAIN" in node.state(), 120)
    process.kill()
    process.communicate()
    assert node.of(number, "%T") == "RUNNING"
    node.end_jobs()
    until(lambda: not node.run("systemctl -q list-units --no-legend gpuready-drain*").stdout and lock_is_free(node), 60)
    assert node.run("cat /var/tmp/said").stdout == "ended\n"
    node.done(node.ask(restart="drained", drain="slurm"))
    assert "DRAIN" not in node.state()


@pytest.mark.promise
@newest
def test_a_job_runs_to_its_end_before_the_change(node: Node) -> None:
    number = node.job("-n 1", "--gres=gpu:1")
    assert "MIXED" in node.state()
    node.waited(node.ask(restart="idle"), "until idle", f"Slurm job {number}")
    assert node.of(number, "%T") == "RUNNING"
    process = node.begin("apply", "--only", "monitoring", **node.spec_of(restart="drained", drain="slurm"))
    until(lambda: node.reason() == "gpuready" and "DRAIN" in node.state(), 120)
    waiting = node.job(runs=False)
    assert node.of(number, "%T") == "RUNNING"
    assert node.of(waiting, "%T") == "PENDING"
    node.end_jobs()
    result = node.gpuready.finish(process)
    node.done(result)
    assert node.run("cat /var/tmp/said").stdout == "ended\n"
    until(lambda: node.of(waiting, "%T") in ("", "COMPLETED"), 60)


@newest
def test_a_node_that_somebody_else_drained_stays_so(node: Node) -> None:
    node.update("State=DRAIN", "Reason='bad fan'")
    result = node.ask(restart="drained", drain="slurm")
    node.done(result)
    assert (node.state(), node.reason()) == ({"IDLE", "DRAIN"}, "bad fan")
    assert any(f"{node.name} stays IDLE+DRAIN, because " in note for note in result.host()["notes"]), result.explain()


GRES = "/etc/slurm/gres.conf"
FEWER = f"cp {GRES} {GRES}.whole; echo Name=gpu Type=h200 File=/dev/null >{GRES}; systemctl restart slurmd"
WHOLE = f"mv {GRES}.whole {GRES}; systemctl restart slurmd"


@pytest.mark.fault("slurm-fewer-gres")
def test_a_drained_node_that_registers_with_fewer_gpus(node: Node) -> None:
    """Slurm replaces gpuready's reason: the drain is its own. 22.05 keeps that reason, but does not resume the node."""
    assert node.drain("before") == (0, "")
    node.sh(FEWER)
    try:
        until(lambda: "INVALID_REG" in node.state(), 60)
        code, why = node.drain("after")
        if code:
            assert why.startswith(f"{node.name} cannot be resumed: ") and node.mark.exists()
        else:
            assert f"{node.name} stays " in node.notes and not node.mark.exists()
        assert "DRAIN" in node.state()
    finally:
        node.sh(WHOLE)
    until(lambda: "INVALID_REG" not in node.state(), 60)
    assert node.drain("after") == (0, "")
    assert ("DRAIN" in node.state()) == (not code)


@pytest.mark.fault("slurm-fewer-gres")
def test_the_probe_reads_what_slurm_has_of_the_node(node: Node) -> None:
    """Also when gres.conf has less than slurm.conf, and when slurmctld is down."""

    def probed() -> object:
        return parse(unmarked(node.run("sh", stdin=probe.script()).stdout)).slurm

    found = probed()
    assert isinstance(found, SlurmNode), found
    assert (found.name, found.state.split("+")[0], found.gpus) == (node.name, "IDLE", {"h200": 2})
    node.sh(FEWER)
    until(lambda: "INVALID_REG" in node.state(), 60)
    found = probed()
    assert isinstance(found, SlurmNode) and "INVALID_REG" in found.state
    # Slurm drained it, so it is not gpuready's to resume.
    assert node.drain("before") == node.drain("after") == (0, "")
    assert node.state() >= {"DRAIN", "INVALID_REG"} and f"{node.name} stays " in node.notes
    node.sh(f"{WHOLE}; systemctl stop slurmctld")
    found = probed()
    assert isinstance(found, Unknown), found
    assert "Unable to contact slurm controller" in found.unknown or "no answer within 3 s" in found.unknown
    node.run("systemctl stop slurmd")
    assert probed() is None
    node.run("systemctl start slurmctld slurmd")


@pytest.mark.fault("slurm-controller-down")
@newest
def test_a_controller_that_is_down(node: Node) -> None:
    node.update("State=DRAIN", "Reason=gpuready")
    node.run("systemctl stop slurmctld")
    down = f"scontrol gives no answer for {node.name}: slurm_load_node error: Unable to contact slurm controller"
    result = node.ask(restart="drained", drain="slurm")
    node.waited(result, f"until drained: {down}")
    node.waited(node.ask(restart="idle"), "until idle", "Slurm's jobs (squeue gives no answer)")
    code, why = node.drain("after")
    assert code == 1 and down in why
    node.run("systemctl start slurmctld; systemctl restart slurmd")
    until(lambda: "UNKNOWN" not in node.state(), 60)
    assert node.drain("after") == (0, "")
    assert node.state() == {"IDLE"}


@pytest.mark.fault("slurm-munge-down")
@newest
def test_munge_that_does_not_answer(node: Node) -> None:
    node.run("systemctl stop munge")
    node.waited(node.ask(restart="drained", drain="slurm"), "until drained: scontrol gives no answer", "Munge")
    node.run("systemctl start munge")
    assert node.state() == {"IDLE"} and node.reason() != "gpuready"


@newest
def test_a_name_that_slurm_does_not_know(node: Node) -> None:
    result = node.ask(restart="drained", drain="slurm", node="other")
    node.waited(result, "until drained: scontrol gives no answer for other", "Node other not found")
    assert node.state() == {"IDLE"}


class Gate:
    """The program of ``render slurm`` in slurm.conf, and two gates that ``apply`` made: one is ready, one is not."""

    LINE = "gpuready: driver.loaded: no nvidia module is loaded"

    def __init__(self, node: Node) -> None:
        self.node = node
        text = node.gpuready("render", "slurm", check_json=False, code=0).stdout
        node.script(PROGRAM, text)
        settings = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   ")]
        with (node.root / slurm.CONF).open("a") as conf:
            conf.writelines(f"{line}\n" for line in settings)
        for name, hardware in (("ready", {"gpus": "none"}), ("not-ready", {"gpus": 8})):
            spec = {"gate": True, "hardware": hardware, "runtimes": {"docker": "absent"}}
            node.call("apply", "--only", "gate", code=None, **spec)
            node.run(f"cp {SCRIPT} {SCRIPT}.{name}")
        self.use("ready")
        node.run("systemctl restart slurmctld slurmd")

    def use(self, name: str) -> None:
        self.node.run(f"cp {SCRIPT}.{name} {SCRIPT}")

    def health_check(self) -> None:
        """slurmd runs it when it starts."""
        self.node.run("systemctl restart slurmd")

    def drained(self, reason: str) -> None:
        node = self.node
        until(lambda: "DRAIN" in node.state() and node.reason() == reason, 60, f"{reason} as the reason")


@newest
def test_slurmd_asks_the_gate_before_and_after_a_job(node: Node) -> None:
    gate = Gate(node)
    node.sh(CLEAN)
    slurm.await_state(node, "IDLE", "IDLE+NOT_RESPONDING")
    number = node.job()
    gate.use("not-ready")
    node.end_jobs()
    gate.drained("Epilog error")
    assert node.run("cat /var/tmp/said").stdout == "ended\n"
    gate.health_check()
    gate.drained(gate.LINE)
    # It never resumes a node, and leaves other people's reasons alone.
    gate.use("ready")
    gate.health_check()
    for state, reason in (("DRAIN", "bad_fan"), ("DOWN", "dead"), ("FAIL", "dying")):
        node.update(f"State={state}", f"Reason={reason}")
        gate.use("not-ready")
        assert node.run(f"SLURMD_NODENAME={node.name} {PROGRAM}").stdout == f"{gate.LINE}\n"
        assert state in node.state() and node.reason() == reason
        node.update("State=RESUME")
    gate.use("ready")
    node.sh(CLEAN)
    # A prolog that fails: the job waits, held, and nobody kills it.
    gate.use("not-ready")
    number = node.job(runs=False)
    gate.drained("Prolog error")
    until(lambda: node.of(number, "%T") == "PENDING", 60)
    node.run(f"scontrol show job {number} | grep -q 'JobState=PENDING'")
    node.run("systemctl stop slurmctld")
    assert node.run(PROGRAM, check=False).returncode == 1
    # One slurm.conf holds for nodes without GPUs, too.
    node.run(f"rm {SCRIPT}; {PROGRAM}")


@newest
def test_sbatch_runs_the_batch_script_of_launch(node: Node, tmp_path: Path) -> None:
    """For this node alone, and beside one with other settings. A script stands in for PyTorch's torchrun."""
    node.script("/usr/local/bin/torchrun", TORCHRUN)
    here, other = over_tcp(1, "ens1"), over_tcp(2, "eth0")
    for states, options in (({node.name: here}, ""), ({"other": other, node.name: here}, "--nodes=1")):
        inventory = {
            "all": {"hosts": dict.fromkeys(states), "vars": {"gpuready": {"nccl": {"subnets": ["10.0.0.0/24"]}}}}
        }
        (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(inventory), "utf-8")
        recorded = write_states(tmp_path / "states.json", states)
        words = ("launch", "slurm", "--state", recorded)
        text = node.gpuready(*words, inventory=tmp_path / "hosts.yaml", check_json=False, code=0).stdout
        assert ("SLURMD_NODENAME" in text) == bool(options)
        node.script("/var/tmp/ddp.sbatch", text)
        number = node.run(f"cd /var/tmp && sbatch --parsable {options} ddp.sbatch").stdout.strip()
        until(lambda number=number: node.of(number, "%T") in ("COMPLETED", "FAILED", ""), 60)
        assert (node.root / f"var/tmp/ddp-{number}.out").read_text("utf-8") == (
            f"GLOO_SOCKET_IFNAME=ens1\nMASTER_ADDR={node.name}\nNCCL_SOCKET_IFNAME==ens1\n"
            f"--nnodes 1 --nproc-per-node 1 --max-restarts 3 --rdzv-id {number} --rdzv-backend c10d "
            f"--rdzv-endpoint {node.name}:29500 ddp.py\n"
        )
