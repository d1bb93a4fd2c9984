"""The GID tables of data/gids as states and specs; README.md there says what a case may hold."""

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml

from gpuready.components.nccl.spec import Nccl
from gpuready.model.network import Network
from gpuready.model.state import NodeState, Unknown

HERE = Path(__file__).parents[1] / "data" / "gids"
STATES = {"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4, "ACTIVE_DEFER": 5}
TYPES = {"CA": 1, "RNIC": 4, "usNIC": 5, "<unknown>": 7}


@dataclass(frozen=True)
class Table:
    """One case."""

    title: str
    nccl: Nccl
    state: NodeState
    want: dict[str, list[Any]]

    def __str__(self) -> str:
        return self.title


def tables() -> list[Table]:
    """All cases."""
    found = []
    for path in sorted(HERE.glob("*.yaml")):
        for title, given in yaml.safe_load(path.read_text("utf-8")).items():
            found.append(Table(title, Nccl.model_validate(given.get("nccl")), state(given), given["want"]))
    return found


def state(given: dict[str, Any]) -> NodeState:
    """The node of a case."""
    rdma: dict[str, str] = {}
    for name, port in given["ports"].items():
        rdma |= sysfs(*name.split(":"), **port)
    if given.get("devices") == "unread":
        return NodeState(rdma=rdma, network=Unknown(unknown="network: exit 1: no ip(8) on this node"))
    devices = {"eno1": {}} | given.get("devices", {})
    found = {"devices": devices, "default": given.get("default", ["eno1"]), "ssh": given.get("ssh", "")}
    return NodeState(rdma=rdma, network=Network.model_validate({**found, "rdma": given.get("rdma", {})}))


def sysfs(
    device: str,
    number: str,
    *,
    gids: list[str],
    type: str = "CA",
    layer: str = "Ethernet",
    state: str = "ACTIVE",
    rate: str = "100 Gb/sec (4X EDR)",
    slots: int = 0,
    types: str = "IB/RoCE v1",
) -> dict[str, str]:
    """What the probe reads of one port: of empty slots neither the zeros nor the type and netdev, which are EINVAL."""
    top = f"/sys/class/infiniband/{device}"
    port = f"{top}/ports/{number}"
    found = {f"{top}/node_type": f"{TYPES[type]}: {type}", f"{port}/state": f"{STATES[state]}: {state}"}
    found |= {f"{port}/link_layer": layer, f"{port}/rate": rate}
    for line in gids:
        index, address, version, netdev = line.split()
        assert not slots or int(index) < slots
        found[f"{port}/gids/{index}"] = gid(address)
        if version != "-":
            found[f"{port}/gid_attrs/types/{index}"] = {"v1": types, "v2": "RoCE v2"}[version]
        if netdev != "-":
            found[f"{port}/gid_attrs/ndevs/{index}"] = netdev
    return found


def gid(address: str) -> str:
    """As sysfs prints it: eight groups, an IPv4 address mapped."""
    parsed = ip_address(address)
    number = int(parsed) + (0xFFFF << 32 if parsed.version == 4 else 0)
    return ":".join(f"{number >> shift & 0xFFFF:04x}" for shift in range(112, -1, -16))
