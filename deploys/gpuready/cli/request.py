"""What a command line asks for: the options checked, the inventory read, the hosts and components chosen."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from gpuready import __version__
from gpuready.base.errors import UsageError, did_you_mean
from gpuready.base.fields import BATCH
from gpuready.cli.options import INVENTORY, REPEATED
from gpuready.cli.output import Target, deliver, kept, targets, tell_skipped
from gpuready.cli.parts import part_of
from gpuready.contract.component import Disruption
from gpuready.contract.rollout import MAX_FAIL, WHOLE, Share
from gpuready.inventory.extra import Extra
from gpuready.inventory.hosts import HostEntry, Hosts, Skipped, load
from gpuready.inventory.shards import parse_shard, shards
from gpuready.model import probe
from gpuready.result.model import NO_PART, Run, Shard, VerbPart
from gpuready.run.access import Workers

if TYPE_CHECKING:
    from gpuready.run.journal import Journal


@dataclass(frozen=True)
class Request:
    """What was asked for: the hosts, the components (None: all), what may happen, and where the result goes.

    ``skipped``: hosts that were not chosen. ``part``: what the verb adds to the result. ``shard``: the one that has
    these hosts. ``share``: its part of each budget. ``wait_lock``: seconds. ``journal``: where apply stores what
    becomes of each host, and has the hosts that an earlier run did. ``choice``: the options that chose the hosts, as
    shell words, without ``limit``. ``repeated``: the whole command line without it, in two parts, between which a new
    ``--limit`` stands.
    """

    verb: str
    sources: tuple[str, ...]
    entries: tuple[HostEntry, ...]
    skipped: tuple[Skipped, ...]
    selected: frozenset[str] | None
    outputs: tuple[Target, ...]
    color: str
    allowed: Disruption
    batch: str
    max_fail: str
    part: VerbPart = NO_PART
    shard: Shard | None = None
    share: Share = WHOLE
    host_keys: str = "strict"
    parallel: int = 64
    probe_timeout: int = probe.TIMEOUT
    wait_lock: int = 0
    ask_become_pass: bool = False
    verbose: int = 0
    workers: Workers = field(default_factory=Workers)
    after_batch: str = ""
    journal: Journal | None = None
    choice: str = ""
    limit: tuple[str, ...] = ()
    repeated: tuple[str, str] = ("", "")

    def complete(self, run: Run) -> Run:
        """Add what only the command line knows: the source, the verb's part, the shard, and who was not chosen."""
        run.source, run.part, run.selected, run.shard = ", ".join(self.sources), self.part, self.selected, self.shard
        if self.shard is not None and self.share.of > 1 and run.verb in ("plan", "apply", "remove"):
            run.shard = replace(self.shard, budgets=self._budgets())
        run.leave_alone(self.skipped)
        run.choice, run.limit, run.verbose = self.choice, self.limit, self.verbose > 0
        run.repeated = self.repeated
        given = (("--allow-disruption", self.allowed.name), ("--batch", self.batch))
        run.permission = shlex.join(word for pair in given if pair[1] not in ("restart", "") for word in pair)
        return run

    def _budgets(self) -> tuple[str, ...]:
        """What this shard may use of each budget that somebody set."""
        given = [("--batch", self.batch), ("--max-fail", "" if self.max_fail == "0" else self.max_fail)]
        given += [("maintenance.batch", entry.spec.maintenance.batch or "") for entry in self.entries]
        return tuple(dict.fromkeys(f"{self.share.of_budget(text)} of {name} {text}" for name, text in given if text))

    def deliver(self, run: Run, *, detailed: bool = False) -> int:
        """Write the result to each output, and return the exit code. ``detailed``: see ``--detailed-exitcode``."""
        return deliver(run, self.outputs, color=self.color, detailed=detailed)

    def tell_skipped(self) -> None:
        """Name the skipped hosts on stderr, for verbs that put no report on stdout."""
        run = Run(self.verb)
        run.leave_alone(self.skipped)
        tell_skipped(run, self.color)


