"""A reload or a restart that Docker refuses: the file and Docker afterwards, and what the message says about both.

The script runs. Docker, dockerd and systemd are stand-ins: Docker starts unless daemon.json has a certain line.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import json_document
from gpuready.base.step import Script
from gpuready.components.docker import transaction
from gpuready.components.docker.keys import OURS
from gpuready.components.docker.state import CONFIG
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState
from tests.components.closing import file_of
from tests.lab import scale
from tests.node_files import NodeFiles

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the step is root's")

_RUNTIME = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
_WITH_CDI = {**_RUNTIME, "features": {"cdi": True}}
_CDI_OFF, _CDI_ON = Engine(version="26.1.0"), Engine(version="26.1.0", cdi_spec_dirs=("/etc/cdi",))
_DOCKER = """[ -e {root}/loaded ] || exit 1
case "$*" in
  *LiveRestore*) echo 'nvidia=nvidia-container-runtime |runc|false' ;;
  *CDISpecDirs*) grep -c '"cdi": true' {root}/loaded || : ;;
  events*) cat {root}/events ;;
esac"""
_SYSTEMCTL = """load() {{
  rm -f {root}/loaded
  ! grep -q '{refused}' {root}{config} && cp {root}{config} {root}/loaded
}}
case "$*" in
  *LoadState*) echo loaded ;;
  *KillMode*) echo process ;;
  *ActiveState*) echo active ;;
  stop*) rm -f {root}/loaded ;;
  reload*) ! {reloads} || echo "$*" >>{root}/events ;;
  restart*|start*) load ;;
