"""Images on a node: Docker's, containerd's and podman's own, read without being run, and archives that Docker saved.

The machine has no GPU, so driver and GPU are those of "what if"; Docker, the toolkit and all that is read are real.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from tests.compat.imagefiles import NOTE, File, docker_save, layer, library, oci
from tests.lab import Machine, cri, host
from tests.system.harness import Result, await_processes, processes
from tests.system.host import Host, Hosts

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
def node(shared: Hosts) -> Host:
    """A machine with the toolkit, and images that ``docker import`` made."""
    machine = shared()
    machine.apply()
    for name, (files, changes) in IMAGES.items():
        (machine.root / "root/image.tar").write_bytes(layer(files))
        words = " ".join(f'--change "{change}"' for change in changes)
        machine.run(f"docker import {words} /root/image.tar {name} && rm /root/image.tar")
    return machine


@contextmanager
def nothing_left(node: Host, script: str) -> Iterator[None]:
    """Meanwhile what the script lists stays the same, and no process stays."""
    before = sorted(node.run(script).stdout.split()), processes(node)  # Docker sorts by seconds
    yield
    assert sorted(node.run(script).stdout.split()) == before[0]
    await_processes(node, before[1])


def compat(node: Host, *words: str, gpu: str = "NVIDIA H100", **spec: Any) -> tuple[dict[str, dict[str, Any]], Result]:
    """The answer for each image on a node with that GPU and an older driver, and the run."""
    done = node.call("compat", "--driver", "570.211.01", "--gpu", gpu, *words, code=None, **spec)
    return {item["image"]: item for item in done.host()["images"]}, done


def verdicts(images: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    return {name: item["verdict"] for name, item in images.items()}


def test_every_image_is_read_and_nothing_is_left(node: Host) -> None:
    listed = [*IMAGES, "not/here:1", {"ref": "busybox:lab", "cuda": "12.4"}]
    left = "docker ps -aq; docker volume ls -q; docker image ls -aq; ls -d /run/gpuready-i* /tmp/gpuready-i*; true"
    with nothing_left(node, left):
        images, done = compat(node, images=listed)
    assert verdicts(images) == {
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
    assert "unreadable ELF note" in images["app:broken"]["notes"][0]
    assert "has neither CUDA_VERSION" in images["app:none"]["reason"]
    absent = "the image not/here:1 is not on the node (asked: Docker, containerd), and it is not pulled"
    assert absent in images["not/here:1"]["reason"]
    found = done.host()
    assert (done.code, found["execs"], found["components"], found["checks"]) == (3, 2, [], [])


def test_a_consumer_gpu_and_the_mode_of_the_node(node: Host) -> None:
    names = ("--image", "app:noted", "--image", "app:gated")
    images, _ = compat(node, *names, gpu="GeForce RTX 4090")
    assert list(verdicts(images).values()) == ["ERROR_804", "ERROR_804"]
    config = node.root / "etc/nvidia-container-runtime/config.toml"
    text = config.read_text("utf-8")
    config.write_text('[nvidia-container-runtime]\nmode = "legacy"\nmodes.legacy.cuda-compat-mode = "disabled"\n')
    images, _ = compat(node, *names, gpu="GeForce RTX 4090")
    config.write_text(text, "utf-8")
    assert list(verdicts(images).values()) == ["MINOR", "REFUSED"]


def test_what_docker_saved_says_the_same(node: Host, tmp_path: Path) -> None:
    node.run("docker save -o /root/saved.tar app:noted")
    saved = tmp_path / "saved.tar"
    saved.write_bytes((node.root / "root/saved.tar").read_bytes())
    images, done = compat(node, "--image", str(saved), "--image", "app:noted")
    first, second = (item | {"image": ""} for item in images.values())
    assert first == second, done.explain()
    assert NOTE.encode() in layer(BASE)


def test_without_a_driver_and_with_docker_stopped(node: Host) -> None:
    wanted = node.with_spec(images=["app:noted"], hardware={"gpus": 1})
    done = wanted.call("compat", code=3)
    (image,) = done.host()["images"]
    assert (image["verdict"], image["reason"]) == (None, "no nvidia driver is loaded")
    assert "image.compat" in wanted.verify(code=None).checks("skip")
    node.run("systemctl stop docker.socket docker.service")
    images, _ = compat(wanted)
    state = node.run("systemctl is-active docker.service || true; systemctl start docker.socket docker.service").stdout
    assert "is not on the node (asked: containerd" in images["app:noted"]["reason"]
    assert state.strip() == "inactive"


ENV = {"CUDA_VERSION": "12.9.1", "NVIDIA_REQUIRE_CUDA": "cuda>=12.0"}
#: What containerd alone has: name -> namespace, what its import is told, configuration, layers.
HELD: dict[str, tuple[str, str, dict[str, str], list[dict[str, File]]]] = {
    "registry.example.com:5000/app:held": ("k8s.io", "", ENV, [{"etc/x": b"x"}, BASE]),
    "docker.io/library/held:packed": ("k8s.io", "--no-unpack", ENV, [BASE]),
    "docker.io/nvidia/held:pip": ("mine", "", {}, [IMAGES["app:pip"][0]]),
    # What these lead to on the node must not be read, nor be waited for.
    "docker.io/library/held:out": ("default", "", ENV, [{"usr/local/cuda": "/../../../srv/outside"}]),
    "docker.io/library/held:circle": ("default", "", ENV, [{"usr/local/cuda": "/usr/local/cuda"}]),
}
#: All that reading could leave behind; the images' own snapshots are among it, but do not change.
_LEFT = """
for n in $(ctr namespaces ls -q); do
  echo "$n" $(ctr -n "$n" leases ls -q) $(ctr -n "$n" snapshots ls | cut -d' ' -f1) $(ctr -n "$n" containers ls -q)
