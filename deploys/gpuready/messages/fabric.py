# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of NVLink, the fabric manager and IMEX, and of DCGM, which watches the GPUs."""

from gpuready.messages.entry import read

MESSAGES = read(r"""
transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation cannot be performed in the present state'
  pattern transport/nvls\.cc:[0-9]{1,5}(?: [a-z_]{1,40})? nccl warn cuda failure
  also    failed to bind nvlink sharp \(nvls\) multicast memory
  also    nvls\.cc:[0-9]{1,5} nccl warn [^:]{0,60}cuda (?:error|failure)
  source  NVIDIA/nccl#1788
  checks  gpu.fabric driver.fabricmanager gpu.nvswitch
  cause   NCCL cannot set up multicast over the NVSwitches (NVLink SHARP). Most often the fabric manager hangs, was
          restarted under load or does not fit the driver. In a virtual machine, multicast may be off.
  fix     drain the node, restart nvidia-fabricmanager and reset all GPUs, or reboot; until then NCCL_NVLS_ENABLE=0
          avoids it and costs bandwidth
cuMemCreate: CUDA_ERROR_NOT_PERMITTED, operation not permitted (800): fabric handles without an IMEX channel
  pattern cumemcreate(?:\([^)]{0,120}\))? ?(?:failed|returned|error)?:? {0,2}(?:800|operation not permitted|cuda_error_not_permitted)
  also    cuda_error_not_permitted\] operation not permitted in expression cumemcreate
  also    cumemcreate\(&handle, [^)]{1,80}\)[^a-z]{0,20}reason=operation not permitted
  source  NVIDIA/nvbandwidth#46
  checks  driver.companions gpu.fabric
  cause   The program asks for memory that other nodes can map (fabric handles). This user has no IMEX channel
          (/dev/nvidia-caps-imex-channels/channel0), or the node is not part of a multi-node NVLink rack, such as NVL72.
  fix     on a rack: systemctl status nvidia-imex on all nodes of the domain, and give the container or user channel0;
          elsewhere turn the option off (MNNVL; NCCL_MNNVL_ENABLE=0, NCCL_CUMEM_ENABLE=0)
""")
