"""The compatibility tables, read once from ``data/*.yaml``; every file says its date and its source."""

from __future__ import annotations

import bisect
import datetime
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.cuda.versions import Version, numbers

DATA = Path(__file__).parent / "data"


@functools.cache
def _load(name: str) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, Any] = yaml.load((DATA / f"{name}.yaml").read_text(encoding="utf-8"), loader)
    return found


def dated(name: str) -> tuple[datetime.date, str]:
    """The date and the source of one file, by its name without ``.yaml``."""
    found = _load(name)
    return found["date"], found["source"]


# --- CUDA and drivers ---------------------------------------------------------------------------------------------


@functools.cache
def toolkits() -> dict[Version, Version]:
    """CUDA (major, minor, patch) -> the driver it was released with, oldest first."""
    found = {numbers(str(cuda)): numbers(str(driver)) for cuda, driver in _load("toolkits")["drivers"].items()}
    return dict(sorted(found.items()))


@functools.cache
def known_cuda() -> tuple[Version, ...]:
    """Every released (major, minor), oldest first."""
    return tuple(dict.fromkeys(cuda[:2] for cuda in toolkits()))


def bundled_driver(cuda: Version) -> Version:
    """The driver of that toolkit; a patch that is not known counts as the last known one before it. KeyError."""
    wanted = (*cuda, 0, 0)[:3] if len(cuda) < 3 else cuda[:3]
    same = [one for one in toolkits() if one[:2] == wanted[:2]]
    if not same:
        raise KeyError(cuda)
    return toolkits()[max([one for one in same if one <= wanted] or same[:1])]


@functools.cache
def branches() -> dict[int, Version]:
    """Driver branch -> the newest CUDA (major, minor) of its own libcuda, oldest first."""
    return {int(branch): numbers(cuda) for branch, cuda in sorted(_load("branches")["cuda"].items())}


def newest_cuda(driver: Version) -> Version:
    """The newest CUDA of a driver's libcuda; of a branch between two known ones that of the older. KeyError before."""
    known = list(branches())
    at = bisect.bisect_right(known, driver[0])
    if not at:
        raise KeyError(driver)
    return branches()[known[at - 1]]


def beyond(driver: Version) -> bool:
    """Is the driver of a branch that came after these tables?"""
    return driver[0] > max(branches())


@functools.cache
def floors() -> dict[int, Version]:
    """CUDA major -> the driver from which on minor-version compatibility holds."""
    return {int(major): numbers(driver) for major, driver in _load("branches")["floors"].items()}


@functools.cache
def supported_until() -> dict[int, str]:
    """Driver branch -> the month in which its support ends, for those that were supported at the data's date."""
    today = dated("branches")[0].isoformat()[:7]
    return {int(b): str(month) for b, month in sorted(_load("branches")["supported_until"].items()) if month >= today}


# --- forward compatibility ----------------------------------------------------------------------------------------


def forward_branches(cuda: Version) -> tuple[frozenset[int], frozenset[int]]:
    """The driver branches that cuda-compat of that CUDA works on: by today's matrix, and by that of its release."""
    found, name = _load("forward"), f"{cuda[0]}.{cuda[1]}"
    return frozenset(found["current"].get(name, ())), frozenset(found["released"].get(name, ()))


# --- GPUs ---------------------------------------------------------------------------------------------------------

KINDS = ("consumer", "pro", "datacenter", "unknown")


@dataclass(frozen=True)
class Gpu:
    """A GPU model. ``kind`` is one of :data:`KINDS`; ``brands`` are the words that NVIDIA_REQUIRE_CUDA may use for it.

    ``architecture`` and ``capability`` are empty where the name does not tell.
    """

    name: str
    kind: str
    brands: frozenset[str] = frozenset()
    architecture: str = ""
    capability: str = ""

    @property
    def newest_branch(self) -> int | None:
        """The last driver branch for it; None while there is none."""
        found: int | None = _load("gpus")["newest_branch"].get(self.architecture)
        return found

    @property
    def oldest_toolkit(self) -> Version:
        """The first CUDA whose machine code runs on it; (0, 0) where that is not known."""
        return numbers(_load("gpus")["oldest_toolkit"].get(self.architecture, "0.0"))

    @property
    def newest_toolkit(self) -> int:
        """The last CUDA major that compiles for it; a high number while there is none."""
        found: int = _load("gpus")["newest_toolkit"].get(self.architecture, 10**6)
        return found


@functools.cache
def gpu(name: str, brand: str = "") -> Gpu:
    """What a GPU is, by its NVML brand where that is known, else by its name, which may be a word of :data:`KINDS`."""
    data = _load("gpus")
    words = {key.lower(): value for key, value in data["brands"].items()}
    kind, brands = (name.lower() if name.lower() in KINDS else "unknown"), frozenset[str]()
    rule = next((rule for rule in data["names"] if re.search(rule["match"], name, re.I)), None)
    if rule is not None:
        kind, brands = rule["kind"], frozenset(rule["brands"])
    if brand.lower() in words:
        kind, brands = words[brand.lower()]["kind"], frozenset({words[brand.lower()]["word"]})
    made: dict[str, str] = next((rule for rule in data["architectures"] if re.search(rule["match"], name, re.I)), {})
    return Gpu(name, kind, brands, made.get("name", ""), made.get("capability", ""))


def architecture(device: int) -> str:
    """A GPU's architecture by its PCI device id; empty where the table has none."""
    return next((str(row["name"]) for row in _load("gpus")["devices"] if row["from"] <= device <= row["to"]), "")


def driver_branches(architecture: str) -> tuple[int, int]:
    """The first and the last driver branch of an architecture; 0 and a high number where there is none."""
    data = _load("gpus")
    return data["oldest_branch"].get(architecture, 0), data["newest_branch"].get(architecture, 10**6)


def no_support(architecture: str, branch: int) -> str:
    """Why a driver branch cannot drive GPUs of an architecture; empty where it can, and of one that is not known."""
    first, last = driver_branches(architecture)
    if first <= branch <= last:
        return ""
    limit = f"{last} is the last branch" if branch > last else f"{first} is the first branch"
    return f"no support for {architecture} GPUs: {limit} for them"


def open_module(architecture: str) -> str:
    """Whether an architecture takes the open kernel module: ``only``, ``never``, or either (empty)."""
    return str(_load("gpus")["open_module"].get(architecture, ""))


# --- the container toolkit ----------------------------------------------------------------------------------------


def since(change: str) -> Version:
    """The toolkit version of a change named in container-toolkit.yaml."""
    return numbers(_load("container-toolkit")[change])
