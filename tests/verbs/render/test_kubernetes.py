"""Objects for Kubernetes against the schemas of their kinds, and against what the host's NCCL settings are in a pod.

kubernetes-validate has the API's own schemas.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from gpuready.fabric.kubernetes import GPUS
from gpuready.model.network import NetDevice, Network
from gpuready.model.state import NodeState
from tests.command import Exits, Said, write_states
from tests.network.gid_tables import sysfs
from tests.verbs.render.schemas import TEXT, several, thing

KUBERNETES = "1.33"
#: The definition of the kind in the network plumbing group's specification 1.3: the configuration is JSON as text.
NAD = thing(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "k8s.cni.cncf.io/v1"},
    kind={"const": "NetworkAttachmentDefinition"},
    metadata={"type": "object", "required": ["name"]},
    spec=thing(("config",), config=TEXT),
)
#: The keys that the references of host-device and whereabouts list.
_ADDRESSES = several({"type": "string", "pattern": "/(32|128)$"})
CONFIG = thing(
    ("cniVersion", "name", "type", "device", "ipam"),
    cniVersion=TEXT, name=TEXT, device=TEXT, type={"const": "host-device"},
    ipam=thing(("type", "range"), type={"const": "whereabouts"}, range=TEXT, exclude=_ADDRESSES),
)  # fmt: skip
Render = Callable[..., Said]


def node(number: int, *devices: str, netns: str = "Y", **port: Any) -> NodeState:
    """A node with 8 GPUs and RoCE ports at 10.NET.0.NUMBER beside a management network."""
    rdma: dict[str, str] = {}
    found = {"eno1": NetDevice(addresses=(f"192.0.2.{number}/24",))}
    for net, device in enumerate(devices or ("mlx5_0",)):
        netdev = f"ens{net + 1}"
        gids = ["1 fe80::1 v2 " + netdev, f"3 10.{net}.0.{number} v2 {netdev}"]
        rdma |= sysfs(device, "1", **{"gids": gids, **port})
        found[netdev] = NetDevice(addresses=(f"10.{net}.0.{number}/24",), speed=100000)
    state = NodeState(rdma=rdma, network=Network(devices=found, default=("eno1",)), ib_netns_mode=netns)
    gpus = tuple(f"0000:{n:02x}:00.0" for n in range(8))
    return state.model_copy(update={"driver": state.driver.model_copy(update={"gpus": gpus})})


@pytest.fixture
def render(tmp_path: Path, exits: Exits) -> Render:
    """``gpuready render``, with these states or with this spec for all hosts, or for each host."""

    def _render(
        *words: str, code: int = 0, states: dict[str, NodeState] | None = None, spec: Any = None, specs: Any = None
    ) -> Said:
        given = ["render", *words]
        if states or spec is not None or specs:
            specs = specs or dict.fromkeys(states or ["gpu01"], spec or {})
            hosts = {name: {"gpuready": each} for name, each in specs.items()}
            (tmp_path / "hosts.yaml").write_text(json.dumps({"all": {"hosts": hosts}}))
            given += ["-i", str(tmp_path / "hosts.yaml")]
        if states:
            given += ["--state", write_states(tmp_path / "states.json", states)]
        return exits(code, *given)

    return _render


def objects(text: str) -> list[dict[str, Any]]:
    """All objects, each valid by its kind's schema."""
    found = list(yaml.safe_load_all(text))
    for each in found:
        if each["kind"] == "NetworkAttachmentDefinition":
            Draft202012Validator(NAD).validate(each)
            Draft202012Validator(CONFIG).validate(json.loads(each["spec"]["config"]))
        else:
            kubernetes_validate.validate(each, KUBERNETES, strict=True)
    return found


def env(pod: dict[str, Any]) -> dict[str, str]:
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each["value"] for each in container.get("env", ())}


def test_the_schemas_refuse_what_is_wrong(render: Render) -> None:
    out = render("kubernetes").out
    with pytest.raises(kubernetes_validate.ValidationError):
        objects(out.replace("medium: Memory", "medium: [Memory]"))
    with pytest.raises(kubernetes_validate.ValidationError):
        objects(out.replace("sizeLimit", "size"))


