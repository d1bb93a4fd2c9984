# ruff: noqa: E501  (a table: sentences and patterns stay whole)
"""What a number or name means that programs print instead of a message (:mod:`gpuready.messages.find_codes`).

Source: NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors) for the names of Xids. Their actions are in
gpu/data/xids.yaml. Looked up on 2026-11-24.
"""

from collections.abc import Container
from typing import NamedTuple

from gpuready.messages.code_names import NVML_UNKNOWN, cuda_rows, nvml_rows
from gpuready.messages.entry import ADVICE, Message

_CALL = ADVICE["failing-call"]

_XID_PAGE = "docs.nvidia.com/deploy/xid-errors"
_XID_HEADER = "NVIDIA/open-gpu-kernel-modules (nverror.h)"
_NVML_PAGE = "docs.nvidia.com/deploy/nvml-api (nvmlReturn_t)"
_CUDA_PAGE = "docs.nvidia.com/cuda/cuda-runtime-api (cudaError_t)"
_DOCKER_PAGE = "docs.docker.com/engine/containers/run (exit status)"


class _Cause(NamedTuple):
    """What errors of CUDA and NVML that have no entry in the table mean. ``likely`` as that of a Message."""

    numbers: Container[int]
    cause: str
    fix: str
    checks: tuple[str, ...]
    likely: bool = False


