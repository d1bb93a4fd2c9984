"""The merge into a user's TOML: what is wanted is there, nothing else is another, and it can go back."""

import sys
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base import toml_document
from gpuready.base.toml_document import TomlError, merge, read

CRI = ("plugins", "io.containerd.grpc.v1.cri")
SECTION = f'plugins."{CRI[1]}"'
NVIDIA = (*CRI, "containerd", "runtimes", "nvidia")
OURS: dict[tuple[str, ...], Any] = {
    (*NVIDIA, "runtime_type"): "io.containerd.runc.v2",
    (*NVIDIA, "options", "BinaryName"): "/usr/bin/nvidia-container-runtime",
    (*CRI, "containerd", "default_runtime_name"): "nvidia",
}

_KEYS = st.sampled_from(
    ["a", "containerd", "runtimes", "runc", "nvidia", "options", "io.containerd.grpc.v1.cri", "ü ="]
)
_VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.lists(st.integers(0, 9), max_size=3),
)
_TABLES = st.recursive(_VALUES, lambda inner: st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12)
_PLUGINS = st.dictionaries(st.sampled_from([CRI[1], "io.containerd.internal.v1.opt"]), _TABLES, max_size=2)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A configuration with comments between its lines, tables in any order, some of them inline."""
    top = draw(st.dictionaries(st.sampled_from(["version", "root", "debug", "timeouts"]), _TABLES, max_size=3))
    text = tomlkit.dumps({**top, "plugins": draw(_PLUGINS)})
    lines = text.split("\n")
    for place in draw(st.lists(st.integers(0, len(lines)), max_size=3)):
        if "'''" not in text and '"""' not in text:
            lines.insert(place, "# kept")
    return "\n".join(lines) + "\n"


def parsed(text: str) -> Any:
    """By the reader of the standard library, where there is one: another than that which wrote."""
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib.loads(text)
    return tomlkit.parse(text).unwrap()


@given(documents())
def test_a_merge_changes_what_it_should_and_nothing_else(text: str) -> None:
    before = parsed(text)
    try:
        after = merge(text, OURS)
    except TomlError:
        return  # refused aloud, and nothing is written: test_usual_files says what must not be
    now = parsed(after)
    for path, value in OURS.items():
        assert toml_document.at(now, path) == value
    assert after.count("# kept") == text.count("# kept")
    assert merge(after, OURS) == after
    for path, value in _leaves(before).items():
        if path not in OURS:
            assert toml_document.at(now, path) == value
    assert {p for p in _leaves(now) if p not in _leaves(before)} <= set(OURS)
    way_back = {path: toml_document.at(before, path) for path in OURS}
    assert _leaves(parsed(merge(after, way_back))) == _leaves(before)