def test_without_a_state_the_document_names_its_placeholders(render: Render) -> None:
    out = render("kubernetes").out
    runtime, network, pod = objects(out)
    head = out.partition("---")[0]
    assert runtime["handler"] == "nvidia"
    assert "ulimits" in head and "/dev/shm counts" in head
    for value in ("registry.example.com/train:1.0", "ens1f0np0", "10.100.0.0/16", "rdma/rdma", "8 GPUs"):
        assert value in head and value.split()[0] in out.partition("---")[2]
    assert json.loads(network["spec"]["config"])["device"] == "ens1f0np0"
    assert pod["spec"]["runtimeClassName"] == "nvidia"


def test_what_the_spec_says_is_no_placeholder(render: Render) -> None:
    spec = {"hardware": {"gpus": 4}, "verify": {"image": "app:1"}, "runtimes": {"docker": {"shm_size": "1536mb"}}}
    out = render("kubernetes", "--rdma-resource", "rdma/hca", spec=spec | {"nccl": {"subnets": ["10.9.0.0/16"]}}).out
    *_, network, pod = objects(out)
    assert json.loads(network["spec"]["config"])["ipam"]["range"] == "10.9.0.0/16"
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["resources"]["limits"]) == ("app:1", {"nvidia.com/gpu": 4, "rdma/hca": 1})
    assert pod["spec"]["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1536Mi"}}]
    assert "Replace: the image" not in out and "GPUs (" not in out


def test_a_pod_has_the_nccl_settings_of_its_hosts(render: Render) -> None:
    states = {"gpu01": node(1, "mlx5_0", "mlx5_1"), "gpu02": node(2, "mlx5_0", "mlx5_1")}
    told = render("kubernetes", states=states)
    _, first, second, pod = objects(told.out)
    assert told.err == ""
    configs = [json.loads(each["spec"]["config"]) for each in (first, second)]
    assert [(each["device"], each["ipam"]["range"]) for each in configs] == [
        ("ens1", "10.0.0.0/24"),
        ("ens2", "10.1.0.0/24"),
    ]
    assert configs[1]["ipam"]["exclude"] == ["10.1.0.1/32", "10.1.0.2/32"]
    assert env(pod) == {
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
        "NCCL_IB_ADDR_RANGE": "10.0.0.0/15",
        "NCCL_IB_ROCE_VERSION_NUM": "2",
        "NCCL_SOCKET_IFNAME": "=net1",
    }
    attached = json.loads(pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"])
    assert attached == [{"name": "rdma-1", "interface": "net1"}, {"name": "rdma-2", "interface": "net2"}]
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8, "rdma/rdma": 1}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}


def test_an_old_nccl_gets_no_index_of_the_host(render: Render) -> None:
    out = render("kubernetes", states={"gpu01": node(1, netns="N")}, spec={"nccl": {"version": "2.18.5"}}).out
    *_, pod = objects(out)
    assert "NCCL_IB_GID_INDEX" not in env(pod)
    assert "NCCL_IB_GID_INDEX is left out" in out and "the RDMA mode is exclusive" in out


def test_infiniband_needs_no_network_of_its_own(render: Render) -> None:
    runtime, pod = objects(render("kubernetes", states={"gpu01": node(1, gids=[], layer="InfiniBand")}).out)
    assert (runtime["kind"], pod["kind"]) == ("RuntimeClass", "Pod")
    assert env(pod) == {"NCCL_IB_HCA": "=mlx5_0:1"} and "annotations" not in pod["metadata"]


def test_a_node_without_rdma_gets_a_pod_without_it(render: Render) -> None:
    out = render("kubernetes", states={"gpu01": NodeState()}, spec={"hardware": {"gpus": 1}}).out
    _, pod = objects(out)
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert "securityContext" not in container and env(pod) == {} and "there is no RDMA device" in out


