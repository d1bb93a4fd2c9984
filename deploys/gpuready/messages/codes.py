# ruff: noqa: E501  (a table: sentences and patterns stay whole)
"""Numbers and names that programs print instead of a message: Xid, CUDA, NVML and NCCL errors, exit codes of docker run.

Sources: driver_types.h and cuda.h (CUDA 13) for CUDA's names and numbers, nvml.h for NVML's, nccl.h for NCCL's,
NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors) for the names of Xids. Their actions are in gpu/data/xids.yaml.
Looked up on 2026-11-24.
"""

import functools
import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from gpuready.messages.entry import ADVICE, Message

_CALL = ADVICE["failing-call"]

_XID_PAGE = "docs.nvidia.com/deploy/xid-errors"
_NVML_PAGE = "docs.nvidia.com/deploy/nvml-api (nvmlReturn_t)"
_CUDA_PAGE = "docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)"
_DOCKER_PAGE = "docs.docker.com/engine/containers/run (exit status)"

#: Number, name of the runtime API, and that of the driver API where it is not the same.
_CUDA = """
1 InvalidValue|2 MemoryAllocation OUT_OF_MEMORY|3 InitializationError NOT_INITIALIZED|4 CudartUnloading DEINITIALIZED|
5 ProfilerDisabled|6 ProfilerNotInitialized|7 ProfilerAlreadyStarted|8 ProfilerAlreadyStopped|9 InvalidConfiguration|
12 InvalidPitchValue|13 InvalidSymbol|16 InvalidHostPointer|17 InvalidDevicePointer|18 InvalidTexture|
19 InvalidTextureBinding|20 InvalidChannelDescriptor|21 InvalidMemcpyDirection|22 AddressOfConstant|
23 TextureFetchFailed|24 TextureNotBound|25 SynchronizationError|26 InvalidFilterSetting|27 InvalidNormSetting|
28 MixedDeviceExecution|31 NotYetImplemented|32 MemoryValueTooLarge|34 StubLibrary|35 InsufficientDriver|
36 CallRequiresNewerDriver|37 InvalidSurface|43 DuplicateVariableName|44 DuplicateTextureName|45 DuplicateSurfaceName|
46 DevicesUnavailable DEVICE_UNAVAILABLE|49 IncompatibleDriverContext|52 MissingConfiguration|53 PriorLaunchFailure|
65 LaunchMaxDepthExceeded|66 LaunchFileScopedTex|67 LaunchFileScopedSurf|68 SyncDepthExceeded|
69 LaunchPendingCountExceeded|98 InvalidDeviceFunction|100 NoDevice|101 InvalidDevice|102 DeviceNotLicensed|
103 SoftwareValidityNotEstablished|127 StartupFailure|200 InvalidKernelImage INVALID_IMAGE|
201 DeviceUninitialized INVALID_CONTEXT|205 MapBufferObjectFailed MAP_FAILED|206 UnmapBufferObjectFailed UNMAP_FAILED|
207 ArrayIsMapped|208 AlreadyMapped|209 NoKernelImageForDevice NO_BINARY_FOR_GPU|210 AlreadyAcquired|211 NotMapped|
212 NotMappedAsArray|213 NotMappedAsPointer|214 ECCUncorrectable ECC_UNCORRECTABLE|215 UnsupportedLimit|
216 DeviceAlreadyInUse CONTEXT_ALREADY_IN_USE|217 PeerAccessUnsupported|218 InvalidPtx|219 InvalidGraphicsContext|
220 NvlinkUncorrectable|221 JitCompilerNotFound|222 UnsupportedPtxVersion|223 JitCompilationDisabled|
224 UnsupportedExecAffinity|225 UnsupportedDevSideSync|226 Contained|300 InvalidSource|301 FileNotFound|
302 SharedObjectSymbolNotFound|303 SharedObjectInitFailed|304 OperatingSystem|400 InvalidResourceHandle INVALID_HANDLE|
401 IllegalState|402 LossyQuery|500 SymbolNotFound NOT_FOUND|600 NotReady|700 IllegalAddress|701 LaunchOutOfResources|
702 LaunchTimeout|703 LaunchIncompatibleTexturing|704 PeerAccessAlreadyEnabled|705 PeerAccessNotEnabled|
708 SetOnActiveProcess PRIMARY_CONTEXT_ACTIVE|709 ContextIsDestroyed|710 Assert|711 TooManyPeers|
712 HostMemoryAlreadyRegistered|713 HostMemoryNotRegistered|714 HardwareStackError|715 IllegalInstruction|
716 MisalignedAddress|717 InvalidAddressSpace|718 InvalidPc|719 LaunchFailure LAUNCH_FAILED|
720 CooperativeLaunchTooLarge|721 TensorMemoryLeak|800 NotPermitted|801 NotSupported|802 SystemNotReady|
803 SystemDriverMismatch|804 CompatNotSupportedOnDevice|805 MpsConnectionFailed|806 MpsRpcFailure|807 MpsServerNotReady|
808 MpsMaxClientsReached|809 MpsMaxConnectionsReached|810 MpsClientTerminated|811 CdpNotSupported|
812 CdpVersionMismatch|900 StreamCaptureUnsupported|901 StreamCaptureInvalidated|902 StreamCaptureMerge|
903 StreamCaptureUnmatched|904 StreamCaptureUnjoined|905 StreamCaptureIsolation|906 StreamCaptureImplicit|
907 CapturedEvent|908 StreamCaptureWrongThread|909 Timeout|910 GraphExecUpdateFailure|911 ExternalDevice|
912 InvalidClusterSize|913 FunctionNotLoaded|914 InvalidResourceType|915 InvalidResourceConfiguration|999 Unknown
"""


