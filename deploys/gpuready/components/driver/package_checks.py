"""Checks of the driver's packages: one source, one version, and held.

Sources: dpkg's Maintainer and rpm's Vendor, nvidia-installer's README, unattended-upgrade(8).
"""

from __future__ import annotations

from gpuready.components.driver import holds, packages
from gpuready.core import need
from gpuready.core.check import Check, EndCheck, Level, Verdict, fail, passed, skip, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Package, Unknown

_RUNFILE = "NVIDIA's .run installer"


def _owner(spec: NodeSpec, state: NodeState) -> Verdict:
    if state.have:
        need.value(state.packages)
    found = packages.owners(state)
    said = "; ".join(f"{owner.name} ({owner.evidence})" for owner in found)
    if len(found) > 1:
        return fail(f"{len(found)} drivers on one node: {said}", _way_out([owner.name for owner in found]))
    if found:
        return passed(f"the driver came from {found[0].name}", said)
    runs = state.driver.loaded
    return skip("the source of the running driver is unknown" if runs else "no driver")


def _way_out(names: list[str]) -> str:
    if _RUNFILE in names:
        return "keep one: remove the installer's driver with nvidia-uninstall --silent, then reinstall the packages"
    if len(names) == 2 and all(name.startswith("packages") for name in names):
        return "keep one: purge the packages of the other, and use only one repository for them"
    return "keep one: purge the packages (apt-get purge, dnf remove), or unmount what covers them"


def _members(state: NodeState) -> dict[str, Package]:
    """Return the driver's packages. If there are none, the check is skipped."""
    if isinstance(state.packages, Unknown) and not state.have:
        raise EndCheck(skip("no packages on this node"))
    if not (found := packages.members(need.value(state.packages))):
        raise EndCheck(skip("no packages of the driver"))
    return found


def _set(spec: NodeSpec, state: NodeState) -> Verdict:
    members = _members(state)
    versions: dict[str, list[str]] = {}
    for name, package in members.items():
        versions.setdefault(packages.version(package), []).append(name)
    broken = [name for name, package in members.items() if not package.configured]
    if broken:
        return fail(f"half-configured: {', '.join(broken[:6])}", "dpkg --configure -a, then apt-get -f install")
    if len(versions) > 1:
        fewest = sorted(versions.items(), key=lambda item: len(item[1]))
        said = "; ".join(f"{version}: {', '.join(names[:6])}" for version, names in fewest)
        return fail(f"the driver's packages have {len(versions)} versions", evidence=said)
    (version,) = versions
    return passed(f"{len(members)} packages, all at {version}")


def _held(spec: NodeSpec, state: NodeState) -> Verdict:
    members = _members(state)
    loose = [name for name, package in members.items() if not holds.held(name, package, state)]
    if not loose:
        return passed(f"all {len(members)} packages of the driver are held")
    said = f"{', '.join(loose[:6])}{' and more' if len(loose) > 6 else ''} {'are' if len(loose) > 1 else 'is'} not held"
    if spec.driver.policy != "observe":
        return fail(said)
    if "unattended-upgrades" in state.packages:
        return warn(f"unattended-upgrades may change the driver while its module is loaded: {said}")
    return skip("driver.policy: observe")


CHECKS = (
    Check(
        "driver.owner",
        Level.config,
        "Two drivers on one node (packages and the .run installer, the distribution's packages and NVIDIA's, packages "
        "and a mounted driver) overwrite each other's files, and each update breaks the other's libraries.",
        "dpkg -S $(readlink -f /usr/bin/nvidia-smi); command -v nvidia-uninstall; findmnt | grep nvidia",
        "keep one driver, and uninstall the other with its own tool",
        _owner,
    ),
    Check(
        "driver.packages",
        Level.config,
        "The driver's packages have different versions, so libraries, tools and module do not match: an update was "
        "interrupted, some packages were held, or two repositories were used.",
        "dpkg -l '*nvidia*' 'libcuda*' | grep ^.i; dpkg --audit",
        "install all of them at one full version in one transaction: apt-get install PACKAGE=VERSION ...",
        _set,
    ),
    Check(
        "driver.held",
        Level.config,
        "An unattended upgrade replaces the driver's libraries while the old module stays loaded. Then NVML fails with "
        "'Driver/library version mismatch', and no new container gets a GPU until a reboot.",
        "apt-mark showhold; unattended-upgrade --dry-run --debug; dnf versionlock list",
        "driver: {policy: hold} in the spec, then apply",
        _held,
    ),
)
