# ruff: noqa: E501  (a table: sentences and patterns stay whole)
"""Messages of CUDA, PyTorch, Triton and what is built on them."""

from __future__ import annotations

from gpuready.messages.entry import Message

_CUDA_ERRORS = "docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)"
DEBUG = (
    "run the program with CUDA_LAUNCH_BLOCKING=1 to see which call fails; an Xid 13, 31 or 43 in dmesg belongs to it"
)

MESSAGES = (
    Message(
        "Error 804: forward compatibility was attempted on non supported HW",
        r"forward compatibility was attempted on non supported hw",
        "NVIDIA/nvidia-container-toolkit#291",
        ("image.compat", "libcuda.container", "libcuda.stub"),
        "The program uses the image's newer libcuda (cuda-compat) on a GPU that does not support it, such as a GeForce.",
        "gpuready compat -i INVENTORY --image IMAGE lists what helps: a newer driver, compatibility libraries off "
        "(toolkit: {cuda_compat_mode: disabled}), or an older image",
        code="cuda 804",
    ),
    Message(
        "Error 803: system has unsupported display driver / cuda driver combination",
        r"unsupported display driver ?/ ?cuda driver combination",
        _CUDA_ERRORS,
        ("driver.match", "libcuda.copies", "image.compat", "driver.processes"),
        "libcuda and the loaded kernel module do not fit each other: an update without a reboot, a second libcuda on "
        "the node, or an image's compatibility library that this driver branch does not support.",
        "drain the node and reboot it after an update; gpuready verify names the other libcuda; gpuready compat judges "
        "the image",
        code="cuda 803",
    ),
    Message(
        "Error 802: system not yet initialized",
        r"system not yet initialized",
        "pytorch/pytorch#35710",
        ("driver.fabricmanager", "gpu.fabric", "gpu.nvswitch"),
        "The GPUs wait for the fabric manager: it does not run, has another version than the driver, or has not "
        "trained the links.",
        "install nvidia-fabricmanager of exactly the driver's version, systemctl restart nvidia-fabricmanager; "
        "nvidia-smi -q shows Fabric State: Completed; else reset all GPUs or reboot",
        code="cuda 802",
    ),
    Message(
        "CUDA driver version is insufficient for CUDA runtime version (error 35)",
        r"cuda driver version is insufficient for cuda runtime version",
        _CUDA_ERRORS,
        ("image.compat", "gpu.torch", "libcuda.init"),
        "The program, or PyTorch in it, was built with a newer CUDA than the driver supports.",
        "gpuready compat --image-cuda VERSION -i INVENTORY says which driver it needs; upgrade the driver, or use an "
        "image or PyTorch of an older CUDA",
        code="cuda 35",
        also=(r"nvidia driver on your system is too old",),
    ),
    Message(
        "Found no NVIDIA driver on your system",
        r"found no nvidia driver on your system",
        "potterhsu/SVHNClassifier-PyTorch#5",
        ("driver.loaded", "libcuda.loader", "libcuda.container"),
        "PyTorch finds no libcuda.so.1: no driver on this node, or the container was started without the NVIDIA "
        "runtime.",
        "in a container start it with --runtime=nvidia or --gpus all (gpuready docker-args); on the host install the "
        "driver",
    ),
    Message(
        "Torch not compiled with CUDA enabled",
        r"torch not compiled with cuda enabled",
        "pytorch/pytorch#28111",
        ("gpu.torch",),
        "This PyTorch is a build for the CPU.",
        "install a build with CUDA into the same environment (pytorch.org/get-started/locally); print(torch.version.cuda) "
        "must not be None",
    ),
    Message(
        "CUDA initialization: Unexpected error from cudaGetDeviceCount()",
        r"unexpected error from cudagetdevicecount",
        "microsoft/lisa#2823",
        ("libcuda.init", "gpu.torch", "libcuda.container"),
        "CUDA does not initialize in this process.",
        "the number behind Error is the cause: pass it to gpuready explain, such as gpuready explain 'Error 802'",
        general=True,
    ),
    Message(
        "no CUDA-capable device is detected (error 100)",
        r"no cuda-capable device is detected",
        "AlexeyAB/darknet#86",
        ("driver.nodes", "driver.loaded", "gpu.count", "libcuda.container", "gpu.mig"),
        "CUDA sees no GPU: CUDA_VISIBLE_DEVICES is empty or wrong, the device nodes are missing, the container has no "
        "GPU, or MIG is on without instances.",
        "unset CUDA_VISIBLE_DEVICES; compare nvidia-smi -L on the host and in the container; gpuready apply creates the "
        "device nodes",
        code="cuda 100",
        also=(r"no cuda gpus are available",),
    ),
    Message(
        "CUDA error: invalid device ordinal (error 101)",
        r"invalid device ordinal",
        _CUDA_ERRORS,
        ("gpu.count", "gpu.mig"),
        "The program asks for a GPU number that this process does not have: fewer GPUs than expected, or "
        "CUDA_VISIBLE_DEVICES hides some.",
        "compare nvidia-smi -L, CUDA_VISIBLE_DEVICES and the number of processes (--nproc-per-node)",
        code="cuda 101",
    ),
    Message(
        "CUDA driver is a stub library (error 34)",
        r"cuda driver is a stub library",
        _CUDA_ERRORS,
        ("libcuda.stub", "libcuda.container"),
        "The loader found the stub libcuda.so of the CUDA toolkit (cuda/lib64/stubs) instead of the driver's. The "
        "stub is only for linking.",
        "remove the stubs directory from LD_LIBRARY_PATH and /etc/ld.so.conf.d, then run ldconfig; for linking, set "
        "LIBRARY_PATH instead",
        code="cuda 34",
    ),
    Message(
        "API call is not supported in the installed CUDA driver (error 36)",
        r"api call is not supported in the installed cuda driver",
        _CUDA_ERRORS,
        ("image.compat",),
        "The program relies on CUDA's minor version compatibility, and calls a function that this driver does not "
        "have.",
        "upgrade the driver to the one of the program's CUDA version (gpuready compat), or use an older image",
        code="cuda 36",
    ),
    Message(
        "the provided PTX was compiled with an unsupported toolchain (error 222)",
        r"provided ptx was compiled with an unsupported toolchain",
        "NVIDIA/CUDALibrarySamples#47",
        ("image.compat", "gpu.torch"),
        "The program contains PTX of a newer CUDA than the driver can compile.",
        "upgrade the driver (gpuready compat --image-cuda VERSION -i INVENTORY says to which), or build for the GPU "
        "itself (TORCH_CUDA_ARCH_LIST, -arch=sm_XX)",
        code="cuda 222",
    ),
    Message(
        "no kernel image is available for execution on the device (error 209)",
        r"no kernel image is available for execution on th(?:e|is) device",
        "pytorch/pytorch#31285",
        ("gpu.torch", "wheels.works", "gpu.model"),
        "The program has no code for this GPU: it is too new or too old for that build.",
        "install a build for the GPU's compute capability (torch.cuda.get_arch_list() shows the build's), or build with "
        "TORCH_CUDA_ARCH_LIST",
        code="cuda 209",
    ),
    Message(
        "GPU with CUDA capability sm_120 is not compatible with the current PyTorch installation",
        r"with cuda capability sm_[0-9a-z]{2,4} is not compatible with the current pytorch",
        "Comfy-Org/ComfyUI#16438",
        ("gpu.torch", "wheels.works"),
        "This PyTorch has no code for this GPU. Blackwell needs a build with CUDA 12.8 or newer; builds with CUDA 13 "
        "leave out Maxwell, Pascal and Volta.",
        "install a PyTorch build that lists the GPU in torch.cuda.get_arch_list()",
        also=(r"pytorch no longer supports this gpu because it is too old",),
    ),
    Message(
        "all CUDA-capable devices are busy or unavailable (error 46)",
        r"cuda-capable device(?:s are|\(s\) is/are) busy or unavailable",
        "pytorch/pytorch#2704",
        ("gpu.answers", "gpu.xid", "gpu.recovery"),
        "Another process holds the GPU in exclusive mode, a vGPU has no licence or no memory sharing, or the GPU needs "
        "a reset.",
        "nvidia-smi -q -d COMPUTE shows the compute mode (nvidia-smi -c DEFAULT changes it); end the processes that "
        "hold the GPU; look for an Xid in dmesg",
        code="cuda 46",
    ),
    Message(
        "CUDA out of memory. Tried to allocate",
        r"cuda (?:error: |failure ')?out of memory",
        "Mukosame/AODA#9",
        (),
        "The GPU's memory is full: the job needs more than the GPU has, or another process uses it.",
        "nvidia-smi lists the processes on the GPU; end those that are left over, or make the batch smaller; against "
        "fragmentation set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        code="cuda 2",
    ),
    Message(
        "CUDA error: uncorrectable ECC error encountered (error 214)",
        r"uncorrectable ecc error encountered",
        _CUDA_ERRORS,
        ("gpu.ecc", "gpu.remap", "gpu.xid", "gpu.retired"),
        "GPU memory had an error that ECC cannot correct, and CUDA ended the program. The GPU is at fault, not the "
        "program.",
        "drain the node and reset the GPU: the reset replaces the bad row of memory; if the error returns, have the "
        "GPU replaced",
        code="cuda 214",
    ),
    Message(
        "CUDA error: an illegal memory access was encountered (error 700)",
        r"an illegal memory access was encountered",
        "NVIDIA/nccl-tests#24",
        ("gpu.xid",),
        "The program read or wrote outside of its GPU memory. This is nearly always a fault of the program, not of "
        "the node.",
        DEBUG,
        code="cuda 700",
    ),
    Message(
        "CUDA error: device-side assert triggered (error 710)",
        r"device-side assert triggered",
        _CUDA_ERRORS,
        (),
        "An assertion in the program's own GPU code failed, often an index or class number out of range.",
        "run the program with CUDA_LAUNCH_BLOCKING=1, or on the CPU, to see the line; the node is not the cause",
        code="cuda 710",
    ),
    Message(
        "CUDA error: unspecified launch failure (error 719)",
        r"unspecified launch failure",
        _CUDA_ERRORS,
        ("gpu.xid", "gpu.ecc"),
        "GPU code crashed: a fault of the program, or a GPU with an error.",
        DEBUG + "; other Xids mean the GPU",
        code="cuda 719",
    ),
    Message(
        "CUDA error: unknown error (error 999)",
        r"(?:cuda|failed call to cuinit:) (?:(?:runtime )?(?:error|failure)[ :('0-9)]{1,12})?unknown error",
        _CUDA_ERRORS,
        ("driver.nodes", "libcuda.init", "gpu.xid", "driver.match"),
        "CUDA does not initialize. Often /dev/nvidia-uvm is missing, or the module nvidia_uvm hangs after a suspend. A "
        "change of CUDA_VISIBLE_DEVICES in a running program is rarely the cause.",
        "gpuready apply creates the device nodes; by hand: rmmod nvidia_uvm and modprobe nvidia_uvm while no program "
        "uses the GPU; read dmesg",
        code="cuda 999",
    ),
    Message(
        "CUDA error: initialization error (error 3)",
        r"cuda (?:runtime )?error[ :(]{1,3}3?\)?[ :]{0,3}initialization error",
        _CUDA_ERRORS,
        ("driver.nodes", "libcuda.init", "config.cgroups"),
        "CUDA could not be initialized: the process was forked after CUDA had started, or the container may not use "
        "the devices.",
        "in Python use multiprocessing's start method spawn; in a container, recreate the container and run gpuready "
        "verify",
        code="cuda 3",
    ),
    Message(
        "Cannot re-initialize CUDA in forked subprocess",
        r"cannot re-initialize cuda in forked subprocess",
        "docs.pytorch.org/docs/stable/notes/multiprocessing",
        (),
        "The program used CUDA before it forked. The node is not the cause.",
        "use multiprocessing's start method spawn",
    ),
    Message(
        "cudaErrorNvlinkUncorrectable: uncorrectable NVLink error detected (error 220)",
        r"uncorrectable nvlink error detected",
        _CUDA_ERRORS,
        ("gpu.nvlink", "gpu.nvlink_errors", "gpu.xid", "gpu.fabric"),
        "An NVLink of this GPU had an error that it could not correct.",
        "drain the node, reset all GPUs and restart the fabric manager; if it returns, have link and switch inspected",
        code="cuda 220",
    ),
    Message(
        "peer access is not supported between these two devices (error 217)",
        r"peer access is not supported between these two devices",
        _CUDA_ERRORS,
        ("gpu.p2p", "gpu.mig"),
        "Two GPUs cannot access each other's memory: an IOMMU or ACS blocks it, MIG is on, or the GPUs do not support "
        "it.",
        "turn MIG off; on bare metal set the IOMMU to pass-through (iommu=pt) and ACS off; nvidia-smi topo -p2p r shows "
        "the pairs",
        code="cuda 217",
    ),
    Message(
        "PTX JIT compiler library was not found (error 221)",
        r"ptx jit compiler library was not found",
        _CUDA_ERRORS,
        ("driver.packages", "libcuda.ldcache"),
        "libnvidia-ptxjitcompiler.so.1 is missing: a part of the driver's packages is not installed, or the container "
        "lacks the capability compute.",
        "install all packages of the driver at one version; in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        code="cuda 221",
    ),
    Message(
        "CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate(handle)",
        r"cublas_status_(?:not_initialized|alloc_failed)",
        "pytorch/pytorch#91958",
        ("gpu.torch",),
        "cuBLAS could not start, usually because the GPU's memory is full; sometimes a wrong index in the program, "
        "or mixed CUDA libraries.",
        "nvidia-smi shows the free memory; make the batch smaller; unset LD_LIBRARY_PATH so that PyTorch loads its own "
        "cuBLAS",
    ),
    Message(
        "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        r"cudnn_status_(?:not_initialized|alloc_failed|sublibrary_version_mismatch|execution_failed)",
        "haotian-liu/LLaVA#392",
        ("gpu.torch",),
        "cuDNN could not start: the GPU's memory is full, or LD_LIBRARY_PATH selects another cuDNN than the program "
        "was built with.",
        "nvidia-smi shows the free memory; unset LD_LIBRARY_PATH so that the wheel's own cuDNN is loaded",
    ),
    Message(
        "libcuda.so cannot found! Please make sure GPU is set up (Triton)",
        r"libcuda\.so cannot found",
        "triton-lang/triton#2019",
        ("libcuda.triton", "libcuda.ldcache", "libcuda.container_triton"),
        "Triton searches libcuda in the directories that ldconfig -p lists, and the driver's directory is not among "
        "them, or has no libcuda.so.",
        "gpuready apply (ldso) adds the directory and runs ldconfig; for one job set TRITON_LIBCUDA_PATH to the "
        "directory of libcuda.so.1",
    ),
    Message(
        "ld: cannot find -lcuda (Triton)",
        r"cannot find -lcuda\b",
        "triton-lang/triton#3053",
        ("libcuda.triton", "libcuda.ldcache"),
        "Triton (or another build) links libcuda, and there is only libcuda.so.1 and no libcuda.so, or it is where "
        "the linker does not look.",
        "gpuready apply (ldso); for one job, link libcuda.so to libcuda.so.1 in a directory of LIBRARY_PATH",
    ),
    Message(
        "libcuda.so.1: cannot open shared object file: No such file or directory",
        r"libcuda\.so\.1: cannot open shared object file",
        "NVIDIA/nvidia-container-toolkit (libcuda in the container)",
        ("libcuda.loader", "libcuda.ldcache", "libcuda.container", "docker.smoke"),
        "The loader finds no libcuda.so.1: no driver, a directory that ldconfig does not list, or a container without "
        "the NVIDIA runtime.",
        "in a container use --runtime=nvidia or --gpus all; on the host gpuready apply (ldso) adds the driver's "
        "directory to the linker cache",
    ),
    Message(
        "libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
        r"libnvidia-ml\.so(?:\.1)?: cannot open shared object file",
        "docker/for-win#13835",
        ("driver.loaded", "libcuda.ldcache", "docker.runtime"),
        "The driver's management library is not found: no driver, a directory that ldconfig does not list, or a "
        "container without the NVIDIA runtime or the capability utility.",
        "in a container use --runtime=nvidia and NVIDIA_DRIVER_CAPABILITIES=compute,utility; on the host gpuready apply "
        "(ldso)",
    ),
    Message(
        "libcublas.so.12, libcudart.so.12 or libcudnn.so.9: cannot open shared object file",
        r"lib(?:cudart|cublas|cublaslt|cufft|curand|cusolver|cusparse|cusparselt|cudnn[a-z_]{0,20}|nccl|nvrtc|nvjitlink|cupti|nvshmem_host)"
        r"\.so(?:\.[0-9.]{1,12})?: cannot open shared object file",
        "vllm-project/vllm#31018",
        ("wheels.works", "gpu.torch"),
        "A library of CUDA, cuDNN or NCCL is missing. It comes with the program or a package, not with the driver: the "
        "package was built for another CUDA version.",
        "install the package's build for your CUDA (cu12, cu13), or the matching nvidia-*-cuNN wheels; the driver needs "
        "no change",
    ),
    Message(
        "undefined symbol: ncclCommRegister / __nvJitLinkComplete (mixed CUDA libraries)",
        r"undefined symbol: (?:__nvjitlink|nccl[a-z]|cublas|cudnn|cusparse)",
        "pytorch/pytorch (mixed CUDA libraries)",
        ("wheels.works", "gpu.torch"),
        "Libraries of two CUDA or NCCL versions mix: LD_LIBRARY_PATH or a system package supplies an older one than "
        "the program needs.",
        "unset LD_LIBRARY_PATH, or reinstall the nvidia-*-cuNN wheels that this PyTorch asks for",
    ),
    Message(
        "Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)",
        r"unexpected bus error encountered in worker",
        "nianticlabs/simplerecon#3",
        ("docker.config",),
        "The container's /dev/shm is full: Docker gives 64 MiB, and PyTorch's data loaders share tensors there.",
        "docker run --shm-size=8g or --ipc=host; for all new containers: runtimes.docker.shm_size in the spec, then "
        "gpuready apply",
        also=(r"dataloader worker \(pid[^)]{0,30}\) is killed by signal: bus error",),
    ),
    Message(
        "The detected CUDA version mismatches the version that was used to compile PyTorch",
        r"detected cuda version .{0,40}mismatches the version that was used to compile pytorch",
        "pytorch/pytorch (torch/utils/cpp_extension.py)",
        (),
        "An extension is being built with the nvcc of another CUDA version than that of PyTorch. The driver is not the "
        "cause.",
        "install the CUDA toolkit of torch.version.cuda and set CUDA_HOME to it, or use a wheel of the extension",
    ),
    Message(
        "CUDA_HOME environment variable is not set",
        r"cuda_home environment variable is not set",
        "pytorch/pytorch (torch/utils/cpp_extension.py)",
        (),
        "An extension is being built, and there is no CUDA toolkit (nvcc). The driver does not contain one.",
        "install the CUDA toolkit of torch.version.cuda and set CUDA_HOME to it, use a -devel image, or a wheel",
    ),
    Message(
        "nvcc fatal: Unsupported gpu architecture 'compute_120'",
        r"unsupported gpu architecture '?(?:compute|sm)_",
        "docs.nvidia.com/cuda/cuda-compiler-driver-nvcc",
        ("gpu.torch",),
        "This nvcc does not know the GPU's architecture: the toolkit is too old for a new GPU, or too new for an old "
        "one (CUDA 13 supports no GPU before Turing).",
        "use the CUDA toolkit that supports the GPU (Blackwell: 12.8 or newer), or set TORCH_CUDA_ARCH_LIST to what it "
        "knows",
    ),
    Message(
        "This container was built for NVIDIA Driver Release X or later, but version Y was detected and compatibility mode is UNAVAILABLE",
        r"this container was built for nvidia driver release",
        "docs.nvidia.com/deeplearning/frameworks (NGC images)",
        ("image.compat",),
        "The NGC image needs a newer driver, and its compatibility libraries do not fit this GPU or driver branch.",
        "gpuready compat -i INVENTORY --image IMAGE lists what helps; upgrade the driver, or use an older tag of the "
        "image",
    ),
    Message(
        "torch.cuda.is_available() returns False",
        r"\bcuda\.is_available(?:\(\))?\W{1,8}(?:(?:is|returns?|returned|=)\W{1,8})?false\b",
        "pytorch/serve#478",
        ("libcuda.init", "docker.smoke", "gpu.torch", "image.compat"),
        "This PyTorch has no CUDA (a CPU build), the container was started without GPUs, or the driver does not start "
        "(cuInit).",
        "print torch.version.cuda: None means a CPU build; in a container use --gpus all or --runtime=nvidia; else "
        "gpuready verify names what is wrong with the driver",
    ),
    Message(
        "WARNING: The NVIDIA Driver was not detected. GPU functionality will not be available (NGC image)",
        r"nvidia driver was not detected\. gpu functionality will not be available",
        "docs.nvidia.com/deeplearning/frameworks (NGC images)",
        ("docker.runtime", "docker.smoke", "driver.loaded"),
        "The container was started without GPUs, or the host has no driver.",
        "start it with --runtime=nvidia or --gpus all (gpuready docker-args prints the options)",
    ),
    Message(
        "ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name' (Triton)",
        r"fatal ?: value 'sm_[0-9a-z]{2,5}' is not defined for option 'gpu-name'",
        "triton-lang/triton#8539",
        ("gpu.torch", "wheels.works"),
        "Triton's ptxas is older than this GPU.",
        "set TRITON_PTXAS_PATH to the ptxas of a CUDA toolkit that knows the GPU, such as /usr/local/cuda/bin/ptxas; "
        "or install a newer Triton and PyTorch",
    ),
    Message(
        "'sm_120' is not a recognized processor for this target (Triton)",
        r"'sm_[0-9a-z]{2,5}' is not a recognized processor for this target",
        "woct0rdho/triton-windows#93",
        ("gpu.torch", "wheels.works"),
        "Triton's LLVM is older than this GPU.",
        "install a newer Triton and the PyTorch that comes with it",
    ),
    Message(
        "Minimum and Maximum cuda capability supported by this version of PyTorch is (8.0) - (12.0)",
        r"minimum and maximum cuda capability supported by this version of pytorch",
        "eugr/spark-vllm-docker#15",
        ("gpu.torch", "wheels.works"),
        "A warning: this PyTorch was not built for exactly this GPU. Code for an older GPU of the same major version "
        "runs, such as 12.0 on 12.1.",
        "nothing, if programs run; after 'no kernel image is available' install a build that lists the GPU in "
        "torch.cuda.get_arch_list()",
    ),
)
