"""Hosts, groups, precedence, scalars and patterns are Ansible's: every case here is also asked of ansible-core."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpuready.core.errors import SpecErrors
from gpuready.inventory.hosts import load, read
from gpuready.inventory.vars_dirs import Layers, directory_of
from gpuready.spec.source_values import Located, plain

pytest.importorskip("ansible", reason="ansible-core is the reference here")
DATA = Path(__file__).parents[1] / "data" / "inventories"
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def ask() -> Iterator[Ask]:
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


def ours(sources: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
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


def compare(ask: Ask, *sources: Path | str) -> None:
    """The same hosts, groups, order of members, and variables."""
    names = [str(source) for source in sources]
    hosts, groups = ours(names)
    inputs = [word for name in names for word in ("-i", name)]
    merged = ask(*inputs, "--list")
    assert "Unable to parse" not in merged["stderr"], merged["stderr"]
    hostvars = merged["output"].pop("_meta")["hostvars"]
    members = {host for group in merged["output"].values() for host in group.get("hosts", ())}
    assert set(hosts) == members
    assert {host: variables for host, variables in hosts.items() if variables} == without_marks(hostvars)
    export = ask(*inputs, "--list", "--export")["output"]
    export.pop("_meta")
    assert groups == export


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files; the inventory itself is ``hosts.yaml``."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "hosts.yaml"


def test_scalars(ask: Ask) -> None:
    compare(ask, DATA / "scalars.yaml")


CASES: dict[str, dict[str, str]] = {
    "ranges": {
        "hosts.yaml": """
g:
  hosts:
    gpu[01:12]:
    n[1:3]x[a:c].example.org: {v: 1}
    s[0:10:5]:
    t[a:g:3]:
    u[X:Z]:
    10.0.0.[8:11]:
    v[08:10]-ib:
    p[1:2]:2222: {w: 2}
"""
    },
    "ports and addresses": {
        "hosts.yaml": """
all:
  hosts:
    a:22:
    10.0.0.1:2200: {ansible_port: 3}
    "2001:db8::1":
    "[2001:db8::2]:2022":
    "2001:db8::[a:c]":
    b.example.org:
    "::1": {v: 1}
  children:
    g: {hosts: {a: {v: 2}, "a:23": }}
"""
    },
    "depth, name, priority": {
        "hosts.yaml": """
all:
  vars: {v1: all, v2: all, v3: all, v4: all, v5: all}
  children:
    z: {vars: {v1: z, v2: z, v3: z}, children: {y: {vars: {v2: y}, hosts: {h: }}}}
    a: {vars: {v1: a, v2: a, v3: a, ansible_group_priority: 10}, hosts: {h: {v5: h}}}
    b: {vars: {v3: b, v4: b, ansible_group_priority: "3"}, hosts: {h: }}
    c: {vars: {v4: c}, children: {y: }}
"""
    },
    "long and short way to one group": {
        "hosts.yaml": """
all:
  children:
    top: {children: {low: {hosts: {h: }, vars: {v: low}}, mid: {children: {low2: {children: {low: }}}}}}
    other: {vars: {v: other}, children: {o2: {vars: {v: o2}, children: {o3: {vars: {v: o3}, hosts: {h: }}}}}}
"""
    },
    "groups at the top, ungrouped, bare words": {
        "hosts.yaml": """
one: {hosts: h1, children: two}
two: {hosts: {h2: , lone: }}
ungrouped: {hosts: {lone: , lost: {v: 1}}, vars: {u: 1}}
all: {hosts: {lone2: , h1: }}
empty:
none: {hosts: , vars: , children: }
"""
    },
    "one host twice": {
        "hosts.yaml": """
