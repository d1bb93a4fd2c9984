"""The packages of the NVIDIA driver: all held, so that no upgrade changes a part of the driver under a loaded module.

apt and unattended-upgrades respect dpkg's hold. A list of exact names in apt.conf.d stops unattended-upgrades even if
someone releases a hold. With dnf, the locks of the plugin versionlock hold them, and dnf-automatic loads that plugin,
too. Packages that follow the kernel are not held: they require the driver's version, and without
them a new kernel would boot without a module.

packages.py tells which packages are the driver's, install.py what an installation needs, recipes.py which packages it
installs. Sources: apt-mark(8), unattended-upgrade(8) (a pattern matches the start of a name, so it ends with ``$``),
apt.conf(5), nvidia-graphics-drivers and linux-restricted-modules; NVIDIA's Driver Installation Guide ("Version
locking").
"""

import re
from collections.abc import Generator, Iterable, Mapping

from gpuready.base import resources
from gpuready.base.facts import KEPT
from gpuready.base.step import Reply, Script, Step, Steps
from gpuready.components.driver import install, packages, recipes
from gpuready.contract import ignored_containers, ledger, need
from gpuready.contract.component import Applies, Change, Disruption, NotComparable, Value, Values
from gpuready.contract.package_manager import manager
from gpuready.contract.removal import WholeFiles
from gpuready.cuda import tables
from gpuready.inventory.secrets import resolve
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Package

#: apt reads it after the file of unattended-upgrades, and adds its list to the one there.
UNATTENDED = "/etc/apt/apt.conf.d/99gpuready-driver"
#: One line per package, "NAME hold" or "NAME free": its state before gpuready's first change (driver/record.sh.j2).
BEFORE = f"{KEPT}/driver.original"
FILES = (UNATTENDED, *install.FILES)
_KEPT_OUT = "driver.unattended-upgrades"


