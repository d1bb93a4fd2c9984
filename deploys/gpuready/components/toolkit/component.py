"""The NVIDIA container toolkit: its four packages at one exact version, held.

All four are pinned: before 1.18, the top package did not fix the version of the other three; from 1.18 on, a loose pin
cannot be satisfied (nvidia-container-toolkit issue 1091). Since 1.18.0, the postinst runs ``systemctl daemon-reload``
(from 1.20.0 on through debhelper), which can take the GPU away from containers in legacy mode (issues 48, 1227). So an
installation is class *recreate*.

The packages that the toolkit replaced in 2023 are removed in the same transaction, because the toolkit does not
conflict with nvidia-docker2. They are never purged: daemon.json is a conffile of nvidia-docker2 (see its debian/
directory). rpm cannot remove a package without its configuration files, so there the user has to.
"""

from collections.abc import Iterable

from gpuready.base import toml_document
from gpuready.base.step import Script, Step, Steps
from gpuready.components.toolkit.spec import REACH_REPOSITORY
from gpuready.components.toolkit.state import BEFORE, PACKAGES, before
from gpuready.components.toolkit_config import state as toolkit_config
from gpuready.contract import ignored_containers
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable, Value, Values
from gpuready.contract.package_manager import manager
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

#: Its predecessors, which do not work beside it.
LEGACY = ("nvidia-docker2", "nvidia-container-runtime", "nvidia-container-runtime-hook")
_PURGE = (
    "nvidia-docker2 is removed, not purged, and must not be purged later: /etc/docker/daemon.json is its conffile, "
    "which 'dpkg --purge' would delete with all that is in it"
)


