"""Programs that travel to a node because nothing there can do it: cuinit, which calls cuInit, for each architecture."""

import base64
from pathlib import Path

_HERE = Path(__file__).resolve().parent
MACHINES = ("x86_64", "aarch64")


def cuinit(machine: str) -> str:
    """The program for a machine (as ``uname -m`` names it) in base64; empty where there is none."""
    return base64.b64encode((_HERE / f"cuinit.{machine}").read_bytes()).decode("ascii") if machine in MACHINES else ""
