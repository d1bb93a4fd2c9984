"""Verdicts on what apt knows of the repository."""

from gpuready.model.state import NodeState
from tests.verdicts import Row, answered, fails, held, is_unknown, passes, state


def apt(out: str, rc: int = 0) -> NodeState:
    """A node whose apt was asked for the toolkit's candidate."""
    return state(active=answered("apt", out, rc))


def dnf(out: str, rc: int = 0) -> NodeState:
    """The same with dnf."""
    return state(have=("dnf",), active=answered("dnf", out, rc))


MIRROR = {"toolkit": {"repo": {"url": "https://mirror.example/deb"}}}
APT_KNOWS = (
    "nvidia-container-toolkit:\n  Installed: (none)\n  Candidate: 1.20.1-1\n  Version table:\n     1.20.1-1 500\n"
    "        500 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  Packages\n"
)

VERDICTS: list[Row] = [
    # repository.candidate
    is_unknown("repository.candidate", "apt was not asked"),
    is_unknown("repository.candidate", "lost", state(active={"apt": {"unknown": "lost"}})),
    is_unknown("repository.candidate", "no answer", apt("no answer within 20 s", 124)),
    fails("repository.candidate", "does not know", apt("E: Malformed entry 1", 100)),
    passes("repository.candidate", "apt has 1.20.1-1", apt(APT_KNOWS)),
    is_unknown("repository.candidate", "no package list from", apt("")),
    fails("repository.candidate", "does not know 1.19.1-1", apt(APT_KNOWS), {"toolkit": {"version": "1.19.1"}}),
    is_unknown("repository.candidate", "from https://mirror.example/deb", apt(APT_KNOWS), MIRROR),
    is_unknown("repository.candidate", "dnf was not asked", state(have=("dnf",))),
    is_unknown("repository.candidate", "no answer", dnf("no answer within 20 s", 124)),
    is_unknown("repository.candidate", "has no metadata", dnf("Error: Cache-only enabled but no cache", 1)),
    passes("repository.candidate", "dnf has 1.20.1-1", dnf("1.19.1-1\n1.20.1-1\n")),
    fails("repository.candidate", "does not know 1.20.1-1", dnf("1.19.1-1\n11.20.1-1\n")),
    is_unknown("repository.config", "has neither apt nor dnf"),
    fails("repository.config", "repository.uri", state(have=("apt-get",))),
]
test_verdict = held(VERDICTS)
