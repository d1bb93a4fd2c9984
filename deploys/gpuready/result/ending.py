"""The end of the human report: one line per host, then one line with the outcome, the level and the GPU checks.

It says "ready" only if a GPU check ran on every host. Without one, it only says that nothing was found wrong.
"""

import shlex
from collections import Counter
from collections.abc import Iterable

from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.result import blocks
from gpuready.result.exitcode import counts, meaning
from gpuready.result.mask import mask_text
from gpuready.result.model import HostResult, Run
from gpuready.result.text import Painter, columns


def host_lines(run: Run, paint: Painter) -> list[str]:
    """``lab1  changed  4 changes, 12 checks passed, 0 GPU checks  4.1 s``, in columns; with ``-v``, the execs, too."""
    return columns([
        (host.name, paint(blocks.host_style(run, host), blocks.result_word(run, host)), blocks.host_counts(run, host),
         (f"{count(host.execs, 'exec')}  " if run.verbose else "") + f"{host.seconds:.1f} s")
        for host in run.hosts
    ])  # fmt: skip


def _following(run: Run) -> str:
    """Return the verb that comes after this run; empty if none does."""
    outcomes = {host.outcome for host in run.hosts}
    if run.verb == "plan" and "would_change" in outcomes:
        return "remove" if run.removing else "apply"
    if run.verb == "apply" and "changed" in outcomes:
        return "verify"
    return "plan" if not run.changes and "would_change" in outcomes else ""


def next_lines(run: Run) -> list[str]:
    """Return the command that follows, and the hosts to repeat it on, uncut, for copying."""
    bad = [host.name for host in run.hosts if blocks.host_style(run, host) == "red"]
    if run.for_the_rest:
        return [f"again:   {run.for_the_rest}"]
    if run.recorded or run.interrupted or not run.choice:
        return []
    following = _following(run) if run.part.of_spec else ""  # a dry run of rdma attach is of no spec
    limits = limit_options(run.limit)
    allowed = f" {run.permission}" if run.permission and following in ("apply", "remove") else ""
    found = [f"next:    gpuready {following} {run.choice}{limits}{allowed}"] if following else []
    if run.part.least <= len(bad) < len(run.hosts):
        before, after = run.repeated if run.repeated[0] == mask_text(run.repeated[0]) else ("", "")
        chosen = f"--limit {shlex.quote(hostlist(bad, whole=True))}"
        command = f"{before or 'the same command with'} {chosen} {after}".rstrip()
        found.append(f"again:   {command}")
    return [line for line in found if mask_text(line) == line]  # one with a mask in it cannot be copied


def limit_options(limit: Iterable[str]) -> str:
    """Return the options of ``--limit`` as shell words, each after a blank."""
    return "".join(f" --limit {shlex.quote(each)}" for each in limit)


