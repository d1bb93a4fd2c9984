"""Say in plain words why a text is not JSON or TOML: look at the place where the parser stopped.

The parsers name the rule that was broken, such as "Expecting property name". The reader needs the slip: a comment, a
trailing comma, single quotes. No message quotes a value of the file, which may be a
password.
Sources: RFC 8259 (JSON); toml.io, version 1.0; the messages of Python's json and tomllib.
"""

import codecs
import json
import re

#: What stands at the place of the error, as a pattern -> what is wrong. The first match counts.
_IN_JSON = {
    r"//|/\*|#": "JSON has no comments; remove it",
    r"'": "JSON has no single quotes; write double quotes",
    r"[“”„‘’]": "typographic quotes; write plain double quotes",
    r"\ufeff": "a byte-order mark; remove it",
    r"(?:True|False|None)\b": "JSON writes true, false and null in lower case",
    r"(?i:[-+]?(?:nan|inf|infinity))\b": "JSON has no such number",
}
#: The parser's message -> what is wrong, if the place does not say it.
_OF_JSON = {
    "Expecting property name": "a key in double quotes is missing here",
    "Expecting ':'": "a colon is missing here",
    "Expecting ','": "a comma is missing here",
    "Expecting value": "there is no valid value here; text needs double quotes",
    "Extra data": "text follows the end of the document",
    "Unterminated string": "the string that begins here has no closing quote",
    "Invalid control character": "a control character in a string; write it as an escape such as \\u0001",
    "Invalid \\": "JSON has no such escape; write a backslash as \\\\",
}
_CONTROLS = {
    "\t": "a tab in a string; write it as \\t",
    "\n": "a line ends in a string; the closing quote is missing",
    "\r": "a line ends in a string; the closing quote is missing",
}
_IN_TOML = {
    r"//|/\*|;": "a TOML comment begins with #",
    r"[“”„‘’]": "typographic quotes; write plain quotes",
    r"\ufeff": "a byte-order mark; save the file without it",
    r"(?:True|False)\b": "TOML writes true and false in lower case",
    r"(?:None|null|nil)\b": "TOML has no null; remove the key",
    r"(?:NaN|Infinity)\b": "TOML writes nan and inf",
    r":": "TOML writes KEY = VALUE",
    r"\{": "this is JSON or YAML; TOML writes [TABLE] and KEY = VALUE",
}
_OF_TOML = {
    "Cannot overwrite a value": "duplicate key or table; keep one",
    "Cannot declare": "duplicate table; keep one",
    "Invalid value": "a value is missing here; text needs quotes",
    "Illegal character '\\n'": _CONTROLS["\n"],
    "Illegal character '\\r'": "a carriage return alone ends this line; end it with a line feed",
    "Illegal character": "a control character",
    "Unescaped '\\'": "a backslash in double quotes; write it as \\\\, or use single quotes",
    "Unclosed array": "a comma or the closing ] is missing",
    "Unclosed inline table": "the closing } is missing; an inline table stands on one line",
    "Expected ']'": "the closing ] of the table is missing",
    "Expected '='": "TOML writes KEY = VALUE",
    "Expected newline": "a second value or key on the same line",
    "Invalid statement": "neither [TABLE] nor KEY = VALUE",
}
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]:]|[^\s{}\[\]:,"]+', re.DOTALL)
_NOT_NUMBERS = ("NaN", "Infinity", "-Infinity")


def encoding_problem(data: bytes) -> str:
    """Return why ``data`` is not UTF-8; empty if it is."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:2]:
        return "it is UTF-16; save it as UTF-8"
    try:
        data.decode()
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        return f"it is not UTF-8 (line {line}, byte 0x{data[e.start]:02x}); save it as UTF-8"
    return ""


def json_problem(error: json.JSONDecodeError) -> str:
    """Return line, column and reason of an error of json.loads."""
    text, place = error.doc, error.pos
    before = text[:place].rstrip()
    if error.msg.startswith("Illegal trailing comma"):  # Python 3.13 and newer stop at the comma, older ones behind it
        before = text[: place + 1]
    elif not (text[place : place + 1] in ("}", "]") and before.endswith(",")):
        return _placed(text, place, _at_json(text, place, error.msg))
    return _placed(text, len(before) - 1, "a trailing comma; remove it")


def _at_json(text: str, place: int, message: str) -> str:
    if message.startswith("Invalid control character"):
        return _CONTROLS.get(text[place : place + 1]) or _OF_JSON["Invalid control character"]
    if message == "Expecting value" and not text[:place].strip():
        return _first(_IN_JSON, text, place) or "this is not JSON, which begins with {"
    if not text[place:].strip():
        return "the file ends here; a closing brace, bracket or quote is missing"
    return _first(_IN_JSON, text, place) or _meaning(_OF_JSON, message)


def json_extension(text: str) -> str:
    """Return place and name of the first duplicate key, or number that is not JSON: json.loads accepts both."""
    keys: list[set[str]] = [set()]
    last = None
    for match in _TOKENS.finditer(text):
        token = match[0]
        if token in ("{", "["):
            keys.append(set())
        elif token in ("}", "]"):
            keys = keys[:-1] or [set()]
        elif token == ":" and last is not None and last[0].startswith('"'):
            key = last[0][1:-1]
            if key in keys[-1]:
                return _placed(text, last.start(), f"duplicate key {key!r}; keep one")
            keys[-1].add(key)
        elif token in _NOT_NUMBERS:
            return _placed(text, match.start(), f"{token} is not a JSON value")
        last = match
    return "a duplicate key, or a number that JSON does not have"


def toml_problem(text: str, message: str) -> str:
    """Return line, column and reason for a message of tomllib; any other message unchanged."""
    said, _, numbers = message.rpartition(" (at line ")
    if not said:
        unclosed = message.endswith("(at end of document)")
        return "the file ends in a string, an array or a table that is not closed" if unclosed else message
    line, column = (int(number) for number in re.findall(r"[0-9]+", numbers))
    place = _line_start(text, line) + column - 1
    trailing = said.startswith("Invalid initial character") and text[place : place + 1] == "}"
    seen = _first(_IN_TOML, text, place) if said.startswith(("Invalid", "Expected")) else ""
    words = "a trailing comma; remove it" if trailing else seen or _meaning(_OF_TOML, said)
    return f"line {line}, column {column}: {words}"


def _line_start(text: str, line: int) -> int:
    place = 0
    for _ in range(line - 1):
        place = text.find("\n", place) + 1
    return place


def _placed(text: str, place: int, words: str) -> str:
    line = text.count("\n", 0, place) + 1
    return f"line {line}, column {place - text.rfind(chr(10), 0, place)}: {words}"


def _first(table: dict[str, str], text: str, place: int) -> str:
    return next((words for pattern, words in table.items() if re.compile(pattern).match(text, place)), "")


def _meaning(table: dict[str, str], message: str) -> str:
    return next((words for start, words in table.items() if message.startswith(start)), message)
