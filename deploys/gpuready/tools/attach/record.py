"""What is on record on the node while something is attached: where it went, and what it was on the host before.

One file each below :data:`FOLDER`, written before the first move, so that a run which is cut leaves the way back.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gpuready.tools.attach.netdev import Interface

FOLDER = "/var/lib/gpuready/attached"


class Record(BaseModel):
    """One device, one interface, or both. ``netns`` is the namespace's inode, ``boot`` the boot in which it was one.

    ``before`` is the interface on the host; ``clock`` the node's time in seconds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        """The interface's name, empty if only the RDMA device was given."""
        return self.before.name if self.before else ""

    @property
    def key(self) -> str:
        """The record's name."""
        return self.device or self.netdev

    @property
    def where(self) -> str:
        """In words."""
        return f"pod {self.pod}" if self.pod else f"container {self.container or self.id[:12]} ({self.engine})"


def path(key: str) -> str:
    """Where the record of that name lies."""
    return f"{FOLDER}/{key}.json"