def ending(run: Run, code: int, paint: Painter) -> str:
    """The last line: ``OK: 2 nodes are ready ...`` or ``NOT OK ...`` with the exit code and its meaning."""
    if run.shard is not None and not run.hosts and run.error is None:
        return f"{paint('green', 'OK')}: nothing to do, {run.shard} has no host{_left(run)}"
    if tally := run.part.tally(run):
        good = paint("red", "NOT OK: ") if code else paint("green", "OK: ") if run.part.well(run) else ""
        return f"{good}{tally}{_left(run)}" + (f"; exit {code} ({meaning(code, run.verb)})" if code else "")
    if run.refused_by_user:
        why = f" ({meaning(code, run.verb)})" if code != 7 else ""
        return f"{paint('yellow', 'nothing was changed: you answered no')}; {_tally(run)}; exit {code}{why}"
    reached = f"level {run.level}" if run.level is not None else "nothing was judged"
    checks = run.part.proof(run) or _gpu_words(run)
    judged = f"; {reached}, {checks}" if run.part.of_spec and run.level is not None else ""
    if code not in (0, 2):
        verdict = paint("yellow", "PENDING") if code == 7 else paint("red", "NOT OK")
        return f"{verdict}: {_tally(run)}{judged}; exit {code} ({_why(run, code)})"
    if any(host.outcome == "would_change" for host in run.hosts):
        return f"{_tally(run)}, nothing was changed{judged}" + (f"; exit {code}" if code else "")
    if run.skipped and not _worked(run):
        then = "; apply would end with exit 5" if run.idle and run.verb == "plan" and not run.removing else ""
        return f"nothing to do{_left(run)}{then}"
    if done := run.part.done(run):
        return f"{paint('green', 'OK')}: {done}{_left(run)}"
    if run.removing:
        return f"{paint('green', 'OK')}: {count(len(run.hosts), 'host')} without {_whose(run)}{_left(run)}"
    failed = ((host, check) for host in run.hosts for check in host.checks if check.status == "fail")
    if failing := sum(blocks.cause(run, *each) is None for each in failed):
        return f"nothing to change, but {count(failing, 'check')} failed; {reached}, {checks}{_left(run)}"
    praise = "" if run.part.own_verdicts else f"{_praise(run)}{_doubt(run)}; "
    return f"{paint('green', 'OK')}: {praise}{checks} ({reached}){_left(run)}"


def _why(run: Run, code: int) -> str:
    """What the code means; if the command of --after-batch is all that failed, that."""
    failed = [done for done in run.after_batch or () if done.exit_code != 0]
    if code == 1 and failed and not any(host.outcome == "failed" for host in run.hosts):
        return f"--after-batch failed after {hostlist(failed[-1].hosts)}"
    return meaning(code, run.verb)


def _whose(run: Run) -> str:
    """What is gone after a remove: everything of gpuready, or the chosen components."""
    if run.selected is None:
        return "anything from gpuready"
    names = sorted(run.selected)
    return f"gpuready's {', '.join(names[:4])}" + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _worked(run: Run) -> list[HostResult]:
    return [host for host in run.hosts if host.outcome != "skipped"]


def _left(run: Run) -> str:
    return f"; {count(len(run.skipped), 'host')} skipped" if run.skipped else ""


def _praise(run: Run) -> str:
    """Say "ready" where each host showed a GPU, and apply only what verify would say, too.

    An apply that changed nothing ran no active check, so it does not.
    """
    proved = run.hosts and all(host.gpu_checks for host in run.hosts)
    known = run.verb == "verify" or (run.verb == "apply" and all(map(_examined, run.hosts)))
    number = len(_worked(run))
    if run.verb == "explain":
        return f"none of these checks failed on {count(number, 'node')}"
    if proved and known:
        return f"{count(number, 'node')} {'is' if number == 1 else 'are'} ready"
    return f"{count(number, 'node')} {'matches its' if number == 1 else 'match their'} spec"


def _doubt(run: Run) -> str:
    """What apply leaves open, and verify does not."""
    open_ones = sum(
        check.status == "unknown" and counts("verify", host, check) for host in run.hosts for check in host.checks
    )
    return f", but {count(open_ones, 'check is', 'checks are')} unknown: verify fails" if open_ones else ""


def _examined(host: HostResult) -> bool:
    """Whether the active checks ran, and none is unknown."""
    return host.examined and not any(counts("verify", host, check) for check in host.checks)


def _gpu_words(run: Run) -> str:
    total = sum(host.gpu_checks for host in run.hosts)
    without = sum(not host.gpu_checks for host in _worked(run))
    if not total:
        return "no GPU was tested"
    return count(total, "GPU check") + (f", none on {count(without, 'host')}" if without else "")


def _tally(run: Run) -> str:
    seen = Counter(blocks.result_word(run, host) for host in run.everyone)
    words = ", ".join(
        f"{number} {'differ' if word == 'differs' and number > 1 else word}" for word, number in seen.items()
    )
    if len(seen) == 1 and len(run.everyone) > 1:
        words = f"all {words}"
    return f"{count(len(run.everyone), 'host')}: {words}" if words else "no host was attempted"
