"""kubectl drain with options: the real kubectl asks the tests' own API server, which does what can go wrong.

The real API server: tests/kubernetes. What is read of kubectl's output: test_leaving.py.
"""

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
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
from tests.lab.kubectl import kubectl
from tests.operations.api_server import Answer, ApiServer, Request, missing, status
from tests.operations.begun import begun

#: kubectl comes from Debian's archive.
pytestmark = pytest.mark.lab
#: Where kubectl 1.20 prints or asks other things than 1.36.
BOTH = pytest.mark.parametrize("controller", ["sid", "debian12"], indirect=True)
RECORDED = Path(__file__).parents[1] / "data/kubectl"
PODS = ("ml/train-0", "ml/train-1", "web/front-5d9c")
STAY = {"ml/train-0", "ml/train-1 (its disruption budget)"}
AWAY: dict[str, Any] = {"metadata": {"annotations": {"gpuready": "drained"}}, "spec": {"unschedulable": True}}
BACK: dict[str, Any] = {"metadata": {"annotations": {"gpuready": None}}, "spec": {"unschedulable": None}}
UNMARK = {**BACK, "spec": {}}
CORDON, UNCORDON = {"spec": AWAY["spec"]}, {"spec": BACK["spec"]}
FORBIDDEN = status(403, "Forbidden", 'pods is forbidden: User "ops" cannot list resource "pods" in API group ""')
REFUSED = "kubectl drain failed: "


def options(drain: dict[str, Any]) -> DrainByKubectl:
    found = NodeSpec.model_validate({"maintenance": {"drain": drain}}).maintenance.drain
    assert isinstance(found, DrainByKubectl)
    return found