#: What cudaGetErrorString says of the errors that have no text in the table, by number.
_CUDA_TEXTS = """
1 invalid argument|4 driver shutting down|9 invalid configuration argument|12 invalid pitch argument|
13 invalid device symbol|16 invalid host pointer|17 invalid device pointer|18 invalid texture reference|
98 invalid device function|201 invalid device context|206 unmapping of buffer object failed|
208 resource already mapped|216 exclusive-thread device already in use by a different thread|
223 ptx jit compilation was disabled|226 invalid access of peer gpu memory over nvlink or a hardware error|
300 device kernel source is invalid|301 file not found|302 shared object symbol not found|
303 shared object initialization failed|304 os call failed or operation not supported on this os|
400 invalid resource handle|500 named symbol not found|600 device not ready|701 too many resources requested for launch|
702 the launch timed out and was terminated|704 peer access is already enabled|705 peer access has not been enabled|
708 cannot set while device is active in this process|709 context is destroyed|711 peer mapping resources exhausted|
712 part or all of the requested memory range is already mapped|
713 pointer does not correspond to a registered memory region|714 hardware stack error|
715 an illegal instruction was encountered|716 misaligned address|
717 operation not supported on global/shared address space|718 invalid program counter|
720 too many blocks in cooperative launch|900 operation not permitted when stream is capturing|
901 operation failed due to a previous error during capture|
902 operation would result in a merge of separate capture sequences|
903 capture was not ended in the same stream as it began|904 capturing stream has unjoined work|
905 dependency created on uncaptured work in another stream|
906 operation would make the legacy stream depend on a capturing blocking stream|
907 operation not permitted on an event last recorded in a capturing stream|
910 the graph update was not performed because it included changes which violated constraints|
912 a kernel launch error has occurred due to cluster misconfiguration
"""


class _Cause(NamedTuple):
    """What errors of CUDA that have no entry in the table mean."""

    numbers: Container[int]
    cause: str
    fix: str
    checks: tuple[str, ...]


