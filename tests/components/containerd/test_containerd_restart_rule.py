"""Which containers a restart of containerd ends: the plan's forecast and the step on the node, from one table."""

import os
from pathlib import Path

import pytest

from gpuready.components.containerd.component import UNIT, Containerd, ContainerdInstall
from gpuready.model.state import Docker, NodeState, Unit
from tests.components.restart_rule import WORK, waits

#: KillMode, does Docker restart with it, Docker's live-restore -> does a running container count?
CASES = [
    ("process", False, False, False),
    ("none", False, False, False),
    ("mixed", False, False, True),
    ("control-group", False, False, True),
    ("", False, False, True),
    ("process", True, True, False),
    ("none", True, True, False),
    ("process", True, False, True),
    ("none", True, False, True),
    ("mixed", True, True, True),
]


@pytest.mark.parametrize(("kill_mode", "docker", "live", "ends"), CASES)
def test_the_plan_says_so(kill_mode: str, docker: bool, live: bool, ends: bool) -> None:
    along = ("docker.service",) if docker else ()
    state = NodeState(
        docker=Docker(live_restore=live, containers=WORK),
        units={UNIT: Unit(load="loaded", active="active", kill_mode=kill_mode, takes_along=along)},
    )
    assert bool(Containerd().affected((), state)) is ends


@pytest.mark.skipif(os.geteuid() != 0, reason="the step is root's")
@pytest.mark.parametrize(("kill_mode", "docker", "live", "ends"), CASES)
def test_the_step_waits_for_the_container(tmp_path: Path, kill_mode: str, docker: bool, live: bool, ends: bool) -> None:
    step = ContainerdInstall(
        path="/etc/containerd/config.toml", before="absent", content=b"", write=False, remove=False, dump="", answer="",
        restart=True, docker=docker, work=("",), runtime_gone=False, forget=False, between="", after="",
    )  # fmt: skip
    programs = {"ctr": "echo 'io.containerd.grpc.v1 cri linux/amd64 ok'", "crictl": "false"}
    assert waits(tmp_path, step, kill_mode, str(live).lower(), **programs) is ends
