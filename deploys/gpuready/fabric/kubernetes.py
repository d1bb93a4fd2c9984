"""Write the Kubernetes objects of a GPU node: RuntimeClass, a network for each RDMA port, and a pod that uses them.

NCCL's settings are those of ``gpuready nccl``, changed for a pod: Multus names its interfaces net1, net2 and so on,
whereabouts gives them addresses of the port's network, and GID indexes differ from the host's. What no recorded state
tells is a placeholder, and the head of the document lists all placeholders.
Sources: Kubernetes' API reference (RuntimeClass, Pod, emptyDir with medium Memory), the NVIDIA Container Toolkit's
guide (handler nvidia), the NetworkAttachmentDefinition specification 1.3 and Multus' guide, the references of the CNI
plugins host-device and whereabouts, k8s-rdma-shared-dev-plugin (resource names).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_network
from typing import Any

import yaml

from gpuready.fabric.launch import NcclError, shared_memory
from gpuready.model.images import named
from gpuready.model.sizes import to_bytes
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.nccl_settings import Settings, settings, without_rdma
from gpuready.network.rdma_choice import Chosen

IMAGE, GPUS, DEVICE, RANGE = "registry.example.com/train:1.0", 8, "ens1f0np0", "10.100.0.0/16"
#: Prints what a job depends on, and stays for a look around.
CHECK = ("sh", "-c", "nvidia-smi; df -h /dev/shm; ulimit -l; ls /dev/infiniband; sleep infinity")
_UNITS = (("Gi", 30), ("Mi", 20), ("Ki", 10), ("", 0))
_NETWORKS = "k8s.v1.cni.cncf.io/networks"


@dataclass(frozen=True)
class Attachment:
    """A port's network interface, which moves into the pod, and the network of its addresses (CIDR)."""

    device: str
    network: str


@dataclass(frozen=True)
class Workload:
    """What a job on a node needs.

    ``shm`` is a quantity of Kubernetes. ``variables``: NCCL's in a pod. ``placeholders``: what the user must replace:
    image, gpus, network.
    """

    image: str
    gpus: int
    shm: str
    variables: Mapping[str, str] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()
    rdma: bool = False
    placeholders: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def attached(self) -> int:
        """The number of networks that Multus attaches."""
        return len(self.attachments)


def workload(spec: NodeSpec, state: NodeState | None = None) -> Workload:
    """Return what a pod needs on this node. Raises :class:`NcclError` if its RDMA ports have no NCCL settings."""
    found = without_fabric(spec, state)
    return _with_placeholder(found, spec) if state is None else _with_fabric(found, spec, state)


def without_fabric(spec: NodeSpec, state: NodeState | None = None) -> Workload:
    """Return what a job needs on this node, except NCCL's settings and RDMA."""
    image = spec.verify.image or next((one.ref for one in named(spec.images)), "")
    gpus = spec.hardware.expected_gpus or (len(state.driver.gpus) if state else 0)
    missing = {} if image else {"image": f"the image {IMAGE} (verify.image in the spec)"}
    why = "the spec says hardware.gpus: none" if spec.hardware.without_gpus else "hardware.gpus in the spec sets it"
    missing |= {} if gpus else {"gpus": f"{GPUS} GPUs with the number of GPUs in each node ({why})"}
    return Workload(image or IMAGE, gpus or GPUS, _quantity(spec, gpus or GPUS), placeholders=missing)


def _with_placeholder(made: Workload, spec: NodeSpec) -> Workload:
    """Add one RoCE port on the network that the spec names, or on a placeholder."""
    network = next(iter(spec.nccl.subnets), RANGE)
    place = f"the interface {DEVICE} and its network {network}"
    missing = {"network": f"{place}, of which NCCL's settings are made (--state reads them)"}
    found = {"NCCL_IB_ADDR_RANGE": network, "NCCL_IB_ROCE_VERSION_NUM": "2", "NCCL_SOCKET_IFNAME": "=net1"}
    return replace(
        made, variables={**found, **spec.nccl.extra}, rdma=True,
        attachments=(Attachment(DEVICE, network),), placeholders={**made.placeholders, **missing},
    )  # fmt: skip


