"""What a container is started with: each node's options, and a job of Google Cloud's Batch against its API's fields."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, Driver, File, NodeState, Unknown
from gpuready.verbs.docker_args.arguments import NoGpusError, arguments
from tests.command import Exits
from tests.verbs.render.schemas import TEXT, several, thing

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


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    spec = {"hardware": {"gpus": 8}, "verify": {"image": "app:1"}, "runtimes": {"docker": {"shm_size": "16g"}}}
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps({"all": {"hosts": {"h200": {"gpuready": spec}, "other": {"gpuready": {}}}}}))
    return str(path)


def test_a_recorded_node_gets_a_line_and_a_document(inventory: str, exits: Exits) -> None:
    asked = ["docker-args", "-i", inventory, "--limit", "h200", "--state", str(RECORDED)]
    told = exits(0, *asked).out
    assert "docker run on h200" in told and "--shm-size=16g: runtimes.docker.shm_size in the spec" in told
    document = exits(0, *asked, "--output", "json").document
    told_words = [word for each in document["hosts"]["h200"]["docker_args"] for word in each["words"]]
    assert "--shm-size=16g" in told_words and ("--gpus=all" in told_words or "--runtime=nvidia" in told_words)


def test_a_node_without_docker_ends_in_3(inventory: str, tmp_path: Path, exits: Exits) -> None:
    (tmp_path / "state.json").write_text(NodeState().model_dump_json())
    told = exits(3, "docker-args", "-i", inventory, "--limit", "h200", "--state", str(tmp_path / "state.json"))
    assert "no Docker runs on this node" in told.out


# --- Google Cloud's Batch -------------------------------------------------------------------------------------

#: The fields of the API's reference v1 that a job uses; int64 and maps as its JSON has them.
_COUNT = {"type": "string", "pattern": "^[0-9]+$"}
_CONTAINER = thing(imageUri=TEXT, commands=several(TEXT), entrypoint=TEXT, volumes=several(TEXT), options=TEXT)
_RUNNABLE = thing(
    displayName=TEXT, container=_CONTAINER, script=thing(text=TEXT),
    environment=thing(variables={"type": "object", "additionalProperties": TEXT}),
)  # fmt: skip
_RETRIES = {"type": "integer", "minimum": 0, "maximum": 10}
_TASK = thing(runnables=several(_RUNNABLE, minItems=1), maxRetryCount=_RETRIES)
_POLICY = thing(
    machineType=TEXT, accelerators=several(thing(type=TEXT, count=_COUNT)), bootDisk=thing(image=TEXT),
)  # fmt: skip
_INSTANCE = thing(policy=_POLICY, installGpuDrivers={"type": "boolean"})
JOB = thing(
    taskGroups=several(thing(taskSpec=_TASK, taskCount=_COUNT), minItems=1, maxItems=1),
    allocationPolicy=thing(instances=several(_INSTANCE, maxItems=1)),
    logsPolicy=thing(destination={"enum": ["CLOUD_LOGGING", "PATH"]}),
)


def batch(inventory: str, *words: str) -> list[str]:
    return ["render", "gcp-batch", "-i", inventory, "--limit", "h200", *words]


def job(inventory: str, exits: Exits, *machine: str) -> tuple[Any, list[Any]]:
    """The policy of the VM and the runnables; the whole has only fields of the API."""
    argv = batch(inventory, "--machine-type", "a3-highgpu-8g", *machine, "--", "train.py", "--epochs", "3")
    made = json.loads(exits(0, *argv).out)
    Draft202012Validator(JOB).validate(made)
    (instance,) = made["allocationPolicy"]["instances"]
    return instance["policy"], made["taskGroups"][0]["taskSpec"]["runnables"]


TORCHRUN = ["torchrun", "--standalone", "--nproc-per-node=8", "train.py", "--epochs", "3"]


def test_on_debian_a_job_installs_the_toolkit_and_uses_the_nvidia_runtime(inventory: str, exits: Exits) -> None:
    policy, (runtime, main) = job(inventory, exits, "--accelerator", "nvidia-tesla-t4")
    assert policy["bootDisk"] == {"image": "batch-debian"}
    assert policy["accelerators"] == [{"type": "nvidia-tesla-t4", "count": "8"}]
    script = runtime["script"]["text"]
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert "docker info --format '{{json .Runtimes}}'" in script
    assert f"libnvidia-container1={NodeSpec().toolkit.version}-1" in script and "nvidia-ctk runtime configure" in script
    assert main["container"]["options"] == "--runtime=nvidia --gpus=all --shm-size=16g"
    assert [main["container"]["entrypoint"], *main["container"]["commands"]] == TORCHRUN
    assert "/var/lib/nvidia" not in json.dumps([runtime, main]) and "environment" not in main


def test_on_container_optimized_os_a_job_mounts_the_driver_and_runs_no_script(inventory: str, exits: Exits) -> None:
    policy, (main,) = job(inventory, exits, "--system", "cos")
    assert policy["bootDisk"] == {"image": "batch-cos"}
    container = main["container"]
    assert container["options"] == "--privileged --shm-size=16g"
    assert container["volumes"] == [
        "/var/lib/nvidia/lib64:/usr/local/nvidia/lib64",
        "/var/lib/nvidia/bin:/usr/local/nvidia/bin",
    ]
    assert [container["entrypoint"], *container["commands"]] == TORCHRUN
    assert main["environment"]["variables"] == {"TRITON_LIBCUDA_PATH": "/usr/local/nvidia/lib64"}


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--boot-image", "batch-cos"), "--system cos"),
        (("--boot-image", "projects/cos-cloud/global/images/family/cos-stable"), "--system cos"),
        (("--system", "cos", "--boot-image", "batch-debian"), "--system debian"),
    ],
)
def test_a_job_does_not_mix_two_systems(inventory: str, words: tuple[str, ...], fix: str, exits: Exits) -> None:
    assert fix in exits(64, *batch(inventory, "--machine-type", "a3-highgpu-8g", *words, "--", "train.py")).err


def test_a_boot_image_of_ones_own(inventory: str, exits: Exits) -> None:
    policy, _ = job(inventory, exits, "--boot-image", "projects/p/global/images/my-costly-gpu-image")
    assert policy["bootDisk"] == {"image": "projects/p/global/images/my-costly-gpu-image"}


@pytest.mark.parametrize(
    ("words", "limit", "said"),
    [
        ((), "h200", "a machine type; a script\n  fix:     --machine-type, such as a3-highgpu-8g; -- train.py\n"),
        (("--machine-type", "g2-standard-96", "--", "y"), "other", "needs an image; the number of GPUs"),
        (("--machine-type", "a3-highgpu-8g", "--", "y"), "other", "hardware: {gpus: NUMBER} in the spec of other"),
        (("--machine-type", "a4x-highgpu-4g", "--", "y"), "other", "/hosts.json:"),
        (("--machine-type", "n1-standard-8", "--", "y"), "h200", "needs GPUs (this machine type has none)"),
        (("--machine-type", "c4a-standard-8", "--", "y"), "h200", "--accelerator, such as nvidia-tesla-t4"),
        (("--machine-type", "x", "--", "y"), "all", "2 are chosen\n"),
        ((), "all", "2 are chosen; a machine type; a script\n"),
    ],
)
def test_what_a_job_lacks_is_said_at_once(
    inventory: str, words: tuple[str, ...], limit: str, said: str, exits: Exits
) -> None:
    assert said in exits(64, "render", "gcp-batch", "-i", inventory, "--limit", limit, *words).err


def test_a_job_without_anything_lacks_a_host_too(exits: Exits) -> None:
    fix = "-i INVENTORY; --machine-type, such as a3-highgpu-8g; -- train.py\n"
    assert fix in exits(64, "render", "gcp-batch").err
