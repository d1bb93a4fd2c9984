"""Does a step that would restart an engine wait for a container? Docker and systemctl are stand-ins."""

import os
import subprocess
from pathlib import Path

from gpuready.base.step import Script
from gpuready.model.state import Container
from tests.lab import scale
from tests.node_files import NodeFiles

_ID = "0a" * 32
WORK = (Container(id=_ID, name="work", image="debian"),)


def waits(folder: Path, step: Script, kill_mode: str, info: str, **programs: str) -> bool:
    """Run the step while :data:`WORK` runs. Return whether it names the container and waits; else it restarted.

    ``info``: what docker info prints when it is asked for live-restore. ``programs``: scripts of other stand-ins.
    """
    node = NodeFiles(folder)
    (folder / "proc/driver/nvidia/version").unlink()  # no compute processes to ask for
    (folder / "run/systemd/system").mkdir(parents=True)
    (folder / "etc/docker").mkdir()
    node.write("run/docker.pid", str(os.getpid()))
    docker = f"""case "$*" in
  *LiveRestore*) echo '{info}' ;;
  *CDISpecDirs*) echo 2 ;;
  ps*) echo {_ID} ;;
  inspect*) echo '{_ID} "debian" /work runc null' ;;
esac"""
    systemctl = f"""case "$*" in
  *LoadState*) echo loaded ;;
  *KillMode*) echo {kill_mode} ;;
  *ActiveState*) echo active ;;
  restart*) echo "$*" >{folder}/restarted ;;
esac"""
    for name, script in {"docker": docker, "systemctl": systemctl, **programs}.items():
        node.program(name, script)
    script = node.write("step", node.below(step.render()))
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False, timeout=scale.seconds(60))
    waited = done.returncode == 77
    assert (done.returncode, (folder / "restarted").exists()) == (77 if waited else 0, not waited), done.stderr
    assert ("container work (debian)" in done.stderr) is waited
    return waited