class Toolkit(Component):
    """The four packages of the toolkit at ``toolkit.version``, each with a hold."""

    name = "toolkit"
    owned_as = "toolkit"
    requires = ("repository",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        return Applies(True, "GPU containers need it")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        _refuse_dnf(spec, state)
        want: dict[str, Value] = {f"toolkit.{name}": f"{spec.toolkit.version}-1" for name in PACKAGES}
        actual = self.actual(spec, state)
        if not isinstance(state.packages, Unknown) and any(actual.get(key) != value for key, value in want.items()):
            _refuse_unreadable_config(state)
        want |= {f"toolkit.{name}.held": spec.toolkit.hold for name in PACKAGES}
        return want | {f"toolkit.{name}": None for name in LEGACY}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        if isinstance(state.packages, Unknown):
            return {f"toolkit.{name}{part}": state.packages for name in PACKAGES for part in ("", ".held")}
        found: dict[str, Value] = {}
        held = manager(state).held
        for name in PACKAGES:
            package = state.packages.get(name)
            if package is not None:
                found[f"toolkit.{name}"] = package.version + ("" if package.configured else " (not configured)")
            found[f"toolkit.{name}.held"] = held(name, package, state) if package else False
        return found | {f"toolkit.{name}": state.packages[name].version for name in LEGACY if name in state.packages}

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        if BEFORE not in state.files:
            return {}
        found: dict[str, Value] = {}
        was = before(state.files)
        for name in PACKAGES:
            if name not in was:
                found[f"toolkit.{name}"] = None
            found[f"toolkit.{name}.held"] = was.get(name, ("", ""))[1].startswith("h")
        return found

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return (_PURGE,) if "toolkit.nvidia-docker2" in (c.key for c in diff) else ()

    def notes_on_removal(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if not _packages(diff):
            return ()
        old = before(state.files).items()
        return tuple(f"{name} was here before gpuready, at {version}: it stays" for name, (version, _) in old)

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if _packages(diff) else Disruption.none

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        wanted = {c.key.removeprefix("toolkit."): c.expected for c in diff}
        now = self.actual(spec, state)
        old = tuple(name for name in LEGACY if name in wanted)
        changed = [name for name in PACKAGES if isinstance(wanted.get(name), str)] or (PACKAGES[:1] if old else ())
        version = next((str(wanted.get(name, now.get(f"toolkit.{name}"))) for name in changed), "")
        script = ToolkitInstall(
            # All four at once, even those that are right: older versions do not require each other exactly.
            pins=tuple(f"{name}={version}" for name in PACKAGES) if version else (),
            version=version,
            old=old,
            hold=_held(PACKAGES, diff, state, on=True),
            unhold=_held(PACKAGES, diff, state, on=False),
            work=ignored_containers.words(spec),
            dnf=manager(state).dnf,
            key=_key(spec),
        )
        summary = f"install {version}" if version else "set the holds"
        fixes = (("the repository cannot be read", REACH_REPOSITORY),)
        yield Step("toolkit", script, timeout=1800, summary=summary, fixes=fixes)

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        gone = tuple(c.key.removeprefix("toolkit.") for c in diff if c.expected is None)
        stays = [name for name in PACKAGES if name not in gone]
        script = ToolkitInstall(
            purge=gone,
            hold=_held(stays, diff, state, on=True),
            unhold=_held(stays, diff, state, on=False),
            work=ignored_containers.words(spec),
            dnf=manager(state).dnf,
            key=_key(spec),
            leave=True,
        )
        yield Step("toolkit", script, timeout=1800, summary="purge the packages" if gone else "set the holds")


class ToolkitInstall(Script, template="toolkit/converge"):
    """Install ``pins`` (``NAME=VERSION``), or purge packages, and set the holds.

    ``old``: the installed packages that the new ones replace. ``key``: the end of the fingerprint of the repository's
    key, by which rpm names it. ``leave``: remove what came with the packages, too.
    """

    hold: tuple[str, ...]
    unhold: tuple[str, ...]
    work: tuple[str, ...]
    pins: tuple[str, ...] = ()
    version: str = ""
    old: tuple[str, ...] = ()
    purge: tuple[str, ...] = ()
    packages: tuple[str, ...] = PACKAGES
    dnf: int = 0
    key: str = ""
    leave: bool = False


def _key(spec: NodeSpec) -> str:
    return spec.toolkit.repo.fingerprint[-8:].lower()


def _refuse_dnf(spec: NodeSpec, state: NodeState) -> None:
    """Raise NotComparable for what gpuready cannot do with dnf."""
    if not manager(state).dnf:
        return
    if spec.toolkit.hold:
        try:
            manager(state).refuse_to_hold(state, PACKAGES)
        except NotComparable as e:
            raise NotComparable(f"toolkit.hold: {e}, or set toolkit.hold to false") from None
    if old := [name for name in LEGACY if name in state.installed]:
        raise NotComparable(
            f"{', '.join(old)}: gpuready cannot replace it with dnf. Remove it first, and keep a copy of "
            "/etc/docker/daemon.json, which rpm may remove or rename"
        )


def _refuse_unreadable_config(state: NodeState) -> None:
    """Raise NotComparable for an invalid config.toml: the base package's postinst would fail on it."""
    try:
        toml_document.read(state.text(toolkit_config.CONFIG))
    except toml_document.TomlError as e:
        raise NotComparable(
            f"{toolkit_config.CONFIG}: {e}; fix it first, or the package's own script fails and leaves dpkg "
            "half-configured"
        ) from None


def _packages(diff: tuple[Change, ...]) -> bool:
    return any(not c.key.endswith(".held") for c in diff)


def _held(names: Iterable[str], diff: tuple[Change, ...], state: NodeState, *, on: bool) -> tuple[str, ...]:
    """Return the packages of ``names`` that have a hold afterwards, or have none."""
    held = manager(state).held
    then = {name: held(name, package, state) for name, package in state.installed.items()} | {
        c.key.removeprefix("toolkit.").removesuffix(".held"): bool(c.expected) for c in diff if c.key.endswith(".held")
    }
    return tuple(name for name in names if then.get(name, False) is on)
