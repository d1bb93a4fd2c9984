"""What a training needs on the chosen hosts: NCCL's settings of each, and a pod that is the same for all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuready.base.errors import UsageError
from gpuready.base.host_list import hostlist
from gpuready.cli.online import only_read
from gpuready.cli.request import Request
from gpuready.cli.states import read_states
from gpuready.fabric.kubernetes import Workload, workload
from gpuready.fabric.launch import NcclError, unwritten
from gpuready.inventory.hosts import HostEntry
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.nccl_settings import Settings, cluster
from gpuready.result.model import HostResult, Run
from gpuready.result.text import grouped

#: Parts of a workload, as errors name them: by the key of the spec, where one sets them.
_NAMES = {
    "image": "verify.image",
    "gpus": "hardware.gpus",
    "shm": "shared memory",
    "variables": "NCCL's settings",
    "attachments": "RDMA networks",
    "attached": "the number of RDMA networks",
    "rdma": "RDMA",
}
_EXPLAINED = "gpuready explain nccl.ports"


def chooses(given: Mapping[str, Any]) -> bool:
    """Tell whether the command line chooses hosts. Without them, there are placeholders or defaults."""
    return any(given[name] for name in ("inventory", "limit", "extra_vars"))


def agreed(
    entries: Sequence[HostEntry],
    states: Mapping[str, NodeState],
    *parts: str,
    needs: Callable[[NodeSpec, NodeState | None], Workload] = workload,
) -> Workload:
    """Return what a job needs; the hosts must agree in ``parts`` of it. ``states``: empty for placeholders.

    Without hosts, the defaults of a spec apply.
    """
    made = {entry.name: _of(entry, states.get(entry.name), needs) for entry in entries}
    if not made:
        return needs(NodeSpec(), None)
    check_agreement({name: {_NAMES[part]: _part(each, part) for part in parts} for name, each in made.items()})
    notes = grouped((note, name) for name, each in made.items() for note in each.notes)
    shown = (note if len(names) == len(made) else f"{hostlist(names)}: {note}" for note, names in notes.items())
    return replace(next(iter(made.values())), notes=tuple(shown))


def recorded(entries: Sequence[HostEntry], path: str | None) -> dict[str, NodeState]:
    """Return the recorded state of each host; none without a path. Raises UsageError if a host has none."""
    states = {} if path is None else read_states(path, [entry.name for entry in entries])
    if path is not None and (lacking := [entry.name for entry in entries if entry.name not in states]):
        raise UsageError(
            f"{path} has no state of {', '.join(lacking)}", remedy="--limit, or record it: gpuready record"
        )
    return states


def _of(entry: HostEntry, state: NodeState | None, needs: Callable[[NodeSpec, NodeState | None], Workload]) -> Workload:
    try:
        return needs(entry.spec, state)
    except NcclError as e:
        raise NcclError(f"{entry.name}: {e}", remedy=_EXPLAINED) from None


def _part(each: Workload, name: str) -> tuple[Any, str | None]:
    """Return a part, and what the user must replace in it: a placeholder is not the same as an equal value."""
    return getattr(each, name), each.placeholders.get(name)


def on_hosts(
    entries: Sequence[HostEntry], states: Mapping[str, NodeState]
) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """Return the environment of jobs on each host itself, as ``launch hosts`` has it, and notes with their hosts.

    Without states, it is what the spec adds to NCCL's settings. Raises :class:`NcclError` with all that lacks.
    """
    if not states:
        return {entry.name: dict(entry.spec.nccl.extra) for entry in entries}, {}
    found = cluster(states, {entry.name: entry.spec for entry in entries})
    if lacking := grouped(("; ".join(each.problems), name) for name, each in found.items() if each.problems):
        raise NcclError(
            "\n".join(f"{hostlist(names)}: {problem}" for problem, names in lacking.items()), remedy=_EXPLAINED
        )
    made = {name: {**unwritten(each.variables, states[name]), **each.environment} for name, each in found.items()}
    return made, grouped((note, name) for name, each in found.items() for note in each.notes)


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
            host.fail(NcclError("; ".join(settings.problems), remedy=_EXPLAINED))
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
