"""The catalogue of checks, in the order in which an operator would look."""

from gpuready.checks import (
    cdi,
    config,
    containerd,
    containers,
    crio,
    driver,
    fabric,
    gpumemory,
    gpus,
    gpusettings,
    images,
    libcuda,
    memlock,
    monitoring,
    nccl,
    node,
    nvlink,
    nvswitch,
    rdma,
    toolkitconfig,
    torchsmoke,
    visible,
    xids,
)

CATALOGUE = (
    *node.CHECKS,
    *driver.CHECKS,
    gpus.ANSWERS,
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
)
"""Every check of this release."""

BY_ID = {check.id: check for check in (*CATALOGUE, *fabric.CHECKS)}
"""Those, and the checks of pairs of hosts, which ``gpuready fabric`` judges."""
