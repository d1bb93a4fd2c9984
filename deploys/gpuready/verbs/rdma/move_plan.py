"""The request of the command line, and the plan of one move on one node."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpuready.base.step import Script
from gpuready.contract.component import Change
from gpuready.verbs.rdma.netdev import Interface

HOST = "host"


@dataclass(frozen=True)
class Asked:
    """The request: ``verb`` is attach, detach or list. An option that was not given is empty."""

    verb: str
    container: str = ""
    device: str = ""
    netdev: str = ""
    engine: str = "auto"


class AttachArgs(Script, template="verbs/rdma/attach"):
    """Move a device and its interface into a container's network namespace."""

    device: str
    netdev: str
    interface: str
    path: str
    inode: int
    where: str
    record: str
    content: str
    back: str
    settings_back: tuple[str, ...]
    commands: str
    settings_inside: tuple[str, ...]


class DetachArgs(Script, template="verbs/rdma/detach"):
    """Move a device and its interface back to the host."""

    inode: int
    where: str
    record: str
    device: str = ""
    netdev: str = ""
    netdev_now: str = ""
    path: str = ""
    back: str = ""
    settings_back: tuple[str, ...] = ()


Args = TypeVar("Args", bound=AttachArgs | DetachArgs, covariant=True)


@dataclass(frozen=True)
class MovePlan(Generic[Args]):
    """One move: the keys that differ, the script of the step that closes the difference, and who is affected."""

    diff: tuple[Change, ...]
    args: Args
    affected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def differing(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return those whose actual value is not the expected one."""
    return tuple(change for change in changes if change.actual != change.expected)


def configured(verb: str, want: Interface, seen: Interface | None) -> Iterator[Change]:
    """Yield which part of the configuration ``want`` an interface already has (None: the interface is missing)."""
    plain, routes = (seen.plain, seen.routes) if seen else ((), ())
    key = f"{verb}.{want.name}"
    yield Change(f"{key}.addresses", tuple(address for address in want.plain if address in plain), want.plain)
    yield Change(f"{key}.routes", tuple(route for route in want.routes if route in routes), want.routes)
    yield Change(f"{key}.mtu", seen.mtu if seen else None, want.mtu)
    yield Change(f"{key}.up", seen.up if seen else None, want.up)
