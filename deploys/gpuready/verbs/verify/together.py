"""Judge what only several hosts together show: the racks of the run, and IMEX's lists of nodes in them."""

from collections.abc import Iterable
from datetime import date

from gpuready.gpu import imex
from gpuready.inventory.hosts import HostEntry
from gpuready.result.model import CheckResult, HostResult


def compare(hosts: Iterable[HostResult], entries: Iterable[HostEntry]) -> None:
    """Add the checks to the results of the hosts that were read and judged."""
    read = {host.name: host for host in hosts if host.checks and host.state is not None}
    members = {
        entry.name: imex.Member(entry.spec, state, entry.spread[1] if entry.spread else "")
        for entry in entries
        if entry.name in read and (state := read[entry.name].state) is not None
    }
    for name, judged in imex.judge(members, date.today()).items():
        read[name].checks += map(CheckResult.of, judged)
