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
  cause   The kernel module nvidia is not loaded on the host, or was not ready when this program or container started:
          a service that starts early at boot, a pod that was created during an upgrade of the driver.
  fix     if nvidia-smi works on the host, restart the service or delete the pod. Else run modprobe nvidia on the host
          and read the reason in dmesg; gpuready verify also names it: no module for this kernel, Secure Boot, or
          nouveau
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
  general
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
  also    building and installing nvidia-kmod \[failed\]
  also    building rpms failed; see /var/cache/akmods/nvidia
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
          kernel modules on a GPU before Turing. In a virtual machine the GPU may be a vGPU, which only the vGPU guest
          (GRID) driver supports.
  fix     install a driver branch that supports the GPU; Blackwell needs the open modules, Maxwell to Volta need the
          proprietary ones, 580 or older; in a virtual machine ask whether the GPU is passed through or a vGPU, and for
          a vGPU install the guest driver of the host's vGPU release
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
  also    nv_err_reset_required
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
nvidia 0000:01:00.0: not ready 65535ms after resume; giving up
  pattern (?:nvidia|vfio-pci) [0-9a-f:.]{7,16}: not ready [0-9]{5,6}ms after [a-z0-9 >-]{2,20}; (?:giving up|waiting)
  also    \bvfio-pci [0-9a-f:.]{7,16}: not ready (?:8191|4095)ms after resume; waiting
  also    \bnvidia [0-9a-f:.]{7,16}: not ready (?:8191|4095)ms after resume; waiting
  also    (?:nvidia|vfio-pci) [0-9a-f:.]{7,16}: unable to change power state from d3(?:cold|hot) to d0, device inaccessible
  source  bryansteiner/gpu-passthrough-tutorial#39
  checks  gpu.count gpu.pcie
  cause   The GPU did not come back after a reset or from power saving (D3), so its PCIe link is down. RmInitAdapter
          failed follows from it. It is frequent with GPUs that were given to a virtual machine and taken back.
  fix     power the machine off and on; then switch power saving off for the GPU and its bridge: echo on into
          /sys/bus/pci/devices/ADDRESS/power/control, echo 0 into d3cold_allowed; update kernel and BIOS (new kernels do
          not use FLR on some Blackwell GPUs, which do not return from it)
PreserveVideoMemoryAllocations module parameter is set. System Power Management attempted without driver procfs
  pattern preservevideomemoryallocations module parameter is set\. system power management attempted without driver procfs
  source  projectbluefin/dakota#1118
  cause   The machine was suspended, and the driver refused, because it was not told before. With this parameter the
          services nvidia-suspend and nvidia-resume must save the GPU's memory; they are masked, off or not installed.
  fix     systemctl unmask and enable nvidia-suspend nvidia-hibernate nvidia-resume, or set
          NVreg_PreserveVideoMemoryAllocations=0 in /etc/modprobe.d and rebuild the initramfs; a GPU server should not
          suspend at all: systemctl mask sleep.target suspend.target
NVRM: Calling Resume on an active GPU or the previous Suspend call might have failed
  pattern calling resume on an active gpu or the previous suspend call might have failed
  source  NVIDIA/open-gpu-kernel-modules#945
  checks  gpu.answers gpu.xid
  cause   The driver was told to resume a GPU that it had not suspended: its suspend failed or did not run. Programs on
          that GPU may have lost their memory, and the screen may stay black.
  fix     journalctl -b -u nvidia-suspend -u nvidia-resume and the NVRM lines of the suspend name the first failure; end
          the GPU's programs and reset it, or reboot; a GPU server should not suspend: systemctl mask sleep.target
