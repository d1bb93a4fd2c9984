"""Load an inventory: the chosen hosts, their connections and their specs.

Inventories often list machines that have nothing to do with GPUs. gpuready chooses a host if it has a ``gpuready``
value (its own or an inherited one, even an empty one), or if ``-i HOST,`` names it. ``--limit`` only narrows this. All
other hosts are skipped.

Hosts, groups, precedence and scalars follow Ansible. Only ``gpuready:`` is merged key by key over the layers that would
replace each other in Ansible; lists and scalars replace. All errors of all chosen hosts are reported at once, before
anything is executed.
"""

from __future__ import annotations

import datetime
import difflib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from gpuready.base import https
from gpuready.base.errors import InventoryError, SpecError, SpecErrors, Where, did_you_mean
from gpuready.base.words import count
from gpuready.inventory.build import build, references
from gpuready.inventory.connection import HONOURED, Connection, connection, ignored, known_hosts_file, missing_password
from gpuready.inventory.extra import Extra, extra_values, extra_variables
from gpuready.inventory.groups import CHOOSE, Graph, Vars
from gpuready.inventory.patterns import select
from gpuready.inventory.source_values import VAULT, Located, label, merge, refuse_templates, value_at
from gpuready.inventory.sources import is_path, read_by_ansible, read_source
from gpuready.inventory.ssh_options import ConfigFiles
from gpuready.inventory.vars_dirs import Layers, directory_of, is_store
from gpuready.model.spec import NodeSpec

__all__ = ["Connection", "HostEntry", "Hosts", "NothingChosen", "Skipped", "load"]

UNCHOSEN = "no gpuready value in the inventory"
#: Ansible's usual entry for tasks on the controller. It often stands below a group, or all, that has a gpuready value.
THIS_MACHINE = "ansible_connection: local; gpuready reaches this machine only as -i @local"
#: How the note begins that names the files of known_hosts, and that for files that do not exist or are not files.
KNOWN_HOSTS = "known_hosts comes from the inventory"
_NO_KNOWN_HOSTS = "known_hosts comes from the inventory, but is not there"
_DECRYPT = "--ansible --allow-exec: ansible-inventory decrypts the file"
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")

MAX_SHOWN = 50
_NAMED = 12


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


@dataclass(frozen=True)
class HostEntry:
    """A chosen host; ``groups`` are sorted and without ``all``, ``notes`` lists what was ignored.

    ``spread`` is the variable that ``maintenance.spread_by`` names, and its value for this host. ``given`` is what the
    inventory says for ``spec``: the merged ``gpuready`` values, each with its file and line.
    """

    name: str
    connection: Connection
    spec: NodeSpec
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    source: Where
    spread: tuple[str, str] | None = None
    given: Located = field(default=Located(None, Where("")), compare=False, repr=False)


@dataclass(frozen=True)
class Skipped:
    """A host that was not chosen, and the reason; ``notes`` are the errors in its variables.

    ``remedy``: how to choose it, in the syntax of its file; empty if that is not possible.
    """

    name: str
    reason: str
    notes: tuple[str, ...] = ()
    remedy: str = CHOOSE


@dataclass(frozen=True)
class Hosts:
    """The hosts of an inventory, in inventory order."""

    chosen: tuple[HostEntry, ...]
    skipped: tuple[Skipped, ...] = ()


class NothingChosen(InventoryError):
    """Every host that matches is skipped: nothing in the inventory says that gpuready manages it."""

    def __init__(self, skipped: Sequence[Skipped], notes: Iterable[str] = ()) -> None:
        by_reason: dict[str, list[str]] = {}
        for host in skipped:
            by_reason.setdefault(host.reason, []).append(label(host.name))
        lines = [f"{_listed(names)}: {reason}" for reason, names in by_reason.items()]
        lines += [f"note: {note}" for note in notes]
        super().__init__(
            "\n".join(["no host is chosen", *lines]), remedy=next((host.remedy for host in skipped if host.remedy), "")
        )
        self.skipped = tuple(skipped)


