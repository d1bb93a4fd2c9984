"""YAML and JSON with places: lines of keys and entries, and the same bounds for both."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuready.base.errors import InventoryError, SpecError
from gpuready.inventory import yaml_positions
from gpuready.inventory.source_values import Located, Shown, children, label, merge, plain
from gpuready.inventory.yaml_positions import load_text, read_text


def load(text: str) -> Located:
    located = load_text(text, "f")
    assert located is not None
    return located


def lines(located: Located, path: str = "") -> str:
    """The path and the line of everything below."""
    found = ""
    for key, value in children(located):
        name = f"{path}[{key}]" if isinstance(located.value, list) else f"{path}.{key}".lstrip(".")
        found += f"{name}:{value.where.line} {lines(value, name)}"
    return found


def test_lines_of_yaml() -> None:
    text = "# c\na:\n  b: 1\n  c:\n\n    - x\n    - y: |\n        long\n      z: {q: 1,\n        r: 2}\nd: [1,\n  2]\n"
    below = "a.b:3 a.c:4 a.c[0]:6 a.c[1]:7 a.c[1].y:7 a.c[1].z:9 a.c[1].z.q:9 a.c[1].z.r:10"
    assert lines(load(text)) == f"a:2 {below} d:11 d[0]:11 d[1]:12 "


def test_lines_of_json() -> None:
    text = '{"a":\n {"b": [1,\n "x,]\\"{",\n {"c": null}]}}'
    assert lines(load(text)) == "a:1 a.b:2 a.b[0]:2 a.b[1]:3 a.b[2]:4 a.b[2].c:4 "


def test_an_alias_has_its_own_line_and_its_content_keeps_its_lines() -> None:
    assert lines(load("a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n  e: 2\n")) == "a:1 a.b:2 c:3 c.b:2 d:4 d.b:2 d.e:6 "


@pytest.mark.parametrize(
    "text",
    [
        "a: {b: [1, 2.5, off, ~, 0755, 1:30, '0755', 2026-01-01], ? k : v}",
        "a: &x {b: 1}\nc: {<<: *x, b: 2}\nd: {<<: [{e: 1}, {e: 2, f: 3}]}",
        "- 1\n- [a, {b: c}]",
        "just text",
        "a: >-\n  x\n  y\nb: |+\n  z\n\n",
        "{}",
        "{a: }",
        '"\\u00e9\\x41"',
    ],
)
def test_the_same_values_as_pyyaml(text: str) -> None:
    def tuples(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: tuples(entry) for key, entry in value.items()}
        return tuple(map(tuples, value)) if isinstance(value, list) else value

    assert plain(load(text)) == tuples(yaml.safe_load(text))


@pytest.mark.parametrize("text", ["", "# only\n", "---\n...\n", "\ufeff"])
def test_nothing(text: str) -> None:
    located = load_text(text.lstrip("\ufeff"), "f")
    assert located is None or located.value in (None, "")


def test_json_numbers_are_those_of_json() -> None:
    assert plain(load('{"a": 1e3, "b": 0.10, "c": "1e3", "d": -0}')) == {"a": 1000.0, "b": 0.1, "c": "1e3", "d": 0}
    assert plain(load("{a: 1e3}")) == {"a": "1e3"}
    value = {"a": [{}, [], "", {"b": "\u2028\t\\\"'"}], "c": True}
    assert plain(load(json.dumps(value))) == {"a": ({}, (), "", {"b": "\u2028\t\\\"'"}), "c": True}


def test_without_the_c_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_positions, "_LOADER", yaml.SafeLoader)
    assert lines(load("a:\n  b:\n    - 1\n    - c: 2")) == "a:1 a.b:2 a.b[0]:3 a.b[1]:4 a.b[1].c:4 "
    for bad in ("a:\n\tb: 1", "[" * 5000, "a: *b", "a: 1\na: 2", "x: !t y", "'"):
        with pytest.raises(SpecError, match=r"^f:"):
            load_text(bad, "f")


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert lines(load(read_text(str(tmp_path / "f")))) == "a:1 b:2 "


def test_unreadable(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InventoryError, match="cannot be read"):
            read_text(str(path))


def test_merge() -> None:
    below = load("a: {b: 1, c: [1, 2], d: {e: 1}}\nf: 1\ng: {h: 1}")
    above = load("a: {c: [3], d: {i: 2}, j: 4}\nf: {k: 1}\ng: ")
    merged = merge(below, above)
    assert plain(merged) == {"a": {"b": 1, "c": (3,), "d": {"e": 1, "i": 2}, "j": 4}, "f": {"k": 1}, "g": {"h": 1}}
    assert merge(None, above) is above
    assert plain(merge(load("{a: {b: 1}}"), load("{a: off}"))) == {"a": False}


def test_shown() -> None:
    scalars = (None, True, False, 1.5, "x", "\x1b[31m")
    assert [repr(Shown(value)) for value in scalars] == ["null", "true", "false", "1.5", "'x'", "'\\x1b[31m'"]
    others = ({}, {"a": 1}, [1, 2])
    assert [repr(Shown(value)) for value in others] == ["an empty mapping", "a mapping of a", "a list of 2"]
    assert label("ok") == "ok" and "\x1b" not in label("\x1b[0m") and len(label("x" * 999)) < 100
