"""``gpuready nccl``: print NCCL settings and torchrun lines. Nothing changes."""

import re
from collections.abc import Mapping
from typing import Any

import click

from gpuready.base.errors import UsageError
from gpuready.cli.complete import files
from gpuready.cli.online import only_read
from gpuready.cli.options import STATE, HostVerb, Number, probe_options
from gpuready.cli.output import printed
from gpuready.cli.request import Request, request
from gpuready.fabric.launch import EPHEMERAL, MASTER_PORT, Job, Launch, NcclError, line, master, notes
from gpuready.network import torch
from gpuready.network.nccl_settings import Settings, cluster
from gpuready.result.model import HostResult, Run
from gpuready.verbs.nccl.part import FORMS, Nccl, nccl, text

_HELP = """Print the NCCL settings of each host: ports, GIDs and interface, or why they are unknown.

If no host has RDMA, or with nccl: {transport: tcp}, the settings are for TCP. They name the interface whose network all
hosts share.

\b
  gpuready nccl -i hosts.yaml
  gpuready nccl -i hosts.yaml --format docker          arguments for docker run
  gpuready nccl -i hosts.yaml --launch -- train.py --epochs 3
  gpuready nccl -i hosts.yaml --state states.json

--launch prints a torchrun line for each host. The first host of the inventory is rank 0 and the master.
"""
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}|[0-9a-fA-F]*:[0-9a-fA-F:.]+")


@click.command("nccl", cls=HostVerb, help=_HELP)
@probe_options
@STATE
@click.option("--format", "form", type=click.Choice(FORMS), help="Print only the variables, in this format.")
@click.option("--launch", is_flag=True, help="Print the torchrun line of each host.")
@click.option("--master-port", "port", type=Number(1024, 65535), default=MASTER_PORT, show_default=True,
              help="Port on which rank 0 listens.")  # fmt: skip
@click.option(
    "--master-addr", "address", metavar="ADDRESS", default="", help="Default: the first fabric address of rank 0."
)
@click.option("--nproc-per-node", "processes", type=Number(1, 1024), help="Default: the GPUs of each host.")
@click.option("--async-error-handling", "handling", type=click.Choice(tuple(torch.VALUES)), default=torch.DEFAULT,
              show_default=True, help=f"{torch.VARIABLE}: what a rank does when another rank is lost.")  # fmt: skip
@click.argument("script", nargs=-1, metavar="[-- SCRIPT ARGS...]", shell_complete=files)
def command(
    state: str | None, form: str | None, launch: bool, script: tuple[str, ...], port: int, processes: int | None,
    address: str, handling: str, **given: Any,
) -> int:  # fmt: skip
    """The exit code."""
    job = Job(script, port, processes, address, handling)
    _usage(form, launch, job, given)
    wanted = request("nccl", **given)
    run, found = _settled(wanted, state)
    if launch:
        _launch(run, wanted, job, found)
    if form is None:
        return wanted.deliver(run)
    answers = {h.name: mine for h in run.hosts if (mine := nccl(h)) is not None and h.error is None}
    return printed(run, text(answers, form), [target for target in wanted.outputs if target.path], color=wanted.color)


def _usage(form: str | None, launch: bool, job: Job, given: dict[str, Any]) -> None:
    if form and (launch or any(":" not in text for text in given["output"])):
        raise UsageError(
            "--format prints to stdout, and so does --launch or another output",
            remedy="leave out --launch; give each output a file: --output FORMAT:PATH",
        )
    without = bool(given["inventory"]) and not launch  # else a script may be an inventory without -i
    if without and (job.script or job.processes or job.address or job.port != MASTER_PORT):
        raise UsageError("a script, --nproc-per-node and --master-... need --launch", remedy="add --launch")
    if job.address and not _ADDRESS.fullmatch(job.address):
        raise UsageError(f"--master-addr {job.address}: not an address or a host name")


def _settled(wanted: Request, state: str | None) -> tuple[Run, dict[str, Settings]]:
    """Return the run with each host's settings, or why it has none. ``state``: recorded states; None connects."""
    run = only_read(wanted, state)
    specs = {entry.name: entry.spec for entry in wanted.entries}
    states = {host.name: host.state for host in run.hosts if host.state is not None and host.error is None}
    found = cluster(states, specs)
    for host in run.hosts:
        if host.name not in found:
            continue
        settings = found[host.name]
        host.parts["nccl"] = Nccl.of(settings)
        host.notes += settings.notes
        if settings.problems:
            host.fail(NcclError("; ".join(settings.problems), remedy="gpuready explain nccl.ports"))
    _compare([host for host in run.hosts if host.error is None])
    return run, found


def _compare(hosts: list[HostResult]) -> None:
    """Note the variables that differ between hosts: one environment for all ranks would be wrong."""
    variables = {host.name: found.variables for host in hosts if (found := nccl(host)) is not None}
    for name in dict.fromkeys(name for of_host in variables.values() for name in of_host):
        if len({of_host.get(name) for of_host in variables.values()}) > 1:
            for host in hosts:
                if host.name in variables:
                    value = variables[host.name].get(name)
                    here = "is not set" if value is None else f"is {value}"
                    host.notes.append(f"{name} {here}; the hosts differ, so give each host its own value")


def _launch(run: Run, wanted: Request, job: Job, found: Mapping[str, Settings]) -> None:
    """Add the torchrun line of each host, or of none: the ranks would wait for one that is missing."""
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
            host.fail(NcclError(f"no launch line: {e}"))
    if len(lines) < len(settings):
        return
    for host, mine, made in zip(run.hosts, settings, lines, strict=True):
        host.parts["nccl"] = Nccl.of(mine, made)
        host.notes += notes(address, job, mine, made)
    if len({made.processes for made in lines}) > 1:
        run.hosts[0].notes.append("the hosts have different numbers of processes; --nproc-per-node makes them equal")
    if job.port >= EPHEMERAL:
        run.hosts[0].notes.append(
            f"port {job.port} is in Linux's ephemeral range (net.ipv4.ip_local_port_range) and may be in use"
        )
