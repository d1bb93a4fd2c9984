"""The result of a run, host by host: the verbs fill it, and the renderers read it and nothing else. Pure data.

:class:`Summary` and :class:`Host` are the result document (:mod:`gpuready.result.document`). What only one verb
says is a value in ``parts``, whose key and form are those of its :class:`VerbPart`.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from gpuready.base.errors import EXIT_CODES, GpureadyError, InventoryError
from gpuready.base.part import OPTIONAL, SECONDS, Amount, Count, OneOf, Part
from gpuready.base.words import count
from gpuready.result.cases import Case, Changed, Note, Suite
from gpuready.result.facts import NodeFacts
from gpuready.result.formats import FORMATS
from gpuready.result.text import Painter
from gpuready.result.verbs import COMMANDS

if TYPE_CHECKING:  # a run that fails at once, and an answer of compat, need none of these
    from gpuready.contract.attempt import Attempt
    from gpuready.contract.check import Judged
    from gpuready.gpu.imex import Member
    from gpuready.inventory.hosts import Skipped
    from gpuready.model.kernel_log import Event
    from gpuready.model.spec import NodeSpec
    from gpuready.model.state import NodeState

#: The id of the result document.
SCHEMA = "gpuready/result/1"
#: Times in it, UTC.
TIME = "%Y-%m-%dT%H:%M:%SZ"
#: Outcomes of a host, as they stand in the result document.
OUTCOMES = ("ok", "would_change", "changed", "pending", "failed", "unreachable", "not_attempted", "skipped")
#: Levels of checks, the shallowest first, as :class:`gpuready.contract.check.Level` has them.
LEVELS = ("config", "effective", "smoke", "stress", "fabric")
STATUSES = ("pass", "warn", "fail", "skip", "unknown")
DISRUPTIONS = ("none", "reload", "recreate", "restart", "reboot")
#: Statuses that came from looking; skip and unknown did not.
LOOKED = ("pass", "warn", "fail")

LevelName = Annotated[str, OneOf(LEVELS)]
Status = Annotated[str, OneOf(STATUSES)]


@dataclass(frozen=True)
class Error(Part):
    """What went wrong, and what to do."""

    kind: str
    """Its name, such as ``unreachable``; ``bug``: a bug in gpuready."""
    message: str
    """What is wrong, and where."""
    remedy: str = ""
    """What to do; empty if nothing is known to help."""
    exit_code: Annotated[int, OneOf(EXIT_CODES)] = 1
    """The exit code of a run that fails by it."""

    @classmethod
    def of(cls, error: GpureadyError) -> Error:
        return cls(error.kind, str(error), error.remedy, error.exit_code)

    def __str__(self) -> str:
        return self.message


INTERRUPTED = Error(
    "interrupted",
    "interrupted; a step that had begun on a node ends there by itself",
    "run the same command again: it does only what is left",
    130,
)
#: The same, of a run that finished what had begun on nodes.
FINISHED = replace(INTERRUPTED, message="interrupted; gpuready finished what had begun on nodes and began nothing else")
#: The word for a host that status only reads: it may not be a GPU node.
NOT_COMPARED = "not compared"
#: The word for a host in the progress of a verb that judges it after all hosts are read, or not at all.
DONE = "done"
_JUDGED_LATER = ("record", "compat", "fabric")
#: How the outcome of a host with bad checks ends there.
_FINDING = re.compile(r"(^|, but )[0-9]+ checks? (failed|unknown)$")
#: A note of a host that --resume or --failed-only left out, because it ended well.
EARLIER = "done by an earlier run; this one did not connect to it"
#: After the word for what became of such a host, and of its components.
EARLIER_RUN = "in an earlier run"


@dataclass(frozen=True)
class UnknownValue(Part):
    """A value that could not be read."""

    unknown: str
    """Why it could not be read."""


Value = str | int | bool | tuple[str, ...] | UnknownValue | None


@dataclass(frozen=True)
class Difference(Part):
    """A key that differs from the spec."""

    keyed: ClassVar[tuple[str, ...]] = ("actual", "expected")

    key: str
    """The setting, as a path with dots."""
    actual: Value
    """What the node has; null: nothing."""
    expected: Value
    """What the spec asks for; null: nothing."""
    done: bool = False
    """It was closed, although the rest of the component's difference waits."""


def _value(value: Any) -> Value:
    """``value`` is one of :data:`gpuready.contract.component.Value`."""
    found: Value = UnknownValue(value.unknown) if hasattr(value, "unknown") else value
    return found


