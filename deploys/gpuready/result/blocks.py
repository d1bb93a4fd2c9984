"""What many hosts have in common, shown once: equal diffs, verdicts and errors, each with its hosts.

At the end: the words for one host. Text and HTML are made of both.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace

from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.contract.check import DECIDE, UNDECIDED
from gpuready.inventory.groups import CHOOSE
from gpuready.inventory.hosts import KNOWN_HOSTS, THIS_MACHINE
from gpuready.result.exitcode import counts
from gpuready.result.mask import mask_value, options_to_paste
from gpuready.result.model import (
    DISRUPTIONS,
    EARLIER_RUN,
    NOT_COMPARED,
    CheckResult,
    ComponentResult,
    Error,
    HostResult,
    Run,
    UnknownValue,
    Value,
)
from gpuready.result.page import labelled
from gpuready.result.text import Painter, grouped, one_line

#: Verdicts that are shown, the worst first; the rest is only counted.
SHOWN = ("fail", "unknown", "warn")
_LONGEST = 400
#: From here on, a change may disturb running containers.
_DISTURBING = DISRUPTIONS[DISRUPTIONS.index("recreate") :]
_ADDRESS = re.compile(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b|\[?\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}\]?", re.IGNORECASE)
#: What became of a component if another apply does no more for it: it cannot, it just did, or nothing differs.
_APPLY_IS_NO_FIX = ("blocked", "failed", "changed", "")
_APPLY = re.compile(r"^gpuready apply[^;,]*(?:; |, (?=or |then )|$)(?:or |by hand: |after that, |then )?")
#: Classes of disruption, in words.
CLASSES = {
    "none": "nothing is disturbed",
    "reload": "a service reloads its configuration, nothing stops",
    "recreate": "no service stops, but running containers may lose their GPU or libraries",
    "restart": "a service is restarted",
    "reboot": "the node is rebooted",
}
_OUTCOMES = {
    "ok": ("ok", "green"),
    "would_change": ("would change", "yellow"),
    "changed": ("changed", "green"),
    "pending": ("pending", "yellow"),
    "failed": ("FAILED", "red"),
    "unreachable": ("UNREACHABLE", "red"),
    "not_attempted": ("NOT ATTEMPTED", "red"),
    "skipped": ("skipped", "yellow"),
}
Names = list[str]
ByText = dict[tuple[str, ...], Names]
DiffKey = tuple[str, str, "tuple[KeyDiff, ...]"]


@dataclass(frozen=True)
class KeyDiff:
    """One line of a diff, its values as text; ``done``: closed, though the rest waits."""

    key: str
    actual: str
    expected: str
    done: bool

    def __str__(self) -> str:
        return f"{self.key}: {self.actual} -> {self.expected}{' (done)' if self.done else ''}"


@dataclass
class DiffBlock:
    """One component with one diff and one status, and the hosts that share all three."""

    component: str
    status_text: str
    keys: tuple[KeyDiff, ...]
    classes: dict[str, Names] = field(default_factory=dict)
    hosts: Names = field(default_factory=list)
    affected: ByText = field(default_factory=dict)
    notes: ByText = field(default_factory=dict)
    waiting: ByText = field(default_factory=dict)
    errors: ByText = field(default_factory=dict)


def status_text(run: Run, host: HostResult, item: ComponentResult) -> str:
    """What happened, or would happen, to a component's difference; empty when there is none."""
    if item.error is not None:
        return "failed" if run.changes and item.diff and not item.blocked else "blocked"
    if not item.diff:
        return ""
    if not run.changes:
        return "differs" if run.verb == "verify" else "would change"
    if item.pending:
        return "partly changed, the rest is pending" if item.changed else "pending"
    if item.changed:
        return "changed"
    if run.interrupted and item.attempted:
        return "interrupted, run plan again"
    return "not attempted" if not item.attempted or host.error is not None else "not changed"


