# ruff: noqa: E501  (a table: sentences and patterns stay whole)
"""Messages of NCCL, torch.distributed, UCX, RDMA and its tools."""

from __future__ import annotations

from gpuready.messages.entry import Message

_NCCL = "docs.nvidia.com/deeplearning/nccl/user-guide (troubleshooting)"
_RESULTS = "docs.nvidia.com/deeplearning/nccl/user-guide (ncclResult_t)"
_LAST_ERROR = (
    "if the text has no line after 'Last error:', add that line; if it has one, gpuready does not know it: run all "
    "ranks with NCCL_DEBUG=WARN, and pass the first WARN line of each rank to gpuready explain"
)

MESSAGES = (
    Message(
        "NCCL WARN Call to ibv_modify_qp failed with error Invalid argument",
        r"ibv_modify_qp failed with (?:error )?invalid argument",
        _NCCL,
        ("nccl.gid", "nccl.hca", "fabric.ports"),
        "NCCL uses a GID that does not fit the other side: link-local, RoCE v1, empty, or of another network.",
        "unset NCCL_IB_GID_INDEX (NCCL 2.21 and newer choose the GID), or set nccl: {subnets: [...]} and run "
        "gpuready apply; gpuready nccl -i INVENTORY prints the right settings",
    ),
    Message(
        "NCCL WARN Call to ibv_modify_qp failed with error Connection timed out / No such device",
        r"ibv_modify_qp failed with (?:error )?[0-9]{0,3} ?(?:connection timed out|network is unreachable|no such device|no data available)",
        "NVIDIA/nccl#1405",
        ("fabric.ports", "nccl.gid", "rdma.ports"),
        "The RDMA port cannot reach the other host: no route or neighbour for the GID's address, or the port is down.",
        "gpuready fabric -i INVENTORY tests each pair of ports and says which fails; check address, route and VLAN of "
        "that port",
    ),
    Message(
        "ibv_modify_qp failed",
        r"ibv_modify_qp failed",
        "NVIDIA/nvshmem#42",
        ("nccl.gid", "nccl.hca", "rdma.ports", "fabric.ports"),
        "The two RDMA ports could not be connected: most often a wrong GID, no route between them, or a port that is "
        "down. This text does not say which.",
        "pass the whole line of NCCL_DEBUG=WARN, which ends with the error, to gpuready explain; gpuready fabric -i "
        "INVENTORY tests each pair of ports",
    ),
    Message(
        "ibv_reg_mr failed: Cannot allocate memory / Please set max locked memory (ulimit -l) (NCCL, UCX)",
        r"ibv_(?:exp_)?(?:reg_(?:dmabuf_)?mr|create_(?:qp|srq|cq))[^:]{0,60} failed(?: with error|:) cannot allocate memory",
        "NVIDIA/nccl-tests#206",
        ("memlock.container", "memlock.login", "memlock.docker"),
        "RDMA locks its buffers and queues in memory, and the limit of locked memory (ulimit -l) is too low, often 8 MiB.",
        "gpuready apply (memlock) raises the limit for logins, containers and slurmd; then log in again and recreate "
        "the container; for one container: --ulimit memlock=-1",
        also=(r"call to ibv_create_(?:qp|cq) failed", r"please set max locked memory"),
    ),
    Message(
        "NCCL WARN Call to ibv_open_device failed",
        r"ibv_open_device failed",
        "NVIDIA/nccl#451",
        ("rdma.netns", "memlock.container", "nccl.hca"),
        "The container sees the RDMA device in sysfs, but not its device node.",
        "start the container with --device=/dev/infiniband (gpuready docker-args prints the options), or in exclusive "
        "mode gpuready rdma attach",
        also=(r"net/ib ?: unable to open device", r"ibv_open_device\([^)]{0,30}\) failed: no such file"),
    ),
    Message(
        "NET/IB : No device found",
        r"net/ib ?: no device found",
        "NVIDIA/nccl#941",
        ("rdma.netns", "nccl.hca", "rdma.ports"),
        "NCCL sees no RDMA port and uses TCP: the container has no /dev/infiniband, NCCL_IB_HCA matches no port, no port "
        "is up, or the node has no RDMA.",
        "start the container with --device=/dev/infiniband and --ulimit memlock=-1 (gpuready docker-args); gpuready "
        "nccl -i INVENTORY prints NCCL_IB_HCA",
    ),
    Message(
        "NCCL INFO Using network Socket",
        r"using network socket",
        "NVIDIA/nccl#941",
        ("rdma.netns", "nccl.hca", "rdma.ports", "memlock.container"),
        "NCCL uses TCP instead of RDMA. On nodes without RDMA this is normal.",
        "with RDMA: start the container with --device=/dev/infiniband and --ulimit memlock=-1, and look for the WARN "
        "or NET/IB line before it",
    ),
    Message(
        "NCCL INFO Failed to open libibverbs.so[.1]",
        r"failed to open libibverbs\.so",
        "InternLM/lmdeploy#3286",
        ("nccl.hca", "rdma.ports"),
        "libibverbs is not in the image, so NCCL cannot use RDMA and uses TCP.",
        "install libibverbs1 and ibverbs-providers (rdma-core) in the image",
    ),
    Message(
        "NCCL WARN NET/IB : Got completion with error 12, vendor err 129",
        r"got completion (?:from peer .{0,80})?with (?:error|status=?) ?12\b",
        "NVIDIA/nccl#902",
        ("rdma.ports", "fabric.ports", "fabric.write_bw", "nccl.gid"),
        "A transfer got no answer in time: the two ports cannot reach each other, packets are lost, or the other rank "
        "ended.",
        "gpuready fabric -i INVENTORY tests each pair of ports; look at the other ranks' logs first; NCCL_IB_TIMEOUT=22 "
        "helps only against congestion",
    ),
    Message(
        "NCCL WARN NET/IB : Got completion with error 5",
        r"got completion (?:from peer .{0,80})?with (?:error|status=?) ?[0-9]{1,2}\b",
        "NVIDIA/nccl#1664",
        ("rdma.ports", "fabric.ports", "gpu.xid"),
        "An RDMA transfer failed (5: flushed after an earlier error, 4: memory protection, 10, 11 and 13: the other "
        "side refused it).",
        "read the first such line of all ranks, because the later ones only follow from it; then gpuready fabric -i "
        "INVENTORY",
    ),
    Message(
        "NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
        r"got async (?:event|fatal event) ?: ?(?:port error|local catastrophic error|lid change|gid table change)",
        _NCCL,
        ("rdma.ports", "fabric.ports"),
        "The RDMA port went down or changed its address while the job ran.",
        "check cable, transceiver and switch port; dmesg and rdma.ports of gpuready verify show its state",
    ),
    Message(
        "NCCL WARN Bootstrap : no socket interface found",
        r"bootstrap ?: no socket interface found",
        _NCCL,
        ("nccl.ports", "nccl.grammar"),
        "NCCL_SOCKET_IFNAME names no interface that is up, in this container or host or in that of another rank.",
        "unset NCCL_SOCKET_IFNAME, or name one that ip -br addr shows; in a container, the names differ from the "
        "host's",
        also=(r"with family [0-9]{1,6} is neither af_inet",),
    ),
    Message(
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-",
        r"error(?:: failed to extend| while creating shared memory segment) (?:/dev/shm/)?nccl-",
        "NVIDIA/nccl-tests#166",
        ("docker.config",),
        "The container's /dev/shm is too small for NCCL: Docker gives 64 MiB.",
        "docker run --shm-size=8g or --ipc=host; for all new containers: runtimes.docker.shm_size in the spec, then "
        "gpuready apply; on Kubernetes mount an emptyDir with medium: Memory",
        also=(r"call to posix_fallocate failed ?: no space left on device",),
    ),
    Message(
        "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-",
        r"error while attaching to shared memory segment /dev/shm/nccl-",
        "NVIDIA/nccl#1589",
        ("docker.config",),
        "A rank does not find the segment that another rank of this host created: the ranks do not share /dev/shm, "
        "or it was full.",
        "run all ranks of a host in one container, or give them --ipc=host; make /dev/shm larger (--shm-size)",
    ),
    Message(
        "NCCL WARN Cuda failure",
        r"nccl warn .{0,20}cuda failure",
        "NVIDIA/nccl-tests#24",
        ("gpu.xid", "driver.match"),
        "NCCL called CUDA, and CUDA returned an error. The text after 'Cuda failure' names that error.",
        "pass the text after 'Cuda failure' to gpuready explain, and look for an Xid in dmesg",
        general=True,
    ),
    Message(
        "NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device",
        r"duplicate gpu detected",
        _NCCL,
        ("gpu.count",),
        "Two ranks use the same GPU: more processes than GPUs, or the program does not choose its GPU by LOCAL_RANK.",
        "start as many processes as the container has GPUs, and call torch.cuda.set_device(LOCAL_RANK)",
    ),
    Message(
        "Unconvertible NCCL type",
        r"unconvertible nccl type",
        "docs.nvidia.com/deeplearning/nccl/user-guide (ncclRemoteError)",
        ("gpu.torch", "wheels.works", "nccl.torch"),
        "This PyTorch does not know ncclRemoteError, which NCCL returns since 2.13.4 when another rank is lost. The real "
        "error is on that rank.",
        "read the log of the rank that ended first; use a PyTorch whose build knows NCCL 2.13.4 or newer",
    ),
    Message(
        "ncclUnhandledCudaError: unhandled cuda error",
        r"unhandled cuda error",
        _RESULTS,
        ("gpu.xid", "driver.match"),
        "NCCL called CUDA, and CUDA returned an error. The line after 'Last error:' names that error.",
        _LAST_ERROR,
        code="nccl 1",
        general=True,
    ),
    Message(
        "ncclSystemError: unhandled system error",
        r"unhandled system error",
        _RESULTS,
        ("nccl.ports", "memlock.container", "rdma.ports", "docker.config"),
        "A call of NCCL to the system, a socket or libibverbs failed. Often there is no route between the hosts, "
        "/dev/shm is full, or the limit of locked memory is too low.",
        _LAST_ERROR,
        code="nccl 2",
        general=True,
    ),
    Message(
        "ncclInternalError: internal error",
        r"internal error(?: - please report this issue to the nccl developers|, nccl version)",
        "NVIDIA/nccl#1092",
        ("nccl.ports", "rdma.ports", "gpu.xid"),
        "NCCL met a state that it did not expect. NCCL 2.18 and older also report a lost connection to another rank as "
        "an internal error.",
        _LAST_ERROR,
        code="nccl 3",
        general=True,
    ),
    Message(
        "ncclInvalidArgument: invalid argument",
        r"invalid argument(?: \(run with nccl_debug|, nccl version)",
        _RESULTS,
        (),
        "The program, or PyTorch, passed a wrong argument to NCCL. The node is rarely the cause.",
        _LAST_ERROR,
        code="nccl 4",
        general=True,
    ),
    Message(
        "ncclInvalidUsage: invalid usage",
        r"invalid usage(?: \(run with nccl_debug|, nccl version)",
        _RESULTS,
        ("gpu.count",),
        "The program uses NCCL in a way that NCCL does not support, most often two ranks on one GPU.",
        _LAST_ERROR,
        code="nccl 5",
        general=True,
    ),
    Message(
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely",
        r"remote process exit(?:ed|ing)(?: prematurely)?",
        _RESULTS,
        ("gpu.xid", "rdma.ports", "nccl.torch"),
        "Another rank ended, or the connection to it broke. The cause is on that rank, not here.",
        "read the log of the rank that ended first; gpuready verify shows an Xid or a port that went down there",
        code="nccl 6",
        general=True,
    ),
    Message(
        "ncclInProgress: operation in progress",
        r"nccl operation in progress",
        _RESULTS,
        (),
        "Not an error: a call that does not block has not finished yet.",
        "nothing; the program asks again until the call has finished",
        code="nccl 7",
        general=True,
    ),
    Message(
        "Watchdog caught collective operation timeout: WorkNCCL(...) ran for ... milliseconds before timing out",
        r"watchdog caught collective operation timeout",
        "pytorch/pytorch#118369",
        ("gpu.xid", "rdma.ports", "fabric.write_bw", "nccl.torch"),
        "A collective did not finish in time: one rank is stuck, ended or runs another part of the program, or the "
        "network lost packets.",
        "find the rank whose 'last completed' number is the lowest; look for an Xid there; gpuready fabric -i INVENTORY "
        "tests the network",
    ),
    Message(
        "socketStartConnect: Connect to IP<port> failed : Connection refused / Software caused connection abort",
        r"socket(?:startconnect|pollconnect|progressopt|tryaccept|finalizeaccept)[^a-z].{0,120}(?:connection refused|timed out|no route to host|connection reset|connection closed|software caused|wrong type)",
        "NVIDIA/nccl-tests#188",
        ("nccl.ports", "nccl.grammar", "fabric.tcp_connect"),
        "NCCL's own TCP connection between two hosts failed: a firewall, a wrong interface (docker0, an address that "
        "the other host cannot reach), or the other rank ended.",
        "set NCCL_SOCKET_IFNAME to the interface of the right network (gpuready nccl -i INVENTORY prints it); open its "
        "ports between the hosts",
        also=(
            r"\bnet ?: connect to \S{1,120} failed ?: (?:connection refused|connection timed out|no route to host|network is unreachable|software caused)",
        ),
    ),
    Message(
        "NCCL WARN socketTryAccept: Accept failed: Too many open files",
        r"(?:sockettryaccept|\bnccl warn|\bsocket\.h[:(]).{1,160}too many open files",
        "NVIDIA/nccl#127",
        (),
        "A rank has reached its limit of open files (ulimit -n), often 1024. NCCL opens several sockets for each other "
        "rank.",
        "ulimit -n 1048576 before the job starts; docker run --ulimit nofile=1048576; for Slurm, LimitNOFILE= in the "
        "unit of slurmd",
        also=(r"too many open files.{1,60}nccl failure", r"^accept failed:? too many open files"),
    ),
    Message(
        "NCCL WARN Message truncated : received 1024 bytes instead of 256",
        r"message truncated ?: (?:received|receiving) [0-9]{1,12} bytes instead of",
        "NVIDIA/nccl#1273",
        ("nccl.config", "wheels.works"),
        "Two ranks do not do the same: the program calls other collectives or sizes on one of them, or a host has "
        "another NCCL version or other NCCL_ variables.",
        "compare the NCCL version and the NCCL_ variables of all hosts; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL prints "
        "the calls of each rank, and the first one that differs is the fault",
        also=(r"collective mismatch error, local size",),
    ),
    Message(
        "Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated; use TORCH_NCCL_ASYNC_ERROR_HANDLING instead",
        r"environment variable nccl_[a-z_]{3,40} is deprecated; use torch_nccl_",
        "pytorch/pytorch#114077",
        ("nccl.torch",),
        "PyTorch 2.2 renamed its own variables that began with NCCL_. It still reads the old names, with this warning.",
        "set the new name only; before PyTorch 2.2, only the old name works",
    ),
    Message(
        "The client socket has failed to connect to [host]:29500 / Connection refused (torch.distributed)",
        r"client socket has (?:failed to connect to|timed out after)",
        "docs.pytorch.org/docs/stable/elastic/run",
        ("fabric.tcp_connect",),
        "torch.distributed cannot reach the rank that runs the rendezvous: a wrong MASTER_ADDR or port, a firewall, or "
        "that rank did not start.",
        "check MASTER_ADDR and MASTER_PORT on every host; gpuready nccl -i INVENTORY --launch prints a torchrun line "
        "for each host",
    ),
    Message(
        "The server socket has failed to listen on any local network address / EADDRINUSE (torch.distributed)",
        r"server socket has failed to (?:listen on|bind to) ",
        "meta-pytorch/torchtune#1025",
        (),
        "torch.distributed cannot open its port, 29500 by default. Another program of this host already uses it "
        "(EADDRINUSE, errno 98): a second job, or a rank that was left over.",
        "ss -ltnp 'sport = :29500' names that program; end it, or give each job its own --master-port; for several jobs "
        "on one host, torchrun --rdzv-backend=c10d --rdzv-endpoint=localhost:0 takes a free port",
    ),
    Message(
        "DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        r"timed out after [0-9]{1,6} seconds waiting for (?:clients|workers)\. [0-9]{1,6}/[0-9]{1,6} (?:clients|workers) joined",
        "OpenRLHF/OpenRLHF#1040",
        ("fabric.tcp_connect",),
        "Rank 0 waited for all ranks, and some did not connect. They did not start, have another MASTER_ADDR or port, or "
        "a firewall is between the hosts.",
        "start the missing ranks: the second number is WORLD_SIZE; read their logs; gpuready nccl -i INVENTORY --launch "
        "prints a torchrun line for each host, and gpuready fabric -i INVENTORY --tests tcp tests the network",
    ),
    Message(
        "RendezvousConnectionError: The connection to the C10d store has failed",
        r"the connection to the c10d store has failed",
        "pytorch/pytorch#67581",
        ("fabric.tcp_connect",),
        "torchrun has no connection to the host of --rdzv-endpoint: a wrong name or port, a firewall, or the torchrun "
        "there has ended. The exception before this one names the error.",
        "pass the exception before it to gpuready explain; use the same --rdzv-endpoint on all hosts, and an own port "
        "and --rdzv-id for each job",
        general=True,
    ),
    Message(
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        r"\brendezvoustimeouterror\b",
        "pytorch/pytorch#80772",
        ("fabric.tcp_connect",),
        "torchrun waited for the torchrun of the other hosts, 600 s by default, and fewer than --nnodes came: one did not "
        "start or ended, has another --rdzv-endpoint or --rdzv-id, or cannot reach the endpoint.",
        "read the log of torchrun on the other hosts, and pass its first error to gpuready explain; gpuready nccl -i "
        "INVENTORY --launch prints a torchrun line for each host",
        general=True,
    ),
    Message(
        "[c10d] The IPv6 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -3 - Temporary failure in name resolution)",
        r"network addresses of \([^)]{1,200}\) cannot be retrieved \(gai error",
        "nyu-systems/Grendel-GS#9",
        ("fabric.tcp_connect",),
        "This host cannot resolve a host name that torchrun needs: that of --rdzv-endpoint or MASTER_ADDR, or its own. "
        "With rendezvous c10d, the hosts connect to the own name of the host of rank 0, even if the endpoint is an address.",
        "getent hosts NAME on each host, also for its own name (hostname); add all hosts to DNS or /etc/hosts, or start "
        "torchrun with --local-addr=ADDRESS",
        also=(
            r"elastic/rendezvous/.{1,900}gaierror: ",
            r"\bhost not found: (?:temporary failure in name resolution|name or service not known)",
        ),
    ),
    Message(
        "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store",
        r"is setting up nccl communicator and retr(?:ie|ei)ving ncclunique",
        "hiyouga/LlamaFactory#2135",
        ("gpu.xid", "fabric.tcp_connect"),
        "This rank waited for rank 0, which starts the NCCL communicator. With 'Connection reset by peer', rank 0 has "
        "ended; with a timeout, it is late, stuck or in another part of the program.",
        "read the log of rank 0, and pass its first error to gpuready explain",
        general=True,
    ),
    Message(
        "Some NCCL operations have failed or timed out",
        r"some nccl operations have failed or timed out",
        "EvolvingLMMs-Lab/open-r1-multimodal#20",
        ("gpu.xid", "rdma.ports", "nccl.torch"),
        "A collective failed or did not finish, so PyTorch ends this process. Other lines name the collective and the "
        "error.",
        "look for 'Watchdog caught' and 'NCCL WARN' in the logs of all ranks; pass the first one to gpuready explain",
        general=True,
    ),
    Message(
        "[c10d] The hostname of the client socket cannot be retrieved. err=-3",
        r"hostname of the client socket cannot be retrieved",
        "pytorch/pytorch#159007",
        ("fabric.tcp_connect",),
        "Only a warning: neither DNS nor /etc/hosts has a name for the address of the other host.",
        "ignore it, or add the hosts to DNS or /etc/hosts; torchrun's rendezvous c10d also needs this host's own name",
        general=True,
    ),
    Message(
        "Received a dump signal due to a collective timeout / Observed flight recorder dump signal from another rank",
        r"(?:received a|flight recorder) dump signal",
        "pytorch/pytorch#150652",
        ("gpu.xid", "nccl.torch"),
        "A rank failed or waited too long, and asks all ranks for a dump of PyTorch's flight recorder. Each rank waits "
        "before it ends: 60 s by default, also if the recorder is off.",
        "pass the first error of that rank to gpuready explain; TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC=1000 makes it 4 s",
        general=True,
    ),
    Message(
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError / failed (exitcode: -9) local_rank: 0",
        r"multiprocessing\.errors\.childfailederror",
        "showlab/EgoVLP#21",
        ("gpu.xid",),
        "torchrun says that a rank ended, not why. Exit code -9: the rank was killed, often by the kernel because the "
        "host's memory was full (OOM killer). -11: it crashed. -15: it was stopped because another rank had failed.",
        "look at the first rank that failed ('Root Cause' names it), and pass its own error to gpuready explain; for -9, "
        "look for 'Killed process' in dmesg",
        general=True,
        also=(r"failed \(exitcode: -?[0-9]{1,3}\) local_rank: ",),
    ),
    Message(
        "NCCL version mismatch / Mismatched NCCL version detected",
        r"mismatched nccl version detected",
        _NCCL,
        ("wheels.works",),
        "The ranks run different NCCL versions.",
        "use the same image or environment on all hosts",
    ),
    Message(
        "UCX ERROR ibv_create_srq() failed: Operation not supported",
        r"ibv_create_srq(?:\(\))?[^:]{0,60}failed: operation not supported",
        "openucx/ucx#9736",
        (),
        "UCX needs shared receive queues, and this device has none (Intel E810, irdma). MPI continues over TCP; NCCL "
        "does not use UCX and is not affected.",
        "nothing for NCCL; UCX_TLS=tcp,self,sm in the environment of the MPI job keeps UCX off the device",
    ),
    Message(
        "UCX ERROR no active messages transport to ...: Destination is unreachable",
        r"no (?:active messages|remote registered memory access|auxiliary) transport to",
        "openucx/ucx#4742",
        ("rdma.ports", "rdma.netns"),
        "UCX has no common transport to the other process: UCX_TLS excludes it, or RDMA and TCP do not work there.",
        "unset UCX_TLS and UCX_NET_DEVICES to try; ucx_info -d shows what this host has; gpuready verify checks the "
        "ports",
    ),
    Message(
        "UCX WARN transport 'ib' is not available, please use one or more of",
        r"transport '?[a-z0-9_,]{2,30}'? is not available, please use one or more of",
        "openucx/ucx#8684",
        ("rdma.ports", "rdma.netns"),
        "UCX_TLS selects RDMA, but UCX finds no RDMA device: not in the container, down, or not on this node.",
        "start the container with --device=/dev/infiniband; ibv_devices shows what is visible",
    ),
    Message(
        "UCX ERROR ibv_reg_mr failed: Bad address",
        r"ibv_reg_mr\S{0,80} failed: bad address",
        "openucx/ucx#8049",
        ("rdma.gdr",),
        "GPU memory was registered with the NIC, but GPUDirect RDMA does not work: no nvidia_peermem and no dma-buf.",
        "install the open kernel modules (dma-buf, Linux 5.12 or newer), or load nvidia_peermem",
    ),
    Message(
        "Couldn't allocate MR; failed to create mr (perftest)",
        r"couldn't (?:allocate|create) mr",
        "zrlio/softiwarp#23",
        ("memlock.login", "rdma.gdr"),
        "perftest could not register its buffer: the limit of locked memory is too low, or with --use_cuda GPUDirect "
        "RDMA is missing.",
        "check ulimit -l (gpuready apply raises it); with --use_cuda see the check rdma.gdr",
    ),
    Message(
        "Port number 1 state is Down (perftest)",
        r"port number [0-9]{1,3} state is down",
        "linux-rdma/perftest",
        ("rdma.ports", "fabric.ports"),
        "The RDMA port is down.",
        "check cable, transceiver and switch port; ip link set INTERFACE up; gpuready verify shows each port",
    ),
    Message(
        "No IB devices found / No RDMA devices found (ibv_devinfo, ib_write_bw)",
        r"\bno (?:ib|rdma) devices? found",
        "linux-rdma/rdma-core (ibv_devinfo)",
        ("rdma.netns", "rdma.ports"),
        "No RDMA device is visible here: in exclusive mode it is in another network namespace, the container has no "
        "/dev/infiniband, or the driver of the NIC is not loaded.",
        "in a container: --device=/dev/infiniband, or in exclusive mode gpuready rdma attach; on the host: rdma link "
        "and dmesg",
    ),
    Message(
        "rdma dev set netns: error: Operation not supported",
        r"rdma dev set .{1,160}operation not supported",
        "k8snetworkplumbingwg/rdma-cni#39",
        ("rdma.netns", "rdma.conflict"),
        "The RDMA subsystem runs in shared mode, in which a device cannot be moved.",
        "rdma: {netns_mode: exclusive} in the spec and gpuready apply; the mode changes only while no other network "
        "namespace exists, or by a reboot",
    ),
    Message(
        "rdma system set netns exclusive: error: Device or resource busy",
        r"rdma system set netns .{1,80}device or resource busy",
        "k8snetworkplumbingwg/rdma-cni#37",
        ("rdma.netns", "rdma.conflict"),
        "The mode changes only while there is no network namespace but the host's; a container or service has one.",
        "gpuready apply writes the mode for the next boot and reboots with your permission (maintenance: {reboot: "
        "idle}, --allow-disruption reboot)",
    ),
    Message(
        "RDMA_CM_EVENT_REJECTED, error 8 (rping)",
        r"rdma_cm_event_rejected",
        "linux-rdma/rdma-core (rping)",
        ("fabric.rping",),
        "The other host answers, but no RDMA server listens there.",
        "start the server first (rping -s), and use its port",
    ),
    Message(
        "RDMA_CM_EVENT_ADDR_ERROR, error -110 (rping)",
        r"rdma_cm_event_(?:addr|route|unreachable)(?:_error)?",
        "linux-rdma/rdma-core (rping)",
        ("fabric.rping", "rdma.ports"),
        "No host answers for that address on the RDMA network: a wrong address, no route, or the port is down.",
        "ping the address from that interface; gpuready fabric -i INVENTORY tests each pair",
    ),
    Message(
        "mlx5_core: Detected insufficient power on the PCIe slot",
        r"detected insufficient power on the pcie slot",
        "torvalds/linux (drivers/net/ethernet/mellanox/mlx5)",
        ("rdma.ports",),
        "The slot gives the NIC less power than it asks for; it may run slower or drop its link.",
        "have the slot's power setting and riser checked, or put the NIC into another slot",
    ),
    Message(
        "mlx5_core: Port module event[error]: module 0, Cable error",
        r"port module event\[error\]: module",
        "torvalds/linux (drivers/net/ethernet/mellanox/mlx5/core/events.c)",
        ("rdma.ports",),
        "The NIC refuses the cable or transceiver in this port, or it failed. The end of the line says why, such as High "
        "Temperature, Power budget exceeded, or Bad or shorted cable/module.",
        "reseat or replace the cable or transceiver; for High Temperature check the air flow; ethtool -m INTERFACE shows "
        "what is plugged in",
    ),
    Message(
        "mlx5_cmd_out_err: ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2)",
        r"access_reg\(0x805\) op_mod\(0x[0-9a-f]{1,4}\) failed, status bad operation",
        "leptonai/gpud#1164",
        (),
        "Usually harmless: a monitoring program reads the counters of a port that the firmware reserves, such as that of the "
        "ConnectX-7 for the NVLink switches of a DGX or HGX B200. The line begins with its PCI address.",
        "exclude that device from the program that reads it (gpud: --infiniband-exclude-devices; node_exporter 1.12 still "
        "reads excluded ones: --no-collector.infiniband); the port needs no repair",
    ),
    Message(
        "mlx5_core: available PCIe bandwidth, limited by",
        r"available pcie bandwidth, limited by",
        "torvalds/linux (drivers/pci)",
        ("rdma.ports", "gpu.pcie"),
        "The card runs with fewer lanes or a slower generation than it can.",
        "put it into a slot with enough lanes, or reseat it; lspci -vv shows LnkSta and LnkCap",
    ),
    Message(
        "NCCL WARN socketProgress: Connection closed by remote peer",
        r"(?:socketprogress|\bnet) ?: connection closed by remote peer",
        "NVIDIA/nccl#1232",
        ("gpu.xid", "nccl.ports"),
        "Another rank closed the connection: it ended or failed. The cause is on that rank, not here.",
        "run all ranks with NCCL_DEBUG=WARN, and pass the first error of the rank that it names to gpuready explain",
        also=(r"\bnet ?: call to (?:recv|send) .{0,80} failed ?: (?:connection reset|broken pipe)",),
    ),
    Message(
        "NCCL WARN Failed to find CUDA library libcuda.so",
        r"failed to find cuda library",
        "hiyouga/LlamaFactory#1169",
        ("libcuda.ldcache", "libcuda.loader", "libcuda.container"),
        "NCCL opens libcuda.so, the name without a version, and the loader finds none: no driver in this container, "
        "or a directory that ldconfig does not list.",
        "in a container use --runtime=nvidia or --gpus all; on the host gpuready apply (ldso) adds the driver's "
        "directory to the linker cache; for one job set NCCL_CUDA_PATH to the directory of libcuda.so",
    ),
    Message(
        "NCCL INFO NET/Plugin: libnccl-net.so: cannot open shared object file",
        r"libnccl-net\.so: cannot open shared object file",
        "NVIDIA/nccl-tests#166",
        (),
        "Not an error: no network plugin for NCCL is installed, so NCCL uses its own InfiniBand or socket code.",
        "nothing; the line with Using network shows what NCCL uses",
        general=True,
        also=(r"net/plugin ?: (?:could not find:? libnccl-net|no plugin found)",),
    ),
)
