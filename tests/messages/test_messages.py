"""The table of messages: each entry finds the text as it was posted, and texts of others find nothing."""

import functools
import re
import string
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
import yaml

from gpuready.base.documents import MOST_TOML_VALUES
from gpuready.catalogue import BY_ID
from gpuready.gpu.thresholds import load
from gpuready.messages import code_names, codes, entry
from gpuready.messages.entry import Message
from gpuready.messages.find import MOST, TABLE, _parts, find, head, nearest, normal, plain
from gpuready.model.schema import settings
from tests.command import Exits
from tests.lab import scale

DATA = Path(__file__).parents[1] / "data" / "messages"
POSTED = yaml.safe_load((DATA / "posted.yaml").read_text(encoding="utf-8"))
NOBODYS = yaml.safe_load((DATA / "nobodys.yaml").read_text(encoding="utf-8"))


def titles(text: str) -> list[str]:
    return [message.title for message in find(text)]


def test_the_table_is_whole() -> None:
    assert len(TABLE) >= 120 and len(NOBODYS) >= 40
    assert len({message.title for message in TABLE}) == len(TABLE)
    assert {message.title for message in TABLE} == set(POSTED)
    assert [text for text in entry.ADVICE.values() if not any(message.fix.startswith(text) for message in TABLE)] == []
    for message in TABLE:
        assert message.cause.endswith(".") and message.fix and not message.fix.endswith("."), message.title
        assert set(message.checks) <= set(BY_ID), message.title
        source = r"[\w.-]+/[\w.-]+[# ]|[a-z.]+\.(?:com|org|io|net)|[\w.-]+/[\w.-]+$"
        assert re.match(source, message.source), message.title
        for pattern in message.patterns:
            assert len(plain(pattern)[0]) >= 4, message.title
            assert not re.search(r"(?<!\\)[*+]|\{[0-9]*,\}", pattern), message.title
            assert re.sub(r"\\[A-Z]", "", pattern).lower() == re.sub(r"\\[A-Z]", "", pattern)


def test_a_cause_is_proved_or_likely() -> None:
    row = {"title": "flarb", "pattern": "flarb failed", "source": "a/b#1", "fix": "mend it"}
    assert not entry._message({**row, "cause": "The flarb is broken."}).likely
    found = entry._message({**row, "likely": "The flarb is\nbroken, or missing."})
    assert found.likely and found.cause == "The flarb is broken, or missing."
    for wrong in ({}, {"cause": "A.", "likely": "B."}):
        with pytest.raises(ValueError, match="values to unpack"):
            entry._message({**row, **wrong})


def test_a_file_of_messages_has_room() -> None:
    """A file near the limit of TOML documents is to be split by subject, before one message more breaks explain."""
    for path in entry.DATA.glob("*.toml"):
        assert sum(map(path.read_text("utf-8").count, "[,={")) < 0.95 * MOST_TOML_VALUES, path.name


def test_a_message_is_found_as_it_was_posted() -> None:
    asked = [(title, text) for title, texts in POSTED.items() for text in texts]
    assert [(title, text) for title, text in asked if titles(text)[:1] != [title]] == []


def test_a_message_is_found_by_its_title() -> None:
    assert [message.title for message in TABLE if find(message.title)[:1] != (message,)] == []


