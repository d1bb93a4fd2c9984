"""The probe's script and what becomes of its output. The same bytes go to every host."""

from __future__ import annotations

import functools

from gpuready.components.rdma.spec import FAMILIES
from gpuready.components.rdma.state import CONF, GRUB, MARK
from gpuready.core import resources
from gpuready.core.owners import OPERATOR_CTK
from gpuready.state.linker import DRIVER_DIRS
from gpuready.state.model import NodeState
from gpuready.state.parse import parse

#: Seconds after which a command that hangs on the node is abandoned, and after which the whole exec is: a node on which
#: everything takes a hundred times as long still answers.
LIMIT = 5
TIMEOUT = 30
#: The same for a run that changes the node, when it asks again: how long engines may take to start and to answer, how
#: long a command may take then, and the whole exec.
PATIENCE = 120
LONGER = 30


@functools.cache
def script() -> str:
    """The probe: POSIX sh, for root, read-only."""
    return render(LIMIT)


@functools.cache
def patient_script() -> str:
    """The same probe for a node on which something starts or gave no answer: it waits for engines first."""
    return render(LONGER, PATIENCE)


def render(limit: int, patience: int = 0) -> str:
    """The probe with that limit for commands that hang, and for engines that start; both in seconds."""
    return resources.script(
        "probe/probe",
        driver_dirs=DRIVER_DIRS,
        operator_ctk=OPERATOR_CTK,
        rdma_conf=CONF,
        rdma_mark=MARK,
        rdma_grub=GRUB,
        rdma_packages=tuple(f"{name}*" for name in FAMILIES),
        limit=limit,
        patience=patience,
    )


def read(lines: list[str]) -> NodeState:
    """What :func:`script` printed, as a NodeState; raises :class:`gpuready.state.parse.ProbeError`."""
    return parse(lines)
