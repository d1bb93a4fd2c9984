"""What an update of the driver leaves behind on a running node, as templates/lib/leftovers.sh.j2 found it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Holder(_Model):
    """A process with a deleted library of the driver, mapped or mounted; ``cgroup`` tells its container."""

    pid: int
    name: str
    cgroup: str
    library: str

    @property
    def container(self) -> str:
        """The first 12 digits of its container's id; empty outside of containers."""
        found = re.search(r"([0-9a-f]{12})[0-9a-f]{52}", self.cgroup)
        return found[1] if found else ""


class Leftovers(_Model):
    """All of it. ``unread`` says why the holders could not be looked for.

    ``unlinked`` are device nodes without a link in /dev/char, ``misnumbered`` those of another number than the module,
    ``firmware`` the driver versions whose GSP firmware is on disk, ``peers`` modules built for one driver that are not
    loaded, ``persistenced_old``: nvidia-persistenced runs from a file that was replaced.
    """

    unlinked: tuple[str, ...] = ()
    misnumbered: tuple[str, ...] = ()
    firmware: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()
    unread: str = ""
    persistenced_old: bool = False


def leftovers(values: Mapping[str, Sequence[str]], held: str, unread: str) -> Leftovers:
    """Out of the probe's values and its list of holders; rows that are none of its own are left out."""
    rows = [row.split("\t") for row in held.splitlines()]
    return Leftovers(
        unlinked=tuple(values.get("unlinked", [])),
        misnumbered=tuple(values.get("misnumbered", [])),
        firmware=tuple(values.get("gsp", [])),
        peers=tuple(values.get("peer", [])),
        holders=tuple(
            Holder(pid=int(row[0]), name=row[1], cgroup=row[2], library=row[3])
            for row in rows
            if len(row) == 4 and re.fullmatch(r"[0-9]{1,9}", row[0], re.A)
        ),
        unread=unread,
        persistenced_old="persistenced_old" in values,
    )