@dataclass
class ComponentResult(Part):
    """One component on one host: the comparison before anything was done, and what was done."""

    name: str
    """The component."""
    applies: bool
    """It concerns this node."""
    reason: str = ""
    """Why it applies, or why not."""
    disruption: Annotated[str, OneOf(DISRUPTIONS)] = "none"
    """What closing the difference may do to running work."""
    affected: tuple[str, ...] = ()
    """What closing the difference disturbs: containers, processes, jobs."""
    notes: tuple[str, ...] = ()
    """Remarks for the user."""
    attempted: bool = True
    """Its turn came, or nothing was to be changed."""
    changed: bool = False
    """A step changed something."""
    pending: bool = False
    """The difference, or a part of it, was left open and waits."""
    pending_reason: str = ""
    """Why it is pending; in a plan, why it would be. ``only KEYS:`` before it if the other keys do not wait."""
    blocked: bool = False
    """It cannot be compared, or must not be changed; ``error`` says why."""
    error: Error | None = None
    """Why it is blocked, or failed."""
    diff: tuple[Difference, ...] = ()
    """The keys that differed before anything was done."""

    @classmethod
    def of(cls, attempt: Attempt, forecast: str = "") -> ComponentResult:
        """``forecast``: what it would wait for, as far as the state tells."""
        found, error = attempt.comparison, attempt.error
        return cls(
            found.name,
            found.applies,
            found.reason,
            found.disruption.name,
            found.affected,
            found.notes,
            True,
            attempt.changed,
            bool(attempt.pending),
            attempt.pending or forecast,
            bool(found.error),
            Error.of(error) if error is not None else None,
            tuple(Difference(c.key, _value(c.actual), _value(c.expected), c.key in attempt.closed) for c in found.diff),
        )


@dataclass(frozen=True)
class CheckResult(Part):
    """The verdict of a check on one host."""

    id: str
    """The check: ``gpuready explain ID`` describes it."""
    level: LevelName
    """How deep it looks."""
    gpu: bool
    """It says nothing without a GPU."""
    status: Status
    """The verdict; unknown: it could not be decided, which never counts as good."""
    summary: str
    """The reason."""
    evidence: str = ""
    """What the node printed."""
    remedy: str = ""
    """What to do."""
    advisory: bool = False
    """If it is unknown, verify does not fail."""
    component: str = ""
    """The component that it judges; empty: no component changes what it judges."""
    because: str | None = field(default=None, metadata=OPTIONAL)
    """The check on the same host whose failure explains this one's."""

    @classmethod
    def of(cls, judged: Judged) -> CheckResult:
        check, verdict = judged.check, judged.verdict
        return cls(
            check.id, check.level.name, check.gpu, verdict.status, verdict.summary, verdict.evidence, verdict.remedy,
            check.advisory, check.component, verdict.because or None,
        )  # fmt: skip


@functools.lru_cache(maxsize=1 << 15)
def shared(check: CheckResult) -> CheckResult:
    """Return the first of equal verdicts: most hosts of a fleet have the same hundred, and memory for each adds up."""
    return check


@dataclass(frozen=True)
class Reboot(Part):
    """A reboot of the node, as its boot_ids prove it."""

    before: str
    """The boot_id before it."""
    after: str
    """The boot_id after it."""
    seconds: Amount
    """How long the node was away."""


@dataclass(frozen=True)
class AfterBatch(Part):
    """The command of --after-batch, as it ran after one batch."""

    hosts: tuple[str, ...]
    """The hosts of the batch."""
    exit_code: int | None
    """Its exit code; null: it did not end in time."""
    seconds: Amount
    """How long it took."""
    output: str
    """The end of what it printed."""


@dataclass(frozen=True)
class XidEvent(Part):
    """Xids of one number on one GPU."""

    number: Count
    """The number of the Xid."""
    device: str
    """The GPU, as a PCI address."""
    count: Count
    """How many there were since the driver was loaded."""
    seconds: Count | None
    """When the last of them came, in seconds after boot; null: the kernel log has no times."""
    time: str | None
    """The same as a time, UTC, by the node's clock."""


