"""What was asked for, and what has to be done for it on one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuready.core.component import Change, Value
from gpuready.tools.attach.netdev import Interface

HOST = "host"


@dataclass(frozen=True)
class Asked:
    """The command line: ``verb`` is attach, detach or list; what was not named is empty."""

    verb: str
    container: str = ""
    device: str = ""
    netdev: str = ""
    engine: str = "auto"


@dataclass(frozen=True)
class Deed:
    """One thing to do: what differs, whom it hits, and what the step's template takes."""

    diff: tuple[Change, ...]
    hits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)


def difference(want: Mapping[str, Value], seen: Mapping[str, Value]) -> tuple[Change, ...]:
    """The keys of ``want`` that ``seen`` does not have so."""
    return tuple(Change(key, seen.get(key), value) for key, value in want.items() if seen.get(key) != value)


def config(verb: str, want: Interface, seen: Interface | None) -> dict[str, Value]:
    """Of what ``want`` says, what ``seen`` has."""
    plain, routes = (seen.plain, seen.routes) if seen else ((), ())
    found: dict[str, Value] = {}
    if want.plain:
        found[f"{verb}.{want.name}.addresses"] = tuple(a for a in want.plain if a in plain)
    if want.routes:
        found[f"{verb}.{want.name}.routes"] = tuple(route for route in want.routes if route in routes)
    found[f"{verb}.{want.name}.mtu"] = seen.mtu if seen else None
    found[f"{verb}.{want.name}.up"] = seen.up if seen else None
    return found
