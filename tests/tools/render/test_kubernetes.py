"""Objects for Kubernetes against the schemas of their kinds, and against what the host's NCCL settings are in a pod.

kubernetes-validate has the API's own schemas.
"""

from __future__ import annotations

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

from gpuready.cli.app import run
from gpuready.state.model import NodeState
from gpuready.state.network import NetDevice, Network
from gpuready.tools.render.kubernetes import GPUS
from tests.command import Exits, write_states
from tests.network.gid_tables import sysfs

KUBERNETES = "1.33"
#: The definition of the kind in the network plumbing group's specification 1.3: the configuration is JSON as text.
NAD = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "k8s.cni.cncf.io/v1"},
        "kind": {"const": "NetworkAttachmentDefinition"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["config"],
            "additionalProperties": False,
            "properties": {"config": {"type": "string"}},
        },
    },
}
#: The keys that the references of host-device and whereabouts list.
CONFIG = {
    "type": "object",
    "required": ["cniVersion", "name", "type", "device", "ipam"],
    "additionalProperties": False,
    "properties": {
        **{key: {"type": "string"} for key in ("cniVersion", "name", "device")},
        "type": {"const": "host-device"},
        "ipam": {
            "type": "object",
            "required": ["type", "range"],
            "additionalProperties": False,
            "properties": {
                "type": {"const": "whereabouts"},
                "range": {"type": "string"},
                "exclude": {"type": "array", "items": {"type": "string", "pattern": "/(32|128)$"}},
            },
        },
    },
}
Render = Callable[..., tuple[int, str, str]]


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
def render(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Render:
    def _render(*words: str, states: dict[str, NodeState] | None = None, spec: Any = None) -> tuple[int, str, str]:
        inventory = tmp_path / "hosts.yaml"
        names = list(states or {"gpu01": None})
        hosts = {name: {} for name in names}
        inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {"gpuready": spec or {}}}}))
        given = ["render", *words, "-i", str(inventory)] if states or spec is not None else ["render", *words]
        if states:
            given += ["--state", write_states(tmp_path / "states.json", states)]
        code = run(given)
        said = capsys.readouterr()
        return code, said.out, said.err

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
    _, out, _ = render("k8s")
    with pytest.raises(kubernetes_validate.ValidationError):
        objects(out.replace("medium: Memory", "medium: [Memory]"))
    with pytest.raises(kubernetes_validate.ValidationError):
        objects(out.replace("sizeLimit", "size"))


def test_without_a_state_the_document_names_its_placeholders(render: Render) -> None:
    code, out, _ = render("k8s")
    runtime, network, pod = objects(out)
    head = out.partition("---")[0]
    assert code == 0 and runtime["handler"] == "nvidia"
    assert "ulimits" in head and "/dev/shm counts" in head
    for value in ("registry.example.com/train:1.0", "ens1f0np0", "10.100.0.0/16", "rdma/rdma", "8 GPUs"):
        assert value in head and value.split()[0] in out.partition("---")[2]
    assert json.loads(network["spec"]["config"])["device"] == "ens1f0np0"
    assert pod["spec"]["runtimeClassName"] == "nvidia"


def test_what_the_spec_says_is_no_placeholder(render: Render) -> None:
    spec = {"hardware": {"gpus": 4}, "verify": {"image": "app:1"}, "runtimes": {"docker": {"shm_size": "1536mb"}}}
    code, out, _ = render("k8s", "--rdma-resource", "rdma/hca", spec=spec | {"nccl": {"subnets": ["10.9.0.0/16"]}})
    *_, network, pod = objects(out)
    assert code == 0 and json.loads(network["spec"]["config"])["ipam"]["range"] == "10.9.0.0/16"
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["resources"]["limits"]) == ("app:1", {"nvidia.com/gpu": 4, "rdma/hca": 1})
    assert pod["spec"]["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1536Mi"}}]
    assert "Replace: the image" not in out and "GPUs (" not in out


def test_a_pod_has_the_nccl_settings_of_its_hosts(render: Render) -> None:
    states = {"gpu01": node(1, "mlx5_0", "mlx5_1"), "gpu02": node(2, "mlx5_0", "mlx5_1")}
    code, out, err = render("k8s", states=states)
    _, first, second, pod = objects(out)
    assert (code, err) == (0, "")
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
    code, out, _ = render("k8s", states={"gpu01": node(1, netns="N")}, spec={"nccl": {"version": "2.18.5"}})
    *_, pod = objects(out)
    assert code == 0 and "NCCL_IB_GID_INDEX" not in env(pod)
    assert "NCCL_IB_GID_INDEX is left out" in out and "the RDMA mode is exclusive" in out


def test_infiniband_needs_no_network_of_its_own(render: Render) -> None:
    gids: dict[str, Any] = {"gids": [], "layer": "InfiniBand"}
    code, out, _ = render("k8s", states={"gpu01": node(1, **gids)})
    kinds = [each["kind"] for each in objects(out)]
    assert code == 0 and kinds == ["RuntimeClass", "Pod"]
    pod = objects(out)[-1]
    assert env(pod) == {"NCCL_IB_HCA": "=mlx5_0:1"} and "annotations" not in pod["metadata"]