class Controller:
    """This machine with kubectl and the API server of its kubeconfig; what kubectl was asked, and the progress."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, suite: str) -> None:
        self.suite, self.server = suite, ApiServer()
        self.server.start()
        self.server.config(folder / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
        monkeypatch.setenv("PATH", f"{kubectl(suite)}:{os.environ['PATH']}")
        monkeypatch.setenv("HOME", str(folder))  # for kubectl's cache; that of the tests is in the real one
        monkeypatch.setattr(Kubectl, "look", 0.05)
        monkeypatch.setattr(step, "is_up", lambda host: not self.broken)
        self.started, self.progress, self.note = list[subprocess.Popen[Any]](), list[str](), ""
        self.broken, self.drained, self.over = False, False, threading.Event()
        self.shown: Callable[[str], None] = self.progress.append
        controller = self

        class Started(subprocess.Popen[Any]):
            def __init__(self, *given: Any, **options: Any) -> None:
                super().__init__(*given, **options)
                controller.started.append(self)

        monkeypatch.setattr(subprocess, "Popen", Started)

    def drain(self, host: Host | None = None, **drain: Any) -> str:
        return self.runs(Kubectl("n1", options({"kubectl": {}} | drain), away=True), host)

    def runs(self, command: Kubectl, host: Host | None = None) -> str:
        """The trouble of this command."""
        host = host or begun("n1")
        context(host).progress = lambda name, activity: self.shown(activity)
        context(host).lock = context(host).lock or Mock()
        assert command.execute(None, host, None)
        self.note, self.drained = command.note, command.drained
        return command.trouble

    def calls(self, verb: str) -> list[list[str]]:
        """The arguments of each kubectl of this verb."""
        words = [list(map(str, each.args)) for each in self.started if isinstance(each.args, list)]
        return [each[2:] for each in words if each[1] == verb]

    def asked(self, words: str) -> list[Request]:
        return [request for request in self.server.requests if request.words == words]

    def patches(self) -> list[dict[str, Any]]:
        """What gpuready changed of the node."""
        return [each.body for each in self.asked("PATCH n1") if each.query.get("fieldManager") == "gpuready"]

    # What happens before a request is answered.

    def refuses(self, request: Request) -> Answer:
        return FORBIDDEN

    def stops(self, request: Request) -> None:
        self.server.stop()
        raise ConnectionError

    def hangs(self, request: Request) -> None:
        self.over.wait(60)
        raise ConnectionError

    def is_uncordoned(self, request: Request) -> None:
        self.server.patch("kubectl", UNCORDON)

    def is_deleted(self, request: Request) -> None:
        self.server.node = None

    def breaks(self, request: Request) -> None:
        self.broken = True

    def kills(self, request: Request) -> None:
        self.started[-1].kill()


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Controller]:
    made = Controller(tmp_path, monkeypatch, getattr(request, "param", "sid"))
    yield made
    made.over.set()
    made.server.stop()


@BOTH
def test_kubectl_prints_what_it_printed_with_a_real_api_server(controller: Controller) -> None:
    """tests/kubernetes recorded that; a budget takes 5 s, as kubectl waits for so long."""

    def said() -> str:
        words = ["kubectl", "drain", "n1", "--ignore-daemonsets", "--timeout=3s"]
        done = subprocess.run(words, stdout=-1, stderr=-2, text=True, timeout=60, check=False)
        lines = dict.fromkeys(done.stdout.replace("reached: 3s", "reached: 8s").splitlines())
        return "".join(f"{line}\n" for line in (*lines, f"exit {done.returncode}"))

    controller.server.run("default/agent-x7k2p", owner="DaemonSet")
    controller.server.run("default/web-x7k2p")
    controller.server.held = {"default/web-x7k2p"}
    text = said()
    controller.server.held.clear()
    assert text + said() == (RECORDED / f"{controller.suite}.txt").read_text("utf-8")


EMPTY_DIR = {"volumes": [{"name": "shm", "emptyDir": {}}]}
SELECTOR = "app!=train, tier in (batch,web)"


@pytest.mark.promise
@pytest.mark.parametrize(
    ("drain", "flags", "pod", "selector", "grace"),
    [
        ({}, ["--timeout=1800s"], {}, None, None),
        ({"timeout": "7d"}, ["--timeout=604800s"], {}, None, None),
        (
            {"kubectl": {"delete_emptydir": True, "force": True}},
            ["--timeout=1800s", "--delete-emptydir-data", "--force"],
            {"owner": "", **EMPTY_DIR},
            None,
            None,
        ),
        (
            {"kubectl": {"selector": SELECTOR, "grace": 30}, "timeout": "90m"},
            ["--timeout=5400s", f"--pod-selector={SELECTOR}", "--grace-period=30"],
            {},
            "app!=train,tier in (batch,web)",
            30,
        ),
    ],
)
def test_the_flags(
    controller: Controller,
    drain: dict[str, Any],
    flags: list[str],
    pod: dict[str, Any],
    selector: str | None,
    grace: int | None,
) -> None:
    """They are given to kubectl, and mean to it what they should: the pods leave, but not those of DaemonSets."""
    controller.server.run("kube-system/kube-proxy-x7k2p", owner="DaemonSet")
    controller.server.run(*PODS, **pod)
    assert controller.drain(**drain) == ""
    assert controller.calls("drain") == [["n1", "--ignore-daemonsets", *flags]]
    assert (controller.patches(), controller.server.cordoned) == ([AWAY], True)
    assert [*controller.server.pods] == ["kube-system/kube-proxy-x7k2p"]
    assert [each.query.get("labelSelector") for each in controller.asked("GET pods")] == [selector]
    evictions = [each.body["deleteOptions"] for each in controller.asked("POST eviction")]
    assert [each.get("gracePeriodSeconds") for each in evictions] == [grace] * 3


def pods(progress: str) -> set[str]:
    """Those that a progress message or trouble names."""
    found = re.search(r"(?:waits for|pods on n1:) ([^;]*)", progress)
    return set(found[1].split(", ")) if found else set()


def test_the_progress_says_who_is_still_there(controller: Controller) -> None:
    """kubectl asks for the pod of a budget again after 5 s, which no option shortens."""
    server = controller.server
    server.run(*PODS)
    server.staying, server.held = {"ml/train-0"}, {"ml/train-1"}
    seen = list[str]()

    def shown(progress: str) -> None:
        seen.append(progress)
        if pods(progress) == STAY:
            server.held.clear()
            server.pods.pop("ml/train-0")

    controller.shown = shown
    assert controller.drain() == ""
    assert seen[0] == "kubectl drain" and any(pods(each) == STAY for each in seen), seen
    assert not server.pods and len(controller.asked("POST eviction")) == 4


@BOTH
def test_after_an_interrupt_no_pod_is_waited_for_and_the_node_is_uncordoned(controller: Controller) -> None:
    host, server = begun("n1"), controller.server
    server.run(*PODS)
    server.staying, server.held = {"ml/train-0"}, {"ml/train-1"}

    def shown(progress: str) -> None:
        context(host).stop.asked = context(host).stop.asked or pods(progress) == STAY

    controller.shown = shown
    assert controller.drain(host) == "the run was interrupted"
    assert (controller.patches(), server.cordoned) == ([AWAY, BACK], False)
    assert len(controller.asked("POST eviction")) == 3


@pytest.mark.promise
@BOTH
def test_when_the_time_is_over_the_pods_are_named_and_the_node_is_uncordoned(controller: Controller) -> None:
    """kubectl ends by itself, each version with other words."""
    controller.server.run(*PODS)
    controller.server.staying = {"ml/train-0", "ml/train-1"}
    trouble = controller.drain(timeout=5)
    assert trouble.startswith("after 5 s there are still pods on n1: "), trouble
    assert trouble.endswith("; for more time, set timeout: 7d beside maintenance.drain.kubectl")
    assert pods(trouble) == {"ml/train-0", "ml/train-1"}
    assert [each.returncode for each in controller.started if "drain" in each.args] == [1]
    assert controller.patches() == [AWAY, BACK] and not controller.server.cordoned


@pytest.mark.parametrize(
    ("hangs", "message"),
    [(False, "after 2 h there are still pods on n1: ml/train-0;"), (True, "kubectl drain gave no answer")],
    ids=["pods stay", "the API server hangs"],
)
def test_a_kubectl_that_does_not_keep_its_own_time_is_ended(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, hangs: bool, message: str
) -> None:
    """Time passes when the pod's eviction is read, or when the API server hangs."""
    monkeypatch.setattr(Kubectl, "patience", 0.1)
    now = 0.0

    class Slow(Leaving):
        def read(self, line: str) -> None:
            nonlocal now
            super().read(line)
            now += 9000 if "train-0" in line else 0

    def hang(request: Request) -> None:
        nonlocal now
        now += 9000
        controller.hangs(request)

    monkeypatch.setattr(drain, "Leaving", Slow)
    monkeypatch.setattr("gpuready.operations.drain.time.monotonic", lambda: now)
    controller.server.run("ml/train-0")
    controller.server.staying = {"ml/train-0"}
    if hangs:
        controller.server.before["GET pods"] = hang
    assert controller.drain(timeout="2h").startswith(message)
    assert [each.returncode for each in controller.started if "drain" in each.args] == [-9]


