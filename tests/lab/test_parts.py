"""The lab's parts that need no machine: what is read from a host's apt, the cache, addresses, inventories."""

import os
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from gpuready.components.toolkit.spec import Toolkit
from tests.lab import __main__ as command_line
from tests.lab import access, cache, golang, host, inventory, network, packages, scale
from tests.lab import lab as whole
from tests.lab import node as nodes
from tests.vm import conftest as vms


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list", "# deb http://no.example/x bookworm main\ndeb http://mirror.example/debian/ bookworm main\n"),
        ("sources.list", "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib\n"),
        (
            "sources.list.d/a.list",
            "deb-src http://no.example/ bookworm main\ndeb http://mirror.example/debian bookworm m",
        ),
        (
            "sources.list.d/debian.sources",
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n"
            "Enabled: no\nTypes: deb\nURIs: http://no.example/debian\nSuites: bookworm\n",
        ),
        ("sources.list.d/cloud.sources", "Types: deb\nURIs: mirror+file://{etc}/mirrors\nSuites: bookworm\n"),
    ],
)
def test_sources_of_the_host(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "mirrors").write_text("# first one wins\nhttp://mirror.example/debian\tpriority:1\nhttp://b.example/\n")
    (tmp_path / name).write_text(text.replace("{etc}", str(tmp_path)))
    found = [(uri, suite) for uri, suite in host._sources(tmp_path) if suite == "bookworm"]
    assert found == [("http://mirror.example/debian", "bookworm")]


def test_a_recipe_is_built_once_and_a_failed_build_leaves_nothing() -> None:
    builds = []

    def build(into: Path) -> None:
        builds.append(into)
        (into / "part").write_text("x")
        if len(builds) == 1:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.cached("thing", {"a": 1}, build)
    assert [path.name for path in host.cache_root().iterdir() if path.is_dir()] == []
    first = cache.cached("thing", {"a": 1}, build)
    assert cache.cached("thing", {"a": 1}, build) == first
    assert cache.cached("thing", {"a": 2}, build) != first
    assert (len(builds), (first / "part").read_text()) == (3, "x")


def test_addresses_are_pairs_of_their_own_in_the_pool() -> None:
    for index in (1, 2, 16_383, network.LAST - 1):
        assert int(IPv4Address(network.address(index))) & 3 == 2
        assert IPv4Address(network.gateway(index)) in network.POOL
        assert len(network.link(index)) <= 15
    assert network.address(1) == "198.18.0.6"
    assert network.address(network.LAST - 1) < network.SERVER


