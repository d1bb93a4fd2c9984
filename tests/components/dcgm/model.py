"""apt and systemd: DCGM and its service."""

from gpuready.components.dcgm.component import RECORD, SERVICE, DcgmInstall, DcgmRemove
from gpuready.model.state import NodeState, Package, Unit
from tests.components.closing import Closed, file_of, units_of, without


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-get installs DCGM; systemctl enables and starts its service; what was there before is on record."""
    if isinstance(steps.steps[0].args, DcgmRemove):
        return _removed(state, steps.args(DcgmRemove))
    package, packages = steps.args(DcgmInstall).package, dict(state.installed)
    if package:
        packages[package] = Package(version="1:4.5.2-1", arch="amd64")
    unit = units_of(state).get(SERVICE)
    was = ["dcgm.enabled"] if unit and unit.enabled == "enabled" else []
    was += ["dcgm.active"] if unit and unit.active == "active" else []
    record = state.text(RECORD).split() or was
    files = {**state.files, RECORD: file_of("\n".join([*record, *([package] if package else [])]), state)}
    started = Unit(load="loaded", active="active", enabled="enabled")
    units = {**units_of(state), SERVICE: started}
    return state.model_copy(update={"packages": packages, "units": units, "files": files})


def _removed(state: NodeState, args: DcgmRemove) -> NodeState:
    came = state.text(RECORD).split()
    packages = {name: package for name, package in state.installed.items() if name not in came}
    enabled, active = "enabled" if args.enabled else "disabled", "active" if args.active else "inactive"
    units = {**units_of(state), SERVICE: Unit(load="loaded", active=active, enabled=enabled)}
    return without(state, RECORD).model_copy(update={"packages": packages, "units": units})
