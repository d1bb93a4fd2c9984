"""Load an inventory: which of its hosts are ours, how to reach them, and what each should be.

An inventory often lists machines that have nothing to do with GPUs. A ``gpuready`` value chooses a host (its own or
an inherited one, also an empty one), and so does its name in ``-i HOST,``; ``--limit`` only narrows. All others are
skipped.

Ansible's rules hold for hosts, groups, precedence and scalars. ``gpuready:`` alone is merged key by key over
the layers that Ansible would let replace each other; lists and scalars replace. All problems of all wanted
hosts are shown at once, and nothing is executed (unless asked for) before all of it is right.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpuready.core.errors import InventoryError, SpecError, SpecErrors, Where
from gpuready.inventory.connection import Connection, connection, ignored
from gpuready.inventory.groups import Graph, Vars
from gpuready.inventory.patterns import select
from gpuready.inventory.sources import is_path, read_source
from gpuready.inventory.ssh_options import ConfigFiles
from gpuready.inventory.vars_dirs import Layers, directory_of, is_store
from gpuready.spec.build import at, build
from gpuready.spec.model import NodeSpec
from gpuready.spec.source_values import VAULT, Located, label, merge, refuse_templates

__all__ = ["Connection", "HostEntry", "Hosts", "NothingChosen", "Skipped", "load"]

UNCHOSEN = "no gpuready value in the inventory"
CHOOSE = "add `gpuready: {}` to a host, to a group's vars or to all's vars; or name the host, with a comma: `-i gpu01,`"

MAX_SHOWN = 50


_NAMED = 12


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


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


@dataclass(frozen=True)
class Skipped:
    """A host that was not chosen, and why; ``notes`` are what is wrong in its variables."""

    name: str
    reason: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hosts:
    """The hosts of an inventory, each part in inventory order."""

    chosen: tuple[HostEntry, ...]
    skipped: tuple[Skipped, ...] = ()


class NothingChosen(InventoryError):
    """All hosts that match are skipped."""

    def __init__(self, skipped: Sequence[Skipped]) -> None:
        by_reason: dict[str, list[str]] = {}
        for host in skipped:
            by_reason.setdefault(host.reason, []).append(label(host.name))
        told = [f"{_listed(names)}: {reason}" for reason, names in by_reason.items()]
        super().__init__("\n".join(["no host is chosen", *told]), remedy=CHOOSE)
        self.skipped = tuple(skipped)


def load(
    sources: Sequence[str],
    *,
    limit: Sequence[str] = (),
    allow_exec: bool = False,
    today: datetime.date | None = None,
    check_ids: Collection[str] | None = None,
) -> Hosts:
    """The hosts that match, chosen and skipped.

    ``limit`` are Ansible patterns; ``allow_exec`` permits executable inventories, ``cmd:`` secrets and ssh
    options that run commands; ``today`` is what ``until`` dates are compared with; waivers may name ``check_ids`` alone
    (None: any). Raises :class:`SpecErrors` with all problems of the chosen hosts, :class:`NothingChosen`, or
    :class:`InventoryError` if a source is unreadable, empty, or nothing matches.
    """
    graph = read(sources, allow_exec=allow_exec)
    notes = list(graph.notes)
    names = select(graph, limit, notes)
    layers = Layers(graph, [directory_of(s) for s in sources if is_path(s)])
    loader = _HostLoader(graph, layers, notes, allow_exec=allow_exec, today=today, check_ids=check_ids)
    chosen, skipped = [], []
    for name in names:
        found = loader.host(name)
        if isinstance(found, HostEntry):
            chosen.append(found)
        elif found is not None:
            skipped.append(found)
    if errors := [*loader.errors, *map(_encrypted, loader.encrypted, loader.encrypted.values())]:
        raise _all_at_once(errors)
    if not chosen:
        raise NothingChosen(skipped)
    return Hosts(tuple(chosen), tuple(skipped))


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
        check_ids: Collection[str] | None,
    ) -> None:
        self.errors: list[SpecError] = []
        self.encrypted: dict[Where, list[str]] = {}
        """Files that could not be read -> the chosen hosts that need them."""
        self._graph, self._layers, self._notes = graph, layers, notes
        self._allow_exec, self._today, self._check_ids = allow_exec, today, check_ids
        self._files = ConfigFiles(allow_exec=allow_exec)
        self._specs: dict[tuple[int, ...], tuple[NodeSpec, tuple[_Ended, ...]] | None] = {}
        self._misspelt: dict[str, str] = {}

    def host(self, name: str) -> HostEntry | Skipped | None:
        """The host, or None after noting what is wrong."""
        try:
            layers = self._layers.of_host(name)
        except SpecError as e:
            self.errors.append(e)
            return None
        self._refuse_misspelt(layers)
        variables = _ansible_variables(layers)
        reach, wrong = connection(name, variables, self._files, allow_exec=self._allow_exec)
        encrypted = [layer[VAULT].where for layer in layers if VAULT in layer]
        if name not in self._graph.named and not any("gpuready" in layer for layer in layers):
            reason = UNCHOSEN
            if encrypted:
                reason += f" (not read: {', '.join(map(str, encrypted))}, encrypted with ansible-vault)"
            return Skipped(name, reason, tuple(map(str, wrong)))
        self.errors += wrong
        for where in encrypted:
            if not is_store(where.file):
                self.encrypted.setdefault(where, []).append(label(name))
        found = self._spec(layers)
        if reach is None or found is None:
            return None
        spec, ended = found
        groups = tuple(sorted(group.name for group in self._graph.groups_of(name)))
        remarks = self._remarks(name, ignored(variables), encrypted)
        remarks += [each.note for each in ended if fnmatchcase(name, each.host)]
        notes, where = (*self._notes, *remarks), self._graph.hosts[name].where
        return HostEntry(name, reach, spec, groups, notes, where, self._spread(name, spec, layers))

    def _spec(self, layers: tuple[Vars, ...]) -> tuple[NodeSpec, tuple[_Ended, ...]] | None:
        blocks = [layer["gpuready"] for layer in layers if "gpuready" in layer]
        key = tuple(map(id, blocks))
        if key not in self._specs:
            tree: Located | None = None
            for block in blocks:
                tree = merge(tree, block)
            if tree is None:
                self._specs[key] = NodeSpec(), ()
            else:
                spec, errors = build(tree, today=self._today, allow_exec=self._allow_exec, check_ids=self._check_ids)
                self.errors += errors
                self._specs[key] = None if spec is None else (spec, tuple(_ended(spec, tree, self._today)))
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

    def _remarks(self, name: str, unused: list[str], encrypted: list[Where]) -> list[str]:
        remarks = []
        if unused:
            remarks.append(f"ignored: {', '.join(map(label, unused))}")
        if name in self._graph.groups:
            remarks.append(f"{name} is a host and a group: as in Ansible, its variables are the group's")
        return remarks + [f"{where}: encrypted with ansible-vault, not read" for where in encrypted]

    def _refuse_misspelt(self, layers: tuple[Vars, ...]) -> None:
        """A misspelt ``gpuready`` would let a host be skipped, or be converged by the defaults."""
        for layer in layers:
            for key, value in layer.items():
                if isinstance(key, str) and key != "gpuready" and self._looks_like_ours(key):
                    problem = f"unknown variable {label(key)}"
                    self.errors.append(SpecError(problem, where=value.where, allowed="gpuready", near="gpuready"))

    def _looks_like_ours(self, key: str) -> bool:
        if key not in self._misspelt:
            near = difflib.get_close_matches(key.lower(), ["gpuready"], 1, 0.8)
            self._misspelt[key] = "".join(near)
        return bool(self._misspelt[key])


@dataclass(frozen=True)
class _Ended:
    """A waiver that is out of date, and the pattern of the hosts that it was for."""

    host: str
    note: str


def _ended(spec: NodeSpec, tree: Located, today: datetime.date | None) -> Iterable[_Ended]:
    for number, waiver in enumerate(spec.verify.waive):
        if waiver.until < (today or datetime.date.today()):
            place = at(tree, ("verify", "waive", number))
            where = f"{place.where}: " if place is not None else ""
            yield _Ended(waiver.host, f"{where}the waiver of {waiver.check} ended on {waiver.until}")


def _encrypted(where: Where, names: Sequence[str]) -> SpecError:
    """The spec or the address of these hosts may be in there: without it, another one would be taken."""
    return SpecError(
        f"encrypted with ansible-vault, and its variables are those of {_listed(names)}",
        where=where,
        allowed="plain text, with secrets in a file of their own (group_vars/NAME/vault.yml); "
        "or -i FILE, made by ansible-inventory --list --export > FILE",
    )


def _ansible_variables(layers: tuple[Vars, ...]) -> dict[str, Located]:
    return {
        key: value
        for layer in layers
        for key, value in layer.items()
        if isinstance(key, str) and key.startswith("ansible_")
    }