def _with_fabric(made: Workload, spec: NodeSpec, state: NodeState) -> Workload:
    if without_rdma({"": state}, {"": spec}):
        why = "nccl.transport is tcp" if spec.nccl.transport == "tcp" else "there is no RDMA device"
        return replace(made, variables=dict(spec.nccl.extra), notes=(f"{why}: NCCL uses the pod's network",))
    found = settings(state, spec.nccl)
    if found.problems:
        raise NcclError("; ".join(found.problems))
    roce = [each for each in found.fabric if each.port.transport == "RoCE"]
    for each in roce:
        if not each.network:
            raise NcclError(f"{each.port.name}: the prefix length of {each.address} on {each.netdev} is unknown")
    attachments = tuple(Attachment(each.netdev, _range(each, spec)) for each in roce)
    return replace(
        made, variables=_inside(found, attachments), rdma=True, attachments=attachments,
        notes=tuple(_notes(found, state, roce)),
    )  # fmt: skip


def _range(port: Chosen, spec: NodeSpec) -> str:
    """Return the subnet of the spec that holds the port's address, or the network of its interface if smaller."""
    own = ip_network(port.network)
    holding = [net for net in map(ip_network, spec.nccl.subnets) if port.address in net]
    return str(max([own, *holding], key=lambda net: net.prefixlen))


def _inside(found: Settings, attachments: Sequence[Attachment]) -> dict[str, str]:
    """Return the settings of the host as they are in a pod."""
    variables = {name: value for name, value in found.variables.items() if name != "NCCL_IB_GID_INDEX"}
    if not attachments:  # InfiniBand: RDMA needs no interface, and NCCL's bootstrap uses the pod's network
        return {name: value for name, value in variables.items() if not name.startswith("NCCL_SOCKET_")}
    networks = {each.network for each in attachments}
    if "NCCL_IB_ADDR_RANGE" in variables and len(networks) == 1:
        variables["NCCL_IB_ADDR_RANGE"] = networks.pop()
    return {**variables, "NCCL_SOCKET_IFNAME": "=net1"}


def _notes(found: Settings, state: NodeState, roce: Sequence[Chosen]) -> list[str]:
    notes = []
    if "NCCL_IB_GID_INDEX" in found.variables:
        notes.append("NCCL_IB_GID_INDEX is left out: the index differs in a pod; NCCL 2.21 and newer finds it")
    if state.ib_netns_mode == "N" and roce:
        notes.append(
            "the RDMA mode is exclusive: host-device moves only the network interface, so chain the rdma CNI plugin"
        )
    return notes


def _quantity(spec: NodeSpec, gpus: int) -> str:
    size = to_bytes(shared_memory(spec, gpus))
    unit, shift = next((unit, shift) for unit, shift in _UNITS if not size % (1 << shift))
    return f"{size >> shift}{unit}"


# --- objects


def objects(wanted: Workload, hosts: Sequence[NodeState], resource: str) -> list[dict[str, Any]]:
    """Return the objects. ``hosts``: the nodes whose own addresses no pod may get."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gpu-rdma" if wanted.rdma else "gpu", **multus(wanted)},
        "spec": {"restartPolicy": "Never", **pod_spec(wanted, CHECK, resource=resource)},
    }
    return [runtime_class(), *networks(wanted, hosts), pod]


def runtime_class() -> dict[str, Any]:
    """Return the RuntimeClass of the ``nvidia`` runtime that gpuready registers."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }


def networks(wanted: Workload, hosts: Sequence[NodeState]) -> list[dict[str, Any]]:
    """Return a NetworkAttachmentDefinition for each port."""
    return [
        {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": f"rdma-{number}"},
            "spec": {"config": _config(each, number, hosts)},
        }
        for number, each in enumerate(wanted.attachments, 1)
    ]


