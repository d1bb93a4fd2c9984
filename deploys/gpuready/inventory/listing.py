"""A chosen host as ``gpuready inventory`` lists it: the values of its spec, each with its place."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpuready.base.documents import read_json
from gpuready.base.part import OPTIONAL, Part
from gpuready.inventory.hosts import HostEntry
from gpuready.inventory.source_values import Located, plain


@dataclass(frozen=True)
class Setting(Part):
    """A value of the spec that the inventory sets."""

    keyed: ClassVar[tuple[str, ...]] = ("value",)

    key: str
    """Its path, with dots."""
    value: Any
    """The value."""
    where: str
    """Its file and line."""


@dataclass(frozen=True)
class Listed(Part):
    """inventory: a chosen host."""

    where: str
    """The place that names the host first."""
    groups: tuple[str, ...]
    """The groups of the host, without ``all``."""
    address: str
    """Its address."""
    user: str | None
    """The user who logs in; null: ssh's configuration decides."""
    port: int | None
    """The port of SSH; null: ssh's configuration decides."""
    settings: tuple[Setting, ...]
    """The merged values of gpuready."""
    spec: dict[str, Any]
    """The whole spec, with defaults."""
    hostname: str | None = field(default=None, metadata=OPTIONAL)
    """The HostName of the address in ~/.ssh/config, to which ssh connects."""


def listed(entry: HostEntry, hostname: str | None = None) -> Listed:
    """The host, with the values it has set itself or inherited, in the order of their keys."""
    there = entry.connection
    return Listed(
        str(entry.source), entry.groups, there.address, there.user, there.port,
        tuple(sorted(_settings(entry.given), key=lambda each: each.key)), entry.spec.model_dump(mode="json"),
        hostname,
    )  # fmt: skip


def _settings(value: Located, path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every scalar and list below ``value``; a list replaces as a whole, so it has one place."""
    if isinstance(value.value, dict):
        for key, below in value.value.items():
            yield from _settings(below, (*path, str(key)))
    elif path and value.value is not None:
        as_json = read_json(json.dumps(plain(value), default=str))  # a date becomes text
        yield Setting(".".join(path), as_json, str(value.where))
