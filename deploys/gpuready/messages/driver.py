# ruff: noqa: E501  (a table: sentences and patterns stay whole)
"""Messages of the NVIDIA driver, nvidia-smi, the kernel, DKMS, Secure Boot and the services beside the driver."""

from __future__ import annotations

from gpuready.messages.entry import Message

_XIDS = "docs.nvidia.com/deploy/xid-errors"
_MEMORY = "docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt"

MESSAGES = (
    Message(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
        r"nvidia-smi has failed because it could",
        "NVIDIA/nvidia-docker#988",
        ("driver.loaded", "driver.nouveau", "driver.secureboot", "driver.nextboot"),
        "The kernel module nvidia is not loaded: not built for this kernel, refused by Secure Boot, or nouveau holds "
        "the GPU.",
        "run modprobe nvidia and read dmesg; dkms status shows whether the module was built for uname -r; gpuready "
        "verify names the reason",
    ),
    Message(
        "Failed to initialize NVML: Driver/library version mismatch",
        r"driver/library version mismatch",
        "NVIDIA/ubuntu-packaging-nvidia-driver#3",
        ("driver.match", "driver.held", "driver.packages", "driver.processes"),
        "A driver update replaced the libraries while the old kernel module is still loaded.",
        "drain the node and reboot it, or reload the modules; to prevent it: driver: {policy: hold} in the spec, then "
        "gpuready apply",
    ),
    Message(
        "NVRM: API mismatch: the client has the version X, but this kernel module has the version Y",
        r"api mismatch: the client .{0,60}has the version",
        "NVIDIA/nvidia-docker#182",
        ("driver.match", "driver.held", "driver.initramfs", "driver.processes"),
        "A program uses driver libraries of another version than the loaded kernel module, usually after an update.",
        "drain the node and reboot it; if it comes back after the reboot, rebuild the initramfs and look for a second "
        "driver (gpuready verify: driver.initramfs, driver.owner)",
    ),
    Message(
        "Failed to initialize NVML: Driver Not Loaded",
        r"(?:failed to initialize nvml|nvml error): driver not loaded",
        "NVIDIA/nvidia-container-toolkit#1269",
        ("driver.loaded", "driver.nouveau", "driver.secureboot"),
        "The kernel module nvidia is not loaded on the host.",
        "run modprobe nvidia on the host and read the reason in dmesg; gpuready verify also names it: no module for "
        "this kernel, Secure Boot, or nouveau",
    ),
    Message(
        "No devices were found (nvidia-smi)",
        r"\bno devices were found",
        "docs.nvidia.com/deploy/nvidia-smi (return value)",
        ("gpu.count", "driver.loaded", "driver.nouveau", "gpu.answers", "driver.firmware"),
        "The driver is loaded, but uses no GPU: nouveau or vfio-pci holds it, it did not start (RmInitAdapter in "
        "dmesg), it fell off the bus, or this driver does not support it.",
        "dmesg | grep NVRM names the reason; lspci -k -d 10de: shows which driver holds the GPU",
    ),
    Message(
        "Unable to determine the device handle for GPU: Unknown Error",
        r"unable to determine the device handle for gpu ?[0-9a-f:.]{0,20}: unknown error",
        "NVIDIA/nvidia-container-toolkit#69",
        ("gpu.answers", "gpu.xid", "driver.charlinks"),
        "The driver lists a GPU that does not answer. If this happens only in a container: the container may not use "
        "that device.",
        "look for an Xid in dmesg; drain the node and reboot it; if it happens only in a container, recreate the "
        "container",
    ),
    Message(
        "GPU has fallen off the bus",
        r"fallen off (?:of )?the bus",
        "NVIDIA/open-gpu-kernel-modules#507",
        ("gpu.xid", "gpu.count", "gpu.answers"),
        "The GPU no longer answers on the PCI bus (Xid 79). Usual causes: power, heat, the slot or riser, or a defect.",
        "drain the node and power-cycle it; if it happens again, have the GPU, its power and its slot inspected",
        code="xid 79",
        also=(r"gpu is lost",),
    ),
    Message(
        "NVRM: RmInitAdapter failed!",
        r"rm_?init_?adapter failed",
        "ublue-os/bazzite#2668",
        ("gpu.answers", "driver.firmware", "driver.match"),
        "The driver cannot start a GPU: firmware of another version, a GPU that hangs, or a driver that does not fit it.",
        "read the NVRM lines before it; install the firmware of the driver's version; reboot, or power-cycle the node",
        also=(r"cannot initialize gsp firmware rm", r"failed to wait for gfw_boot"),
    ),
    Message(
        "NVRM: No NVIDIA graphics adapter found!",
        r"nvrm: no nvidia (?:graphics adapter|gpu) found",
        "ValveSoftware/SteamOS#209",
        ("gpu.count", "driver.loaded"),
        "The nvidia module found no GPU that it can drive: the machine has none, a virtual machine was not given one, the "
        "GPU fell off the bus, or this driver no longer supports it (the NVRM lines before it say so).",
        "lspci -d 10de: lists the GPUs; if one is missing, check the instance type or the passthrough, or power-cycle "
        "the node; if it is listed, install a driver that supports it",
    ),
    Message(
        "nvidia: Direct firmware load for nvidia/X/gsp_ga10x.bin failed with error -2",
        r"direct firmware load for nvidia/\S{1,40} failed",
        "ublue-os/bazzite#2668",
        ("driver.firmware", "driver.match"),
        "/lib/firmware/nvidia has no GPU firmware of exactly the loaded module's version: the module is older than "
        "the last update, or the firmware package is missing.",
        "install the firmware package of the driver's version, then reboot",
    ),
    Message(
        "NVRM: No NVIDIA graphics adapter probed!",
        r"nvrm: (?:the nvidia probe routine was not called for|no nvidia graphics adapter probed)",
        "mattshma/bigdata#133",
        ("driver.nouveau", "driver.loaded"),
        "Another kernel driver holds the GPU: nouveau, nova_core (NovaCore) of new kernels, nvidiafb or vfio-pci.",
        "blacklist that driver (nouveau, nova_core) in /etc/modprobe.d, rebuild the initramfs and reboot; lspci -k -d "
        "10de: shows who holds the GPU",
        also=(r"nvrm: gpu [0-9a-f:.]{7,16} is already bound to",),
    ),
    Message(
        "NVRM: The NVIDIA GPU installed in this system is not supported by this driver release",
        r"installed in this system is not supported by",
        "NVIDIA/nvtrust#55",
        ("driver.loaded", "gpu.count"),
        "The installed driver does not support this GPU: too old for a new GPU, too new for an old one, or the open "
        "kernel modules on a GPU before Turing.",
        "install a driver branch that supports the GPU; Blackwell needs the open modules, Maxwell to Volta need the "
        "proprietary ones, 580 or older",
    ),
    Message(
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/X",
        r"module nvidia(?:[-_][a-z0-9]{1,12})? not found in directory /lib/modules",
        "compiler-explorer/infra#1413",
        ("driver.loaded", "driver.nextboot"),
        "No nvidia module was built or installed for the running kernel, often after a kernel update.",
        "install the kernel's headers and run dkms autoinstall -k $(uname -r), or install its linux-modules-nvidia "
        "package; gpuready verify warns before the reboot (driver.nextboot)",
    ),
    Message(
        "modprobe: ERROR: could not insert 'nvidia': No such device",
        r"(?:could not insert|error inserting) '?nvidia[a-z_-]{0,12}'?(?: \([^)]{1,120}\))?: no such device",
        "MrMEEE/bumblebee-Old-and-abbandoned#553",
        ("gpu.count", "driver.nouveau"),
        "The module finds no GPU that it can drive: none on the PCI bus, one that nouveau holds, or one that this "
        "driver does not support.",
        "lspci -k -d 10de: shows the GPU and who holds it; dmesg | grep NVRM names the reason",
    ),
    Message(
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        r"could not insert '?nvidia[a-z_-]{0,12}'?: (?:key was rejected by service|required key not available|operation not permitted)",
        "NVIDIA/gpu-driver-container#44",
        ("driver.secureboot", "driver.loaded"),
        "Secure Boot is on, and this machine does not accept the module's signature.",
        "install signed modules (Ubuntu: linux-modules-nvidia-*); or enrol DKMS's key with mokutil --import, and confirm "
        "it on the console at the next boot; or switch Secure Boot off",
        also=(r"loading of (?:unsigned )?module with unavailable key is rejected",),
    ),
    Message(
        "ERROR: Unable to load the kernel module 'nvidia.ko'",
        r"unable to load the kernel module '?nvidia",
        "NVIDIA/gpu-driver-container#44",
        ("driver.secureboot", "driver.nouveau", "driver.owner"),
        "The .run installer built the module, but the kernel does not load it: Secure Boot, nouveau, or kernel "
        "headers of another version than the running kernel.",
        "read the end of /var/log/nvidia-installer.log; prefer the distribution's packages, which contain signed "
        "modules",
    ),
    Message(
        "ERROR: The Nouveau kernel driver is currently in use by your system",
        r"nouveau kernel driver is currently in use",
        "docs.nvidia.com/datacenter/tesla/driver-installation-guide (nouveau)",
        ("driver.nouveau",),
        "nouveau holds the GPU, so NVIDIA's installer stops.",
        "echo 'blacklist nouveau' >/etc/modprobe.d/blacklist-nouveau.conf, rebuild the initramfs, reboot",
    ),
    Message(
        "Error! Bad return status for module build on kernel (nvidia, DKMS)",
        r"bad return status for module build on kernel.{0,200}nvidia",
        "NVIDIA/open-gpu-kernel-modules#635",
        ("driver.nextboot", "driver.loaded"),
        "DKMS could not build the nvidia module, so that kernel boots without a driver. The kernel is too new for the "
        "driver, its headers are missing, or the compiler is a different one.",
        "read /var/lib/dkms/nvidia/VERSION/build/make.log; install the headers of that kernel, or a newer driver, or "
        "boot the old kernel",
        also=(r"dkms autoinstall on \S{3,80} failed for .{0,60}nvidia",),
    ),
    Message(
        "Error! Your kernel headers for kernel X cannot be found",
        r"your kernel headers for kernel \S{1,80} cannot be found",
        "M-Bab/linux-kernel-amdgpu-binaries#18",
        ("driver.nextboot", "driver.loaded"),
        "The headers of that kernel are not installed, so its nvidia module cannot be built. After a boot of that "
        "kernel there is no driver.",
        "install linux-headers of exactly that kernel (RHEL: kernel-devel), then dkms autoinstall -k KERNEL, or run "
        "the driver's installer again",
        also=(
            r"unable to find the kernel source tree for the currently running kernel",
            r"/lib/modules/\S{1,80}/build:? (?:is not a directory|no such file or directory)",
        ),
    ),
    Message(
        "could not insert 'nvidia_peermem': Invalid argument",
        r"could not insert '?(?:nvidia[_-]peermem|nv_peer_mem)'?: (?:invalid argument|unknown symbol)",
        "Mellanox/nv_peer_memory#116",
        ("rdma.gdr",),
        "This module for GPUDirect RDMA needs NVIDIA's network driver (MLNX_OFED, DOCA-OFED). It is missing, or the "
        "module was built for another version of it. The kernel's own ib_core is not enough.",
        "use the open kernel modules of the GPU driver, whose dma-buf needs no such module; or install DOCA-OFED first, "
        "then the GPU driver again",
        also=(r"(?:unknown symbol|version of symbol) ib_(?:un)?register_peer_memory_client",),
    ),
    Message(
        "fabric manager NVIDIA GPU driver interface version X don't match with driver version Y",
        r"fabric manager .{0,40}interface version .{0,40}(?:don't|doesn't) match",
        "NVIDIA/gpu-operator#544",
        ("driver.fabricmanager", "gpu.fabric"),
        "The fabric manager must have exactly the driver's version. It stops, and CUDA returns error 802.",
        "install the fabric manager of the driver's full version, then systemctl restart nvidia-fabricmanager; hold "
        "both together",
    ),
    Message(
        "request to query NVSwitch device information from NVSwitch driver failed",
        r"request to query nvswitch device information .{0,40}failed",
        "NVIDIA/gpu-operator#610",
        ("gpu.nvswitch", "driver.fabricmanager"),
        "The fabric manager finds no NVSwitch. A machine without NVSwitch (PCIe cards, NVLink bridges) needs no "
        "fabric manager; on one with NVSwitch the driver did not start the switches.",
        "without NVSwitch: systemctl disable --now nvidia-fabricmanager; with NVSwitch: lspci -d 10de: must show the "
        "bridges, and dmesg says why they do not start",
    ),
    Message(
        "nvidia-nvswitch: SXid (fatal NVSwitch error)",
        r"nvswitch[0-9]{0,2}: sxid",
        "docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide (SXid)",
        ("gpu.sxid", "gpu.fabric", "driver.fabricmanager"),
        "An NVSwitch reported an error. After a fatal one the fabric carries no traffic until it is reset.",
        "drain the node, reset all GPUs or reboot, then restart nvidia-fabricmanager; if it returns, have the baseboard "
        "inspected",
    ),
    Message(
        "nvidia-persistenced: Failed to query NVIDIA devices",
        r"failed to query nvidia devices",
        "docs.nvidia.com/deploy/driver-persistence",
        ("driver.persistenced", "driver.match", "driver.nodes"),
        "nvidia-persistenced cannot talk to the driver: the device nodes or the module are missing, or the module "
        "has another version.",
        "gpuready apply creates the device nodes and restarts nvidia-persistenced; after an update reboot first",
    ),
    Message(
        "infoROM is corrupted at gpu",
        r"inforom is corrupted",
        "docs.nvidia.com/deploy/nvidia-smi (InfoROM)",
        ("gpu.answers",),
        "The GPU's own configuration memory is damaged.",
        "drain the node and reboot it; if the message remains, have the GPU replaced",
    ),
    Message(
        "GPU requires reset",
        r"gpu requires reset",
        "docs.nvidia.com/deploy/nvidia-smi (GPU reset)",
        ("gpu.answers", "gpu.recovery", "gpu.remap"),
        "After an error the driver will not use this GPU until it is reset.",
        "drain the node and reset the GPU (nvidia-smi -r -i BUS; with NVSwitch all GPUs), or reboot",
    ),
    Message(
        "Remapping Failure Occurred : Yes (nvidia-smi)",
        r"remapping failure occurred ?: yes",
        _MEMORY,
        ("gpu.remap", "gpu.ecc", "gpu.xid"),
        "The GPU could not replace a bad row of its memory, because no spare row is left. Programs that use that row fail.",
        "drain the node and have the GPU replaced; NVIDIA asks for its field diagnostic first",
        also=(r"\brow[- ]remapping fail(?:ure|ed)\b",),
    ),
    Message(
        "Remapped Rows ... Pending : Yes (nvidia-smi)",
        r"remapped rows.{0,120}\bpending ?: yes",
        "leptonai/gpud#80",
        ("gpu.remap", "gpu.ecc", "gpu.xid"),
        "GPU memory has a bad row, which a spare row replaces at the next reset. Until then, other programs run correctly.",
        "drain the node and reset the GPU (nvidia-smi -r -i BUS; with NVSwitch all GPUs), or reboot",
        also=(r"\brow[- ]remapping pending\b", r"^pending ?: yes$"),
    ),
    Message(
        "ERR! / 250W in the table of nvidia-smi",
        r"(?<!npm )\berr! / (?:[0-9]{1,5}w|n/a|err!)",
        "Azure/azhpc-diagnostics#77",
        ("gpu.answers", "gpu.recovery", "gpu.xid"),
        "nvidia-smi could not read this value. If only one is ERR!, such as the power or the fan, it may be gone a moment "
        "later; if most are, the GPU hangs or fell off the bus.",
        "run nvidia-smi again, and look for an Xid in dmesg; nvidia-smi -q may show a GPU Recovery Action; if ERR! remains, "
        "drain the node and reboot it, then have the GPU inspected",
        also=(
            r"(?<!npm )\berr! (?:[0-9]{1,3}c|n/a|err!) ",
            r"^\W{0,3}err!\W{0,3}$",
        ),
    ),
    Message(
        "HW Slowdown : Active / HW Power Brake Slowdown : Active (nvidia-smi)",
        r"\b(?:hw|thermal|brake) slowdown ?: active",
        "l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling (README)",
        ("gpu.throttle", "gpu.temperature", "gpu.uniform"),
        "The GPU lowers its clocks, by half or more for HW Slowdown: it is too hot (Thermal Slowdown), or the server's power "
        "supply or BMC asked for it (Power Brake Slowdown).",
        "Thermal: check fans, air flow, coolant; Power Brake: check power supplies, cables and the BMC's power limit, and "
        "whether the server supports this GPU",
    ),
    Message(
        "pcieport: AER: Uncorrectable (Fatal) error message received from 0000:03:00.0",
        r"aer: (?:multiple )?uncorrect(?:able|ed) \(fatal\) error",
        "wilicc/gpu-burn#1",
        ("gpu.pcie", "gpu.count", "gpu.xid"),
        "A PCIe link failed, and the device behind it is lost. nvidia's driver cannot recover from such an error, so a GPU "
        "there falls off the bus.",
        "lspci -s ADDRESS names the device; drain the node and power-cycle it; if it happens again, reseat the card and "
        "have its riser, slot and power inspected",
        also=(r"\bnvidia [0-9a-f:.]{7,16}: (?:aer: can't recover|device has no aer-aware driver)",),
    ),
    Message(
        "NVRM: RC watchdog: GPU is probably locked!",
        r"rc watchdog: gpu is probably locked",
        "ggml-org/llama.cpp#27102",
        ("gpu.xid", "gpu.answers", "driver.firmware"),
        "The GPU did not finish the driver's own test in time: a program keeps it busy without a pause, or the GPU hangs. "
        "The Xid after this line says what the driver did.",
        "pass the Xid lines after it to gpuready explain; end the program that they name; if nvidia-smi hangs, drain the "
        "node and reset the GPU, or reboot",
    ),
    Message(
        "Persistence mode for GPU 0 is disabled (DCGM)",
        r"persistence mode (?:for gpu [0-9]{1,3} )?is (?:disabled|not enabled)",
        "NVIDIA/NVSentinel#772",
        ("gpu.persistence", "driver.persistenced"),
        "Only a warning: without persistence mode, the driver releases a GPU that no program uses, and the next program "
        "starts seconds later.",
        "systemctl enable --now nvidia-persistenced; for now: nvidia-smi -pm 1",
        also=(r"persistence mode not set for gpu",),
    ),
    Message(
        "fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value",
        r"fabric manager config file item: \S{1,40} has an invalid value",
        "siderolabs/extensions#511",
        ("driver.fabricmanager", "gpu.fabric"),
        "fabricmanager.cfg, or a default of the fabric manager, names a file or directory that is not there or cannot be "
        "written. The fabric manager stops, and CUDA returns error 802.",
        "install the fabric manager's package again, with its own /usr/share/nvidia/nvswitch; if its files are elsewhere, "
        "name them in fabricmanager.cfg (TOPOLOGY_FILE_PATH, DATABASE_PATH, LOG_FILE_NAME)",
        also=(r"\bfabric_node_config_file\b", r"failed to open fabric topology file"),
    ),
    Message(
        "request_free_mem_region() err -34 (nvidia_uvm, HMM)",
        r"request_free_mem_region\(\)? ?(?:failed|err)",
        "NVIDIA/open-gpu-kernel-modules#901",
        ("libcuda.init",),
        "The module nvidia_uvm finds no free range of addresses for HMM, and CUDA answers 999 (unknown error).",
        "boot with nokaslr, or set options nvidia_uvm uvm_disable_hmm=1 in /etc/modprobe.d and reload the module",
    ),
    Message(
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system",
        r"nvidia-smi couldn't find libnvidia-ml\.so library",
        "docs.nvidia.com/deploy/nvidia-smi (libnvidia-ml)",
        ("libcuda.ldcache", "driver.packages"),
        "nvidia-smi is there, but the driver's libraries are missing, or are where the loader does not look.",
        "install the driver's libraries of the same version; gpuready apply (ldso) adds their directory to the linker "
        "cache",
    ),
    Message(
        "nvidia-smi: command not found",
        r"nvidia-smi: (?:command )?not found",
        "docs.nvidia.com/datacenter/tesla/driver-installation-guide",
        ("driver.loaded", "driver.packages", "gpu.count"),
        "No driver is installed here, or its tools are in a separate package that is not installed. In a container: "
        "it was started without the NVIDIA runtime.",
        "on the host install the driver and its tools (nvidia-utils, nvidia-smi); in a container use --runtime=nvidia "
        "or --gpus all",
    ),
    Message(
        "Could not load UVM kernel module. Is nvidia-modprobe installed?",
        r"could not load uvm kernel module",
        "NVIDIA/nvidia-docker#481",
        ("driver.loaded", "driver.nodes", "driver.packages"),
        "The module nvidia_uvm could not be loaded: the driver has no modules for the running kernel, or nvidia-modprobe "
        "is missing.",
        "modprobe nvidia_uvm shows the reason; install the driver for this kernel, then gpuready apply (devices) makes "
        "the device nodes",
    ),
    Message(
        "nvidia-smi: Field is not a valid field to query",
        r"is not a valid field to query",
        "docs.nvidia.com/deploy/nvidia-smi (query options)",
        (),
        "This nvidia-smi does not know one of the queried fields, and therefore prints none of them.",
        "nvidia-smi --help-query-gpu lists its fields; clocks_throttle_reasons is now clocks_event_reasons",
    ),
)
