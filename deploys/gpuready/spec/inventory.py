"""Load an inventory: which hosts, how to reach them, and what each should be.

Ansible's rules hold for hosts, groups, precedence and scalars. ``gpuready:`` alone is merged key by key over
the layers that Ansible would let replace each other; lists and scalars replace. All problems of all wanted
hosts are shown at once, and nothing is executed (unless asked for) before all of it is right.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from gpuready.errors import InventoryError, SpecError, SpecErrors, Where
from gpuready.spec.build import build
from gpuready.spec.connection import Connection, connection, ignored, refuse_templates
from gpuready.spec.groups import Graph, Vars
from gpuready.spec.located import VAULT, Located, label, merge
from gpuready.spec.model import NodeSpec
from gpuready.spec.patterns import select
from gpuready.spec.sources import is_path, read_source
from gpuready.spec.varsdirs import Layers, directory_of

__all__ = ["Connection", "HostEntry", "load"]

MAX_SHOWN = 50


@dataclass(frozen=True)
class HostEntry:
    """One host of an inventory: ``groups`` sorted and without ``all``, ``notes`` what was left aside.

    ``spread``: the variable that ``maintenance.spread_by`` names, and its value here.
    """

    name: str
    connection: Connection
    spec: NodeSpec
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    source: Where
    spread: tuple[str, str] | None = None


def load(
    sources: Sequence[str],
    *,
    limit: Sequence[str] = (),
    allow_exec: bool = False,
    today: datetime.date | None = None,
) -> tuple[HostEntry, ...]:
    """The wanted hosts in inventory order.

    ``limit`` are Ansible patterns; ``allow_exec`` permits executable inventories, ``cmd:`` secrets and ssh
    options that run commands; ``today`` is what ``until`` dates are held against. Raises :class:`SpecErrors`
    with all problems, or :class:`InventoryError` if a source is unreadable, empty, or nothing matches.
    """
    graph = read(sources, allow_exec=allow_exec)
    notes = list(graph.notes)
    names = select(graph, limit, notes)
    layers = Layers(graph, [directory_of(s) for s in sources if is_path(s)])
    loader = _HostLoader(graph, layers, notes, allow_exec=allow_exec, today=today)
    entries = [loader.entry(name) for name in names]
    if loader.errors:
        raise _all_at_once(loader.errors)
    return tuple(entry for entry in entries if entry is not None)


def read(sources: Sequence[str], *, allow_exec: bool = False) -> Graph:
    """Hosts and groups of all sources, without vars directories; errors as in :func:`load`."""
    if not sources:
        raise InventoryError("no inventory given")
    graph = Graph()
    errors: list[SpecError] = []
    for source in sources:
        read_source(source, graph, errors, allow_exec=allow_exec)
    if not errors:
        try:
            graph.reconcile()
        except SpecError as e:
            errors.append(e)
    if errors:
        raise _all_at_once(errors)
    return graph


def _all_at_once(errors: list[SpecError]) -> SpecErrors:
    """Each problem once, in the order of the files: a group's value is wrong for every host of it."""
    unique = {str(error): error for error in errors}
    ordered = sorted(unique.values(), key=lambda e: (e.where.file, e.where.line))
    more = len(ordered) - MAX_SHOWN
    if more > 0:
        ordered[MAX_SHOWN:] = [SpecError(f"and {more} problems more", where=Where(ordered[-1].where.file))]
    return SpecErrors(ordered)


class _HostLoader:
    """Builds the entries; hosts with the very same layers share one spec."""

    def __init__(
        self,
        graph: Graph,
        layers: Layers,
        notes: list[str],
        *,
        allow_exec: bool,
        today: datetime.date | None,
    ) -> None:
        self.errors: list[SpecError] = []
        self._graph, self._layers, self._notes = graph, layers, notes
        self._allow_exec, self._today = allow_exec, today
        self._specs: dict[tuple[int, ...], NodeSpec | None] = {}
        self._misspelt: dict[str, str] = {}

    def entry(self, name: str) -> HostEntry | None:
        """The entry, or None after noting what is wrong."""
        host = self._graph.hosts[name]
        try:
            layers = self._layers.of_host(name)
        except SpecError as e:
            self.errors.append(e)
            return None
        variables = _ansible_variables(layers)
        reach, errors = connection(name, variables, allow_exec=self._allow_exec)
        self.errors += errors
        spec = self._spec(layers)
        if reach is None or spec is None:
            return None
        groups = tuple(sorted(group.name for group in self._graph.groups_of(name)))
        notes = [*self._notes, *self._remarks(name, layers, ignored(variables))]
        return HostEntry(name, reach, spec, groups, tuple(notes), host.where, self._spread(name, spec, layers))

    def _spec(self, layers: tuple[Vars, ...]) -> NodeSpec | None:
        blocks = [layer["gpuready"] for layer in layers if "gpuready" in layer]
        key = tuple(map(id, blocks))
        if key not in self._specs:
            tree: Located | None = None
            for block in blocks:
                tree = merge(tree, block)
            if tree is None:
                self._specs[key] = NodeSpec()
            else:
                self._specs[key], errors = build(tree, today=self._today, allow_exec=self._allow_exec)
                self.errors += errors
        return self._specs[key]

    def _spread(self, name: str, spec: NodeSpec, layers: tuple[Vars, ...]) -> tuple[str, str] | None:
        variable = spec.maintenance.spread_by
        if variable is None:
            return None
        found = next((layer[variable] for layer in reversed(layers) if variable in layer), None)
        if found is not None:
            try:
                refuse_templates(variable, found)
            except SpecError as e:
                self.errors.append(e)
                return None
        if found is not None and isinstance(found.value, (str, int, float)) and str(found.value).strip():
            return variable, str(found.value)
        # Left out, the host could go down together with the others of its rack.
        problem = f"maintenance.spread_by: {label(name)} has no plain value of {variable}"
        where = found.where if found is not None else self._graph.hosts[name].where
        self.errors.append(SpecError(problem, where=where, allowed=f"{variable}: NAME for every host"))
        return None

    def _remarks(self, name: str, layers: tuple[Vars, ...], unused: list[str]) -> list[str]:
        remarks = []
        if unused:
            remarks.append(f"ignored: {', '.join(map(label, unused))}")
        if name in self._graph.groups:
            remarks.append(f"{name} is a host and a group: as in Ansible, its variables are the group's")
        for layer in layers:
            if VAULT in layer:
                remarks.append(f"{layer[VAULT].where}: encrypted with ansible-vault, not read")
            for key, value in layer.items():
                if isinstance(key, str) and key != "gpuready" and self._looks_like_ours(key):
                    # Ignored, it would let a host be converged by the defaults instead of by its spec.
                    problem = f"unknown variable {label(key)}"
                    self.errors.append(SpecError(problem, where=value.where, allowed="gpuready", near="gpuready"))
        return remarks

    def _looks_like_ours(self, key: str) -> bool:
        if key not in self._misspelt:
            near = difflib.get_close_matches(key.lower(), ["gpuready"], 1, 0.8)
            self._misspelt[key] = "".join(near)
        return bool(self._misspelt[key])


def _ansible_variables(layers: tuple[Vars, ...]) -> dict[str, Located]:
    return {
        key: value
        for layer in layers
        for key, value in layer.items()
        if isinstance(key, str) and key.startswith("ansible_")
    }
