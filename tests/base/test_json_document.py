"""daemon.json is the user's: what is not ours comes back as it was, to the last digit, or nothing is written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base.json_document import DaemonJsonError, merge, read, readable_by_nvidia_ctk, write

OURS: dict[tuple[str, ...], Any] = {
    ("runtimes", "nvidia", "path"): "nvidia-container-runtime",
    ("default-runtime",): "nvidia",
    ("live-restore",): True,
    ("default-shm-size",): 8 << 30,
}
_KEYS = st.text(max_size=12) | st.sampled_from(["runtimes", "default-runtime", "live-restore", "features", "nvidia"])
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()), max_size=20)
)
_VALUES = st.recursive(
    _SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(_KEYS, v, max_size=4), max_leaves=15
)
_RUNTIMES = st.none() | st.dictionaries(_KEYS, st.none() | st.dictionaries(_KEYS, _VALUES, max_size=3), max_size=4)
DOCUMENTS = st.dictionaries(_KEYS, _VALUES, max_size=6) | st.builds(
    lambda document, runtimes: document | {"runtimes": runtimes}, st.dictionaries(_KEYS, _VALUES, max_size=6), _RUNTIMES
)


def mergeable(document: dict[str, Any]) -> bool:
    runtimes = document.get("runtimes")
    nvidia = runtimes.get("nvidia") if isinstance(runtimes, dict) else None
    return isinstance(runtimes, (dict, type(None))) and isinstance(nvidia, (dict, type(None)))


def without_ours(document: dict[str, Any]) -> dict[str, Any]:
    """What merge has to leave alone; an empty object on the way to our keys counts as absent, as null does."""
    kept = json.loads(json.dumps(document))
    runtimes = kept.pop("runtimes", None) or {}
    nvidia = runtimes.pop("nvidia", None) or {}
    nvidia.pop("path", None)
    for key in ("default-runtime", "live-restore", "default-shm-size"):
        kept.pop(key, None)
    return {"kept": kept, "runtimes": runtimes, "nvidia": nvidia}


@given(DOCUMENTS)
def test_any_document(document: dict[str, Any]) -> None:
    before = json.dumps(document)
    data = write(document)
    assert data.endswith(b"}\n")
    assert read(data) == document
    assert write(read(data)) == data
    if not mergeable(document):
        return
    merged = merge(document, OURS)
    assert merged["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
    assert (merged["default-runtime"], merged["live-restore"], merged["default-shm-size"]) == ("nvidia", True, 8 << 30)
    assert without_ours(merged) == without_ours(document), "the rest stays"
    assert json.dumps(document) == before, "the user's document itself must stay as it is"
    once = merge(read(data), OURS)
    again = merge(read(write(once)), OURS)
    assert again == once and write(again) == write(once), "a second merge changes nothing"


@given(DOCUMENTS, _SCALARS.filter(lambda v: v is not None) | st.lists(_SCALARS, max_size=2), st.booleans())
def test_merge_never_throws_a_value_away(document: dict[str, Any], value: Any, deep: bool) -> None:
    document = document | {"runtimes": {"nvidia": value} if deep else value}
    with pytest.raises(DaemonJsonError, match="runtimes"):
        merge(document, OURS)


def test_merge_keeps_the_order_of_keys() -> None:
    merged = merge(read(b'{"z": 1, "runtimes": {"b": {"path": "b"}, "a": {"path": "a"}}, "a": 2}'), OURS)
    assert list(merged)[:3] == ["z", "runtimes", "a"]
    assert list(merged["runtimes"]) == ["b", "a", "nvidia"]


LARGE = ["9223372036854775808", "12345678901234567890", "-9007199254740993", "9" * 400]


@pytest.mark.parametrize("number", [*LARGE, "1.10", "0.12345678901234567890", "1E2", "1e+5", "-0.0", "2.5e-300"])
@pytest.mark.parametrize("place", ['{"log-opts": {"n": NUMBER}}', '{"list": [NUMBER, [NUMBER]]}'])
def test_numbers_keep_every_digit(number: str, place: str) -> None:
    text = place.replace("NUMBER", number)
    written = write(merge(read(text.encode()), OURS)).decode()
    assert written.count(number) == text.count(number), written


@pytest.mark.parametrize("number", ["1E400", "-1e999", "9" * 1001, "NaN", "Infinity", "-Infinity"])
def test_numbers_that_cannot_be_kept_are_refused(number: str) -> None:
    with pytest.raises(DaemonJsonError):
        read(b'{"a": ' + number.encode() + b"}")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "Grüße, 世界, \U0001f600"}',
        '{"Ключ": 1}',
        '{"a": "\\u2028 \\u0000 \\u007f"}',
        '{"a": "\\ud800"}',
        '{"a": "\\udc00 \\ud83d\\ude00"}',
        '{"a": "<>&"}',
    ],
)
def test_text_survives(text: str) -> None:
    document = read(text.encode())
    assert document == json.loads(text)
    assert read(write(document)) == document


def test_non_ascii_stays_readable() -> None:
    assert "Grüße" in write(read('{"a": "Grüße"}'.encode())).decode()


@pytest.mark.parametrize("data", [b"", b" \n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n", b"{}", b"\xef\xbb\xbf{}"])
def test_empty_files_are_empty_documents(data: bytes) -> None:
    assert read(data) == {}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "line 1, column 2"),
        (b'{\n  "a": 1,\n}', "line 2, column 9: a trailing comma"),
        (b'{"a": 1} trailing', "line 1, column 10"),
        (b'{"a": 1}\n{"b": 2}', "line 2, column 1"),
        (b"// comment\n{}", "line 1, column 1"),
        (b'{"a": "tab\there"}', "line 1"),
        (b'{"a": 01}', "line 1"),
        (b"[1]", "a list, not an object"),
        (b'"text"', "a string, not an object"),
        (b"null", "null, not an object"),
        (b"true", "a boolean, not an object"),
        (b"12", "a number, not an object"),
        (b'{"a": "\xff"}', r"not UTF-8 \(line 1, byte 0xff\); save it as UTF-8"),
        (b'{"a": 1, "a": 1}', "line 1, column 10: duplicate key 'a'"),
        (b'{"runtimes": {"x": {"path": "a",\n "path": "b"}}}', "line 2, column 2: duplicate key 'path'"),
        (b'{"a": [{"b": 1}, {"b": ":"}],\n"a": 1}', "line 2, column 1: duplicate key 'a'"),
        (b'{"a": "NaN",\n"b": NaN}', "line 2, column 6: NaN is not a JSON value"),
    ],
)
def test_what_cannot_be_read_says_where(data: bytes, why: str) -> None:
    with pytest.raises(DaemonJsonError, match=why):
        read(data)


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ('{"a":[', "]}"), ('{"b":1,"runtimes":', "}")])
@pytest.mark.parametrize("depth", [10, 40, 150, 400, 700, 1000, 20_000])
def test_nesting_is_either_kept_or_refused(opening: str, closing: str, depth: int) -> None:
    data = (opening * depth + "null" + closing * depth).encode()
    if depth > 100:
        with pytest.raises(DaemonJsonError, match="nested too deeply"):
            read(data)
    else:
        merged = merge(read(data), OURS)
        assert read(write(merged)) == merged


@pytest.mark.parametrize(("value", "kind"), [([], "list"), ("x", "string"), (1, "number"), (False, "boolean")])
def test_merge_says_what_stands_in_its_way(value: object, kind: str) -> None:
    for document, path in (({"runtimes": value}, "runtimes"), ({"runtimes": {"nvidia": value}}, r"runtimes\.nvidia")):
        with pytest.raises(DaemonJsonError, match=f"^{path} is a {kind}"):
            merge(document, OURS)


@pytest.mark.parametrize("text", ['{"runtimes": null}', '{"runtimes": {"nvidia": null}}', "{}"])
def test_null_on_the_way_counts_as_absent(text: str) -> None:
    assert merge(read(text.encode()), OURS)["runtimes"] == {"nvidia": {"path": "nvidia-container-runtime"}}


def test_the_users_arguments_of_our_runtime_stay() -> None:
    entry = {"path": "/opt/old", "runtimeArgs": ["--debug"]}
    merged = merge({"runtimes": {"nvidia": entry}}, OURS)
    assert merged["runtimes"]["nvidia"] == {"path": "nvidia-container-runtime", "runtimeArgs": ["--debug"]}


@pytest.mark.parametrize(
    ("data", "can"),
    [
        (b"", False),
        (b"{}", False),
        (b'\xef\xbb\xbf{"debug": true}', False),
        (b'{"runtimes": null}', False),
        (b'{"runtimes": []}', False),
        (b'{"debug": true}', True),
        (b'{"runtimes": {}}', True),
    ],
)
def test_what_nvidia_ctk_is_given(data: bytes, can: bool) -> None:
    assert readable_by_nvidia_ctk(read(data), data) is can


@given(
    st.binary(max_size=200) | st.text(st.sampled_from('{}[]":,0123456789.eE-+tfn \\u\n'), max_size=60).map(str.encode)
)
def test_arbitrary_bytes(data: bytes) -> None:
    try:
        document = read(data)
    except DaemonJsonError as e:
        assert str(e)
    else:
        assert read(write(document)) == document


@pytest.mark.fault("D17")
def test_lines_end_as_the_file_has_them() -> None:
    document = read(b'{\r\n"debug": true\r\n}\r\n')
    assert write(document, b'{\r\n"debug": true\r\n}\r\n') == b'{\r\n    "debug": true\r\n}\r\n'
    for other in (b"", b"{}", b'{\n"debug": true\r\n}'):
        assert b"\r" not in write(document, other)
