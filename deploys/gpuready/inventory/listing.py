"""A chosen host as ``gpuready inventory`` lists it: the values of its spec, each with its place."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuready.base.documents import read_json
from gpuready.inventory.hosts import HostEntry
from gpuready.inventory.source_values import Located, plain


@dataclass(frozen=True)
class Setting:
    """A value of the spec that the inventory sets. ``key``: its path, with dots. ``where``: its file and line."""

    key: str
    value: Any
    where: str


@dataclass(frozen=True)
class Listed:
    """A chosen host, as the inventory describes it; the result document has the same fields.

    ``where``: the place that names the host first. ``groups``: without ``all``. ``user``, ``port``: null if ssh's
    configuration decides. ``settings``: the merged gpuready values. ``spec``: the whole spec, with defaults.
    """

    where: str
    groups: tuple[str, ...]
    address: str
    user: str | None
    port: int | None
    settings: tuple[Setting, ...]
    spec: dict[str, Any]


def listed(entry: HostEntry) -> Listed:
    """The host, with the values it has set itself or inherited, in the order of their keys."""
    there = entry.connection
    return Listed(
        str(entry.source), entry.groups, there.address, there.user, there.port,
        tuple(sorted(_settings(entry.given), key=lambda each: each.key)), entry.spec.model_dump(mode="json"),
    )  # fmt: skip


def _settings(value: Located, path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every scalar and list below ``value``; a list replaces as a whole, so it has one place."""
    if isinstance(value.value, dict):
        for key, below in value.value.items():
            yield from _settings(below, (*path, str(key)))
    elif path and value.value is not None:
        as_json = read_json(json.dumps(plain(value), default=str))  # a date becomes text
        yield Setting(".".join(path), as_json, str(value.where))
