"""Judge what only several hosts together show: the racks of the run, and IMEX's lists of nodes in them."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from gpuready.gpu import imex
from gpuready.inventory.hosts import HostEntry
from gpuready.result.model import CheckResult, HostResult


def compare(hosts: Iterable[HostResult], entries: Iterable[HostEntry]) -> None:
    """Add the checks to the results of the hosts in racks."""
    results, of_host = {host.name: host for host in hosts}, {entry.name: entry for entry in entries}
    members = {
        name: replace(host.member, rack=spread[1] if (spread := of_host[name].spread) else "")
        for name, host in results.items()
        if host.member is not None
    }
    specs = {name: of_host[name].spec for name in members}
    for name, judged in imex.judge(members, specs, date.today()).items():
        results[name].checks += map(CheckResult.of, judged)
