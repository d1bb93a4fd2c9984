"""The toolkit's version: up, down, refused, held, half-configured."""

import pytest

from gpuready.components.toolkit.state import PACKAGES
from tests.lab import Machine, packages
from tests.lab.host import architecture
from tests.system.harness import Result, listing
from tests.system.host import Host, Hosts

ALL = " ".join(PACKAGES)


@pytest.fixture(scope="module")
def begun(shared: Hosts) -> tuple[Host, Result]:
    """A machine on which somebody had installed 1.19.1 by hand, and what the first apply made of it."""
    machine = shared()
    for package in packages.build("1.19.1").glob("*.deb"):
        machine.put(package, f"/srv/{package.name}")
    machine.run("dpkg -i /srv/*.deb && rm -r /srv/*.deb")
    return machine, machine.apply()


@pytest.fixture
def node(begun: tuple[Host, Result]) -> Host:
    """The same machine for all tests: each leaves it at 1.20.1."""
    assert installed(begun[0]) == held_at("1.20.1"), "the test before did not leave it as it should"
    return begun[0]


def installed(machine: Machine) -> set[str]:
    """``name version status`` of the toolkit's packages."""
    form = "${Package} ${Version} ${db:Status-Abbrev}\\n"
    rows = machine.run(f"dpkg-query -W -f '{form}' {ALL}", check=False).stdout.splitlines()
    return {" ".join(row.split()) for row in rows}


def held_at(version: str) -> set[str]:
    """What all four are when they are installed at a version and held."""
    return {f"{name} {version}-1 hi" for name in PACKAGES}


def test_another_version_installed_by_hand_is_brought_to_the_pin(begun: tuple[Host, Result]) -> None:
    node, result = begun
    assert result.diff("toolkit")["toolkit.nvidia-container-toolkit"] == ("1.19.1-1", "1.20.1-1")
    assert result.changed() == {"repository", "toolkit", "docker"}
    assert installed(node) == held_at("1.20.1")


def test_down_and_up_again(node: Host) -> None:
    for version in ("1.19.1", "1.20.1"):
        wanted = node.with_spec(toolkit={"version": version})
        result = wanted.apply()
        assert result.changed() == {"toolkit"}
        assert installed(node) == held_at(version)
        assert f"version {version}\n" in node.run("nvidia-ctk --version").stdout
        wanted.plan("--detailed-exitcode")


def test_a_version_below_the_floor_needs_a_reason(node: Host) -> None:
    assert "floor_exception" in node.apply(toolkit={"version": "1.18.2"}, code=5).document["error"]["message"]
    reason = {"reason": "the image needs it", "until": "2199-12-31"}
    result = node.apply(toolkit={"version": "1.18.2", "floor_exception": reason})
    assert installed(node) == held_at("1.18.2")
    assert "toolkit.floor" in result.checks("warn")
    node.apply()


def test_a_lost_hold_is_set_again_and_that_is_all(node: Host) -> None:
    node.run("apt-mark unhold nvidia-container-toolkit libnvidia-container1")
    node.verify(code=3)
    files = {row for row in listing(node) if row.startswith("/usr/")}
    result = node.apply()
    assert set(result.diff("toolkit")) == {
        "toolkit.nvidia-container-toolkit.held",
        "toolkit.libnvidia-container1.held",
    }
    assert result.component("toolkit")["disruption"] == "none"
    assert installed(node) == held_at("1.20.1")
    assert files == {row for row in listing(node) if row.startswith("/usr/")}


@pytest.mark.fault("half-configured-package")
def test_a_half_configured_package_is_mended(node: Host) -> None:
    deb = f"nvidia-container-toolkit-base_1.20.1-1_{architecture()}.deb"
    node.put(packages.build("1.20.1") / deb, f"/srv/{deb}")
    node.run(f"dpkg --unpack /srv/{deb}; rm /srv/{deb}; dpkg --audit | grep -q .")
    result = node.apply()
    assert "not configured" in result.diff("toolkit")["toolkit.nvidia-container-toolkit-base"][0]
    assert installed(node) == held_at("1.20.1")
    assert node.run("dpkg --audit").stdout == ""


def test_without_hold_nothing_is_held(node: Host) -> None:
    wanted = node.with_spec(toolkit={"hold": False})
    wanted.apply()
    assert node.run("apt-mark showhold").stdout == ""
    wanted.plan("--detailed-exitcode")
    node.apply()