#: Calls of a program that CUDA refuses. They say little beside the error of a component. The last one is for all others.
_CUDA_CALLS = (
    _Cause(
        (1,),
        "A CUDA function got a value that it does not accept. Usual reasons: two libraries that do not fit each other "
        "(PyTorch, Triton, NCCL, an extension), or one that is too new or too old for the driver or the GPU.",
        f"{_CALL}; then compare the versions of that library, of PyTorch and of the driver",
        (),
    ),
    _Cause(
        (4,),
        "The program is ending, and a part of it still calls CUDA. This is a consequence: the reason is an error before it.",
        "pass the first error of the log to gpuready explain; without one, it is harmless",
        (),
    ),
    _Cause(
        (9, 701, 720, 912),
        "The program started GPU code with more threads, blocks, registers or shared memory than this GPU has.",
        "update the program or library that started it to a version that supports this GPU, or make its block size smaller; "
        f"{_CALL}",
        (),
    ),
    _Cause(
        (98,),
        "The GPU code that the program calls was not built for this GPU.",
        "install a build for the GPU's compute capability (nvidia-smi --query-gpu=name,compute_cap --format=csv), or rebuild "
        "that library with it (TORCH_CUDA_ARCH_LIST)",
        ("gpu.torch", "wheels.works"),
    ),
    _Cause(
        (500,),
        "CUDA did not find a function or variable in the GPU code that the program loaded. Usual reasons: the code was built "
        "for another GPU, or the versions of two libraries do not fit each other.",
        f"reinstall the library whose call fails in a build for this GPU and this PyTorch, and empty its JIT cache; {_CALL}",
        ("gpu.torch",),
    ),
    _Cause(
        (400,),
        "A stream, event or memory handle is not valid here. Usually it belongs to another GPU or process, or to a program "
        "that has ended.",
        f"look at the errors of the other ranks first; {_CALL}",
        (),
    ),
    _Cause(
        range(900, 911),
        "The program recorded a CUDA graph, and a call that cannot be recorded broke it; 901 follows from an error before it. "
        "The node is rarely the cause.",
        "look at the first error of the log; start without CUDA graphs to see it (vLLM: --enforce-eager, SGLang: "
        "--disable-cuda-graph)",
        (),
    ),
    _Cause(
        range(1000),
        "The program, or a library in it, called CUDA wrongly; or an earlier error shows only here. The node is rarely the "
        "cause.",
        f"{_CALL} first; look for an Xid in dmesg",
        ("gpu.xid",),
    ),
)
_CUDA_CAUSES = (
    _Cause(
        (102,),
        "The virtual GPU has no licence.",
        "nvidia-smi -q shows License Status; check /etc/nvidia/gridd.conf and whether the licence server answers",
        ("gpu.answers",),
    ),
    _Cause(
        (216,),
        "The GPU is in an exclusive compute mode, and another process uses it.",
        "nvidia-smi -q -d COMPUTE shows the mode, nvidia-smi lists the process; end it, or set nvidia-smi -c DEFAULT",
        ("gpu.answers",),
    ),
    _Cause(
        (226,),
        "The GPU contained an error, so that only this program ended: a hardware error, or a wrong access to the memory of "
        "another GPU over NVLink.",
        "restart the program; look for an Xid in dmesg, and pass it to gpuready explain",
        ("gpu.xid", "gpu.ecc", "gpu.nvlink_errors"),
    ),
    _Cause(
        (304,),
        "A call of CUDA to the operating system failed: a device node, a limit (ulimit -a) or a permission.",
        "compare with root on the host; gpuready apply creates the device nodes; dmesg may name the reason",
        ("driver.nodes", "libcuda.init"),
    ),
    _Cause(
        (600,),
        "Not an error: the GPU is still at work on what the program asks about.",
        "nothing; a program that fails with it should wait for the GPU",
        (),
    ),
    _Cause(
        (711,),
        "Without NVSwitches, a GPU can share its memory with eight other GPUs. The program wants more.",
        "give each process at most nine GPUs (CUDA_VISIBLE_DEVICES)",
        ("gpu.p2p",),
    ),
    _Cause(
        (702,),
        "GPU code ran longer than allowed. Only a GPU that drives a display has such a limit.",
        "use a GPU without a display, or shorter pieces of GPU code",
        ("gpu.xid",),
    ),
    _Cause(
        range(714, 719),
        "GPU code of the program crashed. The node is rarely the cause.",
        ADVICE["failing-kernel"],
        ("gpu.xid",),
    ),
    _Cause(
        (801,),
        "This GPU, driver or platform does not support a function that the program uses. MIG and virtual GPUs lack some.",
        f"{_CALL}, and compare with a GPU where it works",
        ("gpu.mig",),
    ),
    _Cause(
        range(805, 811),
        "The program is a client of the MPS daemon (nvidia-cuda-mps-control), which refused it or ended.",
        "restart the MPS daemon on the node, or unset CUDA_MPS_PIPE_DIRECTORY to work without it",
        ("libcuda.init", "gpu.xid"),
    ),
    *_CUDA_CALLS,
)
#: Names of NVML's errors, from 1. go-nvml prints ERROR_TIMEOUT, C NVML_ERROR_TIMEOUT, pynvml NVMLError_Timeout.
_NVML = (
    "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "ALREADY_INITIALIZED", "NOT_FOUND",
    "INSUFFICIENT_SIZE", "INSUFFICIENT_POWER", "DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE", "LIBRARY_NOT_FOUND",
    "FUNCTION_NOT_FOUND", "CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED", "OPERATING_SYSTEM",
    "LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "VGPU_ECC_NOT_SUPPORTED", "INSUFFICIENT_RESOURCES",
    "FREQ_NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED", "NOT_READY", "GPU_NOT_FOUND", "INVALID_STATE",
    "RESET_TYPE_NOT_SUPPORTED",
)  # fmt: skip
_NVML_UNKNOWN = 999
#: What errors of NVML that have no entry in the table mean. The last one is for all other errors.
_NVML_CAUSES = (
    _Cause(
        (3, 22, 24, 30),
        "This GPU or driver has no such value or function. GB10 and Jetson, for example, have no memory of their own, so "
        "NVML does not report its size.",
        "update the program that asks, or let it do without that value; nvidia-smi -q shows what the GPU reports",
        ("gpu.model",),
    ),
    _Cause(
        (6, 28),
        "NVML finds no such GPU or MIG instance: the index, the UUID or the address is of another node, the MIG layout "
        "changed, or the GPU is gone.",
        "compare nvidia-smi -L with what the program asks for, and restart the program",
        ("gpu.count", "gpu.mig"),
    ),
    _Cause(
        (8,),
        "The GPU's power cables are not connected, or deliver too little power.",
        "check the cables and power supplies of the node",
        ("gpu.answers", "gpu.count"),
    ),
    _Cause(
        (10,),
        "The driver or the GPU did not answer in time.",
        "look for an Xid in dmesg; if nvidia-smi hangs, drain the node and reset the GPU, or reboot",
        ("gpu.answers", "gpu.xid"),
    ),
    _Cause(
        (11,),
        "The kernel had a problem with an interrupt of the GPU.",
        "read dmesg; update the BIOS, or reseat the card",
        ("gpu.answers", "gpu.xid"),
    ),
    _Cause(
        (12,),
        "libnvidia-ml.so.1 was not found: no driver, a directory that ldconfig does not list, or a container or pod without "
        "the NVIDIA runtime.",
        "in a container use --runtime=nvidia, in a pod runtimeClassName: nvidia; on the host install the driver, and "
        "gpuready apply (ldso) adds its directory to the linker cache",
        ("libcuda.ldcache", "driver.loaded", "docker.runtime", "containerd.runtime"),
    ),
    _Cause(
        (13,),
        "The driver's libnvidia-ml is older than the program expects, and lacks a function.",
        "upgrade the driver, or use an older version of the program",
        ("driver.match",),
    ),
    _Cause(
        (17,),
        "The operating system does not let this process use the GPU: the container's device rules, or on WSL no-cgroups = "
        "true in the toolkit's config.toml.",
        "recreate the container with --runtime=nvidia or --gpus all; gpuready verify names a leftover no-cgroups",
        ("config.cgroups", "docker.smoke"),
    ),
    _Cause(
        (19,),
        "A program still uses the GPU, so it cannot be reset or reconfigured.",
        "end what uses it: fuser -v /dev/nvidia* lists it; nvidia-persistenced, DCGM and exporters count, too",
        ("gpu.mig", "driver.persistenced"),
    ),
    _Cause(
        (23,),
        "The GPU has no room left for this: no free place for another MIG instance, or no internal resource.",
        "nvidia-smi mig -lgip shows what is free; destroy instances that nobody uses, or create the large ones first",
        ("gpu.mig",),
    ),
    _Cause(
        (_NVML_UNKNOWN,),
        "The driver failed without naming a reason: the GPU hangs or was lost, or the container lost its access to it "
        "(systemctl daemon-reload).",
        "run nvidia-smi on the host: if it fails there, look for an Xid in dmesg; else recreate the container",
        ("gpu.answers", "gpu.xid", "driver.charlinks", "docker.smoke"),
    ),
    _Cause(
        range(1000),
        "A program used NVML wrongly, or was built for another version of it. The node is rarely the cause.",
        "update the program (nvidia-ml-py, go-nvml, the exporter) to one that fits the driver",
        ("driver.match",),
    ),
)
#: Causes of numbers that say nothing of their own. The component that printed them tells more.
VAGUE = frozenset({*(each.cause for each in _CUDA_CALLS), _NVML_CAUSES[-1].cause})
#: Results of NCCL, from 1. Each has an entry in the table.
_NCCL = (
    "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage",
    "ncclRemoteError", "ncclInProgress",
)  # fmt: skip
_XIDS = {
    8: "GPU stopped processing", 13: "graphics engine exception", 31: "GPU memory page fault",
    32: "invalid or corrupted push buffer stream", 37: "driver firmware error", 38: "driver firmware error",
    43: "GPU stopped processing", 44: "graphics engine fault during context switch",
    45: "preemptive cleanup, due to previous errors", 46: "GPU stopped processing", 48: "double bit ECC error",
    54: "auxiliary power is not connected to the GPU board", 56: "display engine error",
    57: "error programming video memory interface", 58: "unstable video memory interface detected",
    61: "internal micro-controller breakpoint", 62: "internal micro-controller halt",
    63: "ECC page retirement or row remapping recorded", 64: "ECC page retirement or row remapping could not be recorded",
    66: "illegal access by driver", 68: "video processor exception", 69: "graphics engine class error",
    74: "NVLink error", 78: "vGPU start error", 79: "GPU has fallen off the bus", 80: "corrupted data sent to GPU",
    81: "VGA subsystem error", 92: "high single-bit ECC error rate", 94: "contained memory error",
    95: "uncontained memory error", 109: "context switch timeout", 110: "security fault",
    119: "timeout of a call to the GSP firmware", 120: "GSP firmware error", 121: "corrected error of the C2C link",
    136: "link training failed", 137: "NVLink privilege error", 140: "unrecovered ECC error",
    143: "GPU initialization error", 144: "NVLink SAW error", 145: "NVLink RLW error", 146: "NVLink TLW error",
    147: "NVLink TREX error", 148: "NVLink NVLPW_CTRL error", 149: "NVLink NETIR error", 150: "NVLink MSE error",
    151: "key rotation error", 154: "GPU recovery action changed", 156: "resource retirement",
    157: "resource retirement failed", 158: "GPU fatal timeout", 160: "channel retirement", 161: "channel retirement failed",
    162: "power smoothing works again", 163: "power smoothing stopped", 164: "power smoothing: little lifetime is left",
    165: "power smoothing: no lifetime is left", 166: "NVLink traffic before its encryption was set up",
    167: "fatal PCIe timeout", 168: "errors in write-protected memory", 169: "SEC2 micro-controller halt",
    170: "NVLink interrupt in confidential computing", 171: "uncorrectable DRAM error", 172: "uncorrectable SRAM error",
    173: "fatal error of the C2C link", 174: "GPU process ended without a message", 175: "memory subsystem error",
    176: "corrected PCIe errors",
}  # fmt: skip
#: Causes of the Xids that are seen most. Of the others, the name and the action are shown.
_XID_CAUSES = {
    13: "GPU code of a program failed: an access out of bounds, or an instruction that the GPU does not accept.",
    31: "A program used an address that is not in its GPU memory. This is nearly always a fault of the program.",
    43: "The driver ended a program after a fault of that program. The GPU itself goes on.",
    45: "The driver cleaned up after a program that ended early. If another Xid came before, that one is the cause.",
    48: "GPU memory had an error that ECC cannot correct. Xid 171 (DRAM) or 172 (SRAM) beside it names the memory.",
    54: "The GPU's power cable is not connected, or delivers too little power.",
    63: "The GPU recorded a bad row (older GPUs: a page) of its memory. The next reset replaces it.",
    64: "The GPU could not record a bad row (older GPUs: a page) of its memory, so the row stays in use.",
    74: "An NVLink of this GPU had an error: the link, its bridge or switch, or the GPU at the other end.",
    92: "ECC corrected many errors of a single bit. No data is wrong.",
    94: "GPU memory had an error that ECC cannot correct. The GPU contained it: only the program that used this memory ended.",
    95: "GPU memory had an error that ECC cannot correct. The GPU could not contain it: all its programs may be affected.",
    119: "The GPU's own firmware (GSP) did not answer the driver in time.",
    120: "The GPU's own firmware (GSP) reported an error.",
    121: "The link between CPU and GPU (C2C) had an error, and corrected it. No data is wrong.",
    140: "GPU memory had an error that ECC cannot correct.",
    154: "The driver changed its advice for this GPU. The line names it: reset, reboot, drain, or nothing (None).",
    **dict.fromkeys(range(144, 151), "An NVLink of this GPU had an error. The line says whether it was fatal."),
    163: "The GPU switched its hardware power smoothing off.",
    164: "The hardware for power smoothing is near the end of its life.",
    165: "The hardware for power smoothing is worn out.",
    168: "Write-protected memory had errors, and ECC is off, so the GPU cannot replace the bad rows.",
    171: "DRAM of the GPU had an error that ECC cannot correct.",
    172: "SRAM of the GPU had an error that ECC cannot correct.",
    173: "The link between CPU and GPU (C2C) failed.",
}  # fmt: skip
_XID_PROGRAM = (
    "look for the fault in the program, and restart it; if several programs fail like this on one GPU, drain the node "
    "and have that GPU tested"
)
_XID_IGNORED = "nothing, unless another Xid comes with it"
_XID_CHECKS = {
    48: ("gpu.remap", "gpu.ecc"), 63: ("gpu.remap", "gpu.retired"), 64: ("gpu.remap", "gpu.retired"), 79: ("gpu.count", "gpu.answers"),
    94: ("gpu.remap", "gpu.ecc"), 95: ("gpu.remap", "gpu.ecc"), 119: ("driver.firmware", "gpu.answers"),
    120: ("driver.firmware", "gpu.answers"), 140: ("gpu.remap", "gpu.ecc"), 154: ("gpu.recovery",),
    171: ("gpu.remap", "gpu.ecc"), 172: ("gpu.ecc",), 175: ("gpu.remap", "gpu.ecc"), 176: ("gpu.pcie",),
    **dict.fromkeys((74, *range(144, 151)), ("gpu.nvlink", "gpu.nvlink_errors")),
}  # fmt: skip