def test_a_node_without_rdma_gets_a_pod_without_it(render: Render) -> None:
    code, out, _ = render("k8s", states={"gpu01": NodeState()}, spec={"hardware": {"gpus": 1}})
    _, pod = objects(out)
    (container,) = pod["spec"]["containers"]
    assert code == 0 and container["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert "securityContext" not in container and env(pod) == {} and "there is no RDMA device" in out


def test_hosts_that_differ_get_no_common_pod(render: Render) -> None:
    code, out, err = render("k8s", states={"gpu01": node(1), "gpu02": node(2, "mlx5_7")})
    assert (code, out) == (64, "") and "gpu01 and gpu02 differ in variables" in err and "--limit" in err


def test_a_placeholder_differs_from_the_same_value_by_the_key_of_the_spec(tmp_path: Path, exits: Exits) -> None:
    hosts = {"gpu01": {"gpuready": {"hardware": {"gpus": GPUS}}}, "gpu02": {"gpuready": {}}}
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    told = exits(64, "render", "k8s", "-i", str(tmp_path / "hosts.yaml")).err
    assert "gpu01 and gpu02 differ in hardware.gpus, " in told and "make them agree in the spec" in told


def test_a_host_without_settings_is_an_error(render: Render) -> None:
    code, out, err = render("k8s", states={"gpu01": node(1, gids=["1 fe80::1 v2 ens1"])})
    assert (code, out) == (3, "") and "gpu01: " in err and "link-local" in err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("rules", "--state", "x"), "--state"),
        (("fabric-image", "-i", "x"), "-i"),
        (("k8s", "--system", "cos"), "--system"),
        (("rules", "--", "train.py"), "train.py"),
    ],
)
def test_an_option_of_another_document(words: tuple[str, ...], part: str, exits: Exits) -> None:
    told = exits(64, "render", *words).err
    assert part in told and f"fix:     gpuready render {words[0]} --help" in told


# --- Helm values of the GPU Operator

#: Of the chart's reference of values, v26.7.0 (2026-08-21): what we may set, with its type.
VALUES = {
    "driver": {"enabled": bool, "rdma": {"enabled": bool}},
    "toolkit": {"enabled": bool},
    "cdi": {"enabled": bool},
    "operator": {"runtimeClass": str},
}


def check_values(values: dict[str, Any], known: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict):
            check_values(value, known[key])
        else:
            assert type(value) is known[key], key


@pytest.mark.parametrize(
    ("spec", "driver", "toolkit", "cdi"),
    [
        (None, {"enabled": False}, False, True),
        ({"driver": {"policy": "install", "version": "580.95.05"}}, {"enabled": False}, False, True),
        ({"owners": {"driver": "operator"}}, {"enabled": True}, False, True),
        (
            {"owners": {"driver": "operator", "toolkit": "operator"}, "hardware": {"rdma": {"ports": 8}}},
            {"enabled": True, "rdma": {"enabled": True}},
            True,
            True,
        ),
        ({"runtimes": {"containerd": {"cdi": False}}}, {"enabled": False}, False, False),
    ],
)
def test_what_gpuready_owns_is_off_in_the_chart(
    render: Render, spec: Any, driver: dict[str, Any], toolkit: bool, cdi: bool
) -> None:
    code, out, _ = render("gpu-operator", spec=spec)
    values = yaml.safe_load(out)
    check_values(values, VALUES)
    assert code == 0 and "--version=v26.7.0" in out and "ignores toolkit-version" in out
    assert values == {
        "driver": driver,
        "toolkit": {"enabled": toolkit},
        "cdi": {"enabled": cdi},
        "operator": {"runtimeClass": "nvidia"},
    }


def test_hosts_with_different_owners_get_no_common_values(tmp_path: Path, exits: Exits) -> None:
    hosts = {"gpu01": {"gpuready": {}}, "gpu02": {"gpuready": {"owners": {"driver": "operator"}}}}
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    told = exits(64, "render", "gpu-operator", "-i", str(tmp_path / "hosts.yaml"))
    assert "gpu01 and gpu02 differ in driver" in told.err


# --- the image


def test_the_dockerfile_of_the_fabrics_tools_has_no_findings(render: Render) -> None:
    code, out, _ = render("fabric-image")
    program = shutil.which(str(Path(sys.executable).with_name("hadolint"))) or "hadolint"
    found = subprocess.run([program, "-"], input=out, capture_output=True, text=True, check=False)
    assert (code, found.returncode, found.stdout) == (0, 0, "")
    bases = [line.split()[1] for line in out.splitlines() if line.startswith("FROM ")]
    assert [base.partition(":")[0] for base in bases] == ["nvidia/cuda", "nvidia/cuda"]
    for part in ("--branch v2.17.6", "perftest", "rdma-core", "/nccl-tests/build/*_perf"):
        assert part in out
    bare = re.sub(r":12\S+", "", out)
    broken = subprocess.run([program, "-"], input=bare, capture_output=True, text=True, check=False)
    assert broken.returncode == 1
