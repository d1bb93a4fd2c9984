"""Start and end one systemd-nspawn container with a real systemd in it, independent of the process that asked.

Each boot gets a cgroup of its own: with --keep-unit, containers that share one would share their systemd's whole
tree. With --keep-unit, too, nspawn leaves a reboot to its caller by exit status 133, hence the loop. Which processes
belong to a machine is read from /proc by its unique argument, so a recorded pid can never mean a stranger.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab import scale
from tests.lab.network import namespace
from tests.lab.processes import children, matching, send, wait_gone

_LOOP = """
boot=0
while :; do
  boot=$((boot + 1))
  if [ -d /run/systemd/system ]; then
    systemd-run --quiet --scope --collect -p Delegate=yes --unit="$0-$boot" -- "$@"
  else
    mkdir -p "$CGROUP/$boot"
    sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$CGROUP/$boot" "$@"
  fi
  [ $? -eq 133 ] || exit
done
"""
_ENVIRONMENT = {
    "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1",  # else `docker run` meets a read-only cgroup v1
    "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",  # else dockerd cannot set ip_forward
}


def _machine(name: str) -> str:
    return f"--machine=gpuready-lab-{name}"


def _cgroup(name: str) -> Path:
    mount = Path("/sys/fs/cgroup")
    base = mount if (mount / "cgroup.controllers").exists() else mount / "unified"
    return base / f"gpuready-lab-{name}"


def start(name: str, root: Path, binds: Sequence[tuple[Path, str]], log: Path) -> None:
    """Begin to boot the root directory; what it prints goes to the log."""
    argv = [
        "systemd-nspawn",
        _machine(name),
        f"--hostname={name}",
        f"--directory={root}",
        "--boot",
        "--register=no",
        "--keep-unit",
        "--capability=all",
        "--system-call-filter=add_key keyctl bpf",
        f"--network-namespace-path={namespace(name)}",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        *(f"--bind={source}:{target}" for source, target in binds),
    ]
    with log.open("ab") as output:
        loop = subprocess.Popen(
            ["sh", "-c", _LOOP, f"gpuready-lab-{name}", *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_ENVIRONMENT, "CGROUP": str(_cgroup(name))},
            start_new_session=True,
        )
    # For a moment after exec the kernel shows no arguments, and by these everyone finds the machine.
    while loop.poll() is None and not processes(name):
        time.sleep(0.001)


def processes(name: str) -> list[int]:
    """The host's processes that hold the machine (the loop, nspawn), and below them its init."""
    ours = matching(lambda argv: _machine(name) in argv)
    return ours + [child for pid in ours for child in children(pid) if child not in ours]


def running(name: str) -> bool:
    """Whether nspawn itself runs for this machine."""
    return bool(_supervisors(name))


def inits(name: str) -> list[int]:
    """The machine's own pid 1, as the host counts it."""
    return [child for pid in _supervisors(name) for child in children(pid)]


def shutdown(name: str) -> None:
    """Ask the machine's systemd to power off (nspawn passes SIGTERM on so), and wait until it has."""
    pids = processes(name)
    send(_supervisors(name), signal.SIGTERM)
    wait_gone(pids, 30)


def kill(name: str) -> None:
    """End the machine as a power cut would."""
    while pids := processes(name):  # again, for one that was just being started
        send(pids, signal.SIGKILL)
        wait_gone(pids, 10)


def remove_traces(name: str) -> None:
    """Remove the empty directories that a killed nspawn leaves behind."""
    cgroup = _cgroup(name)
    if cgroup.exists():
        for path, _, _ in os.walk(cgroup, topdown=False):
            _rmdir(Path(path))
    for kind in ("propagate", "unix-export"):
        _rmdir(Path("/run/systemd/nspawn", kind, f"gpuready-lab-{name}"))


def _rmdir(path: Path) -> None:
    limit = scale.Limit(2)
    while path.exists():
        try:
            path.rmdir()
        except OSError:  # a cgroup is busy until the kernel has reaped its last process
            if limit.over():
                return
            time.sleep(0.01)


def _supervisors(name: str) -> list[int]:
    return matching(lambda argv: Path(argv[0]).name == "systemd-nspawn" and _machine(name) in argv)
