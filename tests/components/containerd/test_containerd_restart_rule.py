"""Which containers a restart of containerd ends: the plan's forecast and the step on the node, from one table."""

import os
import subprocess
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.components.containerd.component import UNIT, Containerd, ContainerdInstall
from gpuready.model.state import Container, Docker, NodeState, Unit
from tests.lab import scale
from tests.node_files import NodeFiles

ID = "0a" * 32
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
        docker=Docker(live_restore=live, containers=(Container(id=ID, name="work", image="debian"),)),
        units={UNIT: Unit(load="loaded", active="active", kill_mode=kill_mode, takes_along=along)},
    )
    assert bool(Containerd().affected((), state)) is ends


@pytest.mark.skipif(os.geteuid() != 0, reason="the step is root's")
@pytest.mark.parametrize(("kill_mode", "docker", "live", "ends"), CASES)
def test_the_step_waits_for_the_container(tmp_path: Path, kill_mode: str, docker: bool, live: bool, ends: bool) -> None:
    node = NodeFiles(tmp_path)
    (tmp_path / "proc/driver/nvidia/version").unlink()  # no compute processes to ask for
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    node.write("run/docker.pid", str(os.getpid()))
    node.program("ctr", "echo 'io.containerd.grpc.v1 cri linux/amd64 ok'")
    node.program("crictl", "false")
    node.program(
        "docker",
        f"""case "$*" in
  info*) echo {str(live).lower()} ;;
  ps*) echo {ID} ;;
  inspect*) echo '{ID} "debian" /work runc null' ;;
esac""",
    )
    node.program(
        "systemctl",
        f"""case "$*" in
  *KillMode*) echo {kill_mode} ;;
  *ActiveState*) echo active ;;
  restart*) echo "$*" >{tmp_path}/restarted ;;
esac""",
    )
    step = ContainerdInstall(
        path="/etc/containerd/config.toml", before="absent", content=b"", write=False, remove=False, dump="", answer="",
        restart=True, docker=docker, work=("",), runtime_gone=False, forget=False, between="", after="",
    )  # fmt: skip
    script = node.write("step", node.below(resources.script("containerd/install", **vars(step))))
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False, timeout=scale.seconds(60))
    assert ((tmp_path / "restarted").exists(), done.returncode) == (not ends, 77 if ends else 0), done.stderr
    assert ("container work (debian)" in done.stderr) is ends
