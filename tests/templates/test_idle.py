"""templates/lib/idle.sh.j2: which images do not count and which containers use a GPU, on both sides alike."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.base.records import Records
from gpuready.components.docker.state import docker, gpu_containers
from gpuready.contract.ignored_containers import counted, words
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Container, Docker, NodeState

SHA = "sha256:" + "0a" * 32
CASES = [
    ("nginx", ["nginx"], True),
    ("nginx:1.27", ["nginx"], True),
    ("nginx:1.27", ["nginx:1.26"], False),
    ("nginx", ["nginx:latest"], False),
    ("registry:5000/team/web:2", ["registry:5000/team/web"], True),
    ("registry:5000/team/web:2", ["registry"], False),
    ("registry:5000/team/web", ["registry:5000"], False),
    (f"web:2@{SHA}", ["web"], True),
    (f"web:2@{SHA}", ["web:2"], True),
    (f"web:2@{SHA}", [f"web:2@{SHA}"], True),
    ("webserver", ["web"], False),
    ("team/web", ["web"], False),
    ("web", [], False),
    ("web", ["a", "b", "web"], True),
]


@pytest.mark.parametrize(("image", "ignore", "ignored"), CASES)
def test_images_that_do_not_count(image: str, ignore: list[str], ignored: bool) -> None:
    spec = NodeSpec.model_validate({"maintenance": {"ignore": ignore}})
    state = NodeState(docker=Docker(containers=(Container(id="1", name="c", image=image),)))
    found = counted(spec, state).docker
    assert isinstance(found, Docker) and bool(found.containers) is not ignored
    assert words(spec) == ("", *ignore)
    script = resources.script("lib/idle") + 'is_ignored "$@"\n'
    done = subprocess.run(["sh", "-c", script, "idle", image, *ignore], capture_output=True, text=True, check=False)
    assert (done.returncode == 0, done.stderr) == (ignored, "")


ALL = {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
CDI = {"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=all"], "Capabilities": None, "Options": None}
#: Runtime and DeviceRequests, as docker inspect prints them -> does the container use a GPU?
REQUESTS: list[tuple[str, list[dict[str, Any]] | None, bool]] = [
    ("runc", None, False),
    ("runc", [], False),
    ("", None, False),
    ("nvidia", None, True),
    ("nvidia-legacy", None, True),
    ("runc", [ALL], True),
    ("runc", [ALL | {"Driver": "nvidia", "Capabilities": [["compute", "utility"]]}], True),
    ("runc", [CDI], True),
    ("runc", [{"Driver": "fpga", "Count": 1, "DeviceIDs": None, "Capabilities": [["fpga"]], "Options": {}}], False),
    ("io.containerd.kata.v2", None, False),
]


@pytest.mark.parametrize(("runtime", "requests", "gpu"), REQUESTS)
def test_containers_that_use_a_gpu(
    tmp_path: Path, runtime: str, requests: list[dict[str, Any]] | None, gpu: bool
) -> None:
    row = {"id": "1", "name": "/c", "image": "web", "runtime": runtime, "devices": requests}
    answer = base64.b64encode(f"{{}}\n{json.dumps(row)}\n".encode()).decode()
    assert gpu_containers(docker(Records([f"run docker 0 {answer}", "end 1"]))) == (("c (web)",) if gpu else ())
    printed = f'1 "web" /c {runtime} {json.dumps(requests, separators=(",", ":"))}\n'
    (tmp_path / "docker").write_text(printed)
    script = resources.script("lib/idle") + "docker_runs() { :; }\ndocker_said() { :; }\nI=$1\ndocker_work gpu\n"
    done = subprocess.run(["sh", "-c", script, "idle", tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("container c (web)\n" if gpu else "", "")


MOUNTS = "/var/run/nvidia-container-devices"
#: Parts of a container's OCI spec, as the device plugin's list strategies leave them -> has it a GPU?
GIVEN: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing": ({}, False),
    "void": ({"env": ["NVIDIA_VISIBLE_DEVICES=void"]}, False),
    "envvar": ({"env": ["NVIDIA_VISIBLE_DEVICES=GPU-5e0a"]}, True),
    "cdi-cri": ({"devices": [{"path": "/dev/nvidia0", "type": "c"}]}, True),
    "another device": ({"devices": [{"path": "/dev/nvidia-caps/nvidia-cap1"}]}, False),
    "volume-mounts": ({"mounts": [{"destination": f"{MOUNTS}/GPU-5e0a", "source": "/dev/null"}]}, True),
    "volume-mounts, all": ({"mounts": [{"destination": f"{MOUNTS}/all"}]}, True),
    "volume-mounts, cdi": ({"mounts": [{"destination": f"{MOUNTS}/cdi/nvidia.com/gpu/0"}]}, True),
    "volume-mounts, void": ({"mounts": [{"destination": f"{MOUNTS}/void"}]}, False),
    "volume-mounts, a channel": ({"mounts": [{"destination": f"{MOUNTS}/imex/0"}]}, False),
    "cdi-annotations": ({"annotations": {"nvidia.cdi.k8s.io/plugin": "nvidia.com/gpu=0"}}, True),
    "cdi-annotations, own": ({"annotations": {"cdi.k8s.io/plugin": "k8s.device-plugin.nvidia.com/gpu=GPU-5e0a"}}, True),
    "a word of its own": ({"args": ["watch", "--selector", "nvidia.com/gpu=present"]}, False),
}


@pytest.mark.parametrize("name", GIVEN)
def test_pods_that_have_a_gpu(tmp_path: Path, name: str) -> None:
    given, gpu = GIVEN[name]
    labels = {"io.kubernetes.pod.name": "train", "io.kubernetes.pod.namespace": "ml"}
    said = {"status": {"labels": labels}, "info": {"sandboxID": "p", "runtimeSpec": {"ociVersion": "1.2.0", **given}}}
    (tmp_path / "c").write_text(json.dumps(said, indent=2))
    (tmp_path / "p").write_text("{}")
    crictl = tmp_path / "crictl"
    crictl.write_text(f'#!/bin/sh\ncd {tmp_path}\ncase $1 in ps) echo c ;; *) cat "$2" ;; esac\n')
    crictl.chmod(0o755)
    script = resources.script("lib/idle") + "has() { :; }\nclass=restart\nI=$1\nPATH=$1:$PATH\npod_work\n"
    done = subprocess.run(["sh", "-c", script, "idle", tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("pod ml/train\n" if gpu else "", "")
