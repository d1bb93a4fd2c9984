"""Which containers a restart of Docker ends: the plan's forecast and the step on the node, from one table."""

import os
from pathlib import Path

import pytest

from gpuready.components.docker.component import Docker
from gpuready.components.docker.transaction import DockerInstall
from gpuready.contract.component import Change
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState, Unit
from tests.components.restart_rule import WORK, waits

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the step is root's")
#: live-restore, KillMode -> does a running container count?
CASES = [
    (True, "process", False),
    (True, "mixed", True),
    (True, "control-group", True),
    (True, "", True),
    (False, "process", True),
    (False, "mixed", True),
]


@pytest.mark.parametrize(("live", "kill_mode", "ends"), CASES)
def test_the_plan_names_the_container(live: bool, kill_mode: str, ends: bool) -> None:
    state = NodeState(
        docker=Engine(live_restore=live, containers=WORK),
        units={"docker.service": Unit(load="loaded", active="active", kill_mode=kill_mode)},
    )
    change = Change("docker.running.features.cdi", False, True)
    assert Docker().affected((change,), state) == (("work (debian)",) if ends else ())


@pytest.mark.parametrize(("live", "kill_mode", "ends"), CASES)
def test_the_step_waits_for_the_container(tmp_path: Path, live: bool, kill_mode: str, ends: bool) -> None:
    step = DockerInstall(
        before="absent", content=b"", final=b"", last="", between="", after="", forget=False, later=False,
        flags=(), binary="",
        reload=False, restart=True, work=("",), runtime_paths=(), runtime_gone=False, default_runtime="",
        live_restore="", cdi="true", undo=b"", undo_with_live_restore=b"", undo_live_restore=b"", ran=b"",
    )  # fmt: skip
    info = f"nvidia=/x |runc|{str(live).lower()}"
    assert waits(tmp_path, step, kill_mode, info, journalctl="true") is ends
