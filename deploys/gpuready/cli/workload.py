"""What a training needs on the chosen hosts: NCCL's settings of each, and a pod that is the same for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gpuready.base.errors import UsageError
from gpuready.cli.online import only_read
from gpuready.cli.request import Request
from gpuready.cli.states import read_states
from gpuready.fabric.kubernetes import Workload, workload
from gpuready.fabric.launch import NcclError
from gpuready.inventory.hosts import HostEntry
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.nccl_settings import Settings, cluster
from gpuready.result.model import HostResult, Run

#: Parts of a workload and the keys of the spec that set them.
_KEYS = {"image": "verify.image", "gpus": "hardware.gpus"}


def chooses(given: Mapping[str, Any]) -> bool:
    """Tell whether the command line chooses hosts. Without them, there are placeholders or defaults."""
    return any(given[name] for name in ("inventory", "limit", "extra_vars"))


def agreed(entries: Sequence[HostEntry], path: str | None) -> tuple[Workload, list[NodeState]]:
    """Return what a pod needs, and the states that were read. ``path``: the recorded states; None for placeholders.

    Without hosts, the defaults of a spec apply.
    """
    if not entries:
        return workload(NodeSpec()), []
    states = {} if path is None else read_states(path, [entry.name for entry in entries])
    if path is not None and (lacking := [entry.name for entry in entries if entry.name not in states]):
        raise UsageError(
            f"{path} has no state of {', '.join(lacking)}", remedy="--limit, or record it: gpuready record"
        )
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


def nccl_settings(wanted: Request, state: str | None) -> tuple[Run, dict[str, Settings]]:
    """Return the run, and NCCL's settings of each host that was read; its result says why it has none.

    ``state``: the recorded states; None connects.
    """
    run = only_read(wanted, state)
    specs = {entry.name: entry.spec for entry in wanted.entries}
    states = {host.name: host.state for host in run.hosts if host.state is not None and host.error is None}
    found = cluster(states, specs)
    for host in run.hosts:
        if host.name not in found:
            continue
        settings = found[host.name]
        host.notes += settings.notes
        if settings.problems:
            host.fail(NcclError("; ".join(settings.problems), remedy="gpuready explain nccl.ports"))
    _compare([(host, found[host.name].variables) for host in run.hosts if host.error is None and host.name in found])
    return run, found


def _compare(hosts: Sequence[tuple[HostResult, Mapping[str, str]]]) -> None:
    """Note the variables that differ between hosts: one environment for all ranks would be wrong."""
    for name in dict.fromkeys(name for _, variables in hosts for name in variables):
        if len({variables.get(name) for _, variables in hosts}) > 1:
            for host, variables in hosts:
                value = variables.get(name)
                here = "is not set" if value is None else f"is {value}"
                host.notes.append(f"{name} {here}; the hosts differ, so give each host its own value")
