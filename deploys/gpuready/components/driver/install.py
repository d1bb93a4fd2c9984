"""What an installation of the driver needs: version, flavor, and a node on which it is possible.

After an update by hand, new libraries do not match the loaded module. So gpuready changes packages and module
together. It reloads the module if no process uses a GPU. If the module cannot be unloaded, the node needs a reboot.
Sources: NVIDIA's Driver Installation Guide (open modules: possible from Turing on, default from branch 560, required on
Grace Hopper and Blackwell; "Kernel modules" for the streams of RHEL 8 and 9), dnf.modularity(7), kernel_lockdown(7),
apt_preferences(5), modules-load.d(5), the Fabric Manager's user guide
(it has the driver's version); cuda/data/gpus.yaml for NVLink 5; for precompiled RPM modules and their keys
NVIDIA/yum-packaging-precompiled-kmod (README.md, UEFI.md, #59 and #67, 2026-02).
"""

import re
from collections.abc import Iterable, Mapping

from gpuready.base import resources
from gpuready.base.versions import driver, numbers
from gpuready.components.driver import next_boot, recipes
from gpuready.components.driver import packages as driver_packages
from gpuready.components.driver.recipes import Wanted
from gpuready.contract import ledger
from gpuready.contract.component import Change, Disruption, NotComparable, Value
from gpuready.contract.package_manager import manager, refuse_to_install
from gpuready.cuda import tables
from gpuready.gpu.compat_host import devices_of, nvlink5
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Package

PIN = "/etc/apt/preferences.d/gpuready-nvidia-driver"
#: Which stream of NVIDIA's module is enabled; `dnf module enable` writes it, too.
STREAM = "/etc/dnf/modules.d/nvidia-driver.module"
#: Where NVIDIA's repository for dnf has module streams: RHEL and its relatives 8 and 9, Amazon Linux 2023.
_STREAMED = re.compile(r"(rhel|rocky|almalinux|ol|centos) [89](\..*)?|amzn 2023(\..*)?")
NOUVEAU = "/etc/modprobe.d/gpuready-nouveau.conf"
#: The boards of NVLink 5 control their switches by InfiniBand's management packets.
UMAD = "/etc/modules-load.d/gpuready-ib_umad.conf"
UMAD_MODULES = ("mlx5_ib", "ib_umad")
FILES = (PIN, STREAM, NOUVEAU, UMAD)
#: Holds the boot_id of the boot in which the module could not be reloaded.
STUCK = "/var/lib/gpuready/driver.reload"
RUNNING = "driver.running"
#: Names the certificate that gpuready queued for enrolment.
QUEUED = "/var/lib/gpuready/driver.mok"
MOK = "driver.mok"
#: The keys that an installation of packages closes.
HEAVY = frozenset(
    {"driver.version", "driver.module", "driver.nouveau"}
    | {"driver.fabric-manager", "driver.nvlsm", "driver.ib_umad", "driver.imex"}
)
#: Packages that contain or require a module of one flavor. They conflict with those of the other flavor.
_FLAVORED = re.compile(
    r"nvidia-(tesla-\d+-)?(open-)?kernel-(open-)?(dkms|source)|nvidia-open(-\d+)?|nvidia-driver-open"
    r"|nvidia-(driver|kernel-source|headless(-no-dkms)?|dkms)-\d+(-server)?(-open)?"
    r"|nvidia-(kernel-source|headless(-no-dkms)?|dkms)(-open)?"
    r"|kmod(-64k)?-nvidia(-open|-latest)?(-dkms|-\d.*)?"
)
#: What must be done so that the kernel trusts the key of a precompiled RPM module.
_TRUST = {
    "open": "RHEL's kernel trusts Red Hat's key, other kernels do not",
    "proprietary": "enrol NVIDIA's key first (mokutil --import NVIDIA2019-public_key.der, which is in its repository; "
    "then confirm it at the console)",
}