@pytest.mark.parametrize("text", NOBODYS, ids=lambda text: text[:50])
def test_a_text_of_others_is_not_known(text: str, exits: Exits) -> None:
    told = exits(64, "explain", "--", text)
    assert told.out == "" and told.err.startswith("error: not known: ")
    near = nearest(text)
    assert all(message.title[:30] in told.err for message in near) and len(near) <= 3
    assert ("Nearest known messages:" in told.err) == bool(near)


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("EFA internal error: (4115)", "EFA internal error: (4111) RMA address verification failed"),
        ("EFA internal error: (4112)", "Libfabric error: (-12) Cannot allocate memory\nEFA internal error: (4114)"),
        ("ggml_backend_cuda", "CUDA error at main.cu:12: cudaMalloc failed: out of memory"),
        ("dcgm-exporter: listen", "dcgm-exporter: failed to listen on :9400: permission denied"),
        ("update-application", "failed to create application profiles directory: mkdirat etc: permission denied"),
        ("nvidia-imex: Failed", "nvidia-imex: Failed to allocate Imex session, NV_ERR_INSUFFICIENT_PERMISSIONS"),
        ("GpuDcgmConnectivityFailure", "GpuDcgmConnectivityFailure  False  GpuDcgmConnectivityFailureIsHealthy"),
        ("Failed to perform OCSP", "OCSP response of https://ocsp.ndis.nvidia.com: certificate status is revoked"),
        ("CUDA driver error: inv", "_SymmetricMemory.rendezvous(tensor, name)\nCUDA driver error: out of memory"),
        ("NVLink fabric state cached", "team_internal_nvls.cpp:254: non-zero status: 401 cuMemMap failed to map"),
        ("NCCL WARN socketTryAccept", "NCCL WARN socketTryAccept: Accept failed: Too many open files in system"),
        ("socketStartConnect / ", "socketProgressOpt: Call to recv from 10.0.0.1<9> failed : Connection timed out"),
        ("socketStartConnect / ", "NCCL WARN socketFinalizeAccept: wrong type 4 != 3"),
        ("LustreError: 15c-8", "mount.lustre: mount 10.0.0.1@tcp:/fsx at /fsx failed: No such device"),
        ("mount.lustre: mount", "mount.lustre: mount 10.0.0.1@tcp:/fsx at /fsx failed: File exists"),
        ("LustreError: 12:0", "LustreError: 11-0: OST0001: operation ost_connect to node 10.0.0.1@o2ib failed: -19"),
        ("NCCL WARN socketProgress", "socketStartConnect: Connect to 10.0.0.1<9> failed : Connection refused"),
        ("RegisterRdmaMemoryRegion", "RegisterRdmaMemoryRegion failed! size:4096, errno:12 (Cannot allocate memory)"),
        ("The client socket has failed", "client socket has failed to connect to [::1]:9 (errno: 99 - Cannot assign"),
        ("NCCL WARN NCCL library", "The application was compiled with too old version of NCCL."),
        ("NCCL WARN Call to ibv_query_port", "NCCL WARN Call to ibv_alloc_pd failed with error Cannot allocate memory"),
        ("NCCL WARN Call to bind", "ras/client_support.cc:1160 NCCL WARN Call to bind failed: Address already in use"),
        ("nv-fabricmanager: error", "nv-hostengine: error while loading shared libraries: libdcgm.so: wrong ELF class"),
        ("NCCL WARN NET/IB : mlx5_0:1 Got async event", "NET/IB : mlx5_1:1 Got async error event: port active"),
        ("NCCL WARN NET/IB: read", "NET/IB: read failed in ncclIbRoceGetVersionNum: No such device"),
        ("NCCL WARN Call to ibv_query_gid", "NCCL WARN Call to ibv_query_gid failed with error Input/output error"),
        ("NCCL WARN NET/OFI Disabling", "NET/OFI Disabling shared memory failed: Cannot allocate memory"),
        (
            "NCCL WARN Error while creating shared",
            "Error while creating shared memory segment /dev/shm/nccl-1 (size 4096), error: Permission denied (13)",
        ),
        ("RDMA buffer MR", "RDMA buffer MR registration failed: Cannot allocate memory"),
        ("RDMA buffer MR registration failed: Bad", "RDMA buffer MR registration failed: Invalid argument"),
        ("RDMA buffer MR registration failed: Inv", "RDMA buffer MR registration failed: Bad address"),
        ("nvidia/nv.c: error", "/build/host/nvme.h:12:5: error: implicit declaration of function 'blk_mq_foo'"),
        ("nvidia/nv.c: error", "dkms/nvidia-fs/2/build/nvfs-dma.c:9:5: error: implicit declaration of function 'f'"),
        (
            "Error! Bad return status for module build on kernel (nvidia,",
            "dkms autoinstall on 6.8 failed for nvidia-fs(10)",
        ),
        ("Building DKMS module: nvidia-570", "Building DKMS module: nvidia-fs-2.24.2... FAILED!"),
        ("Error! Application of patch", "Application of patch fix.patch failed. Check /var/lib/dkms/nvidia-fs/2.24.2"),
        ("akmods: Building rpms", "akmods: Building rpms failed; see /var/cache/akmods/wl/6.30-for-6.15.failed.log"),
        ("error: identifier", "nvlink error : Undefined reference to '_Z3foov' in 'main.o' (target: sm_75)"),
        ("VkResult: ERROR_INCOMPATIBLE", "vkCreateInstance failed: -6 (VK_ERROR_LAYER_NOT_PRESENT)"),
        ("Unknown encoder h264_nvenc", "Unknown encoder 'vp9_nvenc'"),
        ("Failed setup for format cuda", "Failed setup for format vaapi: hwaccel initialisation returned error."),
        ("Could not find a version that satisfies", "satisfies the requirement torch-cluster (from versions: none)"),
        (
            "Error! Bad return status for module build on kernel (nvidia-fs",
            "dkms autoinstall on 6.8.0-51-generic/x86_64 failed for nvidia(10) nvidia-fs(10)",
        ),
        ("ValueError: Bfloat16", "RuntimeError: this CPU does not support bfloat16. Consider using float32"),
        ("fatal error: cuda_fp8.h", "fatal error: thrust/complex.h: No such file or directory"),
        ("libcuda.so.1: cannot", "libcuda.so.1: cannot open shared object file: Permission denied"),
        ("libcuda.so.1: cannot", "RuntimeError: Failed to load libcudart.so.12"),
        ("libcublas.so.12", "ImportError: libcudart.so.12: cannot open shared object file: Permission denied"),
        (
            "libtorch_cuda.so: cannot open shared object file: P",
            "libtorch_cuda.so: cannot open shared object file: No such",
        ),
        ("ImportError: libtorch_cuda", "libtorch_cuda.so: cannot open shared object file: Permission denied"),
        ("libnvidia-ml.so.1: cannot", "libnvidia-ml.so.1: cannot open shared object file: Too many open files"),
        ("The detected CUDA version", "does not match the version torch was compiled with 12.1 but since the APIs are"),
        ("CUDA error: invalid device ordinal", "NCCL WARN HIP failure 'invalid device ordinal'"),
        ("CUDA error: an illegal", "ROCm error: an illegal memory access was encountered"),
        ("CUDA error: an illegal", "hip runtime error: an illegal memory access was encountered"),
        ("CUDA error: invalid device ordinal", "HIP Error: Code: 101, invalid device ordinal"),
        ("CUDA error: device-side assert", "RuntimeError: HIP error: device-side assert triggered"),
        ("no kernel image is available", "hip runtime error: no kernel image is available for execution on the device"),
        ("ModuleNotFoundError: No module named 'cutlass'", "No module named 'cutlass_library'"),
        ("Module version 580", "Module version 2.25.7 for nvidia-fs.ko is not newer than what is already found in"),
        ("nvidia-persistenced: device 0000", "device 0009:01:00.0 - failed to online memory."),
        ("EFI variables", "SKIP: /var/lib/shim-signed/mok/MOK.der is already enrolled"),
        ("DKMS tree already", "Error! There are no instances of module: nvidia"),
        ("WARNING: An invalid", "Open MPI accepted a TCP connection from what appears to be a another Open MPI"),
        ("slurm_persist_conn", "slurmctld: fatal: CLUSTER NAME MISMATCH."),
        ("Jax plugin", "cudart_stub.cc:32] Could not find cuda drivers on your machine, GPU will not be used."),
        ("An ORTE daemon", "bash: line 1: orted: command not found"),
        ("UCX ERROR ibv_modify_qp(DCI", "UCX ERROR ibv_modify_qp(DCI, RTR) failed : Connection timed out"),
        ("ibwarn: [1323] _do_madrpc", "ibwarn: [1323] _do_madrpc: recv failed: Invalid argument"),
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu", "Insufficient nvidia.com/gpu.memory"),
        ("RuntimeError: Unable to load", "operation cublasGetVersion(nullptr, &version) failed: cuBlas arch mismatch"),
        ("NCCL WARN Call to bind", "ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use"),
        ("Error! Your kernel headers for kernel X", "Your kernel headers for kernel linux-headers-6.9 cannot be found"),
        ("ValueError: Current node has no GPU", "Ray does not allocate any GPUs on the driver node."),
        ("0/3 nodes are available: 3 Insufficient", "queue resource quota insufficient: insufficient nvidia.com/gpu"),
        ("Caught signal 11 in ucp_ep_rkey", "osc_ucx_comm.c:100 Error: ucp_ep_rkey_unpack failed: Invalid parameter"),
        ("Segfault: cuEventQuery", "Caught signal 11\nuct_cuda_base_iface_event_fd_arm\nucp_worker_arm in ucxx"),
        ("rdma dev set mlx5_0", "rdma dev set mlx5_0 adaptive-moderation on\nerror: Operation not supported"),
        ("mlnx-ofed-", "mlnx-ofed-kernel-modules : Depends: linux-modules-extra-6 but it is not going to be used"),
        ("RuntimeError: PD Dis", "PD Disaggregation does NOT support PD with speculative decoding"),
        ("Failed to exchange data", "package foo 3.2 is not compatible with versions older than 2.0"),
        ("device mlx5_0 does not", "this GPU does not support all necessary atomic operations"),
        ("ModuleNotFoundError: No module named 'cutlass'", "No module named 'cutlass.utils.ampere_helpers'"),
        (
            "CUDA driver error: invalid argument, or another, in",
            "_SymmetricMemory.rendezvous\nCUDA driver error: invalid resource handle",
        ),
        ("libNAME.so.1: cannot open", "libc10.so: cannot open shared object file: No such file or directory"),
        ("ptxas error : Instruction 'cvt", "error : Instruction 'cvt with .e4m3x2' not supported on .target 'sm_80'"),
        ("NCCL WARN socketFinalizeAccept", "socketFinalizeAccept: Accept failed : Connection reset by peer"),
        ("nvshmem setup heap", "[oshmem] SHMEM symmetric heap creation failed"),
        ("cufile: gpu attribute", "x86/PAT: CPU 0/KVM:21 conflicting memory types write-combining<->uncached-minus"),
        ("Cuda failure 600", "eager_connect_single_device(device_id) NCCL error, unhandled cuda error"),
        ("ibrc.cpp: non-zero status: 7", "init.cu:1007: non-zero status: 7 nvshmem setup connections failed"),
        ("UCX ERROR cuDeviceGetCount", "cuInit(0) failed: initialization error"),
        ("exec /opt/nvidia/nvidia_entrypoint.sh", "fork/exec /usr/bin/nvidia-container-runtime: exec format error"),
        (
            "pyxis: failed to import",
            "pyxis: child 4 failed with error code: 1\npyxis: failed to create container filesystem",
        ),
        ("missing library libnvidia-nscq.so", "Could not locate /dev/nvidia-uvm: /dev/nvidia-uvm: not found"),
        ("missing library libnvidia-nscq.so", "Could not locate nvidia-smi: pattern nvidia-smi not found"),
        ("squashfuse_ll exited", "fuse: device not found, try 'modprobe fuse' first"),
        ("[ERROR] /etc/enroot/hooks.d/98-nvidia.sh", "pyxis: container start failed with error code: 137"),
        ("ERROR: Failed to create user namespace", "enroot-nsenter: failed to join mount namespace: No such process"),
        ("0/4 nodes are available: 4 node(s)", "untolerated taint {nvidia.com/gpu  NoSchedule <nil>} in flavor x"),
        ("0/4 nodes are available: 4 node(s)", "1 node(s) had untolerated taint {nvidia.com/gpu-fault: true}"),
        ("dcgm-exporter: listen", "socket has failed to listen on [::]:29400 (errno: 98 - Address already in use)"),
        ("cannot apply GpuConfig", 'msg="error validating config: field grafana not found in type config.Config"'),
        ("Could not find Prometheus", "failed to get counters for mlx5_0: No such file or directory"),
        ("Got nvmlSt 3", "Got nvmlSt 15 for field 139 from nvmlDeviceGetFieldValues"),
        ("Got nvmlSt 15", "Got nvmlSt 3 for field 139 from nvmlDeviceGetFieldValues"),
        (
            "/bin/vfio-manage.sh: line 113: echo: write error: Inv",
            "vfio-manage.sh: line 113: echo: write error: No such device",
        ),
        ("failed to stat CDI host device: no such", 'failed to stat CDI host device "/dev/nvidia0": permission denied'),
        ("could not load NVML library", "npm error notsup Incompatible platform detected: package requires linux"),
        ("OutOfmemory", "JobState=OUT_OF_MEMORY ExitReason: OutOfMemory"),
        ("error validating nvidia-peermem", "running command bash with args [-c lsmod | grep -e '^nvidia_peermem']"),
        ("stat: cannot stat", "running command sh with args [-c stat /run/nvidia/validations/.driver-ctr-ready]"),
        ("chroot: failed to run command 'nvidia", "running command chroot with args [/run/nvidia/driver nvidia-smi]"),
        ("socketStartConnect", "ncclsocket_socket.cpp: socketStartConnect: Connect to a.b<4> failed : timed out"),
        ("gres/gpu count reported", "gres_node_config_validate: gres/gpu: Count changed on node gpu01 (0 != 8)"),
        ("error executing hook /usr/bin/", "error executing hook `/x/nvidia-container-runtime-hook` (exit code: 1)"),
        ("nvidia-container-cli: ldcache error: open", "ldcache error: open failed: /sbin/ldconfig: permission denied"),
        ("mpi/pmix_v4: _errhandler: pmixp", "pmixp_client_v2.c:211: Error handler invoked: status = -25, source"),
        ("error validating MOFED", "Startup probe failed: ls: cannot access '/run/mellanox/drivers/.driver-ready'"),
        ("0/3 nodes are available: 3 node(s) di", "pod didn't trigger scale-up: 1 node(s) didn't match node selector"),
        ("slurmd: error: Unable to init", "cannot create auth context\nslurmd: error: slurmd initialization failed"),
        ("NVRM: os_schedule", "BUG: scheduling while atomic: swapper/1/0\nModules linked in: nvidia_uvm(PO) nfs"),
        ("NVRM: os_schedule", "BUG: sleeping function called from invalid context at a.c:5\nTainted: P OE nvidia"),
        ("NVRM: GSP-FMC", "NVRM: kgspInitRm_IMPL: Max GSP-RM boot attempts exceeded: 4/4"),
        ("NVRM: Fatal Error while", "NVRM: BAR resizing failed with error `-16`."),
        ("request to query NVSwitch", "NVRM: Assertion failed: Nothing to do [NV_WARN_NOTHING_TO_DO] @ gpu.c"),
        ("INFO: task nvidia-smi", "INFO: task python:12 blocked for more than 122 seconds.\nnfs_wait+0x1/0x2 [nfs]"),
        ("The following GPUs could", "Failed to destroy GPU instances: In use by another client"),
        ("HW Slowdown", "SW Thermal Slowdown : Active"),
        ("No devices were found", "adb: no devices were found"),
        ("NCCL WARN", "ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81"),
        ("NCCL WARN", "Local length error on mlx5_0:1/RoCE (synd 0x1 vend 0xd7 hw_synd 0/0)"),
        ("NCCL WARN", "myapp: ibv_open_device failed"),
        ("UCX ERROR ibv_query_gid", "NCCL WARN Call to ibv_query_gid failed with error No data available"),
        ("UCX WARN worker 0x754a6ee0", "UCX WARN worker 0x754a6ee0: 10 requests were not completed"),
        ("OSError: [WinError 126]", "OSError: Error loading libtorch.so or one of its dependencies"),
        ("rmmod: ERROR: Module rdma_cm", "rmmod: ERROR: Module nvidia is in use by: nvidia_uvm"),
        ("KVTransferError: follow", "KVTransferError(bootstrap_room=7): timed out after 300.0s in KVPoll"),
        ("error loading model: device CUDA0", "error loading model: unable to allocate CUDA0 buffer"),
        ("Unable to initialize backend 'cuda': INV", "Unable to initialize backend 'cuda': UNKNOWN: no GPU"),
        ("Couldn't create QP", "libibverbs: Warning: couldn't create qp: Cannot allocate memory"),
        ("Couldn't create QP", "beegfs: IBVSocket.c:1042: Couldn't create QP. ErrCode: -12"),
        ("Invocation of collective_rpc", "BeanCreationException: Invocation of init method failed; nested exception"),
        ("Distribution `vllm", "`pyqt5-qt5` (v5.15.17) only has wheels for the following platform: `win_amd64`"),
        ("Failed to create CUDAExecution", "copying onnxruntime/capi/onnxruntime_providers_cuda.dll -> build/lib"),
        ("PermissionError: [Errno 13]", "mkdir: cannot create directory '/.snapshots': Permission denied"),
        ("Total number of attention", "AssertionError: hidden_size 4096 is not divisible by 3"),
        ("PermissionError: [Errno 13]", "PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface'"),
        ("[gpu01:288505:0:296459] Caught", "(EE) Caught signal 11 (Segmentation fault). Server aborting"),
        ("dpkg: error processing package mlnx", "dpkg: error processing package rdma-core (--configure):"),
        ("[25-Apr-25_10:01:46] Command", 'Command "pip install vllm" failed with exit code: 1'),
        ("Shard process was signaled", "Error: ShardCannotStart"),
        ("Server error: transport error", "ERROR sms: gRPC server error: transport error"),
        (
            "NCCL",
            "mca_base_component_repository_open: unable to open mca_btl_openib: librdmacm.so.1: cannot open shared"
            " object file: No such file or directory",
        ),
        ("libcublas", "libnvshmem_host.so.3: cannot open shared object file: No such file or directory"),
        ("libcublas", "libcufile.so.0: cannot open shared object file: No such file or directory"),
        (
            "Job for nvidia-fabricmanager",
            "Job for nvidia-persistenced.service failed because the control process exited",
        ),
        ("mpirun was unable to find", "it could not change to the specified working directory"),
        ("slurm_load_jobs error: Socket", "slurm_load_jobs error: Zero Bytes were transmitted or received"),
        ("slurmd: error: Hybrid", "slurmstepd: error: unable to instantiate step 1.0 cgroup"),
        ("nvcc fatal: Unsupported gpu architecture 'compute_120'", "Unsupported gpu architecture 'compute_60'"),
        ("nvcc fatal: Unsupported gpu architecture 'compute_60'", "Unsupported gpu architecture 'compute_600'"),
        ("CMake Error: Failed to find nvcc", "CMAKE_CUDA_ARCHITECTURES must be non-empty if set."),
        ("installed linux-headers", "dpkg: error processing package nvidia-dkms-550 (--configure):"),
        (
            "vfio 0000:01:00.0: error getting device from group 2",
            "vfio 0000:41:00.0: error getting device from group 72: Device or resource busy",
        ),
        ("-E- Failed to open device", "-E- failed to open device mlx5_0"),
        ('Kernel module "ib_umad"', "can't read /sys/class/infiniband_mad/abi_version (No such file or directory)"),
        ("internal error: Unknown PCI", "vfio-pci 0000:01:00.0: vfio_bar_restore: reset recovery - restoring BARs"),
        ("modprobe: ERROR: could not insert 'nvidia': K", "[ 17.9] Loading of module with unavailable key is rejected"),
        ("Unable to set persistence mode", "Failed to create cluster: insufficient permissions"),
        ("vfio 00000000-0000-0000", "vmiop_env_log: (0x0): vGPU is supported only on VGX capable boards"),
        ("vfio 00000000-0000-0000", "[nvidia-vgpu-vfio] 54adacd7-1308-4385-8fc2-0590a4999818: start failed"),
        ("NVRM: The NVIDIA GPU", "installed in this system is not supported by open nvidia.ko because it does not"),
        ("nvidia-modeset: WARNING", "*ERROR* [nvidia-drm] [GPU ID 0x00000800] Flip event timeout on head 0"),
        (
            "*ERROR* [nvidia-drm] [GPU ID 0x00000200] Failed",
            "[GPU ID 0x00000200] Failed to apply atomic modeset.  Error code: -19",
        ),
        (
            "nvidia: Direct firmware load for nvidia/550.76/gsp_ga10x.bin failed with error -2",
            "nvidia 0000:07:00.0: Direct firmware load for nvidia/570.144/gsp_ga10x.bin failed with error -5",
        ),
        ("request_free_mem_region()", "nvidia_uvm: request_free_mem_region() err -12"),
        ("nvidia-modeset: ERROR: GPU: Error", "Asynchronous wait on fence NVIDIA:nvidia.prime:0 timed out"),
        ("nvidia 0000:01:00.0: not ready", "vfio-pci 0000:01:00.0: timed out waiting for pending transaction"),
        ("nvidia 0000:01:00.0: not ready", "vfio-pci 0000:01:00.0: refused to change power state from D0 to D3hot"),
        ("pcieport: PCIe Bus Error", "nvidia 0000:63:00.0: AER: can't recover (no error_detected callback)"),
        ("amdgpu: ring gfx_0.0.0", "amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0"),
        ("amdgpu: SMU", "amdgpu 0000:83:00.0: amdgpu: SMU driver if version not matched"),
        ("PSP create ring", "amdgpu 0000:83:00.0: amdgpu: PSP is resuming..."),
        (
            "Direct firmware load for amdgpu",
            "Direct firmware load for nvidia/580.95.05/gsp_ga10x.bin failed with error -2",
        ),
        ("Memory access fault", "CUDA error: an illegal memory access was encountered"),
        ("Error 401", "RuntimeError: HIP error: the operation cannot be performed in the present state"),
        ("Error 802", "RuntimeError: HIP error: system not yet initialized"),
        ("hsa api call failure", "Queue 0x7f45 aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime"),
        ("uncorrectable hardware error", "amdgpu: no uncorrectable hardware errors detected in umc block"),
        ("rocBLAS error: Cannot", "rocBLAS error: Cannot read /opt/TensileLibrary.dat: Permission denied for GPU arch"),
        ("rocBLAS error: Could", "rocBLAS error: Could not initialize Tensile host: regex_error"),
        ("clang: error: invalid", "clang: error: invalid target ID 'gfx908:xnack'; format is a processor name"),
        ("installed amdgpu-dkms", "Suspend failed for amdgpu 0000:03:00.0"),
        ("mount.nfs: access", "rpcrdma: connection to 10.0.0.1:20049 closed (-103)"),
        ("No resource satisfying", "There is no resource satisfying the required dependency with key x on start"),
        ("Memory cgroup out of memory", "Out of memory: Killed process 4711 (java)"),
        ("mount.nfs: access", "mount.nfs: timeout set for Mon Nov 30 02:00:00 2026"),
        ("Error! Bad return status for module build on kernel: 6", "dkms autoinstall on 6.8 failed for zfs(10)"),
        ("GPU 0's NvLink", "NVML: Unable to retrieve NVLink information as all links are inActive"),
        ("vfio-pci 0000:01:00.0: Invalid PCI ROM", "vfio-pci 0000:10:00.0: No more image in the PCI ROM"),
        ("GPU 0 had memory errors", "Detected 3 volatile double-bit ECC error(s) in GPU 1."),
        ("ERROR: An NVIDIA kernel", "ERROR: You appear to be running an X server; please exit X before installing."),
        ("error: target not found", "error: target not found: nvidia-container-toolkit"),
        ("nvidia-persistenced: Failed to find user", "Failed to find user ID of user 'nvidia': Connection refused"),
        ("vfio 0000:01:00.0: no such host", "vfio 0000:01:00.0: no such host device: Permission denied"),
        ("NVRM: kflcnWaitForHalt", "NVRM: kgspWaitForGfwBootOk_TU102: failed to wait for GFW boot complete: 0x55"),
        ("modprobe: ERROR: could not insert 'nvidia': ", "could not insert 'nvidia_peermem': Unknown symbol in module"),
    ],
)
def test_another_code_of_the_same_program_is_another_message(title: str, text: str) -> None:
    assert any(message.title.startswith(title) for message in TABLE)
    assert not [found for found in titles(text) if found.startswith(title)]


