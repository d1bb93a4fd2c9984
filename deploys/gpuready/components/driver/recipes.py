"""Which packages a driver is installed as, from what apt says is to be had, and whether apt would do only that. Pure.

The recipes are in data/driver-packages.yaml, dated. All that a recipe requires has to be there at one version string,
revision and all: two repositories that publish the same driver differ there, and are never mixed so. What apt would do
is read from its simulation: it may add packages, and move or remove the driver's own; anything else is refused.
Sources: apt-cache(8) madison, apt-get(8) --simulate.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.components.driver import packages as driverset
from gpuready.core.errors import ConvergeError
from gpuready.state.model import Package

Available = dict[str, list[str]]
_INSTALL = re.compile(r"Inst (\S+)(?: \[([^\]]*)\])? \((\S+)")
_REMOVE = re.compile(r"(?:Remv|Purg) (\S+)(?: \[([^\]]*)\])?")


#: Modules that come built and signed: KIND is the branch and flavor, SUFFIX the kernel, or the name of a package that
#: follows the kernels.
_PREBUILT = re.compile(r"linux-modules-nvidia-(?P<kind>\d+(?:-server)?(?:-open)?)-(?P<suffix>.+)")
#: What follows the kernel: its version is the kernel's, and it demands the driver's own packages of one version.
_FOLLOWS = re.compile(r"linux-(modules|objects|signatures)-nvidia-")


@dataclass(frozen=True)
class Wanted:
    """What is to be installed: the driver's full version, its module's flavor, and for which kernels.

    ``maker``: of the driver that is there, which alone may be moved; empty where there is none. ``signed``: Secure Boot
    takes nothing that is built here. ``installed``: packages of the driver that are there and move to that version, or
    go where they have none of it; ``replaced``: those with a module of the other flavor, which go. ``prebuilt``:
    packages of such modules that are there; ``release``: of Ubuntu, which the packages that follow a kernel may bear.
    """

    os: str
    version: str
    flavor: str
    kernels: tuple[str, ...] = ()
    maker: str = ""
    signed: bool = False
    fabric_manager: bool = False
    installed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    prebuilt: tuple[str, ...] = ()
    release: str = ""

    @property
    def branch(self) -> str:
        """The version's first number."""
        return self.version.partition(".")[0]


@functools.cache
def _data() -> dict[str, Any]:
    import yaml

    path = Path(__file__).parent / "data" / "driver-packages.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


def _recipes(wanted: Wanted) -> list[dict[str, Any]]:
    """The recipes that may be used here."""
    return [
        recipe
        for recipe in _data()["recipes"]
        if recipe["os"] == wanted.os
        and wanted.flavor in recipe
        and wanted.maker in ("", recipe["maker"] or wanted.maker)
        and ("signed" in recipe or not wanted.signed)
    ]


def _named(names: Iterable[str], wanted: Wanted) -> list[str]:
    return [name.replace("{b}", wanted.branch) for name in names]


