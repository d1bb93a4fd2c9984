"""A job of Google Cloud Batch, against the fields of its API."""

import json
import subprocess
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gpuready.model.spec import NodeSpec
from tests.command import Exits
from tests.verbs.render.schemas import TEXT, several, thing

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
    return ["launch", "gcp-batch", "-i", inventory, "--limit", "h200", *words]


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
    assert said in exits(64, "launch", "gcp-batch", "-i", inventory, "--limit", limit, *words).err


def test_a_job_without_anything_lacks_a_host_too(exits: Exits) -> None:
    fix = "-i INVENTORY; --machine-type, such as a3-highgpu-8g; -- train.py\n"
    assert fix in exits(64, "launch", "gcp-batch").err
