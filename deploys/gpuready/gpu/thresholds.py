"""The tables of the GPU checks, read once from ``data/*.yaml``: actions by Xid, and limits by GPU model."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.spec.verify import Thresholds

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Action:
    """What an Xid means and what to do about it. ``status`` is that of the verdict."""

    status: str
    means: str
    remedy: str


@functools.cache
def load(name: str) -> dict[str, Any]:
    """Read one file, by its name without ``.yaml``."""
    import yaml

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
    """Return the action for an Xid. One that is newer than the table gets the action for unknown Xids."""
    known = _actions()
    return known.get(number, known[max(load("xids")["actions"]["newer"]["xids"])])


def limit(name: str, given: Thresholds, model: str) -> int:
    """Return a limit for a GPU by its product name: from the spec, else for the model, else the default."""
    own = getattr(given, name)
    if own is not None:
        return int(own)
    table = load("thresholds")
    for entry in table["models"]:
        if name in entry and re.search(entry["match"], model):
            return int(entry[name])
    return int(table["default"][name])
