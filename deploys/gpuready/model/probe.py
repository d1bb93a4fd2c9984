"""Render the probe's script. The same bytes go to every host."""

import functools

from gpuready.base import resources
from gpuready.components.ldso.state import BUILT_IN, DRIVER_DIRS
from gpuready.components.rdma.spec import FAMILIES
from gpuready.components.rdma.state import CONF, GRUB, MARK
from gpuready.components.toolkit.state import OPERATOR_CTK

#: Limits in seconds: for commands on the node that hang, and for the whole exec. Most nodes answer within one second,
#: busy ones within three.
LIMIT = 10
TIMEOUT = 30
#: Limits in seconds when a run that changes the node probes again: for engines to start and answer, and for a command.
PATIENCE = 120
LONGER = 30


@functools.cache
def script() -> str:
    """The probe: POSIX sh, for root, read-only."""
    return render(LIMIT)


@functools.cache
def patient_script() -> str:
    """The same probe for a node on which something is starting or did not answer: it first waits for the engines."""
    return render(LONGER, PATIENCE)


def render(limit: int, patience: int = 0) -> str:
    """Render the probe with a limit for commands that hang and a limit for engines that start, both in seconds."""
    return resources.script(
        "probe/probe",
        driver_dirs=DRIVER_DIRS + BUILT_IN,
        operator_ctk=OPERATOR_CTK,
        rdma_conf=CONF,
        rdma_mark=MARK,
        rdma_grub=GRUB,
        rdma_packages=tuple(f"{name}*" for name in FAMILIES),
        limit=limit,
        patience=patience,
    )
