"""What a check is: it judges a NodeState against a spec, says why, and changes nothing.

Unknown is not pass: what could not be read fails ``verify`` as a failure does. (The contract follows gpud's: a check
that does not concern the node says so instead of failing.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date
from enum import IntEnum
from fnmatch import fnmatchcase

from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown


class Level(IntEnum):
    """How deep a check looks: files, what the running engines answer, a new container, between hosts."""

    config = 0
    effective = 1
    smoke = 2
    fabric = 3


@dataclass(frozen=True)
class Verdict:
    """``status`` is pass, warn, fail, skip or unknown; ``summary`` is one line, the rest may be empty."""

    status: str
    summary: str
    evidence: str = ""
    remedy: str = ""


Judge = Callable[[NodeSpec, NodeState], Verdict]


@dataclass(frozen=True)
class Check:
    """One thing that can be wrong. ``gpu``: it says nothing without a GPU. ``active``: it needs the second exec.

    ``after``: checks whose failure is the cause of this one's, which is then not judged again.
    """

    id: str
    level: Level
    cause: str
    confirm: str
    fix: str
    judge: Judge
    gpu: bool = False
    active: bool = False
    after: tuple[str, ...] = ()

    @property
    def component(self) -> str:
        """The component whose work it judges, told by its id; checks of the node itself name none of them."""
        area, _, what = self.id.partition(".")
        if area == "driver":  # which a component holds, but does not make
            return "driver" if what in ("config", "held") else "node"
        return "ldso" if area == "libcuda" else area


@dataclass(frozen=True)
class Judged:
    """A check's verdict on one host."""

    check: Check
    verdict: Verdict


def passed(summary: str, evidence: str = "") -> Verdict:
    """All is as it should be."""
    return Verdict("pass", summary, evidence)


def warn(summary: str, remedy: str = "", evidence: str = "") -> Verdict:
    """Worth knowing, and no reason to fail."""
    return Verdict("warn", summary, evidence, remedy)


def fail(summary: str, remedy: str = "", evidence: str = "") -> Verdict:
    """Wrong; without a remedy of its own the check's fix stands."""
    return Verdict("fail", summary, evidence, remedy)


def skip(reason: str) -> Verdict:
    """Does not concern this node, and why."""
    return Verdict("skip", reason)


def unknown(reason: str, remedy: str = "") -> Verdict:
    """Could not be told, and why."""
    return Verdict("unknown", reason, "", remedy)


def has_gpu(state: NodeState) -> bool:
    """Is there an NVIDIA GPU on the PCI bus (display or 3D controller), or one that the driver lists?"""
    return bool(state.driver.gpus or state.driver.pci_gpus)


UNDECIDED = "no NVIDIA GPU is seen, and the spec does not say hardware.gpus"
DECIDE = "write hardware: {gpus: none} for a host without GPUs, such as a build host; otherwise their number"


def undecided(spec: NodeSpec, state: NodeState) -> str:
    """Why nothing is to be done on this node, or nothing: it may be one that has nothing to do with GPUs."""
    if spec.hardware.gpus != "auto" or has_gpu(state):
        return ""
    listed = isinstance(state.driver.smi, str) and "<gpu id=" in state.driver.smi
    numbered = any(re.fullmatch(r"/dev/nvidia[0-9]+", path) for path in state.driver.nodes)
    return "" if listed or numbered else UNDECIDED


def run_checks(
    catalogue: tuple[Check, ...],
    spec: NodeSpec,
    state: NodeState,
    host: str,
    *,
    active: bool,
    today: date,
    left_out: Collection[str] = (),
) -> tuple[Judged, ...]:
    """Judge in order; a failure is told once, at its root. ``active``: judge those too that need the second exec.

    ``left_out``: components that were not chosen; what is theirs is not judged.
    """
    done: dict[str, Judged] = {}
    for check in catalogue:
        if check.active and not active:
            continue
        if check.component in left_out:
            done[check.id] = Judged(check, skip(f"{check.component} was not chosen"))
        else:
            done[check.id] = Judged(check, waived(check, spec, host, today, _one(check, spec, state, done)))
    return tuple(done.values())


def _one(check: Check, spec: NodeSpec, state: NodeState, done: dict[str, Judged]) -> Verdict:
    if check.level > Level[spec.verify.level] and not (check.level == Level.smoke and spec.verify.image):
        return skip(f"deeper than verify.level: {spec.verify.level}")
    if check.gpu and spec.hardware.gpus == "none":
        return skip("hardware.gpus: none")
    root = [id for id in check.after if id in done and done[id].verdict.status in ("fail", "unknown")]
    if root:
        return skip(f"see {root[0]}")
    verdict = check.judge(spec, state)
    if verdict.status == "fail" and not verdict.remedy:
        return replace(verdict, remedy=check.fix)
    return verdict


def waived(check: Check, spec: NodeSpec, host: str, today: date, verdict: Verdict) -> Verdict:
    """The verdict, or a warning in its place while the spec waives it."""
    mine = [w for w in spec.verify.waive if w.check == check.id and fnmatchcase(host, w.host)]
    if not mine or verdict.status not in ("fail", "unknown"):
        return verdict
    last = max(mine, key=lambda w: w.until)
    if last.until < today:
        return replace(verdict, summary=f"{verdict.summary} (its waiver ended on {last.until})")
    summary = f"waived until {last.until}: {last.reason}; {verdict.summary}"
    return warn(summary, verdict.remedy, verdict.evidence)


def unread(value: Unknown) -> Verdict:
    """The verdict on a part of the state that could not be read."""
    return unknown(value.unknown)


def concerning(checks: Iterable[Check], spec: NodeSpec, state: NodeState) -> tuple[Check, ...]:
    """The checks that a node is judged by: all, or first the one question whether it is a GPU node."""
    return tuple(check for check in checks if check.id == "gpu.count" or not undecided(spec, state))