def test_the_plain_text_of_a_pattern_is_outside_of_its_groups() -> None:
    """What stands in a group is one of several: a text without it can still be the message."""
    assert plain("bnxt.{0,60}(?:init phase [12] failed|firmware (?:reset|hangs)[^.]{0,40}abort)") == ("bnxt", 4)
    assert plain(r"unable (?:\([^)]{1,9}\))? to open (?! (?:2 )?'out of memory)") == (" to open ", 16)
    for text, title in (
        ("bnxt_en 0000:41:00.0 eth0: Firmware not responding, status: 0x8000", "bnxt_en: Error (timeout"),
        ("librdmacm: Warning: couldn't read ABI version.", "Failed to get IB devices list"),
    ):
        assert [found for found in titles(text) if found.startswith(title)], text


#: The modules of re, which Python 3.10 names otherwise.
NEW = hasattr(re, "_parser")
PARSER, COMPILER = map(import_module, ("re._parser", "re._compiler") if NEW else ("sre_parse", "sre_compile"))
SIGNS = string.ascii_lowercase + string.digits + string.punctuation + " "


def example(parts: Iterable[Any], branch: int, gap: str = "") -> str:
    """Return a text of the form of a parsed pattern, with as few repeats as permitted.

    ``branch`` chooses the alternatives and members of sets. ``gap`` stands for any text.
    """
    text = ""
    for kind, value in parts:
        match str(kind):
            case "LITERAL":
                text += chr(value)
            case "BRANCH":
                text += example(value[1][branch % len(value[1])], branch, gap)
            case "SUBPATTERN":
                text += example(value[3], branch, gap)
            case "MAX_REPEAT":
                text += example(value[2], branch, gap) * value[0] or (gap if str(value[2][0][0]) == "ANY" else "")
            case "IN" | "ANY" | "NOT_LITERAL":
                signs = _signs(Part(kind, value))
                text += signs[branch * 5 % len(signs)]
            case "AT" | "ASSERT" | "ASSERT_NOT":
                pass
            case _:
                raise AssertionError(kind)
    return text


