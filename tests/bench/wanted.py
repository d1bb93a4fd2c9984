"""The state that every tool of ``./dev bench peers`` is asked for, in stock operations and tasks.

It is what gpuready itself wants of the node, and some of what its probe reads besides. Each tool gets the same list:
pyinfra as operations (:mod:`tests.bench.deploy`), Ansible as a playbook of ansible-core's own modules
(:func:`playbook`).
"""

from dataclasses import dataclass
from pathlib import Path

TOOLKIT = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)


@dataclass(frozen=True)
class File:
    """A file with this content; the content comes from the node, after gpuready's apply."""

    path: str
    mode: str = "644"


@dataclass(frozen=True)
class Directory:
    path: str


@dataclass(frozen=True)
class Packages:
    """Packages at a version, or in any version."""

    names: tuple[str, ...]
    version: str = ""

    def words(self) -> list[str]:
        """As apt takes them."""
        return [f"{name}={self.version}" if self.version else name for name in self.names]


@dataclass(frozen=True)
class Held:
    """A package that apt does not upgrade."""

    name: str


@dataclass(frozen=True)
class Service:
    """A unit that is enabled and active."""

    name: str


@dataclass(frozen=True)
class Group:
    name: str


@dataclass(frozen=True)
class Member:
    """A user who is in a group."""

    user: str
    group: str


@dataclass(frozen=True)
class Output:
    """A command that must succeed, and changes nothing."""

    command: str


Item = File | Directory | Packages | Held | Service | Group | Member | Output


def wanted(version: str) -> list[Item]:
    """All of it, for this version of the toolkit's packages."""
    return [
        Packages(TOOLKIT, version),
        Packages(("containerd", "docker.io", "docker-cli", "rdma-core")),
        *map(Held, TOOLKIT),
        File("/etc/apt/keyrings/gpuready-nvidia-container-toolkit.asc"),
        File("/etc/apt/sources.list.d/gpuready-nvidia-container-toolkit.sources"),
        File("/etc/docker/daemon.json"),
        File("/etc/containerd/config.toml"),
        File("/etc/nvidia-container-runtime/config.toml"),
        File("/etc/ld.so.conf.d/gpuready-nvidia.conf"),
        File("/etc/nccl.conf"),
        File("/usr/local/lib/gpuready-rdma-exporter", "755"),
        File("/etc/systemd/system/gpuready-rdma-exporter.service"),
        File("/etc/systemd/system/gpuready-rdma-exporter.timer"),
        *map(File, SEEDED),
        *map(Directory, DIRECTORIES),
        *map(Directory, ("/etc/apt/keyrings", "/etc/containerd", "/etc/docker", "/etc/nvidia-container-runtime")),
        *map(Directory, ("/etc/modprobe.d", "/etc/sysctl.d")),
        *map(Service, ("docker", "containerd", "ssh", "gpuready-rdma-exporter.timer", "nvidia-cdi-refresh.path")),
        Group("docker"),
        Member("gpu", "docker"),
        Output("sysctl -n net.ipv4.ip_forward"),
        Output("uname -r"),
        Output("ldconfig -p"),
        Output("nvidia-ctk --version"),
        Output("docker info"),
        Output("containerd config dump"),
    ]


#: What gpuready only reads: the benchmark puts it there.
SEEDED = {
    "/etc/modprobe.d/rdma-netns.conf": "options ib_core netns_mode=1\n",
    "/etc/modules-load.d/rdma.conf": "ib_core\n",
    "/etc/sysctl.d/90-forward.conf": "net.ipv4.ip_forward = 1\n",
}
DIRECTORIES = ("/usr/local/nvidia/lib64", "/var/lib/prometheus/node-exporter")


def playbook(items: list[Item], files: Path) -> list[dict[str, object]]:
    """A playbook of one play without facts, one task an item; ``files`` has the contents by path."""
    return [{"hosts": "all", "become": True, "gather_facts": False, "tasks": [_task(item, files) for item in items]}]


def _task(item: Item, files: Path) -> dict[str, object]:
    def task(module: str, **arguments: object) -> dict[str, object]:
        return {"name": str(item), f"ansible.builtin.{module}": arguments}

    match item:
        case File(path, mode):
            return task("copy", src=f"{files}{path}", dest=path, owner="root", group="root", mode=f"0{mode}")
        case Directory(path):
            return task("file", path=path, state="directory", owner="root", group="root", mode="0755")
        case Packages():
            return task("apt", name=item.words(), state="present")
        case Held(name):
            return task("dpkg_selections", name=name, selection="hold")
        case Service(name):
            return task("systemd_service", name=name, enabled=True, state="started")
        case Group(name):
            return task("group", name=name)
        case Member(user, group):
            return task("user", name=user, groups=[group], append=True)
        case Output(command):
            return {**task("command", cmd=command), "changed_when": False}
