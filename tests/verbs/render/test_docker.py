"""The options of docker run for a node."""

from pathlib import Path
from typing import Any

import pytest

from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, Driver, File, NodeState, Unknown
from gpuready.verbs.render.docker import NoGpusError, arguments
from tests.command import Exits

RECORDED = Path(__file__).parents[2] / "data" / "h200-mounted-driver" / "state.json"
CDI = 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- {name: "0", containerEdits: {env: [A=1]}}\n'
NVIDIA = {"runtimes": {"runc": "runc", "nvidia": "nvidia-container-runtime"}, "default_runtime": "runc"}
DEFAULT = NVIDIA | {"default_runtime": "nvidia"}
PORT = "/sys/class/infiniband/mlx5_0/ports/1/state"
MEMLOCK, SHM = "--ulimit=memlock=-1:-1", "--shm-size=4g"


def node(docker: dict[str, Any] | None = None, *, cdi: bool = False, rdma: str = "", gpus: int = 1) -> NodeState:
    given = (NVIDIA if docker is None else docker) | ({"cdi_spec_dirs": ("/etc/cdi", "/var/run/cdi")} if cdi else {})
    file = File(text=CDI, mode=0o644, uid=0, gid=0, mtime=1)
    return NodeState(
        docker=Docker.model_validate(given),
        driver=Driver(gpus=tuple(f"0000:0{n}:00.0" for n in range(gpus))),
        files={"/var/run/cdi/nvidia.yaml": file} if cdi else {},
        rdma={PORT: "4: ACTIVE"} if rdma else {},
        ib_netns_mode=rdma,
    )


def words(state: NodeState, **spec: Any) -> list[str]:
    return [word for each in arguments(NodeSpec.model_validate(spec), state) for word in each.words]


HARDENED: dict[str, Any] = {"toolkit": {"hardened": True}}
SHM_SIZE: dict[str, Any] = {"runtimes": {"docker": {"shm_size": "16g"}}, "hardware": {"gpus": 8}}


@pytest.mark.parametrize(
    ("state", "spec", "expected"),
    [
        (node(), {}, ["--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all", SHM]),
        (node(DEFAULT), {}, ["--gpus=all", SHM]),
        (node({"runtimes": {"runc": "runc"}}, cdi=True), {}, ["--device=nvidia.com/gpu=all", SHM]),
        (node(cdi=True), HARDENED, ["--device=nvidia.com/gpu=all", SHM]),
        (node(), HARDENED, ["--runtime=nvidia", "--volume=/dev/null:/var/run/nvidia-container-devices/all", SHM]),
        (node(gpus=8), {}, ["--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all", "--shm-size=8g"]),
        (node(), SHM_SIZE, ["--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all", "--shm-size=16g"]),
        (node(DEFAULT, rdma="Y"), {}, ["--gpus=all", SHM, "--device=/dev/infiniband", MEMLOCK, "--network=host"]),
        # In exclusive mode the host's network holds only what no container has been given.
        (node(DEFAULT, rdma="N"), {}, ["--gpus=all", SHM, "--device=/dev/infiniband", MEMLOCK]),
        (node(), {"memlock": "unlimited"}, ["--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all", SHM, MEMLOCK]),
    ],
)
def test_the_options_of_a_node(state: NodeState, spec: dict[str, Any], expected: list[str]) -> None:
    assert words(state, **spec) == expected


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (NodeState(), "no Docker runs"),
        (NodeState(docker=Unknown(unknown="it hung")), "it hung"),
        (node({"runtimes": {"runc": "runc"}}), "neither the nvidia runtime nor a CDI spec"),
    ],
)
def test_where_no_container_gets_gpus_it_is_said(state: NodeState, why: str) -> None:
    with pytest.raises(NoGpusError, match=why):
        words(state)


def test_a_recorded_node_gets_a_line_and_a_document(inventory: str, exits: Exits) -> None:
    asked = ["render", "docker", "-i", inventory, "--limit", "h200", "--state", str(RECORDED)]
    told = exits(0, *asked).out
    assert "docker run on h200" in told and "--shm-size=16g: runtimes.docker.shm_size in the spec" in told
    document = exits(0, *asked, "--output", "json").document
    told_words = [word for each in document["hosts"]["h200"]["docker_run"] for word in each["words"]]
    assert "--shm-size=16g" in told_words and ("--gpus=all" in told_words or "--runtime=nvidia" in told_words)


def test_a_node_without_docker_ends_in_3(inventory: str, tmp_path: Path, exits: Exits) -> None:
    (tmp_path / "state.json").write_text(NodeState().model_dump_json())
    told = exits(3, "render", "docker", "-i", inventory, "--limit", "h200", "--state", str(tmp_path / "state.json"))
    assert "no Docker runs on this node" in told.out