def _leaves(table: Any, above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if isinstance(table, dict) and table:
        return {path: value for key, inner in table.items() for path, value in _leaves(inner, (*above, key)).items()}
    return {} if table == {} else {above: table}


USUAL = {
    "nothing": "",
    "a comment": "# a\n",
    "no newline at the end": "version = 2",
    "nested and indented": f'version = 2\n[plugins]\n  [plugins."{CRI[1]}"] # here\n    a = 1\n[debug]\nb = 2 # c\n',
    "deep headers only": f'[plugins."{CRI[1]}".containerd.runtimes.runc.options]\nSystemdCgroup = true\n',
    "inline": f'plugins = {{"{CRI[1]}" = {{containerd = {{runtimes = {{runc = {{a = 1}}}}}}}}}}\n',
    "out of order": f"[{SECTION}]\na = 1\n[grpc]\nb = 2\n[{SECTION}.containerd.runtimes.runc]\nc = 3\n",
    "dotted keys at the top": f'version = 2\nplugins."{CRI[1]}".a = 1\n',
    "single quotes, CRLF": f"version = 2\r\n[plugins.'{CRI[1]}']\r\na = 1 # b\r\n",
    "there already": f'[plugins."{CRI[1]}".containerd]\ndefault_runtime_name = "nvidia" # mine\n',
}


@pytest.mark.parametrize("text", USUAL.values(), ids=USUAL)
def test_usual_files(text: str) -> None:
    after = merge(text, OURS)
    assert merge(after, OURS) == after
    for path, value in OURS.items():
        assert toml_document.at(parsed(after), path) == value
    for comment in (line.partition("#")[2] for line in text.splitlines() if "#" in line):
        assert f"#{comment}" in after
    back = merge(after, {path: toml_document.at(read(text), path) for path in OURS})
    assert _leaves(parsed(back)) == _leaves(parsed(text))


@pytest.mark.fault("D17")
def test_lines_end_as_they_all_did() -> None:
    after = merge(USUAL["single quotes, CRLF"], OURS)
    assert 3 < after.count("\n") == after.count("\r\n")
    mixed = merge(f"# a\n{USUAL['single quotes, CRLF']}", OURS)
    assert mixed.startswith("# a\nversion = 2\r\n")


BAD = {
    "version = \n": "line 1",
    "a = 1\na = 2\n": "a",
    "[x\n": "line 1",
    "a = '\udcff'\n": "not UTF-8",
    "[[plugins]]\na = 1\n": "plugins is not a table",
    f'[plugins."{CRI[1]}"]\ncontainerd = 3\n': "containerd is not a table",
    f"[{SECTION}]\ncontainerd.runtimes.runc.a = 1\n": "cannot change these keys alone in this file: plugins.",
}


@pytest.mark.parametrize(("text", "why"), BAD.items(), ids=map(repr, BAD))
def test_what_cannot_be_merged_is_said_and_left(text: str, why: str) -> None:
    with pytest.raises(TomlError) as caught:
        merge(text, OURS)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


DOTTED = {
    "at the top": f'version = 2\nplugins."{CRI[1]}".containerd.runtimes.runc.a = 1\n[debug]\nb = 2\n',
    "below a header": f"[{SECTION}]\ncontainerd.runtimes.runc.a = 1\n",
}


@pytest.mark.parametrize("text", DOTTED.values(), ids=DOTTED)
def test_lines_to_paste_have_the_wanted_effect(text: str) -> None:
    """A new runtime beside one in dotted keys; the file is read as if gpuready had changed it."""
    ours = {path: value for path, value in OURS.items() if path[:-1] != (*CRI, "containerd")}
    try:
        after = merge(text, ours)
    except TomlError as e:
        assert e.by_hand.startswith("\nPaste these lines at the end of the file:\n[plugins.")
        after = text + e.by_hand.partition(":\n")[2]
    now = parsed(after)
    assert all(toml_document.at(now, path) == value for path, value in ours.items())
    assert _leaves(now).items() >= _leaves(parsed(text)).items()


def test_keys_that_cannot_be_pasted_come_with_their_values() -> None:
    with pytest.raises(TomlError) as caught:
        merge(DOTTED["below a header"], OURS | {(*NVIDIA, "args"): ["a", 'b"'], (*CRI, "x y"): True})
    lines = caught.value.by_hand.splitlines()
    assert lines[:2] == ["", "Set these keys by hand, each in its table:"]
    assert f'{SECTION}.containerd.default_runtime_name = "nvidia"' in lines
    assert f'{SECTION}.containerd.runtimes.nvidia.args = ["a", "b\\""]' in lines
    assert f'{SECTION}."x y" = true' in lines
    with pytest.raises(TomlError) as caught:
        merge(DOTTED["below a header"], OURS | {(*CRI, "containerd", "runtimes", "runc", "a"): None})
    assert f"remove {SECTION}.containerd.runtimes.runc.a" in caught.value.by_hand.splitlines()


@given(st.text(max_size=60))
def test_no_text_makes_it_raise_anything_else(text: str) -> None:
    try:
        merge(text, OURS)
    except TomlError as e:
        assert str(e)