done
grep gpuready /proc/mounts
ls -d /run/gpuready-images* /tmp/gpuready-images* 2>/dev/null
true
"""


@pytest.fixture(scope="module")
def held(node: Host) -> Host:
    """The machine with images that its containerd has, imported from archives of several platforms."""
    for name, (space, option, env, layers) in HELD.items():
        path = node.root / "root/held.tar"
        path.write_bytes(layer(oci(env, map(layer, layers), host.architecture())))
        node.run(f"ctr -n {space} images import {option} --index-name {name} /root/held.tar && rm /root/held.tar")
    (node.root / "srv/outside/compat").mkdir(parents=True)
    (node.root / "srv/outside/compat/libcuda.so.575.57.08").write_bytes(library())
    return node


def test_containerd_has_what_docker_has_not(held: Host) -> None:
    app = "registry.example.com:5000/app"
    told = held.run(f"ctr -n k8s.io images ls name=={app}:held | grep -o 'sha256:[0-9a-f]*'").stdout.split()[0]
    names = [f"{app}:held", f"{app}@{told}", "held:packed", "nvidia/held:pip", "held:out", "held:circle"]
    with nothing_left(held, _LEFT):
        images, done = compat(held, images=[*names, f"{app}:other"])
    assert done.host()["execs"] == 2
    assert verdicts(images) == {
        **dict.fromkeys(names[:2], "FORWARD"),
        **dict.fromkeys(names[2:], "MINOR"),
        "held:packed": None,
        "nvidia/held:pip": "NATIVE",
        f"{app}:other": None,
    }, done.explain()
    assert "its ELF note lists driver branch 570" in images[f"{app}:held"]["reason"]
    assert "(namespace k8s.io), but it is not unpacked there" in images["held:packed"]["reason"]
    assert "(asked: Docker, containerd" in images[f"{app}:other"]["reason"]


#: It waits where the image is mounted and read, is ended there, and everything that was begun for it ends, too.
_CUT = """
cat >/usr/local/sbin/find <<'X'
#!/bin/sh
: >/run/reading
read x </run/brake
X
chmod 755 /usr/local/sbin/find; rm -f /run/reading /run/brake; mkfifo /run/brake
sh -c 'eval "$(cat)"' </root/read.sh >/dev/null & shell=$!
until [ -e /run/reading ]; do :; done
readers=$(pgrep -f '^(sh|timeout) .*/run/gpuready-images'); finds=$(pgrep -f '^/bin/sh /usr/local/sbin/find')
tail $(printf -- '--pid=%s ' $shell $readers $finds) -s 0.1 -f /dev/null & all=$!
kill -"$1" $readers $shell $finds
# A signal that comes again and again, to the group that timeout made, does not stop the cleaning up.
[ "$1" = KILL ] || for p in $readers; do while kill -"$1" "-$p"; do :; done & done 2>/dev/null
wait $all
rm /usr/local/sbin/find /run/brake /run/reading
"""


def test_it_is_cut_off_while_it_reads(held: Machine) -> None:
    before = held.run(_LEFT).stdout
    script = resources.script(
        "compat/read-images", images=["registry.example.com:5000/app:held"], limits={"image.0": 165}
    )
    (held.root / "root/read.sh").write_text(script, "utf-8")
    (held.root / "root/cut.sh").write_text(_CUT, "utf-8")
    held.run("sh /root/cut.sh TERM", timeout=30)
    assert held.run(_LEFT).stdout == before
    held.run("sh /root/cut.sh KILL", timeout=30)
    lease = held.run("ctr -n k8s.io leases ls | grep gpuready-images").stdout
    assert "containerd.io/gc.expire=" in lease, "what nobody can clean up any more must end by itself"
    assert held.run("grep gpuready-images /proc/mounts || true").stdout == ""
    key = lease.split()[0]
    held.run(f"ctr -n k8s.io images unmount --rm {key}; rm -r {key.removesuffix('/root')}")
    assert held.run(_LEFT).stdout == before


def test_podman_has_what_nobody_else_has(node: Host) -> None:
    node.put(cri.podman(), "/")
    for name in ("docker.io/kept/app:1", "docker.io/kept/out:1"):
        files = {"usr/local/cuda": "/../../../../../../../../../srv/kept"} if "out" in name else BASE
        (node.root / "root/kept.tar").write_bytes(layer(docker_save(ENV, [layer({"etc/x": b"x"}), layer(files)], name)))
        node.run("podman load -q -i /root/kept.tar && rm /root/kept.tar")
    (node.root / "srv/kept/compat").mkdir(parents=True)
    (node.root / "srv/kept/compat/libcuda.so.575.57.08").write_bytes(library())
    left = "podman image mount; podman ps -aq --external; grep podman /proc/mounts; find /var/lib/docker/podman | sort"
    with nothing_left(node, left):
        images, done = compat(node, images=["kept/app:1", "kept/out:1", "no:1"])
    assert list(verdicts(images).values()) == ["FORWARD", "MINOR", None], done.explain()
    assert "its ELF note lists driver branch 570" in images["kept/app:1"]["reason"]
    assert "(asked: Docker, containerd, podman)" in images["no:1"]["reason"]
