"""Images on a node: Docker's own, read without being run, and archives that it saved.

The machine has no GPU, so driver and GPU are those of "what if"; Docker, the toolkit and all that is read are real.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import Machine
from tests.lab.fixtures import MachineFactory
from tests.system.harness import Gpuready, Inventories, await_processes, processes
from tests.unit.imagefiles import NOTE, File, layer, library

GPU = ("--driver", "570.211.01", "--gpu")
LIBRARY = "usr/local/cuda-12.9/compat/libcuda.so.575.57.08"
BASE: dict[str, File] = {
    "usr/local/cuda": "/etc/alternatives/cuda",
    "etc/alternatives/cuda": "/usr/local/cuda-12.9",
    LIBRARY: library().ljust(3_000_000, b"\1"),
    "usr/local/cuda-12.9/compat/libcuda.so.1": "libcuda.so.575.57.08",
    "usr/local/cuda-12.9/compat/libcuda.so": "libcuda.so.1",
}
IMAGES: dict[str, tuple[dict[str, File], list[str]]] = {
    "app:noted": (BASE, ["ENV CUDA_VERSION=12.9.1", "ENV NVIDIA_REQUIRE_CUDA='cuda>=12.0'", "VOLUME /data"]),
    "app:plain": ({**BASE, LIBRARY: library(None)}, ["ENV CUDA_VERSION=12.9.1"]),
    "app:broken": ({**BASE, LIBRARY: b"no library"}, ["ENV CUDA_VERSION=12.9.1"]),
    "app:gated": (BASE, ["ENV CUDA_VERSION=12.9.1", "ENV NVIDIA_REQUIRE_CUDA='cuda>=12.9 brand=tesla,driver>=999'"]),
    "app:pip": ({"opt/nvidia_cuda_runtime_cu12-12.8.57.dist-info/METADATA": b"x"}, []),
    "app:none": ({"bin/true": b""}, []),
}


@pytest.fixture(scope="module")
def node(module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> Machine:
    """A machine with the toolkit, and images that ``docker import`` made."""
    machine = module_machine("debian13")
    assert gpuready("apply", "--yes", inventory=inventory(machine)).code == 0
    for name, (files, changes) in IMAGES.items():
        (machine.root / "root/image.tar").write_bytes(layer(files))
        words = " ".join(f'--change "{change}"' for change in changes)
        machine.run(f"docker import {words} /root/image.tar {name} && rm /root/image.tar")
    return machine


def test_every_image_is_read_and_nothing_is_left(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    hosts = inventory(node, images=[*IMAGES, "not/here:1", {"ref": "busybox:lab", "cuda": "12.4"}])
    objects = "docker ps -aq; docker volume ls -q; docker image ls -aq"
    before = (sorted(node.run(objects).stdout.split()), processes(node))  # Docker sorts by seconds
    done = gpuready("compat", *GPU, "NVIDIA H100", inventory=hosts)
    images = {item["image"]: item for item in done.host()["images"]}
    assert done.code == 3, done.explain()
    assert {name: item["verdict"] for name, item in images.items()} == {
        "app:noted": "FORWARD",
        "app:plain": "FORWARD",
        "app:broken": "FORWARD",
        "app:gated": "FORWARD",  # by jit-cdi, which asks no gate
        "app:pip": "NATIVE",
        "app:none": None,
        "not/here:1": None,
        "busybox:lab": "NATIVE",
    }
    assert "its ELF note lists driver branch 570" in images["app:noted"]["reason"]
    assert "the support matrix lists driver branch 570" in images["app:plain"]["reason"]
    assert "its ELF note cannot be read" in images["app:broken"]["notes"][0]
    assert "says no CUDA_VERSION" in images["app:none"]["reason"]
    assert "the image not/here:1 is not on the node, and it is not pulled unasked" in images["not/here:1"]["reason"]
    assert (done.host()["execs"], done.host()["components"], done.host()["checks"]) == (2, [], [])
    assert sorted(node.run(objects).stdout.split()) == before[0]
    await_processes(node, before[1])
    assert node.run("ls -d /run/gpuready-images* /tmp/gpuready-images* 2>/dev/null || true").stdout == ""


def test_a_consumer_gpu_and_the_mode_of_the_node(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    hosts = inventory(node)
    names = ("--image", "app:noted", "--image", "app:gated")
    done = gpuready("compat", *GPU, "GeForce RTX 4090", *names, inventory=hosts)
    assert [item["verdict"] for item in done.host()["images"]] == ["ERROR_804", "ERROR_804"], done.explain()
    config = node.root / "etc/nvidia-container-runtime/config.toml"
    text = config.read_text("utf-8")
    section = "nvidia-container-runtime"
    config.write_text(
        f'[{section}]\nmode = "legacy"\n[{section}.modes.legacy]\ncuda-compat-mode = "disabled"\n', "utf-8"
    )
    try:
        done = gpuready("compat", *GPU, "GeForce RTX 4090", *names, inventory=hosts)
        assert [item["verdict"] for item in done.host()["images"]] == ["MINOR", "REFUSED"], done.explain()
    finally:
        config.write_text(text, "utf-8")


def test_what_docker_saved_says_the_same(
    node: Machine, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    node.run("docker save -o /root/saved.tar app:noted")
    saved = tmp_path / "saved.tar"
    saved.write_bytes((node.root / "root/saved.tar").read_bytes())
    hosts = inventory(node)
    done = gpuready("compat", *GPU, "NVIDIA H100", "--image", str(saved), "--image", "app:noted", inventory=hosts)
    first, second = ({key: value for key, value in item.items() if key != "image"} for item in done.host()["images"])
    assert first == second, done.explain()
    assert NOTE.encode() in layer(BASE)


def test_without_a_driver_and_with_docker_stopped(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    hosts = inventory(node, images=["app:noted"], hardware={"gpus": "auto"})
    done = gpuready("compat", inventory=hosts)
    assert (done.code, done.host()["images"][0]["verdict"]) == (3, None)
    assert done.host()["images"][0]["reason"] == "no nvidia driver is loaded"
    assert "image.compat" in gpuready("verify", inventory=hosts).checks("skip")
    node.run("systemctl stop docker.socket docker.service")
    try:
        done = gpuready("compat", *GPU, "NVIDIA H100", inventory=hosts)
        assert "no Docker runs on this node" in done.host()["images"][0]["reason"]
        assert node.run("systemctl is-active docker.service || true").stdout.strip() == "inactive"
    finally:
        node.run("systemctl start docker.socket docker.service")