def request(
    verb: str,
    *,
    inventory: Sequence[str],
    limit: Sequence[str],
    shard: str | None = None,
    host: str | None = None,
    allow_exec: bool,
    allow_read: Sequence[str],
    color: str,
    output: Sequence[str] = (),
    history: str = "",
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    allow_disruption: str = "restart",
    batch: str = "",
    max_fail: str = "0",
    extra_vars: Sequence[tuple[str, str]] = (),
    ansible: bool = False,
    default_output: str = "human",
    secrets: bool = True,
    workers: int | None = None,
    scheduler: str = "",
    plain_scheduler: bool = False,
    **reach: Any,
) -> Request:
    """Check the command line first, then the inventory; nothing is connected yet.

    ``host``: the HOST of a verb that has one; ``--limit`` can only narrow it. ``secrets``: read sudo's password where
    the inventory refers to it. ``reach``: the other fields of the request.
    """
    if not inventory:
        raise UsageError(
            f"no inventory: -i is missing, and there is no {INVENTORY} here",
            remedy=f"gpuready {verb} -i FILE, or -i admin@10.0.0.7, for one host; gpuready init writes {INVENTORY}",
        )
    if host is not None and not host.strip(" ,:"):
        raise UsageError(f"{verb}: HOST is empty", remedy="a name, a group or a pattern of the inventory")
    if batch and not BATCH.fullmatch(batch):
        raise UsageError(
            f"--batch {batch}: not a batch size", remedy="a number from 1, a percentage, or several: 1,25%"
        )
    if not MAX_FAIL.fullmatch(max_fail):
        raise UsageError(
            f"--max-fail {max_fail}: not a number of hosts", remedy="a number from 0, or a percentage: 10%"
        )
    if ansible and not allow_exec:
        raise UsageError("--ansible runs the plugins and programs of the inventory", remedy="add --allow-exec")
    for reference in allow_read:
        if not reference.startswith(("env:", "file:")):
            raise UsageError(f"--allow-read: {reference!r} is not a reference", remedy="env:NAME or file:PATH")
    where = Workers(workers or 0, scheduler, plain_scheduler)
    if workers and scheduler:
        raise UsageError("--workers starts workers on this machine, --scheduler uses those of a cluster: give only one")
    if plain_scheduler and not scheduler:
        raise UsageError("--plain-scheduler needs --scheduler")
    if where and reach.get("ask_become_pass"):
        raise UsageError(
            "--ask-become-pass: a password that is typed here is not sent to workers",
            remedy="ansible_become_password: env:GPUREADY_NAME in the inventory, which each worker reads",
        )
    part = part_of(verb)
    number, count = parse_shard(shard) if shard is not None else (0, 0)
    outputs = (*targets(output, default_output, part.formats), *kept(history))
    selected = selection(only, skip)
    found = load(
        inventory,
        limit=limit,
        host=host,
        allow_exec=allow_exec,
        allow_read=allow_read,
        ansible=ansible,
        check_ids=_check_ids,
        extra=[Extra(*each) for each in extra_vars],
        secrets=secrets,
        accept_new=reach.get("host_keys") == "accept-new",
    )
    mine, share = (None, WHOLE) if shard is None else _shard(found, number, count)
    chosen, skipped = found.chosen, found.skipped
    if mine is not None:
        chosen = tuple(entry for entry in chosen if mine.hosts[entry.name] == number)
        skipped = skipped if number == 1 else ()  # nothing is done on them
    options = {"-i": inventory, "-e": [text for text, _ in extra_vars], "--allow-read": allow_read}
    options |= {"--shard": [shard] if shard else [], "--only": only, "--skip": skip}
    choice = [word for name, values in options.items() for value in values for word in (name, value)]
    choice += [name for name, on in (("--ansible", ansible), ("--allow-exec", allow_exec)) if on]
    return Request(
        verb, tuple(inventory), chosen, skipped, selected, outputs, color, Disruption[allow_disruption],
        batch, max_fail, part, mine, share, workers=where,
        choice=shlex.join(choice), limit=tuple(limit), repeated=_repeated(), **reach,
    )  # fmt: skip


def _repeated() -> tuple[str, str]:
    context = click.get_current_context(silent=True)
    return context.meta.get(REPEATED, ("", "")) if context is not None else ("", "")


def _shard(found: Hosts, index: int, count: int) -> tuple[Shard, Share]:
    """Return a shard of these hosts, and its part of each budget: shards without hosts need none."""
    from gpuready.contract.node_record import spec_hash

    hosts = shards(found.chosen, count)
    specs = [[__version__], *([entry.name, spec_hash(entry.spec)] for entry in found.chosen)]
    digest = hashlib.sha256(json.dumps(specs).encode()).hexdigest()
    working = sorted({hosts[entry.name] for entry in found.chosen})
    share = Share(working.index(index), len(working)) if index in working else WHOLE
    return Shard(index, count, hosts, digest), share


def _check_ids() -> Collection[str]:
    from gpuready.catalogue import BY_ID

    return BY_ID


def selection(only: Sequence[str], skip: Sequence[str]) -> frozenset[str] | None:
    """The chosen components; None is all of them. UsageError for a name that is none, or when nothing is left."""
    if not only and not skip:
        return None
    from gpuready.node import NODE

    names = [item.name for item in NODE]
    only, skip = _separated(only), _separated(skip)
    for name in (*only, *skip):
        if name not in names:
            raise UsageError(
                f"no component {name!r}{did_you_mean(name, names)}", remedy=f"there are: {', '.join(names)}"
            )
    chosen = frozenset(only or names) - frozenset(skip)
    if not chosen:
        raise UsageError("--only and --skip leave no component")
    return chosen


def _separated(given: Sequence[str]) -> list[str]:
    """The names of an option that may be repeated, and may hold several with commas."""
    return [name.strip() for text in given for name in text.split(",")]