@dataclass(frozen=True)
class Xids(Part):
    """The Xids in the kernel log. A boot and the seconds tell one from another."""

    boot_id: str
    """The boot of the node."""
    events: tuple[XidEvent, ...]
    """By number and GPU."""

    @classmethod
    def of(cls, state: NodeState) -> Xids | None:
        """None: there are none, or the log could not be read."""
        found: dict[tuple[int, str], list[Event]] = {}
        for each in getattr(state.driver.log, "events", ()):
            if not each.switch:
                found.setdefault((each.number, each.device), []).append(each)
        booted = state.clock - state.uptime
        events = []
        for (number, device), alike in found.items():
            seconds = max((each.seconds for each in alike if each.seconds is not None), default=None)
            last = None if seconds is None else utc(booted + seconds)
            events.append(XidEvent(number, device, sum(each.count for each in alike), seconds, last))
        return cls(state.boot_id, tuple(events)) if events else None


def utc(seconds: float) -> str | None:
    """Seconds since 1970 as the document has them; None for what is no time of a running clock."""
    return time.strftime(TIME, time.gmtime(seconds)) if 0 < seconds < 2**36 else None


@dataclass(kw_only=True)
class Host(Part):
    """One host, as the document has it."""

    derived: ClassVar[tuple[str, ...]] = ("level", "gpu_checks")

    outcome: Annotated[str, OneOf(OUTCOMES)] = "not_attempted"
    """What became of it, without its checks; ``would_change``: it differs from its spec."""
    failed: bool = False
    """The run fails by this host, also by its checks; its case of JUnit fails, too."""
    error: Error | None = None
    """Why it failed, or is unreachable."""
    reason: str = ""
    """Why it was skipped, or not compared."""
    probed: bool = False
    """The node was read."""
    examined: bool = False
    """A second script ran on the node: active checks, or what compat asks."""
    execs: Count = 0
    """The scripts that were sent to the node."""
    seconds: Amount = field(default=0.0, metadata=SECONDS)
    """The time that was spent on this host."""
    notes: list[str] = field(default_factory=list)
    """Remarks for the user."""
    reboot: Reboot | None = None
    """Its reboot, if it was rebooted."""
    earlier: str | None = field(default=None, metadata=OPTIONAL)
    """apply --resume: when an earlier run ended this host, UTC; this run did not connect to it."""
    components: list[ComponentResult] = field(default_factory=list, repr=False)
    """What was compared, in the order in which components run."""
    checks: list[CheckResult] = field(default_factory=list, repr=False)
    """What was judged."""
    spec: str | None = field(default=None, metadata=OPTIONAL)
    """The SHA-256 of its spec, as the node's record has it; omitted: the node was not read."""
    xids: Xids | None = field(default=None, metadata=OPTIONAL)
    """The Xids since the driver was loaded; omitted: there are none, or the kernel log could not be read."""
    facts: NodeFacts | None = field(default=None, metadata=OPTIONAL)
    """What the node consists of; omitted: the node was not read."""
    asked: LevelName | None = field(default=None, metadata=OPTIONAL)
    """verify: the level that --level or the spec asks for."""

    @property
    def gpu_checks(self) -> int:
        """How many GPU checks really ran on this host: without this number, "OK" says little."""
        return sum(check.gpu and check.status in LOOKED for check in self.checks)

    @property
    def untested(self) -> bool:
        """Nothing was judged at the level that was asked for: no container was started, or no GPU was loaded."""
        found = (check.status for check in self.checks if check.level == self.asked)
        return self.asked in ("smoke", "stress") and all(status == "skip" for status in found)

    @property
    def level(self) -> LevelName | None:
        """The deepest level at which something was judged; null if nothing was."""
        seen = {check.level for check in self.checks if check.status in LOOKED}
        return max(seen, key=LEVELS.index, default=None)