nvidia: loading /lib/firmware/nvidia/570.172.08/gsp_ga10x.bin failed with error -4
  pattern loading /lib/firmware/[^ ]{0,20}nvidia/[^ ]{1,60} failed with error -4
  also    direct firmware load for nvidia/[^ ]{1,60} failed with error -4\b
  source  NVIDIA/open-gpu-kernel-modules#943
  checks  gpu.answers gpu.count driver.persistenced
  cause   The file is there (-4 is EINTR): the program that started the GPU was killed while the kernel read the
          firmware, for example by a timeout of its service. With many GPUs, or in a confidential VM, the start takes
          long.
  fix     run nvidia-smi, which starts the GPU again; journalctl -b | grep -i -e timeout -e timed shows which service
          was killed; raise its TimeoutStartSec, and let nvidia-persistenced start the GPUs before the other services
nvidia-vgpu-mgr: error: vmiop_env_log: Failed to initialize RM client: 0x26
  pattern vmiop_env_log: failed to initialize rm client
  source  mrzenc/vgpu4nixos#4
  checks  driver.loaded driver.nouveau gpu.count
  cause   The vGPU manager of the host gets no connection to the driver: the host's vGPU module (nvidia) is not loaded,
          is of another version, or drives no GPU.
  fix     lspci -k -d 10de: must show nvidia as the driver in use, not nouveau or vfio-pci; dmesg | grep NVRM names the
          reason; nvidia-smi must list the GPU; then systemctl restart nvidia-vgpud nvidia-vgpu-mgr
nvidia-gridd: Failed to acquire license (vGPU)
  pattern nvidia-gridd(?:\[[0-9]{1,8}\])?: (?:error: )?failed to (?:acquire|renew|register|update local trusted store|borrow)
  source  NVIDIA/nvidia-docker#1787
  cause   The vGPU driver in this virtual machine got no license: the license server is not reached, the token file does
          not fit, or the clock is wrong. Without a license the vGPU gets slow, and then CUDA programs fail.
  fix     nvidia-smi -q | grep -i license; keep one token file in /etc/nvidia/ClientConfigToken, the same as on a
          machine that has a license; timedatectl; test the port (443) of the server that the line names; then systemctl
          restart nvidia-gridd
nvidia-persistenced: NUMA: Failed to enable NUMA memory Auto-Online
  pattern numa: failed to (?:open /sys/devices/system/memory/auto_online_blocks|enable numa memory auto-online)
  source  NVIDIA/nvidia-persistenced#11
  checks  driver.persistenced
  cause   On Grace Hopper and Grace Blackwell, nvidia-persistenced must write
          /sys/devices/system/memory/auto_online_blocks, so that the GPU's memory becomes a NUMA node. Only root may do
          that, and the service runs as another user.
  fix     systemctl edit nvidia-persistenced: an ExecStart= without --user, and no User= or DynamicUser=; then
          systemctl restart nvidia-persistenced
(udev-worker): nvidia: Process '/sbin/modprobe nvidia-drm' failed with exit code 1
  pattern process '[^']{0,30}modprobe nvidia[a-z_-]{0,12}' failed with exit code
  general
  source  ollama/ollama#11932
  checks  driver.loaded driver.nouveau gpu.count driver.secureboot
  cause   udev could not load the driver's modules at boot. If "Nvlink Core is being initialized" and "Unregistered
          Nvlink Core" stand together, the module was loaded, found no GPU that it can drive, and left.
  fix     dmesg | grep -A4 NVRM names the reason; pass these lines to gpuready explain, or run gpuready verify on
          the node
[drm:nv_drm_load [nvidia_drm]] *ERROR* [nvidia-drm] Failed to allocate NvKmsKapiDevice
  pattern failed to allocate nvkmskapidevice
  general
  source  NVIDIA/open-gpu-kernel-modules#828
  checks  gpu.answers gpu.xid driver.match
  cause   nvidia-drm, the part for displays, could not open the GPU. Usually the driver could not start the GPU at all.
          If nvidia-smi shows the GPU and CUDA works, it is harmless on a server.
  fix     dmesg | grep -e NVRM -e Xid shows the first failure; pass that line to gpuready explain
