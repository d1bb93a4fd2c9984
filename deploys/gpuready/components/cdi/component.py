"""The CDI spec that GPU containers use: it exists, fits the loaded driver, and is the only one.

From 1.18 on, the toolkit has a unit that owns the spec and writes it at boot and after a driver installation, from
1.20.1 on also when the module is loaded. The unit does not notice a MIG change or an incomplete update, and reports
"skipped" if it did nothing. So gpuready runs it again and checks the file. Before 1.18, and without systemd,
``nvidia-ctk cdi generate`` writes the spec. Specs that nvidia-ctk wrote elsewhere earlier are moved aside: they hide
the current one, or outlive it.
Sources: deployments/systemd of the NVIDIA container toolkit, its documentation of CDI, the CDI specification.
"""

from gpuready.base.facts import KEPT
from gpuready.base.step import Script, Step, Steps
from gpuready.components.cdi import spec_files
from gpuready.components.cdi.engines import without_gids_field
from gpuready.components.cdi.spec_files import (
    DIRECTORIES,
    KIND,
    CdiSpec,
    missing,
    owner,
    place,
    seen_devices,
    specs,
    wanted_devices,
)
from gpuready.components.cdi.state import ENVIRONMENT, without_gids
from gpuready.components.ldso.state import other_library
from gpuready.components.toolkit.state import installed_by_us
from gpuready.contract import ledger
from gpuready.contract.component import Applies, Change, NotComparable, Value, Values
from gpuready.contract.removal import WholeFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

#: The toolkit's package that writes specs. ``remove`` uninstalls it if gpuready installed it.
_GOES = "nvidia-container-toolkit-base"
_GIDS = "cdi.additional-gids"
_MADE = ("cdi.spec", "cdi.driver", "cdi.devices", "cdi.missing", _GIDS)


class Cdi(WholeFiles):
    """One up-to-date CDI spec of nvidia.com/gpu."""

    name = "cdi"
    owned_as = "toolkit"
    needs_boot = True
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if not state.driver.loaded:
            return Applies(False, "no NVIDIA driver is loaded")
        other = other_library(state.linker, state.driver.loaded)
        if other:
            return Applies(
                False,
                f"NVML is {other}, driver {state.driver.loaded} is loaded: no CDI spec can be made until they match",
            )
        return Applies(True, "containers get their GPUs through it")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        found, path = current(spec, state), place(spec, state)
        if path.rpartition("/")[0] not in DIRECTORIES:
            raise NotComparable(f"{ENVIRONMENT} sets the path {path}, where no engine looks for a spec")
        devices = wanted_devices(state, found)
        want: dict[str, Value] = {"cdi.spec": path, "cdi.driver": state.driver.loaded}
        if isinstance(devices, tuple):  # unknown while ldconfig does not list nvidia-smi's library
            want["cdi.devices"] = devices
        if without_gids_field(spec, state):
            want[_GIDS] = "left out"
        return want | {"cdi.missing": (), "cdi.shadows": ()}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        found = current(spec, state)
        seen: dict[str, Value] = {"cdi.missing": (), "cdi.shadows": tuple(s.path for s in shadows(spec, state))}
        seen |= ledger.actual("cdi", state, self.touched(state))
        if found is None:
            return seen
        if found.error:
            return seen | {"cdi.spec": f"not readable: {found.error}"}
        gone = missing(state, found)
        return seen | {
            "cdi.spec": found.path,
            "cdi.driver": " and ".join(found.drivers) or None,
            "cdi.devices": seen_devices(state, found),
            _GIDS: "written" if found.gids else "left out",
            "cdi.missing": (*gone[:3], f"and {len(gone) - 3} more") if len(gone) > 4 else gone,
        }

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return _touched(state)

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        """Return the specs that gpuready moved aside, and the removal of the one that it made.

        A spec of another driver is not restored. If the toolkit stays, it needs a spec, so the last one stays, too.
        """
        found = super().original(spec, state)
        stale = {f"cdi.files.{path}" for path in _outdated(state)}
        found = {key: value for key, value in found.items() if key not in stale}
        goes = {key.partition(".files.")[2] for key, value in found.items() if value is None}
        stay = [s for s in specs(state) if s.kind == KIND and s.path not in goes and _fits(s, state)]
        back = [key for key, value in found.items() if value == "original" and not key.endswith(ENVIRONMENT)]
        if _GOES in installed_by_us(state.files) or stay or back:
            return found
        return {key: value for key, value in found.items() if value is not None or key.endswith(ENVIRONMENT)}

    def notes_on_removal(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return tuple(
            f"the original {path} is for driver {version}, but {state.driver.loaded} is loaded: it is not restored"
            for path, version in _outdated(state).items()
        )

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        found = []
        if any(c.key == _GIDS for c in diff):
            old = ", ".join(without_gids_field(spec, state))
            found.append(f"{old} does not know additionalGids of CDI 0.7 and would refuse the spec")
        if any(c.key == "cdi.shadows" for c in diff):
            found.append(f"specs that nvidia-ctk wrote elsewhere are moved to {KEPT}")
        return tuple(found)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        make = any(c.key in _MADE for c in diff)
        settings = state.text(ENVIRONMENT)
        if any(c.key == _GIDS for c in diff) and (wanted := without_gids(settings)) != settings:
            put = ledger.put(state, ENVIRONMENT, wanted)
            yield Step("cdi", ledger.WriteFiles((put,)), summary=f"leave additionalGids out in {ENVIRONMENT}")
        shadowing = shadows(spec, state) if any(c.key == "cdi.shadows" for c in diff) else ()
        script = CdiGenerate(
            target=place(spec, state),
            make=make,
            unit=owner(spec, state),
            shadows=tuple(f"{state.sha256(shadow.path)}:{shadow.path}" for shadow in shadowing),
        )
        yield Step("cdi", script, timeout=180, summary="generate the CDI spec" if make else "move old CDI specs aside")


class CdiGenerate(Script, template="cdi/converge"):
    """Write the spec if ``make``, by ``unit`` if it is given, then move ``shadows`` (``HASH:PATH``) aside."""

    target: str
    make: bool
    unit: str
    shadows: tuple[str, ...]
    settings: str = ENVIRONMENT


def _touched(state: NodeState) -> tuple[str, ...]:
    folders = (*DIRECTORIES, ENVIRONMENT.rpartition("/")[0])
    return tuple(path for folder in folders for path in ledger.paths(state, folder))


def _outdated(state: NodeState) -> dict[str, str]:
    """Return path -> driver version, for the originals that do not fit the loaded driver."""
    found = {}
    for path in _touched(state):
        record = ledger.kept(state, path)
        before = spec_files.read(path, (record.original or b"").decode("utf-8", "replace")) if record else None
        if before and not _fits(before, state):
            found[path] = " and ".join(before.drivers)
    return found


def _fits(spec: CdiSpec, state: NodeState) -> bool:
    return not state.driver.loaded or not spec.drivers or state.driver.loaded in spec.drivers


def current(spec: NodeSpec, state: NodeState) -> CdiSpec | None:
    """Return the spec at its expected place, if it is there."""
    return next((s for s in specs(state) if s.path == place(spec, state)), None)


def shadows(spec: NodeSpec, state: NodeState) -> tuple[CdiSpec, ...]:
    """Return GPU specs that nvidia-ctk wrote to another place. Specs of other authors stay."""
    return tuple(s for s in specs(state) if s.made and s.kind == KIND and s.path != place(spec, state))
