"""The main job on a machine with dnf and an RPM database: apply, apply again, another version, verify, remove.

The machines are Debian with the name of Rocky (dnf 4) or Fedora (dnf 5): dnf, rpm, systemd and Docker are real, and so
are the toolkit's RPM packages, which its own .spec packs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.components.repository.source import DnfSource
from gpuready.components.toolkit.state import PACKAGES
from gpuready.model.spec import TOOLKIT_VERSION
from tests.lab import Lab, Repository, rpm
from tests.lab.image import DNF, DNF5
from tests.lab.module import load
from tests.system import test_dcgm
from tests.system.air_gap import apply_from_bundle, move_to_mirror
from tests.system.dnf_node import LISTS, locks
from tests.system.harness import Gpuready, Inventories, Sessions
from tests.system.host import Host

_LEFT_OUT = " ".join(f"! -path {path}" for path in (*LISTS, "/etc/ld.so.cache", "'*/tx/*'"))
_PLACES = f"/etc /usr/bin /usr/lib/systemd /var/lib/gpuready ! -type d {_LEFT_OUT}"
_SAYS = {
    "packages": "rpm -qa | sort",
    "runtimes": "docker info --format '{{json .Runtimes}}'",
    "files": f"find {_PLACES} -printf '%p %y %m %l\\n' 2>/dev/null || true",
    "contents": f"find {_PLACES} -type f -print0 2>/dev/null | xargs -0 sha256sum | sort",
}


def whole(machine: Host) -> dict[str, list[str]]:
    """All that apply touches, as the machine itself tells it."""
    said = {name: sorted(machine.run(script).stdout.splitlines()) for name, script in _SAYS.items()}
    return {**said, "locks": sorted(locks(machine))}


def differences(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, set[str]]:
    """What is not the same."""
    return {name: set(before[name]) ^ set(after[name]) for name in before}


@pytest.fixture(scope="module")
def repo(lab: Lab) -> Iterator[Repository]:
    """A repository that has the RPM packages, too."""
    with lab.publish(with_rpms=True) as published:
        yield published


@pytest.fixture(scope="module", params=[DNF, DNF5])
def node(
    request: pytest.FixtureRequest, lab: Lab, repo: Repository, gpuready: Gpuready, inventory: Inventories
) -> Iterator[Host]:
    """The module's machines, one after the other."""
    with lab.machine(request.param) as machine:
        found = Host(machine, gpuready, inventory)
        found.repo = repo
        yield found


def versions(node: Host) -> set[str]:
    """The installed versions of the toolkit's packages."""
    return set(node.run(f"rpm -q --qf '%{{VERSION}}-%{{RELEASE}}\\n' {' '.join(PACKAGES)}").stdout.split())


@pytest.mark.promise
def test_a_node_with_dnf_is_converged_and_becomes_what_it_was(node: Host) -> None:
    node.run("docker run -d --restart=no --name work busybox:lab sleep 100000")
    Sessions(node)  # lets sshd log sessions from now on
    before, work = whole(node), node.pids()

    assert node.plan("--detailed-exitcode", code=2).host()["execs"] == 1
    applied = node.apply()
    assert applied.changed() == {"repository", "toolkit", "docker"}, applied.explain()
    assert versions(node) == {f"{TOOLKIT_VERSION}-1"}
    assert locks(node) == {f"{name}-0:{TOOLKIT_VERSION}-1" for name in PACKAGES}
    assert f"version {TOOLKIT_VERSION}\n" in node.run("nvidia-ctk --version").stdout
    node.run("docker run --rm --runtime=nvidia --network=none -e NVIDIA_VISIBLE_DEVICES=void busybox:lab true")

    with node.untouched(sessions=1):
        assert node.settled().changed() == set()
    verified = node.verify()
    assert verified.host()["execs"] == 2
    assert verified.checks("fail", "unknown", "warn") == set(), verified.explain()
    assert {"repository.candidate", "repository.config", "toolkit.version", "docker.smoke"} <= verified.checks("pass")
    # An upgrade by somebody else keeps the version.
    assert "Nothing to do" in node.run("dnf -y upgrade 'nvidia-container-toolkit*'").stdout

    removed = node.remove()
    assert removed.changed() >= {"docker", "toolkit", "repository"}, removed.explain()
    after = whole(node)
    assert not any(differences(before, after).values()), differences(before, after)
    assert node.pids() == work


def test_a_version_goes_down_and_up_and_its_lock_follows(node: Host) -> None:
    node.apply()
    older = {"version": "1.19.1"}
    assert node.apply(toolkit=older).changed() == {"toolkit"}
    assert versions(node) == {"1.19.1-1"}
    assert locks(node) == {f"{name}-0:1.19.1-1" for name in PACKAGES}
    assert node.apply(toolkit=older | {"hold": False}).changed() == {"toolkit"}
    assert locks(node) == set()
    node.apply()
    assert versions(node) == {f"{TOOLKIT_VERSION}-1"}


@pytest.mark.parametrize("node", [DNF5], indirect=True)
def test_damage_is_found_and_mended(node: Host) -> None:
    node.apply()
    node.run(f"sed -i s/repo_gpgcheck=1/repo_gpgcheck=0/ {DnfSource.path}; dnf versionlock delete libnvidia-container1")
    found = node.verify("--passive", code=3)
    assert found.checks("fail") == {"repository.config", "toolkit.config"}, found.explain()
    assert node.apply().changed() == {"repository", "toolkit"}
    assert "repo_gpgcheck=1" in node.run(f"cat {DnfSource.path}").stdout


