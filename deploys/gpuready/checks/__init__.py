"""The catalogue of checks, in the order in which an operator would look."""

from gpuready.checks import (
    cdi,
    config,
    containerd,
    containers,
    crio,
    driver,
    driverpackages,
    fabric,
    gpumemory,
    gpus,
    gpusettings,
    images,
    leftovers,
    libcuda,
    memlock,
    monitoring,
    nccl,
    nextboot,
    node,
    nvlink,
    nvswitch,
    rdma,
    reconverge,
    toolkitconfig,
    torchsmoke,
    visible,
    wheels,
    xids,
)
from gpuready.checks.base import Check, undecided
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

CATALOGUE = (
    *node.CHECKS,
    *driverpackages.CHECKS,
    *driver.CHECKS,
    *nextboot.CHECKS,
    gpus.ANSWERS,
    *leftovers.CHECKS,
    *xids.CHECKS,
    *gpumemory.CHECKS,
    *nvswitch.CHECKS,
    *nvlink.CHECKS,
    *gpusettings.CHECKS,
    *config.CHECKS,
    *libcuda.CHECKS,
    *visible.HOST,
    *torchsmoke.CHECKS,
    *toolkitconfig.CHECKS,
    *cdi.CHECKS,
    *containers.CHECKS,
    *visible.INSIDE,
    *images.CHECKS,
    *containerd.CHECKS,
    *crio.CHECKS,
    *memlock.CHECKS,
    *monitoring.CHECKS,
    *nccl.CHECKS,
    *rdma.CHECKS,
    *wheels.CHECKS,
    *reconverge.CHECKS,
)
"""Every check of this release."""


def concerning(spec: NodeSpec, state: NodeState) -> tuple[Check, ...]:
    """The checks that a node is judged by: all, or first the one question whether it is a GPU node."""
    return tuple(check for check in CATALOGUE if check.id == "gpu.count" or not undecided(spec, state))


BY_ID = {check.id: check for check in (*CATALOGUE, *fabric.CHECKS)}
"""Those, and the checks of pairs of hosts, which ``gpuready fabric`` judges."""
