# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of CUDA, PyTorch, Triton and what is built on them."""

from gpuready.messages.entry import read

DEBUG = (
    "run the program with CUDA_LAUNCH_BLOCKING=1 to see which call fails; an Xid 13, 31 or 43 in dmesg belongs to it"
)
MESSAGES = read(
    r"""
Error 804: forward compatibility was attempted on non supported HW
  pattern forward compatibility was attempted on non supported hw
  code    cuda 804
  source  NVIDIA/nvidia-container-toolkit#291
  checks  image.compat libcuda.container libcuda.stub
  cause   The program uses the image's newer libcuda (cuda-compat) on a GPU that does not support it, such as a GeForce.
  fix     gpuready compat -i INVENTORY --image IMAGE lists what helps: a newer driver, compatibility libraries off
          (toolkit: {cuda_compat_mode: disabled}), or an older image
Error 803: system has unsupported display driver / cuda driver combination
  pattern unsupported display driver ?/ ?cuda driver combination
  code    cuda 803
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  driver.match libcuda.copies image.compat driver.processes
  cause   libcuda and the loaded kernel module do not fit each other: an update without a reboot, a second libcuda on
          the node, or an image's compatibility library that this driver branch does not support.
  fix     only in a container: the image's compat library; put the host's libraries first in LD_LIBRARY_PATH, or
          gpuready compat --trace IMAGE -i HOST shows which one it gets. On the host: drain the node and reboot it after an
          update; gpuready verify names the other libcuda
0 active drivers ([]). There should only be one. (Triton)
  pattern \b0 active drivers \(
  source  deepseek-ai/DeepSeek-R1#493
  checks  libcuda.init libcuda.container driver.nodes
  cause   Triton sees no GPU in this process: the container has none, CUDA does not initialize, or CUDA_VISIBLE_DEVICES is
          empty.
  fix     python3 -c 'import torch; print(torch.cuda.is_available())' must say True in the same environment; start the
          container with --runtime=nvidia or --gpus all
libstdc++.so.6: version `CXXABI_1.3.15' not found / `GLIBCXX_3.4.32' not found
  pattern libstdc\+\+\.so\.6: version '?(?:glibcxx|cxxabi)_
  also    version '?(?:glibcxx|cxxabi)_[0-9.]{1,9}'? not found
  source  saturncloud/images#483
  cause   The program needs a newer libstdc++ than the one that the loader finds: mostly the system's, where conda or the
          environment has a newer one.
  fix     find / -name 'libstdc++.so.6*' shows the copies; conda install -c conda-forge libstdcxx-ng, and put
          $CONDA_PREFIX/lib first in LD_LIBRARY_PATH; or use an image of a newer distribution
fatal error: curand_kernel.h: No such file or directory
  pattern fatal error: (?:curand_kernel|cuda_runtime|cuda_runtime_api|cublas_v2|cusparse|cuda_fp16|cuda)\.h\b
  source  flashinfer-ai/flashinfer#4410
  cause   A program compiles for the GPU when it starts, and the headers of the CUDA toolkit are not installed or not
          found. They are no part of the driver.
  fix     use a -devel image, or install cuda-toolkit-X-Y (without the driver) and export
          CPATH=/usr/local/cuda/include; with pip, the header packages of nvidia-cuda-runtime and nvidia-curand
free memory on device cuda:0 is less than desired GPU memory utilization (vLLM)
  pattern free memory on device .{0,60}less than desired gpu memory utilization
  source  pytorch/pytorch#175666
  cause   vLLM wants a share of the GPU's whole memory, and another process holds a part of it.
  fix     nvidia-smi shows the processes; end those that should not run, or lower --gpu-memory-utilization
NVML_SUCCESS == r INTERNAL ASSERT FAILED (PyTorch)
  pattern nvml_success == .{0,60}internal assert failed
  source  fal-ai/fal#478
  cause   PyTorch ran out of GPU memory and could not ask NVML how much is used. With MIG or a wrong
          CUDA_VISIBLE_DEVICES, NVML does not know the device by that number.
  fix     treat it as CUDA out of memory: smaller batches, or no other process on the GPU; in MIG mode set
          CUDA_VISIBLE_DEVICES to the UUID of the instance
pidfd_getfd: Operation not permitted (PyTorch, CUDA IPC)
  pattern pidfd_getfd: operation not permitted
  source  HorizonRobotics/alf#1805
  cause   Processes share GPU memory by a file descriptor, which the kernel allows only for a process that may trace the
          other: kernel.yama.ptrace_scope is 1 or more, or the container's seccomp profile forbids it.
  fix     start the container with --cap-add=SYS_PTRACE; on the host sysctl kernel.yama.ptrace_scope=0; or
          PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False
Error 802: system not yet initialized
  pattern system not yet initialized
  code    cuda 802
  source  pytorch/pytorch#35710
  checks  driver.fabricmanager gpu.fabric gpu.nvswitch
  cause   The GPUs wait for the fabric manager: it does not run, has another version than the driver, or has not trained
          the links. On HGX B200 and B300 it also needs NVLSM and the kernel module ib_umad. In GB200 and GB300 racks it
          runs on the switch trays.
  fix     install nvidia-fabricmanager of exactly the driver's version (B200, B300: also nvlsm, and modprobe ib_umad),
          systemctl restart nvidia-fabricmanager; in a rack, look at the switch trays; nvidia-smi -q shows Fabric State:
          Completed; else reset all GPUs or reboot
CUDA driver version is insufficient for CUDA runtime version (error 35)
  pattern cuda driver version is insufficient for cuda runtime version
  also    nvidia driver on your system is too old
  code    cuda 35
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  image.compat gpu.torch libcuda.init
  cause   The program, or PyTorch in it, was built with a newer CUDA than the driver supports.
  fix     gpuready compat --image-cuda VERSION -i INVENTORY says which driver it needs; upgrade the driver, or use an
          image or PyTorch of an older CUDA
Found no NVIDIA driver on your system
  pattern found no nvidia driver on your system
  source  potterhsu/SVHNClassifier-PyTorch#5
  checks  driver.loaded libcuda.loader libcuda.container
  cause   PyTorch finds no libcuda.so.1: no driver on this node, or the container was started without the NVIDIA
          runtime.
  fix     in a container start it with --runtime=nvidia or --gpus all (gpuready docker-args); on the host install the
          driver
Torch not compiled with CUDA enabled
  pattern torch not compiled with cuda enabled
  source  pytorch/pytorch#28111
  checks  gpu.torch
  cause   This PyTorch is a build for the CPU.
  fix     install a build with CUDA into the same environment (pytorch.org/get-started/locally);
          print(torch.version.cuda) must not be None
CUDA initialization: Unexpected error from cudaGetDeviceCount()
  pattern unexpected error from cudagetdevicecount
  general
  source  microsoft/lisa#2823
  checks  libcuda.init gpu.torch libcuda.container
  cause   CUDA does not initialize in this process.
  fix     the number behind Error is the cause: pass it to gpuready explain, such as gpuready explain 'Error 802'
no CUDA-capable device is detected (error 100)
  pattern no cuda-capable device is detected
  also    no cuda gpus are available
  code    cuda 100
  source  AlexeyAB/darknet#86
  checks  driver.nodes driver.loaded gpu.count libcuda.container gpu.mig
  cause   CUDA sees no GPU: CUDA_VISIBLE_DEVICES is empty or wrong, the device nodes are missing, the container has no
          GPU, or MIG is on without instances.
  fix     unset CUDA_VISIBLE_DEVICES; compare nvidia-smi -L on the host and in the container; gpuready apply creates the
          device nodes
CUDA error: invalid device ordinal (error 101)
  pattern invalid device ordinal
  code    cuda 101
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  gpu.count gpu.mig
  cause   The program asks for a GPU number that this process does not have: fewer GPUs than expected, or
          CUDA_VISIBLE_DEVICES hides some.
  fix     compare nvidia-smi -L, CUDA_VISIBLE_DEVICES and the number of processes (--nproc-per-node)
CUDA driver is a stub library (error 34)
  pattern cuda driver is a stub library
  code    cuda 34
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  libcuda.stub libcuda.container
  cause   The loader found the stub libcuda.so of the CUDA toolkit (cuda/lib64/stubs) instead of the driver's. The stub
          is only for linking.
  fix     remove the stubs directory from LD_LIBRARY_PATH and /etc/ld.so.conf.d, then run ldconfig; for linking, set
          LIBRARY_PATH instead
API call is not supported in the installed CUDA driver (error 36)
  pattern api call is not supported in the installed cuda driver
  code    cuda 36
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  image.compat
  cause   The program relies on CUDA's minor version compatibility, and calls a function that this driver does not have.
  fix     upgrade the driver to the one of the program's CUDA version (gpuready compat), or use an older image
the provided PTX was compiled with an unsupported toolchain (error 222)
  pattern provided ptx was compiled with an unsupported toolchain
  code    cuda 222
  source  NVIDIA/CUDALibrarySamples#47
  checks  image.compat gpu.torch
  cause   The program contains PTX of a newer CUDA than the driver can compile.
  fix     upgrade the driver (gpuready compat --image-cuda VERSION -i INVENTORY says to which), or build for the GPU
          itself (TORCH_CUDA_ARCH_LIST, -arch=sm_XX)
no kernel image is available for execution on the device (error 209)
  pattern no kernel image is available for execution on th(?:e|is) device
  code    cuda 209
  source  pytorch/pytorch#31285
  checks  gpu.torch wheels.works gpu.model
  cause   The program has no code for this GPU: it is too new or too old for that build.
  fix     install a build for the GPU's compute capability (torch.cuda.get_arch_list() shows the build's), or build with
          TORCH_CUDA_ARCH_LIST
GPU with CUDA capability sm_120 is not compatible with the current PyTorch installation
  pattern with cuda capability sm_[0-9a-z]{2,4} is not compatible with the current pytorch
  also    pytorch no longer supports this gpu because it is too old
  source  Comfy-Org/ComfyUI#16438
  checks  gpu.torch wheels.works
  cause   This PyTorch has no code for this GPU. Blackwell needs a build with CUDA 12.8 or newer; builds with CUDA 13
          leave out Maxwell, Pascal and Volta.
  fix     install a PyTorch build that lists the GPU in torch.cuda.get_arch_list()
all CUDA-capable devices are busy or unavailable (error 46)
  pattern cuda-capable device(?:s are|\(s\) is/are) busy or unavailable
  code    cuda 46
  source  pytorch/pytorch#2704
  checks  gpu.answers gpu.xid gpu.recovery
  cause   Another process holds the GPU in exclusive mode, a vGPU has no licence or no memory sharing, or the GPU needs
          a reset.
  fix     nvidia-smi -q -d COMPUTE shows the compute mode (nvidia-smi -c DEFAULT changes it); end the processes that
          hold the GPU; look for an Xid in dmesg
CUDA out of memory. Tried to allocate
  pattern cuda (?:error: |failure ')?out of memory
  code    cuda 2
  source  Mukosame/AODA#9
  cause   The GPU's memory is full: the job needs more than the GPU has, or another process uses it.
  fix     nvidia-smi lists the processes on the GPU; end those that are left over, or make the batch smaller; against
          fragmentation set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
CUDA error: uncorrectable ECC error encountered (error 214)
  pattern uncorrectable ecc error encountered
  code    cuda 214
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  gpu.ecc gpu.remap gpu.xid gpu.retired
  cause   GPU memory had an error that ECC cannot correct, and CUDA ended the program. The GPU is at fault, not the
          program.
  fix     drain the node and reset the GPU: the reset replaces the bad row of memory; if the error returns, have the GPU
          replaced
CUDA error: an illegal memory access was encountered (error 700)
  pattern an illegal memory access was encountered
  code    cuda 700
  source  NVIDIA/nccl-tests#24
  checks  gpu.xid
  cause   The program read or wrote outside of its GPU memory. This is nearly always a fault of the program, not of the
          node.
  fix     DEBUG
CUDA error: device-side assert triggered (error 710)
  pattern device-side assert triggered
  code    cuda 710
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  cause   An assertion in the program's own GPU code failed, often an index or class number out of range.
  fix     run the program with CUDA_LAUNCH_BLOCKING=1, or on the CPU, to see the line; the node is not the cause
CUDA error: unspecified launch failure (error 719)
  pattern unspecified launch failure
  code    cuda 719
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  gpu.xid gpu.ecc
  cause   GPU code crashed: a fault of the program, or a GPU with an error.
  fix     run the program with CUDA_LAUNCH_BLOCKING=1 to see which call fails; an Xid 13, 31 or 43 in dmesg belongs to
          it; other Xids mean the GPU
CUDA error: unknown error (error 999)
  pattern (?:cuda|failed call to cuinit:) (?:(?:runtime )?(?:error|failure)[ :('0-9)]{1,12})?unknown error
  also    failed to initialize cuda: unknown error
  code    cuda 999
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  driver.nodes libcuda.init gpu.xid driver.match
  cause   CUDA does not initialize. Often /dev/nvidia-uvm is missing, or the module nvidia_uvm hangs after a suspend. A
          change of CUDA_VISIBLE_DEVICES in a running program is rarely the cause.
  fix     gpuready apply creates the device nodes; by hand: rmmod nvidia_uvm and modprobe nvidia_uvm while no program
          uses the GPU; read dmesg
CUDA error: initialization error (error 3)
  pattern cuda (?:runtime )?error[ :(]{1,3}3?\)?[ :]{0,3}initialization error
  code    cuda 3
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  driver.nodes libcuda.init config.cgroups
  cause   CUDA could not be initialized: the process was forked after CUDA had started, or the container may not use the
          devices.
  fix     in Python use multiprocessing's start method spawn; in a container, recreate the container and run gpuready
          verify
Cannot re-initialize CUDA in forked subprocess
  pattern cannot re-initialize cuda in forked subprocess
  source  docs.pytorch.org/docs/stable/notes/multiprocessing
  cause   The program used CUDA before it forked. The node is not the cause.
  fix     use multiprocessing's start method spawn
cudaErrorNvlinkUncorrectable: uncorrectable NVLink error detected (error 220)
  pattern uncorrectable nvlink error detected
  code    cuda 220
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  gpu.nvlink gpu.nvlink_errors gpu.xid gpu.fabric
  cause   An NVLink of this GPU had an error that it could not correct.
  fix     drain the node, reset all GPUs and restart the fabric manager; if it returns, have link and switch inspected
peer access is not supported between these two devices (error 217)
  pattern peer access is not supported between these two devices
  code    cuda 217
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  gpu.p2p gpu.mig
  cause   Two GPUs cannot access each other's memory: an IOMMU or ACS blocks it, MIG is on, or the GPUs do not support
          it.
  fix     turn MIG off; on bare metal set the IOMMU to pass-through (iommu=pt) and ACS off; nvidia-smi topo -p2p r shows
          the pairs
PTX JIT compiler library was not found (error 221)
  pattern ptx jit compiler library (?:was )?not found
  code    cuda 221
  source  docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)
  checks  driver.packages libcuda.ldcache
  cause   A part of the driver that compiles while programs run is missing here: libnvidia-ptxjitcompiler,
          libnvidia-nvvm70 (programs before CUDA 12), or libnvidia-tileiras (CUDA Tile), which older drivers do not
          have. Or the container lacks the capability compute.
  fix     ldconfig -p | grep libnvidia- in the container and on the host; install all packages of the driver at one
          version; set NVIDIA_DRIVER_CAPABILITIES=compute,utility in the container; with CDI, write the spec again
CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate(handle)
  pattern cublas_status_(?:not_initialized|alloc_failed)
  source  pytorch/pytorch#91958
  checks  gpu.torch
  cause   cuBLAS could not start, usually because the GPU's memory is full; sometimes a wrong index in the program, or
          mixed CUDA libraries.
  fix     nvidia-smi shows the free memory; make the batch smaller; unset LD_LIBRARY_PATH so that PyTorch loads its own
          cuBLAS
cuDNN error: CUDNN_STATUS_NOT_INITIALIZED
  pattern cudnn_status_(?:not_initialized|alloc_failed|execution_failed)
  source  haotian-liu/LLaVA#392
  checks  gpu.torch
  cause   cuDNN could not start: the GPU's memory is full, or LD_LIBRARY_PATH selects another cuDNN than the program was
          built with.
  fix     nvidia-smi shows the free memory; unset LD_LIBRARY_PATH so that the wheel's own cuDNN is loaded
libcuda.so cannot found! Please make sure GPU is set up (Triton)
  pattern libcuda\.so cannot found
  source  triton-lang/triton#2019
  checks  libcuda.triton libcuda.ldcache libcuda.container_triton
  cause   Triton searches libcuda in the directories that ldconfig -p lists, and the driver's directory is not among
          them, or has no libcuda.so.
  fix     gpuready apply (ldso) adds the directory and runs ldconfig; for one job set TRITON_LIBCUDA_PATH to the
          directory of libcuda.so.1
ld: cannot find -lcuda (Triton)
  pattern cannot find -lcuda\b
  source  triton-lang/triton#3053
  checks  libcuda.triton libcuda.ldcache
  cause   Triton (or another build) links libcuda, and there is only libcuda.so.1 and no libcuda.so, or it is where the
          linker does not look.
  fix     gpuready apply (ldso); for one job, link libcuda.so to libcuda.so.1 in a directory of LIBRARY_PATH
libcuda.so.1: cannot open shared object file: No such file or directory
  pattern libcuda\.so\.1: cannot open shared object file
  source  NVIDIA/nvidia-container-toolkit (libcuda in the container)
  checks  libcuda.loader libcuda.ldcache libcuda.container docker.smoke
  cause   The loader finds no libcuda.so.1: no driver, a directory that ldconfig does not list, or a container without
          the NVIDIA runtime.
  fix     in a container use --runtime=nvidia or --gpus all; on the host gpuready apply (ldso) adds the driver's
          directory to the linker cache
libnvidia-ml.so.1: cannot open shared object file: No such file or directory
  pattern libnvidia-ml\.so(?:\.1)?: cannot open shared object file
  source  docker/for-win#13835
  checks  driver.loaded libcuda.ldcache docker.runtime
  cause   The driver's management library is not found: no driver, a directory that ldconfig does not list, or a
          container without the NVIDIA runtime or the capability utility.
  fix     in a container use --runtime=nvidia and NVIDIA_DRIVER_CAPABILITIES=compute,utility; on the host gpuready apply
          (ldso)
libcublas.so.12, libcudart.so.12 or libcudnn.so.9: cannot open shared object file
  pattern lib(?:cudart|cublas|cublaslt|cufft|curand|cusolver|cusparse|cusparselt|cudnn[a-z_]{0,20}|nccl|nvrtc|nvjitlink|cupti|nvshmem_host)\.so(?:\.[0-9.]{1,12})?: cannot open shared object file
  source  vllm-project/vllm#31018
  checks  wheels.works gpu.torch
  cause   A library of CUDA, cuDNN or NCCL is missing. It comes with the program or a package, not with the driver: the
          package was built for another CUDA version.
  fix     install the package's build for your CUDA (cu12, cu13), or the matching nvidia-*-cuNN wheels; the driver needs
          no change
undefined symbol: ncclCommRegister / __nvJitLinkComplete (mixed CUDA libraries)
  pattern undefined symbol: (?:__nvjitlink|nccl[a-z]|cublas|cudnn|cusparse)
  source  pytorch/pytorch (mixed CUDA libraries)
  checks  wheels.works gpu.torch
  cause   Libraries of two CUDA or NCCL versions mix: LD_LIBRARY_PATH or a system package supplies an older one than the
          program needs.
  fix     unset LD_LIBRARY_PATH, or reinstall the nvidia-*-cuNN wheels that this PyTorch asks for
Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)
  pattern unexpected bus error encountered in worker
  also    dataloader worker \(pid[^)]{0,30}\) is killed by signal: bus error
  source  nianticlabs/simplerecon#3
  checks  docker.config
  cause   The container's /dev/shm is full: Docker gives 64 MiB, and PyTorch's data loaders share tensors there.
  fix     docker run --shm-size=8g or --ipc=host; for all new containers: runtimes.docker.shm_size in the spec, then
          gpuready apply
The detected CUDA version mismatches the version that was used to compile PyTorch
  pattern detected cuda version .{0,40}mismatches the version that was used to compile pytorch
  source  pytorch/pytorch (torch/utils/cpp_extension.py)
  cause   An extension is being built with the nvcc of another CUDA version than that of PyTorch. The driver is not the
          cause.
  fix     install the CUDA toolkit of torch.version.cuda and set CUDA_HOME to it, or use a wheel of the extension
CUDA_HOME environment variable is not set
  pattern cuda_home environment variable is not set
  also    cuda_home does not exist, unable to compile cuda op
  source  pytorch/pytorch (torch/utils/cpp_extension.py)
  cause   An extension is being built, and there is no CUDA toolkit (nvcc). The driver does not contain one.
  fix     install the CUDA toolkit of torch.version.cuda and set CUDA_HOME to it, use a -devel image, or a wheel
nvcc fatal: Unsupported gpu architecture 'compute_120'
  pattern unsupported gpu architecture '?(?:compute|sm)_
  source  docs.nvidia.com/cuda/cuda-compiler-driver-nvcc
  checks  gpu.torch
  cause   This nvcc does not know the GPU's architecture: the toolkit is too old for a new GPU, or too new for an old
          one (CUDA 13 supports no GPU before Turing).
  fix     use the CUDA toolkit that supports the GPU (Blackwell: 12.8 or newer), or set TORCH_CUDA_ARCH_LIST to what it
          knows
This container was built for NVIDIA Driver Release X or later, but version Y was detected and compatibility mode is UNAVAILABLE
  pattern this container was built for nvidia driver release
  source  docs.nvidia.com/deeplearning/frameworks (NGC images)
  checks  image.compat
  cause   The NGC image needs a newer driver, and its compatibility libraries do not fit this GPU or driver branch.
  fix     gpuready compat -i INVENTORY --image IMAGE lists what helps; upgrade the driver, or use an older tag of the
          image
torch.cuda.is_available() returns False
  pattern \bcuda\.is_available(?:\(\))?\W{1,8}(?:(?:is|returns?|returned|=)\W{1,8})?false\b
  source  pytorch/serve#478
  checks  libcuda.init docker.smoke gpu.torch image.compat
  cause   This PyTorch has no CUDA (a CPU build), the container was started without GPUs, or the driver does not start
          (cuInit).
  fix     print torch.version.cuda: None means a CPU build; in a container use --gpus all or --runtime=nvidia; else
          gpuready verify names what is wrong with the driver
WARNING: The NVIDIA Driver was not detected. GPU functionality will not be available (NGC image)
  pattern nvidia driver was not detected\. gpu functionality will not be available
  source  docs.nvidia.com/deeplearning/frameworks (NGC images)
  checks  docker.runtime docker.smoke driver.loaded
  cause   The container was started without GPUs, or the host has no driver.
  fix     start it with --runtime=nvidia or --gpus all (gpuready docker-args prints the options)
ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name' (Triton)
  pattern fatal ?: value 'sm_[0-9a-z]{2,5}' is not defined for option 'gpu-name'
  source  triton-lang/triton#8539
  checks  gpu.torch wheels.works
  cause   Triton's ptxas is older than this GPU.
  fix     set TRITON_PTXAS_PATH to the ptxas of a CUDA toolkit that knows the GPU, such as /usr/local/cuda/bin/ptxas; or
          install a newer Triton and PyTorch
'sm_120' is not a recognized processor for this target (Triton)
  pattern 'sm_[0-9a-z]{2,5}' is not a recognized processor for this target
  source  woct0rdho/triton-windows#93
  checks  gpu.torch wheels.works
  cause   Triton's LLVM is older than this GPU.
  fix     install a newer Triton and the PyTorch that comes with it
Minimum and Maximum cuda capability supported by this version of PyTorch is (8.0) - (12.0)
  pattern minimum and maximum cuda capability supported by this version of pytorch
  source  eugr/spark-vllm-docker#15
  checks  gpu.torch wheels.works
  cause   A warning: this PyTorch was not built for exactly this GPU. Code for an older GPU of the same major version
          runs, such as 12.0 on 12.1.
  fix     nothing, if programs run; after 'no kernel image is available' install a build that lists the GPU in
          torch.cuda.get_arch_list()
CUDA error: operation not permitted (error 800)
  pattern cuda (?:error: |failure (?:800 )?')operation not permitted
  also    failed to get device context 800
  code    cuda 800
  source  ollama/ollama#11373
  checks  config.cgroups driver.charlinks libcuda.container
  cause   If nvidia-smi in the container fails, too, the container lost its GPU: a systemctl daemon-reload on the host
          took its rights. Otherwise CUDA does not allow this call here, such as one during a graph capture.
  fix     recreate the container; gpuready apply makes the links in /dev/char that prevent the loss; else
          CUDA_LAUNCH_BLOCKING=1 shows the call
Unable to load any of {libcudnn_ops.so.9.1.0, ...} Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor
  pattern unable to load any of \{libcudnn_
  also    cannot load symbol cudnn
  also    cudnn version incompatibility: pytorch was compiled against
  source  QuentinFuxa/WhisperLiveKit#271
  checks  wheels.works gpu.torch
  cause   The program finds no cuDNN, or LD_LIBRARY_PATH selects another version than it was built for. cuDNN comes with
          a package, not with the driver.
  fix     install cuDNN of that version (such as nvidia-cudnn-cu12), and unset LD_LIBRARY_PATH; only a program without
          PyTorch's wheels, such as CTranslate2, needs the directory of libcudnn_ops.so in it
libc.so.6: version `GLIBC_2.32' not found (required by flash_attn_2_cuda...so)
  pattern version 'glibc(?:xx)?_[0-9.]{3,7}' not found \(required by [^)]{0,200}(?:flash_attn|libnccl|libtorch|/torch/|vllm|triton|nvidia|cuda)
  source  Dao-AILab/flash-attention#2225
  checks  wheels.works
  cause   This library was built on a newer distribution: it needs a newer glibc (or libstdc++) than this host or image
          has. The driver is not the cause.
  fix     use a newer image (Ubuntu 22.04 has glibc 2.35), an older release of the package, or build the package here
flash_attn_2_cuda...so: undefined symbol: _ZN3c105ErrorC2... (built for another PyTorch)
  pattern undefined symbol: _znk?(?:3c10|2at|5torch)
  source  Dao-AILab/flash-attention#1832
  checks  wheels.works
  cause   This extension was built for another PyTorch than the installed one. The driver is not the cause.
  fix     install its build for this PyTorch, CUDA, Python and C++ ABI (the wheel's name has all four), or build it
          here: pip install --no-build-isolation --no-cache-dir PACKAGE
RuntimeError: Failed to find C compiler. Please specify via CC environment variable (Triton)
  pattern failed to find c compiler\. please
  source  vllm-project/vllm#15329
  cause   Triton compiles a small C file when it starts, also below torch.compile and vLLM, and there is no C compiler.
          The driver is not the cause.
  fix     install gcc in the image, or set CC to a compiler
/tmp/tmps1rkq3y3/main.c:5:10: fatal error: Python.h: No such file or directory (Triton)
  pattern /tmp/[a-z0-9_/]{3,40}/(?:main|cuda_utils|__triton_launcher)\.c:[0-9:]{2,9} fatal error: python\.h
  source  sgl-project/sglang#1117
  cause   Triton compiles a small C file when it starts, and the headers of this Python are not installed.
  fix     install python3-dev, or pythonX.Y-dev for the Python that runs; the driver needs no change
mapping of buffer object failed (error 205)
  pattern \bmapping of buffer object failed
  code    cuda 205
  source  tinygrad/open-gpu-kernel-modules#16
  checks  gpu.p2p gpu.pcie
  cause   CUDA cannot map the memory of one GPU for another one: the PCIe window (BAR1) of a GPU is smaller than its
          memory. Most often seen with drivers that are patched for peer-to-peer access between GeForce cards.
  fix     switch Above 4G Decoding and Resizable BAR on in the BIOS; nvidia-smi -q -d MEMORY shows the size of BAR1;
          else NCCL_P2P_DISABLE=1
Loaded runtime CuDNN library: 8.7.0 but source was compiled with: 8.9.6.
  pattern loaded runtime cudnn library: [0-9.]{1,12} but source was compiled with
  source  hfawaz/dl-4-tsc#54
  cause   TensorFlow or JAX loads an older cuDNN than it was built with: from LD_LIBRARY_PATH, the system, or a wheel
          that another package asked for.
  fix     unset LD_LIBRARY_PATH; pip install the nvidia-cudnn-cu12 of the second version or newer, with the same major
          version (pip install 'tensorflow[and-cuda]' does); two frameworks that need two versions: two environments
CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling cublasGemmEx
  pattern cublas_status_invalid_value when calling
  source  vllm-project/vllm#35608
  cause   Most often the program loads another cuBLAS than PyTorch was built with, because LD_LIBRARY_PATH comes
          first. Otherwise the program passes shapes that cuBLAS refuses.
  fix     unset LD_LIBRARY_PATH and try again (in a container: -e LD_LIBRARY_PATH=); pip install the
          nvidia-cublas-cuNN that this PyTorch asks for; /proc/PID/maps names the libcublas that is loaded
Failed: Cuda error custom_all_reduce.cuh:455 'invalid argument' (vLLM)
  pattern cuda error [^ ]{0,100}custom_all_reduce\.cuh:[0-9]{1,5} 'invalid argument
  also    invalid argument [^ ]{0,120}custom_all_reduce\.cuh
  also    custom_all_reduce\.cuh:[0-9]{1,5}: cuda error: invalid argument
  source  vllm-project/vllm#42609
  cause   vLLM shares GPU memory between its processes by CUDA IPC, which does not work with the memory of
          expandable_segments:True.
  fix     take expandable_segments:True out of PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF), or start vLLM with
          --disable-custom-all-reduce
RuntimeError: Failed to infer device type (vLLM)
  pattern failed to infer device type
  also    no platform detected, vllm is running on unspecifiedplatform
  source  ai-dynamo/dynamo#391
  cause   vLLM found no GPU platform when it was loaded: NVML does not work in this container, an old package pynvml
          hides nvidia-ml-py, or PyTorch or vLLM is a build for CPUs.
  fix     nvidia-smi must work in the same container; pip uninstall pynvml, pip install nvidia-ml-py;
          VLLM_LOGGING_LEVEL=DEBUG says why each platform was refused; torch.version.cuda must not be None
cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH
  pattern cudnn_status_sublibrary_version_mismatch
  source  pytorch/pytorch#185512
  cause   The parts of cuDNN come from two versions: some from the wheel, others from the system (apt, dnf) or from
          LD_LIBRARY_PATH, or the wheel lacks one. The GPU's memory has no part in it.
  fix     LD_DEBUG=libs python3 PROGRAM 2>&1 | grep 'calling init.*cudnn' shows the places; remove the system's
          packages (libcudnn9-*), unset LD_LIBRARY_PATH, and reinstall the nvidia-cudnn-cuNN that this PyTorch asks
          for
AssertionError: No NVLink connection between GPU 0 and GPU 1, but allow_nvlink_for_normal_mode=True (DeepEP)
  pattern no nvlink connection between (?:gpu [0-9]{1,2} and gpu [0-9]{1,2}|all gpus)
  source  NVIDIA-NeMo/Automodel#2968
  checks  gpu.nvlink gpu.fabric driver.imex
  cause   DeepEP needs NVLink between all GPUs of a node and does not find it: PCIe cards have none or only in pairs,
          the fabric is not ready, or on GB200 the container has no IMEX channel. With the same number twice, each rank
          sees only its own GPU.
  fix     nvidia-smi topo -m must show NV between all GPUs, nvidia-smi -q Fabric State: Completed; on GB200 give the job
          a ComputeDomain; let each rank see all GPUs; without NVLink use another backend for expert parallelism
(raylet) System memory request exceeds memory available in /dev/shm (Ray)
  pattern system memory request exceeds memory available in /dev/shm
  also    the object store is using \S{1,60} instead of /dev/shm because /dev/shm has only
  source  gpustack/gpustack#5014
  checks  docker.config
  cause   Ray keeps its objects in /dev/shm, and this container's /dev/shm is too small: Docker gives 64 MiB. Ray then
          stops, or uses the slower /tmp.
  fix     docker run --shm-size=16g (Ray wants 30 % of the memory) or --ipc=host; for all new containers:
          runtimes.docker.shm_size in the spec, then gpuready apply; in Kubernetes mount an emptyDir with medium:
          Memory at /dev/shm
The engine plan file is generated on an incompatible device, expecting compute 8.9 got compute 8.6 (TensorRT)
  pattern engine plan file is generated on an incompatible device
  also    version tag does not match\. note: current version: [0-9]{1,5}, serialized engine version
  source  deepinsight/insightface#2882
  cause   The TensorRT engine (.engine, .plan, .trt) was built on a GPU of another kind (got), or by another version of
          TensorRT. An engine fits only these. The driver is not the cause.
  fix     delete the engine and build it on this GPU with this TensorRT: trtexec --onnx=MODEL.onnx
          --saveEngine=MODEL.engine; if 'expecting' is not the GPU that you mean, set CUDA_VISIBLE_DEVICES
1 Workers (tasks / actors) killed due to memory pressure (OOM) (Ray)
  pattern workers \(tasks / actors\) killed due to memory pressure
  also    task was killed due to the node running low on memory
  source  hiyouga/EasyR1#185
  cause   The memory of the host, not of the GPU, was nearly full, or the memory limit of the container. Ray then ends
          the newest worker.
  fix     give the container more memory, or start fewer workers and keep less data on the CPU (offload);
          RAY_memory_usage_threshold moves the limit; without it (RAY_memory_monitor_refresh_ms=0) the kernel ends a
          process instead
ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters
  pattern err_nvgpuctrperm
  also    (?<!if you see )cupti_error_insufficient_privileges
  also    does not have permission to (?:access nvidia gpu performance counters|profile on the target device)
  source  huggingface/hub-docs#2714
  cause   The driver gives the GPU's performance counters to administrators only. Another image or another version of
          Nsight does not change that.
  fix     for one container: --cap-add=SYS_ADMIN; for all users of the node: options nvidia
          NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, rebuild the initramfs, reboot; then
          /proc/driver/nvidia/params has RmProfilingAdminOnly: 0
ValueError: Current node has no GPU available (vLLM with Ray)
  pattern current node has no gpu available
  also    ray does not allocate any gpus on the driver node
  source  vllm-project/vllm#29265
  checks  gpu.count
  cause   Ray has no free GPU on the node where vLLM was started: Ray was started there without GPUs, another job or
          placement group holds them, or vLLM was started on a node that has none.
  fix     ray status shows used and all GPUs, ray list placement-groups who holds them; end what is left over; start
          vLLM on a node with GPUs; nvidia-smi must work in the container before ray start
Tensor parallel size (2) exceeds available GPUs (1) (vLLM)
  pattern tensor parallel size \([0-9]{1,5}\) exceeds available gpus \([0-9]{1,5}\)
  general
  source  NVIDIA/dgx-spark-playbooks#63
  checks  gpu.count
  cause   A warning: this node has fewer GPUs than tensor times pipeline parallel size. With Ray over several nodes that
          is normal, if the cluster has enough GPUs.
  fix     ray status must show as many free GPUs as tensor times pipeline parallel size; on one node lower
          --tensor-parallel-size to the number that nvidia-smi -L shows in the container
The number of required GPUs exceeds the total number of available GPUs in the placement group (vLLM with Ray)
  pattern number of required gpus exceeds the total number of available gpus in the
  also    cannot provide a placement group requiring [0-9.]{1,8} gpus
  source  vllm-project/vllm#26028
  checks  gpu.count
  cause   vLLM needs tensor times pipeline parallel size GPUs, and Ray's cluster, or the placement group that vLLM was
          started in, has fewer.
  fix     ray status must show all nodes and enough free GPUs before vLLM starts; a node without GPUs there: nvidia-smi
          must work in its container before ray start; in Ray Serve give the placement group one bundle per GPU
nvrtc: error: failed to open libnvrtc-builtins.so.12.8
  pattern failed to open (?:lib)?nvrtc-builtins
  source  nanoporetech/dorado#1319
  checks  wheels.works
  cause   libnvrtc compiles for the GPU, and does not find its second part of the same version: the package lacks it, or
          it is where the loader does not look. The driver is not the cause.
  fix     find / -name 'libnvrtc-builtins*'; put the directory of that version first in LD_LIBRARY_PATH; or pip install
          nvidia-cuda-nvrtc-cu12 (CUDA 13: nvidia-cuda-nvrtc) of that version
ValueError: No available memory for the cache blocks. Try increasing gpu_memory_utilization (vLLM)
  pattern no available memory for the cache blocks
  also    kv cache is needed, which is larger than the available kv cache memory
  source  vllm-project/vllm#27508
  cause   The weights fit, but of the share of GPU memory that vLLM may use, nothing or too little is left for the KV
          cache.
  fix     nvidia-smi shows other processes on the GPU; raise --gpu-memory-utilization (0.95), lower --max-model-len and
          --max-num-seqs, or use more GPUs (--tensor-parallel-size)
Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs (vLLM)
  pattern custom allreduce is disabled because
  general
  source  vllm-project/vllm#13719
  checks  gpu.p2p
  cause   A note, not an error: these GPUs have no NVLink between all of them, or no peer-to-peer access, so vLLM uses
          NCCL instead of its own kernel.
  fix     nothing; --disable-custom-all-reduce leaves the note out; if vLLM hangs after it, NCCL_DEBUG=INFO shows where
ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory (llama.cpp, Ollama)
  pattern cudamalloc failed: out of memory
  also    unable to allocate cuda[0-9]{1,2} buffer
  source  ollama/ollama#9260
  cause   The part of the model that belongs on this GPU does not fit into its memory, or another process uses it.
  fix     nvidia-smi lists the processes on the GPU; put fewer layers on the GPU (llama.cpp: -ngl, Ollama: num_gpu),
          make the context smaller, or use more GPUs or a smaller quantization
The memory capacity is unbalanced. Some GPUs may be occupied by other processes (SGLang)
  pattern memory capacity is unbalanced\. (?:some gpus may be occupied|min_)
  source  sgl-project/sglang#4233
  cause   The free memory of the GPUs differs by more than a tenth: another process uses one of them, or they are of
          different sizes.
  fix     nvidia-smi shows the processes; end those that are left over; use GPUs of one size; if the difference is
          intended, SGLANG_DISABLE_TP_MEMORY_INBALANCE_CHECK=1 (older releases: SGL_DISABLE_...)
Not enough memory. Please try to increase --mem-fraction-static (SGLang)
  pattern not enough memory\. please try to increase --mem-fraction-static
  source  sgl-project/sglang#4330
  cause   After the weights, nothing of the share --mem-fraction-static is left for the KV cache: the model is too large
          for these GPUs, or another process uses their memory.
  fix     nvidia-smi shows other processes; raise --mem-fraction-static in small steps; if CUDA out of memory follows,
          the model needs more GPUs (--tp), a smaller quantization, or no draft model
No PTX compilation provider is available. Neither ptxas/nvlink nor nvjtlink is available (JAX, TensorFlow)
  pattern no ptx compilation provider is available
  source  wutzebaer/tensorflow-5090#3
  cause   XLA compiles for the GPU and finds no ptxas that is new enough. ptxas is part of the CUDA toolkit, not of the
          driver.
  fix     pip install nvidia-cuda-nvcc-cu12 (CUDA 13: nvidia-cuda-nvcc), or install the CUDA toolkit and put
          /usr/local/cuda/bin on the PATH; until then
          XLA_FLAGS=--xla_gpu_unsafe_fallback_to_driver_on_ptxas_not_found
LLVM ERROR: PTX version 8.5 does not support target 'sm_120'. Minimum required PTX version is 8.7. (TensorFlow, JAX)
  pattern ptx version [0-9.]{1,5} does not support target 'sm_
  source  TaterTotterson/microWakeWord-Trainer-Nvidia-Docker#56
  checks  wheels.works
  cause   The LLVM inside TensorFlow, JAX or Triton is older than this GPU. ptxas and the driver are not the cause.
  fix     install a release that supports the GPU, or NVIDIA's image of it (Blackwell: built with CUDA 12.8 or newer)
nvrtc: error: invalid value for --gpu-architecture (-arch)
  pattern nvrtc: error: invalid value for --gpu-architecture
  source  isaac-sim/IsaacLab#5520
  checks  gpu.torch wheels.works
  cause   The NVRTC that the program loads does not know this GPU. It is too old (an old CUDA in PyTorch, CuPy or
          LD_LIBRARY_PATH), or too new: CUDA 13 leaves out Maxwell, Pascal and Volta (GTX 10, P100, V100).
  fix     install a build for a CUDA that knows the GPU (Ada and Hopper: 11.8, Blackwell: 12.8 or newer; Pascal and
          Volta: CUDA 12, such as cupy-cuda12x); unset LD_LIBRARY_PATH
llama-server GPU discovery watchdog timed out (Ollama)
  pattern llama-server gpu discovery watchdog timed out
  also    failure during (?:llama-server )?gpu discovery
  also    failed to finish discovery before timeout
  also    unable to refresh free memory, using old values
  source  ollama/ollama#18144
  checks  gpu.xid gpu.answers
  cause   Ollama asks the GPUs for their memory in a process of its own, and that did not answer in time. A GPU or the
          driver hangs, often after an Xid, or needs long to start without nvidia-persistenced.
  fix     dmesg | grep -E 'NVRM|Xid', and pass that line to gpuready explain; time nvidia-smi: if it hangs, reset the
          GPU or reboot, if it only takes seconds, start nvidia-persistenced; then restart ollama
Your current NVIDIA GPU driver version is not supported. Required: driver version >= 580 (Mojo, MAX)
  pattern current nvidia gpu driver version is not supported\. required: driver version
  source  modular/mojo-gpu-puzzles#256
  checks  driver.match
  cause   The installed driver is older than this release of Mojo needs. A Jetson Orin has the driver of its JetPack
          (540), which cannot be updated alone.
  fix     install the driver that the message names, or an older release; on a Jetson Orin:
          MODULAR_NVPTX_COMPILER_PATH=/usr/local/cuda-12.6/bin/ptxas
DeepEP error: timeout (dispatch CPU) / DeepEP dispatch NVL receiver timeout
  pattern \bdeepep error: timeout \((?:dispatch|combine) cpu\)
  also    \bdeepep (?:dispatch|combine) [a-z() ]{1,50}timeout
  source  deepseek-ai/DeepEP#707
  checks  gpu.xid rdma.ports fabric.ports
  cause   DeepEP waited in vain for the tokens of another node. Another rank ended or hangs, RDMA between the nodes does
          not work, or DeepEP does not fit its NVSHMEM: with 3.5 or newer it hangs if it lacks its change #564.
  fix     look for the first error in the logs of all ranks; pip list | grep -i nvshmem: with 3.5 or newer use a DeepEP
          that has #564, or an older NVSHMEM; gpuready fabric -i INVENTORY tests each pair of ports
[TRT-LLM] NVLinkOneSided not available: Invalid Argument
  pattern nvlink(?:onesided|twosided) not available: invalid argument
  source  NVIDIA/TensorRT-LLM#17060
  cause   A fault of TensorRT-LLM with nvidia-ml-py 13: it asks for more NVLinks than the GPU has (GB200: 18), and takes
          the answer for a missing NVLink. Later errors of DeepEP or NVSHMEM follow from it. The node is not the cause.
  fix     use a TensorRT-LLM that has change #17060 (end of July 2026)
DeepEP: Assertion error internode.cu 'false and "Unsupported RDMA ranks"'
  pattern \bunsupported rdma ranks
  also    num_ranks <= num_max_nvl_peers \* num_max_rdma_peers
  source  deepseek-ai/DeepEP#90
  cause   DeepEP's normal kernels are built for some numbers of nodes with 8 GPUs, such as 2, 4, 8 and 16, and for 20
          at most. This group has another number. The nodes are not the cause.
  fix     use a number of nodes that SWITCH_RDMA_RANKS in csrc/kernels/launch.cuh lists, or add yours there and build
          DeepEP again; low-latency mode has no such list
common_ops.abi3.so: undefined symbol: cuGreenCtxDestroy (older libcuda)
  pattern undefined symbol: cugreenctx[a-z]
  also    undefined symbol: cutensormapencode
  source  sgl-project/sglang#8432
  checks  image.compat libcuda.copies libcuda.init
  cause   The program calls a function that this libcuda, which is part of the driver, does not have: cuGreenCtx needs
          the driver of CUDA 12.4 (550), cuTensorMap that of 12.0 (525). A newer toolkit or PyTorch does not help.
  fix     nvidia-smi shows the driver's version: upgrade the driver; for SGLang before that, sgl-kernel 0.3.6.post1 or
          newer needs no cuGreenCtx at start
[sgl_kernel] CRITICAL: Could not load any common_ops library! (SGLang)
  pattern could not load any common_ops library
  also    can not import sgl_kernel\. please check your installation
  general
  source  sgl-project/sglang#18203
  checks  wheels.works gpu.torch
  cause   sgl_kernel does not load. The reason is below 'Error details': a missing libnvrtc.so.12 or libcudart.so.12 (a
          wheel for CUDA 12, and PyTorch for CUDA 13), or an undefined symbol (built for another PyTorch).
  fix     python3 -c 'import sgl_kernel' prints it; install the PyTorch version that this SGLang asks for, and the build
          of sgl_kernel for its CUDA (torch.version.cuda; CUDA 13: the cu130 wheels of sgl-project/whl)
Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR (JAX, TensorFlow)
  pattern could not create cudnn handle: cudnn_status_(?:internal_error|not_initialized|alloc_failed)
  source  jax-ml/jax#28550
  checks  wheels.works libcuda.init
  cause   cuDNN does not start. Either the GPU has too little free memory (the next line shows it; JAX takes 75 % of the
          memory before cuDNN starts), or libcudnn is of another version than JAX or TensorFlow was built for.
  fix     nvidia-smi: end other processes; XLA_PYTHON_CLIENT_MEM_FRACTION=.6, for TensorFlow
          TF_FORCE_GPU_ALLOW_GROWTH=true; unset LD_LIBRARY_PATH, and install the nvidia-cudnn-cuNN that the package asks
          for
A worker died or was killed while executing a task by an unexpected system error (Ray)
  pattern a worker died or was killed while executing a task by an unexpected system error
  also    worker unexpectedly exits with a connection error code
  also    the actor is dead because its worker process has died
  general
  source  verl-project/verl#472
  checks  gpu.xid
  cause   A process of Ray ended without a message of its own: the kernel killed it for lack of memory, it crashed, or
          somebody ran ray stop. The reason is in another log.
  fix     dmesg -T | grep -iE 'killed process|segfault|xid' on that node, and the end of
          /tmp/ray/session_latest/logs/worker-*PID.err; pass what is there to gpuready explain
offloaded 0/25 layers to GPU (Ollama, llama.cpp)
  pattern offloaded 0/[0-9]{1,4} layers to gpu
  also    no usable gpu found, --gpu-layers option will be ignored
  general
  source  ollama/ollama#13320
  checks  libcuda.init libcuda.container driver.nodes
  cause   The model runs on the CPU. The program found no GPU when it started, found too little free GPU memory, or its
          build has no CUDA library for this driver or GPU.
  fix     the reason is near the program's start: OLLAMA_DEBUG=2 and journalctl -u ollama, lines of 'discovery' and
          'inference compute' (llama.cpp: ggml_cuda_init); nvidia-smi must work in the container; then restart it
CUDA error: operation not supported (error 801)
  pattern cuda error: operation not supported(?! on )
  code    cuda 801
  source  Comfy-Org/ComfyUI#6843
  checks  gpu.model
  cause   The GPU, or the virtual GPU, cannot do what the program asks for. With ComfyUI mostly memory pools
          (cudaMallocAsync), which old GPUs such as Maxwell, and some virtual GPUs, do not have.
  fix     ComfyUI: --disable-cuda-malloc; PyTorch: take backend:cudaMallocAsync out of PYTORCH_CUDA_ALLOC_CONF
          (PYTORCH_ALLOC_CONF); else CUDA_LAUNCH_BLOCKING=1 shows the call
Could not find the bitsandbytes CUDA binary at PosixPath('.../libbitsandbytes_cuda124.so')
  pattern could not find the bitsandbytes cuda binary
  also    could not load bitsandbytes native library
  also    cuda setup failed despite (?:gpu|cuda) being available
  source  bitsandbytes-foundation/bitsandbytes#1559
  checks  wheels.works gpu.torch
  cause   bitsandbytes has no library for this CUDA version: its release does not know the CUDA of PyTorch,
          BNB_CUDA_VERSION names another one, or it was installed from source and its library was not built.
  fix     unset BNB_CUDA_VERSION; pip install -U bitsandbytes in place of a source tree; python3 -m bitsandbytes shows
          what it looks for
cannot import name 'LMCacheEngineMetadata' from 'lmcache.config' (vLLM with LMCache)
  pattern cannot import name '?lmcache[a-z]{1,40}'? from '?lmcache\.
  source  LMCache/LMCache#2853
  cause   The connector in vLLM and the installed LMCache are of versions that do not fit each other.
  fix     install the LMCache release that its documentation lists for this vLLM, or use an image that has both
          (lmcache/vllm-openai); the driver needs no change
GPU device discovery failed: device_discovery.cc:89 ReadFileContents Failed to open file (ONNX Runtime)
  pattern gpu device discovery failed: device_discovery\.cc
  also    device_discovery\.cc:[0-9]{1,4} readfilecontents failed to open file
  general
  source  microsoft/onnxruntime#26763
  cause   A warning of ONNX Runtime: this card in /sys/class/drm is no PCI device, such as the console's framebuffer. It
          does not keep CUDAExecutionProvider from working.
  fix     nothing; if CUDAExecutionProvider is not among the available providers: pip uninstall onnxruntime, and install
          onnxruntime-gpu
Jax plugin configuration error: Exception when calling jax_plugins.xla_cuda12.initialize()
  pattern jax plugin configuration error: exception when calling jax_plugins
  also    operation cudaruntimegetversion\(&version\) failed
  also    unable to use cuda because of the following issues with cuda components
  also    cudart_stub\.cc:[0-9]{1,4}\] could not find cuda drivers on your machine
  source  NixOS/nixpkgs#560004
  checks  wheels.works libcuda.init libcuda.container
  cause   JAX or TensorFlow cannot load CUDA's libraries and runs on the CPU. The wheels with the libraries are missing
          or of another CUDA than the plugin, LD_LIBRARY_PATH has other ones, or there is no driver.
  fix     nvidia-smi must work; then unset LD_LIBRARY_PATH and pip install -U 'jax[cuda13]' (or cuda12; TensorFlow:
          'tensorflow[and-cuda]'), with only one of jax-cuda12-plugin and jax-cuda13-plugin installed
CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths
  pattern cuda compiler and (?:cuda )?toolkit headers are incompatible
  source  flashinfer-ai/flashinfer#3493
  cause   nvcc and the headers that it includes are of two CUDA versions: wheels of two versions (nvidia-cuda-nvcc 13.3
          with nvidia-cuda-runtime 13.0), or CUDA_HOME, PATH and conda name different toolkits.
  fix     nvcc --version, echo $CUDA_HOME and pip list | grep nvidia-cuda must name one version, that of
          torch.version.cuda; reinstall the others, and delete the cache of the program (~/.cache/flashinfer)
RuntimeError: FlashInfer requires GPUs with sm75 or higher
  pattern flashinfer requires (?:gpus with )?sm[0-9]{2}(?:\+| or higher)
  also    failed to get device capability: sm [0-9.x]{2,6} requires cuda >=
  source  vllm-project/vllm#50751
  checks  gpu.model
  cause   Mostly not the GPU: FlashInfer finds no architecture that it can compile for. Blackwell (sm_120) needs nvcc
          12.9 or newer, and nvcc counts here, not the CUDA of PyTorch; or TORCH_CUDA_ARCH_LIST names older GPUs.
  fix     nvcc --version; install CUDA toolkit 12.9 or newer (not the driver) and set CUDA_HOME; unset
          TORCH_CUDA_ARCH_LIST; vLLM until then: VLLM_USE_FLASHINFER_SAMPLER=0
flashinfer/sampling.cuh(623): error: class "cub::_V_300302_SM_890::BlockAdjacentDifference<...>" has no member
  pattern flashinfer/[a-z0-9_./-]{1,80}\([0-9]{1,5}\): error: class .{0,2}cub::
  source  flashinfer-ai/flashinfer#4763
  cause   FlashInfer compiles for the GPU at its first use, and its own headers (CCCL) do not fit this nvcc: the CUDA
          toolkit is too old, or has other headers in the way.
  fix     nvcc --version; install the CUDA toolkit of torch.version.cuda (not the driver), set CUDA_HOME, and delete
          ~/.cache/flashinfer; vLLM until then: VLLM_USE_FLASHINFER_SAMPLER=0
mpi4py.MPI.Exception: MPI_ERR_UNKNOWN: unknown error (TensorRT-LLM)
  pattern mpi4py\.mpi\.exception: mpi_err_(?:unknown|spawn)
  source  ai-dynamo/dynamo#15060
  cause   MPI cannot start the worker processes (MPI_Comm_spawn). Open MPI 5 uses PRRTE for that, which does not work in
          some images (TensorRT-LLM 1.3.0rc27), nor always below Slurm.
  fix     use an image with Open MPI 4 (mpirun --version; 1.3.0rc26 has it); in a Slurm job let Slurm start the
          processes: srun --mpi=pmix trtllm-llmapi-launch PROGRAM; the driver needs no change
Error Code 2: Internal Error (Assertion major >= 0 && major < 10 failed. ) (TensorRT)
  pattern assertion major >= 0 && major < 10 failed
  also    nvinfer1::smverhex2dig
  source  lightvector/KataGo#1041
  checks  gpu.model
  cause   This TensorRT is older than the GPU and does not know its compute capability (Blackwell: 10 and 12).
  fix     install TensorRT 10.8 or newer, with CUDA 12.8 or newer, and build the engine again; the driver is new enough
          if nvidia-smi shows CUDA 12.8 or newer
'cuModuleLoadData(&module, data)' failed with 'CUDA_ERROR_INVALID_PTX' (TensorFlow)
  pattern 'cumoduleloaddata\([^)]{1,40}\)' failed with 'cuda_error_invalid_ptx
  source  tensorflow/tensorflow#99592
  checks  gpu.model
  cause   This TensorFlow has no code for the GPU, and its PTX does not compile for it: the GPU is newer than the build
          (Blackwell, compute capability 12.0). CUDA_ERROR_INVALID_HANDLE follows. The driver is not the cause.
  fix     use NVIDIA's image (nvcr.io/nvidia/tensorflow), or a TensorFlow whose release notes name this GPU
TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0
  pattern tensorflow was not built with cuda kernel binaries compatible with compute capability
  general
  source  tensorflow/tensorflow#89272
  checks  gpu.model
  cause   A warning: this TensorFlow has no code for the GPU and compiles its PTX at the first start, which takes up to
          30 minutes. On Blackwell (12.0) that may fail, with CUDA_ERROR_INVALID_PTX.
  fix     wait for the first start to end; on Blackwell use NVIDIA's image (nvcr.io/nvidia/tensorflow), or a TensorFlow
          whose release notes name this GPU
CUDA error: device kernel image is invalid (error 200)
  pattern device kernel image is invalid
  code    cuda 200
  source  ollama/ollama#16449
  checks  image.compat gpu.torch
  cause   The driver cannot read the program's GPU code: it was built with a newer CUDA. Drivers before 550 cannot read
          compressed code (Ollama, llama.cpp). Rarely the file is damaged.
  fix     upgrade the driver (550 or newer, better 570), or use an older build of the program; gpuready compat
          --image-cuda VERSION -i INVENTORY says what it needs
Error 807: MPS server is not ready to accept new MPS client requests
  pattern mps server is not ready to accept new mps client
  also    mps client failed to connect to the mps control daemon
  code    cuda 805, cuda 807
  source  NVIDIA-AI-Blueprints/video-search-and-summarization#70
  checks  libcuda.init gpu.xid
  cause   The program is a client of MPS, because a control daemon runs on the node or CUDA_MPS_PIPE_DIRECTORY is set,
          and the daemon's server does not run or ended.
  fix     read server.log in CUDA_MPS_LOG_DIRECTORY, then restart nvidia-cuda-mps-control -d; containers need --ipc=host
          and the pipe directory; to work without MPS: echo quit | nvidia-cuda-mps-control on the node, and unset
          CUDA_MPS_PIPE_DIRECTORY
zmq.error.ZMQError: Address already in use (vLLM)
  pattern zmq\.error\.zmqerror: address already in use
  source  gpustack/gpustack#6019
  cause   Another process has the port that vLLM or SGLang chose: one that is left over, or a second one with the same
          VLLM_PORT.
  fix     ss -ltnp shows which process has the port (the line above may name it): end what is left over; unset
          VLLM_PORT, or give each server its own range
""",
    DEBUG=DEBUG,
)
