"""What can be asked of Docker."""

from __future__ import annotations

from typing import Literal

from gpuready.core.fields import ShmSize
from gpuready.core.section import Section


class DockerSpec(Section):
    """Docker is wanted on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime, also of containers that ask for no GPU."""
    live_restore: Literal["auto"] | bool = "auto"
    """Keep containers running while dockerd restarts: auto turns it on where nothing speaks against it."""
    shm_size: ShmSize | None = None
    """The size of /dev/shm in new containers, such as 8g or a number of bytes; left alone unless given."""
    cdi: Literal["auto"] | bool = "auto"
    """CDI devices in Docker (25.0 to 28.1 need a restart for it; 28.2 has them by itself); auto changes nothing."""
    install: Literal[False, "distro"] = False
    """Install Docker where there is none: distro takes the distribution's docker.io."""