def load(
    sources: Sequence[str],
    *,
    limit: Sequence[str] = (),
    host: str | None = None,
    allow_exec: bool = False,
    allow_read: Sequence[str] = (),
    ansible: bool = False,
    today: datetime.date | None = None,
    check_ids: Callable[[], Collection[str]] | None = None,
    extra: Sequence[Extra] = (),
    secrets: bool = True,
) -> Hosts:
    """The hosts that match, chosen and skipped.

    ``extra`` are merged over the values and variables of every chosen host (:mod:`gpuready.inventory.extra`). ``limit``
    are Ansible patterns; ``host`` is one more, which a host must match as well. ``allow_exec`` permits executable
    inventories, all secrets and ssh options that run commands; ``allow_read`` permits these references, as those in
    ``extra`` are. With ``ansible``, ansible-inventory reads the files and directories. ``today`` decides whether an
    ``until`` date has passed. A waiver must name one of ``check_ids()`` (None: any name). Without ``secrets``, sudo's
    password is not read; a note says if it is not available. Raises :class:`SpecErrors` with all errors of the chosen
    hosts, :class:`NothingChosen`, :class:`InventoryError` if a source is unreadable or empty, or nothing matches, or
    :class:`UsageError` for a pattern that is not one.
    """
    spec, variables = extra_values(extra), extra_variables(extra)
    graph = read(sources, allow_exec=allow_exec, ansible=ansible)
    notes = list(graph.notes)
    names = select(graph, limit, notes)
    if host is not None:
        allowed, names = set(names), select(graph, [host], notes)
        names = [name for name in names if name in allowed]
        if not names:
            raise InventoryError(f"{host}: --limit {','.join(limit)} leaves it out")
    layers = Layers(graph, [] if ansible else [directory_of(s) for s in sources if is_path(s)])
    notes += layers.misnamed()
    loader = _HostLoader(
        graph=graph,
        layers=layers,
        notes=notes,
        files=ConfigFiles(allow_exec=allow_exec),
        allow_exec=allow_exec,
        allow_read=(*allow_read, *_referred(spec), *(str(value.value) for value in variables.values())),
        today=today,
        check_ids=check_ids,
        extra=spec,
        variables=variables,
        secrets=secrets,
    )
    chosen, skipped = [], []
    for name in names:
        found = loader.host(name)
        if isinstance(found, HostEntry):
            chosen.append(found)
        elif found is not None:
            skipped.append(found)
    errors = [*loader.errors, *map(_encrypted, loader.encrypted, loader.encrypted.values())]
    if errors := [*errors, *map(_unspread, loader.unspread, loader.unspread.values())]:
        raise _all_at_once(errors)
    if not chosen:
        raise NothingChosen(skipped, notes)
    return Hosts(tuple(chosen), tuple(skipped))


def _referred(extra: Located | None) -> tuple[str, ...]:
    """The secrets that the command line itself refers to."""
    return () if extra is None else tuple(str(place.value) for _, place, _ in references(extra))


def read(sources: Sequence[str], *, allow_exec: bool = False, ansible: bool = False) -> Graph:
    """Hosts and groups of all sources, without vars directories; errors as in :func:`load`."""
    if not sources:
        raise InventoryError("no inventory given")
    https.refuse_to_share("GET", (source for source in sources if source.startswith("https://")))
    graph = Graph()
    errors: list[SpecError] = []
    paths = list(filter(is_path, sources)) if ansible else []
    if paths:
        read_by_ansible(paths, graph, errors)
    for source in (each for each in sources if each not in paths):
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
    """Each error once, ordered by file: a wrong value of a group is an error of each of its hosts."""
    unique = {str(error): error for error in errors}
    ordered = sorted(unique.values(), key=lambda e: (e.where.file, e.where.line))
    more = len(ordered) - MAX_SHOWN
    if more > 0:
        ordered[MAX_SHOWN:] = [SpecError(f"and {count(more, 'more problem')}", where=Where(ordered[-1].where.file))]
    return SpecErrors(ordered)


