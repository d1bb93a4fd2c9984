"""``compat --trace``: containers of real Docker and of the real runtime show which libcuda they got; nothing stays.

The driver's library is Debian's real one, under its own version; the image's compat library is the same file under the
name of a newer one. They find no GPU, so cuInit fails in all of them.
"""

import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.base.toml_document import merge
from gpuready.binaries import cuinit
from gpuready.contract.smoke import ASK, DOCKER_LIMITS
from tests.lab import Lab, module
from tests.lab.driver import version
from tests.system.faults import until
from tests.system.harness import Result
from tests.system.host import LIBRARIES, Host, Hosts

NEWER = "999.11.01"
CONFIG = "etc/nvidia-container-runtime/config.toml"
#: A spec as nvidia-ctk writes one, with the hooks that matter here.
CDI = """cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- {{name: all, containerEdits: {{env: [LAB_GPUS=all]}}}}
containerEdits:
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, create-symlinks, --link, "libcuda.so.1::{libraries}/libcuda.so"]
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, enable-cuda-compat, --host-driver-version={version}]
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, update-ldcache, --folder, {libraries}]
  mounts:
  - hostPath: {libraries}/libcuda.so.{version}
    containerPath: {libraries}/libcuda.so.{version}
    options: [ro, nosuid, nodev, rbind, rprivate]
"""
#: Images with a shell, a loader and ldconfig: a plain one; one with a compat library; one that finds its own first; one
#: in which a process stops, and waits for nobody.
IMAGES = """
set -eu
mkdir -p /var/tmp/i/etc /var/tmp/i/tmp
cd /var/tmp/i
libraries=$(ldd /bin/sh /bin/readlink | grep -o '/[^ ]*' | grep -v :$)
of_libcuda=$(ls /usr/lib/*/lib{{m.so.6,dl.so.2,pthread.so.0,rt.so.1}})
for f in /bin/sh /bin/readlink /sbin/ldconfig $libraries $of_libcuda; do
  mkdir -p ".${{f%/*}}"
  cp -L "$f" ".$f"
done
echo 'include /etc/ld.so.conf.d/*.conf' >etc/ld.so.conf
build() {{ tar -c . | docker import -c 'ENV CUDA_VERSION=12.4.1' -c 'VOLUME /data' "$@" >/dev/null; }}
build - app:plain
build -c 'ENTRYPOINT ["/bin/false"]' - app:entry
mkdir -p usr/local/cuda/compat
cp {library} usr/local/cuda/compat/libcuda.so.{newer}
ln -s libcuda.so.{newer} usr/local/cuda/compat/libcuda.so.1
build - app:compat
mkdir -p opt/own
cp {library} opt/own/libcuda.so.1
build -c 'ENV LD_LIBRARY_PATH=/none:/opt/own' - app:own
printf '%s\\n' '#!/bin/sh' 'kill -STOP $$' >sbin/ldconfig.real
chmod 755 sbin/ldconfig.real
build - app:stuck
rm -r /var/tmp/i
"""


@dataclass(frozen=True)
class Node:
    """A machine whose Docker has the images, whose toolkit uses the CDI spec, and whose driver seems to be loaded."""

    machine: Host
    driver: str

    def trace(self, *images: str, code: int = 3, **spec: Any) -> tuple[list[dict[str, Any]], Result]:
        """The traces of these images, in this order, and the run. Nothing of it stays, and the config is untouched."""
        before = (self.machine.root / CONFIG).stat()
        words = [word for image in images for word in ("--trace", image)]
        done = self.machine.call("compat", *words, "--image-cuda", "12.4", code=code, **spec)
        found = {each["image"]: each["trace"] for each in done.host()["images"]}
        assert not self.left()
        after = (self.machine.root / CONFIG).stat()
        assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
        return [found[image] for image in images], done

    def left(self) -> str:
        files = "ls -d /run/gpuready-* /tmp/gpuready-* 2>/dev/null"
        return self.machine.run(f"docker ps -aq; docker volume ls -q; pgrep -ax docker; {files}", check=False).stdout

    def gone(self) -> None:
        try:
            until(lambda: not self.left(), 60)
        finally:
            print(self.left())