class _Exit(NamedTuple):
    """What an exit code of a container means."""

    cause: str
    fix: str
    checks: tuple[str, ...] = ()
    source: str = _DOCKER_PAGE


_EXITS = {
    125: _Exit("Docker could not start the container: a wrong option, an unknown runtime, or a hook that failed.",
               "pass the line that docker printed before it to gpuready explain", ("docker.runtime", "docker.smoke")),
    126: _Exit("The container's command cannot be executed: it is not executable, or built for another architecture.",
               "check the mode and the architecture of the command in the image"),
    127: _Exit("The container's command does not exist in the image. nvidia-smi exists only with --runtime=nvidia or "
               "--gpus, because the NVIDIA runtime mounts it.",
               "correct the command; for nvidia-smi start the container with --runtime=nvidia or --gpus all; gpuready "
               "apply registers the runtime", ("docker.runtime", "docker.smoke")),
    137: _Exit("The container's command was killed (SIGKILL): its memory limit or the host's memory was full (OOM "
               "killer), or docker stop, docker kill or Kubernetes ended it.",
               "docker inspect shows State.OOMKilled, kubectl describe pod shows OOMKilled, and dmesg shows Killed process; "
               "give it more memory (--memory, resources.limits), or start fewer workers", source="k3s-io/k3s#7746"),
    139: _Exit("The container's command crashed (SIGSEGV): most often two libraries in the image that do not fit each "
               "other, or a fault of the program.",
               "look for segfault in dmesg, which names the library; start the same image with another command, such as "
               "nvidia-smi, to see whether only this program crashes", ("docker.smoke",), "YanWenKun/ComfyUI-Docker#68"),
}  # fmt: skip

