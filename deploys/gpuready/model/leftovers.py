"""Leftovers of a driver update on a running node, as templates/lib/leftovers.sh.j2 finds them."""

import re
from collections.abc import Mapping, Sequence

from gpuready.base.facts import Facts


class Holder(Facts):
    """A process that still uses a deleted library of the driver. ``cgroup`` identifies its container."""

    pid: int
    name: str
    cgroup: str
    library: str

    @property
    def container(self) -> str:
        """The first 12 digits of its container's id; empty outside a container."""
        found = re.search(r"([0-9a-f]{12})[0-9a-f]{52}", self.cgroup)
        return found[1] if found else ""


class Leftovers(Facts):
    """Everything that is stale after the update. ``unread``: why the holders are unknown.

    ``unlinked``: device nodes without a link in /dev/char. ``misnumbered``: device nodes whose number is not that of
    the module. ``firmware``: the driver versions whose GSP firmware is on disk. ``peers``: modules that are built for
    one driver and not loaded. ``persistenced_old``: nvidia-persistenced runs from a replaced file.
    ``persistenced_no_socket``: there is no socket of its own, as is usual where it does not run.
    """

    unlinked: tuple[str, ...] = ()
    misnumbered: tuple[str, ...] = ()
    firmware: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()
    unread: str = ""
    persistenced_old: bool = False
    persistenced_no_socket: bool = False


def leftovers(values: Mapping[str, Sequence[str]], held: str, unread: str) -> Leftovers:
    """Parse the probe's values and its list of holders; ignore rows of another form."""
    rows = (row.split("\t") for row in held.splitlines())
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
        persistenced_no_socket="persistenced_no_socket" in values,
    )
