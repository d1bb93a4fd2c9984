"""Hosts, groups and variables of inventories, as gpuready reads them and as the real ansible-inventory says them.

``python -m tests.inventory.oracle`` writes tests/data/inventories/ini.json with ansible-inventory.
"""

import contextlib
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpuready.inventory.hosts import read
from gpuready.inventory.source_values import Located, plain
from gpuready.inventory.vars_dirs import Layers, directory_of

DATA = Path(__file__).parents[1] / "data" / "inventories"
EXPECTED = DATA / "ini.json"
Ask = Callable[..., dict[str, Any]]
#: Variables of each host, and hosts, children and variables of each group.
Said = tuple[dict[str, Any], dict[str, Any]]


@contextlib.contextmanager
def ansible_inventory() -> Iterator[Ask]:
    """``ask("-i", FILE, "--list")`` -> exit code, output, stderr of the real ansible-inventory."""
    with tempfile.TemporaryDirectory() as home:
        config = Path(home, "ansible.cfg")  # none of this machine's
        config.write_text("[defaults]\n")
        env = {"PATH": os.environ["PATH"], "HOME": home, "ANSIBLE_CONFIG": str(config), "LC_ALL": "C.UTF-8"}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [sys.executable, DATA / "oracle.py"], stdin=pipe, stdout=pipe, text=True, cwd=home, env=env
        ) as p:
            assert p.stdin and p.stdout

            def question(*arguments: str) -> dict[str, Any]:
                assert p.stdin and p.stdout
                p.stdin.write(json.dumps(arguments) + "\n")
                p.stdin.flush()
                reply: dict[str, Any] = json.loads(p.stdout.readline())
                return reply

            yield question
            p.stdin.close()


def as_json(value: object) -> Any:
    """A value as ansible-inventory writes it."""
    if isinstance(value, Located):
        return as_json(plain(value))
    if isinstance(value, dict):
        return {json.loads(json.dumps({k: 0})).popitem()[0]: as_json(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [as_json(entry) for entry in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def flat(layers: tuple[dict[object, Located], ...]) -> dict[str, Any]:
    """Variables as Ansible leaves them: the last layer wins, whole values."""
    return {str(key): as_json(value) for layer in layers for key, value in layer.items()}


def ours(sources: list[str]) -> Said:
    """Host -> variables, and group -> hosts, children, variables: as ``--list`` and ``--export`` say it."""
    graph = read(sources)
    layers = Layers(graph, [directory_of(s) for s in sources if Path(s).exists()])
    hosts = {name: flat(layers.of_host(name)) for name in graph.hosts_of("all")}
    groups: dict[str, Any] = {}
    for name, group in graph.groups.items():
        variables = flat((group.vars, *layers._beside("group_vars", name)))
        if group.priority != 1:
            variables["ansible_group_priority"] = group.priority
        members = [] if name == "all" else list(group.hosts)
        parts = {"hosts": members, "children": list(group.children), "vars": variables}
        groups[name] = {key: value for key, value in parts.items() if value}
    return hosts, {name: group for name, group in groups.items() if group}


def without_marks(value: Any) -> Any:
    """ansible-inventory marks text that it would not template; the text is what counts."""
    if isinstance(value, dict):
        unsafe = value.get("__ansible_unsafe")
        return unsafe if unsafe is not None else {key: without_marks(v) for key, v in value.items()}
    return [without_marks(entry) for entry in value] if isinstance(value, list) else value


def theirs(ask: Ask, sources: list[str]) -> Said:
    """The same of ansible-inventory."""
    inputs = [word for name in sources for word in ("-i", name)]
    merged = ask(*inputs, "--list")
    assert "Unable to parse" not in merged["stderr"], merged["stderr"]
    hostvars = without_marks(merged["output"].pop("_meta")["hostvars"])
    members = [host for group in merged["output"].values() for host in group.get("hosts", ())]
    export = ask(*inputs, "--list", "--export")["output"]
    export.pop("_meta")
    return {host: hostvars.get(host, {}) for host in members}, export


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files, in directories of their own."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def inventories() -> dict[str, dict[str, str]]:
    """The inventories of ini.txt: the text of each file; the first file is the inventory itself."""
    found: dict[str, dict[str, str]] = {}
    for name, body in re.findall(
        r"^== ([\w-]+): .*? ==\n(.*?)(?=^== |\Z)", (DATA / "ini.txt").read_text("utf-8"), re.M | re.S
    ):
        parts = re.split(r"^-- (.+) --\n", body, flags=re.M)[1:]
        found[name] = dict(zip(parts[::2], parts[1::2], strict=True))
    found["windows-editor"] = {file: text.replace("\n", "\r\n") for file, text in found["windows-editor"].items()}
    return found


def main() -> None:
    """Write what ansible-inventory says."""
    expected = {}
    with ansible_inventory() as ask:
        for name, files in inventories().items():
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder), files)
                hosts, groups = theirs(ask, [str(Path(folder, next(iter(files))))])
            expected[name] = {"hosts": hosts, "groups": groups}
    lines = [f"{json.dumps(name)}: {json.dumps(said, sort_keys=True)}" for name, said in expected.items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
