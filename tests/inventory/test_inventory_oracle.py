"""Hosts, groups, precedence, scalars and patterns are Ansible's: every case here is also asked of ansible-core."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpuready.base.errors import InventoryError, SpecErrors
from gpuready.inventory.hosts import load, read
from tests.inventory.oracle import DATA, Ask, ansible_inventory, ours, theirs
from tests.inventory.oracle import write as write_files

pytestmark = pytest.mark.long

pytest.importorskip("ansible", reason="ansible-core is the reference here")


@pytest.fixture(scope="session")
def ask() -> Iterator[Ask]:
    with ansible_inventory() as question:
        yield question


def compare(ask: Ask, *sources: Path | str) -> None:
    """The same hosts, groups, order of members, and variables."""
    names = list(map(str, sources))
    hosts, groups = ours(names)
    assert (hosts, groups) == theirs(ask, names)


def write(folder: Path, files: str | dict[str, str]) -> Path:
    """Write files; the inventory itself is ``hosts.yaml``."""
    write_files(folder, {"hosts.yaml": files} if isinstance(files, str) else files)
    return folder / "hosts.yaml"


def test_scalars(ask: Ask) -> None:
    compare(ask, DATA / "scalars.yaml")


#: An inventory, or files of which hosts.yaml is one.
CASES: dict[str, str | dict[str, str]] = {
    "ranges": """
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
""",
    "ports and addresses": """
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
""",
    "depth, name, priority": """
all:
  vars: {v1: all, v2: all, v3: all, v4: all, v5: all}
  children:
    z: {vars: {v1: z, v2: z, v3: z}, children: {y: {vars: {v2: y}, hosts: {h: }}}}
    a: {vars: {v1: a, v2: a, v3: a, ansible_group_priority: 10}, hosts: {h: {v5: h}}}
    b: {vars: {v3: b, v4: b, ansible_group_priority: "3"}, hosts: {h: }}
    c: {vars: {v4: c}, children: {y: }}
""",
    "long and short way to one group": """
all:
  children:
    top: {children: {low: {hosts: {h: }, vars: {v: low}}, mid: {children: {low2: {children: {low: }}}}}}
    other: {vars: {v: other}, children: {o2: {vars: {v: o2}, children: {o3: {vars: {v: o3}, hosts: {h: }}}}}}
""",
    "groups at the top, ungrouped, bare words": """
one: {hosts: h1, children: two}
two: {hosts: {h2: , lone: }}
ungrouped: {hosts: {lone: , lost: {v: 1}}, vars: {u: 1}}
all: {hosts: {lone2: , h1: }}
empty:
none: {hosts: , vars: , children: }
""",
    "one host twice": """
a: {hosts: {h: {v: 1, w: {x: 1}}}}
b: {hosts: {h: {v: 2, w: {y: 2}}}, vars: {w: 3}}
""",
    "host and group of one name": "a: {hosts: {a: {v: 1}, b: }}\nc: {hosts: {d: }}\nd: {hosts: {c: {x: 2}}}",
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
    "anchors and merge keys": """
a: {vars: &v {x: 1, y: {z: 2}}, hosts: {h: {<<: *v, x: 3}}}
b: {hosts: {i: {<<: [{p: 1}, {p: 2, q: 2}], q: 3}, j: *v}}
""",
    "it is JSON": '{"all": {"hosts": {"h": {"a": 1e3, "b": "\\u00e9", "c": null, "d": true, "e": [1.50]}}}}',
    "unsafe": "all: {hosts: {h: {a: !unsafe 'x', b: !unsafe text}}}",
    "odd group names": "all: {children: {gpu-a100: {hosts: {h: }}, 'with space': {hosts: {h: }, vars: {v: 1}}}}",
    "keys that are no text": "all: {hosts: {h: {a: {2: x, true: y, ~: z}}}}",
    "comments and document marks": "# c\n---\nall: # d\n  hosts:\n    h: {v: '#'}\n...\n",
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, ask: Ask, tmp_path: Path) -> None:
    compare(ask, write(tmp_path, CASES[name]))


INI = {
    "hosts, comments and ranges": r"""
