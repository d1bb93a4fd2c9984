"""Messages of UCX, NVSHMEM, perftest and other RDMA tools, and of the kernel's network drivers."""

from gpuready.messages.entry import read

MESSAGES = read(r"""
UCX ERROR ibv_create_srq() failed: Operation not supported
  pattern ibv_create_srq(?:\(\))?[^:]{0,60}failed: operation not supported
  source  openucx/ucx#9736
  checks  rdma.srq
  cause   UCX needs shared receive queues, and this device has none (Intel E810, irdma). MPI and NIXL over UCX fail, or
          use TCP with a newer UCX. NCCL does not use UCX and is not affected.
  fix     nothing for NCCL; UCX_TLS=^ib in the environment of the MPI job keeps UCX off the device
DMA BUF supported required for GPU RDMA without nvidia-peermem (Mooncake)
  pattern dma buf supported required for gpu rdma
  source  kvcache-ai/Mooncake#3538
  checks  rdma.gdr
  cause   The program registers GPU memory with the NIC, and neither nvidia_peermem nor dma-buf works here.
  fix     modprobe nvidia_peermem, or install the open kernel modules (dma-buf, Linux 5.12 or newer)
Failed to register memory: Resource temporarily unavailable [11]
  pattern failed to register memory.{0,40}resource temporarily unavailable
  source  kvcache-ai/Mooncake#1765
  checks  memlock.login
  cause   The NIC or the kernel has no room for another memory region: processes that were killed left theirs behind, or
          the program needs more mappings than vm.max_map_count.
  fix     rdma resource show mr counts the regions; end old processes, raise vm.max_map_count, or drain the node and
          reload the NIC's driver
mlx5dv_devx_obj_create(QP) failed, syndrome 0x2c4154 (UCX)
  pattern mlx5dv_devx_obj_create\((?:qp|cq)\)
  source  openucx/ucx#10451
  cause   The NIC's firmware refuses an object that UCX or NVSHMEM creates directly in it: the firmware is older than
          the library expects, or a virtual function may not do this.
  fix     update the NIC's firmware (mlxfwmanager); for UCX, UCX_IB_MLX5_DEVX_OBJECTS= (empty) goes without it
EFA internal error: (4112) Failure to post internal receive buffers
  pattern efa internal error: ?\(4112\)
  also    efa provider .{0,80}\(-12\) cannot allocate memory
  source  awslabs/awsome-distributed-ai#647
  checks  memlock.login
  cause   EFA could not lock the memory that it registers: the limit of locked memory is too low.
  fix     ulimit -l must say unlimited where the job runs: gpuready apply raises it (memlock: unlimited); in Slurm
          PropagateResourceLimitsExcept=MEMLOCK; in containers --ulimit memlock=-1
UCX ERROR no active messages transport to ...: Destination is unreachable
  pattern no (?:active messages|remote registered memory access|auxiliary) transport to
  source  openucx/ucx#4742
  checks  rdma.ports rdma.netns
  cause   UCX has no common transport to the other process: UCX_TLS excludes it, or RDMA and TCP do not work there.
  fix     unset UCX_TLS and UCX_NET_DEVICES to try; ucx_info -d shows what this host has; gpuready verify checks the
          ports
UCX WARN transport 'ib' is not available, please use one or more of
  pattern transport '?[a-z0-9_,]{2,30}'? is not available, please use one or more of
  source  openucx/ucx#8684
  checks  rdma.ports rdma.netns
  cause   UCX_TLS selects RDMA, but UCX finds no RDMA device: not in the container, down, or not on this node.
  fix     start the container with --device=/dev/infiniband; ibv_devices shows what is visible
UCX ERROR ibv_reg_mr failed: Bad address
  pattern ibv_reg_mr\S{0,80} failed: bad address
  also    failed to register memory 0x[0-9a-f]{4,16}: bad address
  also    ucx error failed to register address 0x[0-9a-f]{1,16} ?\(cuda\)
  also    ucx error ibv_reg_mr ?\([^)]{0,120}\) failed: bad address
  source  openucx/ucx#8049
  checks  rdma.gdr
  cause   GPU memory was registered with the NIC, but GPUDirect RDMA does not work: no nvidia_peermem and no dma-buf.
  fix     install the open kernel modules (dma-buf, Linux 5.12 or newer), or load nvidia_peermem
Couldn't allocate MR; failed to create mr (perftest)
  pattern couldn't (?:allocate|create) mr
  source  zrlio/softiwarp#23
  checks  memlock.login rdma.gdr
  cause   perftest could not register its buffer: the limit of locked memory is too low, or with --use_cuda GPUDirect
          RDMA is missing.
  fix     check ulimit -l (gpuready apply raises it); with --use_cuda see the check rdma.gdr
Port number 1 state is Down (perftest)
  pattern port number [0-9]{1,3} state is down
  source  linux-rdma/perftest
  checks  rdma.ports fabric.ports
  cause   The RDMA port is down.
  fix     check cable, transceiver and switch port; ip link set INTERFACE up; gpuready verify shows each port
No IB devices found / No RDMA devices found (ibv_devinfo, ib_write_bw)
  pattern \bno (?:ib|rdma) devices? found
  source  linux-rdma/rdma-core (ibv_devinfo)
  checks  rdma.netns rdma.ports
  cause   No RDMA device is visible here: in exclusive mode it is in another network namespace, the container has no
          /dev/infiniband, or the driver of the NIC is not loaded.
  fix     in a container: --device=/dev/infiniband, or in exclusive mode gpuready rdma attach; on the host: rdma link
          and dmesg
rdma dev set netns: error: Operation not supported
  pattern rdma dev set .{1,160}operation not supported
  source  k8snetworkplumbingwg/rdma-cni#39
  checks  rdma.netns rdma.conflict
  cause   The RDMA subsystem runs in shared mode, in which a device cannot be moved.
  fix     rdma: {netns_mode: exclusive} in the spec and gpuready apply; the mode changes only while no other network
          namespace exists, or by a reboot
rdma system set netns exclusive: error: Device or resource busy
  pattern rdma system set netns .{1,80}device or resource busy
  source  k8snetworkplumbingwg/rdma-cni#37
  checks  rdma.netns rdma.conflict
  cause   The mode changes only while there is no network namespace but the host's; a container or service has one.
  fix     gpuready apply writes the mode for the next boot and reboots with your permission (maintenance: {reboot:
          idle}, --allow-disruption reboot)
RDMA_CM_EVENT_REJECTED, error 8 (rping)
  pattern rdma_cm_event_rejected
  source  linux-rdma/rdma-core (rping)
  checks  fabric.rping
  cause   The other host answers, but no RDMA server listens there.
  fix     start the server first (rping -s), and use its port
RDMA_CM_EVENT_ADDR_ERROR, error -110 (rping)
  pattern rdma_cm_event_(?:addr|route|unreachable)(?:_error)?
  source  linux-rdma/rdma-core (rping)
  checks  fabric.rping rdma.ports
  cause   No host answers for that address on the RDMA network: a wrong address, no route, or the port is down.
  fix     ping the address from that interface; gpuready fabric -i INVENTORY tests each pair
mlx5_core: Detected insufficient power on the PCIe slot
  pattern detected insufficient power on the pcie slot
  source  torvalds/linux (drivers/net/ethernet/mellanox/mlx5)
  checks  rdma.ports
  cause   The slot gives the NIC less power than it asks for; it may run slower or drop its link.
  fix     have the slot's power setting and riser checked, or put the NIC into another slot
mlx5_core: Port module event[error]: module 0, Cable error
  pattern port module event\[error\]: module
  source  torvalds/linux (drivers/net/ethernet/mellanox/mlx5/core/events.c)
  checks  rdma.ports
  cause   The NIC refuses the cable or transceiver in this port, or it failed. The end of the line says why, such as
          High Temperature, Power budget exceeded, or Bad or shorted cable/module.
  fix     reseat or replace the cable or transceiver; for High Temperature check the air flow; ethtool -m INTERFACE
          shows what is plugged in
mlx5_cmd_out_err: ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2)
  pattern access_reg\(0x805\) op_mod\(0x[0-9a-f]{1,4}\) failed, status bad operation
  source  leptonai/gpud#1164
  cause   Usually harmless: a monitoring program reads the counters of a port that the firmware reserves, such as that
          of the ConnectX-7 for the NVLink switches of a DGX or HGX B200. The line begins with its PCI address.
  fix     exclude that device from the program that reads it (gpud: --infiniband-exclude-devices; node_exporter 1.12
          still reads excluded ones: --no-collector.infiniband); the port needs no repair
mlx5_core: available PCIe bandwidth, limited by
  pattern available pcie bandwidth, limited by
  source  torvalds/linux (drivers/pci)
  checks  rdma.ports gpu.pcie
  cause   The card runs with fewer lanes or a slower generation than it can.
  fix     put it into a slot with enough lanes, or reseat it; lspci -vv shows LnkSta and LnkCap
UCX ERROR ibv_modify_qp(DCI, RTR) failed : Invalid argument / Failed to create UCP worker
  pattern ucx error ibv_modify_qp\([a-z]{2,4}, ?rtr\) failed
  also    failed to create ucp worker
  source  openucx/ucx#8604
  checks  rdma.ports nccl.gid
  cause   UCX cannot set up its connections on this device: a transport that device or driver do not support (DC, SRQ),
          or a GID index that does not fit.
  fix     set UCX_IB_GID_INDEX to the index that gpuready nccl prints; if it still fails, UCX_TLS=rc,ud,sm,self leaves
          out DC, and UCX_TLS=tcp,sm,self works without RDMA
Failed to modify QP 122273 to RTR / Unable to Connect the HCA's through the link (perftest, Mooncake)
  pattern failed to modify qp(?: [0-9]{1,9})? to rtr
  also    unable to connect the hca's through the link
  source  linux-rdma/perftest#393
  checks  nccl.gid rdma.ports fabric.ports
  cause   The two RDMA ports could not be connected: a GID index that does not fit (link-local, RoCE v1, another
          network), no route or neighbour for that address, or another MTU.
  fix     use the GID index that gpuready nccl -i INVENTORY prints (perftest: -x INDEX, Mooncake: MC_GID_INDEX);
          gpuready fabric -i INVENTORY tests each pair of ports
cannot allocate mlx5dv_devx_uar / init failed for transport: IBGDA (NVSHMEM, DeepEP)
  pattern null value cannot allocate mlx5dv_devx_uar
  also    no active ib device that supports gpu-initiated communication
  also    init failed for transport: ibgda
  source  sgl-project/sglang#12533
  checks  rdma.gdr driver.peers
  cause   NVSHMEM lets the GPU drive the NIC itself (IBGDA), and may not: the container is not privileged, the driver's
          options for it are not set, or the NIC is no ConnectX (mlx5).
  fix     on the node: options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="PeerMappingOverride=1;" in
          /etc/modprobe.d, rebuild the initramfs, reboot; or load gdrdrv (GDRCopy); start the container with
          --privileged
ibgda.cpp: NULL value Unable to create ah / create DCT share err (NVSHMEM)
  pattern null value unable to create ah\b
  also    create dct share err
  source  NVIDIA/nvshmem#21
  cause   A fault of NVSHMEM 3.4.5 and of some versions before it, mostly on RoCE: it leaves a field of the address
          unset, and the NIC's driver refuses the address. The node is not the cause.
  fix     use another NVSHMEM, newer than 3.4.5, or an image that has one
mlx5_core 0000:5d:00.0 ens1f0np0: TX timeout detected
  pattern \bmlx5_core \S{3,16} .{0,40}tx timeout detected
  source  NVIDIA/NVSentinel#1334
  checks  rdma.ports
  cause   The NIC did not send a packet in time: its firmware hangs, pause frames (PFC) block the port, or a CPU does
          not serve the NIC. The port may still be shown as up.
  fix     drain the node; look for soft lockup and other mlx5_core lines in dmesg; reboot, and update the NIC's firmware
          and driver if it happens again
nvidia-peermem nv_get_p2p_free_callback: ERROR detected invalid context, skipping further processing
  pattern nv_get_p2p_free_callback\S{0,8} error detected invalid context
  source  Mellanox/nv_peer_memory#120
  checks  rdma.gdr
  cause   The message is harmless: a safeguard of nvidia_peermem when GPU memory was freed before its registration
          ended, mostly when a program ends.
  fix     nothing; for a job that failed read its own first error, and Xid in dmesg
Fail to ibv_post_send: Cannot allocate memory
  pattern ibv_post_send\W{1,3}cannot allocate memory
  source  apache/brpc#3202
  cause   The send queue of the connection is full: the program posts more than the queue holds, or does not collect
          completions in time. The memory of the node is not short.
  fix     enlarge the send queue or post less at once in the program's settings; update the program
mlx5: eth0: hw csum failure
  pattern \bhw csum failure
  source  immortalwrt/immortalwrt#2175
  cause   The checksum that the network card computed does not fit the packet that the kernel has: mostly an eBPF
          program or tunnel changed the packet, or a fault of the mlx5 driver. The packet is checked again, so no data
          is lost.
  fix     update the kernel or DOCA-OFED and the card's firmware; until then ethtool -K DEVICE rx off on the interface
          named in the log
Failed to modify QP to INIT
  pattern failed to modify qp to init\b
  source  kvcache-ai/Mooncake#1143
  checks  rdma.ports rdma.netns
  cause   The RDMA device refused the first step of a connection: the port is not active, the port number or P_Key index
          is wrong, or the device belongs to another network namespace.
  fix     ibv_devinfo -d DEVICE must show PORT_ACTIVE; test with ib_write_bw -d DEVICE; in a pod, request the RDMA
          device with the port
mlnx-ofed-kernel-modules : Depends: linux-modules-extra-5.15.0-130-generic but it is not installable
  pattern mlnx-ofed-kernel-modules ?: depends: linux-modules-extra-
  source  Mellanox/network-operator#1450
  cause   apt finds no linux-modules-extra of the kernel that runs here. The packages of DOCA-OFED were built for that
          kernel and need it.
  fix     apt-cache policy linux-modules-extra-$(uname -r) must show a candidate; else boot a kernel that the archive
          still has, or use a newer image of the DOCA driver
modpost: "nvidia_p2p_get_pages" [nvidia-fs.ko] undefined! / nvidia_fs: no symbol version for nvidia_p2p_get_pages
  pattern "nvidia_p2p_[a-z_]{3,40}" \[[^ ]{1,160}\] undefined
  also    no symbol version for nvidia_p2p_
  source  NVIDIA/gds-nvidia-fs#72
  checks  driver.peers
  cause   nvidia-fs, gdrdrv or nv_peer_mem was built without the symbol versions of the installed NVIDIA module: the
          build did not find nvidia.ko of this kernel. If the module loads all the same, this is only a warning; else it
          ends with Invalid argument or Unknown symbol.
  fix     install the driver's module and sources (/usr/src/nvidia-VERSION) for this kernel first, then build the other
          module again, and after each change of the driver; instead of nv_peer_mem use nvidia-peermem of the driver
Work Request Flushed Error (UCX on EFA, mlx5_poll_one: syndrome 0x5)
  pattern work request flushed error
  also    mlx5_poll_one:[0-9]{1,5}:\(pid [0-9]{1,9}\): syndrome 0x5, vendor syndrome 0x
  general
  source  ai-dynamo/nixl#1983
  checks  rdma.ports
  cause   The connection had failed or was closed, and the NIC dropped the requests that still waited. This line follows
          from an earlier error, or only from the end of the connection.
  fix     look for the first error with another text, in the logs of both sides; without one, the other process ended or
          closed the connection, and the line is harmless
WARN: device erdma_0 is not enumerated as an mlx5 device. Skipping... (NVSHMEM, DeepEP)
  pattern is not enumerated as an mlx5 device
  source  deepseek-ai/DeepEP#759
  cause   NVSHMEM's IBGDA, which DeepEP needs between nodes, works only with NICs of the driver mlx5 (ConnectX,
          BlueField). This NIC has another driver, such as erdma, and NVSHMEM skips it. NCCL is not affected.
  fix     if the node has ConnectX NICs as well, name them in NVSHMEM_HCA_LIST (mlx5_0:1,...), and the line is harmless;
          else use a backend that goes over NCCL in place of DeepEP
Error in mlx5dv_devx_obj_modify for INIT2RTR_QP with syndrome 29e0df (NVSHMEM, DeepEP)
  pattern error in mlx5dv_devx_obj_modify for (?:init2rtr|rtr2rts|rst2init)_qp
  also    ibgda_rc_(?:init2rtr|rtr2rts|rst2init) failed on rc
  source  deepseek-ai/DeepEP#17
  checks  nccl.gid rdma.ports fabric.ports
  cause   The NIC's firmware refuses a connection of NVSHMEM that the GPU shall drive (IBGDA). On RoCE, check first
          whether the GID fits: it must not be link-local, RoCE v1, or of another network.
  fix     set NVSHMEM_IB_GID_INDEX to the index that gpuready nccl -i INVENTORY prints; gpuready fabric -i INVENTORY
          tests each pair of ports; then try a newer NVSHMEM and NIC firmware
neither nv_peer_mem, or nvidia_peermem detected. Skipping transport. (NVSHMEM, DeepEP)
  pattern neither nv_peer_mem,? n?or nvidia_peermem detected
  source  deepseek-ai/DeepEP#151
  checks  rdma.gdr
  cause   NVSHMEM finds no nvidia_peermem, and does not use RDMA without it. Older NVSHMEM looks only at
          /sys/kernel/mm/memory_peers, so it can also miss a module that is loaded.
  fix     modprobe nvidia_peermem on the node; if lsmod already shows it, use a newer NVSHMEM, or the patch of DeepEP
mem_heap.cpp: non-zero status: 2 cuMemCreate failed (NVSHMEM, DeepEP)
  pattern non-zero status: 2 cumemcreate failed
  source  sgl-project/sglang#29942
  cause   The GPU has too little free memory for NVSHMEM's buffers (CUDA error 2: out of memory): the model, its KV
          cache or another process holds the rest.
  fix     nvidia-smi shows the processes; end those that should not run, or leave more memory free: a lower
          --mem-fraction-static (SGLang) or --gpu-memory-utilization (vLLM), or fewer tokens for each rank in DeepEP
UCX: no active messages transport to ...: self/memory - no peer failure handler, cuda_ipc/cuda - no am bcopy
  pattern no active messages transport.{0,120}no peer failure handler
  also    (?:memory|cuda|tcp|mlx5_[0-9]{1,2}:1) - no peer failure handler
  source  ai-dynamo/nixl#1846
  checks  rdma.ports rdma.netns
  cause   The program (NIXL) wants to be told when the other side fails. Of the transports that UCX may use here, none
          can: shared memory and cuda_ipc alone are not enough.
  fix     unset UCX_TLS, or add rc or tcp to it, such as UCX_TLS=rc,tcp,cuda_copy,cuda_ipc,sm,self; in a container
          --device=/dev/infiniband for rc; ucx_info -d shows what there is
UCX WARN transports 'cuda_ipc','cuda_copy' are not available, please use one or more of
  pattern 'cuda_(?:ipc|copy)'[a-z0-9_',]{0,60} (?:is|are) not available, please use one or more of
  source  LMCache/LMCache#605
  checks  libcuda.container
  cause   This UCX cannot use GPUs: it was built without CUDA, its module libuct_cuda.so or libcuda.so.1 is not found,
          or the container has no GPU.
  fix     nvidia-smi must work in the container; ucx_info -d must list cuda_copy; keep to one UCX with CUDA: that of the
          wheel (nixl, libucx-cu12) or that of the image (HPC-X), without the other in LD_LIBRARY_PATH
UCX ERROR tcp_ep 0x3c502370 (state=CONNECTED): send(110) failed: Input/output error
  pattern tcp_ep 0x[0-9a-f]{4,16} \(state=[a-z_]{3,20}\): (?:send|recv|sendv)\([0-9]{1,9}\) failed
  also    unexpected ucx error: endpoint timeout
  source  LMCache/LMCache#725
  checks  fabric.tcp_connect
  cause   UCX lost its connection to the other process: that process ended, or the network between the two hosts or pods
          drops its packets. With tcp_ep in the line, UCX uses TCP.
  fix     read the other side's log first; test the address and ports between the two; UCX_NET_DEVICES=INTERFACE (RDMA:
          mlx5_0:1) chooses the network
DHCP4 CLIENT: Failed to set IAID+DUID: Device or resource busy (systemd-networkd)
  pattern failed to set iaid(?:\+duid)?: device or resource busy
  source  Mellanox/network-operator#2258
  cause   systemd-networkd gave up an interface that went away and came back while its DHCP client ran: the NIC's driver
          was reloaded, as DOCA-OFED's openibd restart does. The interface has no address, and the node is NotReady.
  fix     on the console: networkctl reconfigure INTERFACE, or systemctl restart systemd-networkd; reload the driver
          only on nodes whose main interface is on another NIC, or give it a static address
libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 (supports 1 to 1)
  pattern libibverbs: warning: driver [a-z0-9_]{2,20} does not support the kernel abi of
  source  k8snetworkplumbingwg/sriov-cni#348
  checks  rdma.ports
  cause   The RDMA library in this image or host does not fit the NIC's kernel module: the module is the vendor's
          (DKMS), the library is that of the distribution, or the reverse. The device cannot be used, and programs find
          no RDMA device.
  fix     install the vendor's library in the image, of the same release as the host's module (Broadcom: libbnxt_re), or
          use the kernel's own module on the host; ibv_devinfo must then list the device
Failed to register memory 0x7b375b400000: Invalid argument [22] (Mooncake)
  pattern failed to register memory 0x[0-9a-f]{4,16}: invalid argument
  source  kvcache-ai/Mooncake#351
  checks  rdma.gdr
  cause   The NIC's driver refuses this memory. Mostly it is GPU memory, and GPUDirect RDMA does not work here, or
          PyTorch made it of expandable segments.
  fix     unset PYTORCH_CUDA_ALLOC_CONF (expandable_segments); modprobe nvidia_peermem, or install the open kernel
          modules (dma-buf); ib_write_bw --use_cuda=0 tests it without the program
sharp_am: Local Port validation failed. error: FabricProvider must bind to port with master SM
  pattern fabricprovider must bind to port with master sm
  source  NVIDIA/nccl#1425
  checks  rdma.ports
  cause   SHARP's aggregation manager (sharp_am) must run on the host of the master subnet manager, and another port is
          the master: a managed switch, UFM, or opensm on another host.
  fix     sminfo shows the LID of the master, ibstat that of this port: run sharp_am on the master's host, or stop the
          other subnet manager, or give the one here the higher priority
Remote operation error on mlx5_4:1/IB (synd 0x14 vend 0x89 hw_synd 0/0) (UCX)
  pattern remote operation(?: error)? on \S{4,40} \(synd 0x14
  source  open-mpi/ompi#13183
  checks  rdma.gdr
  cause   The other side's NIC could not read or write the memory that it was to serve. With GPU memory, GPUDirect RDMA
          is not set up properly there: no nvidia_peermem that fits, and no dma-buf.
  fix     on both hosts install the open kernel modules (dma-buf), or load the driver's nvidia_peermem in place of an
          old nv_peer_mem; ib_read_bw --use_cuda=0 tests it; UCX_IB_GPU_DIRECT_RDMA=n avoids it
RDMA buffer MR registration failed: Bad address (UCCL)
  pattern \brdma buffer mr registration failed
  source  uccl-project/uccl#839
  checks  rdma.gdr
  cause   The NIC refused the address of GPU memory. Memory of PyTorch's expandable_segments:True cannot be registered
          in this way. Without that option, GPUDirect RDMA does not work: nvidia_peermem is not loaded.
  fix     take expandable_segments:True out of PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF); if it is not there,
          modprobe nvidia_peermem
WARN: device mlx5_0 cannot allocate buffer on the specified memory type. Skipping... (NVSHMEM, DeepEP)
  pattern device \S{1,30} cannot allocate buffer on the specified memory type
  source  deepseek-ai/DeepEP#128
  checks  rdma.gdr
  cause   NVSHMEM (IBGDA) cannot register GPU memory with this NIC. Most often nvidia_peermem is not loaded, or was
          built for another OFED.
  fix     modprobe nvidia_peermem; after another OFED, build and install the driver's modules again; lsmod must show
          that ib_uverbs or ib_core is used by nvidia_peermem
cuFile: error creating udev_device for block device dev_no: 0:53 (GPUDirect Storage)
  pattern error creating udev_device for block device dev_no
  also    udev property not found: id_fs_usage
  source  NVIDIA/gds-nvidia-fs#62
  cause   cuFile does not find out on which disk the file is. A number that begins with 0: is no disk: the file is on
          overlay, tmpfs or a network file system. Otherwise the container does not see the udev data of the host.
  fix     findmnt -T FILE shows the file system; use a local disk with ext4 or XFS; in a container also mount
          /run/udev:/run/udev:ro; without that cuFile reads through the memory of the host (compat mode), or fails
Failed to build mlnx-nvme DEB (DOCA-OFED)
  pattern failed to build (?:mlnx[a-z_-]{2,24}|kernel-mft|knem|xpmem|iser|isert|srp)(?:-modules|-dkms)? (?:deb|rpm)
  source  Mellanox/network-operator#1415
  cause   The NIC driver (DOCA-OFED, MLNX_OFED) was compiled for this kernel, and that failed. Mostly this version of
          the driver does not support so new a kernel; or the headers of the kernel are missing.
  fix     the log that the message names shows the first error; take a version of the driver (network operator:
          ofedDriver.version) whose release notes name this kernel, or boot a kernel that they name
aborting due to error in nvshmemi_init_thread (NVSHMEM)
  pattern aborting due to error in nvshmemi_init_thread
  also    nvshmemx_api\.h:[0-9]{1,5}: non-zero status: [0-9]{1,4}: [a-z ]{3,40}, exiting
  general
  source  deepseek-ai/DeepEP#150
  cause   NVSHMEM did not start on this rank. This text does not say why: the first line with 'non-zero status' names
          the step that failed. If it is bootstrap, the ranks do not reach each other over TCP.
  fix     run all ranks with NVSHMEM_DEBUG=INFO and pass the lines before this one to gpuready explain; for bootstrap:
          export NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=INTERFACE on all hosts, the same as NCCL_SOCKET_IFNAME
UCP API version is incompatible: required >= 1.20, actual 1.18.0 (UCX)
  pattern ucp (?:api )?version is incompatible
  source  ai-dynamo/nixl#386
  cause   The program (NIXL, MPI) was built for a newer UCX than the libucp.so that it loads, often that of the
          distribution. It may run, but GPU memory, NVLink or EFA may fail, for example with NIXL_ERR_BACKEND.
  fix     newer texts name the library (loaded from), else ldconfig -p | grep libucp; put the program's own UCX first in
          LD_LIBRARY_PATH, remove the distribution's (libucx0), or build the program with the UCX that is installed
nixlBackendError: NIXL_ERR_BACKEND
  pattern nixl_err_backend\b
  general
  source  ai-dynamo/nixl#96
  cause   NIXL's backend, mostly UCX, failed. This text does not say why. In createBackend, UCX often lacks support for
          threads or has another version; in registerMem of GPU memory, it often lacks CUDA.
  fix     pass the UCX lines before it to gpuready explain; if there are none, set UCX_LOG_LEVEL=info and
          NIXL_LOG_LEVEL=DEBUG; an own UCX needs --enable-mt and --with-cuda (ucx_info -v); pip's nixl brings its own:
          keep others out of LD_LIBRARY_PATH
Memory region not registered by any active device(s) (Mooncake)
  pattern memory region not registered by any active device
  source  LMCache/LMCache#1993
  checks  rdma.gdr rdma.ports
  cause   Mooncake has to send or receive a buffer that no active RDMA device knows. Its registration failed earlier and
          the program went on, or the devices were marked inactive after errors, or the program did not register it.
  fix     look further up for 'Failed to register memory' or 'mark it inactive', and pass that line to gpuready explain;
          if there is none, the program does not register this buffer: turn its zero-copy mode off, or report it
CUDA DMA-BUF cannot be used without CUDA (perftest)
  pattern cuda dma-buf cannot be used without cuda
  source  linux-rdma/perftest#336
  cause   ib_write_bw reads its options in order, and --use_cuda_dmabuf came before --use_cuda, or without it. The node
          is not the cause.
  fix     write --use_cuda=0 --use_cuda_dmabuf in this order
Worker: Process failed for slice (retry_cnt: 0): local protection error (Mooncake)
  pattern retry_cnt: [0-9]{1,4}\): local protection error
  source  sgl-project/sglang#8324
  checks  rdma.gdr
  cause   The NIC may not read or write this node's own buffer: its registration failed or does not cover the address.
          With GPU memory, GPUDirect RDMA often does not work, or PyTorch made the memory of expandable segments.
  fix     look further up for 'Failed to register memory'; unset PYTORCH_CUDA_ALLOC_CONF (expandable_segments);
          ib_write_bw --use_cuda=0 tests GPUDirect RDMA without the program; then use a newer mooncake-transfer-engine
Process failed for slice / CQE ERROR status=12(transport retry counter exceeded) (Mooncake, UCCL)
  pattern retry_cnt: [0-9]{1,4}\): transport retry counter exceeded
  also    cqe error[^()]{0,60} status=12 ?\(transport retry counter exceeded\)
  source  kvcache-ai/Mooncake#1450
  checks  nccl.gid rdma.ports fabric.ports
  cause   The NIC got no answer from the other one (local_nic, peer_nic): a GID that does not fit, such as a link-local
          one on RoCE, ports on different rails that are not routed to each other, or the other process ended.
  fix     gpuready fabric -i INVENTORY tests each pair of ports; set the GID index that gpuready nccl -i INVENTORY
          prints (MC_GID_INDEX, UCCL_IB_GID_INDEX); name only ports that reach each other (SGLang:
          --disaggregation-ib-device)
nixlRemoteDisconnectError: NIXL_ERR_REMOTE_DISCONNECT
  pattern nixl_err_remote_disconnect
  source  wtdcode/vllm-backport#33
  checks  rdma.ports
  cause   The connection to the other engine broke: its process ended or was restarted, or the network failed. NIXL then
          forgets that engine, and later transfers fail with NIXL_ERR_NOT_FOUND, even if it is healthy again.
  fix     read the other engine's log and the UCX lines before this one, then restart both engines, prefill and decode
UCX ERROR ibv_create_ah() / ibv_modify_qp(UMR QP 0x2c5c) failed to modify to RTR: No such device
  pattern ibv_modify_qp\([^)]{1,40}\) failed to modify to rtr: no such device
  also    ibv_create_ah\([^)]{1,200}\) for [a-z0-9 ]{2,30} connect on \S{3,40} failed: no such device
  source  NVIDIA/nccl-tests#327
  checks  rdma.netns nccl.gid
  cause   The NIC cannot connect with the GID that UCX chose: its network interface is down, has no address, or is in
          another network namespace than this container. sgid_index=0 is a link-local GID on RoCE.
  fix     set UCX_IB_GID_INDEX to the index that gpuready nccl -i INVENTORY prints; in a pod, show_gids lists the
          devices that have an interface there: name only these, such as UCX_NET_DEVICES=mlx5_1:1; if none has one, use
          hostNetwork: true, or a secondary network with the RDMA CNI
ibpanic: [1323906] main: stat of IB device 'mlx5_8' failed: No such file or directory (ibstat)
  pattern ibpanic: \[[0-9]{1,9}\] main: stat of ib device \S{3,40} failed: no such file or directory
  source  Azure/azhpc-images#213
  checks  rdma.ports
  cause   ibstat stops at a device that has no InfiniBand management port, such as a virtual function for Ethernet
          (mlx5_an0 on Azure). The other devices are not affected.
  fix     use ibstatus or rdma link, which show all devices, or name one: ibstat mlx5_0
Assertion "(gdr_pin_buffer(g, d_ptr, size, 0, 0, &mh)) == (0)" failed at sanity.cpp (gdrcopy_sanity)
  pattern \(gdr_pin_buffer\([^"]{1,120}" failed at
  source  NVIDIA/gdrcopy#305
  checks  rdma.gdr
  cause   GDRCopy cannot pin GPU memory: the kernel module gdrdrv is older than the GPU driver or than the library in
          this container, or the GPU has no GPUDirect RDMA (GeForce).
  fix     dmesg | grep gdrdrv shows the call that failed; install the newest gdrdrv-dkms on the host, modprobe -r gdrdrv
          and modprobe gdrdrv; use libgdrapi of the same release in the image
bootstrap_net_init: No socket interface found (NVSHMEM)
  pattern bootstrap_net_init(?::[0-9]{1,5})?: no socket interface found
  source  ByteDance-Seed/Triton-distributed#122
  cause   NVSHMEM finds no network interface to start over: NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME names none that is up, or
          it has no address of the kind in NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY.
  fix     ip -br addr lists the interfaces; export NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=INTERFACE and, for IPv4,
          NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY=AF_INET on all hosts
node_exporter: failed to read file "/sys/class/infiniband/mlx5_0/ports/1/counters/VL15_dropped": invalid argument
  pattern infiniband/\S{3,30}/ports/[0-9]{1,2}/(?:counters/[a-z0-9_]{3,40}|rate)"?: invalid argument
  source  prometheus/node_exporter#3265
  cause   One RDMA device has no counters: a port that the firmware reserves, such as that of the ConnectX-7 for the
          NVLink switches of a DGX or HGX, or Azure's mana_0. node_exporter then drops the InfiniBand metrics of all.
  fix     the port needs no repair; a newer node_exporter may skip it (1.12 still reads devices that are excluded);
          until then --no-collector.infiniband
""")
