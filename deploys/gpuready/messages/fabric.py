# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of NVLink, the fabric manager and IMEX, and of DCGM, which watches the GPUs."""

from gpuready.messages.entry import read

MESSAGES = read(r"""
transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation cannot be performed in the present state'
  pattern transport/nvls\.cc:[0-9]{1,5}(?: \(?[a-z0-9_]{1,60}\)?)? nccl warn cuda failure
  also    failed to bind nvlink sharp \(nvls\) multicast memory
  also    nvls\.cc:[0-9]{1,5} nccl warn [^:]{0,60}cuda (?:error|failure)
  source  NVIDIA/nccl#1788
  checks  gpu.fabric driver.fabricmanager gpu.nvswitch
  cause   NCCL cannot set up multicast over the NVSwitches (NVLink SHARP). Most often the fabric manager hangs, was
          restarted under load or does not fit the driver. In a virtual machine, multicast may be off.
  fix     drain the node, restart nvidia-fabricmanager and reset all GPUs, or reboot; until then NCCL_NVLS_ENABLE=0
          avoids it and costs bandwidth
cuMemCreate: CUDA_ERROR_NOT_PERMITTED, operation not permitted (800): fabric handles without an IMEX channel
  pattern cumemcreate(?:\([^)]{0,120}\))? ?(?:failed|returned|error)?:? {0,2}(?:800|operation not permitted|cuda_error_not_permitted)
  also    cuda_error_not_permitted\] operation not permitted in expression cumemcreate
  also    call to cumemcreate\([^)]{1,80}\) failed.{0,120}operation not permitted
  also    cumemcreate\(&handle, [^)]{1,80}\)[^a-z]{0,20}reason=operation not permitted
  source  NVIDIA/nvbandwidth#46
  checks  driver.imex driver.companions gpu.fabric
  cause   The program asks for memory that other nodes can map (fabric handles). This user has no IMEX channel
          (/dev/nvidia-caps-imex-channels/channel0), or the node is not part of a multi-node NVLink rack, such as NVL72.
  fix     on a rack: systemctl status nvidia-imex on all nodes of the domain, and give the container or user channel0;
          elsewhere turn the option off (MNNVL; NCCL_MNNVL_ENABLE=0, NCCL_CUMEM_ENABLE=0)
cuMemSetAccess: CUDA_ERROR_INVALID_VALUE between two nodes (nvbandwidth)
  pattern invalid argument in expression cumemsetaccess
  also    cumemsetaccess: cuda_error_invalid_value
  source  NVIDIA/nvbandwidth#44
  checks  gpu.fabric
  cause   One node cannot map GPU memory of the other, although IMEX runs. Usually they are not in one NVLink domain:
          only racks such as NVL72 have NVLink between nodes.
  fix     nvidia-smi -q shows ClusterUUID and CliqueId below Fabric; both must be the same on all nodes, and ClusterUUID
          not zero; else test the network between the nodes (gpuready fabric)
cuMemImportFromShareableHandle: invalid resource handle / nvidia-imex: Failed to get export ref for UUID
  pattern cumemimportfromshareablehandle ?: invalid resource handle
  also    failed to get export ref for uuid
  also    failed to get new memory reference with rc
  also    received import response from node id [0-9]{1,4} with failure status
  source  kubernetes-sigs/dra-driver-nvidia-gpu#1417
  checks  driver.imex gpu.fabric driver.companions
  cause   A rank cannot map GPU memory that a rank of another node shared by IMEX. Usually one of the two nvidia-imex
          was restarted, hangs, or was not ready when the job started.
  fix     nvidia-imex-ctl -N must show that all nodes are connected; then restart all ranks of the job, not only the
          failed one; if nvidia-imex-ctl hangs, drain that node and reboot it
nvidia-imex: Failed to allocate Imex session, NV_ERR_IN_USE
  pattern failed to allocate imex session
  source  NVIDIA/aicr#2520
  checks  driver.imex
  cause   Two nvidia-imex run on this node, and the driver allows one: nvidia-imex.service of the host, and the daemon
          that Kubernetes' DRA driver starts for a ComputeDomain.
  fix     with ComputeDomains: systemctl disable --now nvidia-imex and systemctl mask nvidia-imex; or keep the host's
          service, and let the DRA driver use it (its feature gate HostManagedIMEXDaemon)
nvidia-imex: No matching network interface found for any IP addresses in the node configuration file
  pattern no matching network interface found for any ip addresses in the node configuration
  source  kubernetes-sigs/dra-driver-nvidia-gpu#289
  checks  driver.imex
  cause   The node list of nvidia-imex has no address of this node, so nvidia-imex does not start.
  fix     write one address of each node of the rack into /etc/nvidia-imex/nodes_config.cfg, one a line, the same file
          on all nodes; compare it with ip -br addr; systemctl restart nvidia-imex
DCGM_FR_IMEX_UNHEALTHY / DCGM health code 122
  pattern dcgm_fr_imex_unhealthy
  also    \bdcgm(?:healthcode| error code )122\b
  also    imex daemon status is -?[0-9]{1,3} \(not ready\)
  source  NVIDIA/DCGM#308
  checks  driver.imex driver.companions
  cause   DCGM says that the host's nvidia-imex is not healthy. This is a false alarm on nodes without NVLink to other
          nodes, and where Kubernetes' DRA driver runs IMEX.
  fix     there, ignore this code; else systemctl status nvidia-imex, and nvidia-imex-ctl -N shows which node is missing
error asserting ComputeDomain Ready: current node not ready in ComputeDomain
  pattern error asserting computedomain ready
  source  kubernetes-sigs/dra-driver-nvidia-gpu#1162
  checks  driver.imex driver.companions gpu.fabric
  cause   The pod waits for the IMEX daemon of its ComputeDomain on this node. Some seconds are normal. If it stays: the
          host's own nvidia-imex runs, too, or the daemons of the nodes do not reach each other.
  fix     systemctl is-active nvidia-imex on the node must say inactive; kubectl logs of the ComputeDomain's daemon pod
          on that node, and pass its first ERROR to gpuready explain
Fabric State : In Progress (nvidia-smi -q)
  pattern fabric state : in progress
  also    fabric .{0,40}status : insufficient resources
  source  NVIDIA/gpu-operator#2511
  checks  gpu.fabric driver.fabricmanager driver.imex
  cause   The NVLink fabric of this GPU is not ready: the fabric manager (on HGX B200 and B300 with NVLSM; in racks on the
          switch trays) has not registered it, or had no resources for it.
  fix     systemctl restart nvidia-fabricmanager and look at its log; if the state stays after some minutes, drain the
          node and reset all GPUs or reboot
IMEX domain status is DEGRADED
  pattern imex domain status is (?:degraded|down)
  source  linux-system-roles/hpc#85
  checks  driver.imex
  cause   nvidia-imex does not run, or is not reachable, on some nodes of this domain.
  fix     nvidia-imex-ctl -N shows which nodes are missing; systemctl enable --now nvidia-imex there, with the same
          nodes_config.cfg on all nodes
GPU doesn't have sufficient privileges to expose profiling metrics (dcgm-exporter)
  pattern sufficient privileges to expose profiling metrics
  source  NVIDIA/dcgm-exporter#557
  cause   Profiling counters need the capability SYS_ADMIN, which this container does not have.
  fix     start dcgm-exporter with --cap-add SYS_ADMIN, or leave the DCGM_FI_PROF_* fields out of its list
not all local fabric manager instances finished their configuration
  pattern not all local fabric manager instances finished their configuration
  source  pytorch/ci-infra#552
  checks  driver.fabricmanager gpu.fabric
  cause   The fabric manager waited 30 s for all GPUs to answer over NVLink. It started too early after the boot, for
          example from cloud-init, or a GPU or a link is broken.
  fix     systemctl restart nvidia-fabricmanager, and let only systemd start it (systemctl enable); if it fails again,
          reset all GPUs or reboot, and look for an Xid or SXid in dmesg
nvidia-persistenced: Could not Enable UVM Persistence mode because the NVLink fabric is not initialized
  pattern could not enable uvm persistence mode
  source  NVIDIA/nvrc#159
  checks  gpu.fabric driver.fabricmanager driver.persistenced
  cause   nvidia-persistenced found GPUs whose NVLink fabric is not ready. CUDA fails with error 802 there, until the
          fabric manager has set up the links.
  fix     systemctl restart nvidia-fabricmanager, then nvidia-persistenced; in a virtual machine, the host must activate
          an NVLink partition of exactly its GPUs
GPU 0's NvLink link 0 is currently down (DCGM) / Link 3: <inactive> (nvidia-smi nvlink -s)
  pattern nvlink link [0-9]{1,2} is currently down
  also    unable to retrieve nvlink information as all links are inactive
  also    \blink [0-9]{1,2}: <inactive>
  source  NVIDIA/NVSentinel#1481
  checks  gpu.nvlink gpu.fabric gpu.xid
  cause   This NVLink is not in use. On PCIe cards that is normal: without a bridge all links are down, and a bridge
          does not use all of them. On SXM boards, a GPU or the board has a fault.
  fix     compare with another node of this type; if only this one lacks the link, look for Xid 74, 136 or 144 to 150,
          reset all GPUs or reboot, then have the board inspected
Host engine connection invalid/disconnected (DCGM)
  pattern host engine connection invalid/disconnected
  also    error: unable to establish a connection to the specified host
  source  aws/containers-roadmap#2555
  checks  dcgm.config
  cause   No host engine of DCGM (nv-hostengine) answers there: it does not run, has ended, or listens only on port 5555
          of localhost, which a pod does not reach.
  fix     systemctl enable --now nvidia-dcgm, and journalctl -u nvidia-dcgm if it ends; in a pod hostNetwork: true; for
          dcgm-exporter set DCGM_REMOTE_HOSTENGINE_INFO=HOST:5555
Error setting watches. Result: The third-party Profiling module returned an unrecoverable error (DCGM)
  pattern third-party profiling module returned an unrecoverable error
  source  NVIDIA/DCGM#151
  checks  dcgm.config
  cause   DCGM could not use the profiling counters of the GPU. Another program has them (a second host engine, Nsight),
          or this one lacks the right: not root, or in a container without SYS_ADMIN.
  fix     one nv-hostengine for each node, as root (in a container --cap-add SYS_ADMIN), which all programs ask;
          dcgmi profile --pause while Nsight runs
CUDA driver error: invalid argument, in _SymmetricMemory.rendezvous (PyTorch, vLLM)
  pattern _symmetricmemory\.rendezvous.{0,900}cuda driver error:
  also    cuda driver error: .{0,40}\bin _symmetricmemory\.rendezvous
  source  vllm-project/vllm#25937
  checks  gpu.fabric driver.fabricmanager gpu.p2p
  cause   PyTorch could not share GPU memory between the ranks of this node, or not set up multicast over the
          NVSwitches. The fabric manager, or the rights of the container, are the usual causes; the model is not.
  fix     nvidia-smi -q must show Fabric State: Completed; restart the fabric manager and reset all GPUs; vLLM works
          without it: VLLM_ALLREDUCE_USE_SYMM_MEM=0
nvidia-imex-ctl: Query Status returned error code: 14 - failed to connect to all addresses
  pattern query status returned error code: [0-9]{1,3}
  source  kubernetes-sigs/dra-driver-nvidia-gpu#333
  checks  driver.imex driver.companions
  cause   nvidia-imex-ctl got no answer from nvidia-imex: it does not run here, or its command service is off or listens
          at another address (IMEX_CMD_ENABLED, IMEX_CMD_PORT and IMEX_CMD_BIND_INTERFACE_IP in its config.cfg).
  fix     systemctl status nvidia-imex, and its log; nvidia-imex-ctl -q -i ADDRESS PORT asks another address
Cannot load NVML; DCGM will proceed without managing GPUs.
  pattern cannot load nvml; dcgm will proceed without managing gpus
  source  NVIDIA/gpu-operator#1405
  cause   nv-hostengine started without the driver's libraries: its container did not get them (no NVIDIA runtime), or
          it started while the driver was not loaded. It runs on, and never finds the GPUs.
  fix     nvidia-smi must work inside that container: runtimeClassName: nvidia, or --gpus all; then restart the pods
          nvidia-dcgm and dcgm-exporter. What it says of NSCQ and NVSDM matters only on nodes with NVSwitches
Not collecting DCP metrics: This request is serviced by a module of DCGM that is not currently loaded
  pattern not collecting dcp metrics: [^:]{0,60}(?:serviced by a module of dcgm|profiling is not supported)
  source  NVIDIA/dcgm-exporter#707
  cause   DCGM's profiling module did not load, so all DCGM_FI_PROF_ metrics are missing: this DCGM is older than the
          GPU (Blackwell needs DCGM 4), the GPU has no profiling (GeForce before the 50 series), or rights are
          missing.
  fix     dcgmi -v and dcgmi modules -l; install a current dcgm-exporter and, if nv-hostengine runs on the host, a
          current DCGM there with datacenter-gpu-manager-4-proprietary; give the container the capability SYS_ADMIN
Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'
  pattern nvls\) multicast memory of size [0-9]{1,15} ?: cuda error 2 'out of memory
  source  NVIDIA/nccl#2077
  cause   The NVSwitches have no free multicast slot: the jobs on the node have too many NCCL communicators. The GPU's
          memory is not full, and the fabric manager is most likely healthy.
  fix     NCCL_NVLS_ENABLE=0, or another NCCL than 2.29.7 (2.28.9 went on without NVLS); end jobs that were left over,
          which hold slots; make fewer process groups
the nvvs binary was not found in the specified location (dcgmi diag)
  pattern the nvvs binary was not found
  source  NVIDIA/dcgm-exporter#324
  checks  dcgm.config
  cause   dcgmi diag starts nvvs, and it is not installed where the host engine runs. The image of dcgm-exporter leaves
          it out on purpose.
  fix     run dcgmi diag on the host or in NVIDIA's image dcgm, not in that of dcgm-exporter; on the host install
          datacenter-gpu-manager-4-cuda12 or -cuda13 (as the driver says), then systemctl restart nvidia-dcgm
NVLink fabric state cached by the driver is out of sync [NV_ERR_FABRIC_STATE_OUT_OF_SYNC]
  pattern nvlink fabric state cached by the driver is out of sync
  also    nv_err_fabric_state_out_of_sync
  also    team_internal_nvls\.cpp:[0-9]{1,5}: non-zero status: 401 cumemmap failed
  also    mapping multicast groups for uc heap failed
  source  NVIDIA/nvshmem#40
  checks  gpu.fabric driver.fabricmanager
  cause   The driver's view of the NVLink fabric is older than that of the fabric manager. Most often the fabric manager
          was restarted while GPUs were in use, for example by an upgrade of libc6. Multicast over the NVSwitches (NVLS)
          fails.
  fix     drain the node, restart nvidia-fabricmanager and reset all GPUs, or reboot; until then NVSHMEM_DISABLE_NVLS=1
          and NCCL_NVLS_ENABLE=0 avoid it
CtranIpc.cc: Cuda failure 400 'invalid resource handle' / Ctran initialization failed (torchcomms)
  pattern \bctranipc\.cc:[0-9]{1,5}\] cuda failure 400
  also    \bctran initialization failed
  source  meta-pytorch/torchcomms#3516
  checks  gpu.fabric driver.imex driver.companions
  cause   torchcomms takes ranks of several nodes for one NVLink domain, but one node cannot import GPU memory of the
          other: they share no IMEX domain, or are in different racks that have the same CliqueId.
  fix     nvidia-smi -q: ClusterUUID and CliqueId must both be the same on all nodes; nvidia-imex-ctl -N must show them
          connected; give the containers an IMEX channel; until then MCCL_NVL_FABRIC_ENABLE=0
Error adding entity group type NvLink (dcgm-exporter)
  pattern error adding entity group type nvlink
  source  NVIDIA/dcgm-exporter#473
  checks  dcgm.config
  cause   dcgm-exporter 4.0 to 4.2 could not add NVLinks to a group of DCGM, and stopped. Versions 3.3.9-3.6.1 and
          older do not do this.
  fix     update dcgm-exporter to 4.2.3-4.1.1 or newer
dcgmi: Unable to set health watches. Return: API version mismatch
  pattern unable to (?:set|get) [a-z ]{3,40}\. return: api version mismatch
  also    error (?:getting|retrieving|watching|checking|setting) [a-z ]{1,40}: api version mismatch
  also    error 'api version mismatch' while attempting to
  also    version mismatch [0-9a-f]{5,8} != [0-9a-f]{5,8} for module [0-9]{1,2} subcommand
  source  NVIDIA/DCGM#314
  checks  dcgm.config
  cause   Two parts of DCGM have different versions: the program (dcgmi, dcgm-exporter) and nv-hostengine, or libdcgm
          and one of its modules (libdcgmmodule...so). Usually a container meets an older host engine, or an old copy
          of a library is left on the node.
  fix     dcgmi -v and nv-hostengine --version must agree; grep dcgm /proc/$(pidof nv-hostengine)/maps names the files
          in use; remove the other copy, update all datacenter-gpu-manager packages, restart nvidia-dcgm
nvidia-fabricmanager-start.sh: Unknown option: /usr/share/nvidia/nvswitch/fabricmanager.cfg
  pattern unknown option: /usr/share/nvidia/nvswitch/fabricmanager\.cfg
  also    please avoid running this script directly\. please either start or stop using the nvidia-fabricmanager systemd
  source  NVIDIA/gpu-operator#1595
  checks  driver.fabricmanager gpu.fabric
  cause   From 570.158.01 on, nvidia-fabricmanager-start.sh takes named options, and the driver container calls it in
          the old way. The fabric manager does not run, though the pod is Ready: CUDA fails with error 802.
  fix     use a driver image built after July 2025 (a newer GPU operator or driver version); by hand:
          nvidia-fabricmanager-start.sh --mode start --fm-config-file FILE --fm-pid-file FILE --nvlsm-config-file FILE
          --nvlsm-pid-file FILE
""")