class Driver(WholeFiles):
    """A hold on every package of the driver and, on request, one version of it."""

    name = "driver"
    owned_as = "driver"
    renews = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        policy = spec.driver.policy
        if policy == "observe":
            return Applies(False, "driver.policy: observe")
        if policy == "hold" and isinstance(state.packages, dict) and not packages.members(state.packages):
            return Applies(False, "no package of the driver is installed: there is nothing to hold")
        return Applies(True, f"driver.policy: {policy}")

    def installs(self, spec: NodeSpec) -> str:
        return "the driver" if spec.driver.policy == "install" else ""

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        need.value(state.packages)
        by = manager(state)
        members = packages.members(state.installed)
        want = install.expected(spec, state) if spec.driver.policy == "install" else {}
        new = filter(packages.is_named, recipes.names(install.wanted(spec, state))) if want else ()
        try:
            by.refuse_to_hold(state, (*map(packages.plain, members), *new))
        except NotComparable as e:
            raise NotComparable(f"driver.policy: {e}") from None
        kept_out: dict[str, Value] = {} if by.dnf else {_KEPT_OUT: "kept out"}
        if want and want["driver.version"] != install.actual(state)["driver.version"]:
            return want | kept_out  # the packages to hold are known only after the installation
        _refuse_mixed(members)
        held: dict[str, Value] = {f"driver.{name}.held": True for name in members}
        return want | held | kept_out

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        members = packages.members(state.installed)
        held = manager(state).held
        found: dict[str, Value] = {f"driver.{n}.held": held(packages.plain(n), p, state) for n, p in members.items()}
        file = state.files.get(UNATTENDED)
        found[_KEPT_OUT] = None if file is None else "kept out" if file.data == _content(members) else "others kept out"
        return found | install.actual(state) | ledger.actual("driver", state, FILES)

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        rows = [line.split() for line in state.text(BEFORE).splitlines()]
        held: dict[str, Value] = {
            f"driver.{row[0]}.held": row[1:] == ["hold"] for row in rows if row and row[0] in state.installed
        }
        queued = state.text(install.QUEUED) and state.boots.mok_state == "queued"
        mok: dict[str, Value] = {install.MOK: "not enrolled"} if queued else {}
        return {**held, **mok, **super().original(spec, state)}

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return FILES

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return install.kind(diff, state)

    def stage(self, change: Change) -> int:
        return int(change.key == install.RUNNING)

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        said = []
        keys = {c.key for c in diff}
        if _KEPT_OUT in keys:
            said.append("this also holds back security updates of the driver: follow NVIDIA's security bulletins")
        if "driver.version" in keys and tables.ended(spec.driver.branch):
            said.append(f"the branch of {spec.driver.version} gets no security updates any more")
        if "driver.version" in keys:
            said.append(f"only apply checks whether the repositories have {spec.driver.version}")
        if {"driver.version", "driver.module"} & keys and (modules := install.note(spec, state)):
            said.append(modules)
        if install.MOK in keys:
            said.append(
                "after the module is built, gpuready queues DKMS's key for enrolment; the module loads only after a "
                "reboot with a person at the machine's console"
            )
        if install.RUNNING in keys and (why := install.cannot_reload(state)):
            said.append(f"the new module needs a reboot: {why}")
        elif install.RUNNING in keys and state.driver.loaded:
            said.append(
                "the module is reloaded if nothing uses a GPU and it can be unloaded; otherwise the node needs a reboot"
            )
        return tuple(said)

    def notes_on_removal(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if state.text(install.QUEUED) and state.boots.mok_state == "enrolled":
            delete = f"mokutil --delete {state.boots.mok}, then the machine's console in the next boot"
            return ("the driver itself stays as it is", f"DKMS's key stays enrolled; to delete it: {delete}")
        return ("the driver itself stays as it is",)

    def remarks(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if spec.driver.policy != "observe":
            return self.remark_if_unused(spec, state)
        if not self.original(spec, state):
            return ()
        return ("driver.policy is observe, but gpuready's holds and pins stay: gpuready remove --only driver",)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        wanted = {c.key for c in diff}
        if install.HEAVY & wanted:
            members = yield from _install(spec, state)
            yield _hold(state, [_unattended(state, members)] if _KEPT_OUT in wanted else [], members)
        elif wanted - {install.RUNNING, install.MOK}:
            members = packages.members(state.installed)
            puts = [_unattended(state, members)] if _KEPT_OUT in wanted else []
            pin = install.pin(spec, state, members) if {"driver.pin", "driver.stream"} & wanted else None
            yield _hold(state, [*puts, pin] if pin else puts, _held(diff))
        if install.MOK in wanted or (spec.driver.sign and state.boots.enrols and install.HEAVY & wanted):
            yield from _enrol(spec, state)
        if install.RUNNING in wanted and not install.cannot_reload(state):
            fabric_manager = install.wanted(spec, state).fabric_manager
            script = Load(spec.driver.version or "", ignored_containers.words(spec), fabric_manager)
            yield Step("driver-load", script, timeout=600, summary="load the module", fixes=_FITS)

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        if any(change.key == install.MOK for change in diff):
            yield Step("driver-mok", RevokeMok(install.QUEUED), summary="take back the queued enrolment of DKMS's key")
        held, files = _held(diff), ledger.to_restore(diff, state)
        hold, unhold = (_named((name for name in held if held[name] is on), state) for on in (True, False))
        script = Hold(hold, unhold, (), files, manager(state).dnf)
        yield Step("driver-hold", script, timeout=300, summary="restore the package holds")


def _enrol(spec: NodeSpec, state: NodeState) -> Steps:
    """Yield the step that queues the enrolment of DKMS's key, and then again: it waits, as the key is queued."""
    kernels = install.wanted(spec, state).kernels
    script = EnrolMok(kernels, resolve(spec.driver.mok_password or "").reveal(), install.QUEUED)
    summary = "queue the enrolment of DKMS's key"
    # A unit's script stays on the node for a week, and the password is a secret: so no unit.
    for _ in range(2):
        yield Step("driver-mok", script, timeout=120, survives=False, alters=True, summary=summary)


_FITS = (("the module of driver", "set driver.version or driver.flavor to one that drives this GPU, then run again"),)


class Load(Script, template="driver/load"):
    """Replace the loaded module with that of the packages.

    ``fabric_manager``: start it, too. ``stuck``: a file that records that this needs a reboot.
    """

    version: str
    work: tuple[str, ...]
    fabric_manager: bool = False
    stuck: str = install.STUCK


class EnrolMok(Script, template="driver/mok-enrol"):
    """Queue the enrolment of DKMS's key, unless it did not sign the modules of ``kernels``. ``password``: a secret.

    ``record``: the path of a file that names the queued certificate.
    """

    kernels: tuple[str, ...]
    password: str
    record: str


class RevokeMok(Script, template="driver/mok-revoke"):
    """Take back the queued enrolment of the certificate that ``record`` names."""

    record: str


class ListAvailable(Script, template="driver/available"):
    """List the versions of packages in the repositories, and the kernels for which a module can be built."""

    packages: tuple[str, ...]
    kernels: tuple[str, ...]
    dnf: int = 0


class Simulate(Script, template="driver/simulate"):
    """Simulate the installation of ``pins`` (NAME=VERSION) with this file of apt's preferences."""

    pins: tuple[str, ...]
    preferences: bytes
    dnf: int = 0


class InstallPackages(Script, template="driver/install"):
    """Install ``pins`` if the simulation is still the same as ``judged``.

    ``packages``: the driver's packages before the installation, and ``held``, those that dnf holds after it, even if
    the module cannot be built. ``nouveau``: nouveau must not load. ``fabric_manager``: the fabric manager must run, and
    needs ``modules`` of the kernel.
    """

    pins: tuple[str, ...]
    preferences: bytes
    judged: str
    packages: tuple[str, ...]
    held: tuple[str, ...]
    version: str
    kernels: tuple[str, ...]
    kind: str
    work: tuple[str, ...]
    puts: tuple[ledger.Put, ...]
    nouveau: bool
    fabric_manager: bool
    modules: tuple[str, ...]
    holds_before: str = BEFORE
    dnf: int = 0


class Hold(Script, template="driver/hold"):
    """Hold or release packages, and write or restore the files for that."""

    hold: tuple[str, ...]
    unhold: tuple[str, ...]
    puts: tuple[ledger.Put, ...]
    files: tuple[ledger.Putback, ...]
    dnf: int
    holds_before: str = BEFORE


def _install(spec: NodeSpec, state: NodeState) -> Generator[Step, Reply, dict[str, Package]]:
    """Simulate the installation, judge it, and install; return the driver's packages afterwards."""
    wanted = install.wanted(spec, state)
    dnf = manager(state).dnf
    available = ListAvailable(recipes.names(wanted), wanted.kernels, dnf)
    told = yield Step(
        "driver-available", available, timeout=1200, summary="list the driver packages in the repositories"
    )
    built_for = [line.removeprefix("headers ") for line in told.out.splitlines() if line.startswith("headers ")]
    pins = recipes.choose(wanted, recipes.available(told.out), built_for)
    chosen = [pin.partition("=")[0] for pin in pins if not pin.endswith("-")]
    pin, nouveau, umad = install.pin(spec, state, chosen), install.nouveau(state), install.umad(spec, state)
    preferences = b"" if dnf or not pin else pin.content
    simulate = Simulate(pins, preferences, dnf)
    told = yield Step("driver-simulate", simulate, timeout=300, survives=False, summary="simulate the installation")
    gone = recipes.judge(told.out, wanted, packages.members(state.installed))
    pinned = (pin.partition("=")[0] for pin in pins if dnf and "=" in pin)
    held = tuple(name for name in pinned if packages.is_named(name))
    script = InstallPackages(
        pins=pins,
        preferences=preferences,
        judged=told.out,
        packages=(*dict.fromkeys((*packages.members(state.installed), *held)),),
        held=held,
        version=wanted.version,
        kernels=wanted.kernels,
        kind="restart" if state.driver.loaded else "recreate",
        work=ignored_containers.words(spec),
        puts=tuple(put for put in (pin, nouveau, umad) if put),
        nouveau=nouveau is not None,
        fabric_manager=wanted.fabric_manager,
        modules=install.modules(spec, state),
        dnf=dnf,
    )
    modules = [name for name in chosen if dnf and recipes.is_precompiled(name)]
    summary = f"install driver {wanted.version}" + (f" with {', '.join(modules)}" if modules else "")
    summary += f", remove {', '.join(gone)}" if gone else ""
    done = yield Step("driver-install", script, timeout=3600, summary=summary)
    rows = (line.split("\t") for line in done.out.splitlines())
    return packages.members({row[0]: Package(version=row[1], arch="") for row in rows if len(row) == 2})


def _held(diff: tuple[Change, ...]) -> dict[str, Value]:
    """Return package -> whether it is to be held, for the packages of the difference."""
    return {c.key[len("driver.") : -len(".held")]: c.expected for c in diff if c.key.endswith(".held")}


def _hold(state: NodeState, puts: Iterable[ledger.Put], hold: Iterable[str]) -> Step:
    """Return the step that holds these packages and writes the files for that."""
    script = Hold(_named(hold, state), (), tuple(puts), (), manager(state).dnf)
    return Step("driver-hold", script, timeout=300, summary="hold the driver's packages")


def _named(names: Iterable[str], state: NodeState) -> tuple[str, ...]:
    """Return packages as the package manager holds them: dnf locks all architectures of one together."""
    return tuple(dict.fromkeys(map(packages.plain, names) if manager(state).dnf else names))


def _unattended(state: NodeState, members: Mapping[str, Package]) -> ledger.Put:
    """Return the file that excludes these packages from unattended-upgrades."""
    return ledger.put(state, UNATTENDED, _content(members))


def _refuse_mixed(members: Mapping[str, Package]) -> None:
    """Raise :class:`NotComparable` if packages are half-configured or have several versions."""
    if broken := [name for name, package in members.items() if not package.configured]:
        raise NotComparable(f"{', '.join(broken)}: half-configured; run dpkg --configure -a first")
    if len(versions := packages.versions(members)) > 1:
        raise NotComparable(
            f"the driver's packages have different versions ({', '.join(versions)}): bring them to one version first "
            "(gpuready explain driver.packages)"
        )


def _content(members: Mapping[str, Package]) -> bytes:
    names = dict.fromkeys(re.sub(r"([.+])", r"\\\1", packages.plain(name)) for name in members)
    return resources.document("driver/unattended.conf", names=names).encode()
