"""``gpuready report --merge``: one result of the shards of one run, as if one run had done them all. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from gpuready.base.errors import EXIT_CODES, UsageError
from gpuready.result.exitcode import exit_code
from gpuready.result.model import Error, HostResult, Run, Shard

_AGAIN = "run all shards with the same inventory, options and release of gpuready"


@dataclass(frozen=True)
class Document:
    """A result document: its file, its run and its exit code."""

    path: str
    run: Run
    code: int


def merged(documents: Sequence[Document]) -> tuple[Run, int]:
    """Return the whole run, and its exit code. Hosts of a shard that is missing are not attempted."""
    first = documents[0]
    whole = _shard(first)
    order = {name: number for number, name in enumerate(whole.hosts)}
    for number, document in enumerate(documents):
        _refuse(first, whole, document)
        for other in documents[:number]:
            _refuse_twice(other, document)
    runs = [document.run for document in documents]
    run = Run(
        first.run.verb,
        seconds=max(each.seconds for each in runs),
        batches=[
            tuple(sorted(sum(batch, ()), key=lambda name: order.get(name, 0)))
            for batch in zip_longest(*(each.batches for each in runs), fillvalue=())
        ],
        after_batch=[done for each in runs for done in each.after_batch or ()] or None,
        refused_by_user=all(each.refused_by_user for each in runs),
        ended=max(each.ended or "" for each in runs) or None,
        source="; ".join(dict.fromkeys(each.source for each in runs if each.source)) or None,
        removing=first.run.removing,
        part=first.run.part,
        scope=first.run.scope,
    )
    found = {host.name: host for each in runs for host in each.hosts}
    run.hosts = [
        found[name] if name in found else _missing(name, whole.hosts[name], whole)
        for name in dict.fromkeys([*whole.hosts, *found])
    ]
    run.unmanaged = [host for each in runs for host in each.unmanaged]
    run.error = _error(runs)
    run.conclude()
    run.part.joined(run)
    return run, exit_code(run, detailed=any(document.code == 2 for document in documents))


def _shard(document: Document) -> Shard:
    """Return the shard of a document. Raises UsageError if it has none."""
    if document.run.shard is not None:
        return document.run.shard
    error = document.run.error
    why = f", and its run failed: {error.message}" if error is not None else ""
    raise UsageError(
        f"{document.path} is not the result of a shard{why}", remedy="--merge joins results of runs with --shard K/N"
    )


def _refuse(first: Document, whole: Shard, other: Document) -> None:
    """Raise UsageError unless both are shards of one run."""
    shard = _shard(other)
    if first.run.verb != other.run.verb:
        what = f"a result of {first.run.verb or 'no command'}, and {other.path} of {other.run.verb or 'no command'}"
        raise UsageError(f"{first.path} is {what}", remedy="merge the shards of one command")
    if whole.count != shard.count:
        raise UsageError(f"{first.path} is {whole}, and {other.path} is {shard}", remedy=_AGAIN)
    if (whole.specs, whole.hosts, first.run.scope) != (shard.specs, shard.hosts, other.run.scope):
        raise UsageError(
            f"{first.path} and {other.path} are not of one run: the hosts, their specs, the options or the releases of "
            "gpuready differ",
            remedy=_AGAIN,
        )


def _refuse_twice(one: Document, other: Document) -> None:
    """Raise UsageError if both have the same shard, or a host in common."""
    remedy = "give one result of each shard"
    if _shard(one).index == _shard(other).index:
        raise UsageError(f"{one.path} and {other.path} are both {_shard(one)}", remedy=remedy)
    names = {host.name for host in one.run.everyone}
    if twice := [host.name for host in other.run.everyone if host.name in names]:
        raise UsageError(f"host {twice[0]} is in {one.path} and in {other.path}", remedy=remedy)


def _missing(name: str, shard: int, whole: Shard) -> HostResult:
    return HostResult(name, notes=[f"{replace(whole, index=shard)} is missing: its result was not given"])


def _error(runs: Sequence[Run]) -> Error | None:
    """Return the error of the whole run: of those of the shards, the one that decides the exit code."""
    found = [replace(run.error, message=f"{run.shard}: {run.error.message}") for run in runs if run.error is not None]
    return min(found, key=lambda error: EXIT_CODES.index(error.exit_code), default=None)
