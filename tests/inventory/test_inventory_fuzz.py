"""Whatever the inventory is, it loads or ends in one of our own errors, and twice the same way."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gpuready.base.documents import MOST_DEPTH
from gpuready.base.errors import GpureadyError
from gpuready.inventory.connection import HONOURED
from gpuready.inventory.host_names import expand, is_host, split_port
from gpuready.inventory.hosts import load
from gpuready.inventory.yaml_positions import load_text
from gpuready.model.schema_help import words_at
from gpuready.model.spec import NodeSpec

pytestmark = pytest.mark.long

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates() | st.binary(max_size=4)
)


def outcome(data: bytes, name: str = "hosts.yaml", *limit: str) -> str:
    """What loading it ends in: the hosts or the message. Any other exception is the test's failure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            return repr(load([str(path)], limit=limit)).replace(folder, "")
        except GpureadyError as e:
            assert e.exit_code == 5 or (limit and e.exit_code == 64), e
            assert str(e)
            return str(e).replace(folder, "")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"all:\n hosts:\n  ? [")
@example(b"%YAML 9.9\n---\na")
@example(b"&a *a")
@example(b"!<tag:yaml.org,2002:int> ''")
@example(b"a: !!timestamp 2001-12-14t21:59:43.10-99:00")
@example(b'{"a": ' + b"9" * 5000 + b"}")
@example(b"a: " + b"9" * 5000)
@example(b'all: {hosts: {a: }, vars: {gpuready: {"\\ud800": 1}}}')
@example(b'{"all": {"hosts": {"a": {"gpuready": {"\\ud800": "\\udfff"}}}}}')
def test_bytes(data: bytes) -> None:
    assert outcome(data) == outcome(data)
    outcome(data, "hosts.json")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("ah:-[]{}#&*!|>'\"%@`,? \n\t0.~<")), max_size=60))
def test_yaml_like_text(text: str) -> None:
    outcome(text.encode())


def nested(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )


INI_LINES = st.sampled_from(
    ["[g]", "[g:vars]", "[g:children]", "[all:vars]", "h", "h[1:3]:22", "g", "# c", "gpuready={}",
     "h gpuready={'ldso': 'off'}"]
) | st.text(alphabet=st.sampled_from(list("gh[]:=#;'\"\\{}(),.10 \te-+~b\x85\u2028")), max_size=20)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(INI_LINES, max_size=8).map("\n".join))
@example("[g]\nh a={**{}}")
@example("[g]\nh gpuready={(1,2):3}")
@example("[g]\nh gpuready={b'a':1}")
@example("[g]\nh ansible_host=b'\\xff' gpuready={}")
@example("[g]\nh ansible_user='\\ud800' gpuready={}")
@example("[g]\nh ansible_port=1e999 gpuready={}")
@example('""')
@example("[g]\n''")
@example("[g]\n'' a=1")
def test_ini_like_text(text: str) -> None:
    outcome(text.encode(), "hosts")
    assert outcome(text.encode(), "hosts.ini") == outcome(text.encode(), "hosts.ini")


TERRAFORM_KEYS = st.sampled_from(
    ["format_version", "values", "root_module", "resources", "child_modules", "outputs", "gpuready_inventory", "value",
     "sensitive", "type", "mode", "address", "name", "network_interface", "hosts", "all"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(nested(st.none() | st.sampled_from(["managed", "aws_instance", "1.0", "h", ""]), TERRAFORM_KEYS))
def test_terraform_structures(tree: Any) -> None:
    outcome(json.dumps({"format_version": "1.0", "values": tree}).encode(), "tf.json")
    outcome(json.dumps({"gpuready_inventory": {"sensitive": False, "value": tree}}).encode(), "tf.json")


GROUP_KEYS = st.sampled_from(
    ["all", "hosts", "vars", "children", "gpuready", "ungrouped", "_meta", "hostvars", "a", "n[1:2]", 1, None, "plugin"]
)


@settings(max_examples=300, deadline=None)
@given(nested(SCALARS, GROUP_KEYS))
def test_structures(tree: Any) -> None:
    outcome(yaml.safe_dump(tree, sort_keys=False).encode())
    outcome(json.dumps(tree, default=str).encode())


def spec_keys() -> list[str]:
    found = {"on", "x"}
    for section in words_at(NodeSpec, ()):
        found |= {section, *words_at(NodeSpec, (section,))}
    return sorted(found)


VALUES = SCALARS | st.sampled_from(
    ["auto", "off", "absent", "1.20.0", "1.0.0", "8g", "/usr/lib", "env:X", "{{ x }}", "https://h/", "host", "mend"]
)


@settings(max_examples=500, deadline=None)
@given(nested(VALUES, st.sampled_from(spec_keys()) | st.text(max_size=5)))
def test_spec_blocks(block: Any) -> None:
    data = yaml.safe_dump({"all": {"hosts": {"n1": None}, "vars": {"gpuready": block}}}, sort_keys=False).encode()
    assert outcome(data) == outcome(data)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted({*HONOURED, "ansible_group_priority"})), nested(VALUES, st.text(max_size=3)))
)
def test_connection_variables(variables: dict[str, Any]) -> None:
    for chosen in ({"gpuready": {}}, {}):
        outcome(yaml.safe_dump({"all": {"hosts": {"n1": variables}, "vars": chosen}}).encode())
        outcome(yaml.safe_dump({"all": {"hosts": {"n1": None}, "vars": variables | chosen}}).encode())


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("an0[]:,!&~*?.@(){} \\|+19-")), max_size=15))
def test_limits(limit: str) -> None:
    text = b"all: {vars: {gpuready: }, children: {a: {hosts: {'n[1:3]': }}, n: {hosts: {a1: }}}}"
    outcome(text, "hosts.yaml", limit)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("gn01.-_[]:azAZ%@ ;$")), max_size=12))
def test_host_patterns(pattern: str) -> None:
    text, _ = split_port(pattern)
    try:
        names = expand(text)
    except ValueError:
        return
    assert names and all("[" not in name for name in names)
    for name in filter(is_host, names):
        assert not set(name) & set(" ;$@[]\n'\"`|&<>()\\") and name[0] != "-"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.text(alphabet="ab,@:[]1.", max_size=12))
def test_sources(source: str) -> None:
    assume(source != "-")  # it reads stdin
    try:
        load([source])
    except GpureadyError as e:
        assert e.exit_code == 5


def test_depth() -> None:
    for levels in (MOST_DEPTH - 2, MOST_DEPTH * 3, 100_000):
        outcome(b"a: " + b"{a: " * levels + b"}" * levels)
        outcome(b"- " * levels + b"x")
        outcome(b'{"a": ' * levels + b"1" + b"}" * levels)
    assert load_text("[" * MOST_DEPTH + "]" * MOST_DEPTH, "f") is not None