def expected(spec: NodeSpec, state: NodeState) -> dict[str, Value]:
    """Return the expected keys of an installation. Raises :class:`NotComparable`."""
    if spec.hardware.without_gpus:
        raise NotComparable(
            "driver.policy is install, but hardware.gpus is none: set driver: {policy: observe} if the host has no "
            "GPUs; otherwise set hardware.gpus (auto if GPUs come later)"
        )
    version = spec.driver.version or ""
    flavor = _flavor(spec, state)
    installed = driver_packages.versions(driver_packages.members(state.installed))
    if installed != [version] or actual(state)["driver.module"] != flavor:
        _refuse_architectures(state)
        _refuse(spec, state, flavor)
    want: dict[str, Value] = {"driver.version": version, "driver.module": flavor, "driver.nouveau": "kept away"}
    if not manager(state).dnf:
        want["driver.pin"] = version
    elif _STREAMED.fullmatch(f"{state.os.id} {state.os.version_id}"):
        members = driver_packages.members(state.installed)
        want["driver.stream"] = stream = _stream(spec, flavor, members)
        if stream.endswith("dkms") and installed != [version] and recipes.precompiled(wanted(spec, state)):
            want["driver.stream"] = f"{spec.driver.branch} or {stream}"  # apply finds out
    if _wants_fabric_manager(spec, state):
        want["driver.fabric-manager"] = version
    if (place := _nvlink5(spec, state)) == "baseboard":
        want |= {"driver.nvlsm": "installed", "driver.ib_umad": "loaded at boot"}
    elif place == "rack":
        want["driver.imex"] = version
    if spec.driver.sign and _must_enrol(state):
        want[MOK] = "enrolled"
    if state.driver.pci_gpus and not state.image:
        want[RUNNING] = version
    return want


def actual(state: NodeState) -> dict[str, Value]:
    members = driver_packages.members(state.installed)
    broken = [f"{name} half-configured" for name, package in members.items() if not package.configured]
    pin = re.search(r"^Pin: version (\S+)-\*$", state.text(PIN), re.M)
    stream = re.search(r"^stream *= *(\S+)$", state.text(STREAM), re.M)
    return {
        "driver.version": ", ".join([*driver_packages.versions(members), *broken]) or None,
        "driver.module": None if _lacks_module(members, state) else _module(members, state),
        "driver.pin": pin[1] if pin else None,
        "driver.stream": stream[1] if stream else None,
        "driver.nouveau": "kept away" if next_boot.nouveau_kept_away(state) else None,
        "driver.fabric-manager": _version_of(members, r"nvidia-fabric-?manager"),
        "driver.nvlsm": "installed" if _has_nvlsm(state) else None,
        "driver.ib_umad": "loaded at boot" if _loads_umad(state) else None,
        "driver.imex": _version_of(members, r"nvidia-imex"),
        MOK: state.boots.mok_state or None,
        RUNNING: state.driver.loaded or None,
    }


def _version_of(members: Mapping[str, Package], pattern: str) -> str | None:
    """Return the version of the first package whose name begins with ``pattern``."""
    return next((driver_packages.version(p) for name, p in members.items() if re.match(pattern, name)), None)


def _has_nvlsm(state: NodeState) -> bool:
    return any(p.configured for name, p in state.installed.items() if driver_packages.plain(name) == "nvlsm")


def _loads_umad(state: NodeState) -> bool:
    """Tell whether some file loads ib_umad at boot."""
    files = (f for path, f in state.files.items() if "/modules-load.d/" in path and not path.startswith("/var/"))
    return any(re.search(r"^[ \t]*ib_umad[ \t]*$", file.text, re.M) for file in files)


