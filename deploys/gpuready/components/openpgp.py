"""Fingerprints of the primary keys in an OpenPGP key file (RFC 4880 4.2, 5.5.2, 6.2, 12.2; RFC 9580 for v6).

apt trusts every key of the file that Signed-By names, so the whole list is what has to be right. The node may have
no gpg, and gpg would need a home directory; this reads the packets only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

_ARMOR = re.compile(
    rb"-----BEGIN PGP (?:PUBLIC|PRIVATE) KEY BLOCK-----\r?\n(?:[^\r\n:]+:[^\r\n]*\r?\n)*\r?\n(.*?)"
    rb"(?:\r?\n=[A-Za-z0-9+/=]{4})?\r?\n-----END PGP (?:PUBLIC|PRIVATE) KEY BLOCK-----",
    re.S,
)


class KeyFileError(ValueError):
    """The data is no OpenPGP public key file; the message says why."""


def fingerprints(data: bytes) -> tuple[str, ...]:
    """Upper-case hex fingerprints of all primary keys in ``data`` (armored or binary), in file order.

    Raises :class:`KeyFileError`.
    """
    found: list[str] = []
    for block in _blocks(data):
        for tag, body in _packets(block):
            if tag == 6:
                found.append(_fingerprint(body))
            elif tag == 5:
                raise KeyFileError("it holds a secret key")
    if not found:
        raise KeyFileError("it holds no public key")
    return tuple(found)


def _blocks(data: bytes) -> list[bytes]:
    if data[:1] and data[0] & 0x80:
        return [data]
    try:
        blocks = [base64.b64decode(b"".join(m.split()), validate=True) for m in _ARMOR.findall(data)]
    except (binascii.Error, ValueError) as e:
        raise KeyFileError(f"its armor is damaged ({e})") from None
    if not blocks:
        raise KeyFileError("it is no OpenPGP key (an HTML page, perhaps?)")
    return blocks


def _fingerprint(body: bytes) -> str:
    version = body[0] if body else 0
    if version == 4 and len(body) <= 0xFFFF:
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()
    if version == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyFileError(f"it holds a key of version {version}; versions 4 and 6 are known")


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    try:
        while at < len(data):
            head = data[at]
            if not head & 0x80:
                raise KeyFileError("it is damaged (no packet where one should begin)")
            tag, at, length = _new_format(data, at) if head & 0x40 else _old_format(data, at)
            if at + length > len(data):
                raise KeyFileError("it is cut")
            yield tag, data[at : at + length]
            at += length
    except IndexError:
        raise KeyFileError("it is cut") from None


def _new_format(data: bytes, at: int) -> tuple[int, int, int]:
    tag, first = data[at] & 0x3F, data[at + 1]
    if first < 192:
        return tag, at + 2, first
    if first < 224:
        return tag, at + 3, ((first - 192) << 8) + data[at + 2] + 192
    if first == 255:
        return tag, at + 6, int.from_bytes(data[at + 2 : at + 6], "big")
    raise KeyFileError("it uses partial lengths, which keys may not")


def _old_format(data: bytes, at: int) -> tuple[int, int, int]:
    tag, kind = (data[at] >> 2) & 0xF, data[at] & 3
    if kind == 3:
        return tag, at + 1, len(data) - at - 1
    size = 1 << kind
    return tag, at + 1 + size, int.from_bytes(data[at + 1 : at + 1 + size], "big")
