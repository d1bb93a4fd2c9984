"""The plain doors: pyinfra's own command line with our deploys does the same work, as cheaply."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.lab import DISTROS, access, scale
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


def test_own_pyinfra_code_calls_components_as_deploys(
    machine: MachineFactory, inventory: Inventories, tmp_path: Path
) -> None:
    """pyinfra's own inventory and operations, with ours between; the spec is the host's data."""
    node = machine()
    group = yaml.safe_load(inventory(node).read_text())["all"]["vars"]
    data = {
        "ssh_user": group["ansible_user"],
        "ssh_key": group["ansible_ssh_private_key_file"],
        "ssh_known_hosts_file": str(access.known_hosts()),
        "gpuready": group["gpuready"] | {"ldso": ["/opt/driver/lib"]},
    }
    (tmp_path / "inventory.py").write_text(f"nodes = [({node.address!r}, {data!r})]\n")
    (tmp_path / "deploy.py").write_text(
        "from pyinfra.operations import files\n"
        "from gpuready.pyinfra import config, docker, ldso, repository, toolkit\n\n"
        "files.directory(path='/opt/driver/lib', _sudo=True)\n"
        "ldso()\nrepository()\ntoolkit()\nconfig()\ndocker()\n"
    )

    def run(deploy: str) -> subprocess.CompletedProcess[str]:
        words = [PYINFRA, "-y", "inventory.py", deploy]
        return subprocess.run(
            words, capture_output=True, text=True, cwd=tmp_path, timeout=scale.seconds(240), check=False
        )

    first = run("deploy.py")
    assert first.returncode == 0, first.stdout + first.stderr
    assert '"nvidia"' in node.run("docker info -f '{{json .Runtimes}}'").stdout
    assert "/opt/driver/lib" in node.run("cat /etc/ld.so.conf.d/*gpuready*").stdout

    before = listing(node)
    again = run("deploy.py")
    assert again.returncode == 0 and before == listing(node), again.stdout + again.stderr

    data["gpuready"] = {"runtimes": {"docker": {"shm_size": "8 gigs"}}}
    (tmp_path / "inventory.py").write_text(f"nodes = [({node.address!r}, {data!r})]\n")
    refused = run("deploy.py")
    told = refused.stdout + refused.stderr
    assert refused.returncode == 1 and f"host.data.gpuready of {node.address}: runtimes.docker.shm_size" in told, told
    assert "Traceback" not in told, told
