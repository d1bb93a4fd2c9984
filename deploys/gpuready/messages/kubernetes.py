# ruff: noqa: E501  (a table: sentences and patterns stay whole)
"""Messages of Kubernetes, its device plugin, the GPU Operator, and Slurm."""

from __future__ import annotations

from gpuready.messages.entry import Message

MESSAGES = (
    Message(
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
        r"insufficient nvidia\.com/(?:gpu|mig)",
        "NVIDIA/k8s-device-plugin#159",
        ("driver.loaded", "gpu.count", "containerd.runtime", "crio.config"),
        "No node offers enough free GPUs: all are in use, or the device plugin does not run or finds no driver.",
        "kubectl describe node shows Allocatable nvidia.com/gpu; if it is 0, read the log of the device plugin and run "
        "gpuready verify on the node",
    ),
    Message(
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu (UnexpectedAdmissionError)",
        r"allocate failed due to (?:requested number of devices unavailable for|no healthy devices present; cannot allocate unhealthy devices) nvidia\.com/",
        "kubernetes/kubernetes#130145",
        ("gpu.count", "gpu.answers", "gpu.xid"),
        "The kubelet has fewer free GPUs than the scheduler thought: a GPU became unhealthy, the device plugin has not "
        "registered yet after a restart, or the kubelet still counts a pod that has ended.",
        "delete the failed pod; read the log of the device plugin and run gpuready verify on the node; if both are "
        "fine, restart the kubelet",
        also=(r"can(?:no|')t allocate unregistered device nvidia\.com/",),
    ),
    Message(
        "0/4 nodes are available: 4 node(s) had untolerated taint {nvidia.com/gpu: true}",
        r"(?:untolerated|had) taint \{nvidia\.com/gpu",
        "vllm-project/aibrix#909",
        (),
        "The GPU nodes have the taint nvidia.com/gpu, which keeps other pods away, and this pod does not tolerate it.",
        "add to the pod: tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]; or remove the taint "
        "with kubectl taint nodes NODE nvidia.com/gpu-",
    ),
    Message(
        "could not load NVML library: libnvidia-ml.so.1 (device plugin)",
        r"could not load nvml library",
        "NVIDIA/k8s-device-plugin#478",
        ("containerd.runtime", "crio.config", "docker.runtime", "driver.loaded"),
        "The device plugin sees no GPU: its pod was started without the runtime nvidia, or the host has no driver.",
        "gpuready apply registers the runtime; then make it the default runtime, or give the plugin runtimeClassName: "
        "nvidia, and restart it",
        also=(r"(?:factory\.go:[0-9]{1,4}\] )?incompatible (?:platform|strategy) detected",),
    ),
    Message(
        "Failed to create pod sandbox",
        r"failed to create pod sandbox",
        "NVIDIA/gpu-operator#549",
        ("containerd.runtime", "containerd.smoke", "crio.config"),
        "The kubelet could not start a pod on this node.",
        "read the end of the message, which names the cause, and pass it to gpuready explain",
        general=True,
    ),
    Message(
        "Exiting.. can not change : incorrect RDMA subsystem network namespace",
        r"incorrect rdma subsystem network namespace",
        "Mellanox/k8s-rdma-shared-dev-plugin#84",
        ("rdma.netns", "rdma.conflict"),
        "The shared RDMA device plugin needs the mode shared, and the node runs in exclusive mode.",
        "set rdma: {netns_mode: shared} and gpuready apply; or use rdma-cni, which needs exclusive mode",
    ),
    Message(
        "slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory",
        r"(?:can't stat|waiting for) gres\.conf file /dev/{1,2}nvidia",
        "BiBiServ/bibigrid#705",
        ("driver.nodes", "driver.loaded", "gpu.count"),
        "gres.conf names a device that is not there: slurmd started before the driver, the driver is not loaded, or "
        "the node has no GPU.",
        "gpuready apply creates the device nodes at boot (component devices), and names what keeps the driver from "
        "loading; then restart slurmd; for nodes without GPUs, limit the line in gres.conf with NodeName=",
        also=(r"gres_device_major: stat\(/dev/nvidia",),
    ),
    Message(
        "gres/gpu count reported lower than configured",
        r"gres/gpu count reported lower than configured",
        "awslabs/awsome-distributed-ai#195",
        ("gpu.count", "driver.loaded", "gpu.mig"),
        "slurmd sees fewer GPUs than slurm.conf says, and Slurm drains the node: a GPU is off the bus, the driver is "
        "not loaded, MIG changed, or gres.conf is wrong.",
        "gpuready verify -i NODE counts the GPUs; after the repair: systemctl restart slurmd, scontrol update "
        "NodeName=NODE State=RESUME",
        also=(r"gres/gpu: count changed on node",),
    ),
    Message(
        "Invalid generic resource (gres) specification (Slurm)",
        r"invalid generic resource \(gres\) specification",
        "NVIDIA/NeMo-Framework-Launcher#72",
        ("gpu.count",),
        "The job asks for a GPU that Slurm does not know: slurm.conf has no GresTypes=gpu, no node has Gres=gpu, or the "
        "type has another name. For a job step: its job has no such GPU.",
        "scontrol show node NODE | grep Gres shows names and numbers; try --gres=gpu:1 without a type; after a change of "
        "slurm.conf or gres.conf restart slurmctld and slurmd",
    ),
    Message(
        "Requested node configuration is not available (Slurm)",
        r"requested node configuration is not available",
        "SlinkyProject/slurm-operator#18",
        ("gpu.count", "driver.loaded"),
        "No node of this partition has what the job asks for, even if it is idle: fewer GPUs, CPUs or less memory, or "
        "Gres is (null) because slurm.conf names no GPUs.",
        "sinfo -o '%P %N %G %c %m' shows GPUs, CPUs and memory of each partition; ask for less, or correct slurm.conf; "
        "gpuready verify -i NODE counts the GPUs",
    ),
    Message(
        "Reason=Prolog error (Slurm)",
        r"(?:prolog|epilog) error\b(?!:)",
        "mknoxnv/ubuntu-slurm#4",
        ("gate.ready", "driver.loaded", "gpu.count"),
        "Slurm's prolog or epilog ended with an error, so Slurm drained the node. If gpuready's gate is the prolog, the "
        "node is not ready for GPU jobs.",
        "run gpuready-verify on the node, or read slurmd.log if the script is another one; after the repair: scontrol "
        "update NodeName=NODE State=RESUME",
        also=(r"(?<!task-)(?<!task )\bprolog failed\b(?! to)", r"prolog failure on node"),
    ),
    Message(
        "Kill task failed (Slurm)",
        r"\bkill task failed",
        "lyulyul/shine-cluster#166",
        ("gpu.answers", "gpu.xid"),
        "A process of a job did not end after SIGKILL, so Slurm drained the node. It hangs in the kernel: a GPU that does "
        "not answer, a network file system, or a large core dump.",
        "ps -eo pid,stat,wchan:30,args shows it, with D in its state; look for an Xid in dmesg; reboot the node, or, if "
        "the process has ended, resume it; UnkillableStepTimeout in slurm.conf is how long Slurm waits",
    ),
    Message(
        "batch job complete failure (Slurm)",
        r"batch job complete failure",
        "SchedMD/slurm (src/slurmctld/proc_req.c)",
        ("gpu.answers", "gpu.xid"),
        "slurmd reported an error of its own for a batch job, so Slurm drained the node. Often a process of the job did not "
        "end after SIGKILL, or slurmd could not set the job up.",
        "slurmctld.log names the error after 'slurmd error running JobId'; read slurmd.log of that time on the node; after "
        "the repair: scontrol update NodeName=NODE State=RESUME",
        also=(r"slurmd error running jobid=",),
    ),
    Message(
        "Low RealMemory / has low real_memory size (Slurm)",
        r"\blow real_?memory\b",
        "aws/aws-parallelcluster#1517",
        (),
        "The node has less memory than RealMemory in slurm.conf, so Slurm drains it. The number is too high, or a memory "
        "module failed.",
        "slurmd -C on the node prints what it has; set RealMemory a little lower, then scontrol reconfigure and scontrol "
        "update NodeName=NODE State=RESUME; if it worked before, look for the missing module",
    ),
    Message(
        "Unable to contact slurm controller (connect failure)",
        r"unable to contact slurm controller",
        "ArjunaCluster/ArjunaUsers#111",
        (),
        "slurmctld does not answer: it does not run, this host has another slurm.conf, or a firewall blocks its port "
        "(6817).",
        "scontrol ping; on the controller systemctl status slurmctld munge and slurmctld.log; compare SlurmctldHost in "
        "slurm.conf, the munge key and the clocks",
    ),
    Message(
        "launch failed requeued held (Slurm)",
        r"launch[ _]failed[ _]requeued[ _]held",
        "burrmill/burrmill#15",
        ("gate.ready",),
        "Slurm could not start the job on its node, so it put the job back and holds it: most often the prolog failed, or "
        "slurmd needs a restart.",
        "scontrol show job JOBID names the node (BatchHost); read slurmd.log there and repair it; then scontrol release "
        "JOBID",
    ),
    Message(
        "We were configured to autodetect nvml functionality, but we weren't able to find that lib",
        r"configured to autodetect nvml functionality",
        "NVIDIA/deepops#1214",
        ("libcuda.ldcache", "driver.loaded"),
        "gres.conf has AutoDetect=nvml, but this slurmd was built without NVML, or does not find libnvidia-ml.so.1.",
        "build Slurm with --with-nvml, or list the devices in gres.conf (File=/dev/nvidia[0-7])",
    ),
    Message(
        "slurmd: fatal: gres.conf duplicate records for gpu",
        r"gres\.conf duplicate records",
        "ComputeCanada/puppet-magic_castle#27",
        (),
        "gres.conf names gpu twice, beside AutoDetect or on two lines without Type or File.",
        "leave one line, such as AutoDetect=nvml alone, and restart slurmd",
    ),
    Message(
        "gres/gpu: invalid GRES core specification",
        r"invalid gres core specification",
        "NVIDIA/deepops#1195",
        (),
        "The CPUs in gres.conf are numbers of threads, or of another machine; Slurm expects core numbers.",
        "remove CPUs= from gres.conf and use AutoDetect=nvml, or write Cores= with Slurm's own numbers",
    ),
    Message(
        "No MIG devices associated with /dev/nvidia0 (device plugin)",
        r"no mig devices associated with",
        "NVIDIA/k8s-device-plugin#253",
        ("gpu.mig",),
        "MIG mode is on, but the GPU has no MIG instance.",
        "create instances (nvidia-smi mig -cgi PROFILE -C) or switch MIG off (nvidia-smi -i N -mig 0), then restart "
        "the device plugin",
    ),
    Message(
        "invalid MIG configuration (device plugin)",
        r"invalid mig configuration",
        "NVIDIA/k8s-device-plugin#397",
        ("gpu.mig",),
        "A GPU in MIG mode has no usable instance; or the plugin's MIG strategy is single, and the instances differ.",
        "compare nvidia-smi -L with the strategy of the device plugin: mixed allows different instances, none ignores "
        "MIG",
    ),
    Message(
        "error getting device memory info: Insufficient Permissions (device plugin)",
        r"error getting device memory info",
        "NVIDIA/k8s-device-plugin#399",
        ("gpu.mig",),
        "The device plugin's container sees the GPU, but may not read its MIG instances.",
        "set NVIDIA_MIG_MONITOR_DEVICES=all in the device plugin's container, which must run privileged",
    ),
    Message(
        "dcgm-exporter: Cannot init NVML library; err: ERROR_LIBRARY_NOT_FOUND",
        r"cannot init nvml library; err: error_library_not_found",
        "NVIDIA/dcgm-exporter#612",
        ("containerd.runtime", "docker.runtime"),
        "The container of dcgm-exporter has no libnvidia-ml: the nvidia runtime did not start it.",
        "set runtimeClassName: nvidia for its pod; in Docker, start it with --gpus all",
    ),
    Message(
        "Error watching fields: This request is serviced by a module of DCGM that is not currently loaded",
        r"serviced by a module of dcgm that is not currently loaded",
        "NVIDIA/gpu-monitoring-tools#141",
        ("gpu.model",),
        "dcgm-exporter asks for profiling metrics, which only data-center GPUs have. Before 2.1.2 it asked on every GPU "
        "and ended.",
        "install dcgm-exporter 2.1.2 or newer; else remove the DCGM_FI_PROF_ fields from its list of counters",
    ),
)
