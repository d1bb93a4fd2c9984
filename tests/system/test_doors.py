"""The plain doors: pyinfra's own command line with our deploys does the same work, as cheaply."""

from pathlib import Path

import pytest
import yaml

from tests.lab import DISTROS, access
from tests.system.harness import Sessions, door, listing, pyinfra
from tests.system.host import Hosts


@pytest.mark.promise
@pytest.mark.parametrize("distro", DISTROS)
def test_the_plain_doors_converge_and_verify(distro: str, fresh: Hosts, tmp_path: Path) -> None:
    node = fresh(distro)
    where = node.where()
    node.run("printf '{broken' >/etc/docker/daemon.json")
    assert "1.99.0" in door(tmp_path, node.where(toolkit={"version": "1.99.0"}), "converge", code=1)
    assert node.run("cat /etc/docker/daemon.json; rm /etc/docker/daemon.json").stdout == "{broken"

    assert "toolkit.config" in door(tmp_path, where, "verify", code=1)
    door(tmp_path, where, "converge")
    assert '"nvidia"' in node.run("docker info -f '{{json .Runtimes}}'").stdout
    with node.untouched(sessions=1):
        door(tmp_path, where, "converge")

    # Both doors mean the same by "converged".
    node.plan("--detailed-exitcode")
    count = Sessions(node)
    door(tmp_path, where, "verify")
    assert count.count() == 2

    node.run('echo \'{"runtimes": {"other": {"path": "runc"}}}\' >/etc/docker/daemon.json; systemctl reload docker')
    assert "docker.runtime:" in door(tmp_path, where, "verify", code=1)


def test_own_pyinfra_code_calls_components_as_deploys(fresh: Hosts, tmp_path: Path) -> None:
    """pyinfra's own inventory and operations, with ours between; the spec is the host's data."""
    node = fresh()
    group = yaml.safe_load(node.where().read_text())["all"]["vars"]
    data = {
        "ssh_user": group["ansible_user"],
        "ssh_key": group["ansible_ssh_private_key_file"],
        "ssh_known_hosts_file": str(access.known_hosts()),
        "gpuready": group["gpuready"] | {"ldso": ["/opt/driver/lib"]},
    }
    (tmp_path / "deploy.py").write_text(
        "from pyinfra.operations import files\n"
        "from gpuready.pyinfra import config, docker, ldso, repository, toolkit\n\n"
        "files.directory(path='/opt/driver/lib', _sudo=True)\n"
        "ldso()\nrepository()\ntoolkit()\nconfig()\ndocker()\n"
    )

    def run(code: int = 0) -> str:
        (tmp_path / "inventory.py").write_text(f"nodes = [({node.address!r}, {data!r})]\n")
        return pyinfra(tmp_path, "inventory.py", "deploy.py", code=code)

    run()
    assert '"nvidia"' in node.run("docker info -f '{{json .Runtimes}}'").stdout
    assert "/opt/driver/lib" in node.run("cat /etc/ld.so.conf.d/*gpuready*").stdout
    before = listing(node)
    run()
    assert before == listing(node)
    data["gpuready"] = {"runtimes": {"docker": {"shm_size": "8 gigs"}}}
    assert f"host.data.gpuready of {node.address}: runtimes.docker.shm_size" in run(code=1)
