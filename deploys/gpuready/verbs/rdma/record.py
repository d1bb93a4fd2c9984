"""The record on the node of an attached device or interface: where it is, and how it was configured on the host.

Each is one file in :data:`FOLDER`, written before the first move: after an interrupted run, detach still works.
"""

from gpuready.base.facts import Facts
from gpuready.verbs.rdma.netdev import Interface

FOLDER = "/var/lib/gpuready/attached"


class Record(Facts):
    """One device, one interface, or both. ``netns`` is the inode of the namespace, valid only in the boot ``boot``.

    ``before``: the interface as it was on the host. ``clock``: when it was attached, in seconds since 1970.
    """

    format: int = 1
    device: str = ""
    before: Interface | None = None
    engine: str
    container: str
    id: str
    pod: str = ""
    netns: int
    boot: str
    clock: int

    @property
    def netdev(self) -> str:
        """The interface's name; empty if only the RDMA device was attached."""
        return self.before.name if self.before else ""

    @property
    def key(self) -> str:
        """The record's name."""
        return self.device or self.netdev

    @property
    def where(self) -> str:
        """The container, for messages."""
        return label(self.pod, self.container, self.id, self.engine)


def label(pod: str, container: str, id: str, engine: str) -> str:
    """Name a container in messages: by its pod, else by its name or id."""
    return f"pod {pod}" if pod else f"container {container or id[:12]} ({engine})"


def goes_by(name: str, pod: str, container: str, id: str) -> bool:
    """Tell whether ``name`` is a container's name, its id or the start of it, its pod, or NAMESPACE/POD."""
    return name in (container, id, pod, pod.partition("/")[2]) or (len(name) >= 6 and id.startswith(name))


def path(key: str) -> str:
    """Return the path of the record of that name."""
    return f"{FOLDER}/{key}.json"
