"""Host names of an inventory: which are valid, and their ranges and ports.

Ranges and ports follow Ansible (its documentation, "Building an inventory: adding ranges of hosts"): ``gpu[01:16]``
keeps the zeros, ``[a:f]`` counts letters, ``[0:10:2]`` has a step. Unlike Ansible, gpuready refuses an empty range, and
a name that neither DNS nor SSH accepts.
"""

import fnmatch
import ipaddress
import re
from string import ascii_letters

MAX_HOSTS = 100_000
NAME_ALLOWED = "a host name (letters, digits, . _ -) or an IP address"
RANGE_ALLOWED = "[FIRST:LAST] or [FIRST:LAST:STEP] with FIRST not above LAST, such as gpu[01:16]"

_RANGE = r"\[(?:[a-z]:[a-z]|[0-9]+:[0-9]+)(?::[0-9]+)?\]"
_LABEL = rf"(?:\w|{_RANGE})(?:[\w-]|{_RANGE})*(?<![_-])"
_HOST_PATTERN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.IGNORECASE)
_HEX_RANGE = re.compile(r"\[[0-9a-f]+:[0-9a-f]+(?::[0-9]+)?\]", re.IGNORECASE)
_BRACKETED_PORT = re.compile(r"\[(.+)\]:([0-9]{1,9})")
_PORT = re.compile(r"((?:[^:\[\]]|\[[^\]]*\])*):([0-9]{1,9})")
_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
_IPV4_LIKE = re.compile(r"[0-9]+(\.[0-9]+)*\.?")
_ZONE = re.compile(r"[A-Za-z0-9._-]+")
_OTHER_RANGE = re.compile(r"[\[{]([0-9]{1,18}|[A-Za-z])(?:-|\.\.|:)([0-9]{1,18}|[A-Za-z])[\]}]")
#: What is a range beside a glob. Other brackets are a set of characters there, also [0-9], which means the same.
_NOT_A_SET = re.compile(
    r"\[[^\[\]]*[:,][^\[\]]*\]|\[[0-9]{2,18}-[0-9]{1,18}\]|\[[0-9]-[0-9]{2,18}\]|\{[0-9A-Za-z]+\.\.[0-9A-Za-z]+\}"
)
#: A range stands for one of these characters while fnmatch translates the rest; it has at most so many steps.
_PLACES, _MOST_STEPS = 0xF0000, 10_000
_LIST = re.compile(r"\[([0-9-]+(?:,[0-9-]+)+)\]")
_BOUNDS = re.compile(r"(?:([A-Za-z]):([A-Za-z])|([0-9]{0,18}):([0-9]{1,18}))(?::([0-9]{1,18}))?")


def is_host(text: str) -> bool:
    """Whether ``text`` is a plain host name, an IPv4 or an IPv6 address (also with a zone)."""
    if ":" in text:
        address, zone, name = text.partition("%")
        return _is_ipv6(address) and (not zone or bool(_ZONE.fullmatch(name)))
    if len(text) > 253 or not _NAME.fullmatch(text):
        return False
    return _is_ipv4(text) if _IPV4_LIKE.fullmatch(text) and "." in text else True


def split_port(pattern: str) -> tuple[str, int | None]:
    """Host and port of ``gpu1:2222`` or ``[2001:db8::1]:2222``; a pattern without a port is unchanged."""
    match = _BRACKETED_PORT.fullmatch(pattern) or _PORT.fullmatch(pattern)
    if match and is_address_pattern(match[1]):
        return match[1], int(match[2])
    return pattern, None


def is_address_pattern(text: str) -> bool:
    """Whether Ansible reads ``text`` as one host name or address, possibly with ranges."""
    return bool(_HOST_PATTERN.fullmatch(text)) or _is_ipv6(_HEX_RANGE.sub("1", text))


def expand(pattern: str) -> list[str]:
    """All names of a pattern with ranges; ValueError with the reason if a range is not valid."""
    names = [""]
    rest = pattern
    while "[" in rest:
        head, _, rest = rest.partition("[")
        inside, closed, rest = rest.partition("]")
        if not closed:
            raise ValueError("the range has no closing ]")
        steps = _sequence(inside, MAX_HOSTS // len(names))
        names = [name + head + step for name in names for step in steps]
    return [name + rest for name in names]


def expand_any(pattern: str) -> list[str]:
    """All names of a range as :func:`expand` takes it, or as Slurm or a shell writes it: ``gpu[01-03,07]``."""
    listed = _LIST.search(pattern)
    each = listed[1].split(",") if listed else ()
    patterns = [_LIST.sub(part if part.isalnum() else f"[{part}]", pattern, count=1) for part in each] or [pattern]
    return [name for one in patterns for name in expand(range_meant(one) or one)]


def glob(pattern: str) -> str:
    """The regular expression of a glob that may hold ranges, as :func:`expand_any` takes them.

    fnmatch alone takes ``[01:12]`` for a set of characters: 0, 1, 2 and the colon. A number beside ``*`` is a whole
    number: ``gpu[1:3]*`` is not gpu10. ValueError with the reason if a range is not valid.
    """
    ranges: list[str] = []

    def place(match: re.Match[str]) -> str:
        steps = expand_any(match[0])
        if len(steps) > _MOST_STEPS:
            raise ValueError(f"{match[0]} is more than {_MOST_STEPS} hosts")
        number = steps[0].isdecimal()
        before = r"(?<![0-9])" if number and pattern[: match.start()].endswith("*") else ""
        after = r"(?![0-9])" if number and pattern[match.end() :].startswith("*") else ""
        ranges.append(f"{before}(?:{'|'.join(map(re.escape, steps))}){after}")
        return chr(_PLACES + len(ranges) - 1)

    if any(ord(char) >= _PLACES for char in pattern):
        raise ValueError("not a host name")
    translated = fnmatch.translate(_NOT_A_SET.sub(place, pattern))
    return re.sub(f"[{chr(_PLACES)}-{chr(0x10FFFF)}]", lambda match: ranges[ord(match[0]) - _PLACES], translated)


def range_meant(pattern: str) -> str:
    """``gpu[01:16]`` for ``gpu[01-16]`` (Slurm) and ``gpu{01..16}`` (a shell); empty without such a range."""
    meant = _OTHER_RANGE.sub(r"[\1:\2]", pattern)
    try:
        return meant if meant != pattern and expand(meant) else ""
    except ValueError:
        return ""


def _sequence(text: str, limit: int) -> list[str]:
    """The values of one ``[...]``, at most ``limit``."""
    match = _BOUNDS.fullmatch(text)
    if not match:
        raise ValueError(f"[{text}] is not a range")
    first_letter, last_letter, first, last, step_text = match.groups()
    step = int(step_text or "1")
    if first_letter:
        letters: str = ascii_letters[ascii_letters.index(first_letter) : ascii_letters.index(last_letter) + 1]
        found = list(letters[::step]) if step else []
    else:
        first = first or "0"
        padded = first.startswith("0") and len(first) > 1
        if padded and len(first) != len(last):
            raise ValueError(f"[{text}]: with leading zeros, both ends need equal length")
        numbers = range(int(first), int(last) + 1, step) if step else range(0)
        if len(numbers) > limit:
            raise ValueError(f"[{text}] is more than {MAX_HOSTS} hosts")
        found = [str(n).zfill(len(first)) if padded else str(n) for n in numbers]
    if not found:
        raise ValueError(f"[{text}] is an empty range")
    return found


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
