"""The NVIDIA driver's packages: held, all of them, so that nothing moves a part of the driver under a loaded module.

Held is what dpkg calls it, which apt and unattended-upgrades respect; a list of exact names in apt.conf.d keeps the
latter from even trying, also when somebody takes a hold back. Packages that follow the kernel stay free: they demand
the driver's own version, and without them a new kernel would boot without a module. Which packages are the driver's
is said in driverset.py. Sources: apt-mark(8), unattended-upgrade(8) (a pattern is matched from the start of a name, so
it has to end with ``$``), apt.conf(5), nvidia-graphics-drivers and linux-restricted-modules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuready import resources
from gpuready.components import driverset, ledger
from gpuready.components.base import Applies, Change, Component, NotComparable, Step, Steps, Value
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Package, Unknown

#: Read after unattended-upgrades' own file, whose list it adds to.
UNATTENDED = "/etc/apt/apt.conf.d/99gpuready-driver"
#: "NAME hold" or "NAME free" of each package from before gpuready's first touch, as templates/driver-hold.sh.j2 has it.
BEFORE = f"{ledger.KEPT}/driver.original"
_KEPT_OUT = "driver.unattended-upgrades"


class Driver(Component):
    """A hold on every package of the driver, and their names in a file of apt.conf.d."""

    name = "driver"
    part = "driver"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.driver.policy == "observe":
            return Applies(False, "driver.policy: observe")
        if isinstance(state.packages, dict) and not driverset.members(state.packages):
            return Applies(False, "no package of the driver is installed: there is nothing to hold")
        return Applies(True, f"driver.policy: {spec.driver.policy}")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        members = _members(state)
        _refuse(members, state)
        return {f"driver.{name}.held": True for name in members} | {_KEPT_OUT: "kept out"}

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        members = _members(state)
        found: dict[str, Value] = {f"driver.{name}.held": package.held for name, package in members.items()}
        file = state.files.get(UNATTENDED)
        found[_KEPT_OUT] = None if file is None else "kept out" if file.data == _content(members) else "others kept out"
        return found | ledger.actual("driver", state, (UNATTENDED,))

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        if BEFORE not in state.files:
            return {}
        there = state.packages if isinstance(state.packages, dict) else {}
        rows = [line.split() for line in state.files[BEFORE].text.splitlines()]
        holds: dict[str, Value] = {
            f"driver.{row[0]}.held": row[1:] == ["hold"] for row in rows if row and row[0] in there
        }
        return holds | ledger.whole("driver", state, (UNATTENDED,))

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if any(c.key == _KEPT_OUT for c in diff) and not any(c.key.startswith("driver.files.") for c in diff):
            return ("from now on security updates of the driver wait for you, too: NVIDIA publishes them as bulletins",)
        return ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        held = {
            c.key.removeprefix("driver.").removesuffix(".held"): c.expected for c in diff if c.key.endswith(".held")
        }
        back = ledger.to_restore(diff, state)
        puts = []
        if any(c.key == _KEPT_OUT for c in diff):
            puts.append((UNATTENDED, state.sha256(UNATTENDED), _content(_members(state))))
        yield Step(
            "driver-hold",
            resources.script(
                "driver-hold",
                puts=puts,
                files=back,
                holds_before=BEFORE,
                hold=[name for name, wanted in held.items() if wanted],
                unhold=[name for name, wanted in held.items() if not wanted],
            ),
            timeout=300,
            summary="take back the holds" if back else "hold the driver's packages",
        )


def _members(state: NodeState) -> dict[str, Package]:
    """All installed packages of the driver; none where they cannot be read, which ``expected`` refuses."""
    return {} if isinstance(state.packages, Unknown) else driverset.members(state.packages)


def _refuse(members: Mapping[str, Package], state: NodeState) -> None:
    """A set that is not whole must not be nailed down."""
    if isinstance(state.packages, Unknown):
        raise NotComparable(state.packages.unknown)
    if "apt-get" not in state.have:
        raise NotComparable("driver.policy: only with apt so far; with dnf, `dnf versionlock add` holds packages")
    if broken := [name for name, package in members.items() if not package.configured]:
        raise NotComparable(f"{', '.join(broken)}: half-configured; dpkg --configure -a first, then they can be held")
    versions = sorted({driverset.version(package) for package in members.values()})
    if len(versions) > 1:
        raise NotComparable(
            f"the driver's packages are of versions {', '.join(versions)} (gpuready explain driver.packages); bring "
            "them to one first: held like this they would stay apart"
        )


def _content(members: Mapping[str, Package]) -> bytes:
    names = dict.fromkeys(re.sub(r"([.+])", r"\\\1", driverset.plain(name)) for name in members)
    return resources.document("driver-unattended.conf", names=names).encode()