#: DCGM's metric of the last Xid, as dcgm-exporter labels it.
_XID_METRIC = re.compile(r"\bdcgm_fi_dev_xid_errors\{[^}]{0,300}\berr_code=\"([1-9][0-9]{0,3})\"")
_XID = re.compile(r"\bxid\b(?: \((?:pci:)?[0-9a-f:.]{3,20}\))?(?: error| errors)?[ :=#]{1,3}([0-9]{1,4})\b")
_CUDA_NAME = re.compile(r"\bcudaerror([a-z]{4,40})\b|\bcuda_error_([a-z_]{4,50})\b")
_CUDA_NUMBER = re.compile(
    r"(?:\bcuda(?: runtime| driver| initialization)?:? (?:error|failure)|\bcudaerror(?:_t)?|\bcuresult|\bcuinit(?:\(0\))?"
    r"(?: failed with| failed:?| returned| =| ->)?)(?: code)?(?: is)?[ :=(#]{1,3}([0-9]{1,3})\b"
)
_TEXTS = dict(row.split(" ", 1)[::-1] for row in _CUDA_TEXTS.replace("\n", "").split("|"))
#: CUDA error (file.cu:12): text; CUDA failure 1 'text'; Triton Error [CUDA]: text; cudaMalloc failed: text.
_CUDA_TEXT = re.compile(
    r"(?:\bcuda(?: driver| runtime| kernel| api)?[ _]?(?:error|failure|exception)|\btriton error \[cuda\]"
    r"|\bcu(?:da|mem|ctx|stream|launch|device|event|module|func|graph|ipc|library)[a-z0-9_]{0,40}(?:\([^()]{0,80}\))? "
    r"(?:failed|returned|error))(?: with| in)?(?:(?: at)? [(']?[^ '\"]{1,120}:[0-9]{1,6}[)']?| \(?[0-9]{1,3}\)?)?[ :='\"(]{1,4}"
    rf"({'|'.join(map(re.escape, _TEXTS))})(?![a-z])"
)
#: Without a word of CUDA's, only numbers that mean nothing else.
_BARE = re.compile(r"\berror:? (80[0-4])\b(?!\.[0-9])")
_ALONE = re.compile(r"(?:error )?(3[45]|36|46|100|101|20[09]|214|22[0-2]|304|7[01][0-9]|80[0-9]|999)")
_NVML_NAME = re.compile(r"\b(?:(?:nvml_)?error|nvmlerror)_([a-z_]{4,40})\b")
_NVML_NUMBER = re.compile(
    r"\bnvml[a-z0-9_ ]{0,40} (?:err(?:or)?(?: code)?|failed|failure) ?[:=(]{0,2} ?([0-9]{1,3})\b(?! [a-z])"
)
#: What nvmlErrorString says, where nvidia-container-cli passes it on.
_NVML_TEXTS = {
    "invalid argument": 2, "not supported": 3, "insufficient permissions": 4, "not found": 6, "timeout": 10,
    "function not found": 13, "gpu is lost": 15, "in use by another client": 19, "insufficient resources": 23,
    "unknown error": 999,
}  # fmt: skip
_NVML_TEXT = re.compile(rf"\bnvml error: ({'|'.join(_NVML_TEXTS)})(?![a-z])")
_NVML_NEAR = ("nvml", "nvidia", "gpu", "device handle")
_NCCL_NAME = re.compile(r"\b(nccl[a-z]{6,20})\b")
_NCCL_NUMBER = re.compile(r"\bnccl (?:error|result|failure)(?: code)?[ :=]{1,2}([1-7])\b")
_EXIT = re.compile(
    r"(?<!hook #\d: )\bexit(?:ed)?(?: with)?(?:(?: ?code| status|ed)?)(?::| =| is)? ?\(?(12[567]|13[79])\b"
)
_ENGINES = ("docker", "podman", "container", "nvidia")
_LIMIT = 64
#: The longest rest of a line of the kernel log that is read after an Xid, in characters.
_LINE = 200


