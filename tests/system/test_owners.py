"""A node of the GPU Operator, and a cloud image: what is theirs is said, and not touched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.components.docker.component import CONFIG
from gpuready.core.owners import OPERATOR_TOOLKIT
from tests.lab import Lab, Machine, packages
from tests.lab.host import sh
from tests.system.faults import footprint, settled
from tests.system.harness import Gpuready, Inventories

RUNTIMES = {"runtimes": {"nvidia": {"args": [], "path": f"{OPERATOR_TOOLKIT}/nvidia-container-runtime"}}}


@pytest.fixture(scope="module")
def node(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The marks that the operator's operands leave: the toolkit's real commands in their place, Docker configured."""
    with lab.machine() as machine:
        machine.put(commands(tmp_path_factory.mktemp("toolkit")), OPERATOR_TOOLKIT)
        machine.run(
            "mkdir -p /run/nvidia/validations /run/nvidia/driver/usr; touch /run/nvidia/validations/driver-ready"
        )
        machine.run(f"cat >{CONFIG}; systemctl restart docker", stdin=json.dumps(RUNTIMES))
        yield machine


def commands(into: Path) -> Path:
    """The commands of the toolkit, out of their package."""
    (package,) = packages.build("1.20.0").glob("nvidia-container-toolkit-base_*.deb")
    sh("dpkg-deb", "-x", package, into / "tree")
    target = into / "toolkit"
    shutil.copytree(into / "tree/usr/bin", target)
    return target


def test_what_the_operator_owns_stays_as_it_is(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    where, before = inventory(node), footprint(node)
    settled(gpuready, where)
    result = gpuready("verify", "--passive", inventory=where)
    assert result.code == 0, result.explain()
    for name in ("repository", "toolkit", "docker"):
        assert "the GPU Operator owns" in result.component(name)["reason"], result.explain()
    assert result.checks("pass") >= {"toolkit.version", "toolkit.floor", "docker.runtime"}, result.explain()
    assert footprint(node) == before
    told = gpuready("plan", inventory=where, check_json=False).stdout
    assert told.count("the GPU Operator owns the toolkit and the engines' configuration here") == 1


def test_the_word_host_takes_it_over_and_says_so(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    result = gpuready("plan", inventory=inventory(node, owners={"toolkit": "host", "runtime": "host"}))
    assert set(result.diff("toolkit")) and set(result.diff("docker")), result.explain()
    assert any(note.startswith("owners.toolkit: host:") for note in result.host()["notes"]), result.explain()


def test_an_image_with_a_toolkit_of_its_own(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    """Once the operator has gone: the host takes over, until it turns out to be a Deep Learning AMI."""
    node.run(f"rm -rf /run/nvidia {OPERATOR_TOOLKIT} {CONFIG}; systemctl restart docker")
    assert gpuready("apply", "--yes", inventory=inventory(node)).code == 0
    node.run("mkdir -p /opt/aws/dlami; apt-mark unhold nvidia-container-toolkit")
    before = footprint(node)
    where = inventory(node, toolkit={"version": "1.19.1"}, owners={"driver": "host"})
    result = gpuready("apply", "--yes", inventory=where)
    assert (result.code, result.host()["outcome"]) == (0, "ok"), result.explain()
    assert "the AWS Deep Learning AMI owns the toolkit here" in result.component("toolkit")["reason"]
    assert result.component("docker")["applies"]
    assert footprint(node) == before
