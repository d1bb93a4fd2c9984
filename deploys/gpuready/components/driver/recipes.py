"""Which packages install a driver, and whether the package manager would change only those. Pure.

The recipes are in data/driver-packages.yaml, dated. All required packages of a recipe must be available in one and the
same version and revision. Two repositories that publish the same driver differ in the revision, so they are never
mixed. In its simulation, the package manager may add packages, and change or remove those of the driver; anything else
is refused. The scripts translate what dnf prints to the lines of apt.

With dnf, a node keeps the kind of module that it has, precompiled or built by DKMS, as long as that is available.
Sources: apt-cache(8) madison, apt-get(8) --simulate; for precompiled RPM packages kmod-nvidia.spec of
NVIDIA/yum-packaging-precompiled-kmod, and the metadata of Red Hat's packages in the tests of mizdebsk/radii (2026-09).
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.base.errors import ConvergeError
from gpuready.components.driver import packages as driver_packages
from gpuready.model.state import Package

#: Package -> its versions, newest first.
Available = dict[str, list[str]]
_INSTALL = re.compile(r"Inst (\S+)(?: \[([^\]]*)\])? \(([^\s)]+)")
_REMOVE = re.compile(r"(?:Remv|Purg) (\S+)(?: \[([^\]]*)\])?")
#: Packages of prebuilt, signed modules. ``kind``: branch and flavor. ``suffix``: a kernel, or a series of kernels.
_PREBUILT = re.compile(r"linux-modules-nvidia-(?P<kind>\d+(?:-server)?(?:-open)?)-(?P<suffix>.+)")
#: Packages that follow the kernel: they have its version, and require the driver's packages in one version.
_FOLLOWS = re.compile(r"linux-(modules|objects|signatures)-nvidia-")
#: RPM packages with the driver's module: built by DKMS, or precompiled for one kernel.
_KMOD = re.compile(r"(?P<of>kmod(-64k)?-nvidia(-open|-latest)?)-(dkms|(?P<version>\d{3}[\d.]+)-\d[\d.]*-[\d.]+)")
#: A kernel that can have a precompiled one: its name has the kernel's release, and its own release the dist tag.
_RPM_KERNEL = re.compile(
    r"(?P<release>\d[\d.]*-\d[\d.]*)\.(?P<dist>el\d\w*(\.\d+)*)\.(x86_64|aarch64)(?P<large>\+64k)?"
)
#: Tools that follow the driver's version, or may.
_BESIDE = re.compile(r"nvidia-(modprobe|persistenced|settings|xconfig)|dnf-plugin-nvidia")
#: Packages of a kernel itself, as opposed to its headers.
_KERNEL = re.compile(r"kernel[\d.]*(-(uek|rt|64k|debug|lt|ml|uki-virt))*(-(core|modules\S*))?|linux-image-(\S+)")
#: What a message says of a companion without which the driver is not installed.
_COMPANIONS = {
    "fabric_manager": "fabric manager {v}, which the GPUs behind NVSwitches need",
    "nvlsm": "NVLink Subnet Manager (nvlsm), which the fabric manager of HGX B200 and B300 needs",
    "imex": "IMEX {v}, which the GPUs of a GB200 or GB300 rack need",
}


@dataclass(frozen=True)
class Wanted:
    """What to install: the driver's full version, the flavor of its module, and the kernels.

    ``os``: as in the recipes; ``rhel`` for every distribution with dnf.
    ``maker``: who built the installed driver; its packages are not replaced by those of another; empty without a
    driver. ``signed``: Secure Boot refuses a module that is built on the node. ``installed``: the driver's packages on
    the node; they get the new version, or are removed if it does not have them. ``replaced``: installed packages for
    the other flavor, to be removed. ``prebuilt``: installed packages of prebuilt modules. ``release``: the version of
    Ubuntu, which is part of some package names. ``fabric_manager``, ``nvlsm``, ``imex``: install these, too.
    """

    os: str
    version: str
    flavor: str
    kernels: tuple[str, ...] = ()
    maker: str = ""
    signed: bool = False
    fabric_manager: bool = False
    nvlsm: bool = False
    imex: bool = False
    installed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    prebuilt: tuple[str, ...] = ()
    release: str = ""

    @property
    def branch(self) -> str:
        """The first number of the version."""
        return self.version.partition(".")[0]

    def headers(self, kernel: str) -> str:
        """Return the package that DKMS needs to build a module for the kernel; dnf's script looks for its provider."""
        return f"{'kernel-devel' if self.os == 'rhel' else 'linux-headers'}-{kernel}"

    @property
    def companions(self) -> tuple[str, ...]:
        """The lists of data/driver-packages.yaml from which one package is installed."""
        asked = {"fabric_manager": self.fabric_manager, "nscq": self.fabric_manager}
        asked |= {"nvlsm": self.nvlsm, "imex": self.imex}
        return tuple(key for key, asks in asked.items() if asks)


