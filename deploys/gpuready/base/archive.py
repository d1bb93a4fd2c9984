"""Read the plain files of the tar archive in the probe's answer. The archive is in memory; nothing is decompressed.

Python's tarfile is not used: it expands sparse members, and its releases before 2024 parse pax headers in quadratic
time. Sources: POSIX.1-2017, pax (ustar and pax formats); tar.h of GNU tar.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

BLOCK = 512
MOST_MEMBERS = 20_000
#: Bytes of a long name or of a pax header; PATH_MAX is 4096.
_MOST_HEADER = 16_384
_FILE, _PASSED_OVER = b"0\0", b"1234567gKNVDM"


class ArchiveError(ValueError):
    """The archive is damaged, or contains something that the probe never packs. The message is one phrase."""


class Member(NamedTuple):
    """A regular file: its path with a leading slash, its bytes, its mode and owner, its time in seconds."""

    path: str
    data: bytes
    mode: int
    uid: int
    gid: int
    mtime: int


def members(data: bytes) -> Iterator[Member]:
    """Yield the regular files in the order of the archive. Raises :class:`ArchiveError`."""
    if not data.endswith(bytes(2 * BLOCK)):
        raise ArchiveError("the end of the archive is missing")
    at, seen, more = 0, 0, dict[str, str]()
    while any(head := data[at : at + BLOCK]):
        size, kind = _checked(head), head[156:157]
        body = data[at + BLOCK : at + BLOCK + size]
        seen += 1
        if len(body) < size:
            raise ArchiveError(f"{_name(head, more)!r} is shorter than its {size} bytes")
        if seen > MOST_MEMBERS:
            raise ArchiveError(f"more than {MOST_MEMBERS} members")
        at += BLOCK + -(-size // BLOCK) * BLOCK
        if kind in b"LxX":
            if size > _MOST_HEADER:
                raise ArchiveError(f"a header of {size} bytes")
            more |= {"path": _text(body.rstrip(b"\0"))} if kind == b"L" else _pax(body)
            continue
        if kind in _FILE:
            yield Member(
                "/" + _name(head, more).lstrip("/"),
                body,
                _number(head[100:108]) & 0o7777,
                int(more.get("uid", _number(head[108:116]))),
                int(more.get("gid", _number(head[116:124]))),
                _number(head[136:148]),
            )
        elif kind not in _PASSED_OVER:
            raise ArchiveError(f"{_name(head, more)!r} is of type {kind!r}")
        if kind not in b"gK":
            more = {}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _name(head: bytes, more: dict[str, str]) -> str:
    """Return the name from a preceding long-name or pax header, else the member's own.

    The prefix field is used only for ustar: GNU tar stores times there.
    """
    if path := more.get("path"):
        return path
    own = _text(head[:100].partition(b"\0")[0])
    prefix = _text(head[345:500].partition(b"\0")[0]) if head[257:263] == b"ustar\0" else ""
    return f"{prefix}/{own}" if prefix else own


@functools.lru_cache(maxsize=4096)  # most members have the same modes and owners
def _number(field: bytes) -> int:
    """Parse octal digits, or GNU tar's base 256 for numbers that are too large for octal digits."""
    if field[0] in (0x80, 0xFF):
        return int.from_bytes(field[1:], "big") if field[0] == 0x80 else int.from_bytes(field, "big", signed=True)
    digits = field.partition(b"\0")[0].strip()
    if not digits.isdigit() and digits:
        raise ArchiveError(f"a number is {digits!r}")
    try:
        return int(digits or b"0", 8)
    except ValueError:
        raise ArchiveError(f"a number is {digits!r}") from None


def _checked(head: bytes) -> int:
    """Verify the header's checksum; return the size of the member's data in bytes."""
    counted = head[:148] + 8 * b" " + head[156:]
    if len(head) < BLOCK or _number(head[148:156]) != sum(counted.translate(None, b"\0")):  # most are zeros
        raise ArchiveError("a header is not valid")
    size = _number(head[124:136])
    if size < 0:
        raise ArchiveError(f"a size is {size}")
    return size


def _pax(body: bytes) -> dict[str, str]:
    """Return path and owner from a pax header. Its records have the form ``LENGTH KEY=VALUE``."""
    found, at = dict[str, str](), 0
    while at < len(body):
        space = body.find(b" ", at, at + 8)
        length = int(body[at:space]) if space > at and body[at:space].isdigit() else 0
        key, equals, value = body[space + 1 : at + length].partition(b"=")
        if length <= space - at or not equals:
            raise ArchiveError("a pax header is not valid")
        if key.startswith((b"GNU.sparse", b"SCHILY.realsize")) or key == b"size":
            raise ArchiveError("a sparse file")
        if key == b"path" or (key in (b"uid", b"gid") and value.strip().isdigit() and len(value) < 20):
            found[key.decode()] = _text(value.rstrip(b"\n"))
        at += length
    return found
