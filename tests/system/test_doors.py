"""The plain doors: pyinfra's own command line with our deploys does the same work, as cheaply."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import DISTROS, scale
from tests.lab.fixtures import MachineFactory
from tests.system.harness import PYINFRA, ROOT, Gpuready, Inventories, Sessions, await_processes, listing, processes

Door = Callable[[Path, str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def door(tmp_path: Path) -> Door:
    """``door(inventory, "converge")``: pyinfra runs that deploy over the hosts of our inventory."""

    def run(inventory: Path, deploy: str) -> subprocess.CompletedProcess[str]:
        hosts = tmp_path / "inv.py"
        hosts.write_text(
            f"from gpuready.operations.door import hosts as load_hosts\n\nhosts = load_hosts({str(inventory)!r})\n"
        )
        words = [PYINFRA, "-y", str(hosts), str(ROOT / "deploys" / f"{deploy}.py")]
        return subprocess.run(
            words, capture_output=True, text=True, cwd=tmp_path, timeout=scale.seconds(240), check=False
        )

    return run


@pytest.mark.promise
@pytest.mark.parametrize("distro", DISTROS)
def test_the_plain_doors_converge_and_verify(
    distro: str, machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, door: Door
) -> None:
    node = machine(distro)
    where = inventory(node)
    bad = door(where, "verify")
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "toolkit.config" in bad.stdout + bad.stderr
    first = door(where, "converge")
    assert first.returncode == 0, first.stdout + first.stderr
    assert '"nvidia"' in node.run("docker info -f '{{json .Runtimes}}'").stdout

    count, before, running = Sessions(node), listing(node), processes(node)
    second = door(where, "converge")
    assert second.returncode == 0, second.stdout + second.stderr
    assert count.count() == 1
    await_processes(node, running)
    assert before ^ listing(node) == frozenset()

    # Both doors mean the same by "converged".
    assert gpuready("plan", "--detailed-exitcode", inventory=where).code == 0
    good = door(where, "verify")
    assert good.returncode == 0, good.stdout + good.stderr
    assert count.count() == 1 + 2

    node.run('echo \'{"runtimes": {"other": {"path": "runc"}}}\' >/etc/docker/daemon.json; systemctl reload docker')
    removed = door(where, "verify")
    assert removed.returncode == 1
    assert "docker.runtime:" in removed.stdout + removed.stderr


def test_a_component_that_fails_fails_the_door(machine: MachineFactory, inventory: Inventories, door: Door) -> None:
    node = machine()
    node.run("printf '{broken' >/etc/docker/daemon.json")
    result = door(inventory(node, toolkit={"version": "1.99.0"}), "converge")
    assert result.returncode == 1, result.stdout + result.stderr
    told = result.stdout + result.stderr
    assert "1.99.0" in told and "Traceback" not in told, told
    assert node.run("cat /etc/docker/daemon.json").stdout == "{broken"
