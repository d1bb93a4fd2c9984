"""Read one ``-i``: detect its kind, and add its hosts, groups and variables to the graph.

A YAML, JSON or INI file in Ansible's form, JSON as ``ansible-inventory --list --export`` prints it, an executable
that prints such JSON, the JSON of Terraform, a URL of one of these (:mod:`gpuready.inventory.fetched`), a directory of
these, stdin, a list of hosts, or ``ssh:PATTERN``. With
``--ansible``, ansible-inventory reads the files and directories. Sources: Ansible's documentation of the ``yaml``,
``ini``, ``script`` and ``host_list`` inventory plugins.
"""

import difflib
import ipaddress
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuready.base.errors import InventoryError, SpecError, Where
from gpuready.inventory import fetched, own_ssh_config
from gpuready.inventory.ansible import AnsibleSource, ExportSource, YamlSource
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.fetched import is_url
from gpuready.inventory.groups import ADD_HOSTS, Graph
from gpuready.inventory.host_names import NAME_ALLOWED, RANGE_ALLOWED, expand, is_host, range_meant, split_port
from gpuready.inventory.ini import IniSource, begins_with_host, has_section, is_ini
from gpuready.inventory.programs import ansible_output, script_output
from gpuready.inventory.source_values import Located, Shown
from gpuready.inventory.ssh_options import USER
from gpuready.inventory.terraform import TerraformSource, is_terraform
from gpuready.inventory.yaml_positions import MAX_BYTES, decode, is_json, load_text, read_text

#: The source that is read from stdin; without group_vars/ and host_vars/.
STDIN = "-"
_YAML = (".yaml", ".yml", ".json")
_INVENTORIES = (".yaml", ".yml", ".ini")
_NAMES_OF_FILES = (*_YAML, ".ini", ".cfg", ".py", ".toml", ".tf", ".tfstate")
_SKIPPED = (".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry")
_NOT_FILES = ("host_vars", "group_vars", "vars_plugins")
_NOT_YET = {
    ".toml": "TOML inventory; convert it with: ansible-inventory -i {0} --list --yaml --export > hosts.yaml",
    ".tf": "Terraform's own files; run: terraform show -json > terraform.json",
    ".tfstate": "Terraform's own files; run: terraform show -json > terraform.json",
}


def read_source(source: str, graph: Graph, errors: list[SpecError], *, allow_exec: bool) -> None:
    """Read one source and append its errors to ``errors``; InventoryError if it is not an inventory at all."""
    if source == LOCAL:
        graph.add_host(LOCAL, graph.groups["ungrouped"], Where(f"-i {LOCAL}"))
        graph.named.add(LOCAL)
        return
    if source == STDIN:
        try:
            _read_text("<stdin>", _stdin(), graph, errors, given=STDIN)
        except SpecError as e:
            errors.append(e)
        return
    if is_url(source):
        wanted = fetched.source(source)
        try:
            _read_text(wanted.name, decode(fetched.fetched(wanted), wanted.name), graph, errors, given=source)
        except SpecError as e:
            errors.append(e)
        return
    if source.startswith("@"):
        near = difflib.get_close_matches(source.lower(), [LOCAL], 1)
        hint = f"; did you mean {LOCAL}?" if near else ""
        raise InventoryError(
            f"{source}: not supported yet: gpuready connects with SSH, or to this machine with {LOCAL}{hint}"
        )
    if is_path(source):
        _read_path(Path(source), graph, errors, allow_exec=allow_exec)
    elif source.startswith(own_ssh_config.PREFIX):
        own_ssh_config.add_hosts(source, graph)
    elif "," in source or "@" in source or _is_address(source):
        _read_host_list(source, graph, errors)
    else:
        is_name = names_a_host(source)
        hint = f"a file, or hosts with a comma: -i {source}," if is_name else "a file that exists"
        beside = f"check the path{_beside(source)}; gpuready init writes an inventory"
        remedy = f"for a host of an inventory: -i FILE --limit {source}" if is_name else beside
        raise InventoryError(f"{source or repr(source)}: no such inventory; -i takes {hint}", remedy=remedy)


def names_a_host(text: str) -> bool:
    """Whether it is rather the name or address of a host than of a file."""
    name, _ = split_port(text)
    is_name = is_host(name) and not name.endswith(_NAMES_OF_FILES) and not Path(text).exists()
    return is_name or _is_address(text)


def _beside(source: str) -> str:
    """Name up to five files that may be meant, in the directory of one that does not exist."""
    try:
        there = sorted(str(path) for path in Path(source).parent.iterdir() if path.name.endswith(_INVENTORIES))
    except (OSError, ValueError):
        return ""
    return f"; there are: {', '.join(there[:5])}" if there else ""


def read_by_ansible(paths: Sequence[str], graph: Graph, errors: list[SpecError]) -> None:
    """Read all files and directories at once with ansible-inventory, which also reads their vars directories."""
    name = "ansible-inventory " + " ".join(f"-i {path}" for path in paths)
    try:
        located = load_text(ansible_output(paths), name)
        assert located is not None and isinstance(located.value, dict)
        AnsibleSource(graph, errors).read(located.value)
    except SpecError as e:
        errors.append(e)


