"""What a container is started with: each node's options, and a job of Google Cloud's Batch against its API's fields."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gpuready.cli.app import run
from gpuready.report.result import result_schema
from gpuready.spec.model import NodeSpec
from gpuready.state.model import Docker, Driver, File, NodeState, Unknown
from gpuready.tools.run_args.arguments import NoGpus, arguments

RECORDED = Path(__file__).parents[2] / "data" / "h200-mounted-driver" / "state.json"
CDI = 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- {name: "0", containerEdits: {env: [A=1]}}\n'
NVIDIA = {"runtimes": {"runc": "runc", "nvidia": "nvidia-container-runtime"}, "default_runtime": "runc"}
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
        (node(NVIDIA | {"default_runtime": "nvidia"}), {}, ["--gpus=all", SHM]),
        (node({"runtimes": {"runc": "runc"}}, cdi=True), {}, ["--device=nvidia.com/gpu=all", SHM]),
        (node(cdi=True), HARDENED, ["--device=nvidia.com/gpu=all", SHM]),
        (node(), HARDENED, ["--runtime=nvidia", "--volume=/dev/null:/var/run/nvidia-container-devices/all", SHM]),
        (node(gpus=8), {}, ["--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all", "--shm-size=8g"]),
        (node(), SHM_SIZE, ["--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all", "--shm-size=16g"]),
        (
            node(NVIDIA | {"default_runtime": "nvidia"}, rdma="Y"),
            {},
            ["--gpus=all", SHM, "--device=/dev/infiniband", MEMLOCK, "--network=host"],
        ),
        (
            # In exclusive mode the host's network holds only what no container has been given.
            node(NVIDIA | {"default_runtime": "nvidia"}, rdma="N"),
            {},
            ["--gpus=all", SHM, "--device=/dev/infiniband", MEMLOCK],
        ),
        (
            node(),
            {"memlock": "unlimited"},
            ["--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all", SHM, MEMLOCK],
        ),
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
    with pytest.raises(NoGpus, match=why):
        words(state)


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    spec = {"hardware": {"gpus": 8}, "verify": {"image": "app:1"}, "runtimes": {"docker": {"shm_size": "16g"}}}
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps({"all": {"hosts": {"h200": {"gpuready": spec}, "other": {"gpuready": {}}}}}))
    return str(path)


def test_a_recorded_node_gets_a_line_and_a_document(inventory: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["docker-args", "-i", inventory, "--limit", "h200", "--state", str(RECORDED)]
    assert run(asked) == 0
    told = capsys.readouterr().out
    assert "docker run on h200" in told and "--shm-size=16g: runtimes.docker.shm_size in the spec" in told
    assert run([*asked, "--output", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(result_schema()).validate(document)
    told_words = [word for each in document["hosts"]["h200"]["docker_args"] for word in each["words"]]
    assert "--shm-size=16g" in told_words and ("--gpus=all" in told_words or "--runtime=nvidia" in told_words)


def test_a_node_without_docker_ends_in_3(inventory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state.json").write_text(NodeState().model_dump_json())
    assert run(["docker-args", "-i", inventory, "--limit", "h200", "--state", str(tmp_path / "state.json")]) == 3
    assert "no Docker runs on this node" in capsys.readouterr().out


# --- Google Cloud's Batch -------------------------------------------------------------------------------------

TEXT = {"type": "string"}


def thing(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "additionalProperties": False}


def several(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, **more}


#: The fields of the API's reference v1, as far as a job may use them; int64 and maps as its JSON has them.
_TASKS = {"type": "string", "pattern": "^[0-9]+$"}
_VARIABLES = thing(variables={"type": "object", "additionalProperties": TEXT})
_CONTAINER = thing(
    imageUri=TEXT, commands=several(TEXT), entrypoint=TEXT, volumes=several(TEXT), options=TEXT,
    blockExternalNetwork={"type": "boolean"}, username=TEXT, password=TEXT, enableImageStreaming={"type": "boolean"},
)  # fmt: skip
_RUNNABLE = thing(
    displayName=TEXT, ignoreExitStatus={"type": "boolean"}, background={"type": "boolean"}, timeout=TEXT,
    alwaysRun={"type": "boolean"}, environment=_VARIABLES, labels={"type": "object"}, container=_CONTAINER,
    script=thing(path=TEXT, text=TEXT),
)  # fmt: skip
_TASK = thing(
    runnables=several(_RUNNABLE, minItems=1), computeResource={"type": "object"}, maxRunDuration=TEXT,
    maxRetryCount={"type": "integer", "minimum": 0, "maximum": 10}, environment=_VARIABLES, volumes=several({}),
)  # fmt: skip
_POLICY = thing(
    machineType=TEXT, minCpuPlatform=TEXT, provisioningModel=TEXT, disks=several({}), reservation=TEXT,
    accelerators=several(thing(type=TEXT, count=_TASKS, driverVersion=TEXT)), bootDisk=thing(image=TEXT, sizeGb=TEXT),
)  # fmt: skip
_INSTANCE = thing(policy=_POLICY, instanceTemplate=TEXT, installGpuDrivers={"type": "boolean"})
JOB = thing(
    priority=TEXT, labels={"type": "object"},
    taskGroups=several(
        thing(taskSpec=_TASK, taskCount=_TASKS, parallelism=_TASKS, taskCountPerNode=_TASKS), minItems=1, maxItems=1
    ),
    allocationPolicy=thing(location={"type": "object"}, instances=several(_INSTANCE, maxItems=1)),
    logsPolicy=thing(destination={"enum": ["CLOUD_LOGGING", "PATH"]}, logsPath=TEXT),
)  # fmt: skip


def batch(inventory: str, *words: str) -> list[str]:
    return ["render", "gcp-batch", "-i", inventory, "--limit", "h200", *words]


def test_a_job_has_the_fields_of_the_api_and_what_the_container_needs(
    inventory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = ("--machine-type", "n1-standard-8", "--accelerator", "nvidia-tesla-t4", "--boot-image", "batch-debian")
    assert run(batch(inventory, *machine, "--", "train.py", "--epochs", "3")) == 0
    job = json.loads(capsys.readouterr().out)
    Draft202012Validator(JOB).validate(job)
    runtime, main = job["taskGroups"][0]["taskSpec"]["runnables"]
    subprocess.run(["sh", "-n"], input=runtime["script"]["text"], text=True, check=True)
    assert "docker info --format '{{json .Runtimes}}'" in runtime["script"]["text"]
    container = main["container"]
    assert container["options"] == "--runtime=nvidia --gpus=all --shm-size=16g"
    assert container["volumes"][0] == "/var/lib/nvidia/lib64:/usr/local/nvidia/lib64"
    assert [container["entrypoint"], *container["commands"]] == [
        *("torchrun", "--standalone", "--nproc-per-node=8", "train.py", "--epochs", "3")
    ]
    assert main["environment"]["variables"] == {"TRITON_LIBCUDA_PATH": "/usr/local/nvidia/lib64"}
    (instance,) = job["allocationPolicy"]["instances"]
    assert instance["policy"]["accelerators"] == [{"type": "nvidia-tesla-t4", "count": "8"}]


@pytest.mark.parametrize(
    ("words", "limit", "said"),
    [
        ((), "h200", "needs a machine type; a script"),
        ((), "h200", "--machine-type, such as a3-highgpu-8g; -- train.py"),
        (("--machine-type", "g2-standard-96", "--", "y"), "other", "needs an image; the number of GPUs"),
        (("--machine-type", "a3-highgpu-8g", "--", "y"), "other", "hardware: {gpus: NUMBER} in the spec of other"),
        (("--machine-type", "a4x-highgpu-4g", "--", "y"), "other", "/hosts.json:"),
        (("--machine-type", "n1-standard-8", "--", "y"), "h200", "needs GPUs (this machine type has none)"),
        (("--machine-type", "c4a-standard-8", "--", "y"), "h200", "--accelerator, such as nvidia-tesla-t4"),
        (("--machine-type", "x", "--", "y"), "all", "2 are chosen"),
    ],
)
def test_what_a_job_lacks_is_said_at_once(
    inventory: str, words: tuple[str, ...], limit: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["render", "gcp-batch", "-i", inventory, "--limit", limit, *words]) == 64
    assert said in capsys.readouterr().err


def test_other_renderings_take_no_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["render", "rules", "--", "train.py"]) == 64
    assert "are for gcp-batch" in capsys.readouterr().err