@pytest.mark.promise
@BOTH
@pytest.mark.parametrize(
    ("pod", "advice"),
    [({"owner": "ReplicaSet", **EMPTY_DIR}, "delete_emptydir"), ({"owner": ""}, "force")],
    ids=["emptyDir", "no controller"],
)
def test_a_refusal_names_the_setting_that_permits_it(controller: Controller, pod: dict[str, Any], advice: str) -> None:
    controller.server.run("ml/a", **pod)
    trouble = controller.drain()
    assert trouble.startswith(REFUSED) and "override): ml/a" in trouble, trouble
    assert trouble.endswith(f"; maintenance: {{drain: {{kubectl: {{{advice}: true}}}}}} permits that"), trouble
    assert controller.patches() == [AWAY, BACK] and [*controller.server.pods] == ["ml/a"]


@pytest.mark.parametrize(
    ("before", "managed", "patches", "stays"),
    [
        pytest.param([("gpuready", AWAY)], True, [BACK], False, id="of an earlier run"),
        pytest.param(
            [("gpuready", AWAY), ("kubectl-annotate", UNMARK)],
            True,
            [BACK],
            False,
            id="of an earlier run, without its annotation",
        ),
        pytest.param([("gpuready", AWAY)], False, [BACK], False, id="of an earlier run, without managedFields"),
        pytest.param([("kubectl", CORDON)], True, [], True, id="of somebody else"),
        pytest.param(
            [("gpuready", AWAY), ("kubectl", UNCORDON), ("kubectl", CORDON)],
            True,
            [UNMARK],
            True,
            id="of somebody else, after an earlier run",
        ),
    ],
)
def test_a_node_that_is_cordoned_already(
    controller: Controller,
    before: list[tuple[str, dict[str, Any]]],
    managed: bool,
    patches: list[dict[str, Any]],
    stays: bool,
) -> None:
    """If it stays cordoned, a note says so."""
    for manager, patch in before:
        controller.server.patch(manager, patch)
    controller.server.managed = managed
    controller.server.before["GET pods"] = controller.refuses
    assert controller.drain().startswith(REFUSED)
    assert (controller.patches(), controller.server.cordoned) == (patches, stays)
    assert ("to bring the node back: kubectl uncordon n1" in controller.note) == stays and not controller.drained


@pytest.mark.fault("kubernetes-uncordoned")
def test_a_node_that_is_uncordoned_in_the_drain(controller: Controller) -> None:
    controller.server.run("ml/a")
    controller.server.before["POST eviction"] = controller.is_uncordoned
    assert controller.drain() == "n1 was uncordoned while it was drained"
    assert controller.patches() == [AWAY, UNMARK] and not controller.note and not controller.drained