a: {hosts: {h: {v: 1, w: {x: 1}}}}
b: {hosts: {h: {v: 2, w: {y: 2}}}, vars: {w: 3}}
"""
    },
    "host and group of one name": {
        "hosts.yaml": "a: {hosts: {a: {v: 1}, b: }}\nc: {hosts: {d: }}\nd: {hosts: {c: {x: 2}}}"
    },
    "vars directories": {
        "hosts.yaml": "all: {vars: {a: 1, b: 1, c: 1}}\ng: {vars: {a: 2, b: 2, d: 2}, hosts: {h: {a: 3, e: 3}, i: }}",
        "group_vars/all.yml": "b: allfile\nc: allfile\nd: allfile",
        "group_vars/g": "d: gfile\nf: gfile",
        "host_vars/h.json": '{"e": 1e3, "f": "hfile"}',
        "host_vars/i/20": "x: 20",
        "host_vars/i/10.yaml": "x: 10\ny: 10",
        "host_vars/i/sub/30.yml": "z: 30",
        "host_vars/i/.hidden.yml": "x: hidden",
        "host_vars/i/old.yml~": "x: backup",
        "host_vars/i/note.txt": "x: text",
        "host_vars/i.yml": "y: file",
        "host_vars/i.yaml": "y: second file",
        "host_vars/nobody.yml": "x: 1",
    },
    "group_vars by depth": {
        "hosts.yaml": "a: {children: {b: {hosts: {h: }}}, vars: {v: 1}}\n"
        "c: {hosts: {h: }, vars: {v: 2, ansible_group_priority: 9}}",
        "group_vars/a.yml": "v: a\nw: a",
        "group_vars/b.yml": "w: b\nx: b\nansible_group_priority: 50",
        "group_vars/c.yml": "w: c\nx: c\ny: c",
        "group_vars/ungrouped.yml": "w: u",
    },
    "anchors and merge keys": {
        "hosts.yaml": """
a: {vars: &v {x: 1, y: {z: 2}}, hosts: {h: {<<: *v, x: 3}}}
b: {hosts: {i: {<<: [{p: 1}, {p: 2, q: 2}], q: 3}, j: *v}}
"""
    },
    "it is JSON": {
        "hosts.yaml": '{"all": {"hosts": {"h": {"a": 1e3, "b": "\\u00e9", "c": null, "d": true, "e": [1.50]}}}}'
    },
    "unsafe": {"hosts.yaml": "all: {hosts: {h: {a: !unsafe 'x', b: !unsafe text}}}"},
    "odd group names": {
        "hosts.yaml": "all: {children: {gpu-a100: {hosts: {h: }}, 'with space': {hosts: {h: }, vars: {v: 1}}}}"
    },
    "keys that are no text": {"hosts.yaml": "all: {hosts: {h: {a: {2: x, true: y, ~: z}}}}"},
    "comments and document marks": {"hosts.yaml": "# c\n---\nall: # d\n  hosts:\n    h: {v: '#'}\n...\n"},
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, ask: Ask, tmp_path: Path) -> None:
    compare(ask, write(tmp_path, CASES[name]))


def test_several_sources_and_directories(ask: Ask, tmp_path: Path) -> None:
    one = write(
        tmp_path / "one",
        {
            "hosts.yaml": "g: {hosts: {h: {v: 1, w: 1}}, vars: {x: 1}}",
            "group_vars/g.yml": "y: one\nz: one",
            "group_vars/k.yml": "z: deep one",
            "host_vars/h.yml": "t: 1",
        },
    )
    two = write(
        tmp_path / "two",
        {
            "hosts.yaml": "g: {hosts: {h: {v: 2}, i: }, vars: {x: 2}, children: {k: {hosts: {h: }}}}",
            "group_vars/g.yml": "z: two",
            "host_vars/h.yml": "t: 2",
        },
    )
    files = {
        "10.yaml": "g: {hosts: {h: {v: 1}}}",
        "20.yml": "g: {hosts: {h: {v: 2}, j: }}",
        "30": "k: {hosts: {l: }}",
        "x.bak": "no",
        "y.md": "no",
        ".z": "no",
        "sub/40.yaml": "m: {hosts: {n: }}",
        "group_vars/all.yml": "q: 1",
    }
    write(tmp_path / "dir", files)
    compare(ask, one, two)
    compare(ask, two, one)
    compare(ask, one, two, one)
    compare(ask, tmp_path / "dir")
    compare(ask, tmp_path / "dir", two, "extra1,10.0.0.1:22,h,")


def test_an_export_is_read_as_what_it_was_exported_from(ask: Ask, tmp_path: Path) -> None:
    source = write(tmp_path, CASES["depth, name, priority"])
    (tmp_path / "out.json").write_text(json.dumps(ask("-i", str(source), "--list", "--export")["output"], indent=4))
    assert ours([str(tmp_path / "out.json")])[0] == ours([str(source)])[0]


LIMITED = """
all:
  vars: {gpuready: {}}
  hosts: {lone: }
  children:
    gpu: {children: {h100: {hosts: {"h[1:4]": }}, a100: {hosts: {"a[1:3]": }}}}
    rack1: {hosts: {h1: , h2: , a1: }}
    cpu: {hosts: {c1.example.org: , c2.example.org: , "2001:db8::5": }}
