"""kubectl drain with options, by a script in its place: the flags, who is still there, and when the time is over.

The real kubectl and API server: tests/kubernetes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyinfra.api.host import Host

from gpuready.base.errors import LockedError, UnreachableError
from gpuready.base.step import Reply
from gpuready.gpu.node import DRAINED
from gpuready.model.spec import DrainByKubectl, NodeSpec
from gpuready.model.state import File, NodeState
from gpuready.operations import drain, lock, step
from gpuready.operations.context import context
from gpuready.operations.drain import Kubectl, Leaving, begin
from gpuready.operations.step import StepCommand
from tests.operations.begun import begun

HEAD = """#!/bin/sh
echo "$*" >>"$BOOK"
[ ! -e "$BOOK.down" ] || exit 3
case "$1" in
  get)
    case "$5" in *managedFields*) ;; *) cat "$BOOK.cordoned"; exit 0 ;; esac
    [ -z "$SAYS" ] || { echo "$SAYS" >&2; exit 1; }
    printf '%s' "$OURS"
    exit 0 ;;
  drain) ;;
  patch)
    echo true >"$BOOK.cordoned"
    [ ! -e "$BOOK.lost" ] || { rm "$BOOK.lost"; echo 'error: unexpected EOF' >&2; exit 1; }
    exit 0 ;;
  *) exit 0 ;;
esac
"""
#: What kubectl 1.20, 1.32 and 1.36 print, each by the Debian that has it; tests/kubernetes/test_drain.py records it.
RECORDED = Path(__file__).parents[1] / "data/kubectl"
#: Lines of the same form, of more pods.
PODS = """echo node/n1 already cordoned
echo 'Warning: ignoring DaemonSet-managed Pods: kube-system/kube-proxy-x7k2p' >&2
echo evicting pod ml/train-0
echo evicting pod ml/train-1
echo evicting pod web/front-5d9c
"""
DONE = "for p in train-0 train-1 front-5d9c; do echo pod/$p evicted; done; echo node/n1 drained\n"
BUDGET = """echo 'error when evicting pods/"train-1" -n "ml" (will retry after 5s): Cannot evict pod as it would '\
"violate the pod's disruption budget." >&2
"""


#: The annotation, the cordon, and managedFields as the API server has them after the patch of a drain.
OURS = '/drained/true/{"f:metadata":{"f:annotations":{".":{},"f:gpuready":{}}},"f:spec":{"f:unschedulable":{}}}'


def options(drain: dict[str, Any]) -> DrainByKubectl:
    found = NodeSpec.model_validate({"maintenance": {"drain": drain}}).maintenance.drain
    assert isinstance(found, DrainByKubectl)
    return found


class Controller:
    """This machine with a kubectl of the test; what it was asked, and what the progress showed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.progress = folder, list[str]()
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setenv("BOOK", str(folder / "book"))
        self.cordoned = folder / "book.cordoned"
        self.cordoned.touch()
        self.note = ""
        monkeypatch.setenv("OURS", OURS)
        monkeypatch.setenv("SAYS", "")
        monkeypatch.setattr(Kubectl, "look", 0.05)
        self.broken = folder / "book.broken"
        monkeypatch.setattr(step, "is_up", lambda host: not self.broken.exists())

    def drain(self, script: str, host: Host | None = None, **drain: Any) -> str:
        command = Kubectl("n1", options({"kubectl": {}} | drain), away=True)
        return self.runs(command, script, host)

    def runs(self, command: Kubectl, script: str = "", host: Host | None = None) -> str:
        """The trouble of this command."""
        kubectl = self.folder / "kubectl"
        kubectl.write_text(HEAD + script, "utf-8")
        kubectl.chmod(0o755)
        host = host or begun("n1")
        context(host).progress = lambda name, activity: self.progress.append(activity)
        context(host).lock = context(host).lock or Mock()
        assert command.execute(None, host, None)
        self.note, self.drained = command.note, command.drained
        return command.trouble

    def calls(self, verb: str) -> list[str]:
        return [line for line in (self.folder / "book").read_text("utf-8").splitlines() if line.startswith(verb)]

    def patches(self) -> list[dict[str, Any]]:
        """What was changed of the node."""
        head = "patch node n1 --field-manager=gpuready --type=merge --patch="
        return [json.loads(line.removeprefix(head)) for line in self.calls("patch")]


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller(tmp_path, monkeypatch)