esac"""
_JOURNALCTL = """case "$*" in *--show-cursor*) echo '-- cursor: s' ;; *) echo 'Failed to reload: {refused}' ;; esac"""


@dataclass
class Ended:
    """What the script left: its message, daemon.json, and what Docker runs with (None: it does not run)."""

    message: str
    file: Any
    runs: Any
    hash_recorded: bool


def run(folder: Path, document: Any, engine: Engine, refused: str, *, edited: str = "", reloads: bool = True,
        configured: Any = None, running: Any = None, ours: bool = True, programs: dict[str, str] | None = None,
        docker: str = _DOCKER) -> Ended:  # fmt: skip
    """Run the step over that daemon.json. ``edited``: after the plan. ``ours``: the record names ``features.cdi``."""
    data = json_document.write(document).decode()
    texts = {CONFIG: data} | ({OURS: json.dumps({CONFIG: {"features.cdi": [True]}})} if ours else {})
    state = NodeState(files={path: file_of(text, NodeState()) for path, text in texts.items()}, docker=engine)
    step = transaction.install(state, document, configured or {}, running or {}, "", ("",))
    node = NodeFiles(folder)
    (folder / "proc/driver/nvidia/version").unlink()
    for name in ("run/systemd/system", "etc/docker", "var/lib/gpuready"):
        (folder / name).mkdir(parents=True)
    node.write(CONFIG[1:], edited or data)
    for path in (OURS,) if ours else ():
        node.write(path[1:], texts[path])
    node.write("loaded", "{}")
    node.write("events", "")
    words = {"root": folder, "config": CONFIG, "refused": refused, "reloads": str(reloads).lower()}
    for name, script in (("docker", docker), ("systemctl", _SYSTEMCTL), ("journalctl", _JOURNALCTL)):
        node.program(name, script.format(**words))
    node.program("dockerd", 'case "$*" in *--help*) echo --validate ;; esac')
    for name, script in (programs or {}).items():
        node.program(name, script)
    return _ended(node, step.args)


def _ended(node: NodeFiles, args: Script) -> Ended:
    script = node.write("step", node.below(args.render()))
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False, timeout=scale.seconds(60))
    assert done.returncode == 1, done.stderr
    loaded, recorded = node.root / "loaded", node.root / f"var/lib/gpuready/backup{node.root}{CONFIG}.ours"
    return Ended(
        done.stderr.splitlines()[-1],
        json.loads((node.root / CONFIG[1:]).read_text()),
        json.loads(loaded.read_text()) if loaded.exists() else None,
        recorded.exists(),
    )


@pytest.mark.fault("engine-refuses")
def test_a_restart_that_waited_fails_and_docker_runs_as_before(tmp_path: Path) -> None:
    """An earlier run wrote features.cdi. This one only restarts Docker."""
    ended = run(tmp_path, _WITH_CDI, _CDI_OFF, '"cdi": true', running={"features.cdi": True})
    assert ended.runs == ended.file == _RUNTIME and ended.hash_recorded
    assert ended.message.startswith("Docker did not start with the new configuration: ")
    assert f"gpuready set features.cdi in {tmp_path}{CONFIG} back to what Docker ran with; Docker runs" in ended.message


def test_a_removal_that_waited_fails_and_docker_runs_as_before(tmp_path: Path) -> None:
    """Docker 28.2 and newer would start with CDI even if no file says so; this one needs the key."""
    ended = run(tmp_path, {"debug": True}, _CDI_ON, '^    "debug": true$', running={"features.cdi": False})
    assert ended.runs == ended.file == {"debug": True, "features": {"cdi": True}}


def test_another_change_beside_it_is_restored_too(tmp_path: Path) -> None:
    ended = run(
        tmp_path, _WITH_CDI, _CDI_OFF, '"cdi": true', configured={"default-shm-size": "8g"},
        running={"features.cdi": True, "default-shm-size": 8 << 30},
    )  # fmt: skip
    assert ended.runs == ended.file == _RUNTIME
    assert "set features.cdi" in ended.message and ended.message.endswith("; Docker runs again")


def test_docker_does_not_start_with_that_either(tmp_path: Path) -> None:
    ended = run(tmp_path, _WITH_CDI, _CDI_OFF, "{", running={"features.cdi": True})
    assert (ended.runs, ended.file) == (None, _RUNTIME)
    assert "back to what Docker ran with; Docker does not start with that either" in ended.message


def test_an_edited_file_is_left_alone_and_the_message_says_so(tmp_path: Path) -> None:
    edited = json.dumps({**_WITH_CDI, "debug": True})
    ended = run(tmp_path, _WITH_CDI, _CDI_OFF, '"cdi": true', running={"features.cdi": True}, edited=edited)
    assert (ended.runs, ended.file) == (None, json.loads(edited))
    assert "could not set features.cdi in" in ended.message and "changed since the plan was made" in ended.message


@pytest.mark.parametrize(
    ("document", "engine", "wanted", "refused"),
    [({**_RUNTIME, "debug": True}, _CDI_ON, False, '^    "debug": true$'), (_WITH_CDI, _CDI_OFF, True, '"cdi": true')],
)
def test_a_key_of_the_user_stays_as_it_is(
    tmp_path: Path, document: Any, engine: Engine, wanted: bool, refused: str
) -> None:
    """No record names features.cdi: the user wrote or removed it, and Docker has not loaded that yet."""
    ended = run(tmp_path, document, engine, refused, running={"features.cdi": wanted}, ours=False)
    assert ended.file == document and "gpuready did not change" in ended.message


_SHM_TOO: dict[str, Any] = {
    "configured": {"default-shm-size": "8g"}, "running": {"features.cdi": True, "default-shm-size": 8 << 30},
}  # fmt: skip
_LEFT = _DOCKER.replace("|runc|false", "|runc|true").replace("  events*)", "  'ps -q') echo abc ;;\n  events*)")


def test_containers_that_run_outlive_it(tmp_path: Path) -> None:
    """Docker starts with live-restore, and with the features.cdi that it ran with."""
    live = {"live-restore": True}
    ended = run(tmp_path, _WITH_CDI | live, _CDI_OFF, '"cdi": true', docker=_LEFT, **_SHM_TOO)
    assert ended.file == _RUNTIME | live and ended.message.endswith("; Docker runs again")


@pytest.mark.parametrize("docker", [_DOCKER, _LEFT], ids=["no container", "a container"])
def test_a_file_that_cannot_be_restored(tmp_path: Path, docker: str) -> None:
    keeps = 'case "$*" in *.gpuready.before*daemon.json) exit 1 ;; esac\nexec /bin/mv "$@"'
    ended = run(tmp_path, _WITH_CDI, _CDI_OFF, '"cdi": true', docker=docker, programs={"mv": keeps}, **_SHM_TOO)
    assert f"could not restore {tmp_path}{CONFIG}; the version from before is beside it" in ended.message
    assert json.loads((tmp_path / "etc/docker/.gpuready.before").read_text()) == _WITH_CDI


def test_a_silent_journal_is_said(tmp_path: Path) -> None:
    silent = "case \"$*\" in *--show-cursor*) echo '-- cursor: s' ;; esac"
    running = {"features.cdi": True}
    ended = run(tmp_path, _WITH_CDI, _CDI_OFF, '"cdi": true', running=running, programs={"journalctl": silent})
    assert "with the new configuration: no message in the journal. gpuready set" in ended.message


def test_a_reload_of_an_unchanged_file_restores_nothing(tmp_path: Path) -> None:
    """The file is right, but Docker has not loaded it."""
    running = {"runtimes.nvidia.path": "nvidia-container-runtime"}
    ended = run(tmp_path, _RUNTIME, _CDI_OFF, "no", reloads=False, running=running)
    assert ended.file == _RUNTIME
    assert f"gpuready did not change {tmp_path}{CONFIG}; Docker still runs" in ended.message
    assert "restored" not in ended.message