@pytest.mark.fault("kubernetes-uncordoned")
def test_a_node_that_is_uncordoned_just_before_the_drain(controller: Controller) -> None:
    """kubectl drain then cordons it, so that cordon is gpuready's although no field says so."""
    controller.server.before["drain GET n1"] = controller.is_uncordoned
    assert controller.drain() == "n1 was uncordoned while it was drained"
    assert len(controller.asked("PATCH n1")) == 3  # kubectl's own is between these
    assert controller.patches() == [AWAY, BACK] and not controller.note and not controller.drained
    assert not controller.server.cordoned


@pytest.mark.fault("kubernetes-node-deleted")
def test_a_node_that_is_not_in_the_cluster_any_more(controller: Controller) -> None:
    controller.server.before["drain GET n1"] = controller.is_deleted
    assert controller.drain() == f'{REFUSED}Error from server (NotFound): nodes "n1" not found'
    assert controller.patches() == [AWAY] and "not in the cluster any more" in controller.note
    assert not controller.drained


PROXY = "the server could not find the requested resource (get nodes n1)"


@pytest.mark.parametrize(
    ("answer", "seen", "message"),
    [
        pytest.param(missing("nodes", "n1"), False, 'nodes "n1" not found', id="another cluster, or another name"),
        pytest.param((404, b"404 page not found"), True, PROXY, id="proxy"),
        pytest.param(missing("nodes", "n10"), True, 'nodes "n10" not found', id="another node"),
    ],
)
def test_a_node_that_is_not_found_need_not_be_deleted(
    controller: Controller, answer: Answer, seen: bool, message: str
) -> None:
    """It may still be cordoned."""
    controller.server.before["GET n1"] = lambda request: answer
    way_back = Kubectl("n1", options({"kubectl": {}}), away=False, drained=True, seen=seen)
    assert controller.runs(way_back) == f"kubectl get failed: Error from server (NotFound): {message}"
    assert controller.drained and not controller.note and not controller.patches()


@pytest.mark.fault("kubernetes-api-down")
def test_a_node_that_cannot_be_given_back_is_said_to_be_drained(controller: Controller) -> None:
    controller.server.before["GET pods"] = controller.stops
    trouble = controller.drain()
    assert trouble.startswith(REFUSED) and "; the node is still drained: kubectl get failed: " in trouble, trouble
    assert "was refused" in trouble and controller.drained and controller.server.cordoned


