"""A GPU node of files and shell, for scripts that ask a driver: its tools, its two GPUs, and its kernel log."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from gpuready.base.records import Records, unmarked
from tests.components.dcgm.test_diag import CARDS

Runs = dict[str, tuple[int, str]]


def tool(place: Path, name: str, text: str) -> None:
    """Put a program there, a shell script, where a script of :func:`on_a_node` finds it first."""
    (place / "bin").mkdir(exist_ok=True)
    (place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    (place / "bin" / name).chmod(0o755)


def on_a_node(place: Path, script: str) -> str:
    """The script, on an idle node whose files are in ``place``: ``rows`` of nvidia-smi, and ``log`` of the kernel."""
    (place / "rows").write_text(CARDS, "utf-8")
    (place / "log").touch()
    for name in ("rows", "log"):
        (place / name).chmod(0o666)  # a load that nobody runs writes there, too
    for gpu in ("0000:18:00.0", "0000:2a:00.0"):
        (place / "driver/gpus" / gpu).mkdir(parents=True)
    (place / "driver/version").touch()
    tool(place, "nvidia-smi", f"case $* in *compute-apps*) ;; *) cat {place}/rows ;; esac")
    tool(place, "dmesg", f"cat {place}/log")
    script = script.replace("/proc/driver/nvidia/", f"{place}/driver/").replace("PATH=/usr", f"PATH={place}/bin:/usr")
    return script.replace("/run/gpuready.load", f"{place}/load")


#: A shell that can make no namespaces, as in most containers.
NO_NAMESPACES = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "sh")


def run(script: str, shell: Sequence[str] = ("sh",)) -> tuple[Runs, str]:
    """The script's records, and all that it printed, with a stdin that stays open."""
    with subprocess.Popen([*shell, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = process.stdout.read()
    return Records(unmarked(text)).runs, text
