"""Secrets out of everything that is printed or stored: contents of files, command lines, errors, diffs.

A masked text keeps its syntax (JSON stays JSON, TOML stays TOML), so that a masked state still plans and verifies.
When in doubt it hides too much: a reader can look at the node, a published log cannot be taken back.

Nodes write these texts, so every pattern takes time in proportion to their length. It begins at a literal, or where a
word or a line begins, and takes the whole name; only then is the name judged, and only then is its value looked at.
Sources: RFC 3986 userinfo, docker's config.json and containerd's registry tables, netrc(5) as in apt_auth.conf(5), PEM.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuready.model.state import NodeState

MASK = "***"
Match = re.Match[str]

_SECRET = re.compile(
    r"pass(?:word|wd|phrase)|pwd(?![a-z])|token(?!i[sz](?:e|ing|ation))|secret|credential|auth(?![a-z])|authorization(?!-plugins)"
    r"|(?:api|access|private|signing|encryption)[_-]?key(?![_-]?(?:file|path))",
    re.IGNORECASE,
)
#: What an inventory writes for a secret of the environment: the name of a variable. Repeated commands need it.
_REFERENCE = re.compile(r"([\"']?)env:GPUREADY_\w+\1")
_WORKING_DIRECTORY = ("PWD", "OLDPWD")
#: Words of a log about a token, at the place where YAML has a value. They stay visible; the text after them is hidden.
#: No token is one of these words.
_STATUS = re.compile(
    r"(?:(?:failed|valid|invalid|expired|missing|rejected|denied|revoked|required|unexpected|unknown|cannot|could|is|was|has|not"
    r"|no|to)(?![^\s\"'])[ \t]*)+"
)
_DOUBLE, _SINGLE = r'"(?:[^"\\\n]|\\.)*"?', r"'[^'\n]*'?"
_TRIPLE = r'"""(?:[^"]|"(?!""))*(?:""")?' + "|" + r"'''(?:[^']|'(?!''))*(?:''')?"
_LIST = r'\[(?:"(?:[^"\\\n]|\\.)*"?|[^\][{}"])*\]?'
_NUMBER = r"-?[0-9][\w.+-]*"
#: In YAML; of JSON only its own words look like it.
_BARE = r"(?!(?:true|false|null|NaN|Infinity)\b)[^\W\d][^\s,{}\[\]\"']*"
_QUOTED = rf"{_TRIPLE}|{_DOUBLE}|{_SINGLE}"

#: Names, each with what may follow as the value. A name may stand before ``:`` or ``=``, or be a flag.
_PAIRS = tuple(
    (re.compile(name, re.MULTILINE), re.compile(value))
    for name, value in (
        # JSON, and a dictionary as Python prints it; JSON within a string of JSON
        (r"([\"'])(?P<name>(?:(?!\1)[^\n])*)\1\s*:\s*", rf"{_DOUBLE}|{_SINGLE}|{_LIST}|{_NUMBER}|{_BARE}"),
        (r'(?<!\\)(\\+")(?P<name>[^"\\\n]*)\1\s*:\s*(?=\1)', r'(?<!\\)\\+"[^"\\\n]*(?:\\+")?'),
        # TOML and INI, with spaces around the sign: the rest of the line
        (r"^[ \t]*(?P<name>[\w.-]+)[ \t]+=[ \t]*", rf"{_QUOTED}|{_LIST}|[^\s\"'\[{{][^\n]*"),
        # environment, command lines, queries of URLs
        (r"(?<![\w.-])(?P<name>[\w.-]+)[\"']?\s*=\s*", rf"{_QUOTED}|{_LIST}|[^\s\"',;\[\]{{}}]+"),
        (r"(?<![\w-])--(?P<name>[\w-]+)[ \t]+", rf"{_DOUBLE}|{_SINGLE}|(?!-)\S+"),
        # YAML: on a line of its own, within braces, and as a header in quotes
        (r"^[ \t]*(?:-[ \t]+)*(?P<name>[\w.-]+):[ \t]+", rf"{_DOUBLE}|{_SINGLE}|(?![\[{{|>])\S[^\n]*"),
        (r"(?<=[{,\"'])[ \t]*(?P<name>[\w.-]+):[ \t]+", rf"{_DOUBLE}|{_SINGLE}|[^\s\[{{,\"'][^\n,{{}}\[\]\"']*"),
    )
)
_BLOCK = re.compile(r"^([ \t]*)(?:-[ \t]+)*[\"']?(?P<name>[\w.-]+)[\"']?:[ \t]+[|>][^\n]*\n", re.MULTILINE)
_LINE = re.compile(r"([ \t]*)[^\n]*\n?")

_PEM = re.compile(r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----).*?(-----END|\Z)", re.DOTALL)
#: The scheme stays. In JSON a value without quotes is none of these.
_HEADER = re.compile(
    r"((?:authorization|cookie)(?:[\"'][ \t]*[:=][ \t]*[\"']|[ \t]*[:=][ \t]*[\"']?)(?:[\w-]+[ \t]+)?)"
    r"(?![\[{ \t])[^\n\"']+",
    re.IGNORECASE,
)
_NETRC = re.compile(
    r"^((?=([^#\n]*?\b(?:machine|login|default)\b))\2[^#\n]*?\spassword[ \t]+)\S+"
    r"|^([ \t]*password[ \t]+)\S+(?=[ \t]*$)",
    re.MULTILINE,
)
#: dnf's .repo files have no quotes: all to the end of the line. Words, and quotes and lists of TOML, come later.
_REPO = re.compile(
    r"^([ \t]*(?i:(?:proxy_)?password)[ \t]*=[ \t]*)"
    r"(?!\"\"\"|'''|[\w.+-]+$|\[[ \t]*(?:[\"'#]|$)|(?:\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')[ \t]*(?:#[^\n]*)?$)\S[^\n]*",
    re.MULTILINE,
)
_CURL = re.compile(r"((?<!\S)(?:-u|--user|--proxy-user)[ =][\"']?[^\s:\"']{1,256}:)[^\s\"']+")
_USERINFO = re.compile(r"(:(?:\\?/){2})(?:[^/\s\"'\\@:]*:(?:(?!:(?:\\?/){2})[^\s\"'\\<>])*|[^/\s\"'\\]+)@")
#: Tokens that say by their form what they are: AWS, GitHub, GitLab, Hugging Face, NGC, Slack, Docker; JSON Web Tokens.
_TOKEN = re.compile(
    r"(?<![\w-])(?:A[KS]IA[0-9A-Z]{16}(?![0-9A-Z])|(?:gh[pousr]_|github_pat_|glpat-|hf_|nvapi-|xox[abprs]-|dckr_pat_)"
    r"[\w-]{16,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?)"
)


def mask_text(text: str) -> str:
    """``text`` with every secret replaced by ``***``; masking twice changes nothing more."""
    text = _TOKEN.sub(MASK, text)
    if not any(sign in text for sign in "@=:-") and "password" not in text:
        return text
    text = _PEM.sub(rf"\1 {MASK} \2", text)
    text = _HEADER.sub(rf"\g<1>{MASK}", text)
    text = _REPO.sub(rf"\g<1>{MASK}", text)
    text = _replaced(text, _BLOCK, _block)
    for names, value in _PAIRS:
        text = _replaced(text, names, lambda whole, name, value=value: _value(whole, name, value))  # type: ignore[misc]
    text = _NETRC.sub(lambda m: f"{m[1] or m[3]}{MASK}", text)
    if "curl" in text:
        text = _CURL.sub(rf"\g<1>{MASK}", text)
    return _USERINFO.sub(rf"\1{MASK}@", text)


def options_to_paste(options: str) -> str:
    """The options of a command that a user copies. With a mask among them it would not work: then the place for them.

    ``-i INVENTORY`` shows that the user has to fill something in.
    """
    return options if mask_text(options) == options else "-i INVENTORY"


def _replaced(text: str, names: re.Pattern[str], value: Callable[[str, Match], tuple[int, str]]) -> str:
    """``text`` with the value behind each secret name replaced: ``value`` says where it ends, and by what."""
    parts, at = [], 0
    for name in names.finditer(text):
        if name.start() >= at and _is_secret(name):
            end, hidden = value(text, name)
            parts += [text[at : name.end()], hidden]
            at = end
    return "".join((*parts, text[at:]))


def _is_secret(name: Match) -> bool:
    word = name["name"]
    assigned = "=" in name[0][len(word) :] and word[-3:].lower() == "key"
    # A query that opens a URL: X-Amz-Signature, X-Goog-Signature, and Azure's sig.
    query = name.string[max(0, name.start() - 1) : name.start()] in ("?", "&")
    assigned |= query and word.lower().endswith(("signature", "sig"))
    return (assigned or bool(_SECRET.search(word))) and word not in _WORKING_DIRECTORY


def _value(text: str, name: Match, pattern: re.Pattern[str]) -> tuple[int, str]:
    kept = _status(text, name)
    start = name.end() + len(kept)
    found = pattern.match(text, start)
    if found is None or (kept and _closes(text, start, name)):
        return start, kept
    return found.end(), kept + _hidden(found[0], name[0], found.end() == len(text))


def _status(text: str, name: Match) -> str:
    """The words behind the name of a token that say what became of it, as in a log; empty if there are none."""
    if ":" not in name[0][-3:] or {word.lower() for word in _SECRET.findall(name["name"])} != {"token"}:
        return ""
    found = _STATUS.match(text, name.end())
    return found[0] if found else ""


def _closes(text: str, at: int, name: Match) -> bool:
    """Whether the quote at this place closes the one in front of the name."""
    return (
        text[at] in "\"'" and text[name.start() - 1 : name.start()] == text[at] and not text[at + 1 : at + 2].isalnum()
    )


_STRING = re.compile(_DOUBLE)
_QUOTE = re.compile(r'"""|\'\'\'|\\*"|\'|')


def _hidden(value: str, name: str, last: bool) -> str:
    """What stands for a value, of the same kind: a list stays a list, quotes stay."""
    if value.startswith("["):
        whole = value.endswith("]") or last
        return f'["{MASK}"]' if whole else _STRING.sub(f'"{MASK}"', value)
    kept = value.endswith((MASK, f'{MASK}"', f"{MASK}'")) and "authorization" in name.lower()  # by _HEADER
    if kept or value in ('""', "''", "true", "false") or _REFERENCE.fullmatch(value):
        return value
    quote = _QUOTE.match(value)
    mark = quote[0] if quote else ""
    if not mark and re.match(r"[\"']|.*[ \t]=", name) and re.fullmatch(_NUMBER, value):
        mark = name[0] if name[0] in "\"'" else '"'  # JSON and TOML have no bare ***
    return f"{mark}{MASK}{mark}"


def _block(text: str, name: Match) -> tuple[int, str]:
    """A block scalar: the lines below its key that are set in deeper, or empty."""
    end, indent = name.end(), len(name[1])
    while end < len(text):
        line = _LINE.match(text, end)
        assert line is not None
        if line[0].strip() and len(line[1]) <= indent:
            break
        end = line.end()
    lost = text[name.end() : end]
    return end, f"{' ' * (indent + 2)}{MASK}" + ("\n" if lost.endswith("\n") else "") if lost.strip() else lost


def mask(value: Any) -> Any:
    """Any JSON value with all its strings masked; keys stay, and a key that names a secret hides its strings."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {key: _of_key(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(item) for item in value]
    return value


def _of_key(key: object, value: Any) -> Any:
    if not (isinstance(key, str) and value and _SECRET.search(key)):
        return mask(value)
    if isinstance(value, str) and _REFERENCE.fullmatch(value):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return [MASK]
    return MASK if isinstance(value, str) else mask(value)


def mask_value(key: str, value: Any) -> Any:
    """The value of a diff's key; all of it is hidden when the key names a secret."""
    return _of_key(key.rpartition(".")[2], value)


def mask_state(state: NodeState) -> dict[str, Any]:
    """A state as JSON, masked and marked so; it plans and verifies, and apply refuses it."""
    from gpuready.base.facts import KEPT

    shown: dict[str, Any] = mask(state.model_dump())
    # With the rest of a file known, a password can be guessed from the file's hash: those of masked contents stand in.
    hashes = {file.sha256: _sha256(mask_text(file.text)) for file in state.files.values()}
    for path, file in state.glob(f"{KEPT}/").items():
        if re.fullmatch(r"[0-9a-f]{64}\n?", file.text):
            shown["files"][path]["text"] = hashes.get(file.text.strip(), MASK)
    return shown | {"masked": True}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
