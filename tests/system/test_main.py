"""The main job on a pristine machine: an empty spec, applied once, then again with nothing to do.

What apply claims is asked of the machine itself: of Docker, dpkg, apt and sshd.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.components.toolkit.state import PACKAGES
from gpuready.model.spec import TOOLKIT_VERSION
from gpuready.node import NODE
from tests.lab import DISTROS, Lab
from tests.system.harness import Gpuready, Inventories, Result, Sessions
from tests.system.host import Host, Hosts

pytestmark = pytest.mark.promise

#: For what does not depend on the distribution.
ONE_DISTRO = pytest.mark.parametrize("node", ["debian13"], indirect=True)
WORK = "docker run -d --restart=no --name work busybox:lab sleep 100000"


class Node(Host):
    """A machine that ran a container and was then converged: what was before, and what apply said."""

    before: list[str]
    planned: Result
    applied: Result
    sessions: int

    def ask(self, template: str) -> str:
        """``docker info`` by template."""
        return self.run(f"docker info --format '{template}'").stdout.strip()


@pytest.fixture(scope="module", params=DISTROS)
def node(request: pytest.FixtureRequest, lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    """Converged by one apply."""
    with lab.machine(request.param) as machine:
        found = Node(machine, gpuready, inventory, runtimes={"containerd": "auto"})
        found.run(WORK)
        found.before = found.pids()
        found.planned = found.plan("--detailed-exitcode", code=2)
        count = Sessions(found)
        process = gpuready.start("apply", "--yes", "-vv", inventory=found.where())  # the executable itself
        found.applied = gpuready.finish(process, code=0)
        found.sessions = count.count()
        yield found


def test_plan_says_what_apply_then_does(node: Node) -> None:
    assert node.planned.host()["execs"] == 1
    differing = {item["name"] for item in node.planned.host()["components"] if item["diff"]}
    assert differing == node.applied.changed() == {"repository", "toolkit", "docker", "containerd"}
    assert node.planned.host()["outcome"] == "would_change"
    assert node.applied.host()["outcome"] == "changed"


def test_the_document_counts_what_the_node_counts(node: Node) -> None:
    # The lock is held by a session of its own, and is no exec.
    assert node.sessions == node.applied.host()["execs"] + 1


def test_the_lock_is_held_until_the_record_is_written(node: Node) -> None:
    # The exec of the active checks writes the record. -vv names each session as it ends.
    ended = re.findall(r"  (active checks|lock|step \S+): ", node.applied.stderr)
    assert ended[-2:] == ["active checks", "lock"] and len(ended) > 3, node.applied.stderr


def test_docker_lists_nvidia_and_leaves_the_default(node: Node) -> None:
    assert "nvidia" in json.loads(node.ask("{{json .Runtimes}}"))
    assert node.ask("{{.DefaultRuntime}}") == "runc"
    assert node.ask("{{.LiveRestoreEnabled}}") == "true"


def test_a_container_runs_under_it(node: Node) -> None:
    node.run("docker run --rm --runtime=nvidia --network=none -e NVIDIA_VISIBLE_DEVICES=void busybox:lab true")


def test_the_toolkit_is_the_pinned_one_and_held(node: Node) -> None:
    assert f"version {TOOLKIT_VERSION}\n" in node.run("nvidia-ctk --version").stdout
    assert sorted(node.run("apt-mark showhold").stdout.split()) == sorted(PACKAGES)


def test_nothing_was_restarted(node: Node) -> None:
    assert node.pids() == node.before


def test_every_check_passes_or_says_why_not(node: Node) -> None:
    result = node.verify()
    assert result.host()["execs"] == 2
    assert result.checks("fail", "unknown", "warn") == set()
    passed = result.checks("pass")
    assert {"docker.smoke", "docker.runtime", "containerd.runtime", "toolkit.version", "repository.candidate"} <= passed
    assert result.document["gpu_checks"] == 0
    assert not node.run("docker ps -aq --filter name=gpuready").stdout


def test_a_converged_host_is_one_exec_and_no_change(node: Node) -> None:
    with node.untouched(sessions=1):
        assert node.settled().changed() == set()


@ONE_DISTRO
def test_only_the_host_that_differs_is_changed(node: Node, fresh: Hosts) -> None:
    other = fresh(node.distro)
    both = node.inventories([node, other])
    with node.untouched(sessions=2):
        limited = node.plan("--detailed-exitcode", "--limit", node.name, inventory=both)
        result = node.apply(inventory=both)
    assert list(limited.document["hosts"]) == [node.name]
    assert result.host(other.name)["outcome"] == "changed"
    assert (result.host(node.name)["outcome"], result.host(node.name)["execs"]) == ("ok", 1)
    assert "nvidia" in other.run("docker info --format '{{json .Runtimes}}'").stdout


@ONE_DISTRO
def test_a_recorded_state_is_judged_without_a_connection(node: Node, tmp_path: Path) -> None:
    docker = {"default_runtime": True, "shm_size": "256m"}
    wanted = node.with_spec(toolkit={"version": "1.19.1"}, runtimes={"docker": docker})
    probed = wanted.call("record")
    assert probed.host()["execs"] == 1
    states = tmp_path / "states.json"
    states.write_text(probed.stdout, "utf-8")
    online = wanted.plan("--detailed-exitcode", code=2)
    count = Sessions(node)
    offline = wanted.plan("--detailed-exitcode", "--state", str(states), code=2)
    assert count.count() == 0 == offline.host()["execs"]
    assert offline.host()["components"] == online.host()["components"]
    assert offline.diff("docker")
    judged = wanted.verify("--state", str(states), code=3)
    assert {"toolkit.config", "docker.config"} <= judged.checks("fail")


@ONE_DISTRO
def test_only_and_skip_choose_components(node: Node) -> None:
    wanted = node.with_spec(toolkit={"version": "1.19.1"}, runtimes={"docker": {"default_runtime": True}})
    only = wanted.plan("--only", "docker")
    assert [item["name"] for item in only.host()["components"]] == ["docker"]
    skip = wanted.plan("--skip", "docker")
    assert [item["name"] for item in skip.host()["components"]] == [c.name for c in NODE if c.name != "docker"]
    # What was not chosen is not judged either: only ldso, which has nothing to do, is as wanted.
    wanted.verify("--passive", "--only", "ldso")
    assert wanted.apply("--only", "docker").changed() == {"docker"}
    assert node.ask("{{.DefaultRuntime}}") == "nvidia"
    assert f"version {TOOLKIT_VERSION}\n" in node.run("nvidia-ctk --version").stdout
    node.apply(runtimes={"docker": {"default_runtime": False}})
    assert node.ask("{{.DefaultRuntime}}") == "runc" and node.pids() == node.before


DAMAGES = {
    "the runtime is gone from the engine": (
        'echo \'{"runtimes": {"other": {"path": "runc"}}}\' >/etc/docker/daemon.json; systemctl reload docker',
        {"docker.config", "docker.runtime"},
        "docker",
    ),
    "daemon.json was edited and never loaded": (
        "sed -i 's/nvidia-container-runtime/runc/' /etc/docker/daemon.json",
        {"docker.config"},
        "docker",
    ),
    "a hold is gone": ("apt-mark unhold libnvidia-container-tools", {"toolkit.config"}, "toolkit"),
    "the packages were taken away": (
        "dpkg --force-hold --force-depends --purge nvidia-container-toolkit-base",
        {"toolkit.config", "toolkit.version"},
        "toolkit",
    ),
    "another key lies in the keyring": (
        "echo none >/etc/apt/keyrings/gpuready-nvidia-container-toolkit.asc",
        {"repository.config"},
        "repository",
    ),
}


@ONE_DISTRO
@pytest.mark.parametrize(("damage", "failing", "component"), DAMAGES.values(), ids=DAMAGES.keys())
def test_verify_names_the_damage_and_apply_mends_it(node: Node, damage: str, failing: set[str], component: str) -> None:
    node.run(damage)
    found = node.verify("--passive", code=3)
    assert found.checks("fail") == failing, found.explain()
    assert {item["name"] for item in found.host()["components"] if item["diff"]} == {component}
    mended = node.apply()
    assert mended.changed() == {component}, mended.explain()
    assert mended.checks("fail", "unknown") == set()


@ONE_DISTRO
def test_a_stubs_directory_is_told_and_left_to_its_owner(node: Node) -> None:
    conf = "/etc/ld.so.conf.d/cuda.conf"
    node.run(f"echo /usr/local/cuda/lib64/stubs >{conf}")
    found = node.verify("--passive", code=3)
    node.run(f"rm {conf}")
    assert found.checks("fail") == {"libcuda.stub"}, found.explain()
    check = found.check("libcuda.stub")
    assert conf in check["evidence"] and check["remedy"]
