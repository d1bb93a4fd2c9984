"""The NVIDIA container toolkit: its four packages at one exact version, held.

Why all four: before 1.18 the top package let the other three float, and from 1.18 a loose pin cannot be satisfied
(nvidia-container-toolkit issue 1091). The postinst of every version since 1.18.0 runs ``systemctl daemon-reload`` (by
itself, from 1.20.0 through debhelper), which can take the GPU away from containers in legacy mode (issues 48, 1227):
installing is class *recreate*.

The packages that the toolkit replaced in 2023 go in the same transaction; no relation of its own sends nvidia-docker2
away. They are removed and never purged, because daemon.json is a conffile of nvidia-docker2 (its debian/ directory).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.core import ignored_containers, toml_document
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable, Value
from gpuready.core.step import Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state import toolkit_config
from gpuready.state.containers import gpu_containers
from gpuready.state.model import NodeState, Unknown
from gpuready.state.toolkit_packages import BEFORE, PACKAGES, before

#: What people installed before it, and what no longer works beside it.
LEGACY = ("nvidia-docker2", "nvidia-container-runtime", "nvidia-container-runtime-hook")


_PURGE = (
    "nvidia-docker2 is removed, not purged, and must not be purged later: /etc/docker/daemon.json is its conffile, "
    "which 'dpkg --purge' would delete with all that is in it"
)


class Toolkit(Component):
    """Four packages at ``toolkit.version``, each with a hold."""

    name = "toolkit"
    part = "toolkit"
    requires = ("repository",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        return Applies(True, "GPU containers need it")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        want: dict[str, Value] = {f"toolkit.{name}": f"{spec.toolkit.version}-1" for name in PACKAGES}
        self._readable_by_the_package(want, spec, state)
        want |= {f"toolkit.{name}.held": spec.toolkit.hold for name in PACKAGES}
        return want | {f"toolkit.{name}": None for name in LEGACY}

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        if isinstance(state.packages, Unknown):
            return {key: state.packages for key, want in self.expected(spec, state).items() if want is not None}
        found: dict[str, Value] = {}
        for name in PACKAGES:
            package = state.packages.get(name)
            if package is not None:
                found[f"toolkit.{name}"] = package.version + ("" if package.configured else " (not configured)")
            found[f"toolkit.{name}.held"] = package.held if package else False
        return found | {f"toolkit.{name}": state.packages[name].version for name in LEGACY if name in state.packages}

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        if BEFORE not in state.files:
            return {}
        found: dict[str, Value] = {}
        was = before(state)
        for name in PACKAGES:
            if name not in was:
                found[f"toolkit.{name}"] = None
            found[f"toolkit.{name}.held"] = was.get(name, ("", ""))[1].startswith("h")
        return found

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if "toolkit.nvidia-docker2" in (c.key for c in diff):
            return (_PURGE,)
        if not _taken(diff):
            return ()
        old = before(state).items()
        return tuple(f"{name} was here before gpuready, at {version}: it stays" for name, (version, _) in old)

    def _readable_by_the_package(self, want: Mapping[str, Value], spec: NodeSpec, state: NodeState) -> None:
        """The base package's postinst rewrites config.toml; one that it cannot read leaves dpkg half-configured."""
        found = self.actual(spec, state) if not isinstance(state.packages, Unknown) else want
        if any(found.get(key) != value for key, value in want.items() if not key.endswith(".held")):
            try:
                toml_document.read(
                    state.files[toolkit_config.CONFIG].text if toolkit_config.CONFIG in state.files else ""
                )
            except toml_document.TomlError as e:
                raise NotComparable(
                    f"{toolkit_config.CONFIG}: {e}; mend it first, or the package's own script fails and leaves dpkg "
                    "half-configured"
                ) from None

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if _packages(diff) else Disruption.none

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        if _taken(diff):
            return gpu_containers(state, "nvidia")
        return gpu_containers(state) if _packages(diff) else ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        wanted = {c.key.removeprefix("toolkit."): c.expected for c in diff}
        now = self.actual(spec, state)
        old = tuple(name for name in LEGACY if name in wanted)
        changed = [name for name in PACKAGES if isinstance(wanted.get(name), str)] or (PACKAGES[:1] if old else ())
        version = next((str(wanted.get(name, now.get(f"toolkit.{name}"))) for name in changed), "")
        held = {name: bool(wanted.get(f"{name}.held", now[f"toolkit.{name}.held"])) for name in PACKAGES}
        gone = _taken(diff)
        script = ToolkitInstall(
            # All four at once, those that are right, too: the older ones do not bring each other along.
            pins=tuple(f"{name}={version}" for name in PACKAGES) if version else (),
            version=version,
            old=old,
            purge=gone,
            hold=tuple(name for name in PACKAGES if name not in gone and held[name]),
            unhold=tuple(name for name in PACKAGES if name not in gone and not held[name]),
            work=ignored_containers.words(spec),
        )
        summary = f"install {version}" if version else "purge the packages" if gone else "set the holds"
        yield Step("toolkit", script, timeout=1800, summary=summary)


@dataclass(frozen=True)
class ToolkitInstall(Script):
    """Install the packages as ``pins`` have them (``NAME=VERSION``), or purge packages, and set the holds.

    ``old`` are the installed packages that the new ones replace.
    """

    template = "toolkit/converge"
    pins: tuple[str, ...]
    version: str
    old: tuple[str, ...]
    purge: tuple[str, ...]
    hold: tuple[str, ...]
    unhold: tuple[str, ...]
    work: tuple[str, ...]
    packages: tuple[str, ...] = PACKAGES


def _packages(diff: tuple[Change, ...]) -> bool:
    return any(not c.key.endswith(".held") for c in diff)


def _taken(diff: tuple[Change, ...]) -> tuple[str, ...]:
    """The packages that are to go: gpuready put them in, and is being removed."""
    names = [c.key.removeprefix("toolkit.") for c in diff if c.expected is None]
    return tuple(name for name in names if name in PACKAGES)