def diff_blocks(run: Run) -> list[DiffBlock]:
    """Components in the order in which they are built, for each its distinct diffs."""
    found: dict[DiffKey, DiffBlock] = {}
    for host in run.hosts:
        for item in host.components:
            if key := diff_key(run, host, item):
                _add(found.setdefault(key, DiffBlock(*key)), run, host, item)
    order = list(dict.fromkeys(item.name for host in run.hosts for item in host.components))
    return sorted(found.values(), key=lambda block: order.index(block.component))


def diff_key(run: Run, host: HostResult, item: ComponentResult) -> DiffKey | None:
    """What the hosts of one :class:`DiffBlock` share; None for a component that is as it should be."""
    if not (word := status_text(run, host, item)):
        return None
    return item.name, word if host.earlier is None else f"{word} {EARLIER_RUN}", keys(item)


def keys(item: ComponentResult) -> tuple[KeyDiff, ...]:
    """The diff's lines; of one that waits in part, what is done says so."""
    return tuple(
        KeyDiff(each.key, shown(each.key, each.actual), shown(each.key, each.expected), each.done) for each in item.diff
    )


def shown(key: str, value: Value) -> str:
    """A value of a diff as one short phrase."""
    if value is None:
        return "(absent)"
    if isinstance(value, UnknownValue):
        return f"(unknown: {one_line(value.unknown)})"
    value = mask_value(key, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(str, value)) or "(none)"
    else:
        text = str(value) if value != "" else '""'
    text = json.dumps(text, ensure_ascii=False) if text != text.strip() or "\n" in text else text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def _add(block: DiffBlock, run: Run, host: HostResult, item: ComponentResult) -> None:
    block.hosts.append(host.name)
    block.classes.setdefault(item.disruption, []).append(host.name)
    affected = item.affected or (("nothing running",) if item.disruption in _DISTURBING else ())
    for texts, into in ((affected, block.affected), (item.notes, block.notes)):
        if texts:
            into.setdefault(texts, []).append(host.name)
    if item.pending_reason and (item.pending or run.verb == "plan"):
        block.waiting.setdefault((item.pending_reason,), []).append(host.name)
    if item.error is not None:
        block.errors.setdefault(message_and_fix(item.error), []).append(host.name)


def message_and_fix(error: Error) -> tuple[str, str]:
    return error.message, error.remedy


def error_blocks(run: Run) -> dict[tuple[str, str, str], Names]:
    """(outcome, message, remedy) -> hosts; errors that a component's block shows are left out.

    Messages that differ only in the host's own name or address are one: the first host's stands for all, and HOST for
    its name or address in a remedy that differs.
    """
    alike: dict[tuple[str, str, str], dict[tuple[str, str, str], Names]] = {}
    for host in run.hosts:
        if host.error is not None and all(item.error != host.error for item in host.components):
            message, fix = message_and_fix(host.error)
            fix = fix.replace("-i INVENTORY", options_to_paste(run.inventory) or "-i INVENTORY")
            exact = (host.outcome, message.removeprefix(f"{host.name}: "), fix)
            of_any = (host.outcome, of_any_host(exact[1], host.name), of_any_host(exact[2], host.name))
            alike.setdefault(of_any, {}).setdefault(exact, []).append(host.name)
    found: dict[tuple[str, str, str], Names] = {}
    for (outcome, _, fix), same in alike.items():
        names = [name for hosts in same.values() for name in hosts]
        first = next(iter(same))
        if len(same) == 1:
            found[first] = names
            continue
        head, *rest = first[1].split("\n")
        told = "\n".join([f"{head} ({count(len(names) - 1, 'more host')} with the same error)", *rest])
        one_fix = len({exact[2] for exact in same}) == 1
        found[outcome, told, first[2] if one_fix else fix] = names
    return found


def of_any_host(text: str, name: str) -> str:
    """A message with HOST for its host's name and for each address."""
    return _ADDRESS.sub("HOST", re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "HOST", text))