@dataclass(kw_only=True)
class _HostLoader:
    """Builds the entries; hosts with identical layers share one spec."""

    graph: Graph
    layers: Layers
    notes: list[str]
    files: ConfigFiles
    allow_exec: bool
    allow_read: tuple[str, ...]
    today: datetime.date | None
    check_ids: Callable[[], Collection[str]] | None
    extra: Located | None
    variables: dict[str, Located]
    secrets: bool
    errors: list[SpecError] = field(default_factory=list)
    encrypted: dict[Where, list[str]] = field(default_factory=dict)
    """Place of an encrypted file -> the chosen hosts that need it."""
    unspread: dict[str, list[tuple[str, Where]]] = field(default_factory=dict)
    """Variable of spread_by -> the hosts that have no value for it, and where that is."""
    _specs: dict[tuple[int, ...], _Built | None] = field(default_factory=dict)

    def host(self, name: str) -> HostEntry | Skipped | None:
        """The host, or None if it has errors."""
        try:
            layers = self.layers.of_host(name)
        except SpecError as e:
            self.errors.append(e)
            return None
        self._refuse_misspelt(layers)
        pairs = (pair for layer in layers for pair in layer.items())
        variables = {key: value for key, value in pairs if isinstance(key, str) and key.startswith("ansible_")}
        variables |= self.variables
        chosen = name in self.graph.named or any("gpuready" in layer for layer in layers)
        if chosen and self._is_controller(name, variables):
            return Skipped(name, THIS_MACHINE, remedy="")
        read = chosen and self.secrets
        reach, wrong = connection(
            name, variables, self.files, allow_exec=self.allow_exec, allow_read=self.allow_read, secrets=read
        )
        encrypted = [layer[VAULT].where for layer in layers if VAULT in layer]
        if not chosen:
            reason = UNCHOSEN
            if encrypted:
                reason += f" (not read: {', '.join(map(str, encrypted))}, encrypted with ansible-vault)"
            remedy = self.graph.choose.get(self.graph.hosts[name].where.file, CHOOSE)
            if encrypted:
                remedy += f"; or {_DECRYPT}"
            return Skipped(name, reason, tuple(map(str, wrong)), remedy)
        self.errors += wrong
        for where in encrypted:
            if not is_store(where.file):
                self.encrypted.setdefault(where, []).append(label(name))
        found = self._spec(layers)
        if reach is None or found is None:
            return None
        groups = tuple(sorted(group.name for group in self.graph.groups_of(name)))
        remarks = self._remarks(name, ignored(variables), encrypted)
        remarks += _expired(name, found, self.today)
        if not self.secrets and (missing := missing_password(variables, self.allow_exec, self.allow_read)):
            remarks.append(missing)
        if file := known_hosts_file(reach):
            there = all(Path(each).expanduser().is_file() for each in file.split())
            remarks.append(f"{KNOWN_HOSTS if there else _NO_KNOWN_HOSTS}: {file}")
        notes, where = (*self.notes, *remarks), self.graph.hosts[name].where
        spread = self._spread(name, found.spec, layers)
        return HostEntry(name, reach, found.spec, groups, notes, where, spread, found.given)

    def _is_controller(self, name: str, variables: Mapping[str, Located]) -> bool:
        """Whether this is Ansible's localhost, and nothing but a group or all chose it."""
        connects = variables["ansible_connection"].value if "ansible_connection" in variables else ""
        itself = name in self.graph.named or any("gpuready" in layer for layer in self.layers.own(name))
        return name in _LOCAL_NAMES and connects in ("local", "ansible.builtin.local") and not itself

    def _spec(self, layers: tuple[Vars, ...]) -> _Built | None:
        blocks = [layer["gpuready"] for layer in layers if "gpuready" in layer]
        key = tuple(map(id, blocks))
        if key not in self._specs:
            extra = [] if self.extra is None else [self.extra]
            tree = functools.reduce(merge, blocks + extra, Located(None, Where("")))
            try:
                spec = build(
                    tree,
                    today=self.today,
                    allow_exec=self.allow_exec,
                    allow_read=self.allow_read,
                    check_ids=self.check_ids,
                )
                self._specs[key] = _Built(spec, tree)
            except SpecErrors as e:
                self.errors += e.errors
                self._specs[key] = None
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
        # Without a value, the host could go down together with the others of its rack.
        where = found.where if found is not None else self.graph.hosts[name].where
        self.unspread.setdefault(variable, []).append((label(name), where))
        return None

    def _remarks(self, name: str, unused: list[str], encrypted: list[Where]) -> list[str]:
        remarks = []
        if unused:
            hints = {each: did_you_mean(each, HONOURED, 0.88).removeprefix("; ") for each in unused}
            words = [f"{label(each)} ({hint})" if hint else label(each) for each, hint in hints.items()]
            remarks.append(f"ignored: {', '.join(words)}")
        if name in self.graph.groups and self.graph.hosts_of(name) != [name]:
            remarks.append(f"{name} is the name of a host and a group: as in Ansible, the group gets its variables")
        return remarks + [f"{where}: encrypted with ansible-vault, not read; {_DECRYPT}" for where in encrypted]

    def _refuse_misspelt(self, layers: tuple[Vars, ...]) -> None:
        """Refuse a misspelt or misplaced ``gpuready``: the host would be skipped, or get only the defaults."""
        for layer in layers:
            for key, value in layer.items():
                if key == "vars" and isinstance(value.value, dict) and "gpuready" in value.value:
                    problem = "vars below a host is a variable of that name: the host gets no gpuready value"
                    self.errors.append(SpecError(problem, where=value.where, allowed="HOST: {gpuready: ...}"))
                if isinstance(key, str) and key != "gpuready" and _looks_like_ours(key):
                    problem = f"unknown variable {label(key)}"
                    self.errors.append(SpecError(problem, where=value.where, allowed="gpuready", near="gpuready"))


