# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of the NVIDIA Container Toolkit, Docker, containerd, CRI-O and podman."""

from gpuready.messages.entry import read

MESSAGES = read(r"""
could not select device driver "" with capabilities: [[gpu]]
  pattern could not select device driver .{0,20}with capabilities: ?\[{1,2}gpu
  source  NVIDIA/nvidia-docker#1034
  checks  toolkit.version docker.runtime docker.smoke
  cause   Docker has no driver for --gpus: the NVIDIA Container Toolkit is not installed, Docker was not restarted after
          its first installation, or this is another Docker (snap, Docker Desktop, rootless).
  fix     gpuready apply installs the toolkit and registers it in Docker; by hand: install nvidia-container-toolkit,
          then systemctl restart docker; snap list docker and docker context show find another Docker
docker: unknown flag: --gpus
  pattern unknown flag: ?--gpus
  source  NVIDIA/nvidia-docker#1199
  checks  docker.runtime
  cause   The docker command is older than 19.03, the first version with --gpus. The daemon may be newer. Or a program
          passed '--gpus all' as one argument.
  fix     docker version shows both; update the client (docker-ce-cli, or docker.io), or use --runtime=nvidia -e
          NVIDIA_VISIBLE_DEVICES=all; in a program pass --gpus and all as two arguments
failed to discover GPU vendor from CDI: no known GPU vendor found
  pattern failed to discover gpu vendor from cdi
  also    no known gpu vendor found
  source  ShaneIsrael/fireshare#689
  checks  cdi.spec docker.cdi toolkit.version driver.loaded
  cause   This Docker looks for the GPUs of --gpus in CDI specs, and finds none: the toolkit is not installed, no spec
          was written, or this machine has no NVIDIA GPU.
  fix     gpuready apply installs the toolkit and writes the spec; by hand: nvidia-ctk cdi generate
          --output=/etc/cdi/nvidia.yaml, then systemctl restart docker; without an NVIDIA GPU leave --gpus out
unknown or invalid runtime name: nvidia
  pattern unknown (?:or invalid runtime name:|runtime specified) .{0,2}nvidia
  source  NVIDIA/nvidia-container-toolkit#150
  checks  docker.runtime docker.smoke
  cause   daemon.json does not name the runtime nvidia, or this Docker did not read that file.
  fix     gpuready apply registers the runtime and reloads Docker; by hand: nvidia-ctk runtime configure
          --runtime=docker, then systemctl reload docker
nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1
  pattern initialization error: load library failed: libnvidia-ml\.so
  source  NVIDIA/nvidia-container-toolkit#154
  checks  driver.loaded libcuda.ldcache libcuda.loader
  cause   The toolkit does not find the driver's libraries: no driver on the host, a directory that ldconfig does not
          list, or a Docker that runs elsewhere (snap, Docker Desktop).
  fix     install the driver on the host; if ldconfig -p lists no libnvidia-ml.so.1, gpuready apply (ldso) adds the
          driver's directory
nvidia-container-cli: requirement error: unsatisfied condition: cuda>=X
  pattern unsatisfied condition\b
  source  NVIDIA/nvidia-container-toolkit#152
  checks  image.compat
  cause   The image requires a newer CUDA (NVIDIA_REQUIRE_CUDA) than the driver on the host offers.
  fix     gpuready compat -i INVENTORY --image IMAGE lists what helps: a newer driver or an older image; with
          NVIDIA_DISABLE_REQUIRE=1 the container starts, but CUDA may fail in it
nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory
  pattern ldcache error: open failed: /(?:usr/)?sbin/ldconfig
  source  NVIDIA/nvidia-docker#1760
  checks  toolkit.version docker.smoke
  cause   config.toml names an ldconfig that is not on this distribution.
  fix     nvidia-ctk config --set nvidia-container-cli.ldconfig=@/sbin/ldconfig --in-place, or install a newer toolkit
          with gpuready apply
nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1
  pattern ldcache error: process \S{0,60}ldconfig\S{0,10} failed with error code
  source  NVIDIA/libnvidia-container#177
  checks  docker.smoke
  cause   The toolkit runs the host's ldconfig inside the container, and that failed: another architecture or C library
          in the image, a read-only root, or a rule that forbids the mounts. The latter also holds for a container in a
          container, such as enroot in a slurmd pod.
  fix     try the same with a plain ubuntu image to see whether the image is the cause; set a debug log in
          /etc/nvidia-container-runtime/config.toml to see why ldconfig failed; for enroot in a container take
          --ldconfig=@... out of /etc/enroot/hooks.d/98-nvidia.sh
nvidia-container-cli: ldcache error: process /sbin/ldconfig terminated with signal 9
  pattern ldcache error: process \S{0,60}ldconfig\S{0,10} terminated with signal
  source  NVIDIA/k8s-device-plugin#1400
  checks  cdi.spec docker.smoke
  cause   The toolkit's ldconfig did not end, and was killed. Mostly the toolkit is older than the C library of the
          host: its filter refuses a system call that newer ldconfig needs (clock_gettime), and ldconfig uses up its
          memory. Else the container's memory limit is too small. Only mode legacy, and LXC, run it in this way.
  fix     update the toolkit (releases since November 2025 allow the call): toolkit in the spec, then gpuready apply;
          or use CDI: toolkit: {mode: cdi}; else raise the container's memory limit
error executing hook /usr/bin/nvidia-cdi-hook (exit code: 1)
  pattern error executing hook \S{0,60}nvidia-(?:cdi-hook|ctk|container-runtime-hook)\S{0,3} \(exit code
  source  ublue-os/bluefin#3454
  checks  cdi.stale cdi.spec toolkit.version
  cause   A hook of the NVIDIA container toolkit failed in crun, which does not print why. The CDI spec is often older
          than the driver or the toolkit. crun of OpenShift 4.18.21 and 4.18.22 has this fault by itself.
  fix     gpuready apply writes the spec again (by hand: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml); on
          OpenShift update to 4.18.24 or use runc; run the same container with runc to see the hook's message
enroot: Compressor "lzo" is not supported! / Command not found: squashfuse
  pattern compressor "?[a-z0-9]{2,6}"? is not supported
  also    command not found: (?:squashfuse|fuse-overlayfs|mksquashfs)
  source  NVIDIA/enroot#276
  cause   enroot needs squashfs-tools with the compressor of its configuration, and squashfuse and fuse-overlayfs to mount
          an image without unpacking it. One of them is missing on this node.
  fix     install squashfs-tools, squashfuse and fuse-overlayfs; or choose a compressor that is there in
          ENROOT_SQUASH_OPTIONS (enroot.conf), such as -comp zstd
pyxis: a container with name X does not exist, and --container-image is not set
  pattern pyxis: .{0,40}a container with name .{1,100}does not exist
  source  NVIDIA/enroot#249
  cause   pyxis keeps a named container on one node for one user. This node does not have it: another node ran the step
          before, or the container was removed at the end of the job.
  fix     give --container-image in each srun too, or use the same node; container_scope=global in plugstack.conf keeps
          them beyond the job
Ignoring error in locating libnvidia-sandboxutils.so.1
  pattern error in locating libnvidia-sandboxutils
  source  NVIDIA/nvidia-container-toolkit#972
  checks  cdi.spec
  cause   This is harmless: this driver does not bring that library, and nvidia-ctk goes on without it.
  fix     nothing
nvidia-container-cli: container error: cgroup subsystem devices not found
  pattern cgroup subsystem devices not found
  source  NVIDIA/nvidia-docker#1660
  checks  toolkit.version toolkit.floor
  cause   The host uses cgroup v2, and this libnvidia-container does not support it: it is older than 1.8.0, or a build
          of the distribution without it.
  fix     gpuready apply installs NVIDIA's own packages of a current toolkit
nvidia-container-cli: device error: unknown device id
  pattern nvidia-container-cli(?:\.real)?: device error: .{0,100}unknown device
  source  NVIDIA/nvidia-container-toolkit#203
  checks  gpu.count gpu.mig gpu.answers
  cause   The container asks for a GPU that the driver does not list: a wrong index or UUID, a changed MIG layout, or a
          GPU that fell off the bus.
  fix     compare NVIDIA_VISIBLE_DEVICES (or --gpus) with nvidia-smi -L; on Kubernetes restart the device plugin after a
          change of the MIG layout
nvidia-container-cli: mount error: failed to add device rules (cgroup v2)
  pattern mount error: failed to add device rules
  source  NVIDIA/nvidia-container-toolkit#139
  checks  toolkit.version config.cgroups
  cause   With cgroup v2, an older toolkit adds its rules to the container's eBPF device filter. The kernel refuses
          that: in a rootless engine, in LXC, with a hardened eBPF JIT, or by a fault of the old library.
  fix     gpuready apply installs a toolkit that does not change the filter. Only for a rootless engine, or one in LXC,
          set no-cgroups = true in /etc/nvidia-container-runtime/config.toml
nvidia-container-cli: mount error: failed to add device rules: open /sys/fs/cgroup/devices/.../devices.allow: permission denied
  pattern failed to add device rules: open /sys/fs/cgroup/devices/[^ ]{0,200}devices\.allow: (?:permission denied|operation not permitted)
  source  NVIDIA/libnvidia-container#313
  checks  toolkit.version config.cgroups
  cause   The node uses cgroup v1, and enroot or Slurm runs nvidia-container-cli without the right to change the device
          rules. libnvidia-container 1.17.7 began to change them there, too.
  fix     upgrade libnvidia-container (newer than 1.17.7), or set no-cgroups = true in
          /etc/nvidia-container-runtime/config.toml on this node; Slurm's ConstrainDevices limits the GPUs
nvidia-container-cli: mount error: file creation failed: .../run/nvidia-persistenced/socket: no such device or address
  pattern mount error: (?:file creation|mount operation) failed: [^ ]{0,300}/nvidia-persistenced/socket
  source  NVIDIA/nvidia-docker#1690
  checks  driver.persistenced docker.smoke
  cause   The toolkit wants to put the socket of nvidia-persistenced into the container, but a socket is already there:
          the container mounts the host's /run or /var/run, or enroot's root file system keeps one from before.
  fix     mount only the directory that the program needs instead of /run or /var/run; with enroot remove
          run/nvidia-persistenced/socket from the container's root (enroot create makes a new one)
nvidia-container-cli: mount error: file creation failed
  pattern nvidia-container-cli(?:\.real)?: mount error: (?:file creation|mount operation) failed
  source  NVIDIA/nvidia-container-toolkit#289
  checks  docker.smoke
  cause   The toolkit cannot mount the driver's files into the image: the image has a driver of its own at that place,
          or the root is read-only.
  fix     remove the NVIDIA driver packages (libnvidia-*, libcuda1) from the image: the driver comes from the host
nvidia-container-cli: initialization error: driver error: failed to process request
  pattern initialization error: driver (?:rpc )?error: (?:failed to process request|timed out)
  source  NVIDIA/nvidia-container-toolkit#183
  checks  gpu.answers gpu.persistence gpu.xid
  cause   The driver did not answer the toolkit in time. A GPU hangs, or wakes up slowly because persistence mode is
          off.
  fix     run nvidia-smi on the host; systemctl enable --now nvidia-persistenced; look for an Xid in dmesg
nvidia-container-cli: initialization error: cuda error: unknown error
  pattern initialization error: cuda error:[ ]
  source  NVIDIA/libnvidia-container#103
  checks  driver.loaded driver.nodes toolkit.floor
  cause   A very old libnvidia-container (before 1.1.0) starts CUDA, and CUDA does not initialize on the host.
  fix     repair the driver first (nvidia-smi on the host), then gpuready apply, which installs a current toolkit
nvidia-container-cli: unrecognized option '--cuda-compat-mode=ldconfig'
  pattern unrecognized option .{0,2}--cuda-compat-mode
  source  NVIDIA/nvidia-container-toolkit (packages of one version)
  checks  toolkit.version toolkit.config
  cause   The toolkit's packages have different versions: the runtime is newer than libnvidia-container.
  fix     gpuready apply installs all four packages at one version and holds them
exec: "nvidia-container-runtime": executable file not found in $PATH
  pattern nvidia-container-runtime['\"]?: executable file not found
  also    (?:fork/exec |stat )?/usr/(?:local/)?(?:s?bin|nvidia/toolkit)/nvidia-container-runtime: no such file or directory
  source  NVIDIA/nvidia-docker#1190
  checks  toolkit.config toolkit.version docker.runtime
  cause   The engine's configuration names the runtime nvidia, but its program is not installed, or not on the engine's
          PATH.
  fix     gpuready apply installs the toolkit and writes the runtime's path; to do without it, gpuready remove takes the
          runtime from the engine's configuration
exec: "nvidia-container-runtime-hook": executable file not found in $PATH
  pattern nvidia-container-(?:runtime-hook|toolkit)['\"]?: executable file not found
  source  NVIDIA/nvidia-docker#958
  checks  toolkit.config toolkit.version
  cause   A part of the toolkit is missing: only some of its packages are installed.
  fix     gpuready apply installs all four packages at one version
nvidia-container-runtime-hook: an error of the hook
  pattern nvidia-container-runtime-hook
  general
  source  NVIDIA/nvidia-container-toolkit (cmd/nvidia-container-runtime-hook)
  checks  toolkit.config toolkit.version docker.smoke
  cause   Before a container of docker run --gpus or of mode legacy starts, this hook calls nvidia-container-cli, which
          mounts the driver's files. The lines after its name say what failed.
  fix     pass all lines of the error to gpuready explain; for more, switch the debug log of nvidia-container-cli on
          (guide: Will this image run here?)
selecting /usr/local/cuda-11.0/compat/libcuda.so.450.191.01 (debug log of nvidia-container-cli)
  pattern selecting \S{0,300}/compat/libcuda\.so
  source  NVIDIA/nvidia-docker#1668
  checks  image.compat libcuda.container
  cause   In mode legacy, this container gets the image's own libcuda instead of the driver's. On a GPU without forward
          compatibility, CUDA then fails with error 804.
  fix     gpuready compat --image IMAGE -i INVENTORY says whether that works; toolkit: {cuda_compat_mode: disabled}
          keeps the driver's libcuda; switch the debug log off again
exec: "nvidia-smi": executable file not found in $PATH
  pattern nvidia-smi['\"]?: executable file not found
  source  NVIDIA/nvidia-docker#457
  checks  docker.runtime docker.smoke
  cause   The container has no nvidia-smi: it was started without the NVIDIA runtime, or without the capability utility
          (NVIDIA_DRIVER_CAPABILITIES).
  fix     start it with --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all, or --gpus all; gpuready docker-args prints the
          options
unresolvable CDI devices nvidia.com/gpu=all
  pattern unresolvable cdi de ?vices
  source  NVIDIA/nvidia-container-toolkit#146
  checks  cdi.spec cdi.shadow cdi.podman docker.cdi
  cause   No CDI spec defines that device: there is no spec, it is in a directory that this engine does not read, it has
          other device names, or two specs define the same device.
  fix     gpuready apply writes the spec; by hand: nvidia-ctk cdi list shows the names, nvidia-ctk cdi generate
          --output=/etc/cdi/nvidia.yaml writes it again
unresolvable CDI devices k8s.gpu.nvidia.com/device=gpu-1 (of a Kubernetes component)
  pattern unresolvable cdi de ?vices \S{0,20}(?:k8s\.|management\.)\S{1,40}nvidia\.com/
  also    unresolvable cdi de ?vices management\.nvidia\.com/
  also    unresolvable cdi de ?vices nvidia\.com/(?!gpu=)[a-z]{1,30}=
  source  kubernetes-sigs/dra-driver-nvidia-gpu#736
  checks  containerd.cdi crio.cdi
  cause   The device plugin, the DRA driver or the GPU Operator writes the CDI spec of this device, and nvidia-ctk cdi
          generate does not. The spec is missing, is older than the MIG layout, has other names, or is in a directory
          that the engine does not read.
  fix     nvidia-ctk cdi list on the node shows the names; restart the pod that writes the spec; the engine needs
          enable_cdi and its cdi_spec_dirs; management.nvidia.com has only the name all: leave
          NVIDIA_VISIBLE_DEVICES to the operator
Error: stat nvidia.com/gpu=all: no such file or directory (podman)
  pattern \bstat nvidia\.com/gpu=\S{1,60} no such file or directory
  source  NVIDIA/nvidia-container-toolkit#63
  checks  cdi.podman
  cause   This podman takes the name of a CDI device for a path: podman before 4.1 does not know CDI.
  fix     install podman 4.1 or newer, or use the nvidia runtime: podman run --runtime=nvidia -e
          NVIDIA_VISIBLE_DEVICES=all
failed to stat CDI host device: no such file or directory
  pattern failed to stat cdi host device
  source  NVIDIA/nvidia-container-toolkit#885
  checks  cdi.stale cdi.spec driver.nodes
  cause   The CDI spec names a device node that is no longer there: the spec is older than the last reboot or driver
          update.
  fix     gpuready apply writes the spec again; by hand: systemctl restart nvidia-cdi-refresh
no such file or directory: libEGL_nvidia.so.535.161.07
  pattern no such file or directory: \S{0,80}lib(?:egl|gl|cuda|nvidia|nvcuvid|nvoptix)[a-z0-9_-]{0,24}\.so\.[0-9]{3}
  also    (?<!64-bit library )(?<!pattern )lib(?:egl|gl[a-z0-9_]{0,8}|cuda|cudadebugger|nvidia|nvcuvid|nvoptix)[a-z0-9_-]{0,24}\.so\.[0-9.]{3,14}['\"]?:? (?:no such file or directory|not found)
  source  podman-container-tools/podman#23935
  checks  cdi.stale cdi.shadow docker.smoke
  cause   A CDI spec or an existing container names a library of the previous driver version.
  fix     gpuready apply writes the CDI spec again; then recreate the container; by hand: systemctl restart
          nvidia-cdi-refresh
failed to create link: failed to check if link exists: unexpected link target
  pattern failed to create link.{0,160}unexpected link target
  source  NVIDIA/nvidia-container-toolkit#772
  checks  toolkit.version toolkit.floor
  cause   nvidia-container-toolkit 1.17.0 fails if the image has a link of that name with another target.
  fix     gpuready apply installs a current toolkit (fixed in 1.17.1)
could not apply required modification to OCI specification: error modifying OCI spec
  pattern could not apply required modification to oci specification
  general
  source  NVIDIA/nvidia-container-toolkit#1537
  checks  docker.smoke cdi.spec
  cause   nvidia-container-runtime could not add the GPUs to the container.
  fix     read the end of the message, which names the cause, and pass it to gpuready explain; gpuready verify checks
          the driver, the CDI spec and the toolkit
Failed to initialize NVML: Unknown Error
  pattern failed to initialize nvml: unknown error
  source  NVIDIA/nvidia-container-toolkit#48
  checks  driver.charlinks config.cgroups cdi.config docker.smoke
  cause   The container lost its access to the GPU: systemctl daemon-reload rewrote the device rules while it ran. If it
          happens right at the start: a leftover no-cgroups = true in the toolkit's config.toml.
  fix     recreate the container; to prevent it: CDI (runtimes.docker.cdi: true) or the links in /dev/char (reconverge:
          {on_driver_change: mend}), then gpuready apply
Failed to initialize NVML: Insufficient Permissions
  pattern failed to initialize nvml: insufficient permissions
  also    nvml error: insufficient permissions
  source  NVIDIA/nvidia-container-toolkit#210
  checks  docker.smoke cdi.podman
  cause   SELinux does not let the container use the NVIDIA devices, or this user may not open the device nodes.
  fix     setsebool -P container_use_devices on, or start the container with --security-opt=label=disable; on the host
          check the mode of /dev/nvidia*
NVML error 4: NVML_ERROR_NO_PERMISSION, Insufficient Permissions
  pattern nvmlerror_nopermission
  code    nvml 4
  source  NVIDIA/nvidia-container-toolkit#842
  checks  gpu.mig docker.smoke
  cause   NVML works, but this call is not allowed here. With MIG on, a container may not read the whole GPU, such as its
          memory. Other calls need root: clocks, modes, accounting.
  fix     in MIG mode ask the MIG device (nvmlDeviceGetMigDeviceHandleByIndex), or use a program that knows MIG; else run
          the program as root on the host; if NVML does not start at all, see SELinux: setsebool -P container_use_devices on
Failed to initialize NVML: GPU access blocked by the operating system
  pattern gpu access blocked by the operating system
  source  NVIDIA/nvidia-container-toolkit#85
  checks  config.cgroups
  cause   On WSL the container is not allowed to use the GPU: usually no-cgroups = true in the toolkit's config.toml.
  fix     nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place, then recreate the container
unable to configure the Docker daemon with file /etc/docker/daemon.json
  pattern unable to configure the docker daemon with file
  source  NVIDIA/nvidia-docker#1420
  checks  docker.config
  cause   dockerd refuses daemon.json: the file is not valid JSON, or a key is also an option in ExecStart.
  fix     dockerd --validate names the place; gpuready plan --only docker shows what gpuready would write, and apply
          puts the old file back if Docker does not start
the following directives are specified both as a flag and in the configuration file: runtimes
  pattern directives are specified both as a flag and in the configuration file
  source  NVIDIA/nvidia-docker#712
  checks  docker.config docker.runtime
  cause   The same setting is an option in dockerd's ExecStart and a key in daemon.json. Docker does not start.
  fix     systemctl cat docker shows the option; remove it from ExecStart (with a drop-in) or from daemon.json
specified default runtime 'nvidia' does not exist
  pattern specified default runtime .{0,2}nvidia.{0,2} does not exist
  source  docs.docker.com/reference/cli/dockerd (default-runtime)
  checks  docker.config docker.runtime
  cause   daemon.json has default-runtime: nvidia, but no runtime of that name. Docker does not start.
  fix     gpuready apply writes both; by hand: nvidia-ctk runtime configure --runtime=docker --set-as-default, then
          systemctl reset-failed docker and start it
docker: Error response from daemon: OCI runtime create failed: ... error running hook
  pattern error running (?:prestart |createcontainer )?hook
  general
  source  NVIDIA/nvidia-docker#1217
  checks  docker.smoke
  cause   The toolkit's hook failed while the container was created.
  fix     read the line after stderr:, and pass it to gpuready explain; gpuready verify starts a test container and
          shows its error
crun: error executing hook (podman)
  pattern crun: error executing hook
  source  NVIDIA/nvidia-container-toolkit#46
  checks  legacy.config cdi.podman toolkit.floor
  cause   An OCI hook failed under podman: the hook of an old toolkit beside CDI, or an nvidia-cdi-hook that is too old.
  fix     gpuready apply removes the old hook (/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json) and makes a CDI
          spec; use --device nvidia.com/gpu=all
no runtime for "nvidia" is configured
  pattern no runtime for .{0,2}nvidia\S{0,12} is configured?
  source  NVIDIA/gpu-operator#413
  checks  containerd.runtime containerd.config containerd.smoke
  cause   containerd has no runtime of that name: config.toml does not name it, a drop-in replaces that section, or
          containerd was not restarted.
  fix     gpuready apply writes it to the file that takes effect and restarts containerd; by hand: containerd config
          dump | grep nvidia shows whether containerd reads it; on k3s or RKE2 restart that service
RuntimeHandler "nvidia" not supported
  pattern runtimehandler .{0,4}nvidia.{0,4} not supported
  source  NVIDIA/gpu-operator#236
  checks  docker.runtime containerd.runtime
  cause   The kubelet uses Docker (dockershim), which has no runtime handlers; the pod asks for the RuntimeClass nvidia.
  fix     move the node to containerd, or make nvidia the default runtime (runtimes.docker.default_runtime: true) and
          remove the RuntimeClass from the pod
failed to find runtime handler nvidia from runtime list map (CRI-O)
  pattern failed to find runtime handler .{0,2}nvidia
  source  NVIDIA/gpu-operator#1298
  checks  crio.config crio.lowlevel
  cause   CRI-O has no runtime nvidia, and the pod's RuntimeClass asks for it.
  fix     gpuready apply writes a drop-in for CRI-O and reloads it; or remove runtimeClassName from the pod
containerd: failed to load TOML
  pattern containerd: failed to load toml
  source  containerd/containerd (config)
  checks  containerd.config containerd.runtime
  cause   containerd cannot read its configuration: a syntax error, or a file in imports that does not exist.
  fix     containerd config dump names the place; gpuready apply validates each change and restores the old file if
          containerd does not answer
unknown service runtime.v1.RuntimeService (CRI disabled in containerd)
  pattern unknown service runtime\.v1(?:alpha2)?\.(?:runtime|image)service
  source  containerd/containerd#4581
  checks  containerd.config containerd.runtime
  cause   containerd runs without its CRI part: Docker's package writes disabled_plugins = ["cri"] to config.toml.
  fix     remove cri from disabled_plugins in /etc/containerd/config.toml, then systemctl restart containerd; gpuready
          plan --only containerd shows what is missing
groups: cannot find name for group ID
  pattern groups: cannot find name for group id
  source  docs.nvidia.com/datacenter/cloud-native/container-toolkit (troubleshooting)
  cause   Harmless: since 1.19 the toolkit adds the host's group of the GPU devices, which has no name in the image.
  fix     ignore it, or add the group to the image
failed to update ldcache (nvidia-cdi-hook)
  pattern (?:failed to|error) updat(?:e|ing) ldcache
  source  NVIDIA/nvidia-container-toolkit (nvidia-cdi-hook update-ldcache)
  checks  toolkit.version libcuda.container docker.smoke
  cause   The hook could not update the image's linker cache, so programs in the container do not find libcuda.so.1.
  fix     gpuready apply installs a current toolkit; in an image without ldconfig set LD_LIBRARY_PATH to the driver's
          directory
invoking the NVIDIA Container Runtime Hook directly (docker --gpus) is not supported
  pattern invoking the nvidia container runtime hook directly
  source  dstackai/dstack#2306
  checks  toolkit.config docker.runtime docker.cdi
  cause   The toolkit's mode is cdi, or csv on a Jetson. docker's --gpus calls the old hook, which works in mode legacy
          only.
  fix     start the container with --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all instead of --gpus, or set mode =
          'auto' in /etc/nvidia-container-runtime/config.toml (toolkit: {mode: auto})
failed to generate CDI spec: failed to locate libcuda.so.535.183.06
  pattern failed to (?:get libraries for driver version|locate libcuda\.so\.[0-9]{3})
  also    failed to locate libcuda\.so: libcuda\.so\.[0-9.]{3,16}: not found
  source  NVIDIA/nvidia-container-toolkit#735
  checks  libcuda.ldcache cdi.spec
  cause   nvidia-ctk does not find the libraries of the loaded driver: they are in a directory that it does not search, or
          are not installed yet in the version of the module.
  fix     gpuready apply adds the directory to the linker cache (ldso) and makes the spec (cdi); by hand: nvidia-ctk cdi
          generate --library-search-path=DIRECTORY --output=/etc/cdi/nvidia.yaml
failed to unmarshal CDI Spec: json: unknown field "additionalGids" (podman)
  pattern unknown field "additionalgids"
  source  NVIDIA/nvidia-container-toolkit#1865
  checks  cdi.podman cdi.spec
  cause   From 1.19.1 on, the toolkit writes CDI specs of version 0.7. podman before 5.1 does not know the field
          additionalGids and ignores the whole file, so its devices are "unresolvable".
  fix     gpuready apply has the field left out; by hand: set
          NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes in
          /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env, then systemctl restart nvidia-cdi-refresh
nvidia-container-cli: error parsing IMEX info: unsupported IMEX channel value: all
  pattern error parsing imex info: unsupported imex channel value
  source  NVIDIA/nvidia-container-toolkit#797
  checks  toolkit.floor toolkit.version
  cause   Version 1.17.0 of the toolkit asks for all IMEX channels in old images, and its own nvidia-container-cli does
          not accept that word.
  fix     gpuready apply installs a newer toolkit
could not select device driver "cdi" with capabilities: []
  pattern could not select device driver .{0,2}cdi
  source  containers/ramalama#940
  checks  docker.cdi docker.config cdi.spec
  cause   The container asks for a CDI device (--device nvidia.com/gpu=all), and this Docker does not offer any: before
          28.2, CDI is off unless daemon.json has features.cdi, and before 25 Docker does not know CDI.
  fix     set runtimes: {docker: {cdi: true}} and gpuready apply; by hand: nvidia-ctk runtime configure --runtime=docker
          --cdi.enabled, then systemctl restart docker; or use --gpus all
missing library libnvidia-nscq.so (debug log of nvidia-container-cli)
  pattern \bmissing (?:compat32 )?library lib(?:nvidia|cuda|gl|egl|nv|vdpau)
  also    \bmissing binary nv(?:idia)?-
  also    nvc_info\.c:[0-9]{1,5}\] missing (?:ipc|firmware|binary|library|compat32)
  also    \bmissing ipc (?:path )?/(?:var/)?(?:run|tmp)/nvidia-
  general
  source  NVIDIA/nvidia-container-toolkit#1099
  cause   Harmless. The toolkit looks for everything that any driver may have, and notes what this one does not have:
          libnvidia-nscq and the fabric manager are only on machines with NVSwitch, compat32 is for 32-bit programs, and
          the sockets exist only while nvidia-persistenced, the fabric manager or MPS run.
  fix     nothing; the error, if there is one, is on another line: give that one to gpuready explain
open /run/nvidia-persistenced/socket: no such file or directory
  pattern (?:open|stat|lstat|mount:) (?:/var)?/run/nvidia-persistenced/socket: (?:no such file or directory|mount point does not exist)
  source  badbread/crumbvms#395
  checks  driver.persistenced driver.match cdi.stale
  cause   A CDI spec or the runtime names the socket of nvidia-persistenced, and that service does not run: often it
          ended when a driver update replaced the libraries of the loaded module. Running containers do not notice it.
  fix     run nvidia-smi on the host: after a version mismatch, drain the node and reboot it; else systemctl restart
          nvidia-persistenced nvidia-cdi-refresh
nvidia-container-cli: container error: file lookup failed: .../etc/debian_version: permission denied (enroot)
  pattern container error: file lookup failed: [^ ]{0,300}: permission denied
  source  NVIDIA/enroot#234
  checks  toolkit.version toolkit.floor
  cause   libnvidia-container 1.17.7 looks up the container's files in a way that enroot, pyxis and LXC do not permit.
  fix     install another version than 1.17.7 on all nodes: gpuready apply installs a current one
nvidia-container-cli: detection error: path error: ///var/run/nvidia-fabricmanager/socket: permission denied
  pattern detection error: path error: /{1,3}[^ ]{0,200}: permission denied
  source  NVIDIA/enroot#231
  checks  toolkit.version driver.fabricmanager
  cause   nvidia-container-cli runs as a normal user (enroot, rootless), and may not look at a file that it would mount,
          such as the fabric manager's socket. An older version ends there.
  fix     gpuready apply installs a current toolkit, which skips such files; by hand: upgrade libnvidia-container1 and
          libnvidia-container-tools
nvidia-container-cli: permission error: capability change failed: operation not permitted
  pattern permission error: capability change failed
  source  NVIDIA/enroot#88
  checks  toolkit.version
  cause   nvidia-container-cli may not change its own capabilities: SELinux forbids it, the file system with its program
          is mounted nosuid, or a rootless engine calls it inside a user namespace.
  fix     look for a denial with ausearch -m avc -ts recent; in a rootless engine use CDI (--device nvidia.com/gpu=all),
          which does not call it
[ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1 (enroot, pyxis)
  pattern /98-nvidia\.sh exited with return code
  also    pyxis: (?:couldn't start container|container start failed with error code)
  general
  source  NVIDIA/pyxis#166
  checks  toolkit.version driver.loaded gpu.answers
  cause   The container did not start. With 98-nvidia.sh in the line, enroot's hook called nvidia-container-cli, and
          that failed. pyxis alone says the same after every failure.
  fix     the lines above it name the reason, those of nvidia-container-cli or [ERROR] of enroot; pass them to gpuready
          explain
invalid discovery mode: cdi (nvidia-cdi-refresh)
  pattern invalid discovery mode: (?:cdi|legacy|jit-cdi)
  source  NVIDIA/nvidia-container-toolkit#1376
  checks  toolkit.version toolkit.config cdi.spec
  cause   nvidia-ctk 1.18.0 takes the mode of the runtime from config.toml for its own. That mode is not automatic, so
          no CDI spec is made.
  fix     gpuready apply installs a newer toolkit; by hand: nvidia-ctk cdi generate --mode=auto
          --output=/etc/cdi/nvidia.yaml
nvidia-cdi-refresh.service: Failed with result 'exit-code'
  pattern nvidia-cdi-refresh\.service: (?:failed with result|main process exited)
  also    failed to start nvidia-cdi-refresh
  general
  source  NVIDIA/nvidia-container-toolkit#1611
  checks  cdi.spec cdi.stale driver.loaded
  cause   The service that writes the CDI spec after a boot or a driver update failed. Often it ran before the driver
          was loaded, or the driver does not work.
  fix     journalctl -b -u nvidia-cdi-refresh names the reason; when nvidia-smi works, systemctl restart
          nvidia-cdi-refresh
exec: "nvidia-container-cli": executable file not found in $PATH (nerdctl)
  pattern nvidia-container-cli['\"]?: executable file not found
  source  containerd/nerdctl#2720
  checks  toolkit.version cdi.spec containerd.cdi
  cause   This nerdctl or ctr calls nvidia-container-cli itself for --gpus, and the program is not on its PATH: the
          toolkit is missing, or the GPU Operator installed it in /usr/local/nvidia/toolkit.
  fix     gpuready apply installs the toolkit; with CDI no such program is needed: nerdctl run --device
          nvidia.com/gpu=all, or a newer nerdctl, whose --gpus uses CDI
template: oci-hook:1: unexpected "|" in command (nerdctl --gpus)
  pattern template: oci-hook:[0-9]{1,4}: unexpected
  source  containerd/nerdctl#4614
  checks  cdi.spec containerd.cdi
  cause   In nerdctl up to 2.2.0, --gpus goes through a hook of containerd (oci-hook), which fails on its arguments.
  fix     use CDI: nerdctl run --device nvidia.com/gpu=all; or a newer nerdctl, whose --gpus uses CDI
exec /opt/nvidia/nvidia_entrypoint.sh: exec format error
  pattern \bexec /\S{1,160}: exec format error
  also    exec user process caused:? ['"]?exec format error
  source  remsky/Kokoro-FastAPI#401
  cause   The image is for another processor than the node: most often an image for x86_64 on an ARM node (GB10 in DGX
          Spark, Grace in GH200 and GB200). The driver and the toolkit are not the cause.
  fix     docker image inspect --format '{{.Architecture}}' IMAGE and uname -m must fit each other; use a tag that has
          both (docker buildx imagetools inspect IMAGE), or build it with --platform linux/arm64
Bus error (core dumped)
  pattern \bbus error \(core dumped\)
  general
  source  vllm-project/vllm#8974
  checks  docker.config docker.smoke
  cause   The program touched memory that is not there. In a container, most often /dev/shm is full: Docker gives 64
          MiB, and PyTorch, NCCL and vLLM share data there. Otherwise a full disk below a mapped file, or broken memory.
  fix     df -h /dev/shm in the container; docker run --shm-size=8g or --ipc=host; for all new containers:
          runtimes.docker.shm_size in the spec, then gpuready apply; in Kubernetes mount an emptyDir with medium: Memory
crun: fsopen_mount tmpfs: Function not implemented
  pattern fsopen_mount .?tmpfs.?: function not implemented
  source  containers/crun#2070
  cause   This crun mounts with system calls (fsopen) that are refused here: by a seccomp filter, an old kernel, or
          because crun itself is a build from conda or pixi. It has nothing to do with the GPU.
  fix     podman --runtime runc run ... shows that the rest works; then install the distribution's crun or a newer one,
          and remove the copy that comes first in PATH (podman info shows its path)
enroot-nsenter: failed to create user namespace: Permission denied
  pattern enroot-nsenter: failed to create user namespace
  source  NVIDIA/enroot#247
  cause   The kernel does not let ordinary users create user namespaces. On Ubuntu 23.10 and newer AppArmor does that;
          elsewhere a sysctl. As root it works.
  fix     sysctl kernel.apparmor_restrict_unprivileged_userns: if 1, set 0 in /etc/sysctl.d, or write an AppArmor
          profile with userns for enroot-nsenter; also user.max_user_namespaces must not be 0
nvidia-container-cli: initialization error: open failed: /proc/self/ns/mnt: permission denied
  pattern open failed: /proc/[a-z0-9]{1,10}/ns/mnt: permission denied
  source  NVIDIA/enroot#238
  cause   nvidia-container-cli may not read its own namespace: AppArmor confines processes in a user namespace (profile
          unprivileged_userns, Ubuntu 23.10 and newer), or /proc is mounted with hidepid.
  fix     journalctl -k | grep -i apparmor names the profile; set kernel.apparmor_restrict_unprivileged_userns=0 in
          /etc/sysctl.d, or give enroot a profile of its own with userns; mount /proc without hidepid
[ERROR] Could not process JSON input (enroot)
  pattern \[error\] could not process json input
  source  NVIDIA/enroot#252
  cause   enroot could not read what Docker or the registry returned: often an enroot that does not fit the new Docker
          (dockerd:// with Docker 28.5), else no jq, or a proxy's error page.
  fix     install the newest enroot and jq; import with docker:// from a registry instead of dockerd://
nvidia-container-cli: initialization error: privilege change failed: invalid argument
  pattern privilege change failed: invalid argument
  source  NVIDIA/nvidia-container-toolkit#1324
  cause   nvidia-container-cli could not change to the user that it runs as: that user or group id does not exist in this
          user namespace (unprivileged LXC, rootless Docker).
  fix     in config.toml of the toolkit (/etc/nvidia-container-runtime) set user = "root:root" below
          [nvidia-container-cli] and no-cgroups = true; or map 65536 ids to the LXC container; or use CDI
          (--device nvidia.com/gpu=all)
Error: unable to load config: unsupported config version: 3 (NVIDIA container toolkit, containerd 2)
  pattern unsupported config version: 3
  source  NVIDIA/gpu-operator#2060
  checks  toolkit.version containerd.config
  cause   This container toolkit is too old for containerd 2, whose configuration has version 3. Often the Helm values
          pin an old image of it.
  fix     remove toolkit.version and toolkit.image from the values of the GPU Operator, or set a current one; on a host
          gpuready apply installs a current toolkit and configures containerd
invalid plugin config: no corresponding runtime configured in containerd.runtimes for default_runtime_name = "runc"
  pattern no corresponding runtime configured in .{0,30}containerd\.runtimes
  source  NVIDIA/k8s-device-plugin#1145
  checks  containerd.runtime toolkit.version
  cause   containerd's default_runtime_name names a runtime that its configuration does not define, so the CRI plugin is
          not loaded and the node is NotReady. An older nvidia-ctk wrote such a file, without runc.
  fix     gpuready apply installs a newer toolkit; by hand: nvidia-ctk runtime configure --runtime=containerd
          --config-source=command, then systemctl restart containerd; containerd config dump shows the runtimes
nvidia-container-cli: initialization error: WSL environment detected but no adapters were found
  pattern wsl environment detected but no adapters were found
  source  NVIDIA/nvidia-container-toolkit#155
  cause   Windows offers this WSL no NVIDIA GPU: no NVIDIA driver or an old one on Windows, an old WSL, or no NVIDIA GPU
          in the machine.
  fix     install the current NVIDIA driver on Windows (none inside WSL), wsl --update and wsl --shutdown; nvidia-smi
          must work in WSL; without an NVIDIA GPU leave the GPU out of docker run or compose
granting entitlement device is not allowed by build daemon configuration
  pattern granting entitlement device is not allowed by build daemon
  source  docker/buildx#3295
  cause   docker build --allow device asks for a CDI device, for example a GPU, and BuildKit was started without the
          permission to give devices.
  fix     docker buildx create --use --buildkitd-flags '--allow-insecure-entitlement device', and build with that
          builder
nvidia-container-cli: initialization error: load library failed: libnvidia-container-go.so.1
  pattern load library failed: libnvidia-container-go\.so
  source  NVIDIA/gpu-operator#1364
  checks  toolkit.version
  cause   nvidia-container-cli does not find or may not read a library of its own package: the toolkit is installed in
          part, its files were replaced while in use, or SELinux denies the access.
  fix     gpuready apply installs the toolkit again (GPU Operator: delete the toolkit pod of that node); then ls -lZ of
          the library and ausearch -m avc show a denied access
conf.c:lxc_setup:3948 - Failed to run mount hooks (LXC, Incus)
  pattern lxc_setup:[0-9]{1,5} - failed to run mount hooks
  source  lxc/incus#2397
  checks  toolkit.version driver.loaded
  cause   A mount hook of this LXC or Incus container failed. With nvidia.runtime=true it is the hook that calls
          nvidia-container-cli: the toolkit is missing, or does not work with this driver or this Incus.
  fix     on the host nvidia-container-cli -k -d /dev/tty info shows the error; install or update the toolkit, update
          Incus; the container starts without GPU libraries with nvidia.runtime=false
nvidia-ctk cdi generate: failed to generate CDI spec: invalid device, empty device edits
  pattern nvidia-ctk cdi generate.{0,80}invalid device, empty device edits
  also    failed to (?:generate|create) cdi spec.{0,160}invalid device, empty device edits
  source  kaito-project/kaito#2326
  checks  driver.nodes gpu.count cdi.spec
  cause   The toolkit knows a GPU or MIG device, but found no device file for it, so it wrote no CDI spec. Often the
          files in /dev did not exist yet at that time.
  fix     nvidia-smi or nvidia-modprobe -u -c=0 makes the files; nvidia-ctk --debug cdi generate
          --output=/etc/cdi/nvidia.yaml shows what it looks for; then restart the device plugin; until it works,
          nvidia-container-runtime.mode = "legacy" in the toolkit's config.toml needs no spec
URL https://registry-1.docker.io/v2/HOST.azurecr.io/X/manifests/TAG returned error code: 401 Unauthorized (enroot)
  pattern registry-1\.docker\.io/v2/[a-z0-9-]{1,60}\.[a-z0-9.-]{2,80}/[^ ]{1,200} returned error code: 40[134]
  source  NVIDIA/pyxis#168
  cause   enroot asked Docker Hub for an image of another registry: it took the registry's host for a part of the
          image's name, because a slash follows it.
  fix     write # after the host: --container-image=HOST#PATH:TAG (enroot import docker://HOST#PATH:TAG); credentials of
          that host go to ~/.config/enroot/.credentials
NvRmMemInitNvmap failed with No such file or directory / Permission denied (Jetson)
  pattern nvrmmeminitnvmap failed with
  also    nvrmmem(?:mgr)?init failed
  source  dusty-nv/jetson-containers#384
  cause   On a Jetson, this program cannot open /dev/nvmap. No such file: the container did not get the devices, or its
          L4T libraries are of another release than the host's, as after apt install of JetPack in the image. Permission
          denied: the user is not in the group video.
  fix     docker run --runtime nvidia, with an image of the host's L4T release (cat /etc/nv_tegra_release), and without
          nvidia-l4t packages installed in it; ls -l /dev/nvmap on the host; usermod -aG video USER
OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 48: Operation not permitted
  pattern pthread_create failed for thread [0-9]{1,4} of [0-9]{1,4}: operation not permitted
  source  xorbitsai/inference#1871
  cause   The image's glibc is newer than this Docker: it starts threads by a system call (clone3) that the seccomp
          filter of an old Docker or libseccomp refuses. The GPU is not the cause.
  fix     update Docker (20.10.10 or newer), containerd, runc and libseccomp; until then --security-opt
          seccomp=unconfined, or an image of an older distribution
OpenBLAS blas_thread_init: pthread_create failed for thread 2 of 64: Resource temporarily unavailable
  pattern pthread_create failed for thread [0-9]{1,4} of [0-9]{1,4}: resource temporarily unavailable
  also    openblas blas_thread_init: pthread_create: resource temporarily unavailable
  source  vllm-project/vllm#5645
  cause   The limit of processes and threads is reached: RLIMIT_NPROC (ulimit -u; the next line shows it), or the
          pids limit of the container or pod.
  fix     raise it (docker run --pids-limit=-1 --ulimit nproc=-1; in Kubernetes podPidsLimit of the kubelet), or start
          fewer threads: OPENBLAS_NUM_THREADS=8, OMP_NUM_THREADS=8
Failed to Check if grpc server is working: ttrpc: closed (Kata Containers)
  pattern failed to check if grpc server is working
  source  NVIDIA/gpu-operator#1356
  cause   Kata started the virtual machine of the pod, and its agent stopped or did not start. The reason is in the
          console of that machine: wrong kernel or initrd, too little memory, or a GPU that does not start in it.
  fix     set enable_debug = true for hypervisor, agent and runtime in Kata's configuration.toml; journalctl -t kata -t
          containerd then shows the guest console; for GPUs use the runtime class kata-qemu-nvidia-gpu of the same Kata
          release
error locating runtime: no runtime binary found from candidate list: [docker-runc runc crun]
  pattern no runtime binary found from candidate list
  source  domesticatedviking/TextyMcSpeechy#47
  checks  toolkit.config docker.runtime
  cause   nvidia-container-runtime starts runc or crun, and none of them is installed on this machine. Often no
          container engine is installed at all, or it runs elsewhere (Docker Desktop, snap).
  fix     install an engine (docker-ce with containerd.io, or runc), and configure it: gpuready apply; or name the
          runtime in runtimes = [...] below [nvidia-container-runtime] in /etc/nvidia-container-runtime/config.toml
ERROR: init 250 result=11 (libnvidia-sandboxutils)
  pattern \berror: (?:init|gpugetdevfileinfo) [0-9]{1,4} result=[0-9]{1,3}
  general
  source  siderolabs/extensions#940
  checks  driver.loaded driver.packages
  cause   The driver's library libnvidia-sandboxutils did not initialize. The toolkit and the device plugin then go on
          without it, so the line alone is harmless. With result=9 the driver was not ready at that moment.
  fix     look for the next error of the program. If it ends here or crashes, update the driver, or switch the library
          off: NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=disable-nvsandboxutils in
          /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env
failed to inject devices after CDI timeout of 100 seconds (Kata Containers)
  pattern failed to inject devices after cdi timeout
  source  kata-containers/kata-containers#10891
  cause   The agent in the virtual machine waited for a CDI spec of the GPU, and none was written. The guest image has
          no NVIDIA driver, the driver did not start there, or many GPUs need more time.
  fix     use the NVIDIA guest image (runtime class kata-qemu-nvidia-gpu); the guest console shows whether the driver
          starts; for many GPUs raise agent.cdi_timeout (kernel_params) and create_container_timeout
Could not locate /dev/nvidia-modeset: /dev/nvidia-modeset: not found
  pattern could not locate /dev/nvidia-modeset\b
  general
  source  NVIDIA/nvidia-container-toolkit#1982
  checks  cdi.stale cdi.spec
  cause   The CDI spec was written before the kernel module nvidia_modeset was loaded, or the node does not use it.
          Only Vulkan, EGL and displays need this device; CUDA does not.
  fix     for CUDA ignore it; else nvidia-modprobe -m, then nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml
          again, and list nvidia_modeset in /etc/modules-load.d
mount: drop permissions failed (enroot)
  pattern \bmount: drop permissions failed
  source  NVIDIA/enroot#261
  cause   mount of util-linux does not start with the rights that enroot 4.1.0 gives it. enroot uses it for the
          kernel's overlayfs (ENROOT_NATIVE_OVERLAYFS).
  fix     update enroot; until then set ENROOT_NATIVE_OVERLAYFS to nothing in /etc/enroot/enroot.conf and install
          fuse-overlayfs, or enroot create the image first
Job for containerd.service failed because the control process exited with error code
  pattern \bjob for containerd\.service failed
  general
  source  NVIDIA/aicr#1237
  checks  containerd.config
  cause   containerd does not start, mostly because it does not accept its configuration after a change. nvidia-ctk
          runtime configure writes a file below /etc/containerd that this containerd may not understand.
  fix     journalctl -u containerd -n 30 names the line; containerd config dump shows whether it reads the files; move
          99-nvidia.toml (conf.d or config.d) away and restart containerd, then gpuready apply
""")
