"""The compatibility tables, read once from ``data/*.yaml``. Each file states its date and source."""

import bisect
import datetime
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.base.versions import Version, numbers

DATA = Path(__file__).parent / "data"


@functools.cache
def _load(name: str) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, Any] = yaml.load((DATA / f"{name}.yaml").read_text(encoding="utf-8"), loader)
    return found


def dated(name: str) -> tuple[datetime.date, str]:
    """Return the date and the source of one file, by its name without ``.yaml``."""
    found = _load(name)
    return found["date"], found["source"]


def one_source(name: str, key: object) -> bool:
    """Tell whether a row of one file was read at one source only."""
    return key in _load(name).get("one_source", ())


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
    """Return the driver of a toolkit. An unknown patch counts as the last known one before it. Raises KeyError."""
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
    """Return the newest CUDA of a driver's libcuda. An unknown branch counts as the last known one before it.

    Raises KeyError for a branch before all known ones.
    """
    known = list(branches())
    at = bisect.bisect_right(known, driver[0])
    if not at:
        raise KeyError(driver)
    return branches()[known[at - 1]]


def beyond(driver: Version) -> bool:
    """Tell whether the driver's branch is newer than these tables."""
    return driver[0] > max(branches())


@functools.cache
def floors() -> dict[int, Version]:
    """CUDA major -> the first driver with minor-version compatibility."""
    return {int(major): numbers(driver) for major, driver in _load("branches")["floors"].items()}


@dataclass(frozen=True)
class Until:
    """The month in which the support of a branch ends. ``sure``: a second source says so, too."""

    month: str
    sure: bool

    def __str__(self) -> str:
        return self.month if self.sure else f"{self.month}, by one source only"


@functools.cache
def supported_until() -> dict[int, Until]:
    """Driver branch -> when its support ends, for branches supported at the date of the data."""
    today, rows = dated("branches")[0].isoformat()[:7], _load("branches")["supported_until"]
    return {int(b): Until(row["month"], row["sure"]) for b, row in sorted(rows.items()) if row["month"] >= today}


def ended(branch: int) -> bool:
    """Tell whether a branch gets no security updates any more.

    A branch without a confirmed end still counts as supported while bulletins fix it.
    """
    known = (*supported_until(), *_load("branches")["open_end"])
    return branch not in known and branch < max(known)


def open_only(branch: int) -> bool:
    """Tell whether a branch has no proprietary kernel module."""
    first: int = _load("branches")["open_only"]
    return branch >= first


@functools.cache
def security_floors() -> dict[int, Version]:
    """Driver branch -> its first release with all fixes of NVIDIA's security bulletins (ended: the last one named)."""
    return {int(branch): numbers(release) for branch, release in sorted(_load("branches")["security"].items())}


@functools.cache
def releases(branch: int) -> tuple[Version, ...]:
    """Return the releases of a driver branch that these tables name, oldest first."""
    named = {*toolkits().values(), *floors().values(), *security_floors().values()}
    return tuple(sorted(one for one in named if one[0] == branch and len(one) > 1))


# --- published images ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """What is known of a published image by its tag: ``libcuda`` is ``none``, ``compat`` or ``own``."""

    cuda: Version
    libcuda: str
    sure: bool


def published(reference: str) -> Published | None:
    """Identify an image by its reference; None if the table has no row for it."""
    for row in _load("images")["images"]:
        if found := re.fullmatch(row["match"], reference):
            if "releases" not in row:
                return Published(numbers(found["cuda"]), row["libcuda"], True)
            release = row["releases"].get(found["release"])
            return release and Published(numbers(release["cuda"]), row["libcuda"], release["sure"])
    return None


def published_releases(reference: str) -> tuple[str, str]:
    """Return the oldest and the newest release that the table has of the series of an image; empty: it is of none."""
    for row in _load("images")["images"]:
        if "releases" in row and re.fullmatch(row["match"], reference):
            return min(row["releases"]), max(row["releases"])
    return "", ""


# --- forward compatibility ----------------------------------------------------------------------------------------


def forward_branches(cuda: Version) -> tuple[frozenset[int], frozenset[int]]:
    """Return the driver branches that cuda-compat of a CUDA supports: by today's matrix, and by that of its release."""
    found, name = _load("forward"), f"{cuda[0]}.{cuda[1]}"
    return frozenset(found["current"].get(name, ())), frozenset(found["released"].get(name, ()))


# --- GPUs ---------------------------------------------------------------------------------------------------------

#: What ``--gpu`` takes in place of a name.
KINDS = ("consumer", "pro", "datacenter", "unknown")


@dataclass(frozen=True)
class OldestDriver:
    """The first driver version that NVIDIA names for a GPU model. ``sure``: older ones do not support it."""

    model: str
    driver: Version
    sure: bool