AWAY = {"metadata": {"annotations": {"gpuready": "drained"}}, "spec": {"unschedulable": True}}
BACK = {"metadata": {"annotations": {"gpuready": None}}, "spec": {"unschedulable": None}}


@pytest.mark.parametrize(
    ("drain", "flags"),
    [
        ({}, "--timeout=1800s"),
        ({"timeout": "7d"}, "--timeout=604800s"),
        ({"kubectl": {"delete_emptydir": True, "force": True}}, "--timeout=1800s --delete-emptydir-data --force"),
        (
            {"kubectl": {"selector": "app!=train, tier in (batch,web)", "grace": 30}, "timeout": "90m"},
            "--timeout=5400s --pod-selector=app!=train, tier in (batch,web) --grace-period=30",
        ),
    ],
)
def test_the_flags(controller: Controller, drain: dict[str, Any], flags: str) -> None:
    assert controller.drain(PODS + DONE, **drain) == ""
    assert controller.calls("drain") == [f"drain n1 --ignore-daemonsets {flags}"]
    assert controller.patches() == [AWAY]


def test_the_progress_says_who_is_still_there(controller: Controller) -> None:
    wait = f"until grep -q 'waits for' {controller.folder}/shown 2>/dev/null; do sleep 0.02; done; "
    seen: list[str] = []

    class Shown(list[str]):
        def append(self, text: str) -> None:
            seen.append(text)
            if "train-1 (" in text and "front" not in text:
                (controller.folder / "shown").write_text(text, "utf-8")

    controller.progress = Shown()
    trouble = controller.drain(f"{PODS}{BUDGET}echo pod/front-5d9c evicted; {wait}{DONE}")
    assert trouble == ""
    assert seen[0] == "kubectl drain"
    assert seen[-1] == "kubectl drain waits for ml/train-0, ml/train-1 (its disruption budget)"


def test_when_the_time_is_over_the_pods_are_named_and_the_node_is_uncordoned(controller: Controller) -> None:
    over = 'error: unable to drain node "n1" due to error: error when waiting for pod "train-0" in namespace "ml"'
    trouble = controller.drain(
        f"{PODS}echo pod/front-5d9c evicted; echo '{over} terminating: global timeout reached: 2h0m0s' >&2; exit 1",
        timeout="2h",
    )
    assert trouble == (
        "after 2 h there are still pods on n1: ml/train-0, ml/train-1; for more time, set timeout: 7d beside "
        "maintenance.drain.kubectl"
    )
    assert controller.patches() == [AWAY, BACK]


def test_after_an_interrupt_no_pod_is_waited_for_and_the_node_is_uncordoned(controller: Controller) -> None:
    host = begun("n1")
    context(host).stop.asked = True
    pause = f"{sys.executable} -c 'import signal; signal.pause()'"
    assert controller.drain(f"{PODS}exec {pause}", host) == "the run was interrupted"
    assert controller.patches() == [AWAY, BACK]


@pytest.mark.parametrize(
    ("says", "told"), [(PODS, "after 1 min there are still pods on n1: "), ("", "kubectl drain gave no answer")]
)
def test_a_kubectl_that_does_not_keep_its_own_time_is_ended(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, says: str, told: str
) -> None:
    monkeypatch.setattr(Kubectl, "patience", 0.1)
    now = 0.0

    class Slow(Leaving):
        def read(self, line: str) -> None:
            nonlocal now
            super().read(line)
            now += 1000 if "front" in line else 0

    monkeypatch.setattr(drain, "Leaving", Slow)
    monkeypatch.setattr("gpuready.operations.drain.time.monotonic", lambda: now)
    trouble = controller.drain(f"{says}exec {sys.executable} -c 'import signal; signal.pause()' >&- 2>&-", timeout=60)
    assert trouble.startswith(told)


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("cannot delete Pods with local storage (use --delete-emptydir-data to override): ml/a", "delete_emptydir"),
        ("cannot delete Pods that declare no controller (use --force to override): ml/a", "force"),
    ],
)
def test_a_refusal_names_the_setting_that_permits_it(controller: Controller, message: str, advice: str) -> None:
    trouble = controller.drain(f"echo 'error: unable to drain node: {message}, continuing command...' >&2; exit 1")
    assert trouble.startswith(f"kubectl drain failed: error: unable to drain node: {message}")
    assert trouble.endswith(f"; maintenance: {{drain: {{kubectl: {{{advice}: true}}}}}} permits that")
    assert controller.patches() == [AWAY, BACK]


