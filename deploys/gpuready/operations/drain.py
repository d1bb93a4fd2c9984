"""Drain a node before a disruption and resume it afterwards, even if the disruption failed.

Slurm and the user's own commands run on the node. kubectl runs on the controller, with the user and kubeconfig of
gpuready. A drain is gpuready's by Slurm's reason, or in Kubernetes by the manager of the node's field or, without
managers, by the annotation: the next run continues one that was interrupted, and a node that somebody else drained
stays drained.
Sources: scontrol(1), squeue(1), ``kubectl drain --help``, pkg/drain/drain.go of kubernetes/kubectl (its output),
Kubernetes' documentation of managedFields.
"""

import collections
import json
import os
import re
import select
import subprocess
import time
from collections.abc import Generator, Iterator
from typing import Any

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.host import Host

from gpuready.base.errors import GpureadyError, brief
from gpuready.base.step import Script, Step
from gpuready.gpu.node import DRAINED
from gpuready.model.spec import DrainByKubectl, DrainCommands, Maintenance
from gpuready.model.spec import Kubectl as KubectlOptions
from gpuready.operations.context import context
from gpuready.operations.node_state import node_state
from gpuready.operations.step import Pending, StepCommand, hold_again, show
from gpuready.result.mask import mask_text
from gpuready.result.text import printable

#: Seconds that work may take to leave the node.
LIMIT = 1800
#: Seconds within which the API server must answer.
ANSWER = 60
_MARK = "gpuready"
#: The annotation, the cordon, and the fields that gpuready set. A field that was removed meanwhile belongs to the one
#: who set it again.
_OURS = (
    f"/{{.metadata.annotations.{_MARK}}}/{{.spec.unschedulable}}"
    f"/{{.metadata.managedFields[?(@.manager=='{_MARK}')].fieldsV1}}"
)

Commands = Generator[PyinfraCommand, None, str]
Result = Generator[PyinfraCommand, None, GpureadyError | Pending | None]


class NotDrained(Pending):
    """kubectl could not drain the node, or not bring it back into service."""


class Leaving:
    """The pods that kubectl drain waits for, from its output, and the last three of its other lines."""

    _MOST = 1000
    _ASKED = re.compile(r'evicting pod "?(?:([a-z0-9-]{1,63})/)?([a-z0-9.-]{1,253})"?')
    _REFUSED = re.compile(
        r'error when evicting pods?[/ ]"?([a-z0-9.-]{1,253})"? (?:-n "([a-z0-9-]{1,63})" )?\(will retry'
    )
    _GONE = re.compile(r"pod/([a-z0-9.-]{1,253}) (?:evicted|deleted)")
    _OTHER = re.compile(r"node/\S+ |pod/\S+$|(?i:warning): |There are pending (?:pods|nodes)| ")

    def __init__(self) -> None:
        self._pods: dict[str, str] = {}
        self.messages: collections.deque[str] = collections.deque(maxlen=3)

    def read(self, line: str) -> None:
        """Read one line of kubectl's output."""
        if asked := self._ASKED.match(line):
            pod = f"{asked[1]}/{asked[2]}" if asked[1] else asked[2]
            if len(self._pods) < self._MOST:
                self._pods.setdefault(pod, "")
        elif refused := self._REFUSED.match(line):
            pod = f"{refused[2]}/{refused[1]}" if refused[2] else refused[1]
            if pod in self._pods and "disruption budget" in line:
                self._pods[pod] = " (its disruption budget)"
        elif gone := self._GONE.match(line):
            self._pods.pop(next((pod for pod in self._pods if pod.split("/")[-1] == gone[1]), ""), "")
        elif line.strip() and not self._OTHER.match(line):
            self.messages.append(brief(line))

    def __str__(self) -> str:
        names = [f"{pod}{why}" for pod, why in self._pods.items()]
        more = [f"{len(names) - 5} more"] if len(names) > 5 else []
        return ", ".join([*names[:5], *more])


