"""Secrets out of everything that is printed or stored: contents of files, command lines, errors, diffs.

A masked text keeps its syntax (JSON stays JSON, TOML stays TOML), so that a masked state still plans and verifies.
When in doubt it hides too much: a reader can look at the node, a published log cannot be taken back. Forms: RFC 3986
userinfo, docker's config.json and containerd's registry tables, netrc(5) as in apt_auth.conf(5), PEM.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from gpuready.components.ledger import KEPT
from gpuready.state.model import NodeState

MASK = "***"

_WORD = r"(?:pass(?:word|wd|phrase)|token|secret|credential|auth(?![a-z])|authorization(?!-plugins))"
_JSON_KEY = rf'"[^"\n]*(?:{_WORD}|(?:api|access|private|signing|encryption)[_-]?key)[^"\n]*"\s*:\s*'
_JSON_STRING = r'"(?:[^"\\\n]|\\.)*"?'
_PLAIN = r"[^\s\"',;\[\]{}]+"

_USERINFO = re.compile(r"(:(?:\\?/){2})[^/\s\"'\\]+@")
_PEM = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL)
_JSON = re.compile(rf"({_JSON_KEY})(?:{_JSON_STRING}|-?[0-9][\w.+-]*)", re.IGNORECASE)
_JSON_LIST = re.compile(rf'({_JSON_KEY})\[(?:"(?:[^"\\\n]|\\.)*"|[^\][{{}}"])*\]', re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"([\w.-]*(?:{_WORD}[\w.-]*|key)\s*=\s*)(?:\"((?:[^\"\\\n]|\\.)*)\"?|'([^'\n]*)'?|{_PLAIN})", re.IGNORECASE
)
_YAML = re.compile(rf"^(\s*(?:-\s+)?[\w.-]*{_WORD}[\w.-]*:[ \t]+)(?![\"'\[{{|>])\S.*$", re.IGNORECASE | re.MULTILINE)
_FLAG = re.compile(rf"(--[\w-]*{_WORD}[\w-]*[ \t]+)(?!-)\S+", re.IGNORECASE)
_HEADER = re.compile(r"(authorization[\"']?\s*[:=]\s*[\"']?\w+\s+)[^\s\"']+", re.IGNORECASE)
_NETRC = re.compile(r"(\b(?:machine|login|default)\b[^#\n]*?\spassword\s+)\S+", re.IGNORECASE)
_SECRET_NAME = re.compile(_WORD, re.IGNORECASE)


def mask_text(text: str) -> str:
    """``text`` with every secret replaced by ``***``; masking twice changes nothing more."""
    if not any(sign in text for sign in "@=:-") and "password" not in text:
        return text
    text = _PEM.sub(rf"\1 {MASK} \2", text)
    text = _HEADER.sub(rf"\g<1>{MASK}", text)
    text = _JSON_LIST.sub(rf'\1["{MASK}"]', text)
    text = _JSON.sub(_masked_json, text)
    text = _ASSIGNED.sub(_masked_assignment, text)
    for pattern in (_YAML, _FLAG, _NETRC):
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return _USERINFO.sub(rf"\1{MASK}@", text)


def _masked_json(match: re.Match[str]) -> str:
    return match[0] if match[0].endswith('""') else f'{match[1]}"{MASK}"'


def _masked_assignment(match: re.Match[str]) -> str:
    if match[2] == "" or match[3] == "":
        return match[0]
    quote = '"' if match[2] else "'" if match[3] else ""
    return f"{match[1]}{quote}{MASK}{quote}"


def mask(value: Any) -> Any:
    """Any JSON value with all its strings masked; keys stay, and a key that names a secret hides its string."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {key: MASK if _hides(key, item) else mask(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(item) for item in value]
    return value


def _hides(key: object, value: object) -> bool:
    return isinstance(value, str) and bool(value) and isinstance(key, str) and bool(_SECRET_NAME.search(key))


def mask_value(key: str, value: Any) -> Any:
    """The value of a diff's key; all of it is hidden when the key names a secret."""
    return MASK if _hides(key.rpartition(".")[2], value) else mask(value)


def mask_state(state: NodeState) -> dict[str, Any]:
    """A state as JSON, masked and marked so; it plans and verifies, and apply refuses it."""
    shown: dict[str, Any] = mask(state.model_dump())
    # With the rest of a file known, a password can be guessed from the file's hash: those of masked contents stand in.
    hashes = {file.sha256: _sha256(mask_text(file.text)) for file in state.files.values()}
    for path, file in state.glob(f"{KEPT}/").items():
        if re.fullmatch(r"[0-9a-f]{64}\n?", file.text):
            shown["files"][path]["text"] = hashes.get(file.text.strip(), MASK)
    return shown | {"masked": True}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
