"""Starting configurations of containerd, as they are met on nodes, for the three generations of it."""
# ruff: noqa: E501

from dataclasses import dataclass, field

from tests.system.containerd_node import CONFIG

OLD, NEW = 'plugins."io.containerd.grpc.v1.cri"', 'plugins."io.containerd.cri.v1.runtime"'
DEBIAN = f"""version = 2

[plugins]
  [{OLD}]
    [{OLD}.cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""
RUNC = f'[{OLD}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
NVIDIA = (
    f'[{OLD}.containerd.runtimes.nvidia]\nruntime_type = "io.containerd.runc.v2"\n'
    f'[{OLD}.containerd.runtimes.nvidia.options]\nBinaryName = "{{}}"\n'
)
BINARY = "/usr/bin/nvidia-container-runtime"
CONF_D = "/etc/containerd/conf.d/"


@dataclass(frozen=True)
class Case:
    """``config`` is the text of its file, or files by path; ``written`` is the one that changes ('': none does).

    ``ctk``: with every toolkit. ``default`` is what the spec says of default_runtime; ``error``: gpuready refuses with it, and changes nothing.
    """

    name: str
    version: str
    config: str | dict[str, str] = field(default_factory=dict)
    written: str = CONFIG
    arrange: str = ""
    ctk: bool = False
    applies: bool = True
    default: bool | None = None
    error: str = ""

    def __str__(self) -> str:
        return f"{self.version}: {self.name}"

    @property
    def files(self) -> dict[str, str]:
        """The files by path."""
        return {CONFIG: self.config} if isinstance(self.config, str) else self.config


CASES = (
    # 1.6
    Case("Debian's own file", "1.6", DEBIAN, ctk=True),
    Case("no file", "1.6"),
    Case("an empty file", "1.6", ""),
    Case("only a comment", "1.6", "# nothing here yet\n\n"),
    Case(
        "version 1",
        "1.6",
        """root = "/var/lib/containerd" # as it was
