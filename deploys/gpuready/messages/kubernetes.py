# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of Kubernetes, its device plugin, the GPU Operator, and Slurm."""

from gpuready.messages.entry import read

MESSAGES = read(r"""
0/3 nodes are available: 3 Insufficient nvidia.com/gpu
  pattern insufficient nvidia\.com/(?:gpu\b|mig)
  source  NVIDIA/k8s-device-plugin#159
  checks  driver.loaded gpu.count containerd.runtime crio.config
  cause   No node offers enough free GPUs: all are in use, or the device plugin does not run or finds no driver.
  fix     kubectl describe node shows Allocatable nvidia.com/gpu; if it is 0, read the log of the device plugin and run
          gpuready verify on the node
Allocate failed due to requested number of devices unavailable for nvidia.com/gpu (UnexpectedAdmissionError)
  pattern allocate failed due to (?:requested number of devices unavailable for|no healthy devices present; cannot allocate unhealthy devices) nvidia\.com/
  also    can(?:no|')t allocate unregistered device nvidia\.com/
  source  kubernetes/kubernetes#130145
  checks  gpu.count gpu.answers gpu.xid
  cause   The kubelet has fewer free GPUs than the scheduler thought: a GPU became unhealthy, the device plugin has not
          registered yet after a restart, or the kubelet still counts a pod that has ended.
  fix     delete the failed pod; read the log of the device plugin and run gpuready verify on the node; if both are
          fine, restart the kubelet
0/4 nodes are available: 4 node(s) had untolerated taint {nvidia.com/gpu: true}
  pattern (?:untolerated|had) taint \{nvidia\.com/gpu
  source  vllm-project/aibrix#909
  cause   The GPU nodes have the taint nvidia.com/gpu, which keeps other pods away, and this pod does not tolerate it.
  fix     add to the pod: tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]; or remove the
          taint with kubectl taint nodes NODE nvidia.com/gpu-
could not load NVML library: libnvidia-ml.so.1 (device plugin)
  pattern could not load nvml library
  also    failed to construct resource managers: invalid device discovery strategy
  also    (?:factory\.go:[0-9]{1,4}\] )?incompatible (?:platform|strategy) detected
  source  NVIDIA/k8s-device-plugin#478
  checks  containerd.runtime crio.config docker.runtime driver.loaded
  cause   The device plugin sees no GPU: its pod was started without the runtime nvidia, or the host has no driver.
  fix     gpuready apply registers the runtime; then make it the default runtime, or give the plugin runtimeClassName:
          nvidia, and restart it
Failed to create pod sandbox
  pattern failed to create pod sandbox
  general
  source  NVIDIA/gpu-operator#549
  checks  containerd.runtime containerd.smoke crio.config
  cause   The kubelet could not start a pod on this node.
  fix     read the end of the message, which names the cause, and pass it to gpuready explain
Exiting.. can not change : incorrect RDMA subsystem network namespace
  pattern incorrect rdma subsystem network namespace
  source  Mellanox/k8s-rdma-shared-dev-plugin#84
  checks  rdma.netns rdma.conflict
  cause   The shared RDMA device plugin needs the mode shared, and the node runs in exclusive mode.
  fix     set rdma: {netns_mode: shared} and gpuready apply; or use rdma-cni, which needs exclusive mode
slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory
  pattern (?:can't stat|waiting for) gres\.conf file /dev/{1,2}nvidia
  also    gres_device_major: stat\(/dev/nvidia
  source  BiBiServ/bibigrid#705
  checks  driver.nodes driver.loaded gpu.count
  cause   gres.conf names a device that is not there: slurmd started before the driver, the driver is not loaded, or the
          node has no GPU.
  fix     gpuready apply creates the device nodes at boot (component devices), and names what keeps the driver from
          loading; then restart slurmd; for nodes without GPUs, limit the line in gres.conf with NodeName=
gres/gpu count reported lower than configured
  pattern gres/gpu count reported lower than configured
  also    \bgres/gpu count repor\b
  also    gres/gpu: count changed on node
  source  awslabs/awsome-distributed-ai#195
  checks  gpu.count driver.loaded gpu.mig
  cause   slurmd sees fewer GPUs than slurm.conf says, and Slurm drains the node: a GPU is off the bus, the driver is
          not loaded, MIG changed, gres.conf is wrong, or AutoDetect=nvml is set and this slurmd is built without NVML.
  fix     gpuready verify -i NODE counts the GPUs, slurmd -G those of Slurm; without gpu_nvml.so list the devices in
          gres.conf with File=; after the repair: systemctl restart slurmd, scontrol update NodeName=NODE State=RESUME
Invalid generic resource (gres) specification (Slurm)
  pattern invalid generic resource \(gres\) specification
  source  NVIDIA/NeMo-Framework-Launcher#72
  checks  gpu.count
  cause   The job asks for a GPU that Slurm does not know: slurm.conf has no GresTypes=gpu, no node has Gres=gpu, or the
          type has another name. For a job step: its job has no such GPU.
  fix     scontrol show node NODE | grep Gres shows names and numbers; try --gres=gpu:1 without a type; after a change
          of slurm.conf or gres.conf restart slurmctld and slurmd
Requested node configuration is not available (Slurm)
  pattern requested node configuration is not available
  source  SlinkyProject/slurm-operator#18
  checks  gpu.count driver.loaded
  cause   No node of this partition has what the job asks for, even if it is idle: fewer GPUs, CPUs or less memory, or
          Gres is (null) because slurm.conf names no GPUs.
  fix     sinfo -o '%P %N %G %c %m' shows GPUs, CPUs and memory of each partition; ask for less, or correct slurm.conf;
          gpuready verify -i NODE counts the GPUs
Reason=Prolog error (Slurm)
  pattern (?:prolog|epilog) error\b(?!:)
  also    (?<!task-)(?<!task )\bprolog failed\b(?! to)
  also    prolog failure on node
  source  mknoxnv/ubuntu-slurm#4
  checks  gate.ready driver.loaded gpu.count
  cause   Slurm's prolog or epilog ended with an error, so Slurm drained the node. If gpuready's gate is the prolog, the
          node is not ready for GPU jobs.
  fix     run gpuready-verify on the node, or read slurmd.log if the script is another one; after the repair: scontrol
          update NodeName=NODE State=RESUME
Kill task failed (Slurm)
  pattern \bkill task failed
  source  lyulyul/shine-cluster#166
  checks  gpu.answers gpu.xid
  cause   A process of a job did not end after SIGKILL, so Slurm drained the node. It hangs in the kernel: a GPU that
          does not answer, a network file system, or a large core dump.
  fix     ps -eo pid,stat,wchan:30,args shows it, with D in its state; look for an Xid in dmesg; reboot the node, or, if
          the process has ended, resume it; UnkillableStepTimeout in slurm.conf is how long Slurm waits
batch job complete failure (Slurm)
  pattern batch job complete failure
  also    slurmd error running jobid=
  source  SchedMD/slurm (src/slurmctld/proc_req.c)
  checks  gpu.answers gpu.xid
  cause   slurmd reported an error of its own for a batch job, so Slurm drained the node. Often a process of the job did
          not end after SIGKILL, or slurmd could not set the job up.
  fix     slurmctld.log names the error after 'slurmd error running JobId'; read slurmd.log of that time on the node;
          after the repair: scontrol update NodeName=NODE State=RESUME
Low RealMemory / has low real_memory size (Slurm)
  pattern \blow real_?memory\b
  source  aws/aws-parallelcluster#1517
  cause   The node has less memory than RealMemory in slurm.conf, so Slurm drains it. The number is too high, or a
          memory module failed.
  fix     slurmd -C on the node prints what it has; set RealMemory a little lower, then scontrol reconfigure and
          scontrol update NodeName=NODE State=RESUME; if it worked before, look for the missing module
Unable to contact slurm controller (connect failure)
  pattern unable to contact slurm controller
  source  ArjunaCluster/ArjunaUsers#111
  cause   slurmctld does not answer: it does not run, this host has another slurm.conf, or a firewall blocks its port
          (6817).
  fix     scontrol ping; on the controller systemctl status slurmctld munge and slurmctld.log; compare SlurmctldHost in
          slurm.conf, the munge key and the clocks
launch failed requeued held (Slurm)
  pattern launch[ _]failed[ _]requeued[ _]held
  source  burrmill/burrmill#15
  checks  gate.ready
  cause   Slurm could not start the job on its node, so it put the job back and holds it: most often the prolog failed,
          or slurmd needs a restart.
  fix     scontrol show job JOBID names the node (BatchHost); read slurmd.log there and repair it; then scontrol release
          JOBID
We were configured to autodetect nvml functionality, but we weren't able to find that lib
  pattern configured to autodetect nvml functionality
  source  NVIDIA/deepops#1214
  checks  libcuda.ldcache driver.loaded
  cause   gres.conf has AutoDetect=nvml, but this slurmd was built without NVML, or does not find libnvidia-ml.so.1.
  fix     build Slurm with --with-nvml, or list the devices in gres.conf (File=/dev/nvidia[0-7])
slurmd: fatal: gres.conf duplicate records for gpu
  pattern gres\.conf duplicate records
  source  ComputeCanada/puppet-magic_castle#27
  cause   gres.conf names gpu twice, beside AutoDetect or on two lines without Type or File.
  fix     leave one line, such as AutoDetect=nvml alone, and restart slurmd
gres/gpu: invalid GRES core specification
  pattern invalid gres core specification
  source  NVIDIA/deepops#1195
  cause   The CPUs in gres.conf are numbers of threads, or of another machine; Slurm expects core numbers.
  fix     remove CPUs= from gres.conf and use AutoDetect=nvml, or write Cores= with Slurm's own numbers
No MIG devices associated with /dev/nvidia0 (device plugin)
  pattern no mig devices associated with
  source  NVIDIA/k8s-device-plugin#253
  checks  gpu.mig
  cause   MIG mode is on, but the GPU has no MIG instance.
  fix     create instances (nvidia-smi mig -cgi PROFILE -C) or switch MIG off (nvidia-smi -i N -mig 0), then restart the
          device plugin
invalid MIG configuration (device plugin)
  pattern invalid mig configuration
  source  NVIDIA/k8s-device-plugin#397
  checks  gpu.mig
  cause   A GPU in MIG mode has no usable instance; or the plugin's MIG strategy is single, and the instances differ.
  fix     compare nvidia-smi -L with the strategy of the device plugin: mixed allows different instances, none ignores
          MIG
error getting device memory info: Insufficient Permissions (device plugin)
  pattern error getting device memory info
  also    error getting parent memory info
  source  NVIDIA/k8s-device-plugin#399
  checks  gpu.mig
  cause   The device plugin's container sees the GPU, but may not read its MIG instances.
  fix     set NVIDIA_MIG_MONITOR_DEVICES=all in the device plugin's container, which must run privileged
dcgm-exporter: Cannot init NVML library; err: ERROR_LIBRARY_NOT_FOUND
  pattern cannot init nvml library; err: error_library_not_found
  source  NVIDIA/dcgm-exporter#612
  checks  containerd.runtime docker.runtime
  cause   The container of dcgm-exporter has no libnvidia-ml: the nvidia runtime did not start it.
  fix     set runtimeClassName: nvidia for its pod; in Docker, start it with --gpus all
Error watching fields: This request is serviced by a module of DCGM that is not currently loaded
  pattern error watching fields: this request is serviced by a module of dcgm
  source  NVIDIA/gpu-monitoring-tools#141
  checks  gpu.model
  cause   dcgm-exporter asks for profiling metrics, which only data-center GPUs have. Before 2.1.2 it asked on every GPU
          and ended.
  fix     install dcgm-exporter 2.1.2 or newer; else remove the DCGM_FI_PROF_ fields from its list of counters
Failed to pull image "nvcr.io/nvidia/driver:550.90.07-debian12" (GPU Operator)
  pattern failed to (?:pull|resolve)[^"]{0,40}"nvcr\.io/nvidia/(?:[a-z-]{1,40}/)?(?:driver|gpu-driver)
  also    nvcr\.io/nvidia/driver:\S{1,80}: not found
  source  NVIDIA/gpu-operator#1212
  checks  driver.loaded driver.owner
  cause   The GPU Operator wants to run the driver as a container, and NVIDIA publishes no such image for this
          distribution, driver version or (with usePrecompiled) kernel.
  fix     install the driver on the nodes and switch it off in the operator: --set driver.enabled=false (gpuready render
          gpu-operator); or choose a version and distribution that the catalog has
ImagePullBackOff / ErrImagePull
  pattern \bimagepullbackoff\b
  also    \berrimagepull\b
  also    back-off pulling image
  general
  source  NVIDIA/gpu-operator#2016
  cause   The kubelet cannot get the container's image: its name or tag is wrong, the registry needs a login, the node
          does not reach it, or it has no image for this architecture. GPUs and drivers are not the cause.
  fix     kubectl describe pod POD shows the registry's answer after 'Failed to pull image'; crictl pull IMAGE on the
          node repeats it
NodePrepareResources failed: context deadline exceeded (NVIDIA's DRA driver)
  pattern nodeprepareresources.{0,120}deadline ?exceeded
  source  kubernetes-sigs/dra-driver-nvidia-gpu#1218
  checks  gpu.answers
  cause   The DRA driver did not prepare the GPU in time. Often a process still holds it, so it cannot change its MIG
          layout or its kernel driver (vfio-pci).
  fix     kubectl logs of the kubelet plugin on that node names the step; nvidia-smi and fuser -v /dev/nvidia* show who
          holds the GPU
unable to create CDI spec file for claim: invalid CDI Spec: empty device edits
  pattern unable to create cdi spec file for claim.{0,200}empty device edits
  source  kubernetes-sigs/dra-driver-nvidia-gpu#1144
  checks  driver.loaded cdi.spec
  cause   The DRA driver writes a device of a CDI spec without any content: it started before the driver or the toolkit
          were as they are now.
  fix     restart the pod of the DRA driver's kubelet plugin on that node
failed to fetch ResourceClaim X referenced by pod Y: the server could not find the requested resource
  pattern failed to fetch resourceclaim .{0,200}could not find the requested resource
  source  kubernetes-sigs/dra-driver-nvidia-gpu#766
  cause   The kubelet asks for a version of resource.k8s.io that the API server does not serve.
  fix     kubectl api-versions | grep resource.k8s.io; kubelet and API server must be of versions that fit, and the API
          group must be on (--runtime-config)
slurmd: error: cannot find cgroup plugin for cgroup/v2
  pattern cannot find cgroup plugin for cgroup/v2
  source  neilmunday/slurm-mail#160
  cause   This slurmd was built without the plugin for cgroup v2, which needs the headers of dbus and systemd.
  fix     install the packaged plugin, or build Slurm again with dbus-devel and systemd-devel; CgroupPlugin=cgroup/v1 works
          only on a node that still has cgroup v1
srun: error: Step requested GRES (gpu:(null)) not found in the job
  pattern step requested gres \(.{0,40}\) not found in the job
  source  skypilot-org/skypilot#10522
  cause   The step asks for GPUs of another type, or without the type, than the job has.
  fix     leave --gres and --gpus out of srun inside the job, or give the same type as in sbatch (gpu:h100:8)
DRA driver compute-domain.nvidia.com is not registered
  pattern dra driver \S{0,40}nvidia\.com is not registered
  also    dra driver name \S{0,40}nvidia\.com not found in the list of registered dra drivers
  source  kubernetes-sigs/dra-driver-nvidia-gpu#814
  checks  driver.loaded containerd.cdi crio.cdi
  cause   The pod's ResourceClaim needs NVIDIA's DRA driver on this node, and its kubelet plugin has not registered: its
          pod does not run there, or lost its registration when the kubelet restarted.
  fix     kubectl get pods -n nvidia-dra-driver-gpu -o wide shows the plugin of the node; read its log, and restart it
          after a restart of the kubelet
error validating toolkit installation: exec: "nvidia-smi": executable file not found in $PATH (GPU Operator)
  pattern error validating toolkit installation: exec: "?nvidia-smi"?: executable file not found
  also    error validating toolkit installation
  source  NVIDIA/gpu-operator#2382
  checks  containerd.runtime containerd.config crio.config containerd.smoke
  cause   The validator's pod got no GPU: its RuntimeClass nvidia does not lead to the NVIDIA runtime, because the
          engine does not read the configuration that the toolkit wrote, or was not restarted.
  fix     gpuready verify -i NODE names what containerd or CRI-O lacks; on k3s, RKE2 and MicroK8s give the toolkit their
          paths (CONTAINERD_CONFIG, CONTAINERD_SOCKET)
error validating driver installation: error creating symlink creator (GPU Operator)
  pattern error validating driver installation
  source  NVIDIA/gpu-operator#671
  checks  driver.loaded driver.nodes driver.charlinks
  cause   The validator could not load a module of the driver (nvidia-modeset), or make the links in /dev/char that keep
          GPUs in containers after a daemon-reload.
  fix     run modprobe nvidia-modeset on the node and read dmesg; if the host keeps its own links (gpuready apply,
          component devices), set validator.driver.env DISABLE_DEV_CHAR_SYMLINK_CREATION=true
slurmd: fatal: Unable to determine this slurmd's NodeName
  pattern unable to determine this slurmd's nodename
  source  GoogleCloudPlatform/cluster-toolkit#1600
  cause   No NodeName or NodeHostname of slurm.conf is this machine's name (hostname -s), so slurmd does not know which
          node it is.
  fix     compare hostname -s with scontrol show config | grep -i node and slurm.conf; correct the name, add the node,
          or start slurmd with -N NAME; on a controller or login node disable slurmd
warning: The following autodetected GPUs are being ignored (slurmd)
  pattern the following autodetected gpus are being ignored
  also    discarding the following config-only gpu due to lack of file specification
  source  SlinkyProject/slurm-operator#111
  checks  gpu.count gpu.model
  cause   slurmd found GPUs that slurm.conf does not give to this node: Gres= is missing in its NodeName line, has a
          smaller number, or another type than the one that the lines below show.
  fix     write Gres=gpu:NUMBER in NodeName of slurm.conf, without a type or with that of the lines below, and
          GresTypes=gpu; AutoDetect=nvml in gres.conf; then restart slurmctld and slurmd
slurmstepd: error: write value to '/sys/fs/cgroup/system.slice/cgroup.procs' failed: No space left on device
  pattern /cgroup\.procs'? failed: no space left on device
  source  Azure/cyclecloud-slurm#388
  cause   Not a full disk: the cpuset cgroup of the job has no CPUs or memory nodes. Mostly the node's CPUs in slurm.conf
          are not those that it has, or cgroup v1 with a parent that has an empty cpuset.
  fix     slurmd -C on the node shows the right CPUs, Sockets and Cores: enter them; use cgroup v2 and restart slurmd
Allocate failed: GetPreferredAllocation; unable to get device link information: error calling nvml.Init
  pattern unable to get device link information: error calling nvml\.init
  source  NVIDIA/k8s-device-plugin#1223
  checks  driver.match gpu.answers
  cause   The device plugin lost the driver while it ran: the driver was replaced, or the pod lost its devices (systemctl
          daemon-reload). It does not restart by itself, so each new pod fails.
  fix     nvidia-smi on the node must work; then delete the pod of the device plugin on that node, and delete the pods
          with UnexpectedAdmissionError
The Pod is invalid: spec.resourceClaims[0]: must specify one of: resourceClaimName, resourceClaimTemplateName
  pattern must specify one of: .?resourceclaimname
  source  Project-HAMi/k8s-dra-driver#5
  cause   The pod names its claim in the form before Kubernetes 1.31 (source: below resourceClaims), which is ignored
          now.
  fix     write resourceClaimName or resourceClaimTemplateName directly below name in spec.resourceClaims, without
          source:, and use apiVersion resource.k8s.io/v1 for the claim (v1beta1 before 1.34)
Failed to allocate device vector A (error code CUDA driver version is insufficient for CUDA runtime version)!
  pattern failed to allocate device vector [abc] \(error code cuda driver version is insufficient
  source  NVIDIA/gpu-operator#1947
  checks  containerd.runtime crio.config libcuda.container
  cause   The container of vectorAdd (GPU Operator: cuda-validator) found no libcuda.so.1 of a driver that fits. Mostly
          it was started without the runtime nvidia, or the toolkit's hook did not run. Less often the driver is too
          old.
  fix     run nvidia-smi in a pod with runtimeClassName: nvidia; if it is not found there, read the log of the toolkit
          DaemonSet and the runtime's configuration; if it works, its CUDA version must not be below the image's
failed to uninstall nvidia driver components: failed to unload driver (k8s-driver-manager)
  pattern failed to uninstall nvidia driver components: failed to unload driver
  source  NVIDIA/k8s-driver-manager#166
  cause   The driver pod was started again and must first unload the old modules, but a process on the node uses the
          GPU. With eviction and drain off in the upgrade policy the driver manager does not end such pods.
  fix     end the GPU pods of the node (kubectl drain), and what fuser -v /dev/nvidia* names on the host; or set
          driver.upgradePolicy.gpuPodDeletion or .drain.enable in the ClusterPolicy
unable to validate flags: using MPS requires --mps-root to be specified
  pattern using mps requires --mps-root to be specified
  source  NVIDIA/k8s-device-plugin#1132
  cause   The device plugin's configuration shares GPUs by MPS, but the plugin has no MPS root. The static manifest has
          neither the root nor the MPS control daemon.
  fix     install the device plugin with its Helm chart, which sets both up; or use timeSlicing instead of mps
0/2 nodes are available: 1 Insufficient nvidia.com/gpucores, 1 Insufficient nvidia.com/gpumem
  pattern insufficient nvidia\.com/gpu(?:cores|mem)
  source  Project-HAMi/HAMi#1429
  cause   Only HAMi's scheduler counts gpucores and gpumem. This pod was given to another scheduler (the line names
          default-scheduler), so HAMi's webhook did not change the pod.
  fix     check that the hami-scheduler pod runs and its webhook exists; the pod and its namespace must not have the
          label hami.io/webhook: ignore; then create the pod again, or set schedulerName: hami-scheduler
failed to validate the driver, retrying after 5 seconds (driver-validation)
  pattern failed to validate the driver, retrying after [0-9]
  source  cozystack/cozystack#863
  checks  driver.loaded
  cause   The GPU Operator's validator finds no working nvidia-smi, neither on the host nor below /run/nvidia/driver:
          the driver is not installed, not ready yet, or nvidia-smi ends with an error.
  fix     run nvidia-smi on the node; with driver.enabled=true read the log of the nvidia-driver-daemonset pod of that
          node; with false install the driver on the host (gpuready apply)
unable to get device spec for claim: device handle from UUID: Not Found
  pattern device handle from uuid: not found
  source  kubernetes-sigs/dra-driver-nvidia-gpu#1330
  checks  driver.owner gpu.count
  cause   NVML does not know the GPU that the claim names: it is still bound to vfio-pci from a passthrough claim that
          was deleted by force, or it left the bus.
  fix     lspci -k -d 10de: shows the kernel driver of each GPU; delete the pod and its ResourceClaim, bind the GPU to
          nvidia again, then restart the DRA driver's kubelet plugin on that node
Resetting GPU 00000000:00:04.0 is not supported (mig-parted)
  pattern resetting gpu [0-9a-f:.]{7,20} is not supported
  source  NVIDIA/gpu-operator#1606
  cause   This GPU cannot be reset from here, mostly because the node is a virtual machine with the GPU passed through.
          A change of the MIG mode needs the reset on A100 and A30.
  fix     reboot the node, which applies the pending mode (nvidia-smi -q shows Current and Pending); for the MIG manager
          of the GPU Operator set migManager.env WITH_REBOOT=true
GPU driver auto installation is disabled. Waiting for GPU driver libraries to be available. (GKE)
  pattern gpu driver auto installation is disabled
  source  GoogleCloudPlatform/container-engine-accelerators#407
  cause   This GKE node pool was made without a GPU driver version, so GKE installs no driver and the device plugin
          waits for one.
  fix     give the pool --accelerator=...,gpu-driver-version=default (or latest), with node auto-provisioning the
          nodeSelector cloud.google.com/gke-gpu-driver-version; or apply Google's driver installer DaemonSet
qemu-kvm: -device {"driver":"vfio-pci"}: VFIO_MAP_DMA failed: Cannot allocate memory
  pattern vfio_map_dma failed: cannot allocate memory
  also    vfio_(?:container_)?dma_map ?\([^)]{1,120}\) = -12\b
  source  kubevirt/kubevirt#14593
  cause   With a passed-through device QEMU must lock the whole memory of the guest, and its limit (RLIMIT_MEMLOCK) is
          lower. In KubeVirt this comes from overcommitted memory, or from several devices with a vIOMMU.
  fix     KubeVirt: set the memory request equal to the limit, no overcommit, or use a newer KubeVirt; libvirt or plain
          QEMU: raise memlock (libvirt: <memtune><hard_limit>, systemd: LimitMEMLOCK)
Allocate failed due to no healthy devices present; cannot allocate unhealthy devices X, which is unexpected
  pattern no healthy devices present; cannot allocate unhealthy devices (?!nvidia\.com/)[^ ]
  source  kubernetes/kubernetes#125579
  cause   The kubelet put the pod on before the device plugin of this resource had registered with it (after a reboot or
          a restart of the kubelet), or the plugin reports all its devices as unhealthy.
  fix     delete the failed pod, or let its Deployment make a new one; if that fails too, read the log of the device
          plugin on that node
PCI peer-to-peer transactions on BARs are not supported. (QEMU)
  pattern pci peer-to-peer transactions on bars are not supported
  source  kata-containers/kata-containers#12861
  cause   A warning of QEMU: passed-through devices cannot reach each other's memory directly. The machine starts in
          spite of it, so it is not the cause of a failed start.
  fix     look for the next error in the log; Kata: add nvrc.log=trace to kernel_params to see what the guest does
Error signaling containerd, attempt 5/6: unable to dial: dial unix /runtime/sock-dir/containerd.sock
  pattern error signaling containerd, attempt
  also    unable to signal containerd: unable to dial
  source  NVIDIA/gpu-operator#522
  checks  containerd.runtime
  cause   The toolkit container does not reach containerd at the socket it was given: containerd listens elsewhere (k3s
          and RKE2: /run/k3s/containerd/containerd.sock), or it does not run after the change of its file.
  fix     in the ClusterPolicy set toolkit.env CONTAINERD_SOCKET and CONTAINERD_CONFIG to the paths of this
          distribution; systemctl status containerd (k3s, rke2-agent) on the node
no instance type satisfied resources {"cpu":"17185m","nvidia.com/gpu":"2"} and requirements (Karpenter)
  pattern no instance type satisfied resources \{.{0,200}nvidia\.com/gpu
  source  aws/karpenter-provider-aws#8064
  cause   No instance type that the NodePool allows has so many GPUs, CPUs and so much memory at once (g4dn.2xlarge has
          one GPU). Or the cloud's API names no GPU for that type, or the zone does not offer it.
  fix     compare the resources with the instance types in the line; allow larger types in the NodePool, or request
          less; a newer Karpenter knows newer types
slurmd: error: cgroup_dbus_attach_to_scope: cannot connect to dbus system daemon
  pattern cgroup_dbus_attach_to_scope: cannot connect to dbus
  also    scope and/or cgroup directory for slurmstepd could not be set
  source  stackhpc/slurm-k8s-cluster#39
  cause   Slurm's plugin for cgroup v2 asks systemd over D-Bus for a scope, and nobody answers: slurmd runs in a
          container without systemd, or dbus does not run on the host.
  fix     in a container: IgnoreSystemd=yes in cgroup.conf, and a cgroup tree that slurmd can write (privileged), which
          ConstrainDevices needs to keep jobs on their GPUs; on a host: systemctl start dbus, then restart slurmd
slurmd: fatal: MIG mode is enabled, but no MIG devices were found
  pattern mig mode is enabled, but no mig devices were found
  source  ComputeCanada/puppet-magic_castle#276
  checks  gpu.mig
  cause   A GPU is in MIG mode and has no instances, so slurmd with AutoDetect=nvml finds nothing to offer and stops.
          Instances are lost at each reboot and GPU reset.
  fix     nvidia-smi mig -lgi lists them; create them before slurmd starts (nvidia-mig-parted as a service, with
          Before=slurmd.service), or switch MIG off with nvidia-smi -mig 0; then restart slurmd
infiniBand SRI-OV CNI failed to configure VF "VF ib2 GUID is not valid"
  pattern \bvf \S{2,20} guid is not valid
  source  Mellanox/network-operator#1825
  cause   The InfiniBand virtual function has no GUID, only zeros, so the pod does not get it. Normally the SR-IOV
          operator sets a random GUID when it creates the functions; here nothing did.
  fix     ip link show PF must show a node_guid and port_guid for each vf: ip link set PF vf N node_guid GUID, the same
          with port_guid, then unbind and bind the function's driver; or ib-kubernetes, which takes GUIDs from a pool
missing RDMA device spec for device 0000:16:00.0, RDMA device "rdma_cm" not found (RDMA shared device plugin)
  pattern missing rdma device spec for device
  source  Mellanox/k8s-rdma-shared-dev-plugin#192
  checks  rdma.ports rdma.netns
  cause   The plugin skips this device, because a file of it in /dev/infiniband is missing: the module that makes it is
          not loaded on the node, or the NIC has no RDMA. If it exposes "0" devices, no pod gets RDMA.
  fix     on the node: modprobe rdma_ucm for "rdma_cm", ib_umad for "issm" and "umad", ib_uverbs and mlx5_ib for
          "uverbs"; name them in /etc/modules-load.d; then restart the plugin; for NICs without RDMA narrow the plugin's
          selectors
Control 64] Server encountered a fatal exception. Shutting down (nvidia-cuda-mps-control)
  pattern \bcontrol [0-9]{1,9}\] server encountered a fatal exception
  also    nvidia-cuda-mps-server exited with status [1-9]
  also    \bcontrol [0-9]{1,9}\] server [0-9]{1,9} exited with status [1-9]
  source  NVIDIA/k8s-device-plugin#1094
  cause   The MPS daemon starts a server for the client, and the server ends at once. The client hangs, or gets CUDA
          error 805. A known cause in Kubernetes: the daemon's pod has no hostPID, so the server does not find its own
          process in /proc.
  fix     read server.log in CUDA_MPS_LOG_DIRECTORY (in Kubernetes below /run/nvidia/mps); set hostPID: true in the pod
          of the mps-control-daemon; nvidia-smi must work in that pod
device number not matched (HAMi, Volcano vGPU)
  pattern \bdevice number not matched\b
  source  Project-HAMi/volcano-vgpu-device-plugin#93
  cause   Several pods that share GPUs were bound to this node at the same time. The kubelet asked for one of them, and
          the device plugin took the devices of another.
  fix     delete the pod with UnexpectedAdmissionError, so that it is scheduled again; with Volcano set
          deviceshare.NodeLockEnable: true for the scheduler's plugin deviceshare
QMP command failed: vfio 0000:65:00.0: device is already attached (Kata Containers)
  pattern vfio [0-9a-f:.]{7,14}: device is already attached
  source  NVIDIA/kubevirt-gpu-device-plugin#147
  cause   The GPU was given to the virtual machine twice: kubevirt-gpu-device-plugin 1.4.0 passes /dev/vfio/N and also
          /dev/vfio/devices/vfioN, which are the same GPU.
  fix     GPU Operator: set sandboxDevicePlugin.version to v1.3.1, or to a release that names this fault as fixed; in a
          VM of your own, list the GPU once
plugin type="gke" failed (add): failed to find plugin "gke" in path [/opt/cni/bin]
  pattern failed to find plugin "?gke"? in path
  source  NVIDIA/nvidia-container-toolkit#1222
  cause   The toolkit of the GPU Operator wrote containerd's configuration again, and put the default bin_dir in the
          place of GKE's (/home/kubernetes/bin). This happens from GKE 1.33 on, which has containerd 2.
  fix     in the ClusterPolicy set toolkit: {env: [{name: RUNTIME_CONFIG_SOURCE, value: file}]}; on the broken node
          correct bin_dir and restart containerd, or replace the node
Failed to pull image: unexpected status from HEAD request to https://REGISTRY: 403 Forbidden
  pattern unexpected status (?:code )?from (?:head|get|post) request to [^ ]{1,400}: 403 forbidden
  source  gpustack/gpustack#5456
  cause   The registry, or the mirror in the address, answers, and refuses this image: the mirror does not serve it,
          the name is wrong (such as docker.io/quay.io/...), it needs a login, or the address of the node is blocked.
  fix     crictl pull the image on the node; correct the name, or the mirror in /etc/containerd/certs.d; for a private
          image add imagePullSecrets; for nvcr.io without a login remove wrong credentials
Error applying MIG configuration with hooks: error initializing NVML: ERROR_LIBRARY_NOT_FOUND
  pattern applying mig configuration with hooks: error initializing nvml: error_library_not_found
  source  NVIDIA/gpu-operator#2874
  checks  driver.loaded
  cause   The pod of the MIG manager was created while the driver was not loaded, such as during an upgrade of the
          driver. It got no driver libraries then, and does not try again.
  fix     kubectl delete the nvidia-mig-manager pod of this node, after the driver pod is ready; the label
          nvidia.com/mig.config.state then becomes success; the same helps other pods of the GPU Operator
Called nvml.SetMigMode(nvml.DEVICE_MIG_DISABLE) for device gpu-0, got activationStatus: Not Supported (DRA driver)
  pattern nvml\.setmigmode\(nvml\.[a-z_]{5,30}\) for device [^ ]{1,80}, got activationstatus: not supported
  source  kubernetes-sigs/dra-driver-nvidia-gpu#1092
  checks  gpu.mig
  cause   The feature gate DynamicMIG of NVIDIA's DRA driver is on, and this GPU does not support MIG (T4, L4, GeForce,
          a vGPU). Older releases then publish no GPUs of this node.
  fix     update the DRA driver: newer releases skip DynamicMIG on such nodes; or turn it off (helm: --set
          featureGates.DynamicMIG=false)
error getting memory info for device 0: Not Supported (GB10)
  pattern error getting memory info for device [0-9]{1,3}: not supported
  also    error getting device memory: not supported
  also    nvml memory apis not supported for unified memory device
  also    failed to get device memory info v[12][^a-z]{1,12}error[^a-z]{1,6}not supported
  source  kubernetes-sigs/dra-driver-nvidia-gpu#1073
  checks  gpu.model
  cause   GB10 (DGX Spark) has no memory of its own, so NVML reports none. A program that insists on the number stops,
          others take the machine's memory instead, and the line is only a warning.
  fix     device plugin 0.17.4 (GPU operator 25.10) and newer ignore it; the DRA driver 25.12.0 stops: use a newer
          one, or the device plugin on these nodes
nslookup: can't resolve 'job-master-0': Name does not resolve / waiting for master (PyTorchJob)
  pattern nslookup: can't resolve '[a-z0-9.-]{1,80}-(?:master|launcher|leader|head)-[0-9]{1,4}
  also    name does not resolve waiting for master
  source  modelscope/ms-swift#6368
  cause   A worker's init container waits until the name of the master pod exists, that is until that pod has started.
          In the first minutes this is normal. The line with '(null)' has no meaning.
  fix     if it goes on: kubectl get pods shows the master pod, and kubectl describe pod why it is Pending; if it runs,
          test DNS in a pod: nslookup kubernetes.default
""")
