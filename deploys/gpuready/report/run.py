"""What one run found and did, host by host: the verbs fill it, the renderers read it. Pure data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuready.base.errors import GpureadyError, InventoryError

if TYPE_CHECKING:  # a run that fails at once, and an answer of compat, need none of these
    from gpuready.contract.check import Judged, Level
    from gpuready.contract.compare import Comparison
    from gpuready.gpu.stress_figures import Gpu
    from gpuready.inventory.hosts import Skipped
    from gpuready.inventory.listing import Listed
    from gpuready.model.spec import NodeSpec
    from gpuready.model.state import NodeState
    from gpuready.report.nccl import NcclAnswer
    from gpuready.tools.attach.status import Attached
    from gpuready.tools.compat.answer import Answer
    from gpuready.tools.fabric.run import FabricRun
    from gpuready.tools.run_args.arguments import Argument
    from gpuready.tools.status.status import Status

#: The id of the result document.
SCHEMA = "gpuready/result/1"
#: Outcomes of a host, as they stand in the result document.
OUTCOMES = ("ok", "would_change", "changed", "pending", "failed", "unreachable", "not_attempted", "skipped")
#: Verbs, as they stand in the result document.
VERBS = (
    "plan", "apply", "verify", "probe", "remove", "fabric", "explain", "schema", "trust", "compat", "nccl",
    "docker-args", "inventory", "init", "completion", "rdma", "rdma attach", "rdma detach", "rdma list", "report",
    "status",
)  # fmt: skip

#: Statuses that came from looking; skip and unknown did not.
LOOKED = ("pass", "warn", "fail")
INTERRUPTED = {
    "kind": "interrupted",
    "message": "interrupted; a step that had begun on a node ends there by itself",
    "remedy": "run the same command again: it does only what is left",
}


@dataclass
class ComponentRun:
    """One component on one host. ``found`` is the comparison before anything was done; if it failed, ``error`` is set.

    ``forecast`` is what a part of it would wait for, as far as the state tells; ``pending`` what it did wait for, and
    ``done`` the keys that were closed nevertheless. ``touched``: a step that could change something started.
    ``reboot``: it needs a reboot and has permission.
    """

    found: Comparison
    changed: bool = False
    pending: str = ""
    error: GpureadyError | None = None
    attempted: bool = True
    forecast: str = ""
    done: frozenset[str] = frozenset()
    touched: bool = False
    reboot: bool = False


@dataclass
class HostRun:
    """One host of a run; ``seconds`` is wall time on this host, ``execs`` the scripts sent to it.

    ``disturbed``: what is permitted there may hit running work, so hosts like it go in batches. ``reboot``: boot_id
    before and after, and the seconds in between. ``reason``: why it is skipped.
    """

    name: str
    outcome: str = "not_attempted"
    error: GpureadyError | None = None
    reason: str = field(default="", kw_only=True)
    execs: int = 0
    seconds: float = 0.0
    state: NodeState | None = None
    components: list[ComponentRun] = field(default_factory=list)
    checks: list[Judged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    nccl: NcclAnswer | None = None
    docker_args: tuple[Argument, ...] | None = None
    listed: Listed | None = None
    disturbed: bool = False
    attached: tuple[Attached, ...] | None = None
    stress: tuple[Gpu, ...] | None = None
    reboot: dict[str, str | float] | None = None
    status: Status | None = None

    @property
    def probed(self) -> bool:
        """Whether the node was read. A restored run has no states, but what was made of them."""
        from gpuready.contract.check import UNDECIDED

        made = (self.nccl, self.docker_args, self.status)
        found = self.components or self.checks or self.answers or any(each is not None for each in made)
        return self.state is not None or bool(found) or self.reason == UNDECIDED

    @property
    def gpu_checks(self) -> int:
        """How many GPU checks really ran on this host: without this number, "OK" says little."""
        return sum(each.check.gpu and each.verdict.status in LOOKED for each in self.checks)

    @property
    def level(self) -> Level | None:
        """The deepest level at which something was judged; None if nothing was."""
        return max((each.check.level for each in self.checks if each.verdict.status in LOOKED), default=None)

    def saw_reboot(self, before: str, after: str, seconds: float) -> None:
        """It was rebooted; the boot_ids prove it."""
        self.reboot = {"before": before, "after": after, "seconds": round(seconds, 1)}
        self.notes.append(f"rebooted in {seconds:.0f} s: boot_id {before} before, {after} now")

    def leave_out(self, why: str) -> None:
        """Its turn never came."""
        self.outcome = "not_attempted"
        self.notes.append(why)
        for item in self.components:
            item.attempted = False

    def only_read(self) -> NodeState | None:
        """Drop what was compared and judged. Return the state, or None if the node could not be read."""
        self.components, self.checks = [], []
        if self.state is None or self.error is not None:
            return None
        self.outcome = "ok"
        return self.state

    def saw(self, state: NodeState, spec: NodeSpec) -> None:
        """The probe's first answer: what the node is, and whose its parts are."""
        from gpuready.contract import owners

        self.state = state
        self.notes += owners.notes(spec, state)