def test_output_of_any_size_and_kind_stays_bounded() -> None:
    leaving = Leaving()
    for n in range(5000):
        leaving.read(f"evicting pod ns/pod-{n}")
    leaving.read("evicting pod ns/\x1b[31mred")
    leaving.read("x" * 100_000)
    assert len(leaving._pods) == 1000 and "\x1b" not in str(leaving)
    assert str(leaving).endswith("ns/pod-4, 995 more")
    assert all(len(line) <= 320 for line in leaving.messages)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.txt")), ids=lambda path: path.stem)
def test_what_kubectl_prints(path: Path) -> None:
    """In a drain that a budget holds until the time is over, and in one that ends well."""
    held, over = path.read_text("utf-8").split("exit 1\n")
    leaving = Leaving()
    for line in held.splitlines():
        leaving.read(line)
    assert str(leaving) == "default/web-x7k2p (its disruption budget)"
    assert all(line.startswith("error") for line in leaving.messages), leaving.messages
    assert "global timeout reached" in leaving.messages[-1]
    leaving = Leaving()
    for line in over.removesuffix("exit 0\n").splitlines():
        leaving.read(line)
    assert (str(leaving), [*leaving.messages]) == ("", [])


def test_the_output_of_a_kubectl_without_namespaces() -> None:
    leaving = Leaving()
    refused = 'error when evicting pod "b" (will retry after 5s): it would violate the disruption budget'
    for line in ('evicting pod "a"', 'evicting pod "b"', refused, "pod/a evicted"):
        leaving.read(line)
    assert str(leaving) == "b (its disruption budget)"


@pytest.mark.parametrize(
    ("ours", "patches", "stays"),
    [
        pytest.param(OURS, [BACK], False, id="of an earlier run"),
        pytest.param(OURS.replace("drained", ""), [BACK], False, id="of an earlier run, without its annotation"),
        pytest.param("/drained/true/", [BACK], False, id="of an earlier run, without managedFields"),
        pytest.param("//true/", [], True, id="of somebody else"),
        pytest.param(
            OURS.replace('"f:unschedulable":{}', ""),
            [{**BACK, "spec": {}}],
            True,
            id="of somebody else, after an earlier run",
        ),
    ],
)
def test_a_node_that_is_cordoned_already(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, ours: str, patches: list[dict[str, Any]], stays: bool
) -> None:
    """If it stays cordoned, a note says so."""
    controller.cordoned.write_text("true")
    monkeypatch.setenv("OURS", ours)
    assert controller.drain("echo no >&2; exit 1") == "kubectl drain failed: no"
    assert controller.patches() == patches
    assert ("to bring the node back: kubectl uncordon n1" in controller.note) == stays and not controller.drained


