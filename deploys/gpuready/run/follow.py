"""Follow a rollout: change its batches one after the other, and stop when it says so. For one process and for workers.

Nothing here imports pyinfra or gevent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gpuready.base.errors import ConvergeError, brief
from gpuready.base.host_list import hostlist
from gpuready.contract.rollout import Rollout
from gpuready.operations.hook import LIMIT, after_batch
from gpuready.result.model import Error, HostResult, Run
from gpuready.run.evaluate import failing, went_wrong

if TYPE_CHECKING:
    from gpuready.operations.events import Progress
    from gpuready.run.journal import Journal

#: The note of a host whose turn never came.
NOT_BEGUN = "not begun: interrupted"


class Hosts(Protocol):
    """The hosts of a run: a fleet or a cluster. ``ended`` is called with the result of each host that ended."""

    results: dict[str, HostResult]
    progress: Progress
    ended: Callable[[HostResult], None]

    @property
    def stopping(self) -> bool:
        """Whether the run was interrupted while hosts were changed."""


def follow(
    rollout: Rollout,
    run: Run,
    hosts: Hosts,
    change: Callable[[Sequence[str]], None],
    *,
    hook: str = "",
    journal: Journal | None = None,
) -> None:
    """Change the hosts batch by batch. A batch starts only if the batches before it went well.

    ``hook``: a command to run here after each batch. ``journal`` stores which hosts were begun.
    """
    before = {name: failing(hosts.results[name]) for name in rollout.left}
    try:
        for batch in rollout:
            if journal is not None:
                journal.begin(batch)
                if journal.trouble:
                    rollout.stop("the state of this run cannot be written", batch)
                    break
            change(batch)
            rollout.record(
                wrong=[name for name in batch if went_wrong(hosts.results[name], before[name])],
                proved=any(hosts.results[name].outcome == "changed" for name in batch),
            )
            if hosts.stopping:
                rollout.stop("interrupted")
                if hook and journal is not None:
                    journal.begin(batch)  # it was not tested: --resume examines it again, and runs the hook
            elif hook and not rollout.stopped:
                _after_batch(rollout, run, hosts, batch, hook, journal)
    finally:
        for name in rollout.left:
            hosts.results[name].leave_out(f"not begun: {rollout.why}")


def still_running(doing: Mapping[str, str]) -> str:
    """Return what an interrupted run tells the user: what each host still does."""
    hosts: dict[str, list[str]] = {}
    for name, what in doing.items():
        hosts.setdefault(what, []).append(name)
    running = "; ".join(f"{hostlist(names)}: {what}" for what, names in hosts.items())
    still = f"Still running: {running}. " if running else ""
    return f"interrupted; nothing else begins. {still}Ctrl-C again aborts at once"


def _after_batch(
    rollout: Rollout, run: Run, hosts: Hosts, batch: Sequence[str], hook: str, journal: Journal | None
) -> None:
    """Run the hook. If it fails, the rollout stops, and for --resume the batch has not ended well."""
    if journal is not None:
        journal.begin(batch)
    for name in batch:
        hosts.progress(name, "after batch")
    done = after_batch(hook, batch)
    run.after_batch = [*(run.after_batch or ()), done]
    if done.exit_code == 0:
        for name in batch:
            hosts.progress(name, hosts.results[name].word(run.verb))
            hosts.ended(hosts.results[name])
        return
    how, fix = f"exit {done.exit_code}", "fix what the command reports, then run again"
    if done.exit_code is None:
        how = f"still running after {LIMIT} s, so gpuready stopped it"
        fix = "see what the command waits for, or let it end sooner, then run again"
    why = f"--after-batch failed after {hostlist(batch)} ({how})"
    rollout.stop(why)
    last = brief(done.output.strip().rpartition("\n")[2])
    run.error = Error.of(ConvergeError(f"{why}: {last}" if last else why, remedy=fix))