@dataclass
class HostResult(Host):
    """A host of a run that is under way or was read back. ``parts``: what one verb adds, by its key in the document.

    ``state``, ``member`` and ``disturbed`` are for the run itself, and in no document. ``member``: what is compared of
    a host in a rack, also when the state is no longer there. ``disturbed``: what is permitted there may affect running
    work, so hosts like it go in batches.
    """

    name: str
    parts: dict[str, Any] = field(default_factory=dict)
    state: NodeState | None = None
    member: Member | None = None
    disturbed: bool = False

    def word(self, verb: str) -> str:
        """Its outcome for the progress of a verb: ``ok``, ``1 check failed`` or ``changed, but 1 check failed``.

        See :func:`ended`.
        """
        if verb in _JUDGED_LATER and self.error is None and self.outcome not in ("unreachable", "not_attempted"):
            return DONE
        if self.outcome == "ok" and self.reason and not self.checks:
            return NOT_COMPARED
        failed = [check for check in self.checks if check.status == "fail"]
        bad = failed or [check for check in self.checks if check.status == "unknown" and not check.advisory]
        if not bad or self.outcome not in ("ok", "changed"):
            return self.outcome
        finding = f"{count(len(bad), 'check')} {'failed' if failed else 'unknown'}"
        return finding if self.outcome == "ok" else f"{self.outcome}, but {finding}"

    def saw_reboot(self, before: str, after: str, seconds: float) -> None:
        """It was rebooted; the boot_ids prove it."""
        self.reboot = Reboot(before, after, round(seconds, 1))
        self.notes.append(f"rebooted in {seconds:.0f} s: boot_id {before} before, {after} now")

    def fail(self, error: GpureadyError, outcome: str = "failed") -> None:
        self.outcome, self.error = outcome, Error.of(error)

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
        """Store the first probe, and note who manages which part of the node."""
        from gpuready.contract import owners
        from gpuready.contract.node_record import spec_hash

        self.read(state)
        self.spec = spec_hash(spec)
        self.notes += owners.notes(spec, state)

    def read(self, state: NodeState) -> None:
        """The node as it was read last."""
        self.state, self.probed, self.examined = state, True, bool(state.active)
        self.xids, self.facts = Xids.of(state), NodeFacts.of(state)


def ended(word: str) -> str:
    """Return the outcome in a host's progress, ``not ok`` for one with bad checks; empty: it is a step."""
    if _FINDING.search(word):
        return "not ok"
    return word if word in (*OUTCOMES, NOT_COMPARED, DONE) else ""


@dataclass(frozen=True)
class Shard(Part):
    """--shard: the part of the hosts that this run has."""

    index: Count
    """Its number, from 1."""
    count: Count
    """The number of shards."""
    hosts: dict[str, int]
    """The hosts of all shards, and the shard of each."""
    specs: str
    """The SHA-256 of the specs of all hosts, and of the release of gpuready: all shards of one run have the same."""
    budgets: tuple[str, ...] = ()
    """plan, apply, remove: what this shard may use of each budget."""

    def __str__(self) -> str:
        return f"shard {self.index}/{self.count}"


@dataclass(frozen=True)
class Scope(Part):
    """verify: what was judged of each host."""

    recorded: bool = False
    """Recorded states were judged (--state), not nodes as they are."""
    passive: bool = False
    """No active check ran (--passive)."""
    components: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    """The components that were judged (--only, --skip); omitted: all."""

    @property
    def narrowed(self) -> str:
        """Why this is less than verify without these options does; empty: it is not."""
        if self.recorded:
            return "recorded states were judged (--state), not nodes"
        if self.components is not None:
            return "components were left out (--only or --skip)"
        return "no active check ran (--passive)" if self.passive else ""


@dataclass(kw_only=True)
class Summary(Part):
    """All of the document that is not about a single host; jsonl: the last line."""

    derived: ClassVar[tuple[str, ...]] = ("level", "gpu_checks")

    verb: Annotated[str, OneOf((*COMMANDS, ""))] = ""
    """The command; empty: none was recognised."""
    error: Error | None = None
    """Why the run could not be done at all, or was interrupted."""
    seconds: Amount = field(default=0.0, metadata=SECONDS)
    """How long the run took."""
    batches: list[tuple[str, ...]] = field(default_factory=list)
    """plan, apply: the hosts that differ, in the order in which they are changed."""
    after_batch: list[AfterBatch] | None = field(default=None, metadata=OPTIONAL)
    """--after-batch: the command after each batch."""
    refused_by_user: bool = False
    """The user saw the plan and answered no."""
    ended: str | None = field(default=None, metadata=OPTIONAL)
    """When the result was written, UTC, such as 2026-11-22T21:00:00Z."""
    source: str | None = field(default=None, metadata=OPTIONAL)
    """The inventory, as the command line names it."""
    shard: Shard | None = field(default=None, metadata=OPTIONAL)
    """The shard, if the run has one of several (--shard)."""
    scope: Scope | None = field(default=None, metadata=OPTIONAL)
    """verify: what was judged of each host; omitted: a run that did not begin."""

    @property
    def level(self) -> LevelName | None:
        """The level that every judged host reached: the lowest of theirs; null: nothing was judged."""
        raise NotImplementedError

    @property
    def gpu_checks(self) -> int:
        """Checks that really saw a GPU, on all hosts."""
        raise NotImplementedError


