"""Checks of CRI-O that its own answers do not cover: is there a runtime for nvidia-container-runtime to call?"""

from gpuready.components.crio.component import Crio, low_level
from gpuready.components.toolkit_config.state import CONFIG
from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, passed, skip, warn
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def _low_level(spec: NodeSpec, state: NodeState) -> Verdict:
    need.value(state.tools)
    applies = Crio().applies(spec, state)
    if not applies.yes:
        return skip(applies.reason)
    name = low_level(state)
    if name:
        return passed(f"nvidia-container-runtime calls {name}")
    return warn("neither runc nor crun is on PATH, so no pod of the runtime nvidia will start")


CHECKS = (
    Check(
        "crio.lowlevel",
        "the toolkit finds CRI-O's runc or crun",
        Level.config,
        "nvidia-container-runtime looks for runc or crun on PATH; CRI-O's packages keep theirs in /usr/libexec/crio.",
        f"command -v runc crun; grep -A9 nvidia-container-runtime {CONFIG}",
        f'name it by its path in {CONFIG}: [nvidia-container-runtime] runtimes = ["/usr/libexec/crio/crun"]',
        _low_level,
        component="crio",
    ),
)
