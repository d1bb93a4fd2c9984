"""The tables of the GPU checks, read once from ``data/*.yaml``: actions by Xid, and limits by GPU model."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.spec.verify import Thresholds

DATA = Path(__file__).parent / "data"
#: What nvidia-smi prints as state and status of a GPU whose fabric is complete (nvmlGpuFabricState_t, nvmlReturn_t).
FABRIC_COMPLETE = ("Completed", "Success")


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
def _actions() -> tuple[dict[int, Action], Action]:
    """Return the actions by Xid, and that for every other Xid."""
    table = load("xids")["actions"]
    actions = {name: Action(entry["status"], entry["means"], entry["remedy"]) for name, entry in table.items()}
    return {xid: actions[name] for name, entry in table.items() for xid in entry["xids"]}, actions["newer"]


def xid_action(number: int) -> Action:
    """Return the action for an Xid. An Xid that is not in the table gets the action for newer Xids."""
    known, newer = _actions()
    return known.get(number, newer)


def fatal_xids() -> tuple[int, ...]:
    """Return the Xids after which a GPU needs a reset, a reboot or repair."""
    return tuple(sorted(number for number, action in _actions()[0].items() if action.status == "fail"))


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
