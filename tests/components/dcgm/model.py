"""apt and systemd: DCGM and its service."""

from gpuready.components.dcgm.component import SERVICE, DcgmInstall
from gpuready.model.state import NodeState, Package, Unit
from tests.components.closing import Closed, units_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-get installs DCGM; systemctl enables and starts its service."""
    package, packages = steps.args(DcgmInstall).package, dict(state.installed)
    if package:
        packages[package] = Package(version="1:4.5.2-1", arch="amd64")
    started = Unit(load="loaded", active="active", enabled="enabled")
    return state.model_copy(update={"packages": packages, "units": {**units_of(state), SERVICE: started}})
