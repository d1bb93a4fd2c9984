"""Verdicts on CRI-O and what the toolkit finds of it."""

from gpuready.model.state import Tool
from tests.verdicts import UNREADABLE, Row, fails, having, held, is_unknown, passes, skips, state, warns
from tests.verdicts import root_file as file

CRIO = {
    "/etc/crio/crio.conf": file('[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n')
}

VERDICTS: list[Row] = [
    # crio.config
    skips("crio.config", "no CRI-O"),
    fails("crio.config", "crio.runtimes.nvidia.runtime_path", having("crio")),
    passes("crio.config", "as the spec says", state(tools={"crio": Tool(path="/usr/bin/crio")}, files=CRIO)),
    # crio.lowlevel
    skips("crio.lowlevel", "no CRI-O"),
    is_unknown("crio.lowlevel", "could not be read", state(tools=UNREADABLE)),
    warns("crio.lowlevel", "neither runc nor crun", having("crio")),
    passes("crio.lowlevel", "calls crun", having("crio", "crun")),
]
test_verdict = held(VERDICTS)