def test_over_tcp_a_pod_uses_its_own_network(render: Render) -> None:
    """Also on nodes with RDMA ports, whose interfaces for TCP are none of a pod."""
    states = {"gpu01": node(1, "mlx5_0", "mlx5_1"), "gpu02": node(2)}
    out = render("kubernetes", states=states, spec={"hardware": {"gpus": 8}, "nccl": {"transport": "tcp"}}).out
    _, pod = objects(out)
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8} and env(pod) == {}
    assert "Note: nccl.transport is tcp: NCCL uses the pod's network." in out


@pytest.mark.parametrize(
    ("what", "given", "words"),
    [
        ("kubernetes", {"states": {"gpu01": node(1), "gpu02": node(2, "mlx5_7")}}, "NCCL's settings"),
        # A placeholder differs from the same value.
        ("kubernetes", {"specs": {"gpu01": {"hardware": {"gpus": GPUS}}, "gpu02": {}}}, "hardware.gpus"),
        ("gpu-operator", {"specs": {"gpu01": {}, "gpu02": {"owners": {"driver": "operator"}}}}, "driver"),
    ],
)
def test_hosts_that_differ_get_no_common_object(render: Render, what: str, given: dict[str, Any], words: str) -> None:
    told = render(what, code=64, **given)
    assert told.out == "" and f"gpu01 and gpu02 differ in {words}, and" in told.err
    assert "make them agree in the spec, or choose hosts that agree: --limit" in told.err


def test_a_host_without_settings_is_an_error(render: Render) -> None:
    told = render("kubernetes", code=3, states={"gpu01": node(1, gids=["1 fe80::1 v2 ens1"])})
    assert told.out == "" and "gpu01: " in told.err and "link-local" in told.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("rules", "--state", "x"), "--state"),
        (("rules", "--", "train.py"), "train.py"),
    ],
)
def test_an_option_of_another_document(words: tuple[str, ...], part: str, exits: Exits) -> None:
    told = exits(64, "render", *words).err
    assert part in told and f"fix:     gpuready render {words[0]} --help" in told


# --- Helm values of the GPU Operator


OPERATORS = {"owners": {"driver": "operator", "toolkit": "operator"}, "hardware": {"rdma": {"ports": 8}}}


@pytest.mark.parametrize(
    ("spec", "enabled"),
    [
        (None, {"cdi"}),
        ({"driver": {"policy": "install", "version": "580.95.05"}}, {"cdi"}),
        ({"owners": {"driver": "operator"}}, {"driver", "cdi"}),
        (OPERATORS, {"driver", "rdma", "toolkit", "cdi"}),
        ({"runtimes": {"containerd": {"cdi": False}}}, set()),
    ],
)
def test_what_gpuready_owns_is_off_in_the_chart(render: Render, spec: Any, enabled: set[str]) -> None:
    """The keys are those of the chart's reference of values, v26.7.0 (2026-08-21)."""
    out = render("gpu-operator", spec=spec).out
    assert "--version=v26.7.0" in out and "ignores toolkit-version" in out
    wanted: dict[str, dict[str, Any]] = {part: {"enabled": part in enabled} for part in ("driver", "toolkit", "cdi")}
    wanted["driver"] |= {"rdma": {"enabled": True}} if "rdma" in enabled else {}
    assert yaml.safe_load(out) == {**wanted, "operator": {"runtimeClass": "nvidia"}}


# --- the image


def test_the_dockerfile_of_the_fabrics_tools_has_no_findings(render: Render) -> None:
    out = render("fabric-image").out
    program = shutil.which(str(Path(sys.executable).with_name("hadolint"))) or "hadolint"
    found = subprocess.run([program, "-"], input=out, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")
    bases = [line.split()[1] for line in out.splitlines() if line.startswith("FROM ")]
    assert [base.partition(":")[0] for base in bases] == ["nvidia/cuda", "nvidia/cuda"]
    for part in ("--branch v2.17.6", "perftest", "rdma-core", "/nccl-tests/build/*_perf"):
        assert part in out
    bare = re.sub(r":12\S+", "", out)
    broken = subprocess.run([program, "-"], input=bare, capture_output=True, text=True, check=False)
    assert broken.returncode == 1
