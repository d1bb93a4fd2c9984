# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of the NVIDIA driver, nvidia-smi, the kernel, DKMS, Secure Boot and the services beside the driver."""

from gpuready.messages.entry import read

MESSAGES = read(r"""
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver
  pattern nvidia-smi has failed because it could
  source  NVIDIA/nvidia-docker#988
  checks  driver.loaded driver.nouveau driver.secureboot driver.nextboot
  cause   The kernel module nvidia is not loaded: not built for this kernel, refused by Secure Boot, or nouveau holds
          the GPU.
  fix     run modprobe nvidia and read dmesg; dkms status shows whether the module was built for uname -r; gpuready
          verify names the reason
Failed to initialize NVML: Driver/library version mismatch
  pattern driver/library version mismatch
  code    nvml 18
  source  NVIDIA/ubuntu-packaging-nvidia-driver#3
  checks  driver.match driver.held driver.packages driver.processes
  cause   A driver update replaced the libraries while the old kernel module is still loaded.
  fix     drain the node and reboot it, or reload the modules; to prevent it: driver: {policy: hold} in the spec, then
          gpuready apply
NVRM: API mismatch: the client has the version X, but this kernel module has the version Y
  pattern api mismatch: the client .{0,60}has the version
  source  NVIDIA/nvidia-docker#182
  checks  driver.match driver.held driver.initramfs driver.processes
  cause   A program uses driver libraries of another version than the loaded kernel module, usually after an update.
  fix     drain the node and reboot it; if it comes back after the reboot, rebuild the initramfs and look for a second
          driver (gpuready verify: driver.initramfs, driver.owner)
Failed to initialize NVML: Driver Not Loaded
  pattern (?:failed to initialize nvml|nvml error): driver not loaded
  code    nvml 9
  source  NVIDIA/nvidia-container-toolkit#1269
  checks  driver.loaded driver.nouveau driver.secureboot
  cause   The kernel module nvidia is not loaded on the host.
  fix     run modprobe nvidia on the host and read the reason in dmesg; gpuready verify also names it: no module for
          this kernel, Secure Boot, or nouveau
No devices were found (nvidia-smi)
  pattern \bno devices were found
  source  docs.nvidia.com/deploy/nvidia-smi (return value)
  checks  gpu.count driver.loaded driver.nouveau gpu.answers driver.firmware
  cause   The driver is loaded, but uses no GPU: nouveau or vfio-pci holds it, it did not start (RmInitAdapter in
          dmesg), it fell off the bus, or this driver does not support it.
  fix     dmesg | grep NVRM names the reason; lspci -k -d 10de: shows which driver holds the GPU
Unable to determine the device handle for GPU: Unknown Error
  pattern unable to determine the device handle for gpu ?[0-9a-f:. ]{0,24}: ?(?:unknown error|not found)
  source  NVIDIA/nvidia-container-toolkit#69
  checks  gpu.answers gpu.xid driver.charlinks
  cause   The driver lists a GPU that does not answer. If this happens only in a container: the container may not use
          that device.
  fix     look for an Xid in dmesg; drain the node and reboot it; if it happens only in a container, recreate the
          container
GPU has fallen off the bus
  pattern fallen off (?:of )?the bus
  also    gpu is lost
  code    xid 79, nvml 15
  source  NVIDIA/open-gpu-kernel-modules#507
  checks  gpu.xid gpu.count gpu.answers
  cause   The GPU no longer answers on the PCI bus (Xid 79). Usual causes: power, heat, the slot or riser, or a defect.
  fix     drain the node and power-cycle it; if it happens again, have the GPU, its power and its slot inspected
NVRM: RmInitAdapter failed!
  pattern rm_?init_?adapter failed
  also    cannot initialize gsp firmware rm
  also    failed to wait for gfw_boot
  source  ublue-os/bazzite#2668
  checks  gpu.answers driver.firmware driver.match
  cause   The driver cannot start a GPU: firmware of another version, a GPU that hangs, or a driver that does not fit
          it.
  fix     read the NVRM lines before it; install the firmware of the driver's version; reboot, or power-cycle the node
NVRM: No NVIDIA graphics adapter found!
  pattern nvrm: no nvidia (?:graphics adapter|gpu) found
  source  ValveSoftware/SteamOS#209
  checks  gpu.count driver.loaded
  cause   The nvidia module found no GPU that it can drive: the machine has none, a virtual machine was not given one,
          the GPU fell off the bus, or this driver no longer supports it (the NVRM lines before it say so).
  fix     lspci -d 10de: lists the GPUs; if one is missing, check the instance type or the passthrough, or power-cycle
          the node; if it is listed, install a driver that supports it
nvidia: Direct firmware load for nvidia/X/gsp_ga10x.bin failed with error -2
  pattern direct firmware load for nvidia/\S{1,40} failed
  source  ublue-os/bazzite#2668
  checks  driver.firmware driver.match
  cause   /lib/firmware/nvidia has no GPU firmware of exactly the loaded module's version: the module is older than the
          last update, or the firmware package is missing.
  fix     install the firmware package of the driver's version, then reboot
NVRM: No NVIDIA graphics adapter probed!
  pattern nvrm: (?:the nvidia probe routine was not called for|no nvidia graphics adapter probed)
  also    nvrm: gpu [0-9a-f:.]{7,16} is already bound to (?!vfio)
  source  mattshma/bigdata#133
  checks  driver.nouveau driver.loaded
  cause   Another kernel driver holds the GPU: nouveau, nova_core (NovaCore) of new kernels, nvidiafb or vfio-pci.
  fix     blacklist that driver (nouveau, nova_core) in /etc/modprobe.d, rebuild the initramfs and reboot; lspci -k -d
          10de: shows who holds the GPU
NVRM: GPU 0000:01:00.0 is already bound to vfio-pci
  pattern nvrm: gpu [0-9a-f:.]{7,16} is already bound to vfio
  source  jurkovic-nikola/OpenLinkHub#174
  checks  gpu.count
  cause   vfio-pci holds this GPU for a virtual machine, so the NVIDIA driver of the host leaves it alone. That is wanted
          on a host that passes its GPUs through.
  fix     nothing, if the GPU belongs to a virtual machine; else remove its id from vfio-pci's options in /etc/modprobe.d
          and on the kernel's command line, rebuild the initramfs and reboot
NVRM: unexpected WPR2 already up, cannot proceed with booting GSP
  pattern unexpected wpr2 already up
  source  NVIDIA/open-gpu-kernel-modules#876
  checks  driver.loaded gpu.xid
  cause   The GPU's firmware (GSP) is still in the state of an earlier attempt that failed. The first failure, further up
          in the log, is the cause.
  fix     power the machine off and on (a warm reboot is not enough), then look at the first error of NVRM in dmesg
nvidia/nv.c: error: implicit declaration of function 'del_timer_sync' (DKMS, akmods)
  pattern nvidia.{0,200}implicit declaration of function
  also    implicit declaration of function .{0,80}(?:del_timer_sync|vma_start_write|drm_|dma_)
  also    akmods(?:build)?: .{0,60}(?:failed|error)
  also    is needed by (?:akmod-nvidia|nvidia-kmod)
  source  NVIDIA/open-gpu-kernel-modules#1112
  checks  driver.nextboot driver.packages
  cause   The driver's module does not build for this kernel: the driver is older than the kernel, or the compiler or the
          kernel's headers are missing.
  fix     install a driver that supports this kernel, or boot the kernel before; install gcc, make and the headers of
          exactly this kernel, then dkms autoinstall or akmods --force
NVRM: The NVIDIA GPU installed in this system is not supported by this driver release
  pattern installed in this system is not supported by
  source  NVIDIA/nvtrust#55
  checks  driver.loaded gpu.count
  cause   The installed driver does not support this GPU: too old for a new GPU, too new for an old one, or the open
          kernel modules on a GPU before Turing.
  fix     install a driver branch that supports the GPU; Blackwell needs the open modules, Maxwell to Volta need the
          proprietary ones, 580 or older
modprobe: FATAL: Module nvidia not found in directory /lib/modules/X
  pattern module nvidia(?:[-_][a-z0-9]{1,12})? not found in directory /lib/modules
  source  compiler-explorer/infra#1413
  checks  driver.loaded driver.nextboot
  cause   No nvidia module was built or installed for the running kernel, often after a kernel update.
  fix     install the kernel's headers and run dkms autoinstall -k $(uname -r), or install its linux-modules-nvidia
          package; gpuready verify warns before the reboot (driver.nextboot)
modprobe: ERROR: could not insert 'nvidia': No such device
  pattern (?:could not insert|error inserting) '?nvidia[a-z_-]{0,12}'?(?: \([^)]{1,120}\))?: no such device
  source  MrMEEE/bumblebee-Old-and-abbandoned#553
  checks  gpu.count driver.nouveau
  cause   The module finds no GPU that it can drive: none on the PCI bus, one that nouveau holds, or one that this
          driver does not support.
  fix     lspci -k -d 10de: shows the GPU and who holds it; dmesg | grep NVRM names the reason
modprobe: ERROR: could not insert 'nvidia': Key was rejected by service
  pattern could not insert '?nvidia[a-z_-]{0,12}'?: (?:key was rejected by service|required key not available|operation not permitted)
  also    loading of (?:unsigned )?module with unavailable key is rejected
  source  NVIDIA/gpu-driver-container#44
  checks  driver.secureboot driver.loaded
  cause   Secure Boot is on, and this machine does not accept the module's signature.
  fix     install signed modules (Ubuntu: linux-modules-nvidia-*); or enrol DKMS's key with mokutil --import, and
          confirm it on the console at the next boot; or switch Secure Boot off
ERROR: Unable to load the kernel module 'nvidia.ko'
  pattern unable to load the kernel module '?nvidia
  source  NVIDIA/gpu-driver-container#44
  checks  driver.secureboot driver.nouveau driver.owner
  cause   The .run installer built the module, but the kernel does not load it: Secure Boot, nouveau, or kernel headers
          of another version than the running kernel.
  fix     read the end of /var/log/nvidia-installer.log; prefer the distribution's packages, which contain signed
          modules
ERROR: The Nouveau kernel driver is currently in use by your system
  pattern nouveau kernel driver is currently in use
  source  docs.nvidia.com/datacenter/tesla/driver-installation-guide (nouveau)
  checks  driver.nouveau
  cause   nouveau holds the GPU, so NVIDIA's installer stops.
  fix     echo 'blacklist nouveau' >/etc/modprobe.d/blacklist-nouveau.conf, rebuild the initramfs, reboot
Error! Bad return status for module build on kernel (nvidia, DKMS)
  pattern bad return status for module build on kernel.{0,200}nvidia
  also    dkms autoinstall on \S{3,80} failed for .{0,60}nvidia
  source  NVIDIA/open-gpu-kernel-modules#635
  checks  driver.nextboot driver.loaded
  cause   DKMS could not build the nvidia module, so that kernel boots without a driver. The kernel is too new for the
          driver, its headers are missing, or the compiler is a different one.
  fix     read /var/lib/dkms/nvidia/VERSION/build/make.log; install the headers of that kernel, or a newer driver, or
          boot the old kernel
Error! Your kernel headers for kernel X cannot be found
  pattern your kernel headers for kernel \S{1,80} cannot be found
  also    unable to find the kernel source tree for the currently running kernel
  also    /lib/modules/\S{1,80}/build:? (?:is not a directory|no such file or directory)
  source  M-Bab/linux-kernel-amdgpu-binaries#18
  checks  driver.nextboot driver.loaded
  cause   The headers of that kernel are not installed, so its nvidia module cannot be built. After a boot of that
          kernel there is no driver.
  fix     install linux-headers of exactly that kernel (RHEL: kernel-devel), then dkms autoinstall -k KERNEL, or run the
          driver's installer again
could not insert 'nvidia_peermem': Invalid argument
  pattern could not insert '?(?:nvidia[_-]peermem|nv_peer_mem)'?: (?:invalid argument|unknown symbol)
  also    (?:unknown symbol|version of symbol) ib_(?:un)?register_peer_memory_client
  source  Mellanox/nv_peer_memory#116
  checks  rdma.gdr
  cause   This module for GPUDirect RDMA needs NVIDIA's network driver (MLNX_OFED, DOCA-OFED). It is missing, or the
          module was built for another version of it. The kernel's own ib_core is not enough.
  fix     use the open kernel modules of the GPU driver, whose dma-buf needs no such module; or install DOCA-OFED first,
          then the GPU driver again
fabric manager NVIDIA GPU driver interface version X don't match with driver version Y
  pattern fabric manager .{0,40}interface version .{0,40}(?:don't|doesn't) match
  source  NVIDIA/gpu-operator#544
  checks  driver.fabricmanager gpu.fabric
  cause   The fabric manager must have exactly the driver's version. It stops, and CUDA returns error 802.
  fix     install the fabric manager of the driver's full version, then systemctl restart nvidia-fabricmanager; hold
          both together
request to query NVSwitch device information from NVSwitch driver failed
  pattern request to query nvswitch device information .{0,40}failed
  source  NVIDIA/gpu-operator#610
  checks  gpu.nvswitch driver.fabricmanager
  cause   The fabric manager finds no NVSwitch. A machine without NVSwitch (PCIe cards, NVLink bridges) needs no fabric
          manager; on one with NVSwitch the driver did not start the switches.
  fix     without NVSwitch: systemctl disable --now nvidia-fabricmanager; with NVSwitch: lspci -d 10de: must show the
          bridges, and dmesg says why they do not start
nvidia-nvswitch: SXid (fatal NVSwitch error)
  pattern nvswitch[0-9]{0,2}: sxid
  source  docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide (SXid)
  checks  gpu.sxid gpu.fabric driver.fabricmanager
  cause   An NVSwitch reported an error. After a fatal one the fabric carries no traffic until it is reset.
  fix     drain the node, reset all GPUs or reboot, then restart nvidia-fabricmanager; if it returns, have the baseboard
          inspected
nvidia-persistenced: Failed to query NVIDIA devices
  pattern failed to query nvidia devices
  source  docs.nvidia.com/deploy/driver-persistence
  checks  driver.persistenced driver.match driver.nodes
  cause   nvidia-persistenced cannot talk to the driver: the device nodes or the module are missing, or the module has
          another version.
  fix     gpuready apply creates the device nodes and restarts nvidia-persistenced; after an update reboot first
infoROM is corrupted at gpu
  pattern inforom is corrupted
  code    nvml 14
  source  docs.nvidia.com/deploy/nvidia-smi (InfoROM)
  checks  gpu.answers
  cause   The GPU's own configuration memory is damaged.
  fix     drain the node and reboot it; if the message remains, have the GPU replaced
GPU requires reset
  pattern gpu requires reset
  code    nvml 16
  source  docs.nvidia.com/deploy/nvidia-smi (GPU reset)
  checks  gpu.answers gpu.recovery gpu.remap
  cause   After an error the driver will not use this GPU until it is reset.
  fix     drain the node and reset the GPU (nvidia-smi -r -i BUS; with NVSwitch all GPUs), or reboot
Remapping Failure Occurred : Yes (nvidia-smi)
  pattern remapping failure occurred ?: yes
  also    \brow[- ]remapping fail(?:ure|ed)\b
  source  docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt
  checks  gpu.remap gpu.ecc gpu.xid
  cause   The GPU could not replace a bad row of its memory, because no spare row is left. Programs that use that row
          fail.
  fix     drain the node and have the GPU replaced; NVIDIA asks for its field diagnostic first
Remapped Rows ... Pending : Yes (nvidia-smi)
  pattern remapped rows.{0,120}\bpending ?: yes
  also    \brow[- ]remapping pending\b
  also    ^pending ?: yes$
  source  leptonai/gpud#80
  checks  gpu.remap gpu.ecc gpu.xid
  cause   GPU memory has a bad row, which a spare row replaces at the next reset. Until then, other programs run
          correctly.
  fix     drain the node and reset the GPU (nvidia-smi -r -i BUS; with NVSwitch all GPUs), or reboot
ERR! / 250W in the table of nvidia-smi
  pattern (?<!npm )\berr! / (?:[0-9]{1,5}w|n/a|err!)
  also    (?<!npm )\berr! (?:[0-9]{1,3}c|n/a|err!)[ ]
  also    ^\W{0,3}err!\W{0,3}$
  source  Azure/azhpc-diagnostics#77
  checks  gpu.answers gpu.recovery gpu.xid
  cause   nvidia-smi could not read this value. If only one is ERR!, such as the power or the fan, it may be gone a
          moment later; if most are, the GPU hangs or fell off the bus.
  fix     run nvidia-smi again, and look for an Xid in dmesg; nvidia-smi -q may show a GPU Recovery Action; if ERR!
          remains, drain the node and reboot it, then have the GPU inspected
HW Slowdown : Active / HW Power Brake Slowdown : Active (nvidia-smi)
  pattern \b(?:hw|thermal|brake) slowdown ?: active
  source  l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling (README)
  checks  gpu.throttle gpu.temperature gpu.uniform
  cause   The GPU lowers its clocks, by half or more for HW Slowdown: it is too hot (Thermal Slowdown), or the server's
          power supply or BMC asked for it (Power Brake Slowdown).
  fix     Thermal: check fans, air flow, coolant; Power Brake: check power supplies, cables and the BMC's power limit,
          and whether the server supports this GPU
pcieport: AER: Uncorrectable (Fatal) error message received from 0000:03:00.0
  pattern aer: (?:multiple )?uncorrect(?:able|ed) \(fatal\) error
  also    \bnvidia [0-9a-f:.]{7,16}: (?:aer: can't recover|device has no aer-aware driver)
  source  wilicc/gpu-burn#1
  checks  gpu.pcie gpu.count gpu.xid
  cause   A PCIe link failed, and the device behind it is lost. nvidia's driver cannot recover from such an error, so a
          GPU there falls off the bus.
  fix     lspci -s ADDRESS names the device; drain the node and power-cycle it; if it happens again, reseat the card and
          have its riser, slot and power inspected
NVRM: RC watchdog: GPU is probably locked!
  pattern rc watchdog: gpu is probably locked
  source  ggml-org/llama.cpp#27102
  checks  gpu.xid gpu.answers driver.firmware
  cause   The GPU did not finish the driver's own test in time: a program keeps it busy without a pause, or the GPU
          hangs. The Xid after this line says what the driver did.
  fix     pass the Xid lines after it to gpuready explain; end the program that they name; if nvidia-smi hangs, drain
          the node and reset the GPU, or reboot
Persistence mode for GPU 0 is disabled (DCGM)
  pattern persistence mode (?:for gpu [0-9]{1,3} )?is (?:disabled|not enabled)
  also    persistence mode not set for gpu
  source  NVIDIA/NVSentinel#772
  checks  gpu.persistence driver.persistenced
  cause   Only a warning: without persistence mode, the driver releases a GPU that no program uses, and the next program
          starts seconds later.
  fix     systemctl enable --now nvidia-persistenced; for now: nvidia-smi -pm 1
fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value
  pattern fabric manager config file item: \S{1,40} has an invalid value
  also    \bfabric_node_config_file\b
  also    failed to open fabric topology file
  source  siderolabs/extensions#511
  checks  driver.fabricmanager gpu.fabric
  cause   fabricmanager.cfg, or a default of the fabric manager, names a file or directory that is not there or cannot
          be written. The fabric manager stops, and CUDA returns error 802.
  fix     install the fabric manager's package again, with its own /usr/share/nvidia/nvswitch; if its files are
          elsewhere, name them in fabricmanager.cfg (TOPOLOGY_FILE_PATH, DATABASE_PATH, LOG_FILE_NAME)
request_free_mem_region() err -34 (nvidia_uvm, HMM)
  pattern request_free_mem_region\(\)? ?(?:failed|err)
  source  NVIDIA/open-gpu-kernel-modules#901
  checks  libcuda.init
  cause   The module nvidia_uvm finds no free range of addresses for HMM, and CUDA answers 999 (unknown error).
  fix     boot with nokaslr, or set options nvidia_uvm uvm_disable_hmm=1 in /etc/modprobe.d and reload the module
NVIDIA-SMI couldn't find libnvidia-ml.so library in your system
  pattern nvidia-smi couldn't find libnvidia-ml\.so library
  source  docs.nvidia.com/deploy/nvidia-smi (libnvidia-ml)
  checks  libcuda.ldcache driver.packages
  cause   nvidia-smi is there, but the driver's libraries are missing, or are where the loader does not look.
  fix     install the driver's libraries of the same version; gpuready apply (ldso) adds their directory to the linker
          cache
nvidia-smi: command not found
  pattern nvidia-smi: (?:command )?not found
  source  docs.nvidia.com/datacenter/tesla/driver-installation-guide
  checks  driver.loaded driver.packages gpu.count
  cause   No driver is installed here, or its tools are in a separate package that is not installed. In a container: it
          was started without the NVIDIA runtime.
  fix     on the host install the driver and its tools (nvidia-utils, nvidia-smi); in a container use --runtime=nvidia
          or --gpus all
Could not load UVM kernel module. Is nvidia-modprobe installed?
  pattern could not load uvm kernel module
  source  NVIDIA/nvidia-docker#481
  checks  driver.loaded driver.nodes driver.packages
  cause   The module nvidia_uvm could not be loaded: the driver has no modules for the running kernel, or
          nvidia-modprobe is missing.
  fix     modprobe nvidia_uvm shows the reason; install the driver for this kernel, then gpuready apply (devices) makes
          the device nodes
nvidia-smi: Field is not a valid field to query
  pattern is not a valid field to query
  source  docs.nvidia.com/deploy/nvidia-smi (query options)
  cause   This nvidia-smi does not know one of the queried fields, and therefore prints none of them.
  fix     nvidia-smi --help-query-gpu lists its fields; clocks_throttle_reasons is now clocks_event_reasons
Kernel module "ib_umad" has not been loaded, fabric manager cannot be started
  pattern kernel module "ib_umad" has not been loaded
  also    /sys/class/infiniband_mad/abi_version \(no such file or directory\)
  source  spectrocloud/CanvOS#700
  checks  driver.fabricmanager gpu.fabric
  cause   HGX B200 and B300 control their NVSwitches over InfiniBand management ports. The kernel modules ib_umad and
          mlx5_ib are not loaded, so NVLSM and the fabric manager cannot start, and CUDA fails with error 802.
  fix     modprobe -a mlx5_ib ib_umad and write both names to /etc/modules-load.d/nvidia-fabricmanager.conf (Ubuntu: they
          are in linux-modules-extra); install nvlsm; systemctl restart nvidia-fabricmanager; driver: {policy: install}
          does all of it
Failed to display compute instances: Insufficient Permissions (nvidia-smi mig)
  pattern failed to display (?:compute|gpu) instances?(?: profiles)?: insufficient permissions
  also    unable to (?:enable|disable) mig mode .{0,60}: ?insufficient permissions
  source  Project-HAMi/HAMi#1044
  checks  gpu.mig
  cause   Only root may see and change MIG instances, or MIG is not on for this GPU.
  fix     run it as root on the host; in a container set NVIDIA_MIG_CONFIG_DEVICES=all or
          NVIDIA_MIG_MONITOR_DEVICES=all; nvidia-smi -L shows whether MIG is on
NVRM: installed in this system requires use of the NVIDIA open kernel modules
  pattern requires use of the nvidia open kernel modules
  source  getsolus/packages#5575
  checks  driver.loaded driver.packages gpu.count
  cause   The installed kernel modules are the proprietary ones. Blackwell GPUs, GB10 and newer ones only work with the
          open kernel modules of the same driver.
  fix     install the open flavor of the same version (nvidia-driver-580-open, nvidia-open; the .run installer:
          -m=kernel-open) and reboot; in the spec: driver: {flavor: open}
Could not unload NVIDIA driver kernel modules, driver is in use
  pattern could not unload nvidia driver kernel modules
  source  NVIDIA/gpu-operator#2509
  checks  driver.processes driver.peers driver.persistenced
  cause   The driver container wants to replace the driver, and something still holds it: a pod with a GPU, a DaemonSet
          such as dcgm-exporter, nvidia-persistenced, or a module on top of it (gdrdrv, nvidia_fs, nvidia_peermem).
  fix     lsmod | grep ^nvidia shows the counts, fuser -v /dev/nvidia* the processes; drain the node and end them, or
          reboot it
rmmod: ERROR: Module nvidia is in use by: nvidia_uvm nvidia_modeset
  pattern \bmodule nvidia(?:[-_](?:uvm|drm|modeset|peermem|fs))? is in use
  source  NVIDIA/aerial-cuda-accelerated-ran#31
  checks  driver.processes driver.persistenced driver.peers
  cause   A program or another module uses this module, so the kernel does not unload it: a job, nvidia-persistenced,
          DCGM, a display server (nvidia_drm), GDRCopy (gdrdrv) or GPUDirect Storage (nvidia_fs).
  fix     fuser -v /dev/nvidia* lists the programs; stop nvidia-persistenced, nvidia-fabricmanager, nvidia-dcgm and the
          display manager, unload gdrdrv, nvidia_fs, nvidia_drm, nvidia_modeset and nvidia_uvm first; or reboot
The following GPUs could not be reset: In use by another client
  pattern \bgpu [0-9a-f:.]{7,16}: ?in use by another client
  also    (?:mig|gpu|instance)[^:]{0,120}: ?in use by another client
  source  NVIDIA/mig-parted#181
  checks  gpu.mig driver.persistenced driver.processes
  cause   A program or module still uses the GPU, so it can neither be reset nor change its MIG mode: a job, DCGM or its
          exporter, the fabric manager, a display server, or just the loaded module nvidia_drm.
  fix     fuser -v /dev/nvidia* lists the programs; stop them, rmmod nvidia_drm, and try again; a MIG mode that is
          pending takes effect with a reset or a reboot (in most virtual machines only with a reboot)
Unable to create a GPU instance using profile 9: Insufficient Resources (MIG)
  pattern (?:gpu|compute|mig) (?:instances?|device)[^:]{0,80}: ?insufficient resources
  source  kubernetes-sigs/dra-driver-nvidia-gpu#35
  checks  gpu.mig
  cause   The GPU has no free place for this MIG instance. Other instances take the place, even if no program uses them:
          a place is a range of slices, so small ones in the middle block a large one.
  fix     nvidia-smi mig -lgi lists the instances, -lgipp the possible places; destroy what is not used (-dci, then
          -dgi) and create the large ones first
INFO: task nvidia-smi:1234 blocked for more than 120 seconds
  pattern blocked for more than [0-9]{1,6} seconds.{0,2400}\[nvidia(?:_uvm|_drm|_modeset)?\]
  also    \btask (?:nvidia|nv-|nvc:|dcgm)[^ ]{0,24}:[0-9]{1,9} blocked for more than
  source  NVIDIA/nvidia-persistenced#15
  checks  gpu.answers gpu.xid driver.firmware
  cause   A process waits inside the NVIDIA driver and cannot be ended (state D): a GPU or its firmware does not answer,
          or another process holds the driver's lock.
  fix     look for an Xid just before it in dmesg and pass it to gpuready explain; drain the node and reboot it, by the
          BMC if the reboot hangs, too; then look at the GPU of that Xid
NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out
  pattern gsp rm heartbeat timed out
  also    _kgspisheartbeattimedout: heartbeat timed out
  source  ublue-os/bazzite#4449
  checks  driver.firmware gpu.answers gpu.xid
  cause   The GPU's own firmware (GSP) shows no sign of life. If it has one value from the boot on (heartbeat 0), this
          is a fault of the driver and the GPU may work all the same; else the GPU hangs, and Xid 119 or 120 follows.
  fix     if nvidia-smi answers and no Xid follows, install a newer driver of the branch; if not, drain the node and
          reset the GPU, or power-cycle the node
NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: BAR1 is 0M @ 0x0
  pattern this pci i/o region assigned to your nvidia device is invalid
  also    nvrm: bar[0-5] is 0m @
  source  kubevirt/kubevirt#11093
  checks  gpu.count driver.loaded
  cause   The firmware of the machine, or the hypervisor, gave the GPU no address range for its memory, so the driver
          cannot use it.
  fix     bare metal: switch on Above 4G Decoding and Resizable BAR, update the BIOS, or boot with pci=realloc; in a
          virtual machine enlarge the 64-bit MMIO window (OVMF: opt/ovmf/X-PciMmio64Mb; VMware:
          pciPassthru.use64bitMMIO)
NVRM: nvCheckOkFailedNoLog: Check failed: Call not supported [NV_ERR_NOT_SUPPORTED]
  pattern nvrm: .{0,40}nv(?:assert|check)(?:ok)?failed[a-z]{0,8}: (?:assertion|check) failed
  general
  source  NVIDIA/nvtrust#54
  checks  gpu.xid gpu.answers
  cause   A check inside the driver's resource manager failed. Alone it is mostly harmless, and many drivers print some
          of these at each start; beside an Xid or RmInitAdapter failed, it is a part of that fault.
  fix     look for an Xid, RmInitAdapter or fallen off the bus in dmesg, and pass that line to gpuready explain; without
          one, a newer driver of the branch may no longer print it
fatal error: nv-firmware.h: No such file or directory
  pattern nv-firmware\.h\b
  source  NVIDIA/open-gpu-kernel-modules#840
  checks  driver.nextboot
  cause   The driver is too old for this kernel: from Linux 6.15 on the build ignores EXTRA_CFLAGS, so the headers of the
          module are not found.
  fix     install a driver that supports this kernel, or boot an older kernel; then dkms autoinstall
Building DKMS module: nvidia-570.133.07... FAILED!
  pattern building dkms module:? .{0,2}nvidia[^ ]{0,24} ?.{0,40}failed
  source  void-linux/void-packages#54925
  checks  driver.nextboot
  cause   DKMS could not build the nvidia module, so that kernel boots without a driver. The kernel is too new for the
          driver, or its headers are missing.
  fix     read /var/lib/dkms/nvidia/VERSION/build/make.log; install the headers of that kernel, or a newer driver, or
          boot the old kernel
NVRM: osInitNvMapping: *** Cannot attach gpu
  pattern osinitnvmapping\W{1,8}cannot attach gpu
  source  NVIDIA/open-gpu-kernel-modules#1151
  checks  gpu.xid gpu.answers
  cause   The driver cannot reach a GPU that it knew: nearly always it fell off the PCI bus before (Xid 79).
  fix     dmesg | grep -m1 Xid shows the first fault; power the machine off and on; if it returns, check power, slot,
          riser and BIOS
""")
