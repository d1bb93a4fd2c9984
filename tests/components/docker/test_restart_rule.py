"""Which containers a restart of Docker ends: the plan's forecast and the step on the node, from one table."""

import os
import subprocess
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.components.docker.component import Docker
from gpuready.components.docker.transaction import DockerInstall
from gpuready.contract.component import Change
from gpuready.model.state import Container, NodeState, Unit
from gpuready.model.state import Docker as Engine
from tests.lab import scale
from tests.node_files import NodeFiles

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the step is root's")
ID = "0a" * 32
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
        docker=Engine(live_restore=live, containers=(Container(id=ID, name="work", image="debian"),)),
        units={"docker.service": Unit(load="loaded", active="active", kill_mode=kill_mode)},
    )
    change = Change("docker.running.features.cdi", False, True)
    assert Docker().affected((change,), state) == (("work (debian)",) if ends else ())


@pytest.mark.parametrize(("live", "kill_mode", "ends"), CASES)
def test_the_step_waits_for_the_container(tmp_path: Path, live: bool, kill_mode: str, ends: bool) -> None:
    node = NodeFiles(tmp_path)
    (tmp_path / "proc/driver/nvidia/version").unlink()  # no compute processes to ask for
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (tmp_path / "etc/docker").mkdir()
    node.write("run/docker.pid", str(os.getpid()))
    node.program("journalctl", "true")
    node.program(
        "docker",
        f"""case "$*" in
  *LiveRestore*) echo 'nvidia=/x |runc|{str(live).lower()}' ;;
  *CDISpecDirs*) echo 2 ;;
  ps*) echo {ID} ;;
  inspect*) echo '{ID} "debian" /work runc null' ;;
esac""",
    )
    node.program(
        "systemctl",
        f"""case "$*" in
  *LoadState*) echo loaded ;;
  *KillMode*) echo {kill_mode} ;;
  restart*) echo "$*" >{tmp_path}/restarted ;;
esac""",
    )
    step = DockerInstall(
        before="absent", content=b"", final=b"", last="", between="", after="", forget=False, later=False,
        flags=(), binary="",
        reload=False, restart=True, work=("",), runtime_paths=(), runtime_gone=False, default_runtime="",
        live_restore="", cdi="true", undo=b"", alive=b"", quiet=b"",
    )  # fmt: skip
    script = node.write("step", node.below(resources.script("docker/install", **vars(step))))
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False, timeout=scale.seconds(60))
    assert ((tmp_path / "restarted").exists(), done.returncode) == (not ends, 77 if ends else 0), done.stderr
    assert ("container work (debian)" in done.stderr) is ends