def _oldest(row: dict[str, Any]) -> OldestDriver:
    return OldestDriver(row["model"], numbers(row["driver"]), row["sure"])


@dataclass(frozen=True)
class Gpu:
    """A GPU model. ``kind`` is one of :data:`KINDS` or ``jetson``; ``brands`` are its words in NVIDIA_REQUIRE_CUDA.

    ``architecture`` and ``capability`` are empty if the name does not show them.
    """

    name: str
    kind: str
    brands: frozenset[str] = frozenset()
    architecture: str = ""
    capability: str = ""

    @property
    def newest_branch(self) -> int | None:
        """The last driver branch that supports it; None while support continues."""
        found: int | None = _load("gpus")["newest_branch"].get(self.architecture)
        return found

    @property
    def oldest_driver(self) -> OldestDriver | None:
        """The first full driver version for it; None where the first branch of its architecture says enough."""
        rows = _load("gpus")["oldest_driver"]
        return next((_oldest(row) for row in rows if re.search(row["match"], self.name)), None)

    @property
    def oldest_toolkit(self) -> Version:
        """The first CUDA with machine code for it; (0, 0) if unknown."""
        rows = _load("gpus")["oldest_toolkit"]
        return numbers(rows.get(self.capability) or rows.get(self.architecture, "0.0"))

    @property
    def newest_toolkit(self) -> int:
        """The last CUDA major that supports it; a high number while support continues."""
        found: int = _load("gpus")["newest_toolkit"].get(self.architecture, 10**6)
        return found


@functools.cache
def gpu(name: str, brand: str = "") -> Gpu:
    """Identify a GPU by its NVML brand if that is known, else by its name, which may be one of :data:`KINDS`."""
    data = _load("gpus")
    words = {key.lower(): value for key, value in data["brands"].items()}
    kind, brands = (name.lower() if name.lower() in KINDS else "unknown"), frozenset[str]()
    rule = next((rule for rule in data["names"] if re.search(rule["match"], name, re.I)), None)
    if rule is not None:
        kind, brands = rule["kind"], frozenset(rule["brands"])
    if brand.lower() in words and kind != "jetson":
        kind, brands = words[brand.lower()]["kind"], frozenset({words[brand.lower()]["word"]})
    made: dict[str, str] = next((rule for rule in data["architectures"] if re.search(rule["match"], name, re.I)), {})
    return Gpu(name, kind, brands, made.get("name", ""), made.get("capability", ""))


def possible() -> tuple[tuple[str, Gpu], ...]:
    """Return what an unknown GPU may be, each with its name in a sentence: of a kind, or of an architecture."""
    architectures = dict.fromkeys(rule["name"] for rule in _load("gpus")["architectures"])
    kinds = [(kind, Gpu("", kind)) for kind in KINDS if kind != "unknown"]
    return (*kinds, *((name, Gpu("", "unknown", architecture=name)) for name in architectures))


@dataclass(frozen=True)
class Device:
    """A GPU by its PCI device id. ``model`` is what to call it; it and ``architecture`` are empty if unknown.

    ``open_module``: whether it runs the open kernel module: ``only``, ``never``, or either (empty). ``nvlink5``: where
    its NVLink 5 switches are, if it has some: ``baseboard`` or ``rack``.
    """

    architecture: str = ""
    model: str = ""
    open_module: str = ""
    nvlink5: str = ""
    oldest_driver: OldestDriver | None = None


def device(id: int) -> Device:
    """Identify a GPU by its PCI device id."""
    data = _load("gpus")
    row = next((row for row in data["devices"] if row["from"] <= id <= row["to"]), None)
    if row is None:
        return Device()
    oldest = next((_oldest(each) for each in data["oldest_driver"] if id in each["devices"]), None)
    module = row.get("open_module", data["open_module"].get(row["name"], ""))
    nvlink5 = next((place for place, ids in data["nvlink5"].items() if id in ids), "")
    return Device(row["name"], row.get("model", row["name"]), module, nvlink5, oldest)


def driver_branches(architecture: str) -> tuple[int, int]:
    """Return the first and the last driver branch of an architecture; 0 and a high number where there is no limit."""
    data = _load("gpus")
    return data["oldest_branch"].get(architecture, 0), data["newest_branch"].get(architecture, 10**6)


def no_support(architecture: str, branch: int) -> str:
    """Return why a driver branch does not support an architecture; empty if it does, or if that is unknown."""
    first, last = driver_branches(architecture)
    if first <= branch <= last:
        return ""
    limit = f"the last branch is {last}" if branch > last else f"the first branch is {first}"
    return f"no support for {architecture} GPUs ({limit})"


# --- the container toolkit ----------------------------------------------------------------------------------------


def since(change: str) -> Version:
    """Return the toolkit version of a change that container-toolkit.yaml names."""
    return numbers(_load("container-toolkit")[change])