def _is_address(source: str) -> bool:
    try:
        return bool(ipaddress.ip_address(split_port(source)[0]))
    except ValueError:
        return False


def is_path(source: str) -> bool:
    """Whether a source is a file or directory, and neither stdin nor a list of hosts."""
    try:
        return source not in ("", STDIN) and Path(source).exists()
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
            f"{path}: this is a pyinfra inventory; -i reads YAML, INI and JSON",
            remedy=f"gpuready init writes a YAML file{_with_pyinfra(path)}",
        )
    if suffix in _NOT_YET:
        raise InventoryError(f"{path}: not supported yet: {_NOT_YET[suffix].format(path)}")
    script = _is_script(path)
    if script and not allow_exec:
        raise InventoryError(f"{path}: an executable inventory runs only with --allow-exec")
    text = script_output(path) if script else read_text(path)
    _read_text(path, text, graph, errors, script=script)


def _with_pyinfra(path: str) -> str:
    """Return how pyinfra converges its inventory. pipx and uv keep pyinfra off the PATH; a zipapp has no pyinfra."""
    program = Path(sys.executable).with_name("pyinfra")
    words = [str(program), "-y", path, "gpuready.pyinfra.converge"]
    return f"; or run {shlex.join(words)}" if program.exists() else ""


def _read_text(
    path: str, text: str, graph: Graph, errors: list[SpecError], *, script: bool = False, given: str = ""
) -> None:
    suffix = Path(path).suffix
    ini = suffix == ".ini" or (suffix != ".json" and is_ini(text) and not is_json(text))
    located = None if ini else _load(path, text)
    if located is None:
        IniSource(graph, errors, path).read(text)
        return
    if located.value in (None, {}, [], ""):
        raise InventoryError(f"{path}: the inventory is empty", remedy=ADD_HOSTS)
    if not isinstance(located.value, dict):
        allowed = "a mapping of groups, such as all: {hosts: ...}"
        raise SpecError("not an inventory", where=located.where, given=Shown(located.value), allowed=allowed)
    _refuse_others(path, located.value)
    if script or (is_json(text) and _is_export(located.value)):
        ExportSource(graph, errors).read(located.value)
    elif is_json(text) and is_terraform(located.value):
        TerraformSource(graph, errors, path, given).read(located.value)
    elif all(group.value is not None and not isinstance(group.value, (dict, list)) for group in located.value.values()):
        raise InventoryError(
            f"{path}: not an inventory: its top-level keys are variables",
            remedy="the top-level keys are groups: all: {hosts: ...}; variables stand below vars: or in group_vars/",
        )
    else:
        YamlSource(graph, errors).read(located.value)


def _stdin() -> str:
    """All of stdin, which is read once; InventoryError for a terminal, or if it was read before."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise InventoryError("-i -: stdin is not a file or pipe", remedy="COMMAND | gpuready plan -i -")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if not data.strip():
        raise InventoryError("-i -: stdin is empty")
    return decode(data, "<stdin>")


def _load(path: str, text: str) -> Located | None:
    """The document of a YAML or JSON file; None for an INI inventory, which Ansible tries next."""
    other = Path(path).suffix not in _YAML
    try:
        located = load_text(text, path) or Located(None, Where(path))
    except SpecError:
        if other and has_section(text):
            return None
        raise
    if not other or not isinstance(located.value, str):
        return located
    if not (has_section(text) or begins_with_host(text)):
        raise InventoryError(f"{path}: not an inventory: its lines are not groups of hosts")
    return None


def _refuse_others(path: str, top: dict[object, Located]) -> None:
    if any(":" in str(name) for name in top) and all(group.value is None for group in top.values()):
        raise InventoryError(f"{path}: not an inventory: its lines are not groups of hosts")
    if "plugin" in top and not isinstance(top["plugin"].value, dict):
        raise InventoryError(
            f"{path}: not supported yet: inventory plugin",
            remedy="add --ansible --allow-exec; or run it once: "
            f"ansible-inventory -i {path} --list --export > hosts.json",
        )


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


def _read_host_list(source: str, graph: Graph, errors: list[SpecError]) -> None:
    where = Where(f"-i {source}")
    for entry in filter(None, (part.strip() for part in source.split(","))):
        user, at, address = entry.rpartition("@")
        pattern, port = split_port(address)
        try:
            names = expand(pattern)
        except ValueError as e:
            near = range_meant(entry)
            errors.append(SpecError(str(e), where=where, given=entry, allowed=RANGE_ALLOWED, near=near))
            continue
        if not all(map(is_host, names)) or (at and not USER.fullmatch(user)):
            allowed = f"[USER@]HOST[:PORT]: {NAME_ALLOWED}"
            errors.append(SpecError("not a host", where=where, given=entry, allowed=allowed, near=range_meant(entry)))
            continue
        for name in names:
            host = graph.add_host(name, graph.groups["ungrouped"], where, port)
            graph.named.add(name)
            if at:
                host.vars.setdefault("ansible_user", Located(user, where))