@functools.cache
def _data(branch: str) -> dict[str, Any]:
    """Return the recipes, with the names of the packages of that branch."""
    import yaml

    path = Path(__file__).parent / "data" / "driver-packages.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8").replace("{b}", branch))
    return found


def _recipes(wanted: Wanted) -> list[dict[str, Any]]:
    """Return the recipes that could install this driver, those for the installed kind of module first."""
    found = [
        recipe
        for recipe in _data(wanted.branch)["recipes"]
        if recipe["os"] == wanted.os
        and wanted.flavor in recipe
        and wanted.maker in ("", recipe["maker"] or wanted.maker)
        and ("signed" in recipe or not wanted.signed)
    ]
    return sorted(found, key=lambda recipe: any(_excludes(recipe, n) for n in (*wanted.installed, *wanted.replaced)))


def _excludes(recipe: Mapping[str, Any], package: str) -> bool:
    """Tell whether an RPM package has a module of the other kind, which conflicts with that of the recipe."""
    found = _KMOD.fullmatch(package)
    return found is not None and bool(found["version"]) is not ("signed" in recipe)


def _modules(recipe: Mapping[str, Any], wanted: Wanted) -> dict[str, str]:
    """Return the packages with a signed module, one for each kernel, and how the version of an RPM package ends."""
    pattern = recipe.get("signed", {}).get(wanted.flavor, "").replace("{v}", wanted.version)
    found = {}
    for kernel in wanted.kernels if pattern else ():
        if rpm := _RPM_KERNEL.fullmatch(kernel):
            kmod = pattern.replace("kmod-", "kmod-64k-") if rpm["large"] else pattern
            found[kmod.replace("{k}", rpm["release"])] = f".{rpm['dist']}"
        else:
            found[pattern.replace("{k}", kernel)] = ""
    return found


def _built(name: str, end: str, wanted: Wanted, there: Available) -> str:
    """Return the pin of a package with a signed module; empty if there is none for exactly that kernel."""
    if not end:
        return name if name in there else ""
    fits = [v for v in there.get(name, ()) if _upstream(v) == wanted.version and v.endswith(end)]
    return f"{name}={fits[0]}" if fits else ""


def is_precompiled(package: str) -> bool:
    """Tell whether a package has modules that were not built on the node."""
    found = _KMOD.fullmatch(package)
    return bool(found["version"]) if found else bool(_PREBUILT.fullmatch(package))


def precompiled(wanted: Wanted) -> tuple[str, ...]:
    """Return the precompiled RPM packages that ``choose`` prefers to DKMS; none if a kernel cannot have one."""
    possible = wanted.os == "rhel" and all(map(_RPM_KERNEL.fullmatch, wanted.kernels))
    first = _recipes(wanted)[:1] if possible else []
    return tuple(name for recipe in first for name in _modules(recipe, wanted))


def for_kernel(packages: Iterable[str], kernel: str) -> str:
    """Return the precompiled RPM package for a kernel, named after an installed one; empty without one."""
    rpm = _RPM_KERNEL.fullmatch(kernel)
    kmods = (m for name in packages if (m := _KMOD.fullmatch(name)) and m["version"])
    return next((f"{m['of']}-{m['version']}-{rpm['release']}" for m in kmods), "") if rpm else ""