def test_a_node_that_is_uncordoned_in_the_drain(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", '/drained//{"f:metadata":{}}')
    assert controller.drain('echo >"$BOOK.cordoned"') == "n1 was uncordoned while it was drained"
    assert controller.patches() == [AWAY, {**BACK, "spec": {}}] and not controller.note and not controller.drained


@pytest.mark.fault("kubernetes-uncordoned")
def test_a_node_that_is_uncordoned_just_before_the_drain(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubectl drain then cordons it, so that cordon is gpuready's although no field says so."""
    monkeypatch.setenv("OURS", '/drained/true/{"f:metadata":{}}')
    told = controller.drain(f"echo node/n1 cordoned; {DONE}")
    assert told == "n1 was uncordoned while it was drained"
    assert controller.patches() == [AWAY, BACK] and not controller.note and not controller.drained


GONE = 'Error from server (NotFound): nodes "n1" not found'


def test_a_node_that_is_not_in_the_cluster_any_more(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYS", GONE)
    assert controller.drain("echo no >&2; exit 1") == "kubectl drain failed: no"
    assert controller.patches() == [AWAY] and "not in the cluster any more" in controller.note
    assert not controller.drained


@pytest.mark.parametrize(
    ("says", "seen"),
    [
        pytest.param(GONE, False, id="another cluster, or another name"),
        pytest.param(
            "Error from server (NotFound): the server could not find the requested resource", True, id="proxy"
        ),
        pytest.param('Error from server (NotFound): nodes "n10" not found', True, id="another node"),
    ],
)
def test_a_node_that_is_not_found_need_not_be_deleted(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, says: str, seen: bool
) -> None:
    """It may still be cordoned."""
    monkeypatch.setenv("SAYS", says)
    way_back = Kubectl("n1", options({"kubectl": {}}), away=False, drained=True, seen=seen)
    assert controller.runs(way_back) == f"kubectl get failed: {says}"
    assert controller.drained and not controller.note and not controller.patches()


def test_a_node_that_cannot_be_given_back_is_said_to_be_drained(controller: Controller) -> None:
    trouble = controller.drain('touch "$BOOK.down"; echo no >&2; exit 1')
    assert trouble == "kubectl drain failed: no; the node is still drained: kubectl get failed: exit 3"
    assert controller.drained


@pytest.mark.parametrize("away", [True, False], ids=["drain", "uncordon"])
def test_without_the_lock_of_the_node_kubectl_does_not_run(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    """The cordon may be that of the run that has it."""

    def held(host: Host, patience: float) -> None:
        raise LockedError("another gpuready run is changing this node")

    monkeypatch.setattr(lock, "hold", held)
    command = Kubectl("n1", options({"kubectl": {}}), away=away, drained=True)
    assert controller.runs(command, DONE) == "another gpuready run is changing this node"
    assert controller.drained and not (controller.folder / "book").exists()


@pytest.mark.fault("two-controllers")
@pytest.mark.parametrize(("script", "first"), [("", ""), ("echo no >&2; exit 1", "kubectl drain failed: no; ")])
def test_a_node_that_another_run_took_in_a_drain_is_left_to_it(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, script: str, first: str
) -> None:
    """It may be changing the node, or have found it drained."""

    def hold(host: Host, patience: float) -> None:
        if controller.cordoned.read_text("utf-8"):
            raise LockedError(BUSY)

    monkeypatch.setattr(lock, "hold", hold)
    assert controller.drain(script or DONE) == f"{first}the node is still drained: {BUSY}"
    assert controller.patches() == [AWAY] and controller.drained


@pytest.mark.fault("kubernetes-connection-cut")
@pytest.mark.parametrize("away", [True, False], ids=["drain", "uncordon"])
@pytest.mark.parametrize("comes_back", [True, False], ids=["in time", "too late"])
def test_a_connection_that_breaks_is_opened_again(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, away: bool, comes_back: bool
) -> None:
    """kubectl needs no connection to the node, but the node's lock does; for a while, the old session holds it."""
    host, taken = begun("n1"), list[str]()

    def reconnect(host: Host) -> None:
        taken.append("reconnect" if context(host).lock is None else "lost")
        if not comes_back:
            raise UnreachableError("the node cannot be reached")
        controller.broken.unlink()

    def hold(host: Host, patience: float) -> None:
        taken.append("lock" if patience > lock.SILENCE else "impatient")

    monkeypatch.setattr(step, "_reconnect_at_last", reconnect)
    monkeypatch.setattr(lock, "hold", hold)
    command = Kubectl("n1", options({"kubectl": {}}), away=away, drained=True)
    if not away:
        controller.broken.touch()
    trouble = controller.runs(command, f'touch "$BOOK.broken"; {DONE}', host)
    if comes_back:
        assert trouble == "" and controller.drained is away
        assert taken == (["lock"] if away else []) + ["reconnect", "lock"]
    else:
        still = "the node is still drained: " if away else ""
        assert trouble == f"{still}the node cannot be reached" and controller.drained
        assert taken[: 1 + away] == (["lock"] if away else []) + ["reconnect"]


def test_no_kubectl(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert controller.drain("") == "kubectl is not installed on this machine"


@pytest.mark.parametrize(("verb", "patches"), [("get", []), ("drain", [AWAY, BACK])])
def test_a_controller_that_can_start_no_process(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, verb: str, patches: list[dict[str, Any]]
) -> None:
    start = subprocess.Popen

    def popen(words: list[str], **options: Any) -> Any:
        if words[1] == verb:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return start(words, **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    (controller.folder / "book").touch()
    assert controller.drain(DONE) == f"kubectl {verb} failed: [Errno 11] Resource temporarily unavailable"
    assert controller.patches() == patches


def test_an_answer_of_kubectl_that_is_no_text(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "\udcff")
    assert "the node is still drained: kubectl get failed: 'utf-8' codec" in controller.drain("exit 1")


def test_a_cordon_whose_answer_is_lost_is_taken_back(controller: Controller) -> None:
    (controller.folder / "book.lost").touch()
    assert "unexpected EOF" in controller.drain(PODS + DONE)
    assert controller.patches() == [AWAY, BACK] and not controller.calls("drain")


DOWN, REFUSED = "kubectl get failed: exit 3", "kubectl drain failed: no"
FAILS = "echo no >&2; exit 1"
BUSY = "another gpuready run is changing this node"
MARK, UNMARK = "drain-mark", "drain-unmark"


@pytest.mark.fault("kubernetes-api-down")
@pytest.mark.parametrize(
    ("script", "down", "marked", "locked", "trouble", "steps"),
    [
        pytest.param(DONE, False, False, False, "", [MARK], id="drained"),
        pytest.param(DONE, False, False, True, BUSY, [MARK], id="locked"),
        pytest.param(DONE, True, False, False, DOWN, [MARK, UNMARK], id="down before the cordon"),
        pytest.param(DONE, True, True, False, DOWN, [MARK], id="down, and an earlier run drained it"),
        pytest.param(FAILS, False, True, False, REFUSED, [MARK, UNMARK], id="refused"),
        pytest.param(
            f'touch "$BOOK.down"; {FAILS}',
            False,
            False,
            False,
            f"{REFUSED}; the node is still drained: {DOWN}",
            [MARK],
            id="refused, and then down",
        ),
    ],
)
def test_a_mark_stays_as_long_as_the_node_may_be_drained(
    controller: Controller,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    down: bool,
    marked: bool,
    locked: bool,
    trouble: str,
    steps: list[str],
) -> None:
    host, taken = begun("n1"), list[str]()
    mark = File(text="in Kubernetes, as n1\n", mode=0o644, uid=0, gid=0, mtime=0)
    monkeypatch.setattr(drain, "node_state", lambda host: NodeState(files={DRAINED: mark} if marked else {}))
    if down:
        (controller.folder / "book.down").touch()
    commands = begin(host, NodeSpec.model_validate({"maintenance": {"drain": "kubectl"}}).maintenance)
    with pytest.raises(StopIteration) as end:
        while True:
            command = next(commands)
            if isinstance(command, Kubectl):
                controller.runs(command, script, host)
            elif isinstance(command, StepCommand):
                taken.append(command.step.name)
                command.reply = None if locked else Reply(0, "a note\n")
                command.error = LockedError(BUSY) if locked else None
    assert (end.value.value, taken) == (f"until drained: {trouble}" if trouble else "", steps)
    assert context(host).drained is not bool(trouble)
    assert (controller.folder / "book").exists() is not locked
    notes = [] if locked else ["a note"] * len(steps)
    assert context(host).notes == [call.args[0] for call in host.log_styled.call_args_list] == notes
