"""The test ``loopback``: each RDMA port of a host writes to itself, to find the one port that is slow.

The data goes from memory to the NIC and back, and never over a cable. So a low figure comes from the NIC or its PCIe
slot. The network's counters need not show such data, so they prove nothing here; ib_write_bw itself uses nothing but
RDMA. What is fast enough depends on the PCIe slot, too, so a port is compared with the other ports of its host. Azure's
health checks test a NIC like this, with a limit for each type of machine (azurehpc-health-checks, ib_write_bw_gdr).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from gpuready.fabric.commands import TESTS
from gpuready.fabric.verdict import Finding, skipped
from gpuready.network.links import End

TEST = TESTS["loopback"]
_SLOW_LINE = (
    "compare its speed (ethtool; ibstat), cable and switch port with those of the others; ignore this if its NIC is of "
    "another model"
)


def nothing(host: str) -> Finding:
    """Return the finding of a host without a port of the fabric."""
    end = End(host, "rdma", 0)
    return replace(skipped(TEST, end, end, "no RDMA port of the fabric"), remedy="gpuready nccl")


def compared(found: Sequence[Finding], shares: Mapping[str, float]) -> list[Finding]:
    """Judge each port by the median of the others of its host with the same line rate. ``shares``: of it, by host."""
    return [_compared(each, found, shares[each.client.host]) for each in found]


def _compared(one: Finding, found: Sequence[Finding], share: float) -> Finding:
    if one.status != "pass" or one.value is None:
        return one
    line, siblings = one.client.line_gbps, [each for each in found if each.client.host == one.client.host]
    siblings.remove(one)
    others = [each.value for each in siblings if each.client.line_gbps == line and each.value is not None]
    lines = [each.client.line_gbps for each in siblings if each.client.line_gbps is not None]
    judged = _of_one_rate(one, others, share)
    if judged.status == "pass" and line is not None and lines and line < median(lines):
        summary = (
            f"its line rate is {line:g} Gbit/s, that of the host's other ports {median(lines):g}; {judged.summary}"
        )
        return replace(judged, status="warn", summary=summary, remedy=_SLOW_LINE)
    return judged


def _of_one_rate(one: Finding, others: Sequence[float], share: float) -> Finding:
    shown = _figure(one)
    if one.client.line_gbps is None or one.value is None:
        return replace(one, summary=f"{shown} (no limit: its line rate is unknown)")
    if not others:
        return replace(one, summary=f"{shown} (no limit: no other port of its line rate has a figure)")
    usual = median(others)
    if one.value >= share * usual:
        return replace(one, limit=share * usual, summary=f"{shown} (median of the others: {usual:.4g})")
    summary = f"{shown}, below {share:g} of {usual:.4g}, the median of the host's other ports"
    return replace(one, status="fail", limit=share * usual, summary=summary, remedy="gpuready explain fabric.loopback")


def _figure(one: Finding) -> str:
    return "" if one.value is None else f"{one.value:.4g} {one.unit}"


def summary(found: Sequence[Finding]) -> str:
    """Return what the ports of hosts add to the summary of a search."""
    if bad := [each for each in found if each.status in ("fail", "warn")]:
        return "".join(f"; {each.client}, tested by itself: {each.summary}" for each in bad)
    if unknown := list(dict.fromkeys(each.summary for each in found if each.status != "pass")):
        return f"; its ports were not all tested by themselves: {'; '.join(unknown)}"
    if alone := [each for each in found if each.limit is None]:
        rates = (f" of {each.client.line_gbps:g}" if each.client.line_gbps else "" for each in alone)
        return "".join(
            f"; {each.client} cannot be compared with another port: {_figure(each)}{rate}"
            for each, rate in zip(alone, rates, strict=True)
        )
    return "; each of its RDMA ports is fast by itself: look at cables and switch ports" if found else ""