def wanted(spec: NodeSpec, state: NodeState) -> Wanted:
    flavor = _flavor(spec, state)
    members = driver_packages.members(state.installed)
    owners = [owner.name for owner in driver_packages.owners(state)]
    makers = [name.removeprefix("packages of ") for name in owners if name.startswith("packages of ")]
    carries = _carried(members, state)
    other = [name for name in members if carries.get(name, flavor) != flavor]
    return Wanted(
        os="rhel" if manager(state).dnf else state.os.id,
        version=spec.driver.version or "",
        flavor=flavor,
        kernels=tuple(sorted(_kernels(state))),
        maker=makers[0] if makers else "",
        installed=tuple(name for name in members if name not in other),
        replaced=tuple(other),
        prebuilt=tuple(
            sorted({driver_packages.plain(n) for n in state.installed if n.startswith("linux-modules-nvidia-")})
        ),
        release=state.os.version_id,
        signed=_signed_only(state) and not spec.driver.sign,
        fabric_manager=_wants_fabric_manager(spec, state),
        nvlsm=_nvlink5(spec, state) == "baseboard" and not _has_nvlsm(state),
        imex=_nvlink5(spec, state) == "rack",
    )


def _kernels(state: NodeState) -> set[str]:
    """Return the running kernel and those that may boot next, if their modules are on the node."""
    return {state.kernel, *next_boot.kernels(state)[0]} & set(state.boots.installed)


def _stream(spec: NodeSpec, flavor: str, packages: Iterable[str]) -> str:
    """Return NVIDIA's module stream of the branch that has these packages."""
    built = "" if any(map(recipes.is_precompiled, packages)) else "-dkms"
    return f"{spec.driver.branch}{'-open' if flavor == 'open' else built}"


def note(spec: NodeSpec, state: NodeState) -> str:
    """Return which precompiled RPM modules an installation prefers or, with Secure Boot, needs; empty for none."""
    want = wanted(spec, state)
    names = ", ".join(recipes.precompiled(want))
    if names and want.signed:
        return f"Secure Boot is on, so apply installs only {names}: {_TRUST[want.flavor]}"
    return f"apply installs {names}, if the repositories have it; otherwise DKMS builds the module" if names else ""


def kind(diff: tuple[Change, ...], state: NodeState) -> Disruption:
    """Return the class of disruption: scripts of the packages reload systemd, and a loaded module is replaced."""
    keys = {c.key for c in diff}
    if cannot_reload(state) and (RUNNING in keys or (state.driver.loaded and keys & HEAVY)):
        return Disruption.reboot
    if not keys & {*HEAVY, RUNNING}:
        return Disruption.none
    return Disruption.restart if state.driver.loaded else Disruption.recreate


def cannot_reload(state: NodeState) -> str:
    """Return why the new module needs a reboot; empty if a reload may do."""
    if state.boots.nouveau_bound:
        return f"nouveau holds {', '.join(state.boots.nouveau_bound)}"
    tried = state.files.get(STUCK)
    return "the module could not be reloaded in this boot" if tried and tried.text.strip() == state.boot_id else ""


def _wants_fabric_manager(spec: NodeSpec, state: NodeState) -> bool:
    there = actual(state)["driver.fabric-manager"] is not None
    place = _nvlink5(spec, state)
    if spec.driver.fabric_manager == "absent" or place == "rack":  # whose fabric manager runs on its switch trays
        return False
    return bool(state.driver.pci_switches) or there or spec.hardware.nvswitch is True or place == "baseboard"


def _nvlink5(spec: NodeSpec, state: NodeState) -> str:
    """Return where the NVLink 5 switches are, if the spec wants what they need."""
    unwanted = spec.driver.fabric_manager == "absent" or spec.hardware.nvswitch is False
    return "" if unwanted else nvlink5(state)


def _devices(state: NodeState) -> list[tables.Device]:
    """Return the GPUs on the bus that the tables know, each model once."""
    return sorted({*devices_of(state)} - {tables.Device()}, key=lambda each: each.model)


def _carried(members: Mapping[str, Package], state: NodeState) -> dict[str, str]:
    """Return the flavor of each package that fits only one; dnf's cuda-drivers requires the proprietary module."""
    found = {}
    for name, package in members.items():
        plain = driver_packages.plain(name)
        if _FLAVORED.fullmatch(plain):
            found[name] = "open" if "open" in plain.split("-") else "proprietary"
        elif manager(state).dnf and re.fullmatch(r"cuda-drivers(-\d+)?", plain) and _has_closed(package):
            found[name] = "proprietary"
    return found