@functools.cache
def _looks_like_ours(key: str) -> bool:
    return key.startswith("gpuready.") or bool(difflib.get_close_matches(key.lower(), ["gpuready"], 1, 0.8))


@dataclass(frozen=True)
class _Built:
    """A spec, and the values that it was built from."""

    spec: NodeSpec
    given: Located


def _expired(host: str, built: _Built, today: datetime.date | None) -> Iterable[str]:
    """Notes on the waivers for this host that have expired."""
    for number, waiver in enumerate(built.spec.verify.waive):
        if waiver.until < (today or datetime.date.today()) and fnmatchcase(host, waiver.host):
            place = value_at(built.given, ("verify", "waive", number))
            where = f"{place.where}: " if place is not None else ""
            yield f"{where}the waiver of {waiver.check} expired on {waiver.until}"


def _unspread(variable: str, found: Sequence[tuple[str, Where]]) -> SpecError:
    """The error for hosts without a value of ``maintenance.spread_by``; the first one says where."""
    names = [name for name, _ in found]
    who = f"host {names[0]} has" if len(names) == 1 else f"{len(names)} hosts have"
    listed = "" if len(names) == 1 else f" ({_listed(names)})"
    problem = f"maintenance.spread_by: {who} no plain value for the variable {variable}{listed}"
    return SpecError(problem, where=found[0][1], allowed=f"{variable}: NAME for every host")


def _encrypted(where: Where, names: Sequence[str]) -> SpecError:
    """The error for a file that gpuready needs: it may hold the spec or the address of these hosts."""
    return SpecError(
        f"encrypted with ansible-vault, but its variables apply to {_listed(names)}",
        where=where,
        allowed=f"plain text, with secrets in a file of their own (group_vars/NAME/vault.yml); or {_DECRYPT}",
    )