"""
PATTERNS = (DATA / "patterns.txt").read_text().splitlines()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str, ask: Ask, tmp_path: Path) -> None:
    source = write(tmp_path, {"hosts.yaml": LIMITED})
    reply = ask("-i", str(source), "--list", "--limit", pattern)
    groups = reply["output"] or {}
    theirs = {host for name, group in groups.items() if name != "_meta" for host in group.get("hosts", ())}
    assert limited(source, pattern) == theirs


def limited(source: Path, pattern: str) -> set[str]:
    """The hosts that ``--limit PATTERN`` leaves of ours; none if nothing matches."""
    from gpuready.core.errors import InventoryError

    try:
        return {host.name for host in load([str(source)], limit=[pattern]).chosen}
    except InventoryError:
        return set()


def test_limit_from_a_file(ask: Ask, tmp_path: Path) -> None:
    source = write(tmp_path, {"hosts.yaml": LIMITED, "limit": "h1\n\nrack1\n!h2\n"})
    reply = ask("-i", str(source), "--list", "--limit", f"@{tmp_path / 'limit'}")
    theirs = {h for name, group in reply["output"].items() if name != "_meta" for h in group.get("hosts", ())}
    assert limited(source, f"@{tmp_path / 'limit'}") == theirs


GROUPS = ("a", "b", "c", "d", "e")
# No host is named like a group here: directly below all, such a host drops out of Ansible's listing (it takes the
# group for it when it fills "ungrouped"), though "ansible all" still runs on it.
HOSTS = ("h1", "h2", "h3", "r[1:3]", "q[01:02]:2200", "h9", "lone")
VALUES = st.sampled_from((1, "x", True, None, 0.5, [1, "off"], {"k": 1}, {"l": 2}, "yes", "1e3"))
VARS = st.dictionaries(st.sampled_from(("v1", "v2", "v3")), VALUES, max_size=3)


def group_bodies() -> st.SearchStrategy[Any]:
    """Group definitions, nested a few levels; a name may come up anywhere, so also in a cycle."""
    with_priority = st.tuples(VARS, st.none() | st.integers(-2, 12)).map(
        lambda pair: pair[0] if pair[1] is None else {**pair[0], "ansible_group_priority": pair[1]}
    )
    hosts = st.dictionaries(st.sampled_from(HOSTS), st.none() | VARS, max_size=3)

    def body(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        parts = {
            "hosts": st.none() | hosts,
            "vars": st.none() | with_priority,
            "children": st.none() | st.dictionaries(st.sampled_from(GROUPS), children, max_size=3),
        }
        return st.none() | st.fixed_dictionaries({}, optional=parts)

    return st.recursive(body(st.none()), body, max_leaves=6)


TREES = st.dictionaries(st.sampled_from((*GROUPS, "all")), group_bodies(), min_size=1, max_size=4)
VARS_FILES = st.dictionaries(
    st.sampled_from(
        [f"group_vars/{g}.yml" for g in (*GROUPS, "all", "ungrouped")] + ["host_vars/h1.yml", "host_vars/r2"]
    ),
    VARS,
    max_size=3,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=TREES, second=st.none() | TREES, files=VARS_FILES)
def test_any_inventory(ask: Ask, tree: dict[str, Any], second: dict[str, Any] | None, files: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = {file: yaml.safe_dump(content, sort_keys=False) for file, content in files.items()}
        source = write(folder, {"hosts.yaml": yaml.safe_dump(tree, sort_keys=False), **texts})
        sources = [source]
        if second is not None:
            sources.append(write(folder / "second", {"hosts.yaml": yaml.safe_dump(second, sort_keys=False)}))
        try:
            read([str(s) for s in sources])
        except SpecErrors as e:
            assert "is inside itself" in str(e)
            inputs = [word for s in sources for word in ("-i", str(s))]
            reply = ask(*inputs, "--list")
            assert "recursive dependency" in reply["stderr"] or "add group to itself" in reply["stderr"]
            assume(False)
        compare(ask, *sources)
