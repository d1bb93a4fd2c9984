"""Parse NCCL_IB_HCA as NCCL does: a list of names, each a prefix unless the whole list begins with ``=``.

``^`` in front (before ``=``) excludes. A port number is optional. Source: NCCL's user guide.
"""

from dataclasses import dataclass

from gpuready.network.ports import Port


@dataclass(frozen=True)
class Hca:
    """A value of NCCL_IB_HCA. ``entries`` are name and port (None: every port)."""

    exact: bool
    excludes: bool
    entries: tuple[tuple[str, int | None], ...]

    def selects(self, port: Port) -> bool:
        """Tell whether NCCL would use this port if it is active."""
        return any(self.names(entry, port) for entry in self.entries) != self.excludes

    def names(self, entry: tuple[str, int | None], port: Port) -> bool:
        """Tell whether an entry of the list matches this port."""
        name, number = entry
        same = port.device == name if self.exact else port.device.startswith(name)
        return same and number in (None, port.number)


def read(value: str) -> Hca:
    """Parse a value. NCCL ignores the text after a second colon, and reads a port that is not a number as 0."""
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
