"""What JSON and TOML cannot be is said in plain words, with the place, and without a word of the file."""

import pytest

from gpuready.base.json_document import DaemonJsonError
from gpuready.base.json_document import read as read_daemon_json
from gpuready.base.toml_document import TomlError
from gpuready.base.toml_document import read as read_toml

JSON = {
    '{ // why\n"a": 1}': "line 1, column 3: JSON has no comments",
    '{"a": 1 /* why */}': "line 1, column 9: JSON has no comments",
    '# why\n{"a": 1}': "line 1, column 1: JSON has no comments",
    '{"a": 1}\n// why': "line 2, column 1: JSON has no comments",
    '{"a": [1,\n2, ]}': "line 2, column 2: a trailing comma",
    '{"a": 1,\n\n}\n': "line 1, column 8: a trailing comma",
    "{'a': 1}": "line 1, column 2: JSON has no single quotes",
    '{"a": “x”}': "line 1, column 7: typographic quotes",
    "\ufeff\ufeff{}": "line 1, column 1: a byte-order mark",
    '{"a": nan}': "line 1, column 7: JSON has no such number",
    '{"a":\n-Infinity}': "line 2, column 1: -Infinity is not a JSON value",
    '{"a": True}': "line 1, column 7: JSON writes true, false and null",
    '{"a": "x\ty"}': r"line 1, column 9: a tab in a string; write it as \t",
    '{"a": "x\n}': "line 1, column 9: a line ends in a string",
    '{"a": "x': "line 1, column 7: the string that begins here has no closing quote",
    '{"a": "\x01"}': "line 1, column 8: a control character in a string",
    '{"a": "C:\\dir"}': "line 1, column 10: JSON has no such escape",
    '{"a": {"b": 1}': "line 1, column 15: the file ends here; a closing brace",
    '{"a" 1}': "line 1, column 6: a colon is missing here",
    '{"a": 1\n"b": 2}': "line 2, column 1: a comma is missing here",
    "{a: 1}": "line 1, column 2: a key in double quotes is missing here",
    '{"a": }': "line 1, column 7: there is no valid value here",
    '{"a": 1} {}': "line 1, column 10: text follows the end",
    "a = 1\n": "line 1, column 1: this is not JSON",
}
TOML = {
    "// why\na = 1\n": "line 1, column 1: a TOML comment begins with #",
    "a = 1\nb = 2 ; why\n": "line 2, column 7: a TOML comment begins with #",
    "\ufeffa = 1\n": "line 1, column 1: a byte-order mark",
    "a: 1\n": "line 1, column 2: TOML writes KEY = VALUE",
    '{"a": 1}': "line 1, column 1: this is JSON or YAML",
    "a = True\n": "line 1, column 5: TOML writes true and false",
    "a = null\n": "line 1, column 5: TOML has no null",
    "a = NaN\n": "line 1, column 5: TOML writes nan and inf",
    "a = 1\r\nb = runc\r\n": "line 2, column 5: a value is missing here; text needs quotes",
    "a = “runc”\n": "line 1, column 5: typographic quotes",
    "a = 1\na = 2\n": "line 2, column 6: duplicate key",
    "[a]\n[b]\n[a]\n": "line 3, column 3: duplicate table",
    "a = {b = 1,}\n": "line 1, column 12: a trailing comma",
    "a = {b = 1\n}\n": "line 1, column 11: the closing } is missing",
    "a = [1, 2\n": "the file ends in a string, an array or a table",
    "a = [1 2]\n": "line 1, column 8: a comma or the closing ] is missing",
    'a = "C:\\dir"\n': "line 1, column 10: a backslash in double quotes",
    'a = "x\n': "line 1, column 7: a line ends in a string",
    "[a\nb = 1\n": "line 1, column 3: the closing ] of the table is missing",
    "a = 1 b = 2\n": "line 1, column 7: a second value or key",
    "a\n": "line 1, column 2: TOML writes KEY = VALUE",
    "<a/>\n": "line 1, column 1: neither [TABLE] nor KEY = VALUE",
}


@pytest.mark.parametrize(("text", "why"), JSON.items(), ids=map(repr, JSON))
def test_json(text: str, why: str) -> None:
    with pytest.raises(DaemonJsonError) as caught:
        read_daemon_json(text.encode())
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(("text", "why"), TOML.items(), ids=map(repr, TOML))
def test_toml(text: str, why: str) -> None:
    with pytest.raises(TomlError) as caught:
        read_toml(text)
    assert str(caught.value).startswith(f"it is not valid TOML: {why}")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_the_other_encoding_of_windows(codec: str) -> None:
    """As PowerShell writes a file by default."""
    data = '{"debug": true}'.encode(codec)
    with pytest.raises(DaemonJsonError, match=r"^it is UTF-16; save it as UTF-8$"):
        read_daemon_json(data)
    with pytest.raises(TomlError, match=r"it is UTF-16; save it as UTF-8$"):
        read_toml("a = 1".encode(codec).decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("text", ['{"password": "hunter2",}', '{"password": hunter2}', '{"a": 1, "p": "hunter2" x}'])
def test_nothing_of_the_file_is_shown(text: str) -> None:
    with pytest.raises(DaemonJsonError) as caught:
        read_daemon_json(text.encode())
    with pytest.raises(TomlError) as also:
        read_toml(text.replace(": ", " = ").strip("{}"))
    assert "hunter2" not in f"{caught.value}{also.value}"
