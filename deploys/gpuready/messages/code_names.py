"""Numbers and names of the errors of CUDA, NVML and NCCL, as programs print them.

Sources: driver_types.h and cuda.h (CUDA 13) for CUDA's names and numbers, nvml.h for NVML's, nccl.h for NCCL's.
Looked up on 2026-11-24.
"""

import functools
import re
from collections.abc import Iterator

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
_TEXTS = """
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
#: Names of NVML's errors, from 1. go-nvml prints ERROR_TIMEOUT, C NVML_ERROR_TIMEOUT, pynvml NVMLError_Timeout.
_NVML = (
    "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "ALREADY_INITIALIZED", "NOT_FOUND",
    "INSUFFICIENT_SIZE", "INSUFFICIENT_POWER", "DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE", "LIBRARY_NOT_FOUND",
    "FUNCTION_NOT_FOUND", "CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED", "OPERATING_SYSTEM",
    "LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "VGPU_ECC_NOT_SUPPORTED", "INSUFFICIENT_RESOURCES",
    "FREQ_NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED", "NOT_READY", "GPU_NOT_FOUND", "INVALID_STATE",
    "RESET_TYPE_NOT_SUPPORTED",
)  # fmt: skip
NVML_UNKNOWN = 999
#: Results of NCCL, from 1. Each has an entry in the table.
NCCL = (
    "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage",
    "ncclRemoteError", "ncclInProgress",
)  # fmt: skip
#: The number of an error of CUDA, by the text of cudaGetErrorString in lower case.
CUDA_TEXTS = dict(row.split(" ", 1)[::-1] for row in _TEXTS.replace("\n", "").split("|"))


@functools.cache
def cuda_names() -> dict[str, int]:
    """Return the numbers of CUDA errors by name in lower case without its prefix, of both APIs."""
    found: dict[str, int] = {}
    for number, names in cuda_rows():
        found |= dict.fromkeys((name.lower() for name in names), number)
    return found


@functools.cache
def nvml_names() -> dict[str, int]:
    """Return the numbers of NVML's errors by name in lower case, without its prefix and underscores."""
    return {name.replace("_", "").lower(): number for number, name in nvml_rows()}


def nvml_rows() -> Iterator[tuple[int, str]]:
    yield from enumerate(_NVML, 1)
    yield NVML_UNKNOWN, "UNKNOWN"


def cuda_rows() -> Iterator[tuple[int, tuple[str, str]]]:
    for row in _CUDA.replace("\n", "").split("|"):
        number, runtime, *driver = row.split()
        name = driver[0] if driver else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", runtime).upper()
        yield int(number), (runtime, name)
