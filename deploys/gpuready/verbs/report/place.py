"""``gpuready report DIR_OR_URL``: the results that nodes sent to a place (``gpuready render pull``), as one result.

A node overwrites its file, NODE.json, so a place has the newest result of each node. Others may write there, too: each
file is bounded. An unusable file only affects its node, or is skipped with a note.
"""

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.base.files import reason
from gpuready.base.places import Directory, Entry, Remote
from gpuready.cli.parts import part_of
from gpuready.contract.node_record import seconds
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.host_names import is_host
from gpuready.result.document import DocumentError, read
from gpuready.result.model import Error, HostResult, Run
from gpuready.verbs.report.evidence import AHEAD

#: Bytes of the result of one node; it has about 50 kB.
_MOST = 10_000_000
#: Files that are read at the same time.
_AT_ONCE = 16
_SUFFIX = ".json"
#: The name of a file of --history, which begins with its time (:mod:`gpuready.cli.output`).
_KEPT = re.compile(r"\d{8}T\d{6}Z-.+")


class _Unusable(ValueError):
    """A file that is no result of a node; the message says why."""


@dataclass(frozen=True)
class _Newest:
    """The result of a node, and when it ended."""

    host: HostResult
    ended: str


def gathered(where: Directory | Remote, expected: Sequence[str] | None, most: int) -> tuple[Run, dict[str, str]]:
    """One run over all nodes, and the files of no node with the reason. Raises OSError if the place cannot be read.

    Raises DocumentError if it is a place of --history.

    ``expected``: the nodes that should report (None: those that did). ``most``: seconds without a result after which a
    node counts as unreachable.
    """
    part, now = part_of("apply"), time.time()
    named, skipped = {}, {}
    for entry in where.entries():
        node = entry.name.removesuffix(_SUFFIX)
        if entry.name.endswith(_SUFFIX) and is_host(node):
            named[node] = entry
        else:
            skipped[entry.name] = "not the result of a node: its name is not NODE.json"
    if named and all(map(_KEPT.fullmatch, named)):
        raise DocumentError(
            f"{where}: the results of --history, not those of nodes", remedy=f"gpuready history {where}"
        )
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = dict(
            zip(named, pool.map(lambda node: _newest(where, node, named[node], now, most), named), strict=True)
        )
    order = list(dict.fromkeys([*(expected or ()), *sorted(results)]))
    run = Run("apply", source=str(where), part=part, hosts=list(_hosts(order, results, expected)))
    run.ended = max((each.ended for each in results.values()), default="") or None
    run.conclude()
    part.joined(run)
    return run, skipped


def _hosts(order: Sequence[str], results: dict[str, _Newest], expected: Sequence[str] | None) -> Iterator[HostResult]:
    for node in order:
        if node not in results:
            yield _silent(node, "no result")
            continue
        host = results[node].host
        if expected is not None and node not in expected:
            host.notes.append("reports, but is not in the inventory")
        yield host


def _newest(where: Directory | Remote, node: str, entry: Entry, now: float, most: int) -> _Newest:
    try:
        return _read(where, node, entry, now, most)
    except _Unusable as e:
        return _Newest(_silent(node, f"{entry.name}: {e}"), "")


def _read(where: Directory | Remote, node: str, entry: Entry, now: float, most: int) -> _Newest:
    """Raises :class:`_Unusable`."""
    if entry.problem:
        raise _Unusable(entry.problem)
    try:
        run, _ = read(read_json(where.read(entry.name, _MOST), _MOST), [part_of("apply")])
        ended = seconds(run.ended or "")
    except OSError as e:
        raise _Unusable(f"cannot be read: {reason(e)}") from None
    except DocumentError as e:
        raise _Unusable(brief(str(e))) from None
    except (ValueError, RecursionError):
        raise _Unusable("not a result with an end time") from None
    if run.verb != "apply" or {host.name for host in run.everyone} - {LOCAL}:
        raise _Unusable(f"not a result of gpuready apply -i {LOCAL}")
    assert run.ended is not None
    if ended > now + AHEAD:
        raise _Unusable(f"its time {run.ended} is in the future: check the clock of the node")
    if ended < now - most:
        return _Newest(_silent(node, f"the last result is from {run.ended}"), run.ended)
    return _Newest(_host(node, run), run.ended)


def _host(node: str, run: Run) -> HostResult:
    """Return what the run did on the node. An error of the run counts as a failure of the node."""
    host = next(iter(run.everyone), HostResult(LOCAL, outcome="failed"))
    if run.error is not None and host.outcome != "failed":
        host = replace(host, outcome="failed", error=run.error)
    error = host.error or run.error
    if error is not None:
        error = replace(error, exit_code=4 if host.outcome == "unreachable" else 1)
    return replace(host, name=node, error=error)


def _silent(node: str, why: str) -> HostResult:
    message = f"the node has not reported: {why}"
    remedy = "on the node: systemctl status gpuready-pull.timer; journalctl -u gpuready-pull"
    return HostResult(node, outcome="unreachable", error=Error("unreachable", message, remedy, 4))
