"""What a test machine needs for pods: a client of the CRI, images, a containerd 2 of Debian's next release; and podman.

Pods run in the node's network, so no CNI plugin is needed. The pause image is the lab's own, under whatever name the
machine's containerd wants to have it: nothing is pulled.
"""

import shutil
import tempfile
from pathlib import Path

from gpuready.components.containerd.state import effective
from tests.lab import cache, deb, golang, host
from tests.lab.image import DOCKER_IMAGE, SUITES
from tests.lab.machine import Machine

PAUSE = "lab/pause:1"
_SOURCE = Path(__file__).parent / "crictl"
#: podman, and what it takes beyond a machine's own packages, by distribution.
_PODMAN = {
    distro: ("podman", "conmon", "golang-github-containers-common", "golang-github-containers-image", "netavark", *more)
    for distro, more in {
        "debian12": ("libassuan0", "libglib2.0-0", "libgpg-error0", "libgpgme11", "libsubid4"),
        "debian13": ("libassuan9", "libatomic1", "libglib2.0-0t64", "libgpg-error0", "libgpgme11t64", "libsubid5"),
    }.items()
}
_STORAGE = """
[storage]
driver = "overlay"
runroot = "/run/containers/storage"
graphroot = "/var/lib/docker/podman"
"""
# Made by the machine's own Docker; containerd's images for pods lie in the namespace k8s.io.
_IMAGES = f"""
docker create --name gpuready-lab-pause {DOCKER_IMAGE} >/dev/null
docker export gpuready-lab-pause | docker import --change 'ENTRYPOINT ["/bin/sleep", "1000000"]' - {PAUSE} >/dev/null
docker rm gpuready-lab-pause >/dev/null
docker save {PAUSE} {DOCKER_IMAGE} | ctr -n k8s.io images import - >/dev/null
"""

# Of each pod's first container runc is asked for a share of the CPU and a lower oom_score_adj. Where the lab's host can
# give neither to a machine (no cpu controller below it, no CAP_SYS_RESOURCE), runc is asked without the two.
_RUNC = r"""
if ! grep -qw cpu /sys/fs/cgroup/cgroup.controllers || ! sh -c 'echo -998 >/proc/self/oom_score_adj' 2>/dev/null; then
cat >/usr/local/sbin/runc <<X
#!/bin/sh
for word; do
  [ "\$before" = --bundle ] &&
    sed -i 's/"shares":[0-9]*//; s/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "\$word/config.json"
  before=\$word
done
exec $(command -v runc) "\$@"
X
chmod 755 /usr/local/sbin/runc
fi
"""


def crictl() -> Path:
    """The client: crictl's words for what the tests and the tool ask, built from tests/lab/crictl."""
    recipe = {path.name: path.read_text("utf-8") for path in sorted(_SOURCE.iterdir())}

    def build(into: Path) -> None:
        go = golang.go()
        own = {"CGO_ENABLED": "0", "GOFLAGS": "-trimpath -mod=readonly", "PATH": f"{go.parent}:/usr/bin:/bin"}
        host.sh(go, "build", "-ldflags", "-s -w", "-o", into / "crictl", ".", env=own, cwd=_SOURCE)

    return cache.cached("crictl", recipe | {"architecture": host.architecture()}, build) / "crictl"


def containerd2() -> Path:
    """A directory with the commands of a containerd 2, as Debian's development release has them."""

    def build(into: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="gpuready-lab-apt-") as scratch:
            deb.unpack("sid", ("containerd",), Path(scratch))
            shutil.copytree(Path(scratch, "files/usr/bin"), into / "bin")

    return cache.cached("containerd2", {"suite": "sid", "architecture": host.architecture()}, build) / "bin"


def podman(distro: str = "debian13") -> Path:
    """A directory to lay over a machine's root: podman, what of its libraries no machine has, its settings."""
    packages = _PODMAN[distro]
    recipe = {"packages": packages, "storage": _STORAGE, "architecture": host.architecture()}

    def build(into: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="gpuready-lab-apt-") as scratch:
            deb.unpack(SUITES[distro], packages, Path(scratch))
            for part in ("usr/bin", "usr/lib", "usr/share/containers", "etc/containers"):
                apart = shutil.ignore_patterns("systemd", "tmpfiles.d")
                shutil.copytree(Path(scratch, "files", part), into / "root" / part, symlinks=True, ignore=apart)
            # An overlay does not stack on a machine's disk, so the images lie where Docker's do.
            (into / "root/etc/containers/storage.conf").write_text(_STORAGE, "utf-8")

    return cache.cached("podman", recipe, build) / "root"


def prepare(machine: Machine, containerd: Path | None = None) -> None:
    """Give a running machine the client and the images, and another containerd in the place of its own."""
    machine.put(crictl(), "/usr/local/bin/crictl")
    if containerd is not None:
        machine.run("systemctl stop docker.socket docker.service containerd.service")
        machine.put(containerd, "/usr/bin")
        machine.run("systemctl start containerd.service docker.service")
    machine.run(f"set -e\n{_RUNC}{_IMAGES}")
    wanted = effective(machine.run("containerd config dump").stdout).sandbox_image
    machine.run(f"ctr -n k8s.io images tag --force docker.io/{PAUSE} {wanted} >/dev/null")