# one
; two
lone
  indented:2222   a=1 # after a host
[gpu]
gpu[01:03]-ib v=x
n[a:c].example.org:2200 w='two words' x="a#b" y=a\ b z=
10.0.0.[8:10]
2001:db8::1
[2001:db8::2]:2022 v=1
lone
[empty]
[gpu] # again
late
""",
    "types": r"""
h int=1 neg=-1 plus=+1 zero=0 octal=010 hex=0x10 under=1_000 float=1.5 exp=1e3 dot=.5 yes=yes t=True f=False n=None
i low=true null=null ip=10.0.0.1 path=/a/b:c eq=a=b empty= quoted="'010'" twice='"x"' neither='a"b' version=1.20
j list=[1,'a',None] dict="{'a': {'b': [1]}, 2: (3,)}" tuple=(1,2) bytes=b'x' raw="r'\\d'" complex=1j dots=... add=1+2
k braces="{{ x }}" percent=%h at=@x dash=- tilde=~/k star=* call="set()" name=abc.def- two=1,2 lam=lambda
l hash=a#b quote=it\\'s word=TRUE not=!vault sum=2-1 cplx=1-2j fstr="f'a'" cat="'a' 'b'" comment="'1' # c"
[g]
h
[g:vars]
a = 1
b=  spaced out
c = "quoted"
d = 'quoted' # and more
e = [1, 2]  # a list
f = {"a": True}
g = {"a": true}
h = a # b
i =
j = x = y
k: l = m
n = 0777
o = 1.0
p = "half
q = \\"escaped\\"
r = [1,
""",
    "children before and after": """
[all:vars]
v=all
[top:children]
low
mid
[low:vars]
v=low
[other:children]
low
[mid:children]
low
deep
[low]
h1
[deep]
h2 v=host
[all:children]
top
[other:vars]
v=other
ansible_group_priority=7
[top:vars]
ansible_group_priority=-2
w={'a': 1}
[top:vars]
w={'b': 2}
""",
    "one host in many groups": """
[a]
h v=1
h v=2 w=1
[b]
h w=2
g:22
g:23
[ungrouped]
u
h
[all]
x
[b:hosts]
y
""",
    "odd names": """
[gpu-a100]
a_b
c-d.e
[with.dot]
1234
0x1
x
[k8s_cluster:children]   # trailing
gpu-a100   # comment
with.dot
""",
    "only hosts": "gpu1\ngpu2\n",
    "a host first": "gpu1\n\n[g]\ngpu1\n",
    "windows lines": "[g]\r\nh v=1\r\n\r\n[g:vars]\r\nw = x\r\n",
    "host and group of one name": "[a]\na v=1\nb\n[c]\nd\n[d]\nc x=2\n",
}


@pytest.mark.parametrize("name", INI)
def test_ini(name: str, ask: Ask, tmp_path: Path) -> None:
    write(tmp_path, {"hosts": INI[name]})
    compare(ask, tmp_path / "hosts")


def test_ini_with_vars_directories_and_other_sources(ask: Ask, tmp_path: Path) -> None:
    files = {
        "one/hosts.ini": "[g]\nh v=1 w=1\n[g:vars]\nx=1\ny=1\n",
        "one/group_vars/g.yml": "y: file\nz: file",
        "one/host_vars/h": "w: file",
        "dir/10-hosts": "[g]\nh v=2\n[k:children]\ng\n",
        "dir/20-more.ini": "[g]\ni\n[k:vars]\nx=2\n",
        "dir/30.yaml": "g: {hosts: {j: }}",
        "dir/40.cfg": "[no]\nno\n",
        "dir/group_vars/k/10.yml": "t: k",
    }
    write(tmp_path, files)
    compare(ask, tmp_path / "one" / "hosts.ini")
    compare(ask, tmp_path / "dir")
    compare(ask, tmp_path / "one" / "hosts.ini", tmp_path / "dir")
    compare(ask, tmp_path / "dir", tmp_path / "one" / "hosts.ini", "extra,")
    compare(ask, tmp_path / "dir" / "10-hosts", tmp_path / "dir" / "20-more.ini")


def test_several_sources_and_directories(ask: Ask, tmp_path: Path) -> None:
    of_one = {
        "hosts.yaml": "g: {hosts: {h: {v: 1, w: 1}}, vars: {x: 1}}",
        "group_vars/g.yml": "y: one\nz: one",
        "group_vars/k.yml": "z: deep one",
        "host_vars/h.yml": "t: 1",
    }
    of_two = {
        "hosts.yaml": "g: {hosts: {h: {v: 2}, i: }, vars: {x: 2}, children: {k: {hosts: {h: }}}}",
        "group_vars/g.yml": "z: two",
        "host_vars/h.yml": "t: 2",
    }
    one, two = write(tmp_path / "one", of_one), write(tmp_path / "two", of_two)
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
    compare_limited(ask, source, pattern)


def compare_limited(ask: Ask, source: Path, pattern: str) -> None:
    """``--limit PATTERN`` leaves the same hosts; none if nothing matches."""
    try:
        left = {host.name for host in load([str(source)], limit=[pattern]).chosen}
    except InventoryError:
        left = set()
    groups = ask("-i", str(source), "--list", "--limit", pattern)["output"] or {}
    assert left == {host for name, group in groups.items() if name != "_meta" for host in group.get("hosts", ())}


def test_limit_from_a_file(ask: Ask, tmp_path: Path) -> None:
    source = write(tmp_path, {"hosts.yaml": LIMITED, "limit": "h1\n\nrack1\n!h2\n"})
    compare_limited(ask, source, f"@{tmp_path / 'limit'}")


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


INI_HOSTS = ("h1", "h2:22", "r[1:3]", "q[01:02]:2200", "lone", "10.0.0.1", "a.b-c")
INI_VALUES = st.one_of(
    st.sampled_from(
        ("1", "True", "'x'", '"y"', "[1, 'a']", "{'k': (1,)}", "a b", "x # c", "", "010", "None", "1e3", "=")
    ),
    st.text(alphabet="01.'\"[](){},:#\\ax-_+eEjJ;= \t", max_size=8),
    st.text(max_size=4).filter(lambda text: text.isprintable()),
)


PAIRS = st.lists(st.builds("{}={}".format, st.sampled_from(("v1", "v2")), INI_VALUES), max_size=2)
INI_HOST = st.builds(lambda name, rest: " ".join([name, *rest]), st.sampled_from(INI_HOSTS), PAIRS)
INI_SETTING = st.builds("{} = {}".format, st.sampled_from(("v1", "v2", "v3")), INI_VALUES)
INI_KINDS = {"": INI_HOST, ":vars": INI_SETTING, ":children": st.sampled_from(GROUPS)}


def ini_block(kind: str) -> st.SearchStrategy[str]:
    """A section with lines of its kind, and sometimes one of any."""
    lines = st.lists(INI_KINDS[kind], max_size=3) | st.lists(
        st.sampled_from(("", "# c", "[x] y", "h9", "=")), max_size=1
    )
    return st.builds(lambda name, rest: "\n".join([f"[{name}{kind}]", *rest]), st.sampled_from((*GROUPS, "all")), lines)


INI_TEXTS = st.lists(st.sampled_from(("", "", ":vars", ":children")).flatmap(ini_block), min_size=2, max_size=8)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(blocks=INI_TEXTS, declared=st.booleans())
def test_any_ini(ask: Ask, blocks: list[str], declared: bool) -> None:
    """Where gpuready reads it, Ansible reads the same; so where Ansible refuses it, gpuready does, too."""
    text = "\n".join([*(f"[{name}]" for name in GROUPS if declared), *blocks])
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "hosts.ini")
        source.write_text(text, encoding="utf-8")
        try:
            read([str(source)])
        except (SpecErrors, InventoryError):
            assume(False)
        compare(ask, source)