def _followers(recipe: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Return the packages that bring the module for each new kernel, named after installed ones and the kernels."""
    kind = _kind(recipe, wanted)
    old = [m["suffix"] for name in wanted.prebuilt if (m := _PREBUILT.fullmatch(name)) and not m["suffix"][0].isdigit()]
    flavours = [kernel.split("-", 2)[2] for kernel in wanted.kernels if kernel.count("-") > 1]
    new = [f"{f}{more}" for f in flavours for more in ("", f"-hwe-{wanted.release}", f"-lts-{wanted.release}")]
    return [f"linux-modules-nvidia-{kind}-{suffix}" for suffix in dict.fromkeys((*old, *new))] if kind else []


def _kind(recipe: Mapping[str, Any], wanted: Wanted) -> str:
    """Return the branch and flavor of the recipe's prebuilt modules; empty if it builds them."""
    found = _PREBUILT.fullmatch(recipe.get("signed", {}).get(wanted.flavor, ""))
    return found["kind"] if found else ""


def _following(recipe: Mapping[str, Any], wanted: Wanted, there: Available) -> dict[str, str]:
    """Return the pins of those followers that fit an installed kernel; the others would install a newer kernel."""
    pins: dict[str, str] = {}
    for name in _followers(recipe, wanted):
        abis = ((v, re.match(r"\d+\.\d+\.\d+-\d+(?=\.)", v)) for v in there.get(name, ()))
        fits = [v for v, abi in abis if abi and any(k.startswith(f"{abi[0]}-") for k in wanted.kernels)]
        pins |= {name: f"{name}={fits[0]}"} if fits and name not in wanted.prebuilt else {}
    return pins


def _outdated(recipe: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Return the installed prebuilt modules of another branch or flavor; modprobe would still find them."""
    kind = _kind(recipe, wanted)
    return [n for n in wanted.prebuilt if kind and (m := _PREBUILT.fullmatch(n)) and m["kind"] != kind]


def names(wanted: Wanted) -> tuple[str, ...]:
    """Return every package whose versions ``choose`` needs."""
    found: dict[str, None] = {}
    for recipe in _recipes(wanted):
        for key in ("user", wanted.flavor, "also", "beside"):
            found |= dict.fromkeys(recipe.get(key, ()))
        found |= dict.fromkeys((*_modules(recipe, wanted), *_followers(recipe, wanted)))
    for key in wanted.companions:
        found |= dict.fromkeys(_data(wanted.branch)[key])
    return (*dict.fromkeys((*found, *wanted.installed)), *(wanted.headers(kernel) for kernel in wanted.kernels))


def available(madison: str) -> Available:
    """Parse lines as apt-cache madison prints them, ``NAME | VERSION | ...``, newest version first."""
    found: Available = {}
    for line in madison.splitlines():
        name, _, rest = line.partition("|")
        if rest and (version := rest.split("|")[0].strip()) not in found.setdefault(name.strip(), []):
            found[name.strip()].append(version)
    return found


def choose(wanted: Wanted, there: Available, built_for: Sequence[str]) -> tuple[str, ...]:
    """Return what to install as NAME=VERSION, and what to remove as NAME-, as apt takes it.

    ``built_for``: kernels whose headers are installed. Raises :class:`ConvergeError` if no recipe is available.
    """
    why = []
    for recipe in _recipes(wanted):
        required = [*recipe["user"], *recipe[wanted.flavor]]
        common = [v for v in there.get(required[0], []) if _upstream(v) == wanted.version]
        common = [v for v in common if all(v in there.get(name, ()) for name in required)]
        modules = {name: _built(name, end, wanted, there) for name, end in _modules(recipe, wanted).items()}
        kernels = () if "signed" in recipe else wanted.kernels
        missing = [name for name, pin in modules.items() if not pin] if common else []
        headers = [wanted.headers(k) for k in kernels if k not in built_for]
        missing += [name for name in headers if name not in there] if common else []
        if common and not missing:
            stay = [name for name in wanted.installed if not _excludes(recipe, name)]
            more = [*required, *recipe.get("also", ()), *stay]
            pins = {name: f"{name}={common[0]}" for name in more if common[0] in there.get(name, ())}
            pins |= modules | {name: name for name in (*headers, *recipe.get("beside", ())) if name in there}
            pins |= _following(recipe, wanted, there) | _companions(wanted, there)
            pins |= {n: pin for n, pin in _fitting(stay, wanted, there).items() if n not in pins}
            old = (*wanted.installed, *wanted.replaced, *_outdated(recipe, wanted))
            gone = [f"{name}-" for name in old if name not in pins]
            return (*pins.values(), *gone)
        lacks = f"there is no {', '.join(missing)}" if missing else f"no {', '.join(required)} of one version"
        why.append(f"{recipe['name']}: {lacks}")
    has = sorted({_upstream(v) for versions in there.values() for v in versions} - {""})
    signed = "Secure Boot is on, so the module must be signed; " if wanted.signed else ""
    raise ConvergeError(
        f"driver {wanted.version} ({wanted.flavor}) is not available: {signed}{'; '.join(why) or 'no recipe for it'}; "
        f"the repositories have {', '.join(has) or 'no driver'}; nothing was changed",
        remedy="add the repository that has it (non-free, restricted, NVIDIA's), or choose another version"
        + (", or set driver: {sign: mok}" if wanted.signed else ""),
    )


def _fitting(names: Iterable[str], wanted: Wanted, there: Available) -> dict[str, str]:
    """Return the pins of packages that have the wanted version, in any revision; companions are built separately."""
    fits = ((n, [v for v in there.get(n, ()) if _upstream(v) == wanted.version]) for n in names)
    return {name: f"{name}={versions[0]}" for name, versions in fits if versions}


def _companions(wanted: Wanted, there: Available) -> dict[str, str]:
    """Return the pins of what accompanies the driver. Only NVLSM has a version of its own: any fits."""
    pins: dict[str, str] = {}
    for key in wanted.companions:
        names = _data(wanted.branch)[key]
        fits = {name: name for name in names if name in there} if key == "nvlsm" else _fitting(names, wanted, there)
        if not fits and key in _COMPANIONS:
            raise ConvergeError(
                f"the repositories have no {_COMPANIONS[key].format(v=wanted.version)}; nothing was changed",
                remedy="add the repository that has it (NVIDIA's), choose a driver version that has one, or set "
                "driver.fabric_manager to absent",
            )
        pins |= dict([*fits.items()][:1])
    return pins


def _upstream(version: str) -> str:
    return driver_packages.version(Package(version=version, arch=""))


def judge(simulated: str, wanted: Wanted, packages: Mapping[str, Package]) -> tuple[str, ...]:
    """Return the packages that would be removed. Raises :class:`ConvergeError` if others would be changed, too.

    Name and version tell which packages are the driver's, because other tools of NVIDIA have similar names.
    """
    becomes = {name: package.version for name, package in driver_packages.members(packages).items()}
    other, goes, kernels = [], [], []
    for line in simulated.splitlines():
        if gone := _REMOVE.match(line):
            becomes.pop(gone[1], None)
            goes.append(gone[1])
            if not (_FOLLOWS.match(gone[1]) or (driver_packages.is_named(gone[1]) and _upstream(gone[2] or ""))):
                other.append(f"remove {gone[1]}")
        elif new := _INSTALL.match(line):
            if driver_packages.is_named(new[1]) and _upstream(new[3]):
                becomes[new[1]] = new[3]
            elif _is_new_kernel(new[1], new[3], wanted):
                kernels.append(f"{new[1]} {new[3]}")
            elif new[2] and not (_FOLLOWS.match(new[1]) or _BESIDE.match(new[1])):
                other.append(f"change {new[1]} to {new[3]}")
    if kernels:
        raise ConvergeError(
            f"the installation would also install another kernel ({', '.join(kernels[:4])}); nothing was changed: "
            "update the node and reboot first, or install the headers of the running kernel "
            f"({', '.join(wanted.headers(kernel) for kernel in wanted.kernels)})"
        )
    if other := [*dict.fromkeys(other)]:
        more = f" and {len(other) - 4} more" if len(other) > 4 else ""
        raise ConvergeError(
            f"the installation would also {', '.join(other[:4])}{more}; nothing was changed: do that yourself first"
        )
    wrong = [f"{name} {version}" for name, version in sorted(becomes.items()) if _upstream(version) != wanted.version]
    if wrong:
        raise ConvergeError(
            f"these packages would not be at {wanted.version}: {', '.join(wrong[:6])}; nothing was changed: purge them "
            "first"
        )
    return tuple(dict.fromkeys(goes))


def _is_new_kernel(name: str, version: str, wanted: Wanted) -> bool:
    """Tell whether a package belongs to a kernel, but not to one of those that get the module."""
    found = _KERNEL.fullmatch(name)
    return found is not None and not any(k == found[5] or k.startswith(f"{version}.") for k in wanted.kernels)