class Part(NamedTuple):
    """A part of a parsed pattern that matches one character. Its text identifies it."""

    kind: Any
    value: Any

    def __hash__(self) -> int:
        return hash(str(self))


@functools.cache
def _signs(part: Part) -> list[str]:
    compiled = COMPILER.compile(PARSER.SubPattern(PARSER.State(), [tuple(part)]))
    return [sign for sign in SIGNS if compiled.fullmatch(sign)]


def test_each_pattern_can_match_and_needs_its_plain_text() -> None:
    """Find compiles a pattern only if the text has its plain part; a part that may be missing hides the message."""
    hidden, impossible = [], []
    for pattern in {pattern for message in TABLE for pattern in message.patterns if pattern}:
        compiled, parsed = re.compile(pattern), PARSER.parse(pattern)
        texts = [example(parsed, branch) for branch in range(12)]
        hidden += [pattern for text in texts if plain(pattern)[0] not in text]
        texts += [example(parsed, branch, " x ") for branch in range(12)]
        forms = (before + text + after for text in texts for before in ("", "x ") for after in ("", "x"))
        impossible += [] if any(compiled.search(normal(text)) for text in forms) else [pattern]
    assert (hidden, impossible) == ([], [])


def test_no_advice_asks_for_what_the_text_has(exits: Exits) -> None:
    out = exits(0, "explain", "unhandled system error, NCCL version 2.20.5\nLast error:\nzorg failed to flarb").out
    assert (
        "if this is still the answer, gpuready does not know that line: run all ranks with NCCL_DEBUG=WARN"
        in " ".join(out.split())
    )
    alone, several = (exits(64, "explain", text).err for text in ("zorg failed to flarb", "soup\nzorg failed to flarb"))
    assert "first error alone" not in alone and "give a word such as nccl" in alone
    assert "give the line of the first error alone, or a word such as nccl" in several


