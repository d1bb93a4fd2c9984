"""A node of the GPU Operator, and a cloud image: what is theirs is said, and not touched."""

import json

import pytest

from gpuready.components.docker.component import CONFIG
from gpuready.components.toolkit.state import OPERATOR_TOOLKIT
from tests.lab import packages
from tests.lab.host import sh
from tests.system.faults import footprint
from tests.system.host import Host, Hosts

RUNTIMES = {"runtimes": {"nvidia": {"args": [], "path": f"{OPERATOR_TOOLKIT}/nvidia-container-runtime"}}}


@pytest.fixture(scope="module")
def node(shared: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The marks that the operator's operands leave: the toolkit's real commands in their place, Docker configured."""
    machine, unpacked = shared(), tmp_path_factory.mktemp("toolkit")
    (package,) = packages.build("1.20.1").glob("nvidia-container-toolkit-base_*.deb")
    sh("dpkg-deb", "-x", package, unpacked)
    machine.put(unpacked / "usr/bin", OPERATOR_TOOLKIT)
    machine.run("mkdir -p /run/nvidia/validations /run/nvidia/driver/usr; touch /run/nvidia/validations/driver-ready")
    machine.run(f"cat >{CONFIG}; systemctl restart docker", stdin=json.dumps(RUNTIMES))
    return machine


def test_what_the_operator_owns_stays_as_it_is(node: Host) -> None:
    before = footprint(node)
    node.settled()
    result = node.verify("--passive")
    for name in ("repository", "toolkit", "docker"):
        assert "the GPU Operator owns" in result.component(name)["reason"], result.explain()
    assert result.checks("pass") >= {"toolkit.version", "toolkit.floor", "docker.runtime"}, result.explain()
    assert footprint(node) == before
    told = node.shown("plan")
    assert told.count("the GPU Operator owns the toolkit and the engines' configuration here") == 1


def test_the_word_host_takes_it_over_and_says_so(node: Host) -> None:
    result = node.plan(owners={"toolkit": "host", "runtime": "host"}, code=None)
    assert set(result.diff("toolkit")) and set(result.diff("docker")), result.explain()
    assert any(note.startswith("owners.toolkit: host:") for note in result.host()["notes"]), result.explain()


def test_an_image_with_a_toolkit_of_its_own(node: Host) -> None:
    """Once the operator has gone: the host takes over, until it turns out to be a Deep Learning AMI."""
    node.run(f"rm -rf /run/nvidia {OPERATOR_TOOLKIT} {CONFIG}; systemctl restart docker")
    node.apply()
    node.run("mkdir -p /opt/aws/dlami; apt-mark unhold nvidia-container-toolkit")
    before = footprint(node)
    wanted = node.with_spec(toolkit={"version": "1.19.1"}, owners={"driver": "host"})
    result = wanted.apply()
    assert result.host()["outcome"] == "ok", result.explain()
    assert "the AWS Deep Learning AMI owns the toolkit here" in result.component("toolkit")["reason"]
    assert result.component("docker")["applies"]
    assert footprint(node) == before
