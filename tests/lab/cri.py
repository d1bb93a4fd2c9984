"""What a test machine needs for pods: a client of the CRI, images, a newer containerd, CRI-O; and podman.

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
CRIO_IMAGE = f"docker.io/library/{DOCKER_IMAGE}"
_CRIO = "github.com/cri-o/cri-o@v1.34.0"
# Without libraries that only build machines have.
_CRIO_TAGS = "containers_image_openpgp containers_image_ostree_stub exclude_graphdriver_btrfs btrfs_noversion"
# As CRI-O's packages set the runtimes; the image stands in for the pause image.
_CRIO_CONF = f"""# how images are checked
[crio.image]
signature_policy = "/etc/crio/policy.json"
pause_image = "{CRIO_IMAGE}"
pause_command = "/bin/sleep 1000000"

[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
container_min_memory = "20MiB"
allowed_annotations = ["io.containers.trace-syscall"]

[crio.runtime.runtimes.runc]
runtime_path = "/usr/libexec/crio/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/libexec/crio/conmon"
"""
_CRUN = ("crun", "libyajl2")
#: podman, and what it takes beyond a machine's own packages, by distribution.
_PODMAN = {
    distro: (
        "podman",
        "conmon",
        "uidmap",
        "golang-github-containers-common",
        "golang-github-containers-image",
        "netavark",
        *more,
    )
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


def program(name: str) -> Path:
    """One of the lab's own, built from its directory: ``crictl`` (its words for what is asked), or another."""
    source = Path(__file__).parent / name
    recipe = {path.name: path.read_text("utf-8") for path in sorted(source.iterdir())}

    def build(into: Path) -> None:
        go = golang.go()
        own = {"CGO_ENABLED": "0", "GOFLAGS": "-trimpath -mod=readonly", "PATH": f"{go.parent}:/usr/bin:/bin"}
        host.sh(go, "build", "-ldflags", "-s -w", "-o", into / name, ".", env=own, cwd=source)

    return cache.cached(name, recipe | {"architecture": host.architecture()}, build) / name


def containerd2() -> Path:
    """A directory with the commands of a containerd 2, as Debian's development release has them."""

    def build(into: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="gpuready-lab-apt-") as scratch:
            deb.unpack("sid", ("containerd",), Path(scratch))
            shutil.copytree(Path(scratch, "files/usr/bin"), into / "bin")

    return cache.cached("containerd2", {"suite": "sid", "architecture": host.architecture()}, build) / "bin"


def crio() -> Path:
    """A directory to lay over a Debian 13's root: CRI-O built from its module, laid out as its packages do it."""
    recipe = {
        "module": _CRIO,
        "tags": _CRIO_TAGS,
        "packages": _CRUN,
        "podman": podman().parent.name,
        "layout": 1,
        "architecture": host.architecture(),
    }

    def build(into: Path) -> None:
        root = into / "root"
        shutil.copytree(podman(), root, symlinks=True)  # image policy and storage, and what puts images there
        own = root / "usr/libexec/crio"
        own.mkdir(parents=True)
        module, scratch = golang.module(_CRIO), into / "build"
        # Not `go install MODULE@VERSION`: that asks for a list of all versions.
        own_go = {"GOFLAGS": "-trimpath -mod=readonly -buildvcs=false", "CGO_CFLAGS": "-O2 -w", "CGO_ENABLED": "1"}
        words = ("build", "-tags", _CRIO_TAGS, "-ldflags", "-s -w", "-o", root / "usr/bin/crio", "./cmd/crio")
        host.sh(golang.go(), *words, env=golang.environment() | own_go, cwd=module)
        sources = sorted((module / "pinns/src").glob("*.c"))
        host.sh("gcc", "-std=c99", "-O2", "-o", root / "usr/bin/pinns", *sources)
        deb.unpack(SUITES["debian13"], _CRUN, scratch)
        shutil.copytree(scratch / "files/usr/lib", root / "usr/lib", symlinks=True, dirs_exist_ok=True)
        shutil.move(scratch / "files/usr/bin/crun", own / "crun")
        shutil.copy2(root / "usr/bin/conmon", own / "conmon")
        (root / "usr/libexec/podman").mkdir()
        shutil.move(root / "usr/bin/conmon", root / "usr/libexec/podman/conmon")
        unit = (module / "contrib/systemd/crio.service").read_text("utf-8").replace("/usr/local/bin", "/usr/bin")
        (root / "usr/lib/systemd/system").mkdir(parents=True)
        (root / "usr/lib/systemd/system/crio.service").write_text(unit, "utf-8")
        (root / "etc/crio").mkdir()
        shutil.copyfile(root / "etc/containers/policy.json", root / "etc/crio/policy.json")
        (root / "etc/crictl.yaml").write_text((module / "crictl.yaml").read_text("utf-8"), "utf-8")
        shutil.rmtree(scratch)

    return cache.cached("crio", recipe, build) / "root"


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
    machine.put(program("crictl"), "/usr/local/bin/crictl")
    if containerd is not None:
        machine.run("systemctl stop docker.socket docker.service containerd.service")
        machine.put(containerd, "/usr/bin")
        machine.run("systemctl start containerd.service docker.service")
    machine.run(f"set -e\n{_RUNC}{_IMAGES}")
    wanted = effective(machine.run("containerd config dump").stdout).sandbox_image
    machine.run(f"ctr -n k8s.io images tag --force docker.io/{PAUSE} {wanted} >/dev/null")


def prepare_crio(machine: Machine) -> None:
    """Give a running machine of Debian 13 a CRI-O that runs, the client and the image."""
    machine.put(crio(), "/")
    machine.put(program("crictl"), "/usr/local/bin/crictl")
    machine.run("cp /usr/sbin/runc /usr/libexec/crio/; mkdir /etc/crio/crio.conf.d; systemctl daemon-reload")
    machine.run("cat >/etc/crio/crio.conf.d/10-crio.conf", stdin=_CRIO_CONF)
    machine.run(f"docker save {DOCKER_IMAGE} | podman load -q && systemctl start crio.service")