nouveau 0000:01:00.0: gsp ctor failed: -2
  pattern nouveau [0-9a-f:.]{7,16}: gsp ctor failed: -2\b
  source  Dasharo/dasharo-issues#1597
  checks  driver.nouveau driver.loaded
  cause   nouveau found no GSP firmware for this GPU (-2: no such file) in /lib/firmware or the initramfs. For the
          NVIDIA driver this is harmless: nouveau let the GPU go.
  fix     with the NVIDIA driver: blacklist nouveau, rebuild the initramfs and reboot; if nouveau is wanted, install the
          distribution's firmware package of NVIDIA GPUs and rebuild the initramfs
cufio-fs: NVMe Driver not registered with nvidia-fs!!! (cufile.log)
  pattern nvme driver not registered with nvidia-fs
  source  NVIDIA/gds-nvidia-fs#87
  checks  driver.peers
  cause   GPUDirect Storage needs an nvme driver that registers with nvidia_fs. This one did not: it is that of a plain
          kernel, or DOCA-OFED's nvme and nvidia_fs were built for different interfaces. cuFile then copies through the
          CPU, or refuses the file.
  fix     cat /proc/driver/nvidia-fs/modules must list nvme: install mlnx-nvme of DOCA-OFED, rebuild the initramfs,
          reboot, then rebuild nvidia-fs; or try use_pci_p2pdma in cufile.json (open kernel modules, new kernel)