class Kubectl(PyinfraCommand):
    """Run kubectl on the controller. ``trouble``: what went wrong. ``note``: why the node is not back in service.

    ``drained``: gpuready cordoned the node, or may have; in the beginning, that an earlier run did. ``seen``: in this
    run, the node was in the cluster. If it is not there later, somebody deleted it.

    It has a session of its own, so Ctrl-C at the terminal does not reach it.
    """

    #: Seconds between two progress messages while kubectl waits.
    look: float = 5
    #: Seconds within which kubectl must exit after the end of its output or of its time.
    patience: float = 10

    def __init__(
        self, node: str, drain: DrainByKubectl, *, away: bool, drained: bool = False, seen: bool = False
    ) -> None:
        super().__init__()
        self.node, self.options, self.limit = node, drain.kubectl, drain.timeout
        self.away, self.drained, self.seen, self.trouble, self.note = away, drained, seen, "", ""
        self._again = False  # somebody undid the cordon, and kubectl drain made another one, which is not marked

    def execute(self, state: Any, host: Host, connector_arguments: Any) -> bool:
        """Called by pyinfra. Stores trouble for the operation.

        It needs the node's lock: the cordon may be that of another run, which changes the node.
        """
        show(host, "kubectl drain" if self.away else "kubectl uncordon")
        try:
            self._drain(host) if self.away else self._let_back(host)
        except (GpureadyError, Pending) as e:
            self.trouble = str(e)
        return True

    def _drain(self, host: Host) -> None:
        hold_again(host)
        cordoned = self._get("{.spec.unschedulable}") == "true"
        self.drained = self.seen = True
        try:
            if not cordoned:
                self._patch("drained", unschedulable=True)  # it may do so although its answer is lost
            self._evict(host)
            if self._get("{.spec.unschedulable}") != "true":
                raise NotDrained(f"{self.node} was uncordoned while it was drained")
            hold_again(host)
        except (GpureadyError, Pending) as e:
            try:
                self._let_back(host)
            except (GpureadyError, Pending) as stays:
                first = "" if str(e) == str(stays) else f"{e}; "
                raise NotDrained(f"{first}the node is still drained: {stays}") from None
            raise

    def _evict(self, host: Host) -> None:
        """Run kubectl drain. Show the pods that it waits for. Raises :class:`Pending` with the pods that stayed."""
        leaving, begun, shown = Leaving(), time.monotonic(), ""
        with _started(["kubectl", "drain", self.node, *_flags(self.options, self.limit)]) as process:
            try:
                for line in self._lines(process, begun + self.limit + ANSWER):
                    if line.strip() == f"node/{self.node} cordoned":  # gpuready's own cordon is "already cordoned"
                        self._again = True
                        raise NotDrained(f"{self.node} was uncordoned while it was drained")
                    if line:
                        leaving.read(line)
                    elif context(host).stop.asked:
                        raise Pending("the run was interrupted")
                    elif (now := str(leaving)) and now != shown:
                        shown = now
                        show(host, f"kubectl drain waits for {now}")
                code = process.wait(timeout=self.patience)
            except subprocess.TimeoutExpired:
                if not str(leaving):
                    raise NotDrained("kubectl drain gave no answer") from None
                code = 1
            finally:
                process.kill()  # no effect on a kubectl that ended
        if code == 0:
            return
        if time.monotonic() - begun >= self.limit:  # what kubectl says then depends on its version
            stay = str(leaving) or "pods"
            way = "; for more time, set timeout: 7d beside maintenance.drain.kubectl"
            raise NotDrained(f"after {_readable(self.limit)} there are still pods on {self.node}: {stay}{way}")
        raise NotDrained(f"kubectl drain failed: {'; '.join(leaving.messages) or f'exit {code}'}{_advice(leaving)}")

    def _lines(self, process: subprocess.Popen[bytes], end: float) -> Iterator[str]:
        """Yield kubectl's lines, and an empty one about every ``look`` seconds, until kubectl or the time ends."""
        assert process.stdout is not None
        descriptor, rest, next_look = process.stdout.fileno(), b"", time.monotonic() + self.look
        while time.monotonic() < end:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, next_look - time.monotonic()))
            data = os.read(descriptor, 1 << 16) if ready else b""
            *lines, rest = (rest + data).split(b"\n")
            yield from (line[:4096].decode("utf-8", "replace") for line in lines if line.strip())
            rest = rest[: 1 << 16]
            if time.monotonic() >= next_look:
                yield ""
                next_look = time.monotonic() + self.look
            if not data and (ready or process.poll() is not None):  # a helper of kubectl may keep its output open
                break
        if rest.strip():
            yield rest[:4096].decode("utf-8", "replace")

    def _let_back(self, host: Host) -> None:
        """Uncordon the node if the cordon is gpuready's: somebody may have let it back and cordoned it since."""
        hold_again(host)
        try:
            found = self._get(_OURS)
        except Pending as e:
            if not self.seen or f'nodes "{self.node}" not found' not in str(e):
                raise
            found = ""
        _, mark, cordoned, fields = (found or "///").split("/", 3)
        # A node without managedFields, such as one from before Kubernetes 1.18, shows nobody's fields.
        again = self._again and cordoned == "true"
        ours = again or '"f:unschedulable"' in fields or (mark == "drained" and not fields)
        if ours or mark == "drained":
            self._patch(None, **({"unschedulable": None} if ours else {}))
        self.drained = False
        if not found:
            self.note = f"{self.node} is not in the cluster any more; kubelet registers it again when it starts"
        elif cordoned and not ours:
            self.note = (
                f"{self.node} stays cordoned, because nothing says that gpuready cordoned it; to bring the node back: "
                f"kubectl uncordon {self.node}"
            )

    def _patch(self, mark: str | None, **spec: bool | None) -> None:
        """Change annotation and node in one, so that no end of this process comes between them."""
        patch = json.dumps({"metadata": {"annotations": {_MARK: mark}}, "spec": spec})
        self._call("patch", "node", self.node, f"--field-manager={_MARK}", "--type=merge", f"--patch={patch}")

    def _get(self, path: str) -> str:
        return self._call("get", "node", self.node, "-o", f"jsonpath={path}").strip()

    def _call(self, *words: str) -> str:
        said = f"kubectl {words[0]}"
        try:
            done = subprocess.run(
                ["kubectl", *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=ANSWER,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise NotDrained(_MISSING) from None
        except (OSError, UnicodeError) as e:
            raise NotDrained(f"{said} failed: {e}") from None
        except subprocess.TimeoutExpired:
            raise NotDrained(f"{said} gave no answer within {ANSWER} s") from None
        if done.returncode:
            told = [line.strip() for line in done.stderr.splitlines() if line.strip() and not _LOGGED.match(line)]
            raise NotDrained(f"{said} failed: {'; '.join(told[-3:]) or f'exit {done.returncode}'}")
        return done.stdout


_MISSING = "kubectl is not installed on this machine"
#: A line of kubectl's log. What it logs of a failure, it says again in plain words.
_LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.")


def _started(words: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise NotDrained(_MISSING) from None
    except (OSError, UnicodeError) as e:
        raise NotDrained(f"kubectl {words[1]} failed: {e}") from None


def _flags(options: KubectlOptions, limit: int) -> list[str]:
    """Return the flags of kubectl drain for these options and this time limit in seconds."""
    found = ["--ignore-daemonsets", f"--timeout={limit}s"]
    found += ["--delete-emptydir-data"] if options.delete_emptydir else []
    found += ["--force"] if options.force else []
    found += [f"--pod-selector={options.selector}"] if options.selector is not None else []
    return found + ([f"--grace-period={options.grace}"] if options.grace is not None else [])


def _advice(leaving: Leaving) -> str:
    """Return the setting that lets this drain continue; empty if none does."""
    said = " ".join(leaving.messages)
    for flag, key in (("use --delete-emptydir-data ", "delete_emptydir"), ("use --force ", "force")):
        if flag in said:
            return f"; maintenance: {{drain: {{kubectl: {{{key}: true}}}}}} permits that"
    return ""


def _readable(seconds: int) -> str:
    """Write 7200 as ``2 h``: the largest unit that fits."""
    unit, name = next((u, n) for u, n in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")) if seconds % u == 0)
    return f"{seconds // unit} {name}"


def begin(host: Host, maintenance: Maintenance) -> Commands:
    """Drain the node, unless this run already has. Return what prevents it; empty if nothing does."""
    if context(host).drained:
        return ""
    trouble = yield from _run(host, maintenance, "before")
    context(host).drained = not trouble
    return f"until drained: {trouble}" if trouble else ""


def may_be_drained(host: Host, maintenance: Maintenance) -> bool:
    """Tell whether this run drained the node, or an earlier one that did not finish may have.

    gpuready's mark on the node, or its annotation in Kubernetes, tells whether it did.
    """
    node = context(host)
    if node.drained or not node.again or maintenance.drain == "none":
        return node.drained
    by_kubectl = maintenance.drain == "kubectl" or isinstance(maintenance.drain, DrainByKubectl)
    return by_kubectl or DRAINED in node_state(host).files


def end(host: Host, maintenance: Maintenance) -> Commands:
    """Resume the node, if it :func:`may_be_drained`. Return what prevents it; empty if nothing does."""
    if not may_be_drained(host, maintenance):
        return ""
    trouble = yield from _run(host, maintenance, "after")
    context(host).drained = context(host).again = False
    return f"the node is still drained: {trouble}" if trouble else ""


class MarkKubernetes(Script, template="lib/drain-kubectl"):
    """Write on the node that gpuready drains it in Kubernetes (phase before), or remove that (after)."""

    phase: str
    node: str


class DrainByCommand(Script, template="lib/drain"):
    """Run the user's command for a phase (before or after), for at most ``limit`` seconds."""

    phase: str
    command: str
    limit: int = LIMIT


class DrainSlurm(Script, template="lib/drain-slurm"):
    """Drain the node in Slurm (phase before) or resume it (after); an empty ``node`` is this host by its own name."""

    phase: str
    node: str
    limit: int = LIMIT


def _run(host: Host, maintenance: Maintenance, phase: str) -> Commands:
    drain = maintenance.drain
    if drain == "kubectl":
        drain = DrainByKubectl.model_construct(kubectl=KubectlOptions.model_construct())
    if isinstance(drain, DrainByKubectl):
        return (yield from _by_kubectl(host, maintenance.node or host.name, drain, away=phase == "before"))
    if isinstance(drain, DrainCommands):
        script: Script = DrainByCommand(phase, getattr(drain, phase))
    else:
        script = DrainSlurm(phase, maintenance.node or "")
    return (yield from _step(host, phase, script, LIMIT + 120))


def _by_kubectl(host: Host, name: str, drain: DrainByKubectl, *, away: bool) -> Commands:
    """Mark the node before the cordon, and until it is uncordoned."""
    node = context(host)
    drained = not away or node.cordoned or DRAINED in node_state(host).files
    kubectl = Kubectl(name, drain, away=away, drained=drained, seen=node.drained)
    if away and (trouble := (yield from _step(host, "mark", MarkKubernetes("before", name)))):
        return trouble
    yield kubectl
    node.cordoned = kubectl.drained
    if kubectl.note:
        _note(host, kubectl.note)
    if not kubectl.drained and (left := (yield from _step(host, "unmark", MarkKubernetes("after", name)))):
        _note(host, f"the node is no longer drained, but {DRAINED} is still there: {left}")
    return kubectl.trouble


def _step(host: Host, name: str, script: Script, timeout: int = 60) -> Commands:
    command = StepCommand(Step(f"drain-{name}", script, timeout=timeout, summary=f"drain: {name}"))
    yield command
    out = command.reply.out if command.reply is not None else ""
    for line in filter(None, map(brief, out.splitlines())):
        _note(host, line)
    return str(command.error) if command.error is not None else ""


def _note(host: Host, text: str) -> None:
    """Tell the user, also one of plain pyinfra."""
    context(host).notes.append(text)
    host.log_styled(printable(mask_text(text)), fg="yellow")
