"""The main job on a pristine machine: an empty spec, applied once, then again with nothing to do.

What apply claims is asked of the machine itself: of Docker, dpkg, apt and sshd.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuready.node import NODE
from gpuready.spec.model import TOOLKIT_VERSION
from gpuready.state.toolkit_packages import PACKAGES
from tests.lab import DISTROS, Lab, Machine
from tests.system.harness import Gpuready, Inventories, Result, Sessions, await_processes, listing, processes

pytestmark = pytest.mark.promise

#: For what does not depend on the distribution.
ONE_DISTRO = pytest.mark.parametrize("node", ["debian13"], indirect=True)
WORK = "docker run -d --restart=no --name work busybox:lab sleep 100000"


@dataclass(frozen=True)
class Node:
    """A machine that ran a container and was then converged: what was before, and what apply said."""

    machine: Machine
    inventory: Path
    pids: dict[str, str]
    planned: Result
    applied: Result
    sessions: int

    def ask(self, template: str) -> str:
        """``docker info`` by template."""
        return self.machine.run(f"docker info --format '{template}'").stdout.strip()


def pids(machine: Machine) -> dict[str, str]:
    """The pids of dockerd and of the container that runs."""
    dockerd = machine.run("systemctl show -p MainPID --value docker.service").stdout.strip()
    return {"dockerd": dockerd, "work": machine.run("docker inspect -f '{{.State.Pid}}' work").stdout.strip()}


@pytest.fixture(scope="module", params=DISTROS)
def node(request: pytest.FixtureRequest, lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    """Converged by one apply."""
    with lab.machine(request.param) as machine:
        machine.run(WORK)
        before, where = pids(machine), inventory(machine, runtimes={"containerd": "auto"})
        planned = gpuready("plan", "--detailed-exitcode", inventory=where)
        count = Sessions(machine)
        applied = gpuready.finish(gpuready.start("apply", "--yes", "-vv", inventory=where))  # the executable itself
        assert applied.code == 0, applied.explain()
        yield Node(machine, where, before, planned, applied, count.count())


def test_plan_says_what_apply_then_does(node: Node) -> None:
    assert node.planned.code == 2
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
    node.machine.run("docker run --rm --runtime=nvidia --network=none -e NVIDIA_VISIBLE_DEVICES=void busybox:lab true")


def test_the_toolkit_is_the_pinned_one_and_held(node: Node) -> None:
    assert f"version {TOOLKIT_VERSION}\n" in node.machine.run("nvidia-ctk --version").stdout
    assert sorted(node.machine.run("apt-mark showhold").stdout.split()) == sorted(PACKAGES)


def test_nothing_was_restarted(node: Node) -> None:
    assert pids(node.machine) == node.pids


def test_every_check_passes_or_says_why_not(node: Node, gpuready: Gpuready) -> None:
    result = gpuready("verify", inventory=node.inventory)
    assert result.code == 0, result.explain()
    assert result.host()["execs"] == 2
    assert result.checks("fail", "unknown", "warn") == set()
    assert {
        "docker.smoke",
        "docker.runtime",
        "containerd.runtime",
        "toolkit.version",
        "repository.candidate",
    } <= result.checks("pass")
    assert result.document["gpu_checks"] == 0
    assert not node.machine.run("docker ps -aq --filter name=gpuready").stdout


def test_a_converged_host_is_one_exec_and_no_change(node: Node, gpuready: Gpuready) -> None:
    count, before, running = Sessions(node.machine), listing(node.machine), processes(node.machine)
    result = gpuready("apply", "--yes", inventory=node.inventory)
    assert result.code == 0, result.explain()
    assert (result.host()["outcome"], result.host()["execs"], count.count()) == ("ok", 1, 1)
    assert result.changed() == set()
    await_processes(node.machine, running)
    assert before ^ listing(node.machine) == frozenset()


@ONE_DISTRO
def test_only_the_host_that_differs_is_changed(
    node: Node, lab: Lab, gpuready: Gpuready, inventory: Inventories
) -> None:
    with lab.machine(node.machine.distro) as fresh:
        both = inventory([node.machine, fresh])
        count, before = Sessions(node.machine), listing(node.machine)
        limited = gpuready("plan", "--detailed-exitcode", "--limit", node.machine.name, inventory=both)
        assert (limited.code, list(limited.document["hosts"])) == (0, [node.machine.name])
        assert count.count() == 1
        result = gpuready("apply", "--yes", inventory=both)
        assert result.code == 0, result.explain()
        assert result.host(fresh.name)["outcome"] == "changed"
        assert (result.host(node.machine.name)["outcome"], result.host(node.machine.name)["execs"]) == ("ok", 1)
        assert count.count() == 1
        assert before ^ listing(node.machine) == frozenset()
        assert "nvidia" in fresh.run("docker info --format '{{json .Runtimes}}'").stdout


@ONE_DISTRO
def test_a_recorded_state_is_judged_without_a_connection(
    node: Node, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    wanted = inventory(
        node.machine,
        toolkit={"version": "1.19.1"},
        runtimes={"docker": {"default_runtime": True, "shm_size": "256m"}},
    )
    probed = gpuready("probe", inventory=wanted)
    assert (probed.code, probed.host()["execs"]) == (0, 1)
    states = tmp_path / "states.json"
    states.write_text(probed.stdout, "utf-8")
    online = gpuready("plan", "--detailed-exitcode", inventory=wanted)
    count = Sessions(node.machine)
    offline = gpuready("plan", "--detailed-exitcode", "--state", str(states), inventory=wanted)
    assert count.count() == 0
    assert (offline.code, offline.host()["execs"]) == (online.code, 0) == (2, 0)
    assert offline.host()["components"] == online.host()["components"]
    assert offline.diff("docker")
    judged = gpuready("verify", "--state", str(states), inventory=wanted)
    assert judged.code == 3
    assert {"toolkit.config", "docker.config"} <= judged.checks("fail")


@ONE_DISTRO
def test_only_and_skip_choose_components(node: Node, gpuready: Gpuready, inventory: Inventories) -> None:
    wanted = inventory(node.machine, toolkit={"version": "1.19.1"}, runtimes={"docker": {"default_runtime": True}})
    only = gpuready("plan", "--only", "docker", inventory=wanted)
    assert [item["name"] for item in only.host()["components"]] == ["docker"]
    skip = gpuready("plan", "--skip", "docker", inventory=wanted)
    assert [item["name"] for item in skip.host()["components"]] == [c.name for c in NODE if c.name != "docker"]
    # What was not chosen is not judged either: only ldso, which has nothing to do, is as wanted.
    assert gpuready("verify", "--passive", "--only", "ldso", inventory=wanted).code == 0
    done = gpuready("apply", "--yes", "--only", "docker", inventory=wanted)
    assert (done.code, done.changed()) == (0, {"docker"}), done.explain()
    assert node.ask("{{.DefaultRuntime}}") == "nvidia"
    assert f"version {TOOLKIT_VERSION}\n" in node.machine.run("nvidia-ctk --version").stdout


def test_the_default_runtime_comes_and_goes_without_a_restart(
    node: Node, gpuready: Gpuready, inventory: Inventories
) -> None:
    for wanted, runtime in ((True, "nvidia"), (False, "runc")):
        where = inventory(node.machine, runtimes={"docker": {"default_runtime": wanted}})
        result = gpuready("apply", "--yes", inventory=where)
        assert result.code == 0, result.explain()
        assert node.ask("{{.DefaultRuntime}}") == runtime
        again = gpuready("apply", "--yes", inventory=where)
        assert (again.code, again.host()["outcome"], again.host()["execs"]) == (0, "ok", 1), again.explain()
    assert pids(node.machine) == node.pids
    # The runtime itself stays, and so does what an empty spec asks for.
    assert gpuready("plan", "--detailed-exitcode", inventory=node.inventory).code == 0


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
def test_verify_names_the_damage_and_apply_mends_it(
    node: Node, gpuready: Gpuready, damage: str, failing: set[str], component: str
) -> None:
    node.machine.run(damage)
    found = gpuready("verify", "--passive", inventory=node.inventory)
    assert found.code == 3
    assert found.checks("fail") == failing, found.explain()
    assert {item["name"] for item in found.host()["components"] if item["diff"]} == {component}
    mended = gpuready("apply", "--yes", inventory=node.inventory)
    assert (mended.code, mended.changed()) == (0, {component}), mended.explain()
    assert mended.checks("fail", "unknown") == set()


@ONE_DISTRO
def test_a_stubs_directory_is_told_and_left_to_its_owner(node: Node, gpuready: Gpuready) -> None:
    conf = "/etc/ld.so.conf.d/cuda.conf"
    node.machine.run(f"echo /usr/local/cuda/lib64/stubs >{conf}")
    found = gpuready("verify", "--passive", inventory=node.inventory)
    node.machine.run(f"rm {conf}")
    assert (found.code, found.checks("fail")) == (3, {"libcuda.stub"}), found.explain()
    check = next(item for item in found.host()["checks"] if item["id"] == "libcuda.stub")
    assert conf in check["evidence"] and check["remedy"]
