"""``gpuready rdma attach | detach | list``: an RDMA device and its interface for one container, and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from gpuready.base.errors import UsageError
from gpuready.cli.change import YES, change, consent
from gpuready.cli.complete import hosts
from gpuready.cli.online import online
from gpuready.cli.options import EXIT_CODES, HostVerb, probe_options
from gpuready.cli.request import Request, request
from gpuready.run.access import Work
from gpuready.verbs.rdma.move_plan import Asked

if TYPE_CHECKING:
    from gpuready.result.model import Run

_HELP = """Move an RDMA device and its network interface into a running container, or back to the host.

\b
  gpuready rdma attach gpu13 -i hosts.yaml --container train --device mlx5_0
  gpuready rdma list   -i hosts.yaml
  gpuready rdma detach gpu13 -i hosts.yaml --device mlx5_0
"""
_ATTACH = """Move an RDMA device and its interface into a container's network namespace (RDMA in exclusive mode).

Addresses, MTU, routes and the link state move with the interface; the node keeps a record to restore them. HOST is a
name, group or glob of the inventory. Without --device, only the interface moves; this also works in shared mode.

\b
  gpuready rdma attach gpu13 -i hosts.yaml --container train --device mlx5_0 --dry-run
  gpuready rdma attach gpu13 -i hosts.yaml --container ml/worker-0 --engine cri --device mlx5_0 --yes
  gpuready rdma attach 'gpu*' -i hosts.yaml --container train --netdev ens1f0np0 --yes --output json
"""
_DETACH = """Move attached devices and interfaces back to the host, even if the container has ended.

\b
  gpuready rdma detach gpu13 -i hosts.yaml --container train       everything attached to it
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
_ACT = "gpuready.verbs.rdma.work:act"
_HOST = click.argument("host", metavar="HOST", shell_complete=hosts)
_DEVICE = click.option("--device", default="", metavar="DEV", help="RDMA device, as in /sys/class/infiniband: mlx5_0.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Check the request and show the steps; change nothing.")


@click.group("rdma", help=_HELP, epilog=EXIT_CODES, no_args_is_help=True)
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
    help="Network interface. Needed without --device, or if the device has several.",
)
@click.option("--engine", type=click.Choice(["auto", "docker", "containerd", "cri"]), default="auto",
              help="Engine of the container, if several have that name. nerdctl and ctr: containerd.")  # fmt: skip
@YES
@_DRY_RUN
def attach(container: str, device: str, netdev: str, engine: str, yes: bool, dry_run: bool, **given: Any) -> int:
    """The exit code."""
    if not device and not netdev:
        raise UsageError(
            "rdma attach: no device and no interface is given", remedy="add --device DEV, --netdev IF or both"
        )
    return _run(Asked("attach", container, device, netdev, engine), given, yes=yes, dry_run=dry_run)


@command.command("detach", cls=HostVerb, help=_DETACH)
@_HOST
@probe_options
@click.option(
    "--container", default="", metavar="NAME", help="Move back everything that is attached to this container or pod."
)
@_DEVICE
@click.option("--netdev", default="", metavar="IF", help="Interface, by its name on the host.")
@YES
@_DRY_RUN
def detach(container: str, device: str, netdev: str, yes: bool, dry_run: bool, **given: Any) -> int:
    """The exit code."""
    if not (container or device or netdev):
        raise UsageError("rdma detach: nothing is named", remedy="add --container NAME, --device DEV or --netdev IF")
    return _run(Asked("detach", container, device, netdev), given, yes=yes, dry_run=dry_run)


@command.command("list", cls=HostVerb, help=_LIST)
@click.argument("host", metavar="[HOST]", required=False, shell_complete=hosts)
@probe_options
def list_(**given: Any) -> int:
    """The exit code."""
    wanted = request("rdma list", **given)
    return wanted.deliver(online(wanted, using=Work(_ACT, {"asked": Asked("list")})))


def _run(asked: Asked, given: dict[str, Any], *, yes: bool, dry_run: bool) -> int:
    for option, form in _NAMES.items():
        word = getattr(asked, option)
        if word and not form.fullmatch(word):
            raise UsageError(
                f"--{option} {word}: not a valid {option} name", remedy="write the name as the node shows it"
            )
    if not dry_run:
        consent(f"rdma {asked.verb}", yes)
    wanted = request(f"rdma {asked.verb}", **given)

    def act(wanted: Request, *, verb: str = "") -> Run:
        return online(wanted, verb=verb, using=Work(_ACT, {"asked": asked, "dry_run": verb == "plan"}))

    if dry_run:
        return wanted.deliver(act(wanted, verb="plan"))
    return change(wanted, yes=yes, act=act)
