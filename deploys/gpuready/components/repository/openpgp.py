"""Read exactly one OpenPGP certificate, and write it again from its parts (RFC 4880, RFC 9580).

apt reads a key file in its own way: with gpgv the first block that it recognises, with sqv all of them. So the file
itself never reaches apt. :func:`certificate` refuses whatever is not one certificate, and
:attr:`Certificate.armored` holds only the primary key, its user IDs, its subkeys and its own signatures on them.
apt's verifiers check whether these signatures are valid. The node may have no gpg.

Why not pysequoia: of 123 odd key files it takes 30 that are refused here, two of them with the wrong key.
"""

import base64
import binascii
import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

#: The largest key file that is read, in bytes.
LIMIT = 256 * 1024
_KEY = "PUBLIC KEY BLOCK"
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_HEADER = re.compile(rb"(Version|Comment|MessageID|Charset|Hash): ?[^\x00-\x1f\x7f]*")
_PUBLIC, SUBKEY, _USER_ID, _USER_ATTRIBUTE, SIGNATURE = 6, 14, 13, 17, 2
_REVOKES_KEY, _REVOKES_SUBKEY, BINDS_SUBKEY = 0x20, 0x28, 0x18
#: Packet -> the kinds of the primary key's own signatures that may follow it (RFC 4880 5.2.1).
_BELONGS = {
    _PUBLIC: (0x1F, _REVOKES_KEY),
    _USER_ID: (0x10, 0x11, 0x12, 0x13, 0x30),
    SUBKEY: (BINDS_SUBKEY, _REVOKES_SUBKEY),
    _USER_ATTRIBUTE: (),
}
_NAMES = {
    5: "a secret key",
    7: "a secret subkey",
    8: "a compressed packet",
    10: "a marker packet",
    12: "a trust packet",
}


class KeyFileError(ValueError):
    """The data is not exactly one OpenPGP certificate. The message says why, with line or byte."""


@dataclass(frozen=True)
class Certificate:
    """One certificate: ``fingerprint`` in upper-case hex digits, ``expires`` in seconds since 1970."""

    fingerprint: str
    expires: int | None
    revoked: bool
    packets: bytes

    @functools.cached_property
    def armored(self) -> bytes:
        """The canonical file: one armored block, as ``gpg --armor --export`` writes it."""
        text = base64.b64encode(self.packets)
        lines = [text[at : at + 64] for at in range(0, len(text), 64)]
        begin, end = _lines_of(_KEY)
        return b"\n".join([begin, b"", *lines, b"=" + base64.b64encode(_crc24(self.packets)), end, b""])

    def unusable(self, now: float) -> str:
        """Return why apt refuses the key at ``now`` (seconds since 1970); empty if it accepts it."""
        if self.revoked:
            return "revoked"
        if self.expires is None or self.expires > now:
            return ""
        return f"expired on {datetime.fromtimestamp(self.expires, timezone.utc):%Y-%m-%d}"


@dataclass(frozen=True)
class Packet:
    tag: int
    at: int
    body: bytes


@dataclass(frozen=True)
class _Signature:
    """``lifetime``: seconds for which the key is valid; ``valid``: those of the signature itself; 0: no end."""

    kind: int
    created: int
    valid: int
    lifetime: int
    issuer: str


_NO_SIGNATURE = _Signature(-1, -1, 0, 0, "")


@functools.lru_cache(maxsize=16)  # the same file lies on every node
def certificate(data: bytes) -> Certificate:
    """Return the only certificate in ``data``, armored or binary. Raises :class:`KeyFileError`."""
    return _certificate(parts_of(list(read_packets(_content(data)))))


def _content(data: bytes) -> bytes:
    """Return the packets without armor."""
    if len(data) > LIMIT:
        raise KeyFileError(f"the file is larger than {LIMIT // 1024} KiB; no key is that large")
    if not data.strip():
        raise KeyFileError("the file is empty")
    return data if data[0] & 0x80 and not data.startswith(_BYTE_ORDER_MARKS) else dearmored(data)


