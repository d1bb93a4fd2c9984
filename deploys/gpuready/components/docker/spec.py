"""The spec of Docker."""

from typing import Literal

from gpuready.base.fields import ShmSize
from gpuready.base.section import Section


class DockerSpec(Section):
    """Docker is required on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime, even for containers that do not request a GPU."""
    live_restore: Literal["auto"] | bool = "auto"
    """Keep containers running while dockerd restarts: auto turns it on if the node's configuration permits it."""
    shm_size: ShmSize | None = None
    """The size of /dev/shm in new containers, such as 8g or a number of bytes; unchanged by default."""
    cdi: Literal["auto"] | bool = "auto"
    """CDI devices in Docker (25.0 to 28.1 need a restart; 28.2 enables them by default); auto changes nothing."""
    install: Literal[False, "distro"] = False
    """Install Docker if it is missing: distro installs docker.io, with dnf moby-engine, docker or docker-ce."""