@pytest.fixture(scope="module", params=["debian13", "debian12"])
def node(request: pytest.FixtureRequest, shared: Hosts, lab: Lab) -> Node:
    machine = shared(request.param)
    machine.apply(toolkit={"mode": "cdi"})
    machine.put_libraries()
    has = version(lab.driver_libraries(machine.distro))
    script = IMAGES.format(library=f"{LIBRARIES}/libcuda.so.{has}", newer=NEWER)
    machine.run("bash -s", stdin=script)
    machine.run("mkdir -p /etc/cdi; cat >/etc/cdi/nvidia.yaml", stdin=CDI.format(libraries=LIBRARIES, version=has))
    module.load(machine, has)
    return Node(machine.with_spec(hardware={"gpus": 1}), has)


def test_each_source_is_named_with_its_proof(node: Node) -> None:
    (plain, entry, compat, own), done = node.trace("app:plain", "app:entry", "app:compat", "app:own")
    path = f"{LIBRARIES}/libcuda.so.{node.driver}"
    assert (plain["source"], plain["version"], plain["file"]) == ("host", node.driver, path), done.explain()
    assert plain["mode"] == "cdi" and "cuInit should return 0" in plain["differs"]
    proof = "\n".join(plain["proof"])
    assert "runtime log: Using requested mode 'cdi'" in proof
    assert f"hook: /usr/bin/nvidia-cdi-hook update-ldcache --folder {LIBRARIES}" in proof
    assert f"is mounted at {path}" in proof and f"loader: /etc/ld.so.cache: {LIBRARIES}/libcuda.so.1" in proof
    assert entry["source"] == "host"
    assert (compat["source"], compat["version"]) == ("compat", NEWER), done.explain()
    assert "the hook enable-cuda-compat put /usr/local/cuda/compat first" in compat["why"]
    assert (own["source"], own["path"], own["version"]) == ("own", "/opt/own/libcuda.so.1", ""), done.explain()
    assert "LD_LIBRARY_PATH has /opt/own" in own["why"]
    assert "but the container gets a copy in the image" in own["differs"]


def test_what_cannot_be_traced_is_unknown_with_the_reason(node: Node) -> None:
    (busybox, missing), _ = node.trace("busybox:lab", "none:1")
    assert "it has no glibc" in busybox["unknown"]
    assert missing["unknown"].endswith("Docker on this node does not have the image none:1, and it is not pulled")
    spec = node.machine.root / "etc/cdi/nvidia.yaml"
    text = spec.read_text()
    spec.unlink()
    (failed,), _ = node.trace("app:plain")
    spec.write_text(text)
    assert failed["unknown"].startswith("no container ran: ") and "nvidia.com/gpu=all" in failed["unknown"]


#: A docker beside which nvidia-container-cli writes its log, about this container and an older one.
_LOGGING = """#!/bin/sh
case "$*" in *State.Pid*) ;; *) exec /usr/bin/docker "$@" ;; esac
pid=$(/usr/bin/docker "$@")
for by in "900001 1" "900002 $pid"; do
  echo "I0629 12:10:31.021014 ${by% *} nvc_container.c:236] selecting /m/compat/libcuda.so.${by%% *}.1"
  echo "I0629 12:10:31.021292 ${by% *} nvc_container.c:408] setting pid to ${by#* }"
done >>/var/log/nct.log
echo "$pid"
"""


def test_the_debug_log_is_read_where_it_is_on(node: Node) -> None:
    config = node.machine.root / CONFIG
    text, log = config.read_text(), node.machine.root / "var/log/nct.log"
    config.write_text(merge(text, {("nvidia-container-cli", "debug"): "/var/log/nct.log"}))
    old = "I0629 12:10:30.0 900002 nvc_container.c:236] selecting /m/compat/libcuda.so.1.1\n"
    log.write_text(old)
    wrapper = node.machine.script("/usr/local/bin/docker", _LOGGING)
    (plain,), done = node.trace("app:plain")
    wrapper.unlink()
    config.write_text(text)
    lines = [line for line in plain["proof"] if line.startswith("nvidia-container-cli: ")]
    assert lines == ["nvidia-container-cli: selecting /m/compat/libcuda.so.900002.1"], done.explain()
    assert log.read_text().startswith(old)


