"""Checks. A check judges a NodeState against a spec, gives its reason, and changes nothing.

Unknown is not pass: ``verify`` fails on an unknown check as it does on a failed one. A check that does not concern the
node is skipped with a reason; this follows gpud.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from gpuready.base.words import count
from gpuready.contract.component import NotComparable
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


class Level(IntEnum):
    """How deep a check looks.

    ``config``: files. ``effective``: answers of running engines. ``smoke``: a new container. ``stress``: GPUs under
    load. ``fabric``: between hosts.
    """

    config = 0
    effective = 1
    smoke = 2
    stress = 3
    fabric = 4


#: Statuses of a verdict.
STATUSES = ("pass", "warn", "fail", "skip", "unknown")


class Verdict(NamedTuple):
    """The result of a check. ``status`` is one of :data:`STATUSES`. ``summary`` is one line.

    ``because``: the check whose failure, if it fails, explains this one's; reports show this one below it.
    """

    status: str
    summary: str
    evidence: str = ""
    remedy: str = ""
    because: str = ""


class EndCheck(Exception):
    """Raised by a helper of several checks: the check that called it ends with this verdict."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.summary)
        self.verdict = verdict


Judge = Callable[[NodeSpec, NodeState], Verdict]
"""Returns the verdict. It may also raise EndCheck, or NotComparable (:func:`gpuready.contract.need.value`): unknown."""


@dataclass(frozen=True, eq=False)
class Check:
    """One thing that can be wrong. ``title``: what is true if it passes, in a few words. Only itself is equal to it.

    ``component``: whose work it judges; empty if no component changes what it judges.
    ``gpu``: it says nothing without a GPU. ``active``: it needs the second exec.
    ``after``: checks whose failure explains this one's; if one of them fails, this check is skipped.
    ``advisory``: if it is unknown, that is worth a note, and no reason for verify to fail.
    """

    id: str
    title: str
    level: Level
    cause: str
    confirm: str
    fix: str
    judge: Judge
    component: str = ""
    gpu: bool = False
    active: bool = False
    after: tuple[str, ...] = ()
    advisory: bool = False

    def verdict(self, spec: NodeSpec, state: NodeState) -> Verdict:
        """Judge the node. The check is unknown if it needs a value that could not be read."""
        try:
            return self.judge(spec, state)
        except EndCheck as e:
            return e.verdict
        except NotComparable as e:
            return unknown(str(e))


class Judged(NamedTuple):
    """A check's verdict on one host."""

    check: Check
    verdict: Verdict


def passed(summary: str, evidence: str = "") -> Verdict:
    return Verdict("pass", summary, evidence)


def warn(summary: str, remedy: str = "", evidence: str = "") -> Verdict:
    """Worth knowing, but no reason to fail."""
    return Verdict("warn", summary, evidence, remedy)


def fail(summary: str, remedy: str = "", evidence: str = "", *, because: str = "") -> Verdict:
    """Something is wrong. Without ``remedy``, the report shows the check's ``fix``."""
    return Verdict("fail", summary, evidence, remedy, because)


def skip(reason: str) -> Verdict:
    """The check does not concern this node, with the reason."""
    return Verdict("skip", reason)


_WITHOUT_GPUS = skip("hardware.gpus: none")


def unknown(reason: str, remedy: str = "") -> Verdict:
    """The check could not decide, with the reason."""
    return Verdict("unknown", reason, "", remedy)


def has_gpu(state: NodeState) -> bool:
    """Tell whether the PCI bus has an NVIDIA GPU (display or 3D controller), or the driver lists one."""
    return bool(state.driver.gpus or state.driver.pci_gpus)


def by_count(seen: int, state: NodeState) -> str:
    """Return ``gpu.count`` if a program sees the GPUs that the driver lists: what it lacks, the driver lacks, too."""
    smi = state.driver.smi
    return "gpu.count" if isinstance(smi, str) and seen == smi.count("<gpu id=") else ""


def gpu_count(number: int) -> str:
    return count(number, "GPU")


UNDECIDED = "no NVIDIA GPU is seen, and hardware.gpus is auto"
DECIDE = (
    "write hardware: {gpus: none} for a host without GPUs, such as a build host; otherwise their number. "
    "Without an inventory file: -e hardware.gpus=none"
)


def undecided(spec: NodeSpec, state: NodeState) -> str:
    """Return why gpuready leaves this node alone: it may not be a GPU node. Empty if it is one, or the spec says."""
    if spec.hardware.expected_gpus or spec.hardware.without_gpus or has_gpu(state):
        return ""
    listed = isinstance(state.driver.smi, str) and "<gpu id=" in state.driver.smi
    return "" if listed or state.driver.gpu_nodes else UNDECIDED


def run_checks(
    catalogue: tuple[Check, ...],
    spec: NodeSpec,
    state: NodeState,
    host: str,
    *,
    active: bool,
    today: date,
    left_out: Collection[str] = (),
    known: Mapping[str, Verdict] = MappingProxyType({}),
    pause: Callable[[], None] = lambda: None,
) -> tuple[Judged, ...]:
    """Judge the checks in order; report a failure once, at its root cause.

    ``active``: also judge checks that need the second exec. ``left_out``: components that the user did not select;
    their checks are skipped. ``known``: verdicts by id that the caller already has. ``pause``: called before each.
    """
    done: dict[str, Judged] = {}
    deepest, without_gpus = Level[spec.verify.level], spec.hardware.without_gpus
    for check in catalogue:
        if check.active and not active:
            continue
        pause()
        if check.component in left_out:
            verdict = skip(f"{check.component} was not chosen")
        elif check.level > deepest and not (check.level == Level.smoke and spec.verify.image):
            verdict = skip(f"deeper than verify.level: {spec.verify.level}")
        elif check.gpu and without_gpus:
            verdict = _WITHOUT_GPUS
        else:
            verdict = waived(check, spec, host, today, _one(check, spec, state, done, known))
        done[check.id] = Judged(check, verdict)
    return tuple(done.values())


def _one(
    check: Check, spec: NodeSpec, state: NodeState, done: dict[str, Judged], known: Mapping[str, Verdict]
) -> Verdict:
    for id in check.after:
        if id in done and done[id].verdict.status in ("fail", "unknown"):
            return skip(f"see {id}")
    verdict = known[check.id] if check.id in known else check.verdict(spec, state)
    if verdict.because:
        if verdict.because in done and done[verdict.because].verdict.status == "fail":
            return verdict  # the fix is that of the other check
        verdict = verdict._replace(because="")
    if verdict.status == "fail" and not verdict.remedy:
        return verdict._replace(remedy=check.fix)
    return verdict


def waived(check: Check, spec: NodeSpec, host: str, today: date, verdict: Verdict) -> Verdict:
    """Return the verdict, or a warning instead of it while the spec waives the check."""
    if verdict.status not in ("fail", "unknown"):
        return verdict
    mine = [w for w in spec.verify.waive if w.check == check.id and fnmatchcase(host, w.host)]
    if not mine:
        return verdict
    last = max(mine, key=lambda w: w.until)
    if last.until < today:
        return verdict._replace(summary=f"{verdict.summary} (its waiver expired on {last.until})")
    summary = f"waived until {last.until}: {last.reason}; {verdict.summary}"
    return warn(summary, verdict.remedy, verdict.evidence)


def concerning(checks: Iterable[Check], spec: NodeSpec, state: NodeState) -> tuple[Check, ...]:
    """Return the checks for a node: all, or only ``gpu.count`` while it is open whether this is a GPU node."""
    return tuple(check for check in checks if check.id == "gpu.count") if undecided(spec, state) else tuple(checks)
