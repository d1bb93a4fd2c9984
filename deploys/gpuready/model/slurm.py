"""The node as Slurm's controller has it. Pure; no text raises an error.

Source: scontrol(1), ``show node -o``, of Slurm 22.05, 24.11 and 26.05. Reasons and comments are
other people's text: left out.
"""

import re

from gpuready.base.facts import Facts

_FIELD = re.compile(r"(?:^| )(NodeName|State|Gres)=(\S{1,4000})")
_WHERE = re.compile(r"\([^()]*\)")
_GPU = re.compile(r"(?:^|,)gpu(?::(?!no_consume\b)(\d*[A-Za-z][\w.-]*))?(?::no_consume)?(?::(\d{1,6}))?(?=[,(]|$)")


class SlurmNode(Facts):
    """``state``: as State=, such as IDLE+DRAIN. ``gpus``: the GPUs of Gres=, type -> number; the type may be empty."""

    name: str = ""
    state: str = ""
    gpus: dict[str, int] = {}


def slurm_node(line: str) -> SlurmNode | None:
    """Parse a line of scontrol; None if it names no node."""
    first: dict[str, str] = {}
    for key, text in _FIELD.findall(line):
        first.setdefault(key, text)  # a reason comes later, and can contain anything
    found: dict[str, int] = {}
    for kind, number in _GPU.findall(_WHERE.sub("", first.get("Gres", ""))):
        found[kind] = found.get(kind, 0) + int(number or 1)
    if "NodeName" not in first:
        return None
    return SlurmNode(name=first["NodeName"][:253], state=first.get("State", "")[:200], gpus=found)
