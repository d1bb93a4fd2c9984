"""The tables of the GPU checks, read once from ``data/*.yaml``: actions by Xid, and limits by GPU model."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.model.verify import Thresholds

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


#: Xids of NVLink 5, whose line says more than their number.
NVLINK5 = range(144, 151)
#: Unit, severity, first and second number.
_NVLINK5_LINE = re.compile(
    r"\b([a-z][a-z0-9_]{2,30}) +(non-?)?fatal +xc[0-9]{1,3} +i[0-9]{1,3} +link +-?[0-9]{1,3} +"
    r"\(0x([0-9a-f]{1,8})(?: +0x([0-9a-f]{1,8}))?\b",
    re.I | re.A,
)
_NONFATAL = re.compile(r"\bnon-?fatal\b", re.I)


@functools.cache
def action(name: str) -> Action:
    """Return an action by its name in the table."""
    entry = load("xids")["actions"][name]
    return Action(entry["status"], entry["means"], entry["remedy"])


@functools.cache
def _by_xid() -> dict[int, str]:
    return {xid: name for name, entry in load("xids")["actions"].items() for xid in entry["xids"]}


def action_name(number: int, line: str = "") -> str:
    """Return the name of the action for an Xid, and for its line if that says more. Other Xids are ``newer``."""
    name = _by_xid().get(number, "newer")
    return _nvlink5(line) or name if number in NVLINK5 else name


def _nvlink5(line: str) -> str:
    """Return the name of the action for a line of an Xid of NVLink 5; empty if no row fits."""
    said = _NVLINK5_LINE.search(line)
    if said is None:
        return "nvlink_nonfatal" if _NONFATAL.search(line) else ""
    unit, fatal, subcode = said[1].upper(), not said[2], int(said[3], 16) >> 20 & 0x3F
    status = int(said[4], 16) if said[4] else None
    for row in load("xids")["nvlink5"]:
        fits = unit in row["units"] and fatal == row["fatal"] and subcode in row.get("subcodes", (0,))
        if fits and status in row.get("statuses", (status,)):
            return str(row["action"])
    return "" if fatal else "nvlink_nonfatal"


def xid_action(number: int, line: str = "") -> Action:
    """Return the action for an Xid, and for its line if that says more."""
    return action(action_name(number, line))


def fatal_xids() -> tuple[int, ...]:
    """Return the Xids after which a GPU needs a reset, a reboot or repair. Of NVLink 5, only their fatal lines do."""
    return tuple(sorted(number for number, name in _by_xid().items() if action(name).status == "fail"))


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
