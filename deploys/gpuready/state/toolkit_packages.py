"""The packages of the NVIDIA container toolkit, and which of them were installed before gpuready."""

from gpuready.core import ledger
from gpuready.state.model import NodeState

PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
#: What was installed before gpuready's first change, as templates/toolkit/converge.sh.j2 writes it:
#: "NAME VERSION DPKG-STATUS".
BEFORE = f"{ledger.KEPT}/packages.original"


def installed_by_us(state: NodeState) -> tuple[str, ...]:
    """Return the packages that gpuready installed; ``remove`` uninstalls them."""
    return tuple(name for name in PACKAGES if name not in before(state)) if BEFORE in state.files else ()


def before(state: NodeState) -> dict[str, tuple[str, str]]:
    """Return package -> version and dpkg's status, as they were before gpuready's first change."""
    rows = [line.split() for line in state.text(BEFORE).splitlines()]
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3 and row[2].endswith("i")}
