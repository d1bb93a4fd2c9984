"""systemd: the timer of the RDMA exporter."""

from gpuready.components.monitoring.component import LINK, TIMER, InstallExporter
from gpuready.model.state import NodeState, Unit
from tests.components.closing import Closed, file_of, units_of, without


def closed(state: NodeState, steps: Closed) -> NodeState:
    """systemd starts and enables the timer, or stops it; a stopped unit may stay in memory as it was read."""
    units = units_of(state)
    if not any(isinstance(step.args, InstallExporter) for step in steps.steps):
        stopped = {TIMER: units[TIMER].model_copy(update={"active": "inactive"})} if TIMER in units else {}
        return without(state.model_copy(update={"units": units | stopped}), LINK)
    units[TIMER] = Unit(load="loaded", active="active", enabled="enabled")
    if steps.args(InstallExporter).reload:
        units = {name: unit.model_copy(update={"need_daemon_reload": False}) for name, unit in units.items()}
    return state.model_copy(update={"units": units, "files": {**state.files, LINK: file_of("", state)}})
