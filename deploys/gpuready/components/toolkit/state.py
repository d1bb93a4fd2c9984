"""Facts of the toolkit: its packages, which of them were there before gpuready, and the GPU Operator's place.

Source of the path: the GPU Operator's operands (assets/state-container-toolkit).
"""

import re
from collections.abc import Mapping

from gpuready.base.facts import KEPT, File, Package, Tool

PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
OPERATOR_TOOLKIT = "/usr/local/nvidia/toolkit"
OPERATOR_CTK = f"{OPERATOR_TOOLKIT}/nvidia-ctk"
#: What was installed before gpuready's first change, as templates/toolkit/converge.sh.j2 writes it:
#: "NAME VERSION DPKG-STATUS".
BEFORE = f"{KEPT}/packages.original"


def installed_by_us(files: Mapping[str, File]) -> tuple[str, ...]:
    """Return the packages that gpuready installed; ``remove`` uninstalls them."""
    return tuple(name for name in PACKAGES if name not in before(files)) if BEFORE in files else ()


def before(files: Mapping[str, File]) -> dict[str, tuple[str, str]]:
    """Return package -> version and dpkg's status, as they were before gpuready's first change."""
    rows = [line.split() for line in files[BEFORE].text.splitlines()] if BEFORE in files else []
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3 and row[2].endswith("i")}


def toolkit_version(installed: Mapping[str, Package], commands: Mapping[str, Tool]) -> str:
    """Return the version of the toolkit, as nvidia-ctk says it or its package has it; empty if there is none."""
    lines = [tool.version_line for name, tool in commands.items() if name.rpartition("/")[2] == "nvidia-ctk"]
    package = installed.get("nvidia-container-toolkit")
    found = re.search(r"(?<![0-9])[0-9]+\.[0-9]+\.[0-9]+", " ".join([*lines, package.version if package else ""]))
    return found[0] if found else ""