def test_what_is_near_is_named_and_nothing_else(exits: Exits) -> None:
    told = exits(64, "explain", "a first line\nDriver/library versoin mismatch, after noon\na last line").err
    assert "\n  Nearest known messages:\n    Failed to initialize NVML: Driver/library version mismatch\n" in told
    told = exits(64, "explain", "zeppelin of lead in the soup").err
    assert "earest" not in told and "open an issue" in told


def test_few_lines_are_compared_and_no_title_twice(exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long text of short lines is no more work than 50 lines; the titles are taken apart once for all texts."""
    known = "Driver/library versoin mismatch, after noon"
    nearest(known)
    parts = Mock(side_effect=_parts)
    monkeypatch.setattr("gpuready.messages.find._parts", parts)
    text = "\n".join([known, *(f"{number:x}" for number in range(10_000))])
    assert nearest(text)[:1] == nearest(known)[:1] and parts.call_count == 50 + 1
    told = exits(64, "explain", text).err
    assert f"Nearest known messages (only the first {len(head(text))} characters were compared):" in told
    assert head(text).endswith("\n30") and head("x" * 5000) == "x" * 4000 and head(known) == known


README = (
    ("libcuda.so cannot found!", "libcuda.triton"),
    ("unknown or invalid runtime name: nvidia", "docker.runtime"),
    ('no runtime for "nvidia" is configured', "containerd.runtime"),
    ("Conflicting values set for option Signed-By", "repository.config"),
    ("Failed to initialize NVML: Unknown Error", "config.cgroups"),
    ("ibv_modify_qp failed with error Invalid argument", "nccl.gid"),
    ("ibv_modify_qp failed", "nccl.gid"),
    ("Driver/library version mismatch", "driver.match"),
    ("CUDA error 804", "image.compat"),
    ("CUDA error 803", "image.compat"),
    ("CUDA error 35", "image.compat"),
    ("rdma dev set mlx5_0 netns x: Operation not supported", "rdma.netns"),
    ("no such file or directory: libEGL_nvidia.so.535.161.07", "cdi.stale"),
)


@pytest.mark.parametrize(("text", "check"), README)
def test_the_symptoms_of_the_readme_lead_to_their_checks(text: str, check: str) -> None:
    assert any(check in message.checks for message in find(text))


CODES = (
    ("Xid 79", "GPU has fallen off the bus"),
    ("NVRM: Xid (PCI:0000:05:00): 48, pid=1234, name=python, DBE", "Xid 48: double bit ECC error"),
    ("NVRM: Xid (0000:03:00): 14, Channel 00000001", "Xid 14"),
    ("kernel: NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08", "Xid 149: NVLink NETIR error"),
    ("kernel: NVRM: Xid (PCI:...): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)", "Xid 145: NVLink RLW error"),
    ("Xid 999", "Xid 999"),
    ('DCGM_FI_DEV_XID_ERRORS{gpu="0",err_code="94",err_msg="Contained"} 94', "Xid 94: contained memory error"),
    ("Reason:NvidiaXID48Error", "Xid 48: double bit ECC error"),  # aws/eks-node-monitoring-agent#272
    ("CUDA error 802", "Error 802: system not yet initialized"),
    ("cuInit failed 804", "Error 804: forward compatibility was attempted on non supported HW"),
    (
        "failed call to cuInit: UNKNOWN ERROR (100)",
        "no CUDA-capable device is detected (error 100) / No CUDA GPUs are available",
    ),
    ("RuntimeError: Triton Error [CUDA]: out of memory", "CUDA out of memory. Tried to allocate"),
    ("cuda runtime error (46)", "all CUDA-capable devices are busy or unavailable (error 46)"),
    ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected (error 100) / No CUDA GPUs are available"),
    ("cudaErrorNotReady", "CUDA error 600: cudaErrorNotReady, CUDA_ERROR_NOT_READY"),
    ("CUDA error 567", "CUDA error 567"),
    ("ncclSystemError", "ncclSystemError: unhandled system error"),
    ("NCCL Error 2: unhandled system error", "ncclSystemError: unhandled system error"),
    ("NCCL error: 5", "ncclInvalidUsage: invalid usage"),
    (
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)\nLast error:\nCuda failure 1 'invalid argument'",
        "CUDA error 1: cudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE",
    ),
    (  # pytorch/pytorch#111187
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'invalid argument'",
        "CUDA error 1: cudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE",
    ),
    (  # simonzhang00/ripser-plusplus#15
        "Failed: Cuda error ./ripserplusplus/ripser++.cu:2371 'invalid device function'",
        "CUDA error 98: cudaErrorInvalidDeviceFunction, CUDA_ERROR_INVALID_DEVICE_FUNCTION",
    ),
    (  # pytorch/pytorch#1557, of a CUDA whose numbers were others
        "RuntimeError: cuda runtime error (8) : invalid device function at /pytorch/torch/lib/THC/x.cu:247",
        "CUDA error 98: cudaErrorInvalidDeviceFunction, CUDA_ERROR_INVALID_DEVICE_FUNCTION",
    ),
    (  # sgl-project/sglang#4624
        "DeepEP CUDA Error /sgl-workspace/DeepEP/csrc/kernels/internode.cu:133 'named symbol not found'",
        "CUDA error 500: cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND",
    ),
    (
        "RuntimeError: Triton Error [CUDA]: operation not permitted when stream is capturing",
        "CUDA error 900: cudaErrorStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    ),
    (
        "ERRO[0000] failed to generate CDI spec: failed to create device CDI specs: failed to initialize NVML: "
        "ERROR_LIBRARY_NOT_FOUND",
        "NVML error 12: NVML_ERROR_LIBRARY_NOT_FOUND",
    ),
    ("failed to initialize NVML: ERROR_UNKNOWN", "NVML error 999: NVML_ERROR_UNKNOWN"),
    ("error getting device handle for index '0': ERROR_GPU_IS_LOST", "GPU has fallen off the bus"),
    ("device handle of GPU 3: ERROR_TIMEOUT", "NVML error 10: NVML_ERROR_TIMEOUT"),
    ("pynvml.NVMLError_NotSupported: Not Supported", "NVML error 3: NVML_ERROR_NOT_SUPPORTED"),
    (
        "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
        "Failed to initialize NVML: Driver/library version mismatch",
    ),
    (  # getumbrel/llama-gpt#132
        "nvidia-container-cli: detection error: nvml error: unknown error: unknown",
        "NVML error 999: NVML_ERROR_UNKNOWN",
    ),
    (  # BugRoger/nvidia-exporter#3
        "Failed to collect metrics: nvml: Not Supported",
        "NVML error 3: NVML_ERROR_NOT_SUPPORTED",
    ),
    ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", "Failed to initialize NVML: Driver/library version mismatch"),
    ("nvmlInit_v2 err: 18", "Failed to initialize NVML: Driver/library version mismatch"),
    ("nvmlDeviceGetMemoryInfo failed: 3", "NVML error 3: NVML_ERROR_NOT_SUPPORTED"),
    ("exit 127", "exit 127 of docker run"),
    ("container exited with code 126", "exit 126 of docker run"),
    ("docker run: exit status 125", "exit 125 of docker run"),
    ("exit 137", "exit 137 of docker run"),
    ("comfyui-no-auth-comfyui-1 container exited with code 139", "exit 139 of docker run"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "title"), CODES)
def test_codes(text: str, title: str) -> None:
    assert titles(text)[:1] == [title]
    assert find(text)[0].source.startswith(("docs.nvidia.com/", "docs.docker.com/")) or "#" in find(text)[0].source


def test_an_xid_without_a_row_in_the_catalogue_has_advice_of_our_own() -> None:
    for number, ours in (("172", False), ("173", True), ("176", True)):
        (found,) = find(f"Xid {number}")
        assert ("gpuready's own" in found.fix) is ours
        assert ("nverror.h" in found.source) is ours


def test_the_line_of_an_nvlink5_xid_says_more_than_its_number() -> None:
    line = "[171.2] NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x{}c6 0x00000000 0x0)"
    peer, signal, known = find(line.format("021425") + "\n" + line.format("004505") + "\nXid 149")
    assert {message.title for message in (peer, signal, known)} == {"Xid 149: NVLink NETIR error"}
    assert "at the other end" in peer.cause and "look first at that device" in peer.fix
    assert "signal was bad" in signal.cause and "Its line in dmesg says whether it was fatal" in known.cause
    (ignored,) = find("Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1)")
    assert ignored.fix.startswith("nothing")


def test_a_text_of_cuda_counts_only_where_cuda_says_it() -> None:
    for text in ("curl failed: file not found", "HIP error: misaligned address", "invalid argument: cudaMalloc"):
        assert not [title for title in titles(text) if title.startswith("CUDA error")]


def test_an_unknown_number_is_said() -> None:
    assert "not in the catalogue" in find("Xid 999")[0].cause
    assert "does not know" in find("CUDA error 567")[0].cause
    for action in load("xids")["actions"].values():
        assert all("not in the catalogue" not in codes.message(f"xid {number}").cause for number in action["xids"])


def test_a_code_does_not_say_the_same_thing_twice() -> None:
    names = {"cuda": code_names.cuda_names(), "nvml": code_names.nvml_names()}
    numbered = (f"{kind} {number}" for kind, found in names.items() for number in set(found.values()))
    for code in (*(f"xid {n}" for n in range(1, 180)), *numbered):
        message = codes.message(code)
        name = message.title.partition(": ")[2].lower()
        assert message.cause.endswith(".") and message.fix and set(message.checks) <= set(BY_ID), code
        assert not name or message.cause.lower().count(name) <= 1, code


NVLS = next(item.title for item in TABLE if item.title.startswith("transport/nvls.cc:254 NCCL WARN Cuda failure 401"))
IMEX = "cuMemCreate: CUDA_ERROR_NOT_PERMITTED, operation not permitted (800)"


def test_a_number_never_outweighs_the_component_that_printed_it() -> None:
    for name, number in code_names.cuda_names().items():
        for error in (str(number), f"{number} 'some text'", f"cudaError{name}", f"CUDA_ERROR_{name}"):
            found = titles(f"node1:1:2 [0] transport/nvls.cc:254 NCCL WARN Cuda failure {error}")
            assert found[0] == NVLS, (error, found)
    assert titles("cuMemCreate failed: CUDA_ERROR_NOT_PERMITTED") == [IMEX]
    assert titles("cuMemCreate(&handle, size, &prop, 0) returned 800") == [IMEX]


def test_an_error_that_nccl_reports_is_not_explained_as_none() -> None:
    for text in ("NCCL WARN Cuda failure 600", "Last error:\nCuda failure 600 'device not ready'"):
        (found,) = find(f"node1:1:2 [0] init.cc:42 {text}")
        assert found.title.startswith("Cuda failure 600 'device not ready'") and not found.fix.startswith("nothing")
    eager = "eager_connect_single_device(device_id)\nDistBackendError: unhandled cuda error, NCCL version 2.26.2\n"
    assert titles(eager)[0].startswith("eager_connect_single_device")
    assert titles(f"{eager}Last error:\nCuda failure 999 'unknown error'") == ["CUDA error: unknown error (error 999)"]


def test_each_name_of_an_nvml_error_is_known_in_each_form() -> None:
    rows = dict(code_names.nvml_rows())
    assert len(rows) == 31 and rows[1] == "UNINITIALIZED" and rows[30] == "RESET_TYPE_NOT_SUPPORTED"
    table = {code: message.title for message in TABLE for code in message.codes if code.startswith("nvml ")}
    for number, name in rows.items():
        code = f"nvml {number}"
        title = table.get(code, codes.message(code).title)
        pynvml = "NVMLError_" + name.title().replace("_", "")
        for text in (
            f"failed to initialize NVML: ERROR_{name}",
            f"NVML_ERROR_{name}",
            pynvml,
            f"nvmlInit error: {number}",
        ):
            assert title in titles(text), text
        assert "GPU" in name or titles(f"ERROR_{name}") == [], name


def test_an_error_of_nvml_that_says_nothing_hides_no_message() -> None:
    driver = "NVRM: API mismatch: the client has the version 570.1, but\nNVRM: this kernel module has 560.2"
    assert titles("NVML_ERROR_DEPRECATED") == ["NVML error 26: NVML_ERROR_DEPRECATED"]
    assert titles(f"NVML_ERROR_DEPRECATED\n{driver}") == titles(driver)


GENERAL = (
    "RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
    "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
    "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store",
    "Some NCCL operations have failed or timed out.",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "failed (exitcode: -9) local_rank: 0 (pid: 1322) of binary: /usr/bin/python3",
    "docker: the container exited with code 137",
    "docker: the container exited with code 139",
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "[gpu01:288505:0:296459] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x48)",
)


@pytest.mark.parametrize("text", GENERAL, ids=lambda text: text[:40])
def test_what_only_says_that_something_failed_hides_no_cause(text: str) -> None:
    cause = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
    assert len(find(text)) == 1
    assert titles(f"{text}\n{cause}") == titles(f"{cause}\n{text}") == titles(cause)


def test_a_full_memory_names_no_check_of_something_else() -> None:
    for text in ("CUDA out of memory", "CUDA error 2", "Last error: Cuda failure 'out of memory'"):
        assert [message.checks for message in find(text)] == [()]


def test_a_message_of_several_lines_has_one_cause() -> None:
    several = [title for title, texts in POSTED.items() for text in texts if len(find(text)) > 1]
    assert several == [  # each with the reason that it names
        "could not load NVML library: libnvidia-ml.so.1 / Incompatible strategy detected auto (device plugin)",
        "cannot allocate mlx5dv_devx_uar / init failed for transport: IBGDA (NVSHMEM, DeepEP)",
        *["error validating driver installation: error creating symlink creator (GPU Operator)"] * 2,
    ]


def test_several_causes_are_listed_in_their_order() -> None:
    text = (
        "[12.1] NVRM: API mismatch: the client has the version 570.1, but\n[12.1] NVRM: this kernel module has 560.2\n"
        "docker: Error response from daemon: unknown or invalid runtime name: nvidia.\n"
        "E0000 modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n"
    )
    assert [title.split(":")[0] for title in titles(text)] == [
        "NVRM",
        "unknown or invalid runtime name",
        "could not insert 'nvidia_peermem'",
    ]


def test_a_line_that_was_wrapped_in_a_word_is_found() -> None:
    found = titles("docker: Error response from daemon: unknown or invalid runt\nime name: nvidia.")
    assert found == ["unknown or invalid runtime name: nvidia"]
    assert normal('> exec: \\"nvidia-smi\\":\r\n| not  “found”\x1b[0m') == 'exec: "nvidia-smi": not "found"'


def test_a_text_in_cells_of_a_table_is_found() -> None:
    """As dcgmi diag prints it (NVIDIA/go-dcgm#52)."""
    table = (
        "| Info                      | GPU 0 API call cudaStreamCreate failed: 'CUDA  |\n"
        "|                           | -capable device(s) is/are busy or unavailable  |\n"
        "|                           | ' Check DCGM and system logs for errors. Rese  |\n"
    )
    assert titles(table) == ["all CUDA-capable devices are busy or unavailable (error 46)"]


def test_a_long_paste_takes_little_time() -> None:
    began = time.process_time()
    assert find("2026-01-01 error: gpu cuda nccl xid nvidia lib failed\n" * (MOST // 54)) == ()
    assert time.process_time() - began < scale.seconds(15)


@pytest.mark.parametrize(
    ("word", "paths"),
    [
        ("verify.image", ["verify.image"]),
        ("shm_size", ["runtimes.docker.shm_size"]),
        ("Drain", ["maintenance.drain"]),
        ("idle", ["maintenance.restart", "maintenance.reboot"]),
    ],
)
def test_a_setting_is_explained_by_its_path_its_name_or_a_value(word: str, paths: list[str], exits: Exits) -> None:
    told = exits(0, "explain", word).out
    assert re.findall(r"(?m)^([\w.]+): a setting$", told) == paths
    assert all(settings()[path] in " ".join(told.split()) for path in paths)
    assert told.count("\n  allowed ") == len(paths)
    assert "not known: 'verify.imagine'" in exits(64, "explain", "verify.imagine").err


def test_every_setting_says_what_it_means() -> None:
    assert {"verify.waive.until", "maintenance.drain.before"} <= set(settings()) and all(settings().values())


def test_the_form_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuready.messages.entry.DATA", tmp_path)
    row = "[[message]]\ntitle = 't'\nalso = ['y', 'z']\ngeneral = true\nsource = 's'\nchecks = ['a.b', 'c.d']\n"
    texts = 'cause = """\none\n  two"""\nfix = \'do it\'\n'
    (tmp_path / "one.toml").write_text(f"{row}pattern = 'x'\n{texts}")
    expected = Message("t", "x", "s", ("a.b", "c.d"), "one two", "do it", general=True, also=("y", "z"))
    assert entry.load() == (expected,)
    (tmp_path / "one.toml").write_text(f"{row}advice = 'failing-call'\n{texts}")
    assert entry.load()[0].fix == f"{entry.ADVICE['failing-call']}; do it"
    (tmp_path / "two.toml").write_text(f"{row}patern = 'x'\n{texts}")
    with pytest.raises(TypeError, match="patern"):
        entry.load()
