"""The toolkit's version: up, down, refused, missing, held, half-configured, and not under a container that uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.state.toolkit_packages import PACKAGES
from tests.lab import Lab, Machine, packages
from tests.lab.host import architecture
from tests.system.harness import Gpuready, Inventories, Result, listing

ALL = " ".join(PACKAGES)


@pytest.fixture(scope="module")
def begun(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[tuple[Machine, Result]]:
    """A machine on which somebody had installed 1.19.1 by hand, and what the first apply made of it."""
    with lab.machine() as machine:
        for package in packages.build("1.19.1").glob("*.deb"):
            machine.put(package, f"/srv/{package.name}")
        machine.run("dpkg -i /srv/*.deb && rm -r /srv/*.deb")
        yield machine, apply(gpuready, inventory(machine))


@pytest.fixture
def node(begun: tuple[Machine, Result]) -> Machine:
    """The same machine for all tests: each leaves it at 1.20.0, the last one excepted."""
    assert installed(begun[0]) == held_at("1.20.0"), "the test before did not leave it as it should"
    return begun[0]


def installed(machine: Machine) -> set[str]:
    """``name version status`` of the toolkit's packages."""
    form = "${Package} ${Version} ${db:Status-Abbrev}\\n"
    rows = machine.run(f"dpkg-query -W -f '{form}' {ALL}", check=False).stdout.splitlines()
    return {" ".join(row.split()) for row in rows}


def held_at(version: str) -> set[str]:
    """What all four are when they are installed at a version and held."""
    return {f"{name} {version}-1 hi" for name in PACKAGES}


def apply(gpuready: Gpuready, inventory: Path, code: int = 0) -> Result:
    result = gpuready("apply", "--yes", inventory=inventory)
    assert result.code == code, result.explain()
    return result


def test_another_version_installed_by_hand_is_brought_to_the_pin(begun: tuple[Machine, Result]) -> None:
    node, result = begun
    assert result.diff("toolkit")["toolkit.nvidia-container-toolkit"] == ("1.19.1-1", "1.20.0-1")
    assert result.changed() == {"repository", "toolkit", "docker"}
    assert installed(node) == held_at("1.20.0")


def test_down_and_up_again(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    for version in ("1.19.1", "1.20.0"):
        where = inventory(node, toolkit={"version": version})
        result = apply(gpuready, where)
        assert result.changed() == {"toolkit"}
        assert installed(node) == held_at(version)
        assert f"version {version}\n" in node.run("nvidia-ctk --version").stdout
        assert gpuready("plan", "--detailed-exitcode", inventory=where).code == 0


def test_a_version_below_the_floor_needs_a_reason(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    old = inventory(node, toolkit={"version": "1.18.2"})
    refused = gpuready("apply", "--yes", inventory=old)
    assert refused.code == 5
    line = next(n for n, row in enumerate(old.read_text().splitlines(), 1) if "version: 1.18.2" in row)
    message = refused.document["error"]["message"]
    assert message.startswith(f"{old}:{line}: ") and "floor_exception" in message, message
    assert refused.document["hosts"] == {}

    reason = {"reason": "the image needs it", "until": "2199-12-31"}
    excused = inventory(node, toolkit={"version": "1.18.2", "floor_exception": reason})
    result = apply(gpuready, excused)
    assert installed(node) == held_at("1.18.2")
    assert "toolkit.floor" in result.checks("warn")
    apply(gpuready, inventory(node))


def test_a_version_that_the_repository_lacks_changes_nothing(
    node: Machine, gpuready: Gpuready, inventory: Inventories
) -> None:
    before = installed(node)
    result = apply(gpuready, inventory(node, toolkit={"version": "1.99.0"}), code=1)
    message = result.host()["error"]["message"]
    assert all(version in message for version in ("1.99.0", *packages.VERSIONS)), message
    assert "toolkit" not in result.changed()
    assert installed(node) == before


def test_a_lost_hold_is_set_again_and_that_is_all(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    where = inventory(node)
    node.run("apt-mark unhold nvidia-container-toolkit libnvidia-container1")
    assert gpuready("verify", inventory=where).code == 3
    files = {row for row in listing(node) if row.startswith("/usr/")}
    result = apply(gpuready, where)
    assert set(result.diff("toolkit")) == {
        "toolkit.nvidia-container-toolkit.held",
        "toolkit.libnvidia-container1.held",
    }
    assert result.component("toolkit")["disruption"] == "none"
    assert installed(node) == held_at("1.20.0")
    assert files == {row for row in listing(node) if row.startswith("/usr/")}


@pytest.mark.fault("half-configured-package")
def test_a_half_configured_package_is_mended(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    deb = f"nvidia-container-toolkit-base_1.20.0-1_{architecture()}.deb"
    node.put(packages.build("1.20.0") / deb, f"/srv/{deb}")
    node.run(f"dpkg --unpack /srv/{deb}; rm /srv/{deb}; dpkg --audit | grep -q .")
    result = apply(gpuready, inventory(node))
    assert "not configured" in result.diff("toolkit")["toolkit.nvidia-container-toolkit-base"][0]
    assert installed(node) == held_at("1.20.0")
    assert node.run("dpkg --audit").stdout == ""


def test_without_hold_nothing_is_held(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    where = inventory(node, toolkit={"hold": False})
    apply(gpuready, where)
    assert node.run("apt-mark showhold").stdout == ""
    assert gpuready("plan", "--detailed-exitcode", inventory=where).code == 0
    apply(gpuready, inventory(node))


def test_a_container_under_the_runtime_is_not_disturbed(
    node: Machine, gpuready: Gpuready, inventory: Inventories
) -> None:
    node.run(
        "docker run -d --name training --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=void --network=none "
        "busybox:lab sleep 100000"
    )
    older = inventory(node, toolkit={"version": "1.19.1"})
    planned = gpuready("plan", "--detailed-exitcode", inventory=older)
    assert planned.code == 2
    assert planned.component("toolkit")["disruption"] == "recreate"
    assert planned.component("toolkit")["hits"] == ["training (busybox:lab)"]
    result = apply(gpuready, older, code=7)
    assert result.host()["outcome"] == "pending"
    assert "training" in result.component("toolkit")["waits"]
    assert installed(node) == held_at("1.20.0")
    node.run("docker rm -f training")
    apply(gpuready, older)
    assert installed(node) == held_at("1.19.1")
