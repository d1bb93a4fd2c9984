"""What can be asked of containerd."""

from __future__ import annotations

from typing import Literal

from gpuready.core.fields import Path, Unit
from gpuready.core.section import Section


class ContainerdSpec(Section):
    """containerd is wanted on this node, with these settings."""

    service: Unit = "containerd"
    """The systemd unit."""
    config: Path = "/etc/containerd/config.toml"
    """Its configuration file."""
    default_runtime: bool = False
    """Make nvidia the default runtime."""
    cdi: Literal["auto"] | bool = "auto"
    """CDI devices in containerd (enable_cdi): auto leaves it as it is."""
