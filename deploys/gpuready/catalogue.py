"""The catalogue of checks, in the order in which an operator would look.

A check is in the checks.py of the component that can mend it, else in gpu/. A new check goes into the ``CHECKS`` of
that file; only a new file goes in here, too. contract/check.py says what a check is.
"""

from gpuready.compat import checks as images
from gpuready.components.cdi import checks as cdi
from gpuready.components.containerd import checks as containerd
from gpuready.components.crio import checks as crio
from gpuready.components.dcgm import diag
from gpuready.components.docker import checks as docker
from gpuready.components.driver import checks as driver
from gpuready.components.gate import checks as gate
from gpuready.components.memlock import checks as memlock
from gpuready.components.monitoring import checks as monitoring
from gpuready.components.nccl import checks as nccl
from gpuready.components.rdma import checks as rdma
from gpuready.components.rdma import roce
from gpuready.components.reconverge import checks as reconverge
from gpuready.components.repository import checks as repository
from gpuready.components.toolkit import checks as toolkit
from gpuready.components.toolkit_config import checks as toolkit_config
from gpuready.components.wheels import checks as wheels
from gpuready.contract.config_checks import config_checks
from gpuready.contract.question import Questions
from gpuready.fabric import checks as fabric
from gpuready.gpu import (
    dma,
    gpus,
    imex,
    leftovers,
    libcuda,
    memory,
    node,
    nvlink,
    nvswitch,
    settings,
    slurm,
    stress,
    torch_smoke,
    visible,
    xids,
)
from gpuready.node import NODE

CATALOGUE = (
    *node.CHECKS,
    *driver.CHECKS,
    gpus.ANSWERS,
    *leftovers.CHECKS,
    *xids.CHECKS,
    *memory.CHECKS,
    *nvswitch.CHECKS,
    *imex.CHECKS,
    *nvlink.CHECKS,
    *settings.CHECKS,
    *dma.CHECKS,
    *slurm.CHECKS,
    *config_checks(NODE),
    *libcuda.CHECKS,
    *visible.HOST,
    *torch_smoke.CHECKS,
    *toolkit_config.CHECKS,
    *cdi.CHECKS,
    *toolkit.CHECKS,
    *repository.CHECKS,
    *docker.CHECKS,
    *visible.INSIDE,
    *images.CHECKS,
    *containerd.CHECKS,
    *crio.CHECKS,
    *memlock.CHECKS,
    *monitoring.CHECKS,
    *nccl.CHECKS,
    *rdma.CHECKS,
    *roce.CHECKS,
    *wheels.CHECKS,
    *reconverge.CHECKS,
    *gate.CHECKS,
)
"""Every check of this release."""

QUESTIONS: tuple[Questions, ...] = (
    repository.questions,
    rdma.questions,
    roce.questions,
    libcuda.questions,
    nvlink.questions,
    imex.questions,
    dma.questions,
    torch_smoke.questions,
    wheels.questions,
    monitoring.questions,
    gate.questions,
    driver.questions,
    docker.questions,
    containerd.questions,
    images.questions,
)
"""What the active checks ask, in this order. CUDA is asked before all that a GPU that hangs would make hang, too."""

BY_ID = {check.id: check for check in (*CATALOGUE, *imex.TOGETHER, *stress.CHECKS, diag.DIAG, *fabric.CHECKS)}
"""All checks by id, with those of several hosts, under load (``verify --level stress``), and of ``gpuready fabric``."""
