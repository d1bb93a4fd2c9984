"""Verdicts on the toolkit's packages."""

from gpuready.model.state import NodeState
from tests.verdicts import UNREADABLE, Row, fails, having, held, is_unknown, package, passes, skips, state, warns


def toolkit(version: str) -> NodeState:
    """A node with this version of the toolkit's package."""
    return state(packages={"nvidia-container-toolkit": package(version)})


CTK = "NVIDIA Container Toolkit CLI version"

VERDICTS: list[Row] = [
    # toolkit.floor
    is_unknown("toolkit.floor", "could not be read", state(packages=UNREADABLE)),
    skips("toolkit.floor", "no toolkit package"),
    *(passes("toolkit.floor", version, toolkit(version)) for version in ("1.19.1-1", "1.20.0~rc.1-1", "1.100.0-1")),
    *(warns("toolkit.floor", version, toolkit(version)) for version in ("1.19.0-1", "1.9.9-1")),
    # toolkit.version
    is_unknown("toolkit.version", "could not be read", state(tools=UNREADABLE)),
    fails("toolkit.version", "no nvidia-ctk"),
    passes("toolkit.version", "nvidia-ctk", having("nvidia-ctk", says=f"{CTK} 1.20.1")),
    *(
        fails("toolkit.version", "/usr/bin/nvidia-ctk", having("nvidia-ctk", says=line))
        for line in (f"{CTK} 1.19.1", f"{CTK} 11.20.1", "Segmentation fault", "")
    ),
    is_unknown("toolkit.config", "could not be read", state(packages=UNREADABLE)),
    fails("toolkit.config", "8 differences"),
]
test_verdict = held(VERDICTS)
