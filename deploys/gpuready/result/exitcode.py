"""The exit code of a run: from its error, and from what became of its hosts; of several, the worst.

An error has the code of its class: ``exit_code`` in base/errors.py, or where a class of one module is defined. What
fails before there is a run has its code from cli/failure.py. The exit status of a script on a node is another thing:
templates/lib/PROTOCOL.md.
"""

from __future__ import annotations

from gpuready.base.errors import EXIT_CODES
from gpuready.result.model import CheckResult, HostResult, Run
from gpuready.result.verbs import VERBS

MEANING = {
    0: "success",
    1: "a host failed; plan: a host cannot be converged; bundle: a host, a file or a signature failed",
    2: "plan and status, only with --detailed-exitcode: a host differs from its spec",
    3: "; ".join(f"{name}: {verb.code_3}" for name, verb in VERBS.items() if verb.code_3),
    4: "a host is unreachable",
    5: "the inventory or a spec is invalid, or no host matched; report: a document cannot be read",
    6: "some hosts were not attempted",
    7: "some changes are pending: they wait for permission or for an idle node; or you answered no",
    64: "wrong usage",
    70: "a bug in gpuready",
    74: "the result cannot be written",
    130: "interrupted",
}


def meaning(code: int, verb: str) -> str:
    """What the code means after that verb."""
    parts = MEANING[code].split("; ")
    word = f"{verb.partition(' ')[0]}: "
    own = [part.removeprefix(word) for part in parts if part.startswith(word)]
    return (own or parts)[0]


#: Verdicts that make a verb fail. A plan only shows: what it finds wrong may be what apply would mend.
_BAD = {"plan": (), "apply": ("fail",)}
_BAD_OF_OTHERS = ("fail", "unknown")


def exit_code(run: Run, *, detailed: bool = False) -> int:
    """The run's exit code; ``detailed``: with ``--detailed-exitcode``."""
    codes = {0}
    if run.error is not None:
        codes.add(run.error.exit_code)
    if run.part.fails(run):
        codes.add(3)
    for host in run.hosts:
        codes |= _of_host(run.verb, host, detailed=detailed)
    return next(code for code in EXIT_CODES if code in codes)


def failed(run: Run, host: HostResult) -> bool:
    """Whether the run fails by this host: it was not reached or not begun, differs in verify, or has bad checks."""
    return bool(_of_host(run.verb, host, detailed=False) - {0, 7} or run.part.failing(host))


def _of_host(verb: str, host: HostResult, *, detailed: bool) -> set[int]:
    codes = {
        "unreachable": {4},
        "not_attempted": {6},
        "pending": {7},
        "would_change": {2} if detailed else {3} if verb == "verify" else {0},
    }.get(host.outcome, {0})
    if host.outcome == "failed" and host.error is not None:
        codes = codes | {host.error.exit_code}
    elif host.outcome == "failed" or any(
        item.error is not None and item.error.exit_code != 4 for item in host.components
    ):
        # A blocked component is not known to match the spec. verify changes nothing, so there it is no failed host.
        codes = codes | {3 if verb == "verify" else 1}
    if any(counts(verb, host, check) for check in host.checks):
        codes = codes | {3}
    return codes


def counts(verb: str, host: HostResult, check: CheckResult) -> bool:
    """Does this verdict make the run fail? Not if a change is pending: checks that need it cannot pass yet."""
    if check.status == "unknown" and check.advisory:
        return False
    return check.status in _BAD.get(verb, _BAD_OF_OTHERS) and host.outcome != "pending"
