"""Which of the driver's packages nothing moves: apt's holds, and the locks of dnf's plugin versionlock. Pure.

Sources: dpkg(1), apt-mark(8), dnf-versionlock(8) and its list (NAME-EPOCH:VERSION-RELEASE and an architecture or ``*``;
a line that begins with ``!`` keeps a version out and holds nothing). dnf exits 0 when it locked nothing.
"""

from __future__ import annotations

import re

from gpuready.core.component import NotComparable
from gpuready.state.model import NodeState, Package

LOCKS = "/etc/dnf/plugins/versionlock.list"
PLUGIN = "/etc/dnf/plugins/versionlock.conf"


def by_apt(state: NodeState) -> bool:
    """Does apt hold here (else dnf, if anything)?"""
    return "apt-get" in state.have


def held(name: str, package: Package, state: NodeState) -> bool:
    """Is that package held?"""
    if by_apt(state) or LOCKS not in state.files:
        return package.held
    plain = name.partition(":")[0]
    wanted = re.compile(rf"{re.escape(plain)}-(?:\d+:)?{re.escape(package.version)}(?:\.(?:\*|\w+))?")
    return any(wanted.fullmatch(line.strip()) for line in state.files[LOCKS].text.splitlines())


def refuse(state: NodeState) -> None:
    """Raise :class:`NotComparable` where nothing here can hold a package."""
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
            "dnf holds packages by its plugin versionlock: install python3-dnf-plugin-versionlock first"
        )
