"""The driver's libraries as the dynamic linker sees them: their directories and versions."""

import re

from gpuready.model.state import NodeState, Unknown

#: Where platforms put the driver's libraries if no package installs them.
DRIVER_DIRS = (
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/var/lib/nvidia/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/run/opengl-driver/lib",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/wsl/lib",
    "/cm/local/apps/cuda/libs/current/lib64",
)


def library_version(realpath: str) -> str:
    """``libcuda.so.580.159.04`` -> ``580.159.04``; empty for a name without a version."""
    m = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", realpath)
    return m[1] if m else ""


def other_library(state: NodeState) -> str:
    """Return the version of the NVML library that the linker finds, if it differs from the loaded driver's."""
    if isinstance(state.linker, Unknown):
        return ""
    path = next(iter(state.linker.cache.get("libnvidia-ml.so.1", ())), "")
    version = library_version(state.linker.libs.get(path, path))
    return version if version != state.driver.loaded else ""
