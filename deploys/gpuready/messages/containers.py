# ruff: noqa: E501  (a table: sentences and patterns stay whole)
"""Messages of the NVIDIA Container Toolkit, Docker, containerd, CRI-O and podman."""

from __future__ import annotations

from gpuready.messages.entry import Message

_TROUBLE = "docs.nvidia.com/datacenter/cloud-native/container-toolkit (troubleshooting)"

MESSAGES = (
    Message(
        'could not select device driver "" with capabilities: [[gpu]]',
        r"could not select device driver .{0,20}with capabilities: ?\[{1,2}gpu",
        "NVIDIA/nvidia-docker#1034",
        ("toolkit.version", "docker.runtime", "docker.smoke"),
        "Docker has no driver for --gpus: the NVIDIA Container Toolkit is not installed, Docker was not restarted after "
        "its first installation, or this is another Docker (snap, Docker Desktop, rootless).",
        "gpuready apply installs the toolkit and registers it in Docker; by hand: install nvidia-container-toolkit, "
        "then systemctl restart docker; snap list docker and docker context show find another Docker",
    ),
    Message(
        "docker: unknown flag: --gpus",
        r"unknown flag: ?--gpus",
        "NVIDIA/nvidia-docker#1199",
        ("docker.runtime",),
        "The docker command is older than 19.03, the first version with --gpus. The daemon may be newer. Or a program "
        "passed '--gpus all' as one argument.",
        "docker version shows both; update the client (docker-ce-cli, or docker.io), or use --runtime=nvidia -e "
        "NVIDIA_VISIBLE_DEVICES=all; in a program pass --gpus and all as two arguments",
    ),
    Message(
        "failed to discover GPU vendor from CDI: no known GPU vendor found",
        r"failed to discover gpu vendor from cdi",
        "ShaneIsrael/fireshare#689",
        ("cdi.spec", "docker.cdi", "toolkit.version", "driver.loaded"),
        "This Docker looks for the GPUs of --gpus in CDI specs, and finds none: the toolkit is not installed, no spec was "
        "written, or this machine has no NVIDIA GPU.",
        "gpuready apply installs the toolkit and writes the spec; by hand: nvidia-ctk cdi generate "
        "--output=/etc/cdi/nvidia.yaml, then systemctl restart docker; without an NVIDIA GPU leave --gpus out",
        also=(r"no known gpu vendor found",),
    ),
    Message(
        "unknown or invalid runtime name: nvidia",
        r"unknown (?:or invalid runtime name:|runtime specified) .{0,2}nvidia",
        "NVIDIA/nvidia-container-toolkit#150",
        ("docker.runtime", "docker.smoke"),
        "daemon.json does not name the runtime nvidia, or this Docker did not read that file.",
        "gpuready apply registers the runtime and reloads Docker; by hand: nvidia-ctk runtime configure "
        "--runtime=docker, then systemctl reload docker",
    ),
    Message(
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1",
        r"initialization error: load library failed: libnvidia-ml\.so",
        "NVIDIA/nvidia-container-toolkit#154",
        ("driver.loaded", "libcuda.ldcache", "libcuda.loader"),
        "The toolkit does not find the driver's libraries: no driver on the host, a directory that ldconfig does not "
        "list, or a Docker that runs elsewhere (snap, Docker Desktop).",
        "install the driver on the host; if ldconfig -p lists no libnvidia-ml.so.1, gpuready apply (ldso) adds the "
        "driver's directory",
    ),
    Message(
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=X",
        r"unsatisfied condition\b",
        "NVIDIA/nvidia-container-toolkit#152",
        ("image.compat",),
        "The image requires a newer CUDA (NVIDIA_REQUIRE_CUDA) than the driver on the host offers.",
        "gpuready compat -i INVENTORY --image IMAGE lists what helps: a newer driver or an older image; with "
        "NVIDIA_DISABLE_REQUIRE=1 the container starts, but CUDA may fail in it",
    ),
    Message(
        "nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory",
        r"ldcache error: open failed: /(?:usr/)?sbin/ldconfig",
        "NVIDIA/nvidia-docker#1760",
        ("toolkit.version", "docker.smoke"),
        "config.toml names an ldconfig that is not on this distribution.",
        "nvidia-ctk config --set nvidia-container-cli.ldconfig=@/sbin/ldconfig --in-place, or install a newer toolkit "
        "with gpuready apply",
    ),
    Message(
        "nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1",
        r"ldcache error: process \S{0,60}ldconfig\S{0,10} failed with error code",
        "NVIDIA/libnvidia-container#177",
        ("docker.smoke",),
        "The toolkit runs the host's ldconfig inside the container, and that failed: another architecture or C library "
        "in the image, a read-only root, or a rule that forbids the mounts.",
        "try the same with a plain ubuntu image to see whether the image is the cause; set a debug log in "
        "/etc/nvidia-container-runtime/config.toml to see why ldconfig failed",
    ),
    Message(
        "nvidia-container-cli: container error: cgroup subsystem devices not found",
        r"cgroup subsystem devices not found",
        "NVIDIA/nvidia-docker#1660",
        ("toolkit.version", "toolkit.floor"),
        "The host uses cgroup v2, and this libnvidia-container does not support it: it is older than 1.8.0, or a build of "
        "the distribution without it.",
        "gpuready apply installs NVIDIA's own packages of a current toolkit",
    ),
    Message(
        "nvidia-container-cli: device error: unknown device id",
        r"nvidia-container-cli(?:\.real)?: device error: .{0,100}unknown device",
        "NVIDIA/nvidia-container-toolkit#203",
        ("gpu.count", "gpu.mig", "gpu.answers"),
        "The container asks for a GPU that the driver does not list: a wrong index or UUID, a changed MIG layout, or a "
        "GPU that fell off the bus.",
        "compare NVIDIA_VISIBLE_DEVICES (or --gpus) with nvidia-smi -L; on Kubernetes restart the device plugin after "
        "a change of the MIG layout",
    ),
    Message(
        "nvidia-container-cli: mount error: failed to add device rules (cgroup v2)",
        r"mount error: failed to add device rules",
        "NVIDIA/nvidia-container-toolkit#139",
        ("toolkit.version", "config.cgroups"),
        "With cgroup v2, an older toolkit adds its rules to the container's eBPF device filter. The kernel refuses "
        "that: in a rootless engine, in LXC, with a hardened eBPF JIT, or by a fault of the old library.",
        "gpuready apply installs a toolkit that does not change the filter. Only for a rootless engine, or one in LXC, "
        "set no-cgroups = true in /etc/nvidia-container-runtime/config.toml",
    ),
    Message(
        "nvidia-container-cli: mount error: file creation failed",
        r"nvidia-container-cli(?:\.real)?: mount error: (?:file creation|mount operation) failed",
        "NVIDIA/nvidia-container-toolkit#289",
        ("docker.smoke",),
        "The toolkit cannot mount the driver's files into the image: the image has a driver of its own at that place, "
        "or the root is read-only.",
        "remove the NVIDIA driver packages (libnvidia-*, libcuda1) from the image: the driver comes from the host",
    ),
    Message(
        "nvidia-container-cli: initialization error: driver error: failed to process request",
        r"initialization error: driver (?:rpc )?error: (?:failed to process request|timed out)",
        "NVIDIA/nvidia-container-toolkit#183",
        ("gpu.answers", "gpu.persistence", "gpu.xid"),
        "The driver did not answer the toolkit in time. A GPU hangs, or wakes up slowly because persistence mode is off.",
        "run nvidia-smi on the host; systemctl enable --now nvidia-persistenced; look for an Xid in dmesg",
    ),
    Message(
        "nvidia-container-cli: initialization error: cuda error: unknown error",
        r"initialization error: cuda error: ",
        "NVIDIA/libnvidia-container#103",
        ("driver.loaded", "driver.nodes", "toolkit.floor"),
        "A very old libnvidia-container (before 1.1.0) starts CUDA, and CUDA does not initialize on the host.",
        "repair the driver first (nvidia-smi on the host), then gpuready apply, which installs a current toolkit",
    ),
    Message(
        "nvidia-container-cli: unrecognized option '--cuda-compat-mode=ldconfig'",
        r"unrecognized option .{0,2}--cuda-compat-mode",
        "NVIDIA/nvidia-container-toolkit (packages of one version)",
        ("toolkit.version", "toolkit.config"),
        "The toolkit's packages have different versions: the runtime is newer than libnvidia-container.",
        "gpuready apply installs all four packages at one version and holds them",
    ),
    Message(
        'exec: "nvidia-container-runtime": executable file not found in $PATH',
        r"nvidia-container-runtime['\"]?: executable file not found",
        "NVIDIA/nvidia-docker#1190",
        ("toolkit.config", "toolkit.version", "docker.runtime"),
        "The engine's configuration names the runtime nvidia, but its program is not installed, or not on the engine's "
        "PATH.",
        "gpuready apply installs the toolkit and writes the runtime's path; to do without it, gpuready remove takes the "
        "runtime from the engine's configuration",
        also=(
            r"(?:fork/exec |stat )?/usr/(?:local/)?(?:s?bin|nvidia/toolkit)/nvidia-container-runtime: no such file or directory",
        ),
    ),
    Message(
        'exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
        r"nvidia-container-(?:runtime-hook|toolkit)['\"]?: executable file not found",
        "NVIDIA/nvidia-docker#958",
        ("toolkit.config", "toolkit.version"),
        "A part of the toolkit is missing: only some of its packages are installed.",
        "gpuready apply installs all four packages at one version",
    ),
    Message(
        "nvidia-container-runtime-hook: an error of the hook",
        r"nvidia-container-runtime-hook",
        "NVIDIA/nvidia-container-toolkit (cmd/nvidia-container-runtime-hook)",
        ("toolkit.config", "toolkit.version", "docker.smoke"),
        "Before a container of docker run --gpus or of mode legacy starts, this hook calls nvidia-container-cli, which "
        "mounts the driver's files. The lines after its name say what failed.",
        "pass all lines of the error to gpuready explain; for more, switch the debug log of nvidia-container-cli on "
        "(guide: Will this image run here?)",
        general=True,
    ),
    Message(
        "selecting /usr/local/cuda-11.0/compat/libcuda.so.450.191.01 (debug log of nvidia-container-cli)",
        r"selecting \S{0,300}/compat/libcuda\.so",
        "NVIDIA/nvidia-docker#1668",
        ("image.compat", "libcuda.container"),
        "In mode legacy, this container gets the image's own libcuda instead of the driver's. On a GPU without "
        "forward compatibility, CUDA then fails with error 804.",
        "gpuready compat --image IMAGE -i INVENTORY says whether that works; toolkit: {cuda_compat_mode: disabled} "
        "keeps the driver's libcuda; switch the debug log off again",
    ),
    Message(
        'exec: "nvidia-smi": executable file not found in $PATH',
        r"nvidia-smi['\"]?: executable file not found",
        "NVIDIA/nvidia-docker#457",
        ("docker.runtime", "docker.smoke"),
        "The container has no nvidia-smi: it was started without the NVIDIA runtime, or without the capability utility "
        "(NVIDIA_DRIVER_CAPABILITIES).",
        "start it with --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all, or --gpus all; gpuready docker-args prints the "
        "options",
    ),
    Message(
        "unresolvable CDI devices nvidia.com/gpu=all",
        r"unresolvable cdi de ?vices",
        "NVIDIA/nvidia-container-toolkit#146",
        ("cdi.spec", "cdi.shadow", "cdi.podman", "docker.cdi"),
        "No CDI spec defines that device: there is no spec, it is in a directory that this engine does not read, it "
        "has other device names, or two specs define the same device.",
        "gpuready apply writes the spec; by hand: nvidia-ctk cdi list shows the names, nvidia-ctk cdi generate "
        "--output=/etc/cdi/nvidia.yaml writes it again",
    ),
    Message(
        "Error: stat nvidia.com/gpu=all: no such file or directory (podman)",
        r"\bstat nvidia\.com/gpu=\S{1,60} no such file or directory",
        "NVIDIA/nvidia-container-toolkit#63",
        ("cdi.podman",),
        "This podman takes the name of a CDI device for a path: podman before 4.1 does not know CDI.",
        "install podman 4.1 or newer, or use the nvidia runtime: podman run --runtime=nvidia -e "
        "NVIDIA_VISIBLE_DEVICES=all",
    ),
    Message(
        "failed to stat CDI host device: no such file or directory",
        r"failed to stat cdi host device",
        "NVIDIA/nvidia-container-toolkit#885",
        ("cdi.stale", "cdi.spec", "driver.nodes"),
        "The CDI spec names a device node that is no longer there: the spec is older than the last reboot or driver update.",
        "gpuready apply writes the spec again; by hand: systemctl restart nvidia-cdi-refresh",
    ),
    Message(
        "no such file or directory: libEGL_nvidia.so.535.161.07",
        r"no such file or directory: \S{0,80}lib(?:egl|gl|cuda|nvidia|nvcuvid|nvoptix)[a-z0-9_-]{0,24}\.so\.[0-9]{3}",
        "podman-container-tools/podman#23935",
        ("cdi.stale", "cdi.shadow", "docker.smoke"),
        "A CDI spec or an existing container names a library of the previous driver version.",
        "gpuready apply writes the CDI spec again; then recreate the container; by hand: systemctl restart "
        "nvidia-cdi-refresh",
        also=(
            r"(?<!64-bit library )(?<!pattern )lib(?:egl|gl[a-z0-9_]{0,8}|cuda|cudadebugger|nvidia|nvcuvid|nvoptix)[a-z0-9_-]{0,24}\.so\.[0-9.]{3,14}['\"]?:? "
            r"(?:no such file or directory|not found)",
        ),
    ),
    Message(
        "failed to create link: failed to check if link exists: unexpected link target",
        r"failed to create link.{0,160}unexpected link target",
        "NVIDIA/nvidia-container-toolkit#772",
        ("toolkit.version", "toolkit.floor"),
        "nvidia-container-toolkit 1.17.0 fails if the image has a link of that name with another target.",
        "gpuready apply installs a current toolkit (fixed in 1.17.1)",
    ),
    Message(
        "could not apply required modification to OCI specification: error modifying OCI spec",
        r"could not apply required modification to oci specification",
        "NVIDIA/nvidia-container-toolkit#1537",
        ("docker.smoke", "cdi.spec"),
        "nvidia-container-runtime could not add the GPUs to the container.",
        "read the end of the message, which names the cause, and pass it to gpuready explain; gpuready verify checks "
        "the driver, the CDI spec and the toolkit",
        general=True,
    ),
    Message(
        "Failed to initialize NVML: Unknown Error",
        r"failed to initialize nvml: unknown error",
        "NVIDIA/nvidia-container-toolkit#48",
        ("driver.charlinks", "config.cgroups", "cdi.config", "docker.smoke"),
        "The container lost its access to the GPU: systemctl daemon-reload rewrote the device rules while it ran. If "
        "it happens right at the start: a leftover no-cgroups = true in the toolkit's config.toml.",
        "recreate the container; to prevent it: CDI (runtimes.docker.cdi: true) or the links in /dev/char "
        "(reconverge: {on_driver_change: mend}), then gpuready apply",
    ),
    Message(
        "Failed to initialize NVML: Insufficient Permissions",
        r"failed to initialize nvml: insufficient permissions",
        "NVIDIA/nvidia-container-toolkit#210",
        ("docker.smoke", "cdi.podman"),
        "SELinux does not let the container use the NVIDIA devices, or this user may not open the device nodes.",
        "setsebool -P container_use_devices on, or start the container with --security-opt=label=disable; on the host "
        "check the mode of /dev/nvidia*",
    ),
    Message(
        "Failed to initialize NVML: GPU access blocked by the operating system",
        r"gpu access blocked by the operating system",
        "NVIDIA/nvidia-container-toolkit#85",
        ("config.cgroups",),
        "On WSL the container is not allowed to use the GPU: usually no-cgroups = true in the toolkit's config.toml.",
        "nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place, then recreate the container",
    ),
    Message(
        "unable to configure the Docker daemon with file /etc/docker/daemon.json",
        r"unable to configure the docker daemon with file",
        "NVIDIA/nvidia-docker#1420",
        ("docker.config",),
        "dockerd refuses daemon.json: the file is not valid JSON, or a key is also an option in ExecStart.",
        "dockerd --validate names the place; gpuready plan --only docker shows what gpuready would write, and apply "
        "puts the old file back if Docker does not start",
    ),
    Message(
        "the following directives are specified both as a flag and in the configuration file: runtimes",
        r"directives are specified both as a flag and in the configuration file",
        "NVIDIA/nvidia-docker#712",
        ("docker.config", "docker.runtime"),
        "The same setting is an option in dockerd's ExecStart and a key in daemon.json. Docker does not start.",
        "systemctl cat docker shows the option; remove it from ExecStart (with a drop-in) or from daemon.json",
    ),
    Message(
        "specified default runtime 'nvidia' does not exist",
        r"specified default runtime .{0,2}nvidia.{0,2} does not exist",
        "docs.docker.com/reference/cli/dockerd (default-runtime)",
        ("docker.config", "docker.runtime"),
        "daemon.json has default-runtime: nvidia, but no runtime of that name. Docker does not start.",
        "gpuready apply writes both; by hand: nvidia-ctk runtime configure --runtime=docker --set-as-default, then "
        "systemctl reset-failed docker and start it",
    ),
    Message(
        "docker: Error response from daemon: OCI runtime create failed: ... error running hook",
        r"error running (?:prestart |createcontainer )?hook",
        "NVIDIA/nvidia-docker#1217",
        ("docker.smoke",),
        "The toolkit's hook failed while the container was created.",
        "read the line after stderr:, and pass it to gpuready explain; gpuready verify starts a test container and "
        "shows its error",
        general=True,
    ),
    Message(
        "crun: error executing hook (podman)",
        r"crun: error executing hook",
        "NVIDIA/nvidia-container-toolkit#46",
        ("legacy.config", "cdi.podman", "toolkit.floor"),
        "An OCI hook failed under podman: the hook of an old toolkit beside CDI, or an nvidia-cdi-hook that is too old.",
        "gpuready apply removes the old hook (/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json) and makes a CDI "
        "spec; use --device nvidia.com/gpu=all",
    ),
    Message(
        'no runtime for "nvidia" is configured',
        r"no runtime for .{0,2}nvidia\S{0,12} is configured?",
        "NVIDIA/gpu-operator#413",
        ("containerd.runtime", "containerd.config", "containerd.smoke"),
        "containerd has no runtime of that name: config.toml does not name it, a drop-in replaces that section, or "
        "containerd was not restarted.",
        "gpuready apply writes it to the file that takes effect and restarts containerd; by hand: containerd config "
        "dump | grep nvidia shows whether containerd reads it; on k3s or RKE2 restart that service",
    ),
    Message(
        'RuntimeHandler "nvidia" not supported',
        r"runtimehandler .{0,4}nvidia.{0,4} not supported",
        "NVIDIA/gpu-operator#236",
        ("docker.runtime", "containerd.runtime"),
        "The kubelet uses Docker (dockershim), which has no runtime handlers; the pod asks for the RuntimeClass nvidia.",
        "move the node to containerd, or make nvidia the default runtime (runtimes.docker.default_runtime: true) and "
        "remove the RuntimeClass from the pod",
    ),
    Message(
        "failed to find runtime handler nvidia from runtime list map (CRI-O)",
        r"failed to find runtime handler .{0,2}nvidia",
        "NVIDIA/gpu-operator#1298",
        ("crio.config", "crio.lowlevel"),
        "CRI-O has no runtime nvidia, and the pod's RuntimeClass asks for it.",
        "gpuready apply writes a drop-in for CRI-O and reloads it; or remove runtimeClassName from the pod",
    ),
    Message(
        "containerd: failed to load TOML",
        r"containerd: failed to load toml",
        "containerd/containerd (config)",
        ("containerd.config", "containerd.runtime"),
        "containerd cannot read its configuration: a syntax error, or a file in imports that does not exist.",
        "containerd config dump names the place; gpuready apply validates each change and restores the old file if "
        "containerd does not answer",
    ),
    Message(
        "unknown service runtime.v1.RuntimeService (CRI disabled in containerd)",
        r"unknown service runtime\.v1(?:alpha2)?\.(?:runtime|image)service",
        "containerd/containerd#4581",
        ("containerd.config", "containerd.runtime"),
        'containerd runs without its CRI part: Docker\'s package writes disabled_plugins = ["cri"] to config.toml.',
        "remove cri from disabled_plugins in /etc/containerd/config.toml, then systemctl restart containerd; "
        "gpuready plan --only containerd shows what is missing",
    ),
    Message(
        "groups: cannot find name for group ID",
        r"groups: cannot find name for group id",
        _TROUBLE,
        (),
        "Harmless: since 1.19 the toolkit adds the host's group of the GPU devices, which has no name in the image.",
        "ignore it, or add the group to the image",
    ),
    Message(
        "failed to update ldcache (nvidia-cdi-hook)",
        r"(?:failed to|error) updat(?:e|ing) ldcache",
        "NVIDIA/nvidia-container-toolkit (nvidia-cdi-hook update-ldcache)",
        ("toolkit.version", "libcuda.container", "docker.smoke"),
        "The hook could not update the image's linker cache, so programs in the container do not find libcuda.so.1.",
        "gpuready apply installs a current toolkit; in an image without ldconfig set LD_LIBRARY_PATH to the driver's "
        "directory",
    ),
    Message(
        "invoking the NVIDIA Container Runtime Hook directly (docker --gpus) is not supported",
        r"invoking the nvidia container runtime hook directly",
        "dstackai/dstack#2306",
        ("toolkit.config", "docker.runtime", "docker.cdi"),
        "The toolkit's mode is cdi, or csv on a Jetson. docker's --gpus calls the old hook, which works in mode "
        "legacy only.",
        "start the container with --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all instead of --gpus, or set mode = "
        "'auto' in /etc/nvidia-container-runtime/config.toml (toolkit: {mode: auto})",
    ),
    Message(
        "failed to generate CDI spec: failed to locate libcuda.so.535.183.06",
        r"failed to (?:get libraries for driver version|locate libcuda\.so\.[0-9]{3})",
        "NVIDIA/nvidia-container-toolkit#735",
        ("libcuda.ldcache", "cdi.spec"),
        "nvidia-ctk does not find the libraries of the loaded driver: they are in a directory that it does not search.",
        "gpuready apply adds the directory to the linker cache (ldso) and makes the spec (cdi); by hand: nvidia-ctk "
        "cdi generate --library-search-path=DIRECTORY --output=/etc/cdi/nvidia.yaml",
    ),
)