[plugins.cri]
  stream_idle_timeout = "2h0m0s"
  [plugins.cri.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
""",
        ctk=True,
    ),
    Case("registered by hand", "1.6", f"version = 2\n{RUNC}{NVIDIA.format(BINARY)}", written=""),
    Case(
        "Docker's package",
        "1.6",
        '#   Licensed under the Apache License\n\ndisabled_plugins = ["cri"]\n\n#root = "/var/lib/containerd"\n',
        written="",
        applies=False,
    ),
    Case(
        "version 3, which it ignores",
        "1.6",
        f'version = 3\n[{NEW}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n',
        "",
        error="has version = 3, which this containerd does not know",
    ),
    Case("a byte-order mark", "1.6", f"\ufeffversion = 2\n{RUNC}", "", error="line 1, column 1: a byte-order mark"),
    # 1.7
    Case("Debian's own file", "1.7", DEBIAN),
    Case("no file", "1.7", ctk=True),
    Case(
        "another default, a base spec, inline tables, comments",
        "1.7",
        f"""# Kept by the platform team; ask before editing.
version = 2
[debug]
level = "info" # noisy otherwise

[{OLD}]
max_concurrent_downloads = 7
[{OLD}.containerd]
default_runtime_name = "other"
[{OLD}.containerd.runtimes] # three of them
runc = {{runtime_type = "io.containerd.runc.v2", pod_annotations = ["a.example/*"]}}
other = {{runtime_type = "io.containerd.runc.v2", options = {{NoPivotRoot = true}}}}
[timeouts]
"io.containerd.timeout.task.state" = "3s"
""",
        ctk=True,
    ),
    Case(
        "mirrors and credentials",
        "1.7",
        f"""version = 2
[{OLD}.registry.configs."registry.example:5000".auth]
username = "u"
password = "hunter2"
[{OLD}.registry.mirrors."registry.example:5000"]
endpoint = ["https://registry.example:5000"]
""",
    ),
    Case(
        "a drop-in without the CRI section",
        "1.7",
        {
            CONFIG: f'version = 2\nimports = ["{CONF_D}*.toml"]\n{RUNC}',
            f"{CONF_D}log.toml": 'version = 2\n[debug]\nlevel = "debug"\n',
        },
    ),
    Case(
        "a drop-in that replaces the CRI section",
        "1.7",
        {
            CONFIG: f'version = 2\nimports = ["conf.d/*.toml"]\n{RUNC}',
            f"{CONF_D}50-cri.toml": f"# ours\n[{OLD}]\nmax_concurrent_downloads = 9\n",
        },
        written=f"{CONF_D}50-cri.toml",
    ),
    Case(
        "nvidia-ctk's own drop-in",
        "1.7",
        f"version = 2\n{RUNC}",
        written="",
        arrange=(
            f"nvidia-ctk runtime configure --runtime=containerd 2>/dev/null\n"
            f"sed -i 's/^version = 2$/&\\n# by nvidia-ctk/' {CONF_D}99-nvidia.toml\n"
        ),
    ),
    Case(
        "an old path in a drop-in of that name",
        "1.7",
        {
            CONFIG: f'version = 2\nimports = ["{CONF_D}99-nvidia.toml"]\n',
            f"{CONF_D}99-nvidia.toml": f"version = 2\n{RUNC}{NVIDIA.format('/opt/old/nvidia-container-runtime')}",
        },
        written=f"{CONF_D}99-nvidia.toml",
    ),
    Case(
        "a symbolic link",
        "1.7",
        {"/srv/containerd/node.toml": DEBIAN},
        written="/srv/containerd/node.toml",
        arrange=f"ln -s /srv/containerd/node.toml {CONFIG}",
    ),
    Case(
        "dotted keys at the top",
        "1.7",
        f'version = 2\n{OLD}.containerd.runtimes.runc.runtime_type = "io.containerd.runc.v2"\n{OLD}.max_container_log_line_size = 777\n',
        "",
        error="Paste these lines at the end of the file:\n[plugins.",
    ),
    # 2.1
    Case("no file", "2.1", ctk=True),
    Case("Debian's own file, of version 2", "2.1", DEBIAN),
    Case(
        "version 3 with comments",
        "2.1",
        f"""version = 3 # since the upgrade

[{NEW}]
  # asked for by security
  enable_unprivileged_icmp = false

[{NEW}.containerd.runtimes.runc.options]
  NoNewKeyring = true
""",
        ctk=True,
    ),
    Case(
        "imports, laid over each other",
        "2.1",
        {
            CONFIG: f'version = 3\nimports = ["conf.d/*.toml", "/srv/containerd/more.toml"]\n[{NEW}]\nenable_cdi = false\n',
            f"{CONF_D}a.toml": f"version = 3\n[{NEW}]\nmax_container_log_line_size = 4096\n",
            "/srv/containerd/more.toml": f"version = 3\n# last\n[{NEW}.containerd]\nignore_rdt_not_enabled_errors = true",
        },
        written="/srv/containerd/more.toml",
    ),
    Case(
        "dotted keys",
        "2.1",
        f"version = 3\n{NEW}.enable_unprivileged_ports = false\n{NEW}.containerd.default_runtime_name = 'runc'\n",
    ),
    Case(
        "both CRI sections in version 2",
        "2.1",
        f'version = 2\n[{OLD}]\nmax_container_log_line_size = 777\n[{NEW}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n',
        "",
        error="Keep the second and write version = 3",
    ),
    Case(
        "the CRI section of version 3 in version 2",
        "2.1",
        f'version = 2\n[{NEW}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n',
    ),
    Case("version 1 by its number", "2.1", "version = 1\n[plugins.cri]\n", "", error="has version = 1: containerd 2"),
    Case("CRI disabled", "2.1", 'version = 3\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n', "", applies=False),
)