def test_a_stopped_docker_is_not_started(node: Node) -> None:
    node.machine.run("systemctl stop docker.service")  # its socket would start it
    done = node.machine.call("compat", "--trace", "app:plain", code=3)
    state = node.machine.run("systemctl is-active docker.service || true; systemctl start docker.service").stdout
    assert "Docker does not run on this node" in done.host()["images"][0]["trace"]["unknown"]
    assert state.strip() == "inactive"


#: A docker that waits where the container is looked at.
_SLOW = """#!/bin/sh
case "$*" in *State.Pid*) : >/var/tmp/looking; sleep 600 ;; esac
exec /usr/bin/docker "$@"
"""


@pytest.mark.fault("trace-cut")
@pytest.mark.parametrize("how", ["cut", "interrupt", "kill"])
def test_no_ending_leaves_anything(node: Node, how: str) -> None:
    ends: dict[str, Callable[[subprocess.Popen[str]], object]] = {
        "cut": lambda process: node.machine.run("pkill -KILL -f '^sshd[^ ]*: gpu'"),
        "interrupt": lambda process: process.send_signal(signal.SIGINT),
        "kill": lambda process: process.kill(),
    }
    wrapper = node.machine.script("/usr/local/bin/docker", _SLOW)
    config = (node.machine.root / CONFIG).read_bytes()
    process = node.machine.begin("compat", "--trace", "app:plain")
    until((node.machine.root / "var/tmp/looking").exists, 60)
    assert node.machine.run("docker ps --format '{{.Names}}'").stdout.startswith("gpuready-trace-")
    ends[how](process)
    wrapper.unlink()
    process.communicate()
    node.gone()
    assert (node.machine.root / CONFIG).read_bytes() == config
    node.machine.run("rm /var/tmp/looking")


def begin(node: Node, image: str) -> None:
    """Run the script for an image as a unit, without a controller."""
    script = resources.script(
        "compat/trace", images=[image], ask=ASK[False], limits=DOCKER_LIMITS, debug="",
        cuinit=cuinit("x86_64"),
    )  # fmt: skip
    node.machine.run("cat >/root/trace.sh", stdin=f"NONCE=\n{script}")
    node.machine.run("systemd-run -q --collect --unit=trace sh /root/trace.sh")


#: A docker whose first removal ends by the signal, too: systemd sends it until it finds no new process in the unit.
_SIGNALLED = """#!/bin/sh
[ "$1" = rm ] && mkdir /var/tmp/signalled && exit 1
exec /usr/bin/docker "$@"
"""


@pytest.mark.fault("trace-cut")
def test_a_container_that_does_not_end_is_removed(node: Node) -> None:
    wrapper = node.machine.script("/usr/local/bin/docker", _SIGNALLED)
    begin(node, "app:stuck")
    until(lambda: node.machine.run("docker ps -q").stdout, 60)
    node.machine.run("systemctl kill --signal=TERM trace")
    node.gone()
    wrapper.unlink()
    node.machine.run("rmdir /var/tmp/signalled")


@pytest.mark.fault("trace-cut")
def test_the_container_ends_if_all_else_is_killed(node: Node) -> None:
    wrapper = node.machine.script("/usr/local/bin/docker", _SLOW)
    begin(node, "app:plain")
    until((node.machine.root / "var/tmp/looking").exists, 60)
    node.machine.run("systemctl kill --signal=KILL trace")
    wrapper.unlink()
    until(lambda: not node.machine.run("docker ps -aq; docker volume ls -q").stdout, 60)
    node.machine.run("rm -r /run/gpuready-trace.* /var/tmp/looking")  # nobody is left to remove the directory
