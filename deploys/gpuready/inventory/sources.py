"""Read one ``-i``: detect its kind, and add its hosts, groups and variables to the graph.

A YAML or JSON file in Ansible's form, JSON as ``ansible-inventory --list --export`` prints it, an executable
that prints such JSON, a directory of these, or a list of hosts. Sources: Ansible's documentation of the
``yaml``, ``script`` and ``host_list`` inventory plugins.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from gpuready.core.errors import InventoryError, SpecError, Where
from gpuready.inventory.ansible import ExportSource, YamlSource
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.groups import Graph
from gpuready.inventory.host_names import NAME_ALLOWED, expand, is_host, split_port
from gpuready.inventory.ssh_options import USER
from gpuready.inventory.yaml_positions import decode, is_json, load_text, read_text
from gpuready.spec.source_values import Located, Shown

_TIMEOUT = 60
_INI = re.compile(r"\s*(?:[#;].*\n\s*)*\[[A-Za-z0-9_.-]+(:\w+)?\]\s*(?:[#;].*)?(?:\n|$)")
_SKIPPED = (".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry")
_NOT_FILES = ("host_vars", "group_vars", "vars_plugins")
_NOT_YET = {
    ".ini": "INI inventory; convert it with: ansible-inventory -i {0} --list --yaml --export > hosts.yaml",
    ".toml": "TOML inventory; convert it with: ansible-inventory -i {0} --list --yaml --export > hosts.yaml",
    ".tf": "Terraform; write its outputs as an Ansible YAML inventory",
    ".tfstate": "Terraform; write its outputs as an Ansible YAML inventory",
}


def read_source(source: str, graph: Graph, errors: list[SpecError], *, allow_exec: bool) -> None:
    """Read one source and append its errors to ``errors``; InventoryError if it is not an inventory at all."""
    if source == LOCAL:
        graph.add_host(LOCAL, graph.groups["ungrouped"], Where(f"-i {LOCAL}"))
        graph.named.add(LOCAL)
        return
    if source.startswith("@"):
        raise InventoryError(
            f"{source}: not supported yet: gpuready connects with SSH, or to this machine with {LOCAL}"
        )
    if is_path(source):
        _read_path(Path(source), graph, errors, allow_exec=allow_exec)
    elif "," in source or "@" in source:
        _read_host_list(source, graph, errors)
    else:
        hint = f"a file, or hosts with a comma: -i {source}," if is_host(source) else "a file"
        raise InventoryError(f"{source}: no such inventory; -i takes {hint}")


def is_path(source: str) -> bool:
    """Whether a source is a file or directory, and not a list of hosts."""
    try:
        return bool(source) and Path(source).exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False


def _read_path(
    path: Path, graph: Graph, errors: list[SpecError], *, allow_exec: bool, above: tuple[Path, ...] = ()
) -> None:
    """Read a file, or all files of a directory in the order of their names; ``above`` are its parent directories."""
    if path.is_dir():
        here = path.resolve()
        if here in above:
            raise InventoryError(f"{path}: the link points back to {here}", remedy="remove the link")
        for entry in _entries(path):
            _read_path(entry, graph, errors, allow_exec=allow_exec, above=(*above, here))
        return
    try:
        _read_file(str(path), graph, errors, allow_exec=allow_exec)
    except SpecError as e:
        errors.append(e)


def _entries(directory: Path) -> list[Path]:
    try:
        paths = sorted(directory.iterdir(), key=lambda p: p.name)
    except OSError as e:
        raise InventoryError(f"{directory}: cannot be read: {e.strerror}") from None
    return [p for p in paths if p.name[0] != "." and p.name not in _NOT_FILES and not p.name.endswith(_SKIPPED)]


def _read_file(path: str, graph: Graph, errors: list[SpecError], *, allow_exec: bool) -> None:
    suffix = Path(path).suffix
    if suffix == ".py":
        raise InventoryError(
            f"{path}: this is a pyinfra inventory",
            remedy=f"run: pyinfra -y {path} deploys/converge.py",
        )
    if suffix in _NOT_YET:
        raise InventoryError(f"{path}: not supported yet: {_NOT_YET[suffix].format(path)}")
    script = _is_script(path)
    text = _run(path, allow_exec=allow_exec) if script else read_text(path)
    if _INI.match(text) and not is_json(text):
        raise InventoryError(f"{path}: not supported yet: {_NOT_YET['.ini'].format(path)}")
    located = load_text(text, path)
    if located is None or located.value in (None, {}, [], ""):
        raise InventoryError(f"{path}: the inventory is empty")
    if not isinstance(located.value, dict):
        allowed = "a mapping of groups, such as all: {hosts: ...}"
        raise SpecError("not an inventory", where=located.where, given=Shown(located.value), allowed=allowed)
    _refuse_others(path, located.value)
    if script or (is_json(text) and _is_export(located.value)):
        ExportSource(graph, errors).read(located.value)
    else:
        YamlSource(graph, errors).read(located.value)


def _refuse_others(path: str, top: dict[object, Located]) -> None:
    if any(":" in str(name) for name in top) and all(group.value is None for group in top.values()):
        raise InventoryError(f"{path}: not an inventory: its lines are not groups of hosts")
    if "plugin" in top and not isinstance(top["plugin"].value, dict):
        raise InventoryError(
            f"{path}: not supported yet: inventory plugin",
            remedy=f"run it once: ansible-inventory -i {path} --list --export > hosts.json",
        )
    outputs = [entry.value for entry in top.values()]
    if all(isinstance(o, dict) and "value" in o and "sensitive" in o for o in outputs):
        raise InventoryError(f"{path}: not supported yet: {_NOT_YET['.tf']}")


def _is_export(top: dict[object, Located]) -> bool:
    """Whether this is JSON as scripts print it, rather than a YAML inventory written as JSON."""
    groups = [group.value for group in top.values() if isinstance(group.value, dict)]
    return "_meta" in top or any(
        isinstance(group[key].value, list) for group in groups for key in ("hosts", "children") if key in group
    )


def _is_script(path: str) -> bool:
    """Whether it is executable and starts as a program: on some file systems every file is executable."""
    if not (os.access(path, os.X_OK) and Path(path).is_file()):
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(4).startswith((b"#!", b"\x7fELF"))
    except OSError:
        return False


def _run(path: str, *, allow_exec: bool) -> str:
    if not allow_exec:
        raise InventoryError(f"{path}: an executable inventory runs only with --allow-exec")
    command = [str(Path(path).absolute()), "--list"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise InventoryError(f"{path} --list: {e}") from None
    if done.returncode:
        tail = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise InventoryError(f"{path} --list: exit {done.returncode}: {tail}")
    text = decode(done.stdout, path)
    if not is_json(text):
        raise InventoryError(f"{path} --list: did not print JSON")
    return text


def _read_host_list(source: str, graph: Graph, errors: list[SpecError]) -> None:
    where = Where(f"-i {source}")
    for entry in filter(None, (part.strip() for part in source.split(","))):
        user, at, address = entry.rpartition("@")
        pattern, port = split_port(address)
        try:
            names = expand(pattern)
        except ValueError as e:
            errors.append(SpecError(str(e), where=where, given=entry, allowed=NAME_ALLOWED))
            continue
        if not all(map(is_host, names)) or (at and not USER.fullmatch(user)):
            errors.append(
                SpecError("not a host", where=where, given=entry, allowed=f"[USER@]HOST[:PORT]: {NAME_ALLOWED}")
            )
            continue
        for name in names:
            host = graph.add_host(name, graph.groups["ungrouped"], where, port)
            graph.named.add(name)
            if at:
                host.vars.setdefault("ansible_user", Located(user, where))