@pytest.mark.parametrize("node", [DNF5], indirect=True)
def test_another_entry_for_the_repository_goes_and_comes_back(node: Host, repo: Repository) -> None:
    node.remove()
    url, ours = repo.settings()["rpm_url"], "[ours]\nname=ours\nbaseurl=file:///srv/ours\n"
    other = f"[nvidia-container-toolkit]\nname=n\nbaseurl={url}\ngpgcheck=0\n"
    file = node.root / "etc/yum.repos.d/nvidia-container-toolkit.repo"
    file.write_text(other + ours, "utf-8")
    node.apply()
    assert file.read_text("utf-8") == ours
    node.remove()
    assert file.read_text("utf-8") == other + ours
    file.unlink()


def test_another_address_is_read_before_it_is_written(node: Host, repo: Repository) -> None:
    node.apply()
    move_to_mirror(node, repo)
    node.remove()


def test_metadata_or_packages_of_another_key_are_refused(node: Host, repo: Repository, lab: Lab) -> None:
    node.remove()
    with lab.publish("other", with_rpms=True) as wrong:  # the packages have the lab's signature, the metadata not
        settings = wrong.settings() | {"key": f"{wrong.base}/gpgkey-lab", "fingerprint": repo.fingerprint}
        node.fails("the repository cannot be read", toolkit={"repo": settings})
        node.fails("toolkit", "cannot be installed", toolkit={"repo": wrong.settings()})
    assert node.run("rpm -qa 'nvidia-container*'").stdout == ""
    node.remove()


@pytest.mark.parametrize("node", [DNF5], indirect=True)
def test_a_node_without_a_route_is_converged_from_a_bundle(node: Host, repo: Repository, tmp_path: Path) -> None:
    result = apply_from_bundle(node, repo, tmp_path / "bundle")
    assert result.changed() == {"repository", "toolkit"}, result.explain()
    assert versions(node) == {f"{TOOLKIT_VERSION}-1"}


_REPO = """[others]
name=others
baseurl=file:///srv/others
enabled=1
gpgcheck=1
repo_gpgcheck=1
gpgkey=file:///srv/others/gpgkey
"""
_CORE, _PLUGINS, _CLOSED = (f"datacenter-gpu-manager-4-{name}" for name in ("core", "cuda12", "proprietary-cuda12"))
#: Stand-ins with the names and relations of the packages; Docker's has a program that starts the machine's own.
_FIELDS = {
    "rdma-core": "",
    "perftest": "Requires: rdma-core\n",
    "librdmacm-utils": "",
    "docker-ce": "Requires: containerd.io\n",
    "containerd.io": "",
    _CORE: "",
    _PLUGINS: f"Requires: {_CORE}\nRecommends: {_CLOSED}\n",
    _CLOSED: "",
}
_FILES = {
    "docker-ce": {"/usr/sbin/dockerd": '#!/bin/sh\nexec /srv/dockerd "$@"\n'},
    _CORE: test_dcgm.FILES[_CORE],
}


@pytest.fixture(scope="module")
def others(node: Host, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The machine without Docker, with a driver, and with a repository that has what the spec may ask for."""
    folder = tmp_path_factory.mktemp("others") / "repo"
    rpm.offer(folder, _FIELDS, _FILES)
    node.put(folder, "/srv/others")
    node.run("chmod -R a+rX /srv/others; docker rm -f work || true; systemctl disable -q --now docker docker.socket")
    node.run("mv /usr/sbin/dockerd /srv/dockerd")
    load(node, "550.163.01")
    node.script("/usr/local/bin/nvidia-smi", test_dcgm.SMI)
    (node.root / "etc/yum.repos.d/others.repo").write_text(_REPO, "utf-8")
    return node


@pytest.mark.parametrize("node", [DNF], indirect=True)
def test_packages_that_the_spec_asks_for_come_and_go(others: Host) -> None:
    def installed() -> set[str]:
        said = others.run(f"rpm -q --qf '%{{NAME}}\\n' {' '.join(_FIELDS)}", check=False).stdout
        return {line for line in said.splitlines() if " " not in line}

    wanted = others.with_spec(
        rdma={"packages": ["perftest", "librdmacm-utils"]},
        runtimes={"docker": {"install": "distro"}},
        dcgm={"install": True},
    )
    others.run("echo excludepkgs=docker-ce >>/etc/yum.repos.d/others.repo")
    wanted.only("engine").fails("no repository has moby-engine, docker or docker-ce; nothing was changed")
    assert installed() == set()

    others.run("sed -i '$d' /etc/yum.repos.d/others.repo")
    alone = wanted.only("rdma", "engine", "dcgm")
    assert alone.apply(code=None).changed() == {"rdma", "engine", "dcgm"}
    assert installed() == {*_FIELDS}
    again = alone.apply(code=None)
    assert (again.changed(), again.host()["execs"]) == (set(), 1), again.explain()
    assert alone.remove().changed() == {"rdma", "engine", "dcgm"}
    assert installed() == set()
