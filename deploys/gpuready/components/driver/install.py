"""What the driver's installation asks of a node: version, the flavor that its GPUs take, and what stands in the way.

Libraries of another version under a loaded module are what an update by hand leaves behind, so packages and module go
together: where nobody uses a GPU the module is reloaded at once, and where it cannot be unloaded it takes a reboot.
Sources: NVIDIA's Driver Installation Guide (open modules from Turing on, by default from branch 560, alone for
Blackwell), kernel_lockdown(7), apt_preferences(5), the Fabric Manager's user guide (its version is the driver's).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuready.components.driver import next_boot
from gpuready.components.driver import packages as driverset
from gpuready.components.driver.recipes import Wanted
from gpuready.core import ledger, resources
from gpuready.core.component import Change, Disruption, NotComparable, Value
from gpuready.cuda import tables
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Package

PIN = "/etc/apt/preferences.d/gpuready-nvidia-driver"
NOUVEAU = "/etc/modprobe.d/gpuready-nouveau.conf"
FILES = (PIN, NOUVEAU)
#: The boot in which the module could not be reloaded, by its boot_id.
STUCK = "/var/lib/gpuready/driver.reload"
RUNNING = "driver.running"
#: Keys that a transaction of packages closes.
HEAVY = frozenset({"driver.version", "driver.module", "driver.fabric-manager", "driver.nouveau"})
#: Packages that bring a module of one flavor, or demand it, and conflict with those of the other one.
_FLAVORED = re.compile(
    r"nvidia-(tesla-\d+-)?(open-)?kernel-(open-)?(dkms|source)|nvidia-open(-\d+)?|nvidia-driver-open"
    r"|nvidia-(driver|kernel-source|headless(-no-dkms)?|dkms)-\d+(-server)?(-open)?"
    r"|nvidia-(kernel-source|headless(-no-dkms)?|dkms)(-open)?"
)
#: Of the recipes, those whose module comes signed; elsewhere it is built on the node.
_SIGNED_ON = "ubuntu"


def versions(state: NodeState) -> tuple[str, ...]:
    """The versions of the driver's packages here; one, if all is well."""
    packages = state.packages if isinstance(state.packages, dict) else {}
    return tuple(sorted({driverset.version(package) for package in driverset.members(packages).values()}))


def expected(spec: NodeSpec, state: NodeState) -> dict[str, Value]:
    """The keys of an installation; raises :class:`NotComparable`."""
    if spec.hardware.gpus == "none":
        raise NotComparable(
            "driver.policy: install, and hardware.gpus: none: say driver: {policy: observe} for a host without GPUs, "
            "or how many it has (auto, where they come later)"
        )
    version = spec.driver.version or ""
    flavor = _flavor(spec, state)
    if versions(state) != (version,) or actual(state)["driver.module"] != flavor:
        _refuse(spec, state, flavor)
    want: dict[str, Value] = {"driver.version": version, "driver.module": flavor, "driver.pin": version}
    want["driver.nouveau"] = "kept away"
    if _wants_fabric_manager(spec, state):
        want["driver.fabric-manager"] = version
    if state.driver.pci_gpus:
        want[RUNNING] = version
    return want


def actual(state: NodeState) -> dict[str, Value]:
    """What those keys are now."""
    packages = state.packages if isinstance(state.packages, dict) else {}
    members = driverset.members(packages)
    broken = [name for name, package in members.items() if not package.configured]
    managers = [p for name, p in members.items() if re.match(r"nvidia-fabric-?manager", name)]
    pin = re.search(r"^Pin: version (\S+)-\*$", state.files[PIN].text, re.M) if PIN in state.files else None
    return {
        "driver.version": ", ".join([*versions(state), *(f"{name} half-configured" for name in broken)]) or None,
        "driver.module": _module(members, state),
        "driver.pin": pin[1] if pin else None,
        "driver.nouveau": "kept away" if next_boot.nouveau_kept_away(state) else None,
        "driver.fabric-manager": driverset.version(managers[0]) if managers else None,
        RUNNING: state.driver.loaded or None,
    }


def wanted(spec: NodeSpec, state: NodeState) -> Wanted:
    """What to ask apt for."""
    packages = state.packages if isinstance(state.packages, dict) else {}
    flavor = _flavor(spec, state)
    members = driverset.members(packages)
    said = [owner.name for owner in driverset.owners(state)]
    makers = [name.removeprefix("packages of ") for name in said if name.startswith("packages of ")]
    other = [name for name in members if _carries(name) not in ("", flavor)]
    return Wanted(
        os=state.os.id,
        version=spec.driver.version or "",
        flavor=flavor,
        kernels=tuple(sorted(_kernels(state))),
        maker=makers[0] if makers else "",
        installed=tuple(name for name in members if name not in other),
        replaced=tuple(other),
        prebuilt=tuple(sorted({driverset.plain(n) for n in packages if n.startswith("linux-modules-nvidia-")})),
        release=state.os.version_id,
        signed=_signed_only(state),
        fabric_manager=_wants_fabric_manager(spec, state),
    )


def _kernels(state: NodeState) -> set[str]:
    """The kernels that run or boot next, of those whose modules are on the node."""
    return {state.kernel, *next_boot.kernels(state)[0]} & set(state.boots.installed)