def _has_closed(package: Package) -> bool:
    """Tell whether the package's branch has the proprietary module."""
    return not tables.open_only(numbers(driver_packages.version(package))[0])


def _lacks_module(members: Mapping[str, Package], state: NodeState) -> bool:
    """Tell whether a build failed with dnf, whose transaction succeeds then: the next kernel has no such module.

    If it is not certain which kernel boots next, none has one.
    """
    versions = driver_packages.versions(members)
    if not manager(state).dnf or state.boots.modules_unknown or len(versions) != 1:
        return False
    kernels, certain = next_boot.kernels(state)
    found = [state.boots.module(kernel) for kernel in kernels if kernel in state.boots.installed]
    lacks = [module is None or module.version != versions[0] for module in found]
    return bool(lacks) and (any(lacks) if certain else all(lacks))


def _module(members: Mapping[str, Package], state: NodeState) -> str | None:
    """Return the flavor of the installed packages; if their names do not tell, that of the running kernel's module."""
    if said := {*_carried(members, state).values()}:
        return "open" if "open" in said else "proprietary"
    there = state.boots.module(state.kernel) if members else None
    return ("open" if there.open else "proprietary") if there else None


def _flavor(spec: NodeSpec, state: NodeState) -> str:
    """Return the flavor to install: from the spec, else what the GPUs require, else what is installed."""
    if spec.driver.flavor != "auto":
        return spec.driver.flavor
    rules = {each.open_module for each in _devices(state)}
    if "never" in rules or "only" in rules:
        return "proprietary" if "never" in rules else "open"
    if tables.open_only(spec.driver.branch):
        return "open"
    if now := _module(driver_packages.members(state.installed), state):
        return now
    if not rules:
        raise NotComparable("driver.flavor is auto, but there is no GPU to choose by: set it to open or proprietary")
    return "open" if spec.driver.branch >= 560 else "proprietary"


def _signed_only(state: NodeState) -> bool:
    """Tell whether Secure Boot refuses a module built on the node. It does not if one that is signed already runs."""
    running = state.boots.module(state.kernel)
    built_here = not any(recipes.is_precompiled(driver_packages.plain(name)) for name in state.installed)
    return state.boots.signed_only and not (state.driver.loaded and running and running.signer and built_here)


def _must_enrol(state: NodeState) -> bool:
    """Tell whether DKMS's key must be enrolled: it signed the module, or it will. Ubuntu also has signed modules."""
    if not state.boots.enrols:
        return False
    found = [module for kernel in _kernels(state) if (module := state.boots.module(kernel))]
    return any(map(state.boots.signed_by_dkms, found)) if found else state.os.id != "ubuntu"


def _refuse(spec: NodeSpec, state: NodeState, flavor: str) -> None:
    """Raise :class:`NotComparable` if another driver, the GPUs or Secure Boot rule this installation out."""
    refuse_to_install(state, "driver.policy")
    if not manager(state).dnf and state.os.id not in ("debian", "ubuntu"):
        name = state.os.name or "another system"
        raise NotComparable(f"driver.policy: install with apt supports Debian and Ubuntu, but this is {name}")
    found = driver_packages.owners(state)
    if others := [owner for owner in found if not owner.name.startswith("packages")]:
        way = {"NVIDIA's .run installer": "nvidia-uninstall --silent first"}.get(others[0].name, "remove it first")
        raise NotComparable(
            f"{others[0].name} installed a driver here ({others[0].evidence}); gpuready does not mix drivers: {way}"
        )
    if len(found) > 1:
        said = " and ".join(f"{owner.name} ({owner.evidence})" for owner in found)
        raise NotComparable(f"{said} are mixed on this node: purge one of them first")
    if (pin := driver_packages.pinning(state)) and not driver_packages.pins(pin, spec.driver.version or ""):
        package = f"{driver_packages.PINNING}{pin}"
        raise NotComparable(
            f"{package} pins another driver than driver.version {spec.driver.version}: purge it, or replace it with "
            f"{driver_packages.PINNING}{spec.driver.version}"
        )
    _refuse_flavor(spec, state, flavor)
    if not _kernels(state):
        raise NotComparable(
            f"/lib/modules has no directory for the running kernel {state.kernel}, nor for one in /boot: install the "
            "kernel's packages and headers first"
        )
    if not _signed_only(state):
        return
    if not spec.driver.sign and state.os.id != "ubuntu" and not recipes.precompiled(wanted(spec, state)):
        raise NotComparable(
            "Secure Boot is on and would refuse a module that is built here: set driver: {sign: mok} and enrol DKMS's "
            "key at the machine's console, or turn Secure Boot off; nothing was installed"
        )
    if spec.driver.sign and not state.boots.enrols:
        raise NotComparable(
            "driver.sign is mok, but the kernel loads only signed modules without Secure Boot (lockdown or "
            "module.sig_enforce), so no key can be enrolled; nothing was installed"
        )


