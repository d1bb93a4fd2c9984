"""The CDI spec that GPU containers use: there, of the driver that is loaded, and the only one.

From 1.18 on, the toolkit has a unit that writes it at boot and after a driver's installation, and that owns it. It
does not see a reload of the module, a change of MIG, or an update half done, and says "skipped" where it did nothing.
So it is run again, and the file is what counts. Before 1.18, and without systemd, ``nvidia-ctk cdi generate`` makes
it. Specs that nvidia-ctk made earlier, elsewhere, are moved aside: they shadow the fresh one or outlive it.
Sources: deployments/systemd of the NVIDIA container toolkit, its documentation of CDI, the CDI specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.components.cdi import spec_files
from gpuready.components.cdi.spec_files import DIRECTORIES, KIND, CdiSpec, missing, seen_devices, specs, wanted_devices
from gpuready.core import ledger
from gpuready.core.component import Applies, Change, Component, NotComparable, Value
from gpuready.core.step import Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.cdi_unit import ENVIRONMENT, UNIT, refreshed, target
from gpuready.state.linker import other_library
from gpuready.state.model import NodeState
from gpuready.state.toolkit_packages import installed_by_us

#: The toolkit's package that makes specs; where gpuready installed it, it goes on the way back.
_GOES = "nvidia-container-toolkit-base"
_MADE = ("cdi.spec", "cdi.driver", "cdi.devices", "cdi.missing")


class Cdi(Component):
    """One fresh CDI spec of nvidia.com/gpu."""

    name = "cdi"
    part = "toolkit"
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if not state.driver.loaded:
            return Applies(False, "no NVIDIA driver is loaded")
        other = other_library(state)
        if other:
            return Applies(
                False,
                f"NVML is {other}, driver {state.driver.loaded} is loaded: no CDI spec can be made until they match",
            )
        return Applies(True, "containers get their GPUs by it")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found, place = current(spec, state), target(spec.toolkit.version, state)
        if place.rpartition("/")[0] not in DIRECTORIES:
            raise NotComparable(f"{ENVIRONMENT} has the spec written to {place}, where no engine looks for it")
        devices = wanted_devices(state, found)
        want: dict[str, Value] = {"cdi.spec": place, "cdi.driver": state.driver.loaded}
        if isinstance(devices, tuple):  # nvidia-smi needs its library, of which ldconfig may learn in this very run
            want["cdi.devices"] = devices
        return want | {"cdi.missing": (), "cdi.shadows": ()}

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found = current(spec, state)
        seen: dict[str, Value] = {"cdi.missing": (), "cdi.shadows": tuple(s.path for s in shadows(spec, state))}
        seen |= ledger.actual("cdi", state, _touched(state))
        if found is None:
            return seen
        if found.error:
            return seen | {"cdi.spec": f"not readable: {found.error}"}
        gone = missing(state, found)
        return seen | {
            "cdi.spec": found.path,
            "cdi.driver": " and ".join(found.drivers) or None,
            "cdi.devices": seen_devices(state, found),
            "cdi.missing": (*gone[:3], f"and {len(gone) - 3} more") if len(gone) > 4 else gone,
        }

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        """The specs that were moved away, and none where one was made.

        One of another driver than the loaded one helps nobody; and what still makes containers has to keep a spec.
        """
        found = ledger.whole("cdi", state, _touched(state))
        stale = {f"cdi.files.{path}" for path in _outdated(state)}
        found = {key: value for key, value in found.items() if key not in stale}
        goes = {key.partition(".files.")[2] for key, value in found.items() if value is None}
        stay = [s for s in specs(state) if s.kind == KIND and s.path not in goes and _fits(s, state)]
        if _GOES in installed_by_us(state) or stay or "original" in found.values():
            return found
        return {key: value for key, value in found.items() if value is not None}

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if any(c.key.startswith("cdi.files.") for c in diff):
            return tuple(
                f"{path} from before was of driver {version}, {state.driver.loaded} is loaded: it does not come back"
                for path, version in _outdated(state).items()
            )
        if any(c.key == "cdi.shadows" for c in diff):
            return (f"specs that nvidia-ctk made elsewhere are moved to {ledger.KEPT}",)
        return ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        if diff[0].key.startswith("cdi.files."):
            yield from ledger.restore("cdi", diff, state)
            return
        make = any(c.key in _MADE for c in diff)
        shadowing = [path for c in diff if c.key == "cdi.shadows" for path in _texts(c.actual)]
        script = CdiGenerate(
            target=target(spec.toolkit.version, state),
            make=make,
            unit=UNIT if refreshed(spec.toolkit.version, state) else "",
            shadows=tuple(f"{state.files[path].sha256}:{path}" for path in shadowing),
        )
        yield Step("cdi", script, timeout=180, summary="make the CDI spec" if make else "move old CDI specs aside")


@dataclass(frozen=True)
class CdiGenerate(Script):
    """Make the spec if ``make``, by ``unit`` if it is enabled, then move ``shadows`` (``HASH:PATH``) aside."""

    template = "cdi/converge"
    target: str
    make: bool
    unit: str
    shadows: tuple[str, ...]
    settings: str = ENVIRONMENT


def _touched(state: NodeState) -> tuple[str, ...]:
    return tuple(path for directory in DIRECTORIES for path in ledger.paths(state, directory))


def _outdated(state: NodeState) -> dict[str, str]:
    """Path -> driver, of the originals that are of another driver than the loaded one."""
    found = {}
    for path in _touched(state):
        record = ledger.kept(state, path)
        before = spec_files.read(path, (record.original or b"").decode("utf-8", "replace")) if record else None
        if before and not _fits(before, state):
            found[path] = " and ".join(before.drivers)
    return found


def _fits(spec: CdiSpec, state: NodeState) -> bool:
    return not state.driver.loaded or not spec.drivers or state.driver.loaded in spec.drivers


def _texts(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def current(spec: NodeSpec, state: NodeState) -> CdiSpec | None:
    """The spec at its place."""
    return next((s for s in specs(state) if s.path == target(spec.toolkit.version, state)), None)


def shadows(spec: NodeSpec, state: NodeState) -> tuple[CdiSpec, ...]:
    """Specs of the same devices that nvidia-ctk made in another place; what people or programs wrote is not ours."""
    return tuple(s for s in specs(state) if s.made and s.kind == KIND and s.path != target(spec.toolkit.version, state))
