"""The checks' tables, read once from ``data/*.yaml``: what Xids ask for, and limits by GPU model. Each is dated."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpuready.spec.verify import Thresholds

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Action:
    """What an Xid asks for: ``status`` is the verdict's, ``means`` and ``remedy`` are for people."""

    status: str
    means: str
    remedy: str


@functools.cache
def load(name: str) -> dict[str, Any]:
    """One file, by its name without ``.yaml``."""
    found: dict[str, Any] = yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


@functools.cache
def _actions() -> dict[int, Action]:
    found: dict[int, Action] = {}
    for entry in load("xids")["actions"].values():
        action = Action(entry["status"], entry["means"], entry["remedy"])
        found |= dict.fromkeys(entry["xids"], action)
    return found


def xid_action(number: int) -> Action:
    """What that Xid asks for; one that came after the table is told as a newer one."""
    known = _actions()
    return known.get(number, known[max(load("xids")["actions"]["newer"]["xids"])])


def limit(name: str, given: Thresholds, model: str) -> int:
    """The limit called ``name`` for a GPU of that product name: the spec's, else the model's, else the default."""
    own = getattr(given, name)
    if own is not None:
        return int(own)
    table = load("thresholds")
    for entry in table["models"]:
        if name in entry and re.search(entry["match"], model):
            return int(entry[name])
    return int(table["default"][name])
