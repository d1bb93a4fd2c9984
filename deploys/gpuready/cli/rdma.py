"""``gpuready rdma attach | detach | list``: an RDMA device and its interface for one container, and back."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gpuready.cli.apply import YES, change, consent
from gpuready.cli.complete import hosts
from gpuready.cli.online import online
from gpuready.cli.options import EXIT_CODES, HostVerb, probe_options
from gpuready.cli.request import Request, request
from gpuready.core.errors import UsageError
from gpuready.tools.attach.move_plan import Asked

if TYPE_CHECKING:
    from gpuready.cli.online import Execute
    from gpuready.report.run import Run

_HELP = """Move an RDMA device and its network interface into a running container, or back to the host.

\b
  gpuready rdma attach gpu13 -i hosts.yaml --container train --device mlx5_0
  gpuready rdma list   -i hosts.yaml
  gpuready rdma detach gpu13 -i hosts.yaml --device mlx5_0
"""
_ATTACH = """Move an RDMA device and its interface into a container's network namespace (RDMA in exclusive mode).

Addresses, MTU, routes and the link state move with the interface; the node keeps a record to restore them. HOST is a
name, group or glob of the inventory. Without --device only the interface moves, which also works in shared mode.

\b
  gpuready rdma attach gpu13 -i hosts.yaml --container train --device mlx5_0 --dry-run
  gpuready rdma attach gpu13 -i hosts.yaml --container ml/worker-0 --engine cri --device mlx5_0 --yes
  gpuready rdma attach 'gpu*' -i hosts.yaml --container train --netdev ens1f0np0 --yes --output json
"""
_DETACH = """Move what attach gave to a container back to the host, even if the container has ended.

\b
  gpuready rdma detach gpu13 -i hosts.yaml --container train       all that it has
  gpuready rdma detach gpu13 -i hosts.yaml --device mlx5_0 --yes
"""
_LIST = """List what is attached to which container, from the records on the nodes and their current state.

\b
  gpuready rdma list -i hosts.yaml
  gpuready rdma list gpu13 -i hosts.yaml --output json
"""
_NAMES = {
    "container": re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,252})?"),
    "device": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"),
    "netdev": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}"),
}
_HOST = click.argument("host", metavar="HOST", shell_complete=hosts)
_DEVICE = click.option("--device", default="", metavar="DEV", help="RDMA device, as in /sys/class/infiniband: mlx5_0.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Check and show it; change nothing.")


@click.group("rdma", help=_HELP, epilog=EXIT_CODES, no_args_is_help=False)
def command() -> None:
    """The group."""


@command.command("attach", cls=HostVerb, help=_ATTACH)
@_HOST
@probe_options
@click.option("--container", required=True, metavar="NAME", help="Running container: name, id, or pod (NAMESPACE/POD).")
@_DEVICE
@click.option(
    "--netdev",
    default="",
    metavar="IF",
    help="Network interface: of the device if that is ambiguous, or without a device.",
)
@click.option("--engine", type=click.Choice(["auto", "docker", "containerd", "cri"]), default="auto",
              help="Engine of the container, if several have that name. containerd: nerdctl, ctr.")  # fmt: skip
@YES
@_DRY_RUN
def attach(
    host: str, container: str, device: str, netdev: str, engine: str, yes: bool, dry_run: bool, **given: Any
) -> int:
    """The exit code."""
    if not device and not netdev:
        raise UsageError(
            "rdma attach: no device and no interface is given", remedy="--device DEV, or --netdev IF, or both"
        )
    return _run(host, Asked("attach", container, device, netdev, engine), given, yes=yes, dry_run=dry_run)


@command.command("detach", cls=HostVerb, help=_DETACH)
@_HOST
@probe_options
@click.option("--container", default="", metavar="NAME", help="Everything that this container or pod has.")
@_DEVICE
@click.option("--netdev", default="", metavar="IF", help="Interface, by its name on the host.")
@YES
@_DRY_RUN
def detach(host: str, container: str, device: str, netdev: str, yes: bool, dry_run: bool, **given: Any) -> int:
    """The exit code."""
    if not (container or device or netdev):
        raise UsageError("rdma detach: nothing is named", remedy="--container NAME, --device DEV or --netdev IF")
    return _run(host, Asked("detach", container, device, netdev), given, yes=yes, dry_run=dry_run)


@command.command("list", cls=HostVerb, help=_LIST)
@click.argument("host", metavar="[HOST]", default="", shell_complete=hosts)
@probe_options
def list_(host: str, **given: Any) -> int:
    """The exit code."""
    wanted = _request("list", host, given)
    run = online(wanted, using=partial(_executor, Asked("list")))
    return wanted.deliver(run)


def _run(host: str, asked: Asked, given: dict[str, Any], *, yes: bool, dry_run: bool) -> int:
    if not host.strip(" ,:"):
        raise UsageError(f"rdma {asked.verb}: HOST is empty", remedy="a name, a group or a pattern of the inventory")
    for option, form in _NAMES.items():
        word = getattr(asked, option)
        if word and not form.fullmatch(word):
            raise UsageError(f"--{option} {word}: not a valid {option} name", remedy="as the node itself writes it")
    if not dry_run:
        consent(f"rdma {asked.verb}", yes)
    wanted = _request(asked.verb, host, given)

    def act(wanted: Request, *, verb: str = "") -> Run:
        return online(wanted, verb=verb, using=partial(_executor, asked))

    if dry_run:
        return wanted.deliver(act(wanted, verb="plan"))
    return change(wanted, yes=yes, act=act)


def _request(verb: str, host: str, given: dict[str, Any]) -> Request:
    """HOST is one more --limit."""
    limit = (*given.pop("limit"), *([host] if host else []))
    return request(f"rdma {verb}", limit=limit, **given)


def _executor(asked: Asked) -> Execute:
    from gpuready.attach_engine import execute

    return partial(execute, asked=asked)