#: Calls of a program that CUDA refuses. They say little beside the error of a component. The last one is for all others.
_CUDA_CALLS = (
    _Cause(
        (1,),
        "A CUDA function got a value that it does not accept: two libraries do not fit each other (PyTorch, Triton, NCCL, an "
        "extension), one is too new or too old for the driver or the GPU, or the program has a fault.",
        f"{_CALL}; then compare the versions of that library, of PyTorch and of the driver",
        (),
        likely=True,
    ),
    _Cause(
        (4,),
        "The program is ending, and a part of it still calls CUDA. This is a consequence: the reason is an error before it.",
        "pass the first error of the log to gpuready explain; without one, it is harmless",
        (),
    ),
    _Cause(
        (9, 701, 720, 912),
        "The program started GPU code with more threads, blocks, registers or shared memory than this GPU has, "
        "or with none at all (error 9: an empty input).",
        "update the program or library that started it to a version that supports this GPU, or make its block size smaller; "
        f"{_CALL}",
        (),
    ),
    _Cause(
        (98,),
        "The GPU code that the program calls was not built for this GPU, or the function cannot run on a GPU.",
        "install a build for the GPU's compute capability (nvidia-smi --query-gpu=name,compute_cap --format=csv), or rebuild "
        "that library with it (TORCH_CUDA_ARCH_LIST)",
        ("gpu.torch", "wheels.works"),
        likely=True,
    ),
    _Cause(
        (500,),
        "CUDA did not find a function or variable in the GPU code that the program loaded: the code was built for "
        "another GPU, or the versions of two libraries do not fit each other. When CUDA starts, a library of the driver is missing.",
        f"reinstall the library whose call fails in a build for this GPU and this PyTorch, and empty its JIT cache; {_CALL}",
        ("gpu.torch",),
        likely=True,
    ),
    _Cause(
        (400,),
        "A stream, event or memory handle is not valid here. It belongs to another GPU or process, to a program that has "
        "ended, or was already destroyed.",
        f"look at the errors of the other ranks first; {_CALL}",
        (),
        likely=True,
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
        likely=True,
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
        "The GPU is in an exclusive compute mode, and another process uses it. With MPS that is right, and the process is the MPS "
        "daemon: then this program does not reach it.",
        "nvidia-smi -q -d COMPUTE shows the mode, nvidia-smi lists the process; without MPS end it, or set nvidia-smi -c DEFAULT; "
        "with MPS give the program CUDA_MPS_PIPE_DIRECTORY and the daemon's /dev/shm (containers: --ipc=host)",
        ("gpu.answers",),
    ),
    _Cause(
        (226,),
        "The GPU contained an error, so that only this program ended: a hardware error, or a wrong access to the memory of "
        "another GPU over NVLink.",
        "restart the program; look for an Xid in dmesg, and pass it to gpuready explain",
        ("gpu.xid", "gpu.ecc", "gpu.nvlink_errors"),
        likely=True,
    ),
    _Cause(
        (304,),
        "A call of CUDA to the operating system failed: a device node, a limit (ulimit -a) or a permission; in a container also "
        "its device rules, its seccomp profile or /dev/shm.",
        "compare with root on the host: if it works there, the container is the cause (ls -l /dev/nvidia* in it, create it "
        "again); else gpuready apply creates the device nodes, and dmesg may name the reason",
        ("driver.nodes", "libcuda.init", "libcuda.container"),
        likely=True,
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
        "GPU code ran longer than allowed. A GPU that drives a display has such a limit, and one of Windows, WSL or Jetson. If "
        "this GPU has none, it hangs: an Xid in dmesg belongs to it.",
        "nvidia-smi shows whether the GPU has a display (Disp.A): use another GPU, or shorter pieces of GPU code; pass the Xid to "
        "gpuready explain",
        ("gpu.xid",),
        likely=True,
    ),
    _Cause(
        range(714, 719),
        "GPU code of the program crashed: a fault of the program or of a library, rarely an error of the GPU.",
        ADVICE["failing-kernel"],
        ("gpu.xid",),
        likely=True,
    ),
    _Cause(
        (801,),
        "This GPU, driver or platform does not support a function that the program uses. MIG and virtual GPUs lack some.",
        f"{_CALL}, and compare with a GPU where it works",
        ("gpu.mig",),
        likely=True,
    ),
    _Cause(
        range(805, 811),
        "The program is a client of the MPS daemon (nvidia-cuda-mps-control), which refused it (too many clients, another user, "
        "another version) or ended, also after the fault of another client.",
        "read server.log and control.log in CUDA_MPS_LOG_DIRECTORY first; restart the MPS daemon on the node only if no other client "
        "works, or unset CUDA_MPS_PIPE_DIRECTORY to work without it",
        ("libcuda.init", "gpu.xid"),
        likely=True,
    ),
    *_CUDA_CALLS,
)
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
        likely=True,
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
        "libnvidia-ml.so.1 was not found: no driver, a directory that ldconfig does not list, a container or pod without the "
        "NVIDIA runtime, or a pod (DRA driver, GPU Operator) that searches another directory of the host for the driver. On a node "
        "without a GPU this is normal.",
        "run nvidia-smi on the host first: if it fails, pass its error to gpuready explain, or install the driver; gpuready apply "
        "(ldso) adds its directory to the linker cache. In a container use --runtime=nvidia, in a pod runtimeClassName: nvidia; for the DRA driver check nvidiaDriverRoot",
        ("libcuda.ldcache", "driver.loaded", "docker.runtime", "containerd.runtime", "crio.config"),
        likely=True,
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
        likely=True,
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
        (NVML_UNKNOWN,),
        "The driver failed without naming a reason: the GPU hangs or was lost; or the container may not use it: systemctl "
        "daemon-reload removed its access, or it never had it (no-cgroups = true, or crun 1.18 with the toolkit's legacy hook).",
        "run nvidia-smi on the host: if it fails there, look for an Xid in dmesg; else recreate the container; if a new one "
        "fails, too, use CDI",
        ("gpu.answers", "gpu.xid", "driver.charlinks", "docker.smoke"),
        likely=True,
    ),
    _Cause(
        range(1000),
        "A program used NVML wrongly, or was built for another version of it. The node is rarely the cause.",
        "update the program (nvidia-ml-py, go-nvml, the exporter) to one that fits the driver",
        ("driver.match",),
        likely=True,
    ),
)
#: Causes of numbers that say nothing of their own. The component that printed them tells more.
VAGUE = frozenset({*(each.cause for each in _CUDA_CALLS), _NVML_CAUSES[-1].cause})
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
    8: "The GPU did not finish the work of a program in time. Mostly that program is at fault: GPU code that runs without an "
        "end, or very long. The GPU or its firmware can hang, too; then the next programs fail as well (posted of Blackwell "
        "with 595).",
    13: "GPU code of a program failed: an access out of bounds, or an instruction that the GPU does not accept. Mostly the "
        "program is at fault. It can also be a driver release, a resume from suspend or hibernation, or a faulty GPU.",
    31: "A program used an address that is not in its GPU memory. Mostly the program is at fault. It can also be a driver "
        "release (610.57.04 with Vulkan), or a faulty GPU.",
    32: "The driver found the stream of commands to the GPU damaged. Mostly a program or the driver is at fault. A bad PCIe "
        "link (slot, riser, cable) or faulty memory damages it, too.",
    43: "The driver ended a program after a fault of that program. Mostly the GPU itself goes on. If each program on this "
        "GPU ends with it, the GPU hangs or is faulty.",
    45: "The driver cleaned up after a program that ended early. If another Xid came before, that one is the cause.",
    48: "GPU memory had an error that ECC cannot correct. Xid 171 (DRAM) or 172 (SRAM) beside it names the memory.",
    54: "The GPU's power cable is not connected, or delivers too little power.",
    56: "The part of the GPU for displays reported an error: the driver, a cable, the monitor or the GPU. CUDA does not use "
        "that part.",
    61: "A micro-controller in the GPU stopped at a check of its own. Often that is a fault of the driver or firmware "
        "release, also in a change of the power state; it can be a faulty GPU.",
    62: "A micro-controller in the GPU (mostly the PMU) halted. Often that is a fault of the driver or firmware release (595 on "
        "Blackwell with long contexts); it can also be heat, power or a faulty GPU.",
    63: "The GPU recorded a bad row (older GPUs: a page) of its memory. The next reset replaces it.",
    64: "The GPU could not record a bad row (older GPUs: a page) of its memory, so the row stays in use.",
    74: "An NVLink of this GPU had an error: the link, its bridge or switch, or the GPU at the other end.",
    92: "ECC corrected many errors of a single bit. No data is wrong.",
    94: "The GPU contained an error: only the program that met it ended. Mostly that is GPU memory with an error that ECC "
        "cannot correct. If no count of ECC grew, it is not: an Xid 137 before it means an access over NVLink that failed.",
    95: "GPU memory had an error that ECC cannot correct. The GPU could not contain it: all its programs may be affected.",
    109: "The GPU could not change from one program to another in time: a program, mostly on several channels, or the GPU's "
        "firmware hangs. Often that is a fault of the driver release; it can also be low voltage, heat or a faulty GPU.",
    119: "The GPU's own firmware (GSP) did not answer the driver in time. An Xid or a lost GPU just before is the cause. Alone, "
        "it is often a fault of the driver or firmware release; it can also be heat, power or a faulty GPU.",
    120: "The GPU's own firmware (GSP) reported an error and mostly stopped. Often that is a fault of the driver or firmware "
        "release, on laptops and desktops also at suspend and resume; it can also be heat, power or a faulty GPU.",
    121: "The link between CPU and GPU (C2C) had an error, and corrected it. No data is wrong.",
    137: "A GPU at the other end of an NVLink refused an access to its memory (its MMU does not allow it). Mostly a program is "
        "at fault. NVIDIA's catalogue asks for no action, but a collective of the job can hang until the GPUs are reset.",
    140: "GPU memory had an error that ECC cannot correct.",
    154: "The driver changed its advice for this GPU. The line names it: reset, reboot, drain, or nothing (None).",
    **dict.fromkeys(range(144, 151), "An NVLink of this GPU had an error. Its line in dmesg says whether it was fatal."),
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
#: Xids whose number does not prove the cause, with posts in which it was the driver.
_XID_LIKELY = {
    8: "NVIDIA/open-gpu-kernel-modules#1159", 13: "NVIDIA/open-gpu-kernel-modules#1322",
    31: "NVIDIA/open-gpu-kernel-modules#1370", 32: "docs.nvidia.com/deploy/xid-errors/working-with-xid-errors.html",
    43: "aws/eks-node-monitoring-agent#272", 56: "docs.nvidia.com/deploy/xid-errors/working-with-xid-errors.html",
    61: "docs.nvidia.com/deploy/xid-errors/working-with-xid-errors.html", 62: "forums.developer.nvidia.com/t/371272",
    94: "forums.developer.nvidia.com/t/369786", 109: "NVIDIA/open-gpu-kernel-modules#1080",
    119: "NVIDIA/open-gpu-kernel-modules#1045", 120: "NVIDIA/open-gpu-kernel-modules#1284",
    137: "forums.developer.nvidia.com/t/369786",
}  # fmt: skip
#: What to look at before the action of the catalogue.
_XID_FIRST = {
    94: "nvidia-smi -q -d ECC,ROW_REMAPPER: if no count grew, look in dmesg for the program and GPU of the first Xid, and "
        "restart that program; else ",
    137: "look in dmesg for the program and for other Xids; if the job hangs, end it; if the next job hangs, too, drain the "
        "node and reset all GPUs; else ",
    **dict.fromkeys(range(144, 151), "if this was not its whole line in dmesg, pass that to gpuready explain first (a Nonfatal "
        "one may need less); else "),
}  # fmt: skip
_XID_WHERE = (
    "see in dmesg which programs and GPUs have it, and since when: one program on several GPUs means that program; if it "
    "began with a driver update, try another driver release; if it began with a resume, restart the program or reboot; if "
    "several programs fail like this on one GPU, drain the node and have that GPU tested"
)
_XID_IGNORED = "nothing, unless another Xid comes with it"
_XID_WORN = "; if its count of remapped rows (gpu.remap) goes on growing after resets, have the GPU replaced"
_WORN = (48, 63, 94, 95, 140, 171)
_XID_RELEASE = "; if it began with an update, or returns, try another release of the driver; if only this GPU has it, have it tested"
_RELEASE = (61, 62, 109, 119, 120)
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