def _certificate(parts: list[tuple[Packet, list[Packet]]]) -> Certificate:
    """Return the certificate of the primary key with its own signatures, and what they are on."""
    primary = parts[0][0]
    fingerprint = _fingerprint(primary)
    kept: list[Packet] = []
    newest = _NO_SIGNATURE
    revoked = False
    for head, signatures in parts:
        read = [(packet, parse_signature(packet)) for packet in signatures]
        kinds = {signature.kind for _, signature in read}
        own = [(p, s) for p, s in read if s.kind in _BELONGS[head.tag] and _issued_by(fingerprint, s.issuer)]
        if head.tag == SUBKEY and not any(s.kind == BINDS_SUBKEY for _, s in own):
            raise KeyFileError(f"byte {head.at}: the subkey {_fingerprint(head)} is not signed by the primary key")
        revoked |= head.tag == _PUBLIC and _REVOKES_KEY in kinds
        if head is primary or (own and _REVOKES_SUBKEY not in kinds):
            kept += [head, *(packet for packet, _ in own)]
        if head.tag != SUBKEY:
            newest = max([newest, *(s for _, s in own if s.kind < _REVOKES_KEY)], key=lambda s: s.created)
    if newest.created < 0:
        raise KeyFileError(f"the key {fingerprint} has no self-signature, so apt does not accept it")
    created = int.from_bytes(primary.body[1:5], "big")
    expires = created + newest.lifetime if newest.lifetime else None
    return Certificate(fingerprint, expires, revoked, b"".join(_serialised(packet) for packet in kept))


def dearmored(data: bytes, kind: str = _KEY) -> bytes:
    """Return the bytes of the only armored block, which is of this kind. Only empty lines may be around it."""
    begin, end = _lines_of(kind)
    name = kind.removesuffix(" BLOCK").lower()
    noun = name.rpartition(" ")[2]
    lines = list(enumerate(data.split(b"\n"), 1))
    if data.count(b"\r\n") == data.count(b"\n"):
        lines = [(number, line.removesuffix(b"\r")) for number, line in lines]
    while lines and not lines[0][1]:
        lines.pop(0)
    rest = iter(lines)
    number, line = next(rest)
    if line != begin:
        what = "a secret key" if b"PRIVATE KEY BLOCK-----" in line else f"not an OpenPGP {name}"
        raise KeyFileError(f"line {number}: this is {what}: expected {begin.decode()!r}, found {_shown(line)}")
    for number, line in rest:
        if not line:
            break
        if not _HEADER.fullmatch(line):
            raise KeyFileError(f"line {number}: expected an armor header or an empty line, found {_shown(line)}")
    body: list[bytes] = []
    checksum = None
    for number, line in rest:
        if line == end:
            break
        if checksum is not None or not re.fullmatch(rb"[A-Za-z0-9+/]+={0,2}|=[A-Za-z0-9+/]{4}", line):
            raise KeyFileError(f"line {number}: the armor is damaged: {_shown(line)}")
        if line.startswith(b"="):
            checksum = (number, line[1:])
        else:
            body.append(line)
    else:
        raise KeyFileError(f"line {number}: the file ends before {end.decode()!r}")
    for number, line in rest:
        if line:
            raise KeyFileError(f"line {number}: the file goes on after the {noun}: {_shown(line)}")
    text = b"".join(body)
    try:
        packets = base64.b64decode(text)
    except binascii.Error:
        packets = b""
    if not packets or base64.b64encode(packets) != text:
        raise KeyFileError("the armor is damaged: the text between its lines is not base64")
    if checksum is not None and base64.b64encode(_crc24(packets)) != checksum[1]:
        raise KeyFileError(f"line {checksum[0]}: the checksum is wrong, the {noun} is damaged")
    return packets


def _lines_of(kind: str) -> tuple[bytes, bytes]:
    """Return the first and the last line of the armor."""
    return f"-----BEGIN PGP {kind}-----".encode(), f"-----END PGP {kind}-----".encode()


def _crc24(data: bytes) -> bytes:
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc = crc << 1 ^ (0x1864CFB if crc & 0x800000 else 0)
    return (crc & 0xFFFFFF).to_bytes(3, "big")