def note_blocks(run: Run) -> dict[str, Names]:
    """Notes about hosts -> hosts, those of components without a block of their own among them."""
    found: dict[str, Names] = {}
    for host in run.everyone:
        alone = [item for item in host.components if not status_text(run, host, item)]
        of_components = [f"{each.name}: {note}" for each in alone for note in each.notes]
        for note in dict.fromkeys([*host.notes, *of_components]):
            found.setdefault(note, []).append(host.name)
    return found


def skipped_blocks(run: Run) -> dict[str, Names]:
    """Reason -> hosts that were left alone for it."""
    return grouped((host.reason, host.name) for host in run.skipped)


def verdict_blocks(run: Run) -> dict[CheckResult, Names]:
    """Distinct verdicts worth reading -> hosts, the worst first; without those of :func:`consequences`."""
    found = grouped(
        (check, host.name) for host in run.hosts for check in worth_reading(run, host) if not _follows(run, host, check)
    )
    return dict(sorted(found.items(), key=lambda item: SHOWN.index(item[0].status)))


def consequences(run: Run) -> dict[tuple[str, ...], Names]:
    """When, and checks that fail because a change was not made -> their hosts. The change is shown, so they need no
    details.
    """
    found: dict[tuple[str, ...], Names] = {}
    for host in run.hosts:
        if ids := tuple(check.id for check in worth_reading(run, host) if _follows(run, host, check)):
            not_begun = run.verb == "plan" or host.outcome == "not_attempted"
            found.setdefault(("before apply" if not_begun else "as a result", *ids), []).append(host.name)
    return found


def worth_reading(run: Run, host: HostResult) -> list[CheckResult]:
    """The verdicts worth reading. ``COMPONENT.config`` only repeats a diff or an error that is shown anyway.

    One that another explains is shown with that (:func:`effects`). A fix that this run has disproved is left out.
    """
    words = {item.name: status_text(run, host, item) for item in host.components}
    repeated = {f"{name}.config" for name, word in words.items() if word}
    return [
        _without_apply(check) if words.get(check.component) in _APPLY_IS_NO_FIX else check
        for check in host.checks
        if check.status in SHOWN and check.id not in repeated and not cause(run, host, check)
    ]


def _without_apply(check: CheckResult) -> CheckResult:
    """The check, whose fix does not begin with ``gpuready apply``; what else the fix says stays."""
    return replace(check, remedy=_APPLY.sub("", check.remedy))


def cause(run: Run, host: HostResult, check: CheckResult) -> CheckResult | None:
    """The check with a report of its own that explains this one's failure. A check with a cause has no such report."""
    found = _named_cause(run, host, check)
    return found if found is not None and _named_cause(run, host, found) is None else None


def _named_cause(run: Run, host: HostResult, check: CheckResult) -> CheckResult | None:
    found = next((each for each in host.checks if each.id == check.because), None) if check.because else None
    if found is None or found.status != "fail" or _follows(run, host, found):
        return None
    return found


def caused(run: Run, host: HostResult) -> dict[CheckResult, list[str]]:
    """By the check that explains it: what else fails on a host, in words."""
    return grouped(
        (root, f"{check.id}: {check.summary}") for check in host.checks if (root := cause(run, host, check)) is not None
    )


def effects(run: Run) -> dict[CheckResult, ByText]:
    """The same on all hosts."""
    found: dict[CheckResult, ByText] = {}
    for host in run.hosts:
        for root, texts in caused(run, host).items():
            found.setdefault(root, {}).setdefault(tuple(texts), []).append(host.name)
    return found


def _follows(run: Run, host: HostResult, check: CheckResult) -> bool:
    """Whether it fails because apply has not changed its component: not yet (a plan), or because of an error."""
    if check.status != "fail":
        return False
    if run.verb == "plan":
        return host.outcome == "would_change"
    own = [item for item in host.components if item.name == check.component]
    return any(status_text(run, host, item) in ("failed", "not attempted") for item in own)


