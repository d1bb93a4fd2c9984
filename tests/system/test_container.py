"""The image that Containerfile makes: built on a test machine, and run there as a user other than root.

Nothing comes from a registry or a package index: the base is a small Debian with Python, the wheels lie in a folder.
"""

import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from gpuready import __version__
from tests import release
from tests.lab import cache, cri, host, image
from tests.pages import ROOT
from tests.system.host import Hosts

pytestmark = pytest.mark.lab
_DISTRO, _PYTHON = "debian13", "3.13"
_PACKAGES = "ca-certificates,openssh-client,python3-venv"
_PIP = "[global]\nno-index = true\nfind-links = /wheels\ndisable-pip-version-check = true\n"
#: What a build needs in a machine that is a container, and for pip without an index.
_OPTIONS = "--isolation chroot --network host -v /root/wheels:/wheels:ro -v /root/pip.conf:/etc/pip.conf:ro"
_LIMITS = "--ulimit nofile=$(ulimit -Hn) --ulimit nproc=$(ulimit -Hu)"
_RUN = "podman --cgroup-manager cgroupfs run --rm --network host --pids-limit 0"


def base() -> Path:
    """A Debian with Python and OpenSSH, as an archive for podman."""
    sources = image.archive_lines(_DISTRO)
    recipe = {"packages": _PACKAGES, "sources": sources, "architecture": host.architecture()}

    def build(into: Path) -> None:
        options = ("--quiet", "--mode=root", "--variant=minbase", f"--include={_PACKAGES}")
        words = [*options, image.SUITES[_DISTRO], str(into / "base.tar"), *(["-"] if sources else [])]
        host.sh("unshare", "--mount", "mmdebstrap", *words, stdin=sources)

    return cache.cached("container-base", recipe, build) / "base.tar"


def wheels() -> Path:
    """A folder with the wheels that gpuready needs, for the Python of the base."""
    lock = ROOT / "requirements.txt"
    recipe = {"lock": lock.read_text("utf-8"), "python": _PYTHON, "architecture": host.architecture()}

    def build(into: Path) -> None:
        words = ("--only-binary", ":all:", "--no-deps", "--require-hashes", "--python-version", _PYTHON)
        host.sh(sys.executable, "-m", "pip", "download", "--quiet", *words, "-d", into / "wheels", "-r", lock)

    return cache.cached("container-wheels", recipe, build) / "wheels"


def test_it_plans_a_node_over_ssh_as_another_user_than_root(fresh: Hosts, tmp_path: Path) -> None:
    node = fresh(_DISTRO)
    node.put(cri.podman(_DISTRO), "/")
    node.put(base(), "/root/base.tar")
    node.put(wheels(), "/root/wheels")
    release.packages(ROOT, tmp_path)
    (tmp_path / "pip.conf").write_text(_PIP)
    node.put(tmp_path / "pip.conf", "/root/pip.conf")
    node.put(ROOT / "Containerfile", "/root/build/Containerfile")
    node.put(next(tmp_path.glob("*.whl")), f"/root/build/dist/gpuready-{__version__}-py3-none-any.whl")
    node.sh("podman import -q /root/base.tar localhost/base")
    limits = node.run(f"bash -c 'echo {_LIMITS}'").stdout
    options = (*_OPTIONS.split(), *limits.split())
    build = release.build(Path("Containerfile"), Path("dist"), 1_700_000_000, "localhost/base", *options)
    node.run("sh -e", stdin=f"cd /root/build\n{shlex.join(build)}", timeout=1200)
    found = node.run(
        f"{_RUN} --entrypoint sh {release.IMAGE} -c 'id; gpuready --version; command -v ssh-keygen'"
    ).stdout
    user, version, _ = found.splitlines()
    assert user.startswith("uid=1000(gpuready) gid=0(root)")
    assert version.startswith(f"gpuready {__version__}, pyinfra ")

    inventory = yaml.safe_load(node.where().read_text("utf-8"))
    key = Path(inventory["all"]["vars"]["ansible_ssh_private_key_file"])
    inventory["all"]["vars"]["ansible_ssh_private_key_file"] = "key"
    shutil.copy(key, tmp_path / "key")
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(inventory))
    for name in ("key", "hosts.yaml"):
        node.put(tmp_path / name, f"/root/work/{name}")
    node.sh("chown -R 1000 /root/work; chmod 600 /root/work/key")
    run = f"{_RUN} -v /root/work:/work {release.IMAGE}"
    plan = node.run(f"{run} plan --host-keys accept-new --detailed-exitcode", check=False)
    assert plan.returncode == 2 and "would change" in plan.stdout, plan.stdout + plan.stderr