def message(code: str) -> Message:
    """Return what a code means that has no entry in the table."""
    kind, _, number = code.partition(" ")
    return _xid(number) if kind == "xid" else {"cuda": _cuda, "nvml": _nvml, "exit": _exit}[kind](int(number))


def _xid(variant: str) -> Message:
    from gpuready.gpu.thresholds import action, action_name, load

    digits, _, name_of_action = variant.partition(" ")
    number, table = int(digits), load("xids")
    actions, ours = table["actions"], number in table["ours"]
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
    program = _XID_WHERE if number in _XID_LIKELY else _XID_PROGRAM
    fix = asked.remedy or (program if number in actions["program"]["xids"] else _XID_IGNORED)
    fix = ("" if name_of_action else _XID_FIRST.get(number, "")) + fix + (_XID_WORN if number in _WORN else "")
    fix += _XID_RELEASE if number in _RELEASE else ""
    fix += "; NVIDIA names no action for this Xid yet, so this advice is gpuready's own" if ours else ""
    title = f"Xid {number}: {name}" if name else f"Xid {number}"
    source = ", ".join(filter(None, (_XID_HEADER if ours else _XID_PAGE, _XID_LIKELY.get(number))))
    checks = ("gpu.xid", *_XID_CHECKS.get(number, ()))
    return Message(title, "", source, checks, why, fix, likely=number in _XID_LIKELY)


def _cuda(number: int) -> Message:
    names = dict(cuda_rows()).get(number)
    if names is None:
        return Message(
            f"CUDA error {number}", "", _CUDA_PAGE, ("libcuda.init",),
            f"CUDA returned error {number}. This gpuready does not know that number.",
            "look it up under cudaError_t in the documentation of your CUDA version",
        )  # fmt: skip
    title = f"CUDA error {number}: cudaError{names[0]}, CUDA_ERROR_{names[1]}"
    found = next(each for each in _CUDA_CAUSES if number in each.numbers)
    return Message(title, "", _CUDA_PAGE, found.checks, found.cause, found.fix, likely=found.likely)


def _nvml(number: int) -> Message:
    name = dict(nvml_rows())[number]
    found = next(each for each in _NVML_CAUSES if number in each.numbers)
    title = f"NVML error {number}: NVML_ERROR_{name}"
    return Message(title, "", _NVML_PAGE, found.checks, found.cause, found.fix, likely=found.likely)


def _exit(number: int) -> Message:
    found = _EXITS[number]
    return Message(f"exit {number} of docker run", "", found.source, found.checks, found.cause, found.fix, general=True)