cuFileHandleRegister failed (cuFile err=5030, cuda_err=0)
  pattern cufilehandleregister failed ?\(cufile err=[0-9]{4}
  also    cufilehandleregister error: (?:gpudirect storage not supported on current file|internal error)
  general
  source  LMCache/LMCache#795
  checks  driver.peers
  cause   cuFile does not accept this file. Usually it is on a file system that GPUDirect Storage does not support, such
          as the container's overlay, or nvidia_fs and the driver of the storage do not work together.
  fix     pass the first ERROR of cufile.log to gpuready explain; df -T FILE: use XFS or ext4 on NVMe, or a parallel
          file system, mounted into the container; gdscheck -p must say Supported for it; LMCache: use_cufile: false
openibd restart: Failed loading kernel module mlx5_ib / Loading HCA driver and Access Layer: [FAILED]
  pattern failed loading kernel module (?:mlx5|ib|rdma|mlx4|mlx)_
  also    loading hca driver and access layer: ?\[ ?failed
  source  Mellanox/doca-driver-build#52
  checks  rdma.ports
  cause   The kernel refused a module of DOCA-OFED. Usually it was built for another kernel, or an RDMA module of the
          distribution is still loaded and does not fit. dmesg names the module and the symbol.
  fix     dmesg | grep -e 'disagrees about version' -e 'Unknown symbol'; unload the other RDMA modules (lsmod | grep
          ib_core), or reboot; rebuild DOCA-OFED for uname -r; network operator: UNLOAD_STORAGE_MODULES and
          UNLOAD_THIRD_PARTY_RDMA_MODULES
mlx5_vdpa: disagrees about version of symbol mlx5_db_free
  pattern \bmlx5_(?:vdpa|fwctl|dpll): (?:disagrees about version of symbol|unknown symbol) mlx5_
  source  Mellanox/doca-driver-build#51
  cause   The kernel loads its own mlx5_vdpa by itself, and that does not fit the mlx5_core of DOCA-OFED. RDMA and
          Ethernet do not need the module, so the line is harmless.
  fix     nothing; or, to be rid of it, blacklist mlx5_vdpa in /etc/modprobe.d, or load that of DOCA-OFED
RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.
  pattern cuda driver initialization failed, you might not have a cuda gpu
  also    cuda driver library init failure: 3\b
  also    cuinit\(0\) failed -> cuda_error_not_initialized
  source  NVIDIA/open-gpu-kernel-modules#797
  checks  libcuda.init driver.nodes gpu.xid
  cause   cuInit fails. If nvidia-smi works, a known cause is HMM in the module nvidia_uvm: it finds no room in the
          address space, most often with many or large GPUs. In a data loader, the process was forked after CUDA began.
  fix     options nvidia_uvm uvm_disable_hmm=1 in /etc/modprobe.d, then rmmod nvidia_uvm and modprobe nvidia_uvm while
          no program uses a GPU, or reboot; dmesg names other reasons; in Python use the start method spawn
ERROR: Failure creating directory '/lib/firmware/nvidia' : (No such file or directory)
  pattern failure creating directory '/lib/firmware/nvidia'
  source  NVIDIA/gpu-operator#2559
  cause   The driver pod of the GPU Operator was created again, and the files of the pod before are still mounted at
          /run/nvidia/driver, because that pod could not unmount them. The new driver installs into a stale tree.
  fix     drain the node; umount -R /run/nvidia/driver, then delete the driver pod; or reboot the node. Newer releases
          of k8s-driver-manager (driver.manager.version) unmount it themselves
NVRM: s_vbiosPatchInterfaceData: too few interface entires found for FWSEC cmd 0x15
  pattern s_vbiospatchinterfacedata: too few interface entires found for fwsec
  also    failed to prepare interface data for fwsec cmd
  also    s_vbiospatchinterfacedata: found pintfacehdr entry count: 0, expected
  source  NVIDIA/open-gpu-kernel-modules#965
  checks  gpu.pcie gpu.answers
  cause   The driver read the GPU's VBIOS and found no table of interfaces in it, which it needs to start the GPU's
          firmware (GSP). The image is damaged, or the machine reads wrong data from the GPU. It was posted from an
          ARM board with a GeForce.
  fix     power the machine off and on; try the newest driver and another slot or machine; if another machine shows it
          too, the vendor must repair the GPU's VBIOS
nvidia 0000:01:00.0: PM: pci_pm_suspend(): nv_pmops_suspend [nvidia] returns -5
  pattern nv_pmops_(?:runtime_)?(?:suspend|freeze)(?:\+0x[0-9a-f]{1,4}/0x[0-9a-f]{1,4})? \[nvidia\] return(?:s|ed) -5
  general
  source  NVIDIA/open-gpu-kernel-modules#662
  cause   The machine or the GPU should sleep, and the driver refused. Usual reasons: it could not save the GPU's
          memory, or NVreg_PreserveVideoMemoryAllocations=1 is set and nvidia-suspend.service did not run before. The
          lines of NVRM before this one name the reason.
  fix     pass the NVRM lines to gpuready explain; systemctl enable nvidia-suspend nvidia-hibernate nvidia-resume; a
          GPU server should not suspend at all: systemctl mask sleep.target suspend.target
vfio 00000000-0000-0000-0000-000000000108: error getting device from group 106: Input/output error (vGPU)
  pattern vfio [0-9a-f]{8}-[0-9a-f-]{27}: error getting device from group [0-9]{1,4}: input/output error
  also    \[nvidia-vgpu-vfio\] [0-9a-f-]{36}: start failed
  source  anomixer/proxmox-vgpu-installer#22
  cause   The host's vGPU manager refused to start this vGPU, so QEMU cannot open it. The advice about devices bound
          to vfio does not apply. Usual reasons: the GPU is not supported for vGPU, another vGPU of another size runs
          on it, no memory is left, or two machines have the same UUID.
  fix     journalctl -u nvidia-vgpu-mgr names the reason; nvidia-smi vgpu lists what runs; give each virtual machine
          its own UUID and all vGPUs of one GPU the same size
NVRM: Assertion failed: remoteWMBoxLocalAddr != ~0ULL @ kern_bus_gm200.c (P2P)
  pattern assertion failed: remotewmboxlocaladdr != ~0ull
  also    assertion failed: \(\(base & rm_page_mask\) == 0\) @ kern_bus
  source  aikitoria/open-gpu-kernel-modules#7
  checks  gpu.p2p gpu.pcie
  cause   Two GPUs should copy to each other through BAR1, but one has no BAR1 that covers all its memory. The driver
          then tries the older way (mailboxes), which this GPU does not have. This happens with drivers patched for
          P2P on GeForce, if Resizable BAR is off (BAR1 256 MiB) or the GPU also drives a display.
  fix     nvidia-smi -q -d MEMORY must show a BAR1 as large as the GPU's memory; if not, switch Above 4G Decoding and
          Resizable BAR on in the BIOS; use a newer patched driver, or NCCL_P2P_DISABLE=1
NVRM: Xid (PCI:000f:01:00): 169 and RmInitAdapter failed! (0x62:0x1a:2631) (GB10)
  pattern xid \(pci:[0-9a-f:.]{7,16}\): 169\b.{1,160}rminitadapter failed
  also    \b169 and rminitadapter failed! \(0x62:0x1a
  source  Start9Labs/start-technologies#3693
  checks  driver.loaded gpu.answers
  cause   The GPU's SEC2 controller halts when the driver starts the GPU. On a GB10 the proprietary modules were the
          cause: Blackwell and newer GPUs need the open ones, and newer drivers enforce that.
  fix     modinfo -F license nvidia must say Dual MIT/GPL; if not, install the open flavor of the same version
          (nvidia-driver-580-open) and reboot; in the spec: driver: {flavor: open}
NVRM: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc)
  pattern out of memory \[nv_err_no_memory\] \(0x0{0,6}51\) returned from _?memdescalloc
  source  NVIDIA/open-gpu-kernel-modules#1358
  checks  gpu.xid
  cause   The driver got no memory of the machine. On GB10 (DGX Spark) programs and GPU share one memory: when it is
          full, the whole machine may hang or reset without another message. One machine had it at each start with
          kernel 7.0.0-1019-nvidia.
  fix     on GB10: leave free memory (vLLM: lower --gpu-memory-utilization and --max-num-batched-tokens), end other
          programs; if it began with a kernel update, boot the kernel before; elsewhere free -h and dmesg
NVRM: free_os_event: failed to find OS event
  pattern free_os_event: failed to find os event
  general
  source  NVIDIA/dcgm-exporter#736
  checks  gpu.xid
  cause   A program that waits for events of the GPU (a monitor such as DCGM) gave one back that the driver no longer
          knows. Alone it is harmless; it was posted from a node whose monitoring works.
  fix     nothing, if nvidia-smi answers and no Xid is in dmesg
pcieport: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer
  pattern severity=uncorrect(?:able|ed) \(non-fatal\), type=
  also    aer: (?:multiple )?uncorrect(?:able|ed) \(non-fatal\) error
  general
  source  minisforum-docs/MS-02-Ultra#10
  checks  gpu.pcie gpu.xid
  cause   A PCIe device or port reported an error of one transfer; the link itself holds. "device recovery failed"
          means that a driver behind that port cannot handle such errors. Repeated ones come from a bad link,
          firmware, or (bit ACSViol) a transfer that ACS forbids.
  fix     lspci -tv shows the devices behind the named port; if it is a GPU or an RDMA device: update BIOS and
          firmware, reseat the card, check riser and cable; a single line without an Xid needs no action
nvidia-modeset: ERROR: GPU:0: Failed to query display engine channel state: 0x0000ca7e:0:0:0x00000062
  pattern nvidia-modeset: error: gpu:[0-9]{1,2}: failed to query display engine channel state
  also    nvidia-modeset: error: gpu:[0-9]{1,2}: error while waiting for gpu progress
  also    nvidia-modeset: error: gpu:[0-9]{1,2}: idling display engine timed out
  general
  source  NVIDIA/open-gpu-kernel-modules#1252
  checks  gpu.xid gpu.answers
  cause   The GPU no longer answers the display part of the driver; 0x62 at the end means that it must be reset. This
          follows from an earlier fault.
  fix     dmesg | grep -m1 Xid shows that fault; reboot, because unloading nvidia_drm may hang now
""")
