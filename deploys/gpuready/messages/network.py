# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of NCCL, its plugins, and torch.distributed."""

from gpuready.messages.entry import read

_LAST_ERROR = (
    "if the text has no line after 'Last error:', add that line; if it has one, gpuready does not know it: run all "
    "ranks with NCCL_DEBUG=WARN, and pass the first WARN line of each rank to gpuready explain"
)
MESSAGES = read(
    r"""
NCCL WARN Call to ibv_modify_qp failed with error Invalid argument
  pattern ibv_modify_qp failed with (?:error )?invalid argument
  source  docs.nvidia.com/deeplearning/nccl/user-guide (troubleshooting)
  checks  nccl.gid nccl.hca fabric.ports
  cause   NCCL uses a GID that does not fit the other side: link-local, RoCE v1, empty, or of another network.
  fix     unset NCCL_IB_GID_INDEX (NCCL 2.21 and newer choose the GID), or set nccl: {subnets: [...]} and run gpuready
          apply; gpuready nccl -i INVENTORY prints the right settings
Gloo connectFullMesh failed with: no error / timed out connecting: remote=[127.0.0.1]
  pattern gloo connectfullmesh failed
  also    connectfullmesh failed with
  source  aws-samples/aws-do-eks#50
  cause   Gloo connects to the address that each host's own name resolves to. In /etc/hosts that is often 127.0.0.1 or
          127.0.1.1, which other hosts cannot reach.
  fix     export GLOO_SOCKET_IFNAME=INTERFACE on all hosts (gpuready nccl -i INVENTORY names it), or let each host's name
          resolve to its address in the network
NCCL WARN Call to ibv_modify_qp failed with error Connection timed out / No such device
  pattern ibv_modify_qp failed with (?:error )?[0-9]{0,3} ?(?:connection timed out|network is unreachable|no such device|no data available)
  source  NVIDIA/nccl#1405
  checks  fabric.ports nccl.gid rdma.ports
  cause   The RDMA port cannot reach the other host: no route or neighbour for the GID's address, or the port is down, or
          the two ports are on different rails that are not routed to each other.
  fix     gpuready fabric -i INVENTORY tests each pair of ports and says which fails; check address, route and VLAN of
          that port. If every pair passes, compare the two GIDs in the message: in different networks, set
          NCCL_CROSS_NIC=0, or route between the rails
ibv_modify_qp failed
  pattern ibv_modify_qp failed
  source  NVIDIA/nvshmem#42
  checks  nccl.gid nccl.hca rdma.ports fabric.ports
  cause   The two RDMA ports could not be connected: most often a wrong GID, no route between them, or a port that is
          down. This text does not say which.
  fix     pass the whole line of NCCL_DEBUG=WARN, which ends with the error, to gpuready explain; gpuready fabric -i
          INVENTORY tests each pair of ports
ibv_reg_mr failed: Cannot allocate memory / Please set max locked memory (ulimit -l) (NCCL, UCX)
  pattern ibv_(?:exp_)?(?:reg_(?:dmabuf_)?mr|create_(?:qp|srq|cq))[^:]{0,60} failed(?: with error|:) cannot allocate memory
  also    call to ibv_create_(?:qp|cq) failed
  also    please set max locked memory
  also    failed to register memory 0x[0-9a-f]{4,16}: cannot allocate memory
  source  NVIDIA/nccl-tests#206
  checks  memlock.container memlock.login memlock.docker
  cause   RDMA locks its buffers and queues in memory, and the limit of locked memory (ulimit -l) is too low, often 8
          MiB. If it is unlimited on a DGX Spark with kernel 7.0, KHO (kexec handover) of that kernel is the cause: it
          reserves GiB of memory that RDMA cannot lock.
  fix     gpuready apply (memlock) raises the limit for logins, containers and slurmd; then log in again and recreate
          the container; for one container: --ulimit memlock=-1; if ulimit -l says unlimited on a DGX Spark, boot with
          kho=off, or with kernel 6.17
NCCL WARN Call to ibv_open_device failed
  pattern ibv_open_device failed
  also    net/ib ?: unable to open device
  also    ibv_open_device\([^)]{0,30}\) failed: no such file
  source  NVIDIA/nccl#451
  checks  rdma.netns memlock.container nccl.hca
  cause   The container sees the RDMA device in sysfs, but not its device node.
  fix     start the container with --device=/dev/infiniband (gpuready docker-args prints the options), or in exclusive
          mode gpuready rdma attach
NET/IB : No device found
  pattern net/ib ?: no device found
  source  NVIDIA/nccl#941
  checks  rdma.netns nccl.hca rdma.ports
  cause   NCCL sees no RDMA port and uses TCP: the container has no /dev/infiniband, NCCL_IB_HCA matches no port, no
          port is up, or the node has no RDMA.
  fix     start the container with --device=/dev/infiniband and --ulimit memlock=-1 (gpuready docker-args); gpuready
          nccl -i INVENTORY prints NCCL_IB_HCA
NCCL INFO Using network Socket
  pattern using network socket
  source  NVIDIA/nccl#941
  checks  rdma.netns nccl.hca rdma.ports memlock.container
  cause   NCCL uses TCP instead of RDMA. On nodes without RDMA this is normal.
  fix     with RDMA: start the container with --device=/dev/infiniband and --ulimit memlock=-1, and look for the WARN or
          NET/IB line before it
NCCL INFO Failed to open libibverbs.so[.1]
  pattern failed to open libibverbs\.so
  source  InternLM/lmdeploy#3286
  checks  nccl.hca rdma.ports
  cause   libibverbs is not in the image, so NCCL cannot use RDMA and uses TCP.
  fix     install libibverbs1 and ibverbs-providers (rdma-core) in the image
NCCL WARN NET/IB : Got completion with error 12, vendor err 129
  pattern got completion (?:from peer .{0,80})?with (?:error|status=?) ?12\b
  also    got completion .{0,100}status=ibv_wc_retry_exc_err
  also    \bibv_wc_retry_exc_err
  also    transport retry count exceeded on \S{4,40} \(synd
  source  NVIDIA/nccl#902
  checks  rdma.ports fabric.ports fabric.write_bw nccl.gid
  cause   A transfer got no answer in time: the two ports cannot reach each other, packets are lost, or the other rank
          ended.
  fix     gpuready fabric -i INVENTORY tests each pair of ports; look at the other ranks' logs first; NCCL_IB_TIMEOUT=22
          helps only against congestion
NCCL WARN NET/IB : Got completion with error 5
  pattern got completion (?:from peer .{0,80})?with (?:error|status=?) ?[0-9]{1,2}\b
  also    got completion .{0,100}status=ibv_wc_
  source  NVIDIA/nccl#1664
  checks  rdma.ports fabric.ports gpu.xid
  cause   An RDMA transfer failed (5: flushed after an earlier error, 4: memory protection, 10, 11 and 13: the other
          side refused it).
  fix     read the first such line of all ranks, because the later ones only follow from it; then gpuready fabric -i
          INVENTORY
NCCL WARN NET/IB : mlx5_0:1 Got async event : port error
  pattern got async (?:event|fatal event) ?: ?(?:port error|local catastrophic error|lid change|gid table change)
  also    got non-fatal async event: (?:port error|lid change)
  also    \bnet/ib ?: \S{3,40} (?:gid table changed|async fatal event: local catastrophic error)
  source  docs.nvidia.com/deeplearning/nccl/user-guide (troubleshooting)
  checks  rdma.ports fabric.ports
  cause   The RDMA port went down or changed its address while the job ran. After 'local catastrophic error', the NIC
          itself failed.
  fix     check cable, transceiver and switch port; dmesg and rdma.ports of gpuready verify show its state
NCCL WARN Bootstrap : no socket interface found
  pattern bootstrap ?: no socket interface found
  also    with family [0-9]{1,6} is neither af_inet
  source  docs.nvidia.com/deeplearning/nccl/user-guide (troubleshooting)
  checks  nccl.ports nccl.grammar
  cause   NCCL_SOCKET_IFNAME names no interface that is up, in this container or host or in that of another rank.
  fix     unset NCCL_SOCKET_IFNAME, or name one that ip -br addr shows; in a container, the names differ from the host's
NCCL WARN Error while creating shared memory segment /dev/shm/nccl-
  pattern error(?:: failed to extend| while creating shared memory segment) (?:/dev/shm/)?nccl-
  also    call to posix_fallocate failed ?: no space left on device
  source  NVIDIA/nccl-tests#166
  checks  docker.config
  cause   The container's /dev/shm is too small for NCCL: Docker gives 64 MiB.
  fix     docker run --shm-size=8g or --ipc=host; for all new containers: runtimes.docker.shm_size in the spec, then
          gpuready apply; on Kubernetes mount an emptyDir with medium: Memory
NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-
  pattern error while attaching to shared memory segment /dev/shm/nccl-
  source  NVIDIA/nccl#1589
  checks  docker.config
  cause   A rank does not find the segment that another rank of this host created: the ranks do not share /dev/shm, or
          it was full.
  fix     run all ranks of a host in one container, or give them --ipc=host; make /dev/shm larger (--shm-size)
NCCL WARN Cuda failure
  pattern nccl warn .{0,20}cuda failure
  general
  source  NVIDIA/nccl-tests#24
  checks  gpu.xid driver.match
  cause   NCCL called CUDA, and CUDA returned an error. The text after 'Cuda failure' names that error.
  fix     pass the text after 'Cuda failure' to gpuready explain, and look for an Xid in dmesg
NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device
  pattern duplicate gpu detected
  source  docs.nvidia.com/deeplearning/nccl/user-guide (troubleshooting)
  checks  gpu.count
  cause   Two ranks use the same GPU: more processes than GPUs, or the program does not choose its GPU by LOCAL_RANK.
  fix     start as many processes as the container has GPUs, and call torch.cuda.set_device(LOCAL_RANK)
Unconvertible NCCL type
  pattern unconvertible nccl type
  source  docs.nvidia.com/deeplearning/nccl/user-guide (ncclRemoteError)
  checks  gpu.torch wheels.works nccl.torch
  cause   This PyTorch does not know ncclRemoteError, which NCCL returns since 2.13.4 when another rank is lost. The
          real error is on that rank.
  fix     read the log of the rank that ended first; use a PyTorch whose build knows NCCL 2.13.4 or newer
ncclUnhandledCudaError: unhandled cuda error
  pattern unhandled cuda error
  code    nccl 1
  general
  source  docs.nvidia.com/deeplearning/nccl/user-guide (ncclResult_t)
  checks  gpu.xid driver.match
  cause   NCCL called CUDA, and CUDA returned an error. The line after 'Last error:' names that error.
  fix     LAST_ERROR
ncclSystemError: unhandled system error
  pattern unhandled system error
  code    nccl 2
  general
  source  docs.nvidia.com/deeplearning/nccl/user-guide (ncclResult_t)
  checks  nccl.ports memlock.container rdma.ports docker.config
  cause   A call of NCCL to the system, a socket or libibverbs failed. Often there is no route between the hosts,
          /dev/shm is full, or the limit of locked memory is too low.
  fix     LAST_ERROR
ncclInternalError: internal error
  pattern internal error(?: - please report this issue to the nccl developers|, nccl version)
  code    nccl 3
  general
  source  NVIDIA/nccl#1092
  checks  nccl.ports rdma.ports gpu.xid
  cause   NCCL met a state that it did not expect. NCCL 2.18 and older also report a lost connection to another rank as
          an internal error.
  fix     LAST_ERROR
ncclInvalidArgument: invalid argument
  pattern invalid argument(?: \(run with nccl_debug|, nccl version)
  code    nccl 4
  general
  source  docs.nvidia.com/deeplearning/nccl/user-guide (ncclResult_t)
  cause   The program, or PyTorch, passed a wrong argument to NCCL. The node is rarely the cause.
  fix     LAST_ERROR
ncclInvalidUsage: invalid usage
  pattern invalid usage(?: \(run with nccl_debug|, nccl version)
  code    nccl 5
  general
  source  docs.nvidia.com/deeplearning/nccl/user-guide (ncclResult_t)
  checks  gpu.count
  cause   The program uses NCCL in a way that NCCL does not support, most often two ranks on one GPU.
  fix     LAST_ERROR
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely
  pattern remote process exit(?:ed|ing)(?: prematurely)?
  code    nccl 6
  general
  source  docs.nvidia.com/deeplearning/nccl/user-guide (ncclResult_t)
  checks  gpu.xid rdma.ports nccl.torch
  cause   Another rank ended, or the connection to it broke. The cause is on that rank, not here.
  fix     read the log of the rank that ended first; gpuready verify shows an Xid or a port that went down there
ncclInProgress: operation in progress
  pattern nccl operation in progress
  code    nccl 7
  general
  source  docs.nvidia.com/deeplearning/nccl/user-guide (ncclResult_t)
  cause   Not an error: a call that does not block has not finished yet.
  fix     nothing; the program asks again until the call has finished
Watchdog caught collective operation timeout: WorkNCCL(...) ran for ... milliseconds before timing out
  pattern watchdog caught collective operation timeout
  source  pytorch/pytorch#118369
  checks  gpu.xid rdma.ports fabric.write_bw nccl.torch
  cause   A collective did not finish in time: one rank is stuck, ended or runs another part of the program, or the
          network lost packets.
  fix     find the rank whose 'last completed' number is the lowest; look for an Xid there; gpuready fabric -i INVENTORY
          tests the network
socketStartConnect: Connect to IP<port> failed : Connection refused / Software caused connection abort
  pattern socket(?:startconnect|pollconnect|progressopt|tryaccept|finalizeaccept)[^a-z].{0,120}(?:connection refused|timed out|no route to host|connection reset|connection closed|software caused|wrong type)
  also    socketpollconnect poll\(\) (?:returned [0-9], no pollout events|failed, ret)
  also    \bnet ?: connect to \S{1,120} failed ?: (?:connection refused|connection timed out|no route to host|network is unreachable|software caused)
  source  NVIDIA/nccl-tests#188
  checks  nccl.ports nccl.grammar fabric.tcp_connect
  cause   NCCL's own TCP connection between two hosts failed: a firewall, a wrong interface (docker0, an address that
          the other host cannot reach), or the other rank ended.
  fix     set NCCL_SOCKET_IFNAME to the interface of the right network (gpuready nccl -i INVENTORY prints it); open its
          ports between the hosts
NCCL WARN socketTryAccept: Accept failed: Too many open files
  pattern (?:sockettryaccept|\bnccl warn|\bsocket\.h[:(]).{1,160}too many open files
  also    too many open files.{1,60}nccl failure
  also    ^accept failed:? too many open files
  source  NVIDIA/nccl#127
  cause   A rank has reached its limit of open files (ulimit -n), often 1024. NCCL opens several sockets for each other
          rank.
  fix     ulimit -n 1048576 before the job starts; docker run --ulimit nofile=1048576; for Slurm, LimitNOFILE= in the
          unit of slurmd
NCCL WARN Message truncated : received 1024 bytes instead of 256
  pattern message truncated ?: (?:received|receiving) [0-9]{1,12} bytes instead of
  also    collective mismatch error, local size
  source  NVIDIA/nccl#1273
  checks  nccl.config wheels.works
  cause   Two ranks do not do the same: the program calls other collectives or sizes on one of them, or a host has
          another NCCL version or other NCCL_ variables.
  fix     compare the NCCL version and the NCCL_ variables of all hosts; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL prints
          the calls of each rank, and the first one that differs is the fault
Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated; use TORCH_NCCL_ASYNC_ERROR_HANDLING instead
  pattern environment variable nccl_[a-z_]{3,40} is deprecated; use torch_nccl_
  source  pytorch/pytorch#114077
  checks  nccl.torch
  cause   PyTorch 2.2 renamed its own variables that began with NCCL_. It still reads the old names, with this warning.
  fix     set the new name only; before PyTorch 2.2, only the old name works
The client socket has failed to connect to [host]:29500 / Connection refused (torch.distributed)
  pattern client socket has (?:failed to connect to|timed out after)
  source  docs.pytorch.org/docs/stable/elastic/run
  checks  fabric.tcp_connect
  cause   torch.distributed cannot reach the rank that runs the rendezvous: a wrong MASTER_ADDR or port, a firewall, or
          that rank did not start.
  fix     check MASTER_ADDR and MASTER_PORT on every host; gpuready nccl -i INVENTORY --launch prints a torchrun line
          for each host
The server socket has failed to listen on any local network address / EADDRINUSE (torch.distributed)
  pattern server socket has failed to (?:listen on|bind to)[ ]
  source  meta-pytorch/torchtune#1025
  cause   torch.distributed cannot open its port, 29500 by default. Another program of this host already uses it
          (EADDRINUSE, errno 98): a second job, or a rank that was left over.
  fix     ss -ltnp 'sport = :29500' names that program; end it, or give each job its own --master-port; for several jobs
          on one host, torchrun --rdzv-backend=c10d --rdzv-endpoint=localhost:0 takes a free port
DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.
  pattern timed out after [0-9]{1,6} seconds waiting for (?:clients|workers)\. [0-9]{1,6}/[0-9]{1,6} (?:clients|workers) joined
  source  OpenRLHF/OpenRLHF#1040
  checks  fabric.tcp_connect
  cause   Rank 0 waited for all ranks, and some did not connect. They did not start, have another MASTER_ADDR or port,
          or a firewall is between the hosts.
  fix     start the missing ranks: the second number is WORLD_SIZE; read their logs; gpuready nccl -i INVENTORY --launch
          prints a torchrun line for each host, and gpuready fabric -i INVENTORY --tests tcp tests the network
RendezvousConnectionError: The connection to the C10d store has failed
  pattern the connection to the c10d store has failed
  general
  source  pytorch/pytorch#67581
  checks  fabric.tcp_connect
  cause   torchrun has no connection to the host of --rdzv-endpoint: a wrong name or port, a firewall, or the torchrun
          there has ended. The exception before this one names the error.
  fix     pass the exception before it to gpuready explain; use the same --rdzv-endpoint on all hosts, and an own port
          and --rdzv-id for each job
torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError
  pattern \brendezvoustimeouterror\b
  general
  source  pytorch/pytorch#80772
  checks  fabric.tcp_connect
  cause   torchrun waited for the torchrun of the other hosts, 600 s by default, and fewer than --nnodes came: one did
          not start or ended, has another --rdzv-endpoint or --rdzv-id, or cannot reach the endpoint.
  fix     read the log of torchrun on the other hosts, and pass its first error to gpuready explain; gpuready nccl -i
          INVENTORY --launch prints a torchrun line for each host
[c10d] The IPv6 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -3 - Temporary failure in name resolution)
  pattern network addresses of \([^)]{1,200}\) cannot be retrieved \(gai error
  also    elastic/rendezvous/.{1,900}gaierror:[ ]
  also    \bhost not found: (?:temporary failure in name resolution|name or service not known)
  source  nyu-systems/Grendel-GS#9
  checks  fabric.tcp_connect
  cause   This host cannot resolve a host name that torchrun needs: that of --rdzv-endpoint or MASTER_ADDR, or its own.
          With rendezvous c10d, the hosts connect to the own name of the host of rank 0, even if the endpoint is an
          address.
  fix     getent hosts NAME on each host, also for its own name (hostname); add all hosts to DNS or /etc/hosts, or start
          torchrun with --local-addr=ADDRESS
[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store
  pattern is setting up nccl communicator and retr(?:ie|ei)ving ncclunique
  general
  source  hiyouga/LlamaFactory#2135
  checks  gpu.xid fabric.tcp_connect
  cause   This rank waited for rank 0, which starts the NCCL communicator. With 'Connection reset by peer', rank 0 has
          ended; with a timeout, it is late, stuck or in another part of the program.
  fix     read the log of rank 0, and pass its first error to gpuready explain
Some NCCL operations have failed or timed out
  pattern some nccl operations have failed or timed out
  general
  source  EvolvingLMMs-Lab/open-r1-multimodal#20
  checks  gpu.xid rdma.ports nccl.torch
  cause   A collective failed or did not finish, so PyTorch ends this process. Other lines name the collective and the
          error.
  fix     look for 'Watchdog caught' and 'NCCL WARN' in the logs of all ranks; pass the first one to gpuready explain
[c10d] The hostname of the client socket cannot be retrieved. err=-3
  pattern hostname of the client socket cannot be retrieved
  general
  source  pytorch/pytorch#159007
  checks  fabric.tcp_connect
  cause   Only a warning: neither DNS nor /etc/hosts has a name for the address of the other host.
  fix     ignore it, or add the hosts to DNS or /etc/hosts; torchrun's rendezvous c10d also needs this host's own name
Received a dump signal due to a collective timeout / Observed flight recorder dump signal from another rank
  pattern (?:received a|flight recorder) dump signal
  general
  source  pytorch/pytorch#150652
  checks  gpu.xid nccl.torch
  cause   A rank failed or waited too long, and asks all ranks for a dump of PyTorch's flight recorder. Each rank waits
          before it ends: 60 s by default, also if the recorder is off.
  fix     pass the first error of that rank to gpuready explain; TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC=1000 makes it 4 s
torch.distributed.elastic.multiprocessing.errors.ChildFailedError / failed (exitcode: -9) local_rank: 0
  pattern multiprocessing\.errors\.childfailederror
  also    failed \(exitcode: -?[0-9]{1,3}\) local_rank:[ ]
  general
  source  showlab/EgoVLP#21
  checks  gpu.xid
  cause   torchrun says that a rank ended, not why. Exit code -9: the rank was killed, often by the kernel because the
          host's memory was full (OOM killer). -11: it crashed. -15: it was stopped because another rank had failed.
  fix     look at the first rank that failed ('Root Cause' names it), and pass its own error to gpuready explain; for
          -9, look for 'Killed process' in dmesg
NCCL version mismatch / Mismatched NCCL version detected
  pattern mismatched nccl version detected
  source  docs.nvidia.com/deeplearning/nccl/user-guide (troubleshooting)
  checks  wheels.works
  cause   The ranks run different NCCL versions.
  fix     use the same image or environment on all hosts
NCCL WARN socketProgress: Connection closed by remote peer
  pattern (?:socketprogress|\bnet) ?: connection closed by remote peer
  also    \bnet ?: call to (?:recv|send) .{0,80} failed ?: (?:connection reset|broken pipe)
  source  NVIDIA/nccl#1232
  checks  gpu.xid nccl.ports
  cause   Another rank closed the connection: it ended or failed. The cause is on that rank, not here.
  fix     run all ranks with NCCL_DEBUG=WARN, and pass the first error of the rank that it names to gpuready explain
NCCL WARN Failed to find CUDA library libcuda.so
  pattern failed to find cuda library
  source  hiyouga/LlamaFactory#1169
  checks  libcuda.ldcache libcuda.loader libcuda.container
  cause   NCCL opens libcuda.so, the name without a version, and the loader finds none: no driver in this container, or
          a directory that ldconfig does not list.
  fix     in a container use --runtime=nvidia or --gpus all; on the host gpuready apply (ldso) adds the driver's
          directory to the linker cache; for one job set NCCL_CUDA_PATH to the directory of libcuda.so
NCCL INFO NET/Plugin: libnccl-net.so: cannot open shared object file
  pattern libnccl-net\.so: cannot open shared object file
  also    net/plugin ?: (?:could not find:? libnccl-net|no plugin found)
  general
  source  NVIDIA/nccl-tests#166
  cause   Not an error: no network plugin for NCCL is installed, so NCCL uses its own InfiniBand or socket code.
  fix     nothing; the line with Using network shows what NCCL uses
NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
  pattern gpu direct rdma disabled for (?:hca|gpu)
  source  NVIDIA/nccl#1537
  checks  rdma.gdr driver.peers
  cause   NCCL sends over this device through the memory of the host instead of directly from the GPU: nvidia_peermem
          is not registered with the RDMA driver, and dma-buf is not available. It works, and is slower.
  fix     use the open kernel modules and Linux 5.12 or newer (dma-buf); or load nvidia_peermem, and rebuild it after
          an installation of DOCA-OFED; /sys/kernel/mm/memory_peers shows whether it is registered
NCCL WARN NET/OFI Could not find any optimal provider (EFA)
  pattern net/ofi could(?: not|n't) find any optimal provider
  also    net/ofi disabling shared memory failed: protocol not available
  also    net/ofi ofi fi_getinfo\(\) call failed: no data available
  also    provider efa output empty list
  source  NVIDIA/nccl#229
  cause   The plugin of AWS finds no EFA device: the instance has none, the container was started without it, or
          libfabric in the image is older than the driver. NCCL then uses TCP.
  fix     ls /dev/infiniband/uverbs* on the host; start the container with --device for each of them and --ulimit
          memlock=-1; fi_info -p efa must list a provider
NCCL WARN NET/IB: Got CQE with error (devIndex=0, req=..., comm=..., wr_id=..., qp_num=...)
  pattern \bnet/ib ?: .{0,40}got cqe with error
  general
  source  NVIDIA/nccl#2219
  checks  rdma.ports fabric.ports gpu.xid
  cause   An RDMA transfer failed. The next line, 'Got completion from peer', says why (status), and on which ports.
  fix     pass that next line to gpuready explain
NCCL WARN NET/IB : mlx5_0:1 async fatal event on QP: local access violation work queue error
  pattern async fatal event on (?:qp|cq)
  also    communicator encountered a fatal error \(detected in
  source  NVIDIA/nccl#1905
  checks  rdma.gdr driver.peers rdma.ports gpu.xid
  cause   The NIC refused a transfer and closed the connection, although the link is up. Usually GPU memory was
          registered wrongly: the NIC's firmware, its driver, rdma-core and NCCL do not fit each other.
  fix     update the NIC's firmware, DOCA-OFED and the image's rdma-core and NCCL; to find the part, try
          NCCL_DMABUF_ENABLE=0, then NCCL_NET_GDR_LEVEL=LOC (no GPUDirect RDMA, slower)
NCCL INFO dlvsym failed on mlx5dv_reg_dmabuf_mr - libmlx5.so: undefined symbol
  pattern dlvsym failed on (?:mlx5dv|ibv)_
  also    libmlx5\.so[0-9.]{0,12}: undefined symbol: mlx5dv_
  source  sgl-project/sglang#23143
  cause   rdma-core in the image is older than this NCCL knows. NCCL goes on without that function, usually without
          harm. With status=IBV_WC_LOC_PROT_ERR(4) after it, the missing function is the cause.
  fix     nothing while all transfers work; else put a newer rdma-core into the image: that of DOCA-OFED, or of a newer
          distribution
NCCL WARN Error: network gIB not found.
  pattern nccl warn error: network \S{1,40} not found
  source  AI-Hypercomputer/gpu-recipes#5
  checks  nccl.config rdma.ports
  cause   NCCL_NET names a network (IB, Socket, or that of a plugin such as gIB, FasTrak, AWS Libfabric) that NCCL does
          not have: no such device, or the plugin libnccl-net.so was not loaded.
  fix     a NET/Plugin line before it says why the plugin was not loaded: its directory is not in LD_LIBRARY_PATH, or
          the image's glibc is too old; to go on without it, unset NCCL_NET
NCCL WARN NET/OFI Unable to register memory (type = 2) for device 4. RC: -22, Error: Invalid argument
  pattern net/ofi unable to register memory \(type = [0-9]\)
  source  aws/aws-ofi-nccl#584
  cause   The image's libfabric does not fit its NCCL: NCCL 2.19 and newer need the EFA installer 1.29 or newer.
  fix     install a current EFA installer in the image; until then FI_EFA_SET_CUDA_SYNC_MEMOPS=0
transport/shm.cc:590 NCCL WARN Cuda failure 217 'peer access is not supported between these two devices'
  pattern transport/shm\.cc:[0-9]{1,5}(?: \(?[a-z0-9_]{1,60}\)?)? nccl warn cuda failure (?:217 )?'peer access is not supported between these two devices
  source  NVIDIA/nccl#1838
  checks  gpu.p2p
  cause   NCCL shares host memory between ranks with CUDA functions (cuMem), and CUDA refuses that on GPUs without peer
          access, such as L4. The GPUs have no fault.
  fix     NCCL_CUMEM_HOST_ENABLE=0 for all ranks: NCCL then uses /dev/shm
transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'
  pattern transport/p2p\.cc:[0-9]{1,5}(?: \(?[a-z0-9_]{1,60}\)?)? nccl warn cuda failure (?:101 )?'invalid device ordinal
  also    cumemimportfromshareablehandle[^:]{0,60}cuda (?:failure|error) 101
  source  NVIDIA/nccl#1948
  cause   Two ranks of one node do not see each other's GPU, so NCCL cannot connect them directly: Slurm's
          --gpus-per-task, or one container for each rank, gives each rank only its own GPU.
  fix     give each rank all GPUs of the job on its node: --gpus-per-node with --gpu-bind=none, or one container for all
          ranks; or NCCL_P2P_DISABLE=1, which is slower
init.cc:426 NCCL WARN Cuda failure 'operation not supported'
  pattern \binit\.cc:[0-9]{1,5}(?: \(?[a-z0-9_]{1,60}\)?)? nccl warn cuda failure (?:801 )?'operation not supported
  source  NVIDIA/nccl#2101
  cause   NCCL cannot create a memory pool on this GPU. Usually the GPU is virtual (vGPU), and the hypervisor does not
          allow unified memory for it.
  fix     allow it in the hypervisor (VMware: pciPassthruX.cfg.enable_uvm=1), or give the machine the whole GPU;
          nvidia-smi -q shows the Virtualization Mode
Error while attaching to shared memory segment /dev/shm/nccl-... (size 0)
  pattern error while attaching to shared memory segment /dev/shm/nccl-[^(]{0,40}\(size 0\)
  source  NVIDIA/nccl#2190
  cause   /dev/shm is not full. The ranks chose different ways to share memory, because CUDA cannot use the memory of
          one NUMA node: that NUMA node has no memory, or no CPUs.
  fix     NCCL_CUMEM_HOST_ENABLE=0 for all ranks; numactl --hardware shows the NUMA node: fill its memory channels, or
          change the NUMA setting in the BIOS (NPS)
NCCL WARN CUDA some PFN functions not found in the library
  pattern cuda some pfn functions not found in the library
  general
  source  vllm-project/vllm#18731
  checks  image.compat libcuda.copies libcuda.container
  cause   The driver's libcuda is older than the CUDA of this NCCL. NCCL goes on without newer functions, such as cuMem
          and NVLS. This is rarely the cause of an error.
  fix     upgrade the driver (gpuready compat says to which), or use an image of an older CUDA; look for another WARN
ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ (lspci -vvv)
  pattern \bacsctl: (?:0x[0-9a-f]{1,4} ?= ?)?srcvalid\+
  source  NVIDIA/nccl#2079
  checks  gpu.p2p
  cause   PCIe ACS is on for this bridge. With ReqRedir+, data between two GPUs, or between GPU and NIC, goes through
          the CPU and its IOMMU. NCCL is then slow, or hangs in its first collective.
  fix     on bare metal switch ACS off in the BIOS, or until the next boot with setpci -s BRIDGE ECAP_ACS+6.w=0000; a
          virtual machine needs ACS; until then NCCL_P2P_DISABLE=1 avoids the hang
ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives
  pattern watchdog got stuck for [0-9]{1,6} seconds without making progress
  also    heartbeat monitor timed out! process will be terminated
  also    processgroupnccl preparing to dump debug info
  general
  source  modelscope/ms-swift#6544
  checks  gpu.xid nccl.torch
  cause   A call to CUDA or NCCL in this process does not return: another rank ended or hangs, a GPU has a fault, or
          another thread of the program holds Python's lock.
  fix     look for an Xid in dmesg, and for the first error in the logs of all ranks; py-spy dump --pid PID shows where
          a process waits; TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC changes the limit
Exception (either an error or timeout) detected by watchdog at work: 4486 / Process group watchdog thread terminated with exception
  pattern exception \(either an error or timeout\) detected by watchdog
  also    process group watchdog thread terminated with exception
  also    failure detected by watchdog at work sequence id
  general
  source  verl-project/verl#1158
  checks  gpu.xid nccl.torch
  cause   PyTorch's watchdog ends this process, because a collective failed or did not finish. The text after it, or an
          earlier line, names the error.
  fix     pass that text to gpuready explain; of all ranks, the one with the lowest 'last completed NCCL work' is stuck
          or ended
PRTE has lost communication with a remote daemon. (mpirun)
  pattern [op]rte has lost communication with a remote daemon
  also    \b(?:[op]rte|prterun) was unable to reliably start one or more daemons
  source  NVIDIA/nccl-tests#299
  cause   mpirun cannot start its daemon on the other host, or lost it: no ssh server on that port (usual in
          containers), no login without a password, a firewall, or mpirun is missing there. NCCL has not started yet.
  fix     ssh -p PORT HOST true must work from the first host without a question; another port: mpirun --prtemca
          plm_ssh_args '-p PORT' (Open MPI 4: --mca plm_rsh_args); a file of hosts goes after --hostfile, not after -H
There are not enough slots available in the system to satisfy the N slots (mpirun)
  pattern not enough slots available in the system to satisfy the
  source  dstackai/dstack#2451
  cause   mpirun shall start more processes than its hosts have slots. A host of -H without a number has one slot, and
          a host file without slots= counts CPU cores, or what Slurm gave the job.
  fix     one slot for each GPU: -H host1:8,host2:8, or 'host1 slots=8' in the host file; under Slurm ask for
          --ntasks-per-node=8; --oversubscribe only for a test
gloo/transport/tcp/device.cc ifa != nullptr. Unable to find address for: ^lo
  pattern ifa != nullptr.{0,5}unable to find address for
  source  aws-samples/aws-do-eks#51
  cause   GLOO_SOCKET_IFNAME names an interface that this host does not have, or that has no address. Gloo takes exact
          names only: a prefix or NCCL's ^lo,docker is no name to it.
  fix     ip -4 route get ADDRESS-OF-THE-FIRST-HOST shows the interface after dev: set GLOO_SOCKET_IFNAME to that
          name, on each host its own
Error to get IB device: No valid EFA devices found (aws-efa-k8s-device-plugin)
  pattern error to get ib device: .{0,10}no valid efa devices found
  also    no valid efa devices found
  source  aws/sagemaker-hyperpod-cli#367
  cause   The EFA device plugin runs on a node without EFA: its instance type has none, or the instance was started
          without an EFA interface.
  fix     ls /sys/class/infiniband shows the devices; start the instance with EFA interfaces, or restrict the DaemonSet
          to instance types that have EFA (supportedInstanceLabels)
efa_device_construct_gid failed for device_idx 0, err=-2 (libfabric, provider efa)
  pattern efa_device_construct_gid failed for device_idx [0-9]{1,3}.{0,160}provider efa output empty list
  also    efa_device_construct_gid failed for device_idx
  also    efa_device_construct_gid\(\):[0-9]{1,4}<warn> ibv_open_device failed
  source  ofiwg/libfabric#12708
  cause   libfabric's provider efa could not open a device of /sys/class/infiniband and then gives up on all. Such a
          device may be a ConnectX of the host (mlx5) whose /dev/infiniband/uverbs file is not in the container.
  fix     ibv_devinfo shows which device cannot be opened; request vpc.amazonaws.com/efa and do not mount all of
          /dev/infiniband from the host; or use a libfabric that skips such devices
gloo/transport/tcp/unbound_buffer.cc: Timed out waiting 1800000ms for recv operation to complete
  pattern timed out waiting [0-9]{1,9} ?ms for (?:recv|send) operation
  general
  source  vllm-project/vllm#45092
  checks  gpu.xid nccl.ports
  cause   This rank waited in a collective of Gloo, and another rank did not come: it ended, hangs, or does something
          else. At the start of a program, the two may not reach each other.
  fix     look for the first error in the logs of all ranks; py-spy dump --pid PID shows where a process waits; at the
          start set GLOO_SOCKET_IFNAME=INTERFACE on all hosts
TCPStore.cpp: [c10d] recvValue failed on SocketImpl(...): Connection reset by peer
  pattern \[c10d\] (?:recvvalue|recvvaluewithtimeout|sendbytes|recvvector) failed on socketimpl
  also    failed to check the .{0,3}should dump.{0,3} flag on tcpstore
  general
  source  meta-pytorch/torchcomms#2358
  checks  nccl.torch
  cause   The process with the store of this job, usually rank 0, closed the connection: mostly it ended before this
          rank. Once at the start it is harmless, because PyTorch tries again.
  fix     read the log of rank 0, and the first error of all ranks: the cause is there
mca_coll_ucc_init_ctx() UCC library doesn't support MPI_THREAD_MULTIPLE (Open MPI)
  pattern mca_coll_ucc_init_ctx\(\) ucc library doesn't support mpi_thread_multiple
  general
  source  NVIDIA/TensorRT-LLM#4668
  cause   Open MPI cannot use UCC: this UCC was built without support for threads. Open MPI then takes its other
          collectives. If the program ends, another message names the reason.
  fix     OMPI_MCA_coll_ucc_enable=0 switches UCC off, as newer TensorRT-LLM does itself; or use a newer image
orte_init failed: getting local rank failed --> Returned value No permission (-17) instead of ORTE_SUCCESS (Open MPI)
  pattern getting local rank failed --> returned value no permission \(-17\)
  also    orte_ess_init failed --> returned value no permission \(-17\)
  also    rte_init failed --> returned "?no permission"? \(-17\)
  source  triton-inference-server/tensorrtllm_backend#712
  cause   Most often a process that an MPI process started begins MPI, too, with the variables of its parent (OMPI_*,
          PMIX_*): Triton's Python backend below mpirun, multiprocessing with spawn, subprocess. Open MPI refuses it.
  fix     start the child without the variables OMPI_* and PMIX_*, or do not import mpi4py and tensorrt_llm in it; for
          Triton's Python backend PMIX_MCA_gds=hash helped
NCCL WARN NET/IB: read failed in ncclIbRoceGetVersionNum: Invalid argument
  pattern read failed in ncclibrocegetversionnum
  also    check failed: ncclibrocegetversionnum
  source  NVIDIA/nccl#1573
  checks  nccl.gid
  cause   NCCL before 2.26, and UCCL with the same code, stops at an empty entry of the NIC's GID table. In a container
          with its own RoCE interface, the first entries are empty.
  fix     use NCCL 2.26 or newer; until then fix the index: show_gids in the container lists it (RoCE v2, IPv4), then
          NCCL_IB_GID_INDEX=INDEX (UCCL: UCCL_IB_GID_INDEX)
""",
    LAST_ERROR=_LAST_ERROR,
)
