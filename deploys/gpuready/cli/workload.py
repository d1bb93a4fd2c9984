"""What a pod needs on the chosen hosts: one answer for all of them, or an error that names the difference."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gpuready.base.errors import UsageError
from gpuready.cli.states import read_states
from gpuready.fabric.kubernetes import Workload, workload
from gpuready.fabric.launch import NcclError
from gpuready.inventory.hosts import HostEntry
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

#: Parts of a workload and the keys of the spec that set them.
_KEYS = {"image": "verify.image", "gpus": "hardware.gpus"}


def agreed(entries: Sequence[HostEntry], path: str | None) -> tuple[Workload, list[NodeState]]:
    """Return what a pod needs, and the states that were read. ``path``: the recorded states; None for placeholders.

    Without hosts, the defaults of a spec apply.
    """
    if not entries:
        return workload(NodeSpec()), []
    states = {} if path is None else read_states(path, [entry.name for entry in entries])
    if path is not None and (lacking := [entry.name for entry in entries if entry.name not in states]):
        raise UsageError(f"{path} has no state of {', '.join(lacking)}", remedy="--limit, or record it: gpuready probe")
    made = {entry.name: _of(entry, states.get(entry.name)) for entry in entries}
    check_agreement({name: _named(each) for name, each in made.items()})
    return next(iter(made.values())), list(states.values())


def _of(entry: HostEntry, state: NodeState | None) -> Workload:
    try:
        return workload(entry.spec, state)
    except NcclError as e:
        raise NcclError(f"{entry.name}: {e}", remedy="gpuready explain nccl.ports") from None


def _named(each: Workload) -> dict[str, Any]:
    """Return the parts of a workload by what the user can change. A placeholder is not the same as an equal value."""
    parts = asdict(each)
    lacks = parts.pop("placeholders")
    return {_KEYS.get(name, name): (value, lacks.get(name)) for name, value in parts.items()}


def check_agreement(made: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise UsageError if two hosts need different things: an object is for all of them."""
    (first, wanted), *others = made.items()
    for name, each in others:
        if different := [key for key, value in each.items() if value != wanted[key]]:
            raise UsageError(
                f"{first} and {name} differ in {', '.join(different)}, and one object is for all hosts",
                remedy="make them agree in the spec, or choose hosts that agree: --limit PATTERN",
            )