def _modules(recipe: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Packages with a signed module, one for each kernel."""
    pattern = recipe.get("signed", {}).get(wanted.flavor, "")
    return [n.replace("{k}", k) for k in wanted.kernels for n in _named([pattern], wanted)] if pattern else []


def _followers(recipe: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Packages that bring the module of each new kernel: as those that are there, and by the kernels' names."""
    kind = _kind(recipe, wanted)
    old = [m["suffix"] for name in wanted.prebuilt if (m := _PREBUILT.fullmatch(name)) and not m["suffix"][0].isdigit()]
    flavours = [kernel.split("-", 2)[2] for kernel in wanted.kernels if kernel.count("-") > 1]
    new = [f"{f}{more}" for f in flavours for more in ("", f"-hwe-{wanted.release}", f"-lts-{wanted.release}")]
    return [f"linux-modules-nvidia-{kind}-{suffix}" for suffix in dict.fromkeys((*old, *new))] if kind else []


def _kind(recipe: Mapping[str, Any], wanted: Wanted) -> str:
    """Branch and flavor of the recipe's prebuilt modules; empty where it builds them."""
    pattern = recipe.get("signed", {}).get(wanted.flavor, "").replace("{b}", wanted.branch)
    found = _PREBUILT.fullmatch(pattern)
    return found["kind"] if found else ""


def _following(recipe: Mapping[str, Any], wanted: Wanted, there: Available) -> dict[str, str]:
    """Of the followers those for a kernel that is installed: one for a newer kernel would bring that kernel along."""
    pins: dict[str, str] = {}
    for name in _followers(recipe, wanted):
        abis = ((v, re.match(r"\d+\.\d+\.\d+-\d+(?=\.)", v)) for v in there.get(name, ()))
        fits = [v for v, abi in abis if abi and any(k.startswith(f"{abi[0]}-") for k in wanted.kernels)]
        pins |= {name: f"{name}={fits[0]}"} if fits and name not in wanted.prebuilt else {}
    return pins


def _outdated(recipe: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Prebuilt modules of another branch or flavor, which modprobe would find beside the new ones."""
    kind = _kind(recipe, wanted)
    return [n for n in wanted.prebuilt if kind and (m := _PREBUILT.fullmatch(n)) and m["kind"] != kind]


def headers(kernel: str) -> str:
    """The package without which DKMS builds nothing for that kernel."""
    return f"linux-headers-{kernel}"


def names(wanted: Wanted) -> tuple[str, ...]:
    """Every package that apt has to be asked about."""
    found: dict[str, None] = {}
    for recipe in _recipes(wanted):
        for key in ("user", wanted.flavor, "also"):
            found |= dict.fromkeys(_named(recipe.get(key, ()), wanted))
        found |= dict.fromkeys((*_modules(recipe, wanted), *_followers(recipe, wanted)))
    for key in ("fabric_manager", "nscq"):
        found |= dict.fromkeys(_named(_data()[key], wanted) if wanted.fabric_manager else ())
    return (*dict.fromkeys((*found, *wanted.installed)), *(headers(kernel) for kernel in wanted.kernels))


def available(madison: str) -> Available:
    """``NAME | VERSION | ...`` on each line: versions by name, in apt's order, which is newest first."""
    found: Available = {}
    for line in madison.splitlines():
        name, _, rest = line.partition("|")
        if rest and (version := rest.split("|")[0].strip()) not in found.setdefault(name.strip(), []):
            found[name.strip()].append(version)
    return found


def choose(wanted: Wanted, there: Available, built_for: Sequence[str]) -> tuple[str, ...]:
    """The packages to install as NAME=VERSION; raises :class:`ConvergeError` where no recipe is to be had.

    ``built_for``: kernels whose headers lie there already.
    """
    why = []
    for recipe in _recipes(wanted):
        required = _named([*recipe["user"], *recipe[wanted.flavor]], wanted)
        common = [v for v in there.get(required[0], []) if _upstream(v) == wanted.version]
        common = [v for v in common if all(v in there.get(name, ()) for name in required)]
        modules, kernels = _modules(recipe, wanted), () if "signed" in recipe else wanted.kernels
        missing = [name for name in modules if name not in there] if common else []
        missing += [headers(k) for k in kernels if k not in built_for and headers(k) not in there] if common else []
        if common and not missing:
            more = [*required, *_named(recipe.get("also", ()), wanted), *wanted.installed]
            pins = {name: f"{name}={common[0]}" for name in more if common[0] in there.get(name, ())}
            pins |= {name: name for name in (*modules, *(headers(k) for k in kernels if k not in built_for))}
            pins |= _following(recipe, wanted, there) | _fabric_manager(wanted, there)
            pins |= {n: pin for n, pin in _fitting(wanted.installed, wanted, there).items() if n not in pins}
            old = (*wanted.installed, *wanted.replaced, *_outdated(recipe, wanted))
            gone = [f"{name}-" for name in old if name not in pins]
            return (*pins.values(), *gone)
        lacks = f"there is no {', '.join(missing)}" if missing else f"no {', '.join(required)} of one version"
        why.append(f"{recipe['name']}: {lacks}")
    has = sorted({_upstream(v) for versions in there.values() for v in versions} - {""})
    signed = "Secure Boot is on, so only signed modules count; " if wanted.signed else ""
    raise ConvergeError(
        f"driver {wanted.version} ({wanted.flavor}) is not available: {signed}{'; '.join(why) or 'no recipe for it'}; "
        f"the repositories have {', '.join(has) or 'no driver'}; nothing was changed",
        remedy="add the repository that has it (Debian's non-free, Ubuntu's restricted, NVIDIA's), or take another one",
    )


def _fitting(names: Iterable[str], wanted: Wanted, there: Available) -> dict[str, str]:
    """Those that are to be had at the wanted version, whatever their revision: companions are built on their own."""
    fits = ((n, [v for v in there.get(n, ()) if _upstream(v) == wanted.version]) for n in names)
    return {name: f"{name}={versions[0]}" for name, versions in fits if versions}


def _fabric_manager(wanted: Wanted, there: Available) -> dict[str, str]:
    if not wanted.fabric_manager:
        return {}
    pins: dict[str, str] = {}
    for key in ("fabric_manager", "nscq"):
        pins |= dict([*_fitting(_named(_data()[key], wanted), wanted, there).items()][:1])
    if not any("fabricmanager" in name for name in pins):
        raise ConvergeError(
            f"no fabric manager {wanted.version} is in the repositories, and the GPUs behind NVSwitches need exactly "
            "that one; nothing was changed",
            remedy="add the repository that has it, or take a driver version for which it is there",
        )
    return pins


def _upstream(version: str) -> str:
    return driverset.version(Package(version=version, arch=""))


def judge(simulated: str, wanted: Wanted, packages: Mapping[str, Package]) -> tuple[str, ...]:
    """The packages that apt would remove; raises :class:`ConvergeError` where it would do more than this installation.

    What may go is told by name and version, like all of the driver's set: tools of NVIDIA's own bear its name, too.
    """
    becomes = {name: package.version for name, package in driverset.members(packages).items()}
    other, goes = [], []
    for line in simulated.splitlines():
        if gone := _REMOVE.match(line):
            becomes.pop(gone[1], None)
            goes.append(gone[1])
            if not (_FOLLOWS.match(gone[1]) or (driverset.is_named(gone[1]) and _upstream(gone[2] or ""))):
                other.append(f"remove {gone[1]}")
        elif new := _INSTALL.match(line):
            if driverset.is_named(new[1]) and _upstream(new[3]):
                becomes[new[1]] = new[3]
            elif new[2] and not (
                _FOLLOWS.match(new[1]) or new[1].startswith(("nvidia-modprobe", "nvidia-persistenced"))
            ):
                other.append(f"move {new[1]} to {new[3]}")
    if other:
        more = f" and {len(other) - 4} more" if len(other) > 4 else ""
        raise ConvergeError(f"apt would {', '.join(other[:4])}{more} as well; nothing was changed: do that first")
    wrong = [f"{name} {version}" for name, version in sorted(becomes.items()) if _upstream(version) != wanted.version]
    if wrong:
        raise ConvergeError(
            f"beside {wanted.version} there would be {', '.join(wrong[:6])}; nothing was changed: purge those first"
        )
    return tuple(goes)