@dataclass
class Run:
    """A whole run. ``error`` is set when it could not be done at all (usage, spec, inventory, our bug, interrupt).

    ``batches``: the hosts that differ, in the order in which they are changed. ``told``: a person has seen the diffs.
    ``declined``: and answered no.
    ``unchosen``: hosts of the inventory that are none of gpuready's, and were left alone. ``ended``: when its result
    was written, UTC (2026-11-22T21:00:00Z).
    ``fabric``: what the tests between hosts found. ``back``: away from the spec (``remove``, and its dry run), and
    ``selected`` the components that were chosen (None: all).
    """

    verb: str
    hosts: list[HostRun] = field(default_factory=list)
    error: GpureadyError | None = None
    interrupted: bool = False
    seconds: float = 0.0
    probed: str = ""
    batches: list[tuple[str, ...]] = field(default_factory=list)
    told: bool = False
    declined: bool = False
    fabric: FabricRun | None = None
    back: bool = False
    selected: frozenset[str] | None = None
    answer: Answer | None = None
    """compat without an inventory: the one answer."""
    unchosen: list[HostRun] = field(default_factory=list)
    choose: str = ""
    """What to write so that gpuready manages them."""
    ended: str = ""

    @property
    def level(self) -> Level | None:
        """The level that every judged host reached: the lowest of theirs."""
        return min((host.level for host in self.hosts if host.level is not None), default=None)

    @property
    def shown_source(self) -> str:
        """What was read, for a headline: without the comma that makes one name a list of hosts (`-i gpu01,`)."""
        return re.sub(r",(?=,|$)", "", self.probed)

    @property
    def problem(self) -> dict[str, str] | None:
        """The error of the whole run as the result document shows it, an interrupt among them."""
        return self.error.to_json() if self.error is not None else INTERRUPTED if self.interrupted else None

    @property
    def everyone(self) -> list[HostRun]:
        """All hosts that match, skipped ones last."""
        return [*self.hosts, *self.unchosen]

    @property
    def skipped(self) -> list[HostRun]:
        """The hosts that were left alone, chosen or not."""
        return [host for host in self.everyone if host.outcome == "skipped"]

    def leave_alone(self, hosts: Iterable[Skipped]) -> None:
        """Take the hosts in that were not chosen."""
        found = tuple(hosts)
        self.choose = next((host.remedy for host in found if host.remedy), "")
        self.unchosen = [HostRun(h.name, "skipped", notes=list(h.notes), reason=h.reason) for h in found]
        self.conclude()

    def conclude(self) -> None:
        """An apply that skipped every host has converged nothing: an error, and no success that nobody notices."""
        idle = bool(self.hosts) and all(host.outcome == "skipped" for host in self.hosts)
        if self.verb == "apply" and idle and not self.interrupted:
            from gpuready.contract.check import DECIDE, UNDECIDED

            self.error = self.error or InventoryError(f"apply did nothing: {UNDECIDED}", remedy=DECIDE)

    @property
    def attaching(self) -> bool:
        """Is this about a device for a container, and not about what a spec says?"""
        return self.verb.startswith("rdma") or any(host.attached is not None for host in self.hosts)

    @property
    def changes(self) -> bool:
        """Whether this verb changes nodes."""
        return self.verb in ("apply", "remove", "rdma attach", "rdma detach")
