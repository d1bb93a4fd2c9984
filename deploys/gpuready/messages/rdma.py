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
""")
