"""The NVIDIA driver's packages: held, all of them, so that nothing moves a part of the driver under a loaded module.

Held is what dpkg calls it, which apt and unattended-upgrades respect; a list of exact names in apt.conf.d keeps the
latter from even trying, also when somebody takes a hold back. Packages that follow the kernel stay free: they demand
the driver's own version, and without them a new kernel would boot without a module. packages.py says which packages are
the driver's, install.py what an installation asks of a node, and recipes.py what it is made of. Sources: apt-mark(8),
unattended-upgrade(8) (a pattern is matched from the start of a name, so it has to end with ``$``), apt.conf(5),
nvidia-graphics-drivers and linux-restricted-modules.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass

from gpuready.components.driver import holds as driverholds
from gpuready.components.driver import install, packages, recipes
from gpuready.core import ignored_containers, ledger, resources
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable, Value
from gpuready.core.step import Reply, Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.containers import gpu_containers
from gpuready.state.model import NodeState, Package, Unknown

#: Read after unattended-upgrades' own file, whose list it adds to.
UNATTENDED = "/etc/apt/apt.conf.d/99gpuready-driver"
#: "NAME hold" or "NAME free" of each package from before gpuready's first touch, as templates/driver/hold.sh.j2 has it.
BEFORE = f"{ledger.KEPT}/driver.original"
FILES = (UNATTENDED, *install.FILES)
_KEPT_OUT = "driver.unattended-upgrades"


class Driver(Component):
    """A hold on every package of the driver, their names in a file of apt.conf.d; and, if asked for, its version."""

    name = "driver"
    part = "driver"
    renews = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        policy = spec.driver.policy
        if policy == "observe":
            return Applies(False, "driver.policy: observe")
        if policy == "hold" and isinstance(state.packages, dict) and not packages.members(state.packages):
            return Applies(False, "no package of the driver is installed: there is nothing to hold")
        return Applies(True, f"driver.policy: {policy}")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        if isinstance(state.packages, Unknown):
            raise NotComparable(state.packages.unknown)
        driverholds.refuse(state)
        apt = driverholds.by_apt(state)
        if spec.driver.policy == "install" and not apt:
            raise NotComparable("driver.policy: install knows apt alone so far; hold works with dnf, too")
        want = install.expected(spec, state) if spec.driver.policy == "install" else {}
        members = _members(state)
        if want and want["driver.version"] != install.actual(state)["driver.version"]:
            return want | {_KEPT_OUT: "kept out"}  # which packages are to be held is not known before they are there
        _refuse(members)
        holds: dict[str, Value] = {f"driver.{name}.held": True for name in members}
        return want | holds | ({_KEPT_OUT: "kept out"} if apt else {})

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        members = _members(state)
        found: dict[str, Value] = {f"driver.{n}.held": driverholds.held(n, p, state) for n, p in members.items()}
        file = state.files.get(UNATTENDED)
        found[_KEPT_OUT] = None if file is None else "kept out" if file.data == _content(members) else "others kept out"
        return found | install.actual(state) | ledger.actual("driver", state, FILES)

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        there = state.packages if isinstance(state.packages, dict) else {}
        rows = [line.split() for line in state.files[BEFORE].text.splitlines()] if BEFORE in state.files else []
        holds: dict[str, Value] = {
            f"driver.{row[0]}.held": row[1:] == ["hold"] for row in rows if row and row[0] in there
        }
        return holds | ledger.whole("driver", state, FILES)

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return install.kind(diff, state)

    def groups(self, diff: tuple[Change, ...]) -> tuple[tuple[Change, ...], ...]:
        last = tuple(c for c in diff if c.key == install.RUNNING)
        return tuple(group for group in (tuple(c for c in diff if c not in last), last) if group)

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        return gpu_containers(state, "nvidia") if install.kind(diff, state) >= Disruption.recreate else ()

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        said = []
        keys = {c.key for c in diff}
        if any(key.startswith("driver.files.") for key in keys):
            return ("the driver itself stays as it is",)
        if _KEPT_OUT in keys:
            said.append(
                "from now on security updates of the driver wait for you, too: NVIDIA publishes them as bulletins"
            )
        if "driver.version" in keys:
            said.append(f"only apply checks whether the repositories have {spec.driver.version}")
        if install.RUNNING in keys and (why := install.cannot_reload(state)):
            said.append(f"the module takes a reboot: {why}")
        elif install.RUNNING in keys and state.driver.loaded:
            said.append(
                "the module is reloaded if nobody uses a GPU and it can be unloaded, else the node takes a reboot"
            )
        return tuple(said)

    def remarks(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if spec.driver.policy != "observe":
            return self.in_vain(spec, state)
        if not self.original(spec, state):
            return ()
        return ("driver.policy is observe, but gpuready's holds and pins stay: gpuready remove --only driver",)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        wanted = {c.key: c.expected for c in diff}
        back = ledger.to_restore(diff, state)
        if not back and install.HEAVY & set(wanted):
            members = yield from _install(spec, state)
            yield _hold(state, [_unattended(state, members)], members)
        elif back or set(wanted) - {install.RUNNING}:
            held = {key.removeprefix("driver.").removesuffix(".held"): v for key, v in wanted.items() if ".held" in key}
            puts = [_unattended(state, _members(state))] if wanted.get(_KEPT_OUT) else []
            puts += [install.pin(spec, state)] if wanted.get("driver.pin") else []
            yield _hold(state, puts, [n for n, v in held.items() if v], [n for n, v in held.items() if not v], back)
        if install.RUNNING in wanted and not install.cannot_reload(state):
            script = Load(spec.driver.version or "", ignored_containers.words(spec))
            yield Step("driver-load", script, timeout=600, summary="load the module")


@dataclass(frozen=True)
class Load(Script):
    """Load the module of the packages in place of the one that runs; ``stuck`` records that this takes a reboot."""

    template = "driver/load"
    version: str
    work: tuple[str, ...]
    stuck: str = install.STUCK


@dataclass(frozen=True)
class ListAvailable(Script):
    """List what the repositories have of packages, and the kernels for which a module can be built."""

    template = "driver/available"
    packages: tuple[str, ...]
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Simulate(Script):
    """Ask apt what it would do for ``pins`` (NAME=VERSION) with that file of preferences."""

    template = "driver/simulate"
    pins: tuple[str, ...]
    preferences: bytes


@dataclass(frozen=True)
class InstallPackages(Script):
    """Install ``pins``, if apt would still do what was judged (``judged``: its simulation).

    ``packages`` are those of the driver from before; ``nouveau`` and ``fabric_manager`` say whether nouveau must go and
    the fabric manager must run.
    """

    template = "driver/install"
    pins: tuple[str, ...]
    preferences: bytes
    judged: str
    packages: tuple[str, ...]
    version: str
    kernels: tuple[str, ...]
    kind: str
    work: tuple[str, ...]
    puts: tuple[ledger.Put, ...]
    nouveau: bool
    fabric_manager: bool
    holds_before: str = BEFORE
    apt: bool = True


@dataclass(frozen=True)
class Hold(Script):
    """Hold packages or let them go, by apt or by dnf, and write or put back the files beside that."""

    template = "driver/hold"
    hold: tuple[str, ...]
    unhold: tuple[str, ...]
    puts: tuple[ledger.Put, ...]
    files: tuple[ledger.Putback, ...]
    apt: bool
    holds_before: str = BEFORE


def _install(spec: NodeSpec, state: NodeState) -> Generator[Step, Reply, dict[str, Package]]:
    """Install in one transaction, after its simulation was judged; return the driver's packages of then."""
    wanted = install.wanted(spec, state)
    available = ListAvailable(recipes.names(wanted), wanted.kernels)
    told = yield Step("driver-available", available, timeout=1200, summary="what do the repositories have?")
    built_for = [line.removeprefix("headers ") for line in told.out.splitlines() if line.startswith("headers ")]
    pins = recipes.choose(wanted, recipes.available(told.out), built_for)
    pin, nouveau = install.pin(spec, state), install.nouveau(state)
    simulate = Simulate(pins, pin.content)
    told = yield Step("driver-simulate", simulate, timeout=300, survives=False, summary="what would apt do?")
    gone = recipes.judge(told.out, wanted, _members(state))
    script = InstallPackages(
        pins=pins,
        preferences=pin.content,
        judged=told.out,
        packages=tuple(_members(state)),
        version=wanted.version,
        kernels=wanted.kernels,
        kind="restart" if state.driver.loaded else "recreate",
        work=ignored_containers.words(spec),
        puts=(pin, nouveau) if nouveau else (pin,),
        nouveau=nouveau is not None,
        fabric_manager=wanted.fabric_manager,
    )
    summary = f"install driver {wanted.version}" + (f", remove {', '.join(gone)}" if gone else "")
    done = yield Step("driver-install", script, timeout=3600, summary=summary)
    rows = (line.split("\t") for line in done.out.splitlines())
    return packages.members({row[0]: Package(version=row[1], arch="") for row in rows if len(row) == 2})


