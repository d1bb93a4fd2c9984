"""Whose containerd this is, how it is started, and what a restart of it takes along.

Sources: containerd.service of Debian and of docker.com, systemd.unit(5) and systemd.kill(5); for k3s and RKE2 their
documentation ("Configuring containerd"), for k0s and MicroK8s theirs.
"""

from __future__ import annotations

from gpuready.components.containerd.files import CONFIG
from gpuready.core.component import NotComparable
from gpuready.state.model import NodeState, Unit, Unknown

UNIT = "containerd.service"
#: Others bring a containerd of their own: mark on the node -> who, and which file is made anew at each start.
OWNERS = {
    "k3s": ("k3s", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"),
    "rke2": ("RKE2", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"),
    "k0s": ("k0s", "/etc/k0s/containerd.toml"),
    "microk8s": ("MicroK8s", "/var/snap/microk8s/current/args/containerd.toml"),
}


def unit(state: NodeState) -> Unit:
    found = state.units.get(UNIT) if not isinstance(state.units, Unknown) else None
    return found or Unit(load="", active="")


def takes_docker(state: NodeState) -> bool:
    """Does restarting containerd restart a Docker that runs? Older packages of docker.com say Requires=containerd."""
    return "docker.service" in unit(state).takes_along and state.docker is not None


def missing(state: NodeState) -> str:
    """Why there is no containerd here to work on, or nothing."""
    tools = {} if isinstance(state.tools, Unknown) else state.tools
    owned = [OWNERS[mark] for mark in OWNERS if mark in state.marks]
    if "containerd" not in tools or (unit(state).load != "loaded" and not isinstance(state.units, Unknown)):
        if owned:
            who, path = owned[0]
            return (
                f"{who} runs a containerd of its own and writes {path} at each start; it is left to {who}, which finds "
                "the toolkit by itself when it is restarted"
            )
        return f"no {UNIT} on this node" if "containerd" in tools else "no containerd on this node"
    return ""


def refuse_command(state: NodeState) -> None:
    """NotComparable when the service runs another containerd, or one with another file, than the one that was asked."""
    words = unit(state).exec_start
    tools = {} if isinstance(state.tools, Unknown) else state.tools
    started, here = (path.removeprefix("/usr") for path in (words[0] if words else "", tools["containerd"].path))
    if started and started != here:
        raise NotComparable(
            f"{UNIT} starts {words[0]}, but containerd on root's PATH is {tools['containerd'].path}; keep one"
        )
    for word, following in zip(words[1:], (*words[2:], ""), strict=False):
        flag, _, value = word.partition("=")
        if flag in ("-c", "--config") and (value or following) != CONFIG:
            raise NotComparable(
                f"{UNIT} starts containerd with {word} {following}".rstrip()
                + f"; gpuready manages only {CONFIG} so far"
            )