@pytest.mark.parametrize("away", [True, False], ids=["drain", "uncordon"])
def test_without_the_lock_of_the_node_kubectl_does_not_run(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    """The cordon may be that of the run that has it."""

    def held(host: Host, patience: float) -> None:
        raise LockedError(BUSY)

    monkeypatch.setattr(lock, "hold", held)
    command = Kubectl("n1", options({"kubectl": {}}), away=away, drained=True)
    assert controller.runs(command) == BUSY
    assert controller.drained and not controller.started


@pytest.mark.fault("two-controllers")
@pytest.mark.parametrize("refused", [False, True], ids=["drained", "refused"])
def test_a_node_that_another_run_took_in_a_drain_is_left_to_it(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """It may be changing the node, or have found it drained."""

    def hold(host: Host, patience: float) -> None:
        if controller.server.cordoned:
            raise LockedError(BUSY)

    monkeypatch.setattr(lock, "hold", hold)
    if refused:
        controller.server.before["GET pods"] = controller.refuses
    trouble = controller.drain()
    assert trouble.endswith(f"the node is still drained: {BUSY}") and trouble.startswith(REFUSED) == refused, trouble
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
        controller.broken = False

    def hold(host: Host, patience: float) -> None:
        taken.append("lock" if patience > lock.SILENCE else "impatient")

    monkeypatch.setattr(step, "_reconnect_at_last", reconnect)
    monkeypatch.setattr(lock, "hold", hold)
    command = Kubectl("n1", options({"kubectl": {}}), away=away, drained=True)
    controller.broken = not away
    controller.server.before["GET pods"] = controller.breaks
    trouble = controller.runs(command, host)
    if comes_back:
        assert trouble == "" and controller.drained is away
        assert taken == (["lock"] if away else []) + ["reconnect", "lock"]
    else:
        still = "the node is still drained: " if away else ""
        assert trouble == f"{still}the node cannot be reached" and controller.drained
        assert taken[: 1 + away] == (["lock"] if away else []) + ["reconnect"]


def test_no_kubectl(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert controller.drain() == "kubectl is not installed on this machine"


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
    assert controller.drain() == f"kubectl {verb} failed: [Errno 11] Resource temporarily unavailable"
    assert controller.patches() == patches


@pytest.mark.parametrize(
    ("at", "message"), [("GET n1", "kubectl get failed: exit -9"), ("GET pods", "kubectl drain failed: exit -9")]
)
def test_a_kubectl_that_is_killed(controller: Controller, at: str, message: str) -> None:
    """It says nothing more."""
    controller.server.before[at] = controller.kills
    assert controller.drain() == message
    assert controller.patches() == ([AWAY, BACK] if at == "GET pods" else [])


def test_an_answer_that_is_no_text(controller: Controller) -> None:
    """kubectl prints what the API server, or a proxy, answers."""

    def refuses(request: Request) -> Answer:
        controller.server.before["GET n1"] = lambda request: (403, b"\xff")
        return FORBIDDEN

    controller.server.before["GET pods"] = refuses
    trouble = controller.drain()
    assert "the node is still drained: kubectl get failed: 'utf-8' codec" in trouble, trouble


@pytest.mark.fault("kubernetes-api-hangs")
def test_an_api_server_without_an_answer(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "ANSWER", 1)
    controller.server.before["GET n1"] = controller.hangs
    assert controller.drain() == "kubectl get gave no answer within 1 s"
    assert [each.returncode for each in controller.started] == [-9] and not controller.drained


def test_a_cordon_whose_answer_is_lost_is_taken_back(controller: Controller) -> None:
    server = controller.server

    def lost(request: Request) -> None:
        del server.before["PATCH n1"]
        server.patch("gpuready", request.body)
        raise ConnectionError

    server.before["PATCH n1"] = lost
    trouble = controller.drain()
    assert trouble.startswith("kubectl patch failed: ") and "EOF" in trouble, trouble
    assert controller.patches() == [AWAY, BACK] and not controller.calls("drain") and not server.cordoned


BUSY = "another gpuready run is changing this node"
MARK, UNMARK_STEP = "drain-mark", "drain-unmark"
DOWN = ("kubectl get failed: The connection to the server 127.0.0.1:", " was refused")


@pytest.mark.fault("kubernetes-api-down")
@pytest.mark.parametrize(
    ("happens", "marked", "locked", "trouble", "steps"),
    [
        pytest.param("", False, False, (), [MARK], id="drained"),
        pytest.param("", False, True, (BUSY,), [MARK], id="locked"),
        pytest.param("down", False, False, DOWN, [MARK, UNMARK_STEP], id="down before the cordon"),
        pytest.param("down", True, False, DOWN, [MARK], id="down, and an earlier run drained it"),
        pytest.param("refuses", True, False, (REFUSED,), [MARK, UNMARK_STEP], id="refused"),
        pytest.param(
            "stops", False, False, (REFUSED, "; the node is still drained: ", *DOWN), [MARK], id="down in the drain"
        ),
    ],
)
def test_a_mark_stays_as_long_as_the_node_may_be_drained(
    controller: Controller,
    monkeypatch: pytest.MonkeyPatch,
    happens: str,
    marked: bool,
    locked: bool,
    trouble: tuple[str, ...],
    steps: list[str],
) -> None:
    host, taken = begun("n1"), list[str]()
    mark = File(text="in Kubernetes, as n1\n", mode=0o644, uid=0, gid=0, mtime=0)
    monkeypatch.setattr(drain, "node_state", lambda host: NodeState(files={DRAINED: mark} if marked else {}))
    if happens == "down":
        controller.server.stop()
    elif happens:
        controller.server.before["GET pods"] = getattr(controller, happens)
    commands = begin(host, NodeSpec.model_validate({"maintenance": {"drain": "kubectl"}}).maintenance)
    with pytest.raises(StopIteration) as end:
        while True:
            command = next(commands)
            if isinstance(command, Kubectl):
                controller.runs(command, host)
            elif isinstance(command, StepCommand):
                taken.append(command.step.name)
                command.reply = None if locked else Reply(0, "a note\n")
                command.error = LockedError(BUSY) if locked else None
    expected = f"until drained: {'.*'.join(map(re.escape, trouble))}.*" if trouble else ""
    assert re.fullmatch(expected, end.value.value) and taken == steps, end.value.value
    assert ("still drained" in end.value.value) == (happens == "stops")
    assert context(host).drained is not bool(trouble)
    assert bool(controller.started) is not locked
    notes = [] if locked else ["a note"] * len(steps)
    assert context(host).notes == [call.args[0] for call in host.log_styled.call_args_list] == notes
