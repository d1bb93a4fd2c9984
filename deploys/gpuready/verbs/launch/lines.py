"""The torchrun line of each host. All hosts get one, or none: the ranks would wait for one that is missing."""

import re
from collections.abc import Mapping

from gpuready.base.errors import UsageError
from gpuready.cli.request import Request
from gpuready.fabric.launch import EPHEMERAL, Job, Launch, NcclError, line, master, notes
from gpuready.network.nccl_settings import Settings
from gpuready.result.model import Run

_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}|[0-9a-fA-F]*:[0-9a-fA-F:.]+")


def check_address(address: str) -> None:
    """Raise UsageError if ``--master-addr`` cannot be an address or a name."""
    if address and not _ADDRESS.fullmatch(address):
        raise UsageError(f"--master-addr {address}: not an address or a host name")


def add_lines(run: Run, wanted: Request, job: Job, found: Mapping[str, Settings]) -> None:
    """Add the torchrun line of each host, and notes; or say why there is none."""
    if any(host.name not in found or host.error is not None for host in run.hosts):
        run.hosts[0].notes.append("no torchrun lines: every host must take part, and at least one has no NCCL settings")
        return
    specs = {entry.name: entry.spec for entry in wanted.entries}
    settings = [found[host.name] for host in run.hosts]
    try:
        address = master(settings[0], job)
    except NcclError as e:
        run.hosts[0].fail(e)
        return
    lines: list[Launch] = []
    for rank, host in enumerate(run.hosts):
        assert host.state is not None
        try:
            lines.append(line(rank, len(settings), address, job, specs[host.name], host.state, settings[rank]))
        except NcclError as e:
            host.fail(NcclError(f"no torchrun line: {e}"))
    if len(lines) < len(settings):
        return
    for host, mine, made in zip(run.hosts, settings, lines, strict=True):
        host.parts["launch"] = made
        host.notes += notes(address, job, mine, made)
    if len({made.processes for made in lines}) > 1:
        run.hosts[0].notes.append("the hosts have different numbers of processes; --nproc-per-node makes them equal")
    if job.port >= EPHEMERAL:
        run.hosts[0].notes.append(
            f"port {job.port} is in Linux's ephemeral range (net.ipv4.ip_local_port_range) and may be in use"
        )