def _config(each: Attachment, number: int, hosts: Sequence[NodeState]) -> str:
    taken = sorted({a for host in hosts for a in _addresses(host) if a in ip_network(each.network)}, key=int)
    ipam: dict[str, Any] = {"type": "whereabouts", "range": each.network}
    if taken:
        ipam["exclude"] = [f"{address}/{address.max_prefixlen}" for address in taken]
    config = {
        "cniVersion": "0.3.1",
        "name": f"rdma-{number}",
        "type": "host-device",
        "device": each.device,
        "ipam": ipam,
    }
    return json.dumps(config, indent=2) + "\n"


def _addresses(state: NodeState) -> list[Any]:
    devices = getattr(state.network, "devices", {})
    return [ip_address(text.partition("/")[0]) for device in devices.values() for text in device.addresses]


def multus(wanted: Workload) -> dict[str, Any]:
    """Return the metadata by which Multus attaches the networks; empty without RoCE."""
    chosen = [{"name": f"rdma-{n}", "interface": f"net{n}"} for n, _ in enumerate(wanted.attachments, 1)]
    return {"annotations": {_NETWORKS: json.dumps(chosen)}} if chosen else {}


def pod_spec(
    wanted: Workload,
    command: Sequence[str],
    *,
    name: str = "train",
    resource: str,
    variables: Mapping[str, str] | None = None,
    volumes: Sequence[tuple[dict[str, Any], str]] = (),
) -> dict[str, Any]:
    """Return the part of a pod's spec that GPUs, RDMA and shared memory need.

    ``variables``: further ones. ``volumes``: further ones, each with the directory where it is mounted.
    """
    all_volumes = [({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": wanted.shm}}, "/dev/shm"), *volumes]
    environment = {**wanted.variables, **(variables or {})}
    container: dict[str, Any] = {"name": name, "image": wanted.image, "command": list(command)}
    if environment:
        container["env"] = [{"name": key, "value": value} for key, value in environment.items()]
    container["resources"] = {"limits": {"nvidia.com/gpu": wanted.gpus, **({resource: 1} if wanted.rdma else {})}}
    if wanted.rdma:
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    container["volumeMounts"] = [{"name": volume["name"], "mountPath": path} for volume, path in all_volumes]
    return {"runtimeClassName": "nvidia", "containers": [container], "volumes": [volume for volume, _ in all_volumes]}


# --- text


def head(what: str, wanted: Workload, resource: str) -> list[str]:
    """Return the lines above the objects: what made them, what to replace, what the cluster needs."""
    placeholders = [*wanted.placeholders.values()]
    needs = ["the NVIDIA device plugin"]
    if wanted.rdma:
        placeholders.append(
            f"{resource}, if your RDMA device plugin has another name for its resource (--rdma-resource)"
        )
        needs.append("an RDMA device plugin")
    if wanted.attachments:
        needs += ["Multus", "the CNI plugins host-device and whereabouts"]
        placeholders.append("whereabouts' range, if it holds addresses of other machines or a gateway: exclude them")
    return [
        f"Made by gpuready {what}.",
        *(f"Replace: {text}." for text in placeholders),
        f"The cluster needs {', '.join(needs)}.",
        "Kubernetes has no ulimits: a container's locked memory is that of containerd's service (memlock in the spec).",
        "/dev/shm counts as memory of the container: a memory limit must include it.",
        *(f"Note: {text}." for text in wanted.notes),
    ]


class _Dumper(yaml.SafeDumper):
    """A YAML writer without aliases, which writes text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def document(comments: Sequence[str], parts: Sequence[Mapping[str, Any]]) -> str:
    """Return objects as YAML below the comments."""
    text = yaml.dump_all(parts, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120)
    return "".join(f"# {line}\n" for line in comments) + text