def _refuse_architectures(state: NodeState) -> None:
    """Raise :class:`NotComparable` for 32-bit packages of dnf: the recipes do not move them with the driver."""
    members = driver_packages.members(state.installed)
    old = [driver_packages.plain(n) for n, p in members.items() if p.arch == "i686" or n.endswith(":i686")]
    if old and manager(state).dnf:
        names = " ".join(f"{name}.i686" for name in old)
        raise NotComparable(f"gpuready does not install the driver's 32-bit packages: dnf remove {names} first")


def _refuse_flavor(spec: NodeSpec, state: NodeState, flavor: str) -> None:
    """Raise :class:`NotComparable` if the GPUs do not run this version or flavor, or the version lacks the flavor."""
    version = numbers(spec.driver.version or "0")
    for gpu in _devices(state):
        if lacks := tables.no_support(gpu.architecture, version[0]):
            raise NotComparable(f"driver {spec.driver.version} has {lacks}")
        if (first := gpu.oldest_driver) and first.sure and version < first.driver:
            text = f"driver {spec.driver.version} does not support {first.model} GPUs"
            raise NotComparable(f"{text}: the first version is {driver(first.driver)}")
        if (gpu.open_module, flavor) in (("only", "proprietary"), ("never", "open")):
            word = "the open module" if gpu.open_module == "only" else "the proprietary module"
            raise NotComparable(f"driver.flavor is {flavor}, but {gpu.model} GPUs need {word}")
    if flavor == "proprietary" and tables.open_only(version[0]):
        raise NotComparable(
            f"driver.flavor is proprietary, but driver {spec.driver.version} has only the open module: set it to open, "
            "or choose an older branch"
        )


def pin(spec: NodeSpec, state: NodeState, packages: Iterable[str]) -> ledger.Put | None:
    """Return the file that pins the version for apt, or enables the packages' stream for dnf; None without streams."""
    want = expected(spec, state)
    if "driver.pin" in want:
        return ledger.put(state, PIN, resources.document("driver/preferences", version=spec.driver.version))
    if "driver.stream" in want:
        stream = _stream(spec, str(want["driver.module"]), packages)
        return ledger.put(state, STREAM, resources.document("driver/stream", stream=stream))
    return None


def nouveau(state: NodeState) -> ledger.Put | None:
    """Return the file that blocks nouveau; None if something else blocks it already."""
    kept_away = next_boot.nouveau_kept_away(state)
    return None if kept_away else ledger.put(state, NOUVEAU, resources.document("driver/nouveau.conf"))


def umad(spec: NodeSpec, state: NodeState) -> ledger.Put | None:
    """Return the file that loads ib_umad at boot; None if the node does not need it, or something else loads it."""
    if _nvlink5(spec, state) != "baseboard" or _loads_umad(state):
        return None
    return ledger.put(state, UMAD, resources.document("driver/modules-load.conf", modules=UMAD_MODULES))


def modules(spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
    """Return the kernel modules that the fabric manager needs."""
    return UMAD_MODULES if _nvlink5(spec, state) == "baseboard" else ()
