"""The node's package manager: apt, or dnf 4. What they do differently is here, or in the scripts. Pure.

apt holds packages, or dnf's plugin versionlock with its list. Each line is NAME-EPOCH:VERSION-RELEASE.ARCH, where ARCH
may be ``*``. A line that starts with ``!`` excludes a version and holds nothing.
Sources: apt-mark(8), dnf-versionlock(8); os-release(5), and the ID of each distribution in its own file.
"""

import configparser
import re
from dataclasses import dataclass

from gpuready.contract.component import NotComparable
from gpuready.model.state import NodeState, Package

LOCKS = "/etc/dnf/plugins/versionlock.list"
PLUGIN = "/etc/dnf/plugins/versionlock.conf"
#: ID of os-release -> the oldest release on which gpuready installs with dnf 4.
DNF_RELEASES = {
    "rhel": 8, "rocky": 8, "almalinux": 8, "ol": 8, "centos": 8, "fedora": 40, "amzn": 2023,
}  # fmt: skip


@dataclass(frozen=True)
class PackageManager:
    """apt. ``dnf``: for scripts, which have a part for each package manager."""

    dnf: bool = False

    def held(self, name: str, package: Package, state: NodeState) -> bool:
        """Tell whether an installed package is held at its version."""
        return package.held

    def refuse_to_hold(self, state: NodeState) -> None:
        """Raise :class:`NotComparable` if nothing on this node can hold packages."""
        if "apt-get" not in state.have:
            raise NotComparable("gpuready can hold packages with apt and dnf 4 only")


class Dnf(PackageManager):
    """dnf 4."""

    def held(self, name: str, package: Package, state: NodeState) -> bool:
        if LOCKS not in state.files:
            return package.held
        wanted = re.compile(rf"{re.escape(name)}-(?:\d+:)?{re.escape(package.version)}(?:\.(?:\*|\w+))?")
        return any(wanted.fullmatch(line.strip()) for line in state.text(LOCKS).splitlines())

    def refuse_to_hold(self, state: NodeState) -> None:
        if "dnf5" in state.have:
            raise NotComparable("gpuready cannot hold packages with dnf 5; `dnf versionlock add` holds them by hand")
        if PLUGIN not in state.files:
            raise NotComparable(
                "dnf holds packages with its plugin versionlock: install python3-dnf-plugin-versionlock first"
            )
        if not _reads_locks(state.text(PLUGIN)):
            raise NotComparable(
                f"dnf's plugin versionlock is off, or has another list: set enabled = 1 and locklist = {LOCKS} "
                f"in {PLUGIN}"
            )


def _reads_locks(conf: str) -> bool:
    """Tell whether the plugin is on, and reads the list that gpuready writes."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(conf)
        return parser.getboolean("main", "enabled", fallback=True) and (
            parser.get("main", "locklist", fallback=LOCKS) == LOCKS
        )
    except (configparser.Error, ValueError):
        return False


APT, DNF = PackageManager(), Dnf(dnf=True)


def manager(state: NodeState) -> PackageManager:
    """Return dnf where the distribution installs with it, or where there is no apt; otherwise apt.

    Rocky with apt from EPEL is still Rocky. ``by_dnf`` of lib/reader.sh.j2 says the same on the node.
    """
    ours = {state.os.id, *state.os.id_like} & DNF_RELEASES.keys()
    return DNF if "dnf" in state.have and (ours or "apt-get" not in state.have) else APT


def by_apt(state: NodeState) -> bool:
    """Tell whether gpuready can install packages with apt on this node."""
    return "apt-get" in state.have and not manager(state).dnf


def refuse_to_install(state: NodeState) -> None:
    """Raise :class:`NotComparable` if gpuready cannot install packages on this node."""
    if by_apt(state):
        return
    name = state.os.name or "this node"
    if "zypper" in state.have or {"suse", "sles", "opensuse"} & {state.os.id, *state.os.id_like}:
        raise NotComparable(f"{name}: gpuready does not install packages on SUSE")
    if "dnf" not in state.have:
        raise NotComparable(f"{name} has neither apt nor dnf: gpuready installs packages only with these")
    if "dnf5" in state.have:
        raise NotComparable(f"{name} has dnf 5: gpuready installs packages only with apt and dnf 4")
    oldest = DNF_RELEASES.get(state.os.id)
    release = re.match(r"\d{1,6}", state.os.version_id)
    if oldest is None or not release or int(release[0]) < oldest:
        known = ", ".join(f"{id} {oldest}" for id, oldest in DNF_RELEASES.items())
        raise NotComparable(f"gpuready does not support {name}; with dnf, it supports {known}, or newer")
