"""``group_vars/`` and ``host_vars/`` beside an inventory, and the precedence of a host's variables.

From low to high: the inventory's group variables, group_vars/all, the other group_vars, the host's own variables,
host_vars; within each, source by source. Source: Ansible's documentation, "Organizing host and group variables" and
"Understanding variable precedence"; its directories beside a playbook do not exist here.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuready.base.errors import InventoryError, SpecError, Where
from gpuready.inventory.groups import Graph, Group, Vars
from gpuready.inventory.source_values import VAULT, Located, Shown
from gpuready.inventory.yaml_positions import load_text, read_text

_EXTENSIONS = ("", ".yml", ".yaml", ".json")
#: So many files and groups are compared for a hint: an incomplete hint is better than a slow one.
_COMPARED = 100


class Layers:
    """The variables of each host as mappings, of which the last one wins."""

    def __init__(self, graph: Graph, directories: Sequence[str]) -> None:
        self._graph = graph
        self._directories = directories
        self._listings: dict[str, frozenset[str]] = {}
        self._files: dict[tuple[str, str], tuple[Vars, ...] | SpecError] = {}
        self._of_groups: dict[tuple[Group, ...], tuple[Vars, ...]] = {}

    def of_host(self, name: str) -> tuple[Vars, ...]:
        """All layers of a host; SpecError or InventoryError for a file that cannot be read."""
        groups = self._graph.groups_of(name)
        if groups not in self._of_groups:
            self._of_groups[groups] = tuple(layer for layer in self._group_layers(groups) if layer)
        return self._of_groups[groups] + self.own(name)

    def own(self, name: str) -> tuple[Vars, ...]:
        """The layers of a host that belong to no group."""
        own = self._graph.hosts[name].vars
        return ((own,) if own else ()) + self._beside("host_vars", name)

    def misnamed(self) -> Iterator[str]:
        """Notes on files in group_vars that set ``gpuready`` and belong to no group; Ansible does not read them either.

        An inventory may share the directory with others, so only a name like that of a group without a file counts.
        """
        for directory in self._directories:
            folder = str(Path(directory, "group_vars"))
            there = self._listing(folder)
            without = [name for name in self._graph.groups if not any(name + end in there for end in _EXTENSIONS)]
            for file in sorted(there)[:_COMPARED]:
                path = Path(folder, file)
                stem = file.removesuffix(path.suffix)
                near = difflib.get_close_matches(stem.lower(), without[:_COMPARED], 1, 0.8)
                named = stem in self._graph.groups and path.suffix in _EXTENSIONS
                if near and not named and _mentions(path, "gpuready"):
                    yield f"{path}: not read: no group has this file name; gpuready would read {near[0]}.yml"

    def _listing(self, folder: str) -> frozenset[str]:
        if folder not in self._listings:
            self._listings[folder] = _names_in(folder)
        return self._listings[folder]

    def _group_layers(self, groups: tuple[Group, ...]) -> Iterator[Vars]:
        yield self._graph.groups["all"].vars
        for group in groups:
            yield group.vars
        yield from self._beside("group_vars", "all")
        for directory in self._directories:
            for group in groups:
                yield from self._vars_of(directory, "group_vars", group.name)

    def _beside(self, kind: str, name: str) -> tuple[Vars, ...]:
        found = (self._vars_of(directory, kind, name) for directory in self._directories)
        return tuple(layer for layers in found for layer in layers)

    def _vars_of(self, directory: str, kind: str, name: str) -> tuple[Vars, ...]:
        folder = str(Path(directory, kind))
        there = self._listing(folder)
        if (folder, name) not in self._files:
            try:
                files = list(_find(folder, name, there))
            except OSError as e:
                raise InventoryError(f"{e.filename}: cannot be read: {e.strerror}") from None
            try:
                self._files[folder, name] = tuple(layer for layer in map(_read, map(str, files)) if layer)
            except SpecError as e:  # read once, although all hosts of a group need it
                self._files[folder, name] = e
        found = self._files[folder, name]
        if isinstance(found, SpecError):
            raise found
        return found


def directory_of(source: str) -> str:
    """The directory that holds group_vars and host_vars of a source: the source itself, or the file's directory."""
    path = Path(source)
    return str(path if path.is_dir() else path.parent)


def is_store(file: str) -> bool:
    """Whether a vars file holds only secrets by Ansible's convention: ``group_vars/NAME/vault.yml`` beside others.

    Source: Ansible's documentation, "Keep vaulted variables safely visible".
    """
    path = Path(file)
    in_folder = path.parent.name not in ("group_vars", "host_vars")
    return in_folder and re.search("vault|secret|credential|password", path.stem, re.IGNORECASE) is not None


def _names_in(folder: str) -> frozenset[str]:
    try:
        return frozenset(entry.name for entry in Path(folder).iterdir())
    except (NotADirectoryError, FileNotFoundError):
        return frozenset()
    except OSError as e:
        raise InventoryError(f"{folder}: cannot be read: {e.strerror}") from None


def _mentions(path: Path, word: str) -> bool:
    try:
        return word in read_text(str(path))
    except (InventoryError, SpecError):  # nobody asked for this file
        return False


def _find(folder: str, name: str, there: frozenset[str]) -> Iterator[Path]:
    """The first of NAME, NAME.yml, NAME.yaml, NAME.json that exists: a file, or all files of a directory."""
    candidates = (Path(folder, name + extension) for extension in _EXTENSIONS if name + extension in there)
    path = next((candidate for candidate in candidates if candidate.exists()), None)
    if path is None:
        return
    if path.is_dir():
        yield from _files_below(path, frozenset())
    else:
        yield path


def _files_below(directory: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Files sorted by name, without hidden files, backups, and directories with a suffix."""
    above |= {directory.resolve()}
    for path in sorted(directory.iterdir(), key=lambda p: p.name):
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir():
            if path.resolve() in above:
                raise InventoryError(f"{path}: the link points back to a directory above it", remedy="remove the link")
            if not path.suffix:
                yield from _files_below(path, above)
        elif path.is_file() and path.suffix in _EXTENSIONS:
            yield path


def _read(file: str) -> Vars:
    """The variables of a file; for a file encrypted with ansible-vault, only a mark."""
    text = read_text(file)
    if text.startswith("$ANSIBLE_VAULT;"):
        return {VAULT: Located(VAULT, Where(file))}
    located = load_text(text, file)
    if located is None or located.value is None:
        return {}
    if not isinstance(located.value, dict):
        given = Shown(located.value)
        raise SpecError("the file is not accepted", where=Where(file, 1), given=given, allowed="a mapping of variables")
    return located.value