def find(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each code in a normal text (see :mod:`gpuready.messages.find`) once: the code, its start, its end."""
    seen: set[str] = set()
    for code, start, end in _all(text):
        if code not in seen and len(seen) < _LIMIT:
            seen.add(code)
            yield code, start, end


def message(code: str) -> Message:
    """Return what a code means that has no entry in the table."""
    kind, _, number = code.partition(" ")
    return _xid(number) if kind == "xid" else {"cuda": _cuda, "nvml": _nvml, "exit": _exit}[kind](int(number))


@functools.cache
def cuda_names() -> dict[str, int]:
    """Return the numbers of CUDA errors by name in lower case without its prefix, of both APIs."""
    found: dict[str, int] = {}
    for number, names in _cuda_rows():
        found |= dict.fromkeys((name.lower() for name in names), number)
    return found


@functools.cache
def nvml_names() -> dict[str, int]:
    """Return the numbers of NVML's errors by name in lower case, without its prefix and underscores."""
    return {name.replace("_", "").lower(): number for number, name in _nvml_rows()}


def _nvml_rows() -> Iterator[tuple[int, str]]:
    yield from enumerate(_NVML, 1)
    yield _NVML_UNKNOWN, "UNKNOWN"


def _cuda_rows() -> Iterator[tuple[int, tuple[str, str]]]:
    for row in _CUDA.replace("\n", "").split("|"):
        number, runtime, *driver = row.split()
        name = driver[0] if driver else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", runtime).upper()
        yield int(number), (runtime, name)


def _all(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _XID.finditer(text) if "xid" in text else ():
        yield f"xid {_variant(text, match)}", match.start(), match.end()
    for match in _XID_METRIC.finditer(text) if "err_code" in text else ():
        yield f"xid {match[1]}", match.start(), match.end()
    if "cuda" in text:
        names = cuda_names()
        for match in _CUDA_NAME.finditer(text):
            name = match[1] or match[2]
            if name in names:
                yield f"cuda {names[name]}", match.start(), match.end()
        for match in _CUDA_TEXT.finditer(text):
            yield f"cuda {_TEXTS[match[1]]}", match.start(), match.end()
    yield from _nvml_of(text)
    for pattern, word in ((_CUDA_NUMBER, "cu"), (_BARE, "error")):
        for match in pattern.finditer(text) if word in text else ():
            if int(match[1]):
                yield f"cuda {match[1]}", match.start(), match.end()
    if alone := _ALONE.fullmatch(text):
        yield f"cuda {alone[1]}", 0, len(text)
    if "nccl" in text:
        results = {name.lower(): number for number, name in enumerate(_NCCL, 1)}
        for match in _NCCL_NAME.finditer(text):
            if match[1] in results:
                yield f"nccl {results[match[1]]}", match.start(), match.end()
        for match in _NCCL_NUMBER.finditer(text):
            yield f"nccl {match[1]}", match.start(), match.end()
    engine = any(word in text for word in _ENGINES)
    for match in _EXIT.finditer(text) if engine or len(text) < 40 else ():
        # Every program can be killed or crash; 125 to 127 are Docker's own.
        if engine or match[1].startswith("12") or not match.start():
            yield f"exit {match[1]}", match.start(), match.end()


def _nvml_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the errors of NVML; without its prefix a name counts only near a word that is about GPUs."""
    near = any(word in text for word in _NVML_NEAR)
    for match in _NVML_NAME.finditer(text) if "error_" in text and near else ():
        number = nvml_names().get(match[1].replace("_", ""))
        if number is not None:
            yield f"nvml {number}", match.start(), match.end()
    for match in _NVML_TEXT.finditer(text) if "nvml" in text else ():
        yield f"nvml {_NVML_TEXTS[match[1]]}", match.start(), match.end()
    known = set(nvml_names().values())
    for match in _NVML_NUMBER.finditer(text) if "nvml" in text else ():
        if int(match[1]) in known:
            yield f"nvml {int(match[1])}", match.start(), match.end()


def _variant(text: str, xid: re.Match[str]) -> str:
    """Return the number of an Xid, and after a blank the name of its action if the rest of its line chooses it."""
    from gpuready.gpu.thresholds import NVLINK5, action_name

    number, rest = int(xid[1]), text[xid.end() : xid.end() + _LINE].partition("xid")[0]
    if number not in NVLINK5 or (name := action_name(number, rest)) == action_name(number):
        return xid[1]
    return f"{number} {name}"


def _xid(variant: str) -> Message:
    from gpuready.gpu.thresholds import action, action_name, load

    digits, _, name_of_action = variant.partition(" ")
    number, actions = int(digits), load("xids")["actions"]
    if number not in _XIDS and not any(number in entry["xids"] for entry in actions.values()):
        return Message(
            f"Xid {number}", "", _XID_PAGE, ("gpu.xid",),
            f"The driver reports a GPU error. Xid {number} is not in the catalogue that this gpuready knows.",
            "look it up in NVIDIA's catalogue of Xids; pass the lines around it in dmesg to gpuready explain",
        )  # fmt: skip
    asked = action(name_of_action or action_name(number))
    name = _XIDS.get(number, "")
    means = f"{asked.means[:1].upper()}{asked.means[1:]}."
    why = ("" if name_of_action else _XID_CAUSES.get(number, "")) or (
        f"The driver reports: {name}. {means}" if name else f"By NVIDIA's catalogue, {asked.means}."
    )
    fix = asked.remedy or (_XID_PROGRAM if number in actions["program"]["xids"] else _XID_IGNORED)
    title = f"Xid {number}: {name}" if name else f"Xid {number}"
    return Message(title, "", _XID_PAGE, ("gpu.xid", *_XID_CHECKS.get(number, ())), why, fix)


def _cuda(number: int) -> Message:
    names = dict(_cuda_rows()).get(number)
    if names is None:
        return Message(
            f"CUDA error {number}", "", _CUDA_PAGE, ("libcuda.init",),
            f"CUDA returned error {number}. This gpuready does not know that number.",
            "look it up under cudaError_t in the documentation of your CUDA version",
        )  # fmt: skip
    title = f"CUDA error {number}: cudaError{names[0]}, CUDA_ERROR_{names[1]}"
    found = next(each for each in _CUDA_CAUSES if number in each.numbers)
    return Message(title, "", _CUDA_PAGE, found.checks, found.cause, found.fix)


def _nvml(number: int) -> Message:
    name = dict(_nvml_rows())[number]
    found = next(each for each in _NVML_CAUSES if number in each.numbers)
    return Message(f"NVML error {number}: NVML_ERROR_{name}", "", _NVML_PAGE, found.checks, found.cause, found.fix)


def _exit(number: int) -> Message:
    found = _EXITS[number]
    return Message(f"exit {number} of docker run", "", found.source, found.checks, found.cause, found.fix, general=True)
