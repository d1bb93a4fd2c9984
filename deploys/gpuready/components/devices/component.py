"""The driver's device nodes, and nvidia-persistenced: what a reload or an update of the driver leaves undone.

Programs as root make missing nodes at their start, those in containers cannot. nvidia-modprobe makes them, or
nvidia-ctk where there is none; links in /dev/char, by which systemd's device rules name a node, come from nvidia-ctk
(and with a node that today's nvidia-modprobe makes). They are gone after a boot, so gpuready wants them only where the
run on the node makes them at every boot (``reconverge: mend``). nvidia-persistenced is started where it is enabled,
and restarted if it is from before an update. That disturbs nobody: what uses a GPU keeps it awake.
Sources: nvidia-modprobe(1), nvidia-persistenced(1), nvidia-ctk's system commands, nvidia-container-toolkit issue 48.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.core import owners
from gpuready.core.component import Applies, Change, Component, Value
from gpuready.core.step import Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.linker import other_library
from gpuready.state.model import NodeState, Unknown
from gpuready.state.persistenced import PERSISTENCED, persistence

_CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm")


class Devices(Component):
    """The device nodes of the driver that is loaded, and nvidia-persistenced where it is enabled."""

    name = "devices"
    part = "driver"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        return Applies(
            bool(state.driver.loaded), "a driver is loaded" if state.driver.loaded else "no NVIDIA driver is loaded"
        )

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        want: dict[str, Value] = {"devices.missing": ()}
        if _links(spec, state):
            want["devices.unlinked"] = ()
        if _persists(state):
            want["devices.persistenced"] = "active"
        return want

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        return {
            "devices.missing": missing(state),
            "devices.unlinked": state.leftovers.unlinked,
            "devices.persistenced": persistence(state),
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


@dataclass(frozen=True)
class MakeNodes(Script):
    """Remove wrong device nodes, make the missing ones and their links, and restart nvidia-persistenced if named."""

    template = "devices/converge"
    misnumbered: tuple[str, ...]
    nodes: tuple[str, ...]
    links: bool
    persistenced: str


def _links(spec: NodeSpec, state: NodeState) -> bool:
    """Does the node need links? They take an nvidia-ctk of the host's own."""
    return spec.reconverge.on_driver_change == "mend" and not owners.observed("toolkit", spec, state)


def wanted(state: NodeState) -> tuple[str, ...]:
    """The nodes that there should be: those of the GPUs by number, and the two that every program opens."""
    return (*(f"/dev/nvidia{number}" for number in range(len(state.driver.gpus))), *_CONTROL)


def missing(state: NodeState) -> tuple[str, ...]:
    """What of them is not there, or has another number than the module; GPUs' are counted: their numbers have gaps."""
    numbered = sum(bool(re.fullmatch(r"/dev/nvidia[0-9]+", node)) for node in state.driver.nodes)
    gpus = wanted(state)[: len(state.driver.gpus)] if numbered < len(state.driver.gpus) else ()
    absent = [node for node in (*gpus, *_CONTROL) if node not in state.driver.nodes]
    return (*absent, *(node for node in state.leftovers.misnumbered if node not in absent))


def _persists(state: NodeState) -> bool:
    """Is it to run, and can it? It needs a GPU, and a library that fits the module."""
    unit = None if isinstance(state.units, Unknown) else state.units.get(PERSISTENCED)
    if unit is None or not state.driver.gpus or other_library(state):
        return False
    # Where it is static udev starts it: then only what has ended or is old is its own to be started anew.
    return unit.enabled == "enabled" or (unit.enabled == "static" and unit.active in ("active", "failed"))
