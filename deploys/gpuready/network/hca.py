"""NCCL_IB_HCA as NCCL reads it: a list of names, each a prefix unless the whole list begins with ``=``.

``^`` in front (before ``=``) excludes. A port number is optional. Source: NCCL's user guide.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuready.network.ports import Port


@dataclass(frozen=True)
class Hca:
    """A value of NCCL_IB_HCA; ``entries`` are name and port (None: each)."""

    exact: bool
    excludes: bool
    entries: tuple[tuple[str, int | None], ...]

    def selects(self, port: Port) -> bool:
        """Would NCCL use this port, if it is active?"""
        return any(self.names(entry, port) for entry in self.entries) != self.excludes

    def names(self, entry: tuple[str, int | None], port: Port) -> bool:
        """Does one entry of the list mean this port?"""
        name, number = entry
        same = port.device == name if self.exact else port.device.startswith(name)
        return same and number in (None, port.number)


def read(value: str) -> Hca:
    """Of an entry NCCL takes what stands behind a second colon for other things, and what is no number for 0."""
    excludes = value.startswith("^")
    rest = value.removeprefix("^")
    exact = rest.startswith("=")
    entries = []
    for entry in rest.removeprefix("=").split(","):
        name, colon, after = entry.partition(":")
        number = after.partition(":")[0]
        if name:
            entries.append((name, (int(number) if number.isascii() and number.isdigit() else 0) if colon else None))
    return Hca(exact, excludes, tuple(entries))
