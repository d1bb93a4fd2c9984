"""Write the Dockerfile of an image with the tools that test a fabric: nccl-tests, perftest and rdma-core.

The base image has CUDA's compiler and NCCL with its headers. CUDA 12.8 knows all architectures up to Blackwell, and
runs on drivers from 525.60.13 on (minor version compatibility; on GPUs that old drivers support).
Sources: nvidia/cuda on Docker Hub, tag 12.8.1-devel-ubuntu22.04; nccl-tests, tag v2.17.6; Ubuntu's packages perftest,
rdma-core, ibverbs-utils and infiniband-diags.
"""

from __future__ import annotations

from gpuready.core import resources

BASE, NCCL_TESTS = "nvidia/cuda:12.8.1-devel-ubuntu22.04", "v2.17.6"


def dockerfile() -> str:
    """Return the Dockerfile."""
    return resources.document("tools/render/fabric.Dockerfile", base=BASE, nccl_tests=NCCL_TESTS)