def read_packets(data: bytes) -> Iterator[Packet]:
    """Yield all packets. Each must give its length: partial and open lengths are only for data."""
    at = 0
    while at < len(data):
        head, kind = data[at], data[at] & 3
        first = int.from_bytes(data[at + 1 : at + 2], "big")
        if not head & 0x80:
            raise KeyFileError(f"byte {at}: no OpenPGP packet begins here, found {_shown(data[at:])}")
        if (head & 0x40 and 224 <= first < 255) or (not head & 0x40 and kind == 3):
            raise KeyFileError(f"byte {at}: the packet does not give its length, which a key must")
        if head & 0x40:
            tag, start = head & 0x3F, at + (2 if first < 192 else 3 if first < 224 else 6)
            length = first if first < 192 else int.from_bytes(data[at + 1 : start], "big") - (192 << 8) + 192
            length = int.from_bytes(data[at + 2 : start], "big") if first == 255 else length
        else:
            tag, start = head >> 2 & 0xF, at + 1 + (1 << kind)
            length = int.from_bytes(data[at + 1 : start], "big")
        if max(start, start + length) > len(data):
            raise KeyFileError(f"byte {at}: the file ends inside this packet")
        yield Packet(tag, at, data[start : start + length])
        at = start + length


def parts_of(packets: list[Packet]) -> list[tuple[Packet, list[Packet]]]:
    """Return each key, user ID and subkey with its signatures. The first is the only primary key."""
    parts: list[tuple[Packet, list[Packet]]] = []
    for packet in packets:
        if packet.tag == SIGNATURE and parts:
            parts[-1][1].append(packet)
        elif packet.tag not in _BELONGS or (packet.tag == _PUBLIC) == bool(parts):
            raise KeyFileError(f"byte {packet.at}: found {_what(packet)}, expected one public key and its subkeys only")
        else:
            if packet.tag in (_PUBLIC, SUBKEY):
                _fingerprint(packet)  # which refuses the other versions
            parts.append((packet, []))
    return parts


def _what(packet: Packet) -> str:
    if packet.tag == _PUBLIC:
        return f"a second key, {_fingerprint(packet)}"
    return _NAMES.get(packet.tag, f"a packet of type {packet.tag}")


def _fingerprint(packet: Packet) -> str:
    version, size = packet.body[:1], len(packet.body)
    if version != b"\x04" or not 6 < size <= 0xFFFF:
        of = "of an impossible size" if version == b"\x04" else f"of version {version[0] if version else 0}"
        raise KeyFileError(f"byte {packet.at}: a key {of}; only version 4 works with every apt")
    return hashlib.sha1(b"\x99" + size.to_bytes(2, "big") + packet.body).hexdigest().upper()


def parse_signature(packet: Packet) -> _Signature:
    """Parse a signature (RFC 4880 5.2.3). One of an older version does not count."""
    body = packet.body
    if body[:1] != b"\x04":
        return _NO_SIGNATURE
    hashed_end = 6 + int.from_bytes(body[4:6], "big")
    end = hashed_end + 2 + int.from_bytes(body[hashed_end : hashed_end + 2], "big")
    if end + 2 > len(body):
        raise KeyFileError(f"byte {packet.at}: the signature is damaged")
    hashed = dict(_subpackets(body[6:hashed_end], packet.at))
    issuers = hashed | dict(_subpackets(body[hashed_end + 2 : end], packet.at))
    issuer = issuers[33][1:] if 33 in issuers else issuers.get(16, b"")
    created, valid, lifetime = (int.from_bytes(hashed.get(kind, b""), "big") for kind in (2, 3, 9))
    return _Signature(body[1], created, valid, lifetime, issuer.hex().upper())


def _subpackets(data: bytes, packet_at: int) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        size = 1 if data[at] < 192 else 2 if data[at] < 255 else 5
        length = int.from_bytes(data[at + (size == 5) : at + size], "big") - ((192 << 8) - 192 if size == 2 else 0)
        start, at = at + size, at + size + length
        if length < 1 or at > len(data):
            raise KeyFileError(f"byte {packet_at}: the signature is damaged")
        yield data[start] & 0x7F, data[start + 1 : at]


def _issued_by(fingerprint: str, issuer: str) -> bool:
    """``issuer``: a fingerprint, or the 16 digits of a key ID."""
    return len(issuer) in (16, 40) and fingerprint.endswith(issuer)


def _serialised(packet: Packet) -> bytes:
    """Return the packet with the shortest header in the old format, as GnuPG writes it."""
    size = 0 if len(packet.body) < 0x100 else 1 if len(packet.body) < 0x10000 else 2
    return bytes([0x80 | packet.tag << 2 | size]) + len(packet.body).to_bytes(1 << size, "big") + packet.body


def _shown(data: bytes) -> str:
    return ascii(data[:40].decode(errors="replace")) + ("..." if len(data) > 40 else "")
