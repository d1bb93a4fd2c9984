"""The driver's device nodes and nvidia-persistenced: what a reload or an update of the driver leaves undone.

Programs of root create missing nodes when they start; programs in containers cannot. gpuready creates them with
nvidia-modprobe, or with nvidia-ctk if that is missing. systemd's device rules refer to nodes by links in /dev/char;
nvidia-ctk creates these, and current versions of nvidia-modprobe do, too. The links are lost at boot. So gpuready
expects them only if the run on the node creates them at every boot (``reconverge: mend``). nvidia-persistenced is
started if it is enabled, and restarted if it is from before an update. That disturbs nothing: a process that uses a GPU
keeps it awake.
Sources: nvidia-modprobe(1), nvidia-persistenced(1), nvidia-ctk's system commands, nvidia-container-toolkit issue 48.
"""

from gpuready.base.step import Script, Step, Steps
from gpuready.components.devices.state import PERSISTENCED, persistence
from gpuready.components.ldso.state import other_library
from gpuready.contract import owners
from gpuready.contract.component import Applies, Change, Component, Value, Values
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

_CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm")


class Devices(Component):
    """The device nodes of the loaded driver, and nvidia-persistenced if it is enabled."""

    name = "devices"
    owned_as = "driver"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        loaded = bool(state.driver.loaded)
        return Applies(loaded, "a driver is loaded" if loaded else "no NVIDIA driver is loaded")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        want: dict[str, Value] = {"devices.missing": ()}
        if _links(spec, state):
            want["devices.unlinked"] = ()
        if _persists(state):
            want["devices.persistenced"] = "active"
        return want

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        return {
            "devices.missing": missing(state),
            "devices.unlinked": state.leftovers.unlinked,
            "devices.persistenced": persistence(
                state.unit(PERSISTENCED), state.leftovers.persistenced_old, state.leftovers.persistenced_no_socket
            ),
        }

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        keys = {c.key for c in diff}
        script = MakeNodes(
            misnumbered=state.leftovers.misnumbered,
            nodes=wanted(state) if "devices.missing" in keys else (),
            links=_links(spec, state) and bool({"devices.unlinked", "devices.missing"} & keys),
            persistenced=PERSISTENCED if "devices.persistenced" in keys else "",
        )
        yield Step("devices", script, summary="device nodes, nvidia-persistenced")


class MakeNodes(Script, template="devices/converge"):
    """Remove wrong device nodes, make the missing ones and their links, and restart nvidia-persistenced if named."""

    misnumbered: tuple[str, ...]
    nodes: tuple[str, ...]
    links: bool
    persistenced: str


def _links(spec: NodeSpec, state: NodeState) -> bool:
    """Tell whether the node needs the links. They need an nvidia-ctk on the host."""
    return spec.reconverge.on_driver_change == "mend" and not owners.observed("toolkit", spec, state)


def wanted(state: NodeState) -> tuple[str, ...]:
    """Return the expected nodes: one for each GPU, and the two that every program opens."""
    return (*(f"/dev/nvidia{number}" for number in range(len(state.driver.gpus))), *_CONTROL)


def missing(state: NodeState) -> tuple[str, ...]:
    """Return missing nodes and those with a wrong number. GPU nodes are counted: their numbers have gaps."""
    gpus = wanted(state)[: len(state.driver.gpus)] if len(state.driver.gpu_nodes) < len(state.driver.gpus) else ()
    absent = [node for node in (*gpus, *_CONTROL) if node not in state.driver.nodes]
    return (*absent, *(node for node in state.leftovers.misnumbered if node not in absent))


def _persists(state: NodeState) -> bool:
    """Tell whether nvidia-persistenced should run and can: it needs a GPU, and a library that fits the module."""
    unit = state.unit(PERSISTENCED)
    if not state.driver.gpus or other_library(state.linker, state.driver.loaded):
        return False
    # If it is static, udev starts it: then gpuready only restarts one that failed or is outdated.
    return unit.enabled == "enabled" or (unit.enabled == "static" and unit.active in ("active", "failed"))