Block = Iterable[str]
#: The form of a value, and its description in the JSON Schema.
Form = tuple[Any, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class VerbPart:
    """What one verb adds to the result, and how its runs are shown: the renderers ask it, and name no verb.

    A verb that adds something has a module ``part.py`` in its folder, with the object ``PART`` of a class of its own.
    Each method answers a renderer; by default, a verb adds nothing.
    """

    verb: str = ""
    """The first word of the command."""
    of_host: Mapping[str, Form] = field(default_factory=dict)
    """What a host has in the document, by its key in ``HostResult.parts``."""
    of_run: Mapping[str, Form] = field(default_factory=dict)
    """What the whole run has, by its key in ``Run.parts``."""
    formats: tuple[str, ...] = FORMATS
    """The formats that can show a run."""
    title: str = "Answer"
    """The heading of the blocks in HTML."""
    judges: bool = True
    """Nodes are compared with a spec, or tested. False: they are only read."""
    of_spec: bool = True
    """Changes follow the spec. False: they follow the command line, and no level is reached."""
    own_verdicts: bool = False
    """The blocks show the verdicts of checks."""
    least: int = 1
    """The hosts that a run needs to find the same again."""
    compares: Mapping[str, str] = field(default_factory=dict)
    """The kinds of :meth:`changes`, each with its heading."""

    def whole(self, run: Run, paint: Painter) -> Iterable[Block] | None:
        """All of the report for people; None: it has the usual form."""
        return None

    def headline(self, run: Run) -> str:
        """Its first line; empty: the usual one."""
        return ""

    def blocks(self, run: Run, paint: Painter) -> Iterable[Block]:
        """The paragraphs that only this verb has, for people and for HTML."""
        return ()

    def tally(self, run: Run) -> str:
        """What the last line counts instead of outcomes, levels and checks."""
        return ""

    def well(self, run: Run) -> bool:
        """Whether the last line says OK if the exit code is 0 and :meth:`tally` counts."""
        return True

    def proof(self, run: Run) -> str:
        """What the last line counts instead of GPU checks."""
        return ""

    def done(self, run: Run) -> str:
        """What the last line counts if all is well, and nothing was judged."""
        return "" if self.judges else f"{count(len(run.hosts), 'host')} probed"

    def failing(self, host: HostResult) -> str:
        """Why the run fails by this host, in one or two words; empty: it does not, or not by this part."""
        return ""

    def fails(self, run: Run) -> bool:
        """Whether the exit code is 3."""
        return any(map(self.failing, run.hosts))

    def joined(self, run: Run) -> None:
        """Judge again what depends on all hosts: the run consists of shards, which judged it for themselves."""

    def suites(self, run: Run) -> Iterable[Suite]:
        """JUnit: suites in addition to those of hosts."""
        return ()

    def cases(self, host: HostResult) -> Iterable[Case]:
        """JUnit: cases in addition to those of components and checks."""
        return ()

    def notes(self, run: Run) -> Iterable[Note]:
        """Annotations in addition to those of errors, differences and checks."""
        return ()

    def picture(self, run: Run) -> str:
        """An SVG document above the blocks in HTML."""
        return ""

    def distinct(self, host: HostResult) -> object:
        """What hosts have in common that share a section of HTML."""
        return None

    def changes(self, before: HostResult, after: HostResult) -> Iterable[Changed]:
        """What differs between two runs on one host."""
        return ()

    def rendered(self, run: Run, form: str) -> str:
        """The run in one of ``formats`` that no other verb has."""
        raise NotImplementedError(form)


NO_PART = VerbPart()
#: Options of ``Run.choice`` that only some verbs have, with their values.
_SELECTS = re.compile(r"(?:^| )--(?:only|skip|shard) (?:'[^']*'|\S)+")


@dataclass
class Run(Summary):
    """A whole run. ``parts``: what one verb adds that is not about a single host, by its key in the document.

    ``unmanaged``: hosts of the inventory that are not gpuready's, and were left alone. The other fields are in no
    document. ``part``: that of the verb. ``how_to_manage``: what to write so that gpuready manages the unmanaged hosts.
    ``diff_shown``: a person has seen the differences. ``removing``: away from the spec (``remove``, and its dry run).
    ``selected``: the components that were chosen (None: all). ``recorded``: it is of recorded states, not of nodes as
    they are. ``choice``: the options that chose the hosts, as shell words, without ``limit``, the values of
    --limit; empty if no command line did. ``permission``: --allow-disruption and --batch as they were given, as
    shell words. ``verbose``: text also counts the execs. ``for_the_rest``: what to run for hosts that are not done;
    empty: none are left, or there is no --state-dir. ``why_batches``: why the hosts go in these batches. ``repeated``:
    the command line without --limit, before and after the place for a new one.
    """

    verb: str
    hosts: list[HostResult] = field(default_factory=list, repr=False)
    parts: dict[str, Any] = field(default_factory=dict, repr=False)
    unmanaged: list[HostResult] = field(default_factory=list, repr=False)
    part: VerbPart = field(default=NO_PART, repr=False)
    how_to_manage: str = ""
    diff_shown: bool = False
    removing: bool = False
    selected: frozenset[str] | None = None
    recorded: bool = False
    choice: str = ""
    permission: str = ""
    limit: tuple[str, ...] = ()
    verbose: bool = False
    for_the_rest: str = ""
    repeated: tuple[str, str] = ("", "")
    why_batches: list[str] = field(default_factory=list, repr=False)

    @property
    def level(self) -> LevelName | None:
        """See :class:`Summary`."""
        seen = {host.level for host in self.hosts if host.level is not None}
        return min(seen, key=LEVELS.index, default=None)

    @property
    def gpu_checks(self) -> int:
        """See :class:`Summary`."""
        return sum(host.gpu_checks for host in self.hosts)

    @property
    def shown_source(self) -> str:
        """What was read, for a headline: without the comma that makes one name a list of hosts (`-i gpu01,`)."""
        source = re.sub(r",(?=,|$)", "", self.source or "")
        return f"{source}, {self.shard}" if self.shard else source

    @property
    def inventory(self) -> str:
        """The options of ``choice`` with which every verb reads the same inventory, as shell words."""
        return _SELECTS.sub("", self.choice).strip()

    @property
    def interrupted(self) -> bool:
        return self.error is not None and self.error.kind == INTERRUPTED.kind

    def interrupt(self, error: Error = INTERRUPTED) -> None:
        """Record the interrupt, unless an earlier error is set."""
        self.error = self.error or error

    @property
    def everyone(self) -> list[HostResult]:
        """All hosts that match, unmanaged ones last."""
        return [*self.hosts, *self.unmanaged]

    @property
    def skipped(self) -> list[HostResult]:
        """The hosts that were left alone, chosen or not."""
        return [host for host in self.everyone if host.outcome == "skipped"]

    def take(self, later: Run) -> None:
        """Take what a later run did with some of the hosts, which this one left as they were."""
        by_name = {host.name: host for host in later.hosts}
        for before in self.hosts:
            if host := by_name.get(before.name):
                host.execs, host.seconds = host.execs + before.execs, host.seconds + before.seconds
        self.hosts = [by_name.get(host.name, host) for host in self.hosts]
        kept = [tuple(name for name in batch if name not in by_name) for batch in self.batches]
        self.batches = [*filter(None, kept), *later.batches]
        self.why_batches = self.why_batches or later.why_batches
        if later.after_batch is not None:
            self.after_batch = [*(self.after_batch or []), *later.after_batch]
        self.seconds += later.seconds
        self.error = later.error or self.error

    def leave_alone(self, hosts: Iterable[Skipped]) -> None:
        """Take the hosts in that gpuready does not manage."""
        found = tuple(hosts)
        self.how_to_manage = next((host.remedy for host in found if host.remedy), "")
        self.unmanaged = [HostResult(h.name, outcome="skipped", notes=list(h.notes), reason=h.reason) for h in found]
        self.conclude()

    @property
    def idle(self) -> bool:
        """Whether every chosen host was skipped. A shard may have only such hosts."""
        return bool(self.hosts) and all(host.outcome == "skipped" for host in self.hosts) and self.shard is None

    def conclude(self) -> None:
        """An apply that skipped every host has converged nothing: an error, and no success that nobody notices."""
        if self.verb == "apply" and self.idle and self.error is None:
            from gpuready.contract.check import DECIDE, UNDECIDED

            self.error = Error.of(InventoryError(f"apply did nothing: {UNDECIDED}", remedy=DECIDE))

    @property
    def of_no_node(self) -> bool:
        """Is it not about nodes as they are beside their spec? A history of them leaves it out."""
        return self.recorded or (self.removing and not self.changes)

    @property
    def changes(self) -> bool:
        """Whether this verb changes nodes."""
        return COMMANDS.get(self.verb, False)
