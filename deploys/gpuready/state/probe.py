"""The probe's script and what becomes of its output. The same bytes go to every host."""

from __future__ import annotations

import functools

from gpuready import resources
from gpuready.components.ldso import DRIVER_DIRS
from gpuready.components.owners import OPERATOR_CTK
from gpuready.components.rdmaconf import CONF, GRUB, MARK
from gpuready.spec.rdma import FAMILIES
from gpuready.state.model import NodeState
from gpuready.state.parse import parse

#: Seconds after which a command that hangs on the node is abandoned, and after which the whole exec is: a node on which
#: everything takes a hundred times as long still answers.
LIMIT = 5
TIMEOUT = 30


@functools.cache
def script() -> str:
    """The probe: POSIX sh, for root, read-only."""
    return render(LIMIT)


def render(limit: int) -> str:
    """The probe with that limit, in seconds, for commands that hang."""
    return resources.script(
        "probe",
        driver_dirs=DRIVER_DIRS,
        operator_ctk=OPERATOR_CTK,
        rdma_conf=CONF,
        rdma_mark=MARK,
        rdma_grub=GRUB,
        rdma_packages=tuple(f"{name}*" for name in FAMILIES),
        limit=limit,
    )


def read(lines: list[str]) -> NodeState:
    """What :func:`script` printed, as a NodeState; raises :class:`gpuready.state.parse.ProbeError`."""
    return parse(lines)