def host_word(run: Run, host: HostResult) -> str:
    """What became of a host, in one or two words; capitals if the run fails by it."""
    word = "declined" if run.refused_by_user and host.outcome == "pending" else _OUTCOMES[host.outcome][0]
    if failing := run.part.failing(host):
        return failing
    if host.outcome == "ok" and host.reason and not run.part.judges:
        return NOT_COMPARED
    if run.verb != "plan" and host.outcome == "would_change":
        return "differs"
    if host.outcome == "would_change" and any(item.error is not None for item in host.components):
        return "would change IN PART"
    bad = {check.status for check in host.checks if counts(run.verb, host, check)}
    if bad and host.outcome in ("ok", "changed"):
        finding = "CHECKS FAILED" if "fail" in bad else "CHECKS UNKNOWN"
        return finding if host.outcome == "ok" else f"{word}, but {finding}"
    return word


def result_word(run: Run, host: HostResult) -> str:
    """The same, with whose work it was: that of this run, or of an earlier one (--resume, --failed-only)."""
    word = host_word(run, host)
    return word if host.earlier is None else f"{word} {EARLIER_RUN}"


def host_style(run: Run, host: HostResult) -> str:
    """The colour of its word."""
    failing = any(counts(run.verb, host, check) for check in host.checks)
    return "red" if failing or run.part.failing(host) else _OUTCOMES[host.outcome][1]


def host_counts(run: Run, host: HostResult) -> str:
    """``4 changes, 12 checks passed, 0 GPU checks``."""
    unjudged = not run.part.judges or host.outcome == "skipped"
    if unjudged or not (host.probed or host.checks or not run.part.of_spec):
        return "-"
    changes = sum(len(item.diff) for item in host.components if not run.changes or item.changed)
    passing = sum(check.status == "pass" for check in host.checks)
    seen = Counter(check.status for check in worth_reading(run, host))  # what has a line above
    parts = [] if run.part.own_verdicts else [count(changes, "difference" if run.verb == "verify" else "change")]
    if blocked := sum(status_text(run, host, item) == "blocked" for item in host.components):
        parts.append(f"{blocked} blocked")
    if not host.checks:  # on the way back nothing is judged
        return ", ".join(parts) or "-"
    parts.append(f"{count(passing, 'check')} passed")
    words = (("fail", "failed", "failed"), ("unknown", "unknown", "unknown"), ("warn", "warning", "warnings"))
    parts += [count(seen[status], one, many) for status, one, many in words if seen[status]]
    gpu = [] if run.part.own_verdicts else [count(host.gpu_checks, "GPU check")]
    return ", ".join([*parts, *gpu])


def consequence_lines(run: Run, paint: Painter) -> list[str]:
    """The checks that fail because a change was not made, a line for hosts that share them."""
    return [
        f"{paint('dim', f'{when}:')} {count(len(ids), 'check')} failed on {hostlist(hosts)}: " + ", ".join(ids)
        for (when, *ids), hosts in consequences(run).items()
    ]


def skipped_lines(run: Run, paint: Painter) -> list[str]:
    """Skipped hosts with the reason, and what to write if that is wrong."""
    found: list[str] = []
    for reason, hosts in skipped_blocks(run).items():
        found += [f"{paint('yellow', 'skipped')}  {hostlist(hosts)}: {one_line(reason)}"]
        fix = "" if reason == THIS_MACHINE else run.how_to_manage or CHOOSE
        found += labelled("fix", DECIDE if reason == UNDECIDED else fix, "  ")
    return found


def note_lines(run: Run) -> list[str]:
    """The notes about hosts, once for hosts that share one. The usual file of known_hosts is only named with -v."""
    return [
        line
        for note, hosts in note_blocks(run).items()
        if run.verbose or not note.startswith(f"{KNOWN_HOSTS}: ")
        for line in labelled("note", f"{hostlist(hosts)}: {note}", "")
    ]