def kind(diff: tuple[Change, ...], state: NodeState) -> Disruption:
    """The class of closing that part: the packages' scripts reload systemd, a loaded module is replaced."""
    keys = {c.key for c in diff}
    if cannot_reload(state) and (RUNNING in keys or (state.driver.loaded and keys & HEAVY)):
        return Disruption.reboot
    if not keys & {*HEAVY, RUNNING}:
        return Disruption.none
    return Disruption.restart if state.driver.loaded else Disruption.recreate


def cannot_reload(state: NodeState) -> str:
    """Why only a reboot brings the new module, or nothing."""
    if state.boots.nouveau_bound:
        return f"nouveau holds {', '.join(state.boots.nouveau_bound)}"
    tried = state.files.get(STUCK)
    return "the module could not be reloaded in this boot" if tried and tried.text.strip() == state.boot_id else ""


def _wants_fabric_manager(spec: NodeSpec, state: NodeState) -> bool:
    there = actual(state)["driver.fabric-manager"] is not None
    return spec.driver.fabric_manager == "match" and (
        bool(state.driver.pci_switches) or there or spec.hardware.nvswitch is True
    )


def _architectures(state: NodeState) -> list[str]:
    ids = [line.split()[2] for line in state.driver.pci_gpus if len(line.split()) > 2]
    found = {tables.architecture(int(each, 16)) for each in ids if re.fullmatch(r"0x[0-9a-f]{4}", each)}
    return sorted(found - {""})


def _carries(name: str) -> str:
    """The flavor that a package of that name belongs to, or nothing."""
    name = driverset.plain(name)
    return ("open" if "open" in name.split("-") else "proprietary") if _FLAVORED.fullmatch(name) else ""


def _module(members: Mapping[str, Package], state: NodeState) -> str | None:
    """The flavor of the packages; where none of them says it, of the module that the running kernel has."""
    if said := {_carries(name) for name in members} - {""}:
        return "open" if "open" in said else "proprietary"
    there = state.boots.module(state.kernel) if members else None
    return ("open" if there.open else "proprietary") if there else None


def _flavor(spec: NodeSpec, state: NodeState) -> str:
    """The module's flavor: as the spec says, else what the GPUs take, else what is there."""
    if spec.driver.flavor != "auto":
        return spec.driver.flavor
    rules = {tables.open_module(each) for each in _architectures(state)}
    if "never" in rules or "only" in rules:
        return "proprietary" if "never" in rules else "open"
    if now := actual(state)["driver.module"]:
        return str(now)
    if not rules:
        raise NotComparable("driver.flavor: auto, and no GPU is seen by which to choose: say open or proprietary")
    return "open" if int((spec.driver.version or "0").partition(".")[0]) >= 560 else "proprietary"


def _signed_only(state: NodeState) -> bool:
    """Would Secure Boot refuse a module that is built here? Not one whose signer's module runs already."""
    boots = state.boots
    enforced = (boots.secure_boot and not boots.shim_insecure) or boots.lockdown in ("integrity", "confidentiality")
    running = boots.module(state.kernel)
    return bool((enforced or boots.sig_enforce) and not (state.driver.loaded and running and running.signer))


def _refuse(spec: NodeSpec, state: NodeState, flavor: str) -> None:
    """Before anything is installed: whose driver is here, what the GPUs and Secure Boot take."""
    if state.os.id not in ("debian", "ubuntu"):
        raise NotComparable(
            f"driver.policy: install knows Debian and Ubuntu, this is {state.os.name or 'another system'}"
        )
    found = driverset.owners(state)
    if others := [owner for owner in found if not owner.name.startswith("packages")]:
        way = {"NVIDIA's .run installer": "nvidia-uninstall --silent first"}.get(others[0].name, "take that away first")
        raise NotComparable(
            f"{others[0].name} installed a driver here ({others[0].evidence}); gpuready does not mix drivers: {way}"
        )
    if len(found) > 1:
        said = " and ".join(f"{owner.name} ({owner.evidence})" for owner in found)
        raise NotComparable(f"{said} are mixed here: purge those of one of them first")
    branch = int((spec.driver.version or "0").partition(".")[0])
    for architecture in _architectures(state):
        if lacks := tables.no_support(architecture, branch):
            raise NotComparable(f"driver {spec.driver.version} has {lacks}")
        rule = tables.open_module(architecture)
        if (rule, flavor) in (("only", "proprietary"), ("never", "open")):
            word = "the open module alone" if rule == "only" else "the proprietary module alone"
            raise NotComparable(f"driver.flavor: {flavor}, and {architecture} GPUs take {word}")
    if not _kernels(state):
        raise NotComparable(
            f"there is no /lib/modules/{state.kernel} for the kernel that runs, nor for one in /boot, so no module can "
            "be installed or built: install the kernel's packages and headers first"
        )
    if _signed_only(state) and state.os.id != _SIGNED_ON:
        raise NotComparable(
            "Secure Boot is on, and a module that is built here would be refused: enrol DKMS's key (mokutil --import, "
            "then the console) with a driver installed by hand, or switch Secure Boot off; nothing was installed"
        )


def pin(spec: NodeSpec, state: NodeState) -> ledger.Put:
    """The file by which apt takes no other version."""
    return ledger.put(state, PIN, resources.document("driver/preferences", version=spec.driver.version))


def nouveau(state: NodeState) -> ledger.Put | None:
    """The file that keeps nouveau away; None if something else does."""
    kept_away = next_boot.nouveau_kept_away(state)
    return None if kept_away else ledger.put(state, NOUVEAU, resources.document("driver/nouveau.conf"))