def _hold(
    state: NodeState,
    puts: Iterable[ledger.Put],
    hold: Iterable[str],
    unhold: Iterable[str] = (),
    back: tuple[ledger.Putback, ...] = (),
) -> Step:
    """Holds, and the files beside them."""
    script = Hold(tuple(hold), tuple(unhold), tuple(puts), back, driverholds.by_apt(state))
    summary = "take back the holds" if back else "hold the driver's packages"
    return Step("driver-hold", script, timeout=300, summary=summary)


def _unattended(state: NodeState, members: Mapping[str, Package]) -> ledger.Put:
    """The file for unattended-upgrades with these names."""
    return ledger.put(state, UNATTENDED, _content(members))


def _members(state: NodeState) -> dict[str, Package]:
    """All installed packages of the driver; none where they cannot be read, which ``expected`` refuses."""
    return {} if isinstance(state.packages, Unknown) else packages.members(state.packages)


def _refuse(members: Mapping[str, Package]) -> None:
    """Raise :class:`NotComparable` for packages that are half-configured or of several versions."""
    if broken := [name for name, package in members.items() if not package.configured]:
        raise NotComparable(f"{', '.join(broken)}: half-configured; dpkg --configure -a first, then they can be held")
    versions = sorted({packages.version(package) for package in members.values()})
    if len(versions) > 1:
        raise NotComparable(
            f"the driver's packages are of versions {', '.join(versions)} (gpuready explain driver.packages); bring "
            "them to one first: a hold would keep them different"
        )


def _content(members: Mapping[str, Package]) -> bytes:
    names = dict.fromkeys(re.sub(r"([.+])", r"\\\1", packages.plain(name)) for name in members)
    return resources.document("driver/unattended.conf", names=names).encode()
