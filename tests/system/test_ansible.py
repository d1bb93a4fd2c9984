"""The collection for Ansible, and the task that does without it, on a test machine."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.pages import blocks
from tests.playbooks import PAGE, Ansible, recap
from tests.system.host import Hosts


@pytest.mark.promise
def test_the_roles_and_the_task_of_the_guide(fresh: Hosts, tmp_path: Path) -> None:
    """A second run changes nothing; a host that is unreachable fails alone; the guide's own task says the same."""
    node = fresh()
    ansible = Ansible(tmp_path)
    hosts = tmp_path / "hosts.yaml"
    shutil.copy(node.where(), hosts)
    (task,) = yaml.safe_load(blocks(PAGE, "yml")[2])
    both = yaml.safe_load(hosts.read_text("utf-8"))
    both["all"]["hosts"]["gone"] = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    hosts.write_text(yaml.safe_dump(both))

    apply = {"roles": ["gpuready.node.apply"], "tasks": [{"debug": {"var": "gpuready_host.components_changed"}}]}
    output = ansible.play(apply, code=2)
    assert recap(output) == {node.name: ("1", "0"), "gone": ("0", "1")} and '"docker"' in output, output
    assert "host: 127.0.0.1:1: connection refused" in output
    assert recap(ansible.play(apply, code=2)) == {node.name: ("0", "0"), "gone": ("0", "1")}
    verify = {"roles": ["gpuready.node.verify"]}
    assert recap(ansible.play(verify, "--limit", node.name)) == {node.name: ("0", "0")}

    shutil.copy(node.where(), hosts)
    assert recap(ansible.play(task)) == {"localhost": ("0", "0")}
    node.run("rm /etc/docker/daemon.json")
    assert "docker.config: " in ansible.play(verify, code=2)
    assert recap(ansible.play(task)) == {"localhost": ("1", "0")}
    assert recap(ansible.play(verify)) == {node.name: ("0", "0")}
