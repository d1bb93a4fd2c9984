"""Which packages are held: by apt, or by dnf's versionlock plugin. Pure.

dnf exits 0 even if it locked nothing, so its list counts. Each line is NAME-EPOCH:VERSION-RELEASE.ARCH, where ARCH may
be ``*``. A line that starts with ``!`` excludes a version and holds nothing.
Sources: dpkg(1), apt-mark(8), dnf-versionlock(8).
"""

from __future__ import annotations

import re

from gpuready.core.component import NotComparable
from gpuready.state.model import NodeState, Package

LOCKS = "/etc/dnf/plugins/versionlock.list"
PLUGIN = "/etc/dnf/plugins/versionlock.conf"


def by_apt(state: NodeState) -> bool:
    """Tell whether apt holds packages on this node. Otherwise only dnf can."""
    return "apt-get" in state.have


def held(name: str, package: Package, state: NodeState) -> bool:
    if by_apt(state) or LOCKS not in state.files:
        return package.held
    plain = name.partition(":")[0]
    wanted = re.compile(rf"{re.escape(plain)}-(?:\d+:)?{re.escape(package.version)}(?:\.(?:\*|\w+))?")
    return any(wanted.fullmatch(line.strip()) for line in state.files[LOCKS].text.splitlines())


def refuse(state: NodeState) -> None:
    """Raise :class:`NotComparable` if nothing on this node can hold packages."""
    if by_apt(state):
        return
    if "dnf" not in state.have:
        raise NotComparable("driver.policy: gpuready can hold packages with apt and dnf 4 only")
    if "dnf5" in state.have:
        raise NotComparable(
            "driver.policy: gpuready cannot hold packages with dnf 5; `dnf versionlock add` holds them by hand"
        )
    if PLUGIN not in state.files:
        raise NotComparable(
            "dnf holds packages with its plugin versionlock: install python3-dnf-plugin-versionlock first"
        )