@pytest.mark.parametrize("version", packages.VERSIONS)
def test_the_environment_names_the_toolkit(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = {"url": "http://r.example/deb/$(ARCH)"}
    assert inventory.settings(repository, {})["toolkit"] == {"repo": repository}
    monkeypatch.setenv("GPUREADY_LAB_TOOLKIT", version)
    toolkit = inventory.settings(repository, {"toolkit": {"hold": False}})["toolkit"]
    assert Toolkit.model_validate(toolkit).version == version  # one below the floor, too
    monkeypatch.setenv("GPUREADY_LAB_TOOLKIT", "1.20")
    with pytest.raises(host.LabError, match=r"GPUREADY_LAB_TOOLKIT=1\.20: the lab has 1\.18\.2, "):
        inventory.settings(repository, {})


def test_overrides_are_laid_over_the_settings_key_by_key() -> None:
    merged = inventory.settings(
        {"url": "u", "key": "k"}, {"toolkit": {"version": "1", "repo": {"key": "other"}}, "ldso": []}
    )
    assert merged["toolkit"] == {"repo": {"url": "u", "key": "other"}, "version": "1"}
    assert (merged["ldso"], merged["verify"]) == ([], {"image": "busybox:lab"})


def test_a_go_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in ("1.19.8", "1.26.1"):
        script = tmp_path / f"go{number}"
        script.write_text(f"#!/bin/sh\necho go version go{number} linux/amd64\n")
        script.chmod(0o755)

    def candidates() -> Iterator[Path]:
        yield from (tmp_path / "go1.19.8", tmp_path / "go1.26.1")

    monkeypatch.setattr(golang, "_candidates", candidates)
    assert golang.go() == tmp_path / "go1.26.1"


def test_without_root_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert host.unavailable() == "test machines need root (namespaces and mounts)"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert host.unavailable() == "test machines need Linux, this is darwin"


@pytest.mark.fault("D15")
def test_a_command_that_is_not_there_is_installed_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def install(names: tuple[str, ...]) -> None:
        (tmp_path / "gpuready-served").write_text("")
        (tmp_path / "gpuready-served").chmod(0o755)
        installed.extend(names)

    installed: list[str] = []
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(host, "ensure_packages", install)
    (tmp_path / "apt-get").write_text("")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(host.LabError, match="gpuready-served is not on this machine; install served-package"):
        host.command("gpuready-served", "served-package")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for _ in range(2):  # the second time it is there
        assert host.command("gpuready-served", "served-package") == str(tmp_path / "gpuready-served")
    assert installed == ["served-package"]


def test_limits_grow_with_the_load_and_no_further_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(scale.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(scale, "factor", lambda: busy)
    busy = 1.0
    limit = scale.Limit(10)
    now[0] = 11
    assert limit.over()
    busy = 4.0  # another one has come meanwhile
    assert not limit.over()
    busy, now[0] = 1.0, 39  # and has gone, but what it held up is still late
    assert not limit.over()
    now[0] = 41
    assert limit.over()
    monkeypatch.undo()
    for load, least in ((0.0, 1.0), (1e6, scale.MOST)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert least <= scale.factor() <= scale.MOST


@pytest.fixture
def two_checkouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> whole.Lab:
    """A lab with lab1 and a leftover of this checkout, lab2 of another one, and lab3 of one that left no name."""
    for module in (whole, nodes):
        monkeypatch.setattr(module, "run_root", lambda: tmp_path)
    image = str(host.cache_root() / "image-debian13")
    for index, (name, checkout) in enumerate([("lab1", nodes.CHECKOUT), ("lab2", "/other"), ("lab3", "")], 1):
        nodes.save(nodes.Record(name, "debian13", index, image, "", 0))
        (nodes.home(name) / "checkout").write_text(checkout)
    nodes.save(nodes.Record("t1", "debian13", 4, image, "", 2**22 + 1))  # no process has such a number
    (nodes.home("lab3") / "checkout").unlink()
    monkeypatch.setattr(whole.Lab, "destroy", lambda self, gone: None)
    return whole.Lab()


def test_down_takes_this_checkouts_machines_or_those_that_are_named(two_checkouts: whole.Lab) -> None:
    assert two_checkouts.down() == two_checkouts.down(everything=True) == ["lab1", "t1"]
    assert two_checkouts.down("lab2") == ["lab2"]
    assert two_checkouts.down("lab") == ["lab1", "lab2", "lab3"]


def test_an_inventory_is_of_this_checkouts_machines_and_of_the_cache_they_came_from(
    two_checkouts: whole.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [each.name for each in command_line._listed(two_checkouts)] == ["lab1"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    with pytest.raises(host.LabError, match="lab1 was made with another cache"):
        command_line._listed(two_checkouts)
    monkeypatch.setattr(nodes, "CHECKOUT", "/third")
    with pytest.raises(host.LabError, match="this checkout has no machines"):
        command_line._listed(two_checkouts)


def test_a_failed_test_of_virtual_machines_shows_the_ends_of_their_consoles(two_checkouts: whole.Lab) -> None:
    for name, kind, owner in (("mine", "vm", os.getpid()), ("other", "vm", 1), ("container", "machine", os.getpid())):
        nodes.save(nodes.Record(name, "debian13", 5, "", "", owner, kind))
        (nodes.home(name) / "console.log").write_text("".join(f"line {number}\n" for number in range(100)))
    hook: Any = vms.pytest_runtest_makereport

    def sections(outcome: str) -> list[tuple[str, str]]:
        report, steps = pytest.TestReport("", ("", 0, ""), {}, outcome, None, "call"), hook()  # type: ignore[arg-type]
        next(steps)
        with pytest.raises(StopIteration):
            steps.send(report)
        return report.sections

    assert sections("passed") == []
    assert sections("failed") == [("Console of mine", "\n".join(f"line {number}" for number in range(60, 100)))]


def test_known_hosts_leave_out_a_machine_whose_key_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "known_hosts", lambda: tmp_path / "known_hosts")
    keys = {"whole": "ssh-ed25519 AAAA n1\n", "empty": "", "cut": "ssh-ed25519"}
    for name, text in keys.items():
        (tmp_path / name).write_text(text)
    access.write_known_hosts({f"198.18.0.{n}": tmp_path / name for n, name in enumerate([*keys, "gone"])})
    assert (tmp_path / "known_hosts").read_text() == "198.18.0.0 ssh-ed25519 AAAA\n"
