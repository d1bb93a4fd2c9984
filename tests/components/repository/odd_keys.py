"""Key files as a bad mirror would serve them: the key that the spec names, mixed with a key of somebody else.

``odd_files(good, evil)`` takes two keys as ``gpg --armor --export`` writes them. Each file either is refused, with the
place and the reason, or apt is given the good key alone: then ``refused`` is empty.
"""

import base64
import gzip
import zlib
from dataclasses import dataclass

KIND = b"PGP PUBLIC KEY BLOCK-----"
BEGIN, END = b"-----BEGIN " + KIND, b"-----END " + KIND
Packets = list[tuple[int, bytes]]


@dataclass(frozen=True)
class OddFile:
    """A file's content, and a part of the message that refuses it; empty when it may be taken."""

    data: bytes
    refused: str = ""


def packet(tag: int, body: bytes) -> bytes:
    """A packet in the new format with a five-octet length."""
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


def binary(armored: bytes) -> bytes:
    """The packets of an armored key."""
    return base64.b64decode(b"".join(line for line in armored.splitlines() if line and line[:1] not in b"=-"))


def packets(data: bytes) -> Packets:
    """Tag and body of each packet of an ordinary key: old format, one or two octets of length."""
    found: Packets = []
    at = 0
    while at < len(data):
        size = 1 << (data[at] & 3)
        start = at + 1 + size
        length = int.from_bytes(data[at + 1 : start], "big")
        found.append((data[at] >> 2 & 0xF, data[start : start + length]))
        at = start + length
    return found


def armor(data: bytes, checksum: bytes = b"", label: bytes = KIND) -> bytes:
    """An armored block, without a checksum unless one is given."""
    ends = [b"=" + checksum] if checksum else []
    text = base64.encodebytes(data).rstrip()
    return b"\n".join([b"-----BEGIN " + label, b"", text, *ends, b"-----END " + label, b""])


def odd_files(good: bytes, evil: bytes) -> dict[str, OddFile]:
    """All files by a name that says what is odd about them."""
    g, e = binary(good), binary(evil)
    first = "line 1: .*expected '-----BEGIN PGP PUBLIC KEY BLOCK-----'"
    return {
        **{name: OddFile(data, first) for name, data in _before(good, evil, g, e).items()},
        **_armored(good, evil, g, e),
        **_binary(g, e),
    }


def _before(good: bytes, evil: bytes, g: bytes, e: bytes) -> dict[str, bytes]:
    """The other key in a block that only some readers recognise, and then the good one."""

    def relabelled(old: bytes, new: bytes) -> bytes:
        return evil.replace(old, new) + good

    return {
        "space after BEGIN": relabelled(BEGIN, BEGIN + b" "),
        "space before BEGIN": relabelled(BEGIN, b" " + BEGIN),
        "doubled space in the label": relabelled(b"PGP PUBLIC", b"PGP  PUBLIC"),
        "lower-case label": relabelled(KIND, KIND.lower()),
        "label of a private key": relabelled(b"PUBLIC", b"PRIVATE"),
        "label of a message": relabelled(KIND, b"PGP MESSAGE-----"),
        "four dashes": relabelled(b"-----", b"----"),
        "carriage returns alone": evil.replace(b"\n", b"\r") + b"\n" + good,
        "CRLF, then LF": evil.replace(b"\n", b"\r\n") + good,
        "byte order mark": b"\xef\xbb\xbf" + evil + good,
        "UTF-16": good.decode().encode("utf-16"),
        "NUL in BEGIN": relabelled(BEGIN, BEGIN + b"\0"),
        "text before two blocks": b"# NVIDIA's key\n" + evil + good,
        "HTML page": b"<!DOCTYPE html><html><pre>\n" + evil + b"</pre></html>\n",
        "compressed file": gzip.compress(evil),
        "escape sequence": b"\x1b]0;owned\x07\n" + good,
    }


def _armored(good: bytes, evil: bytes, g: bytes, e: bytes) -> dict[str, OddFile]:
    lines, evil_lines = good.splitlines(), evil.splitlines()
    body, evil_body = (b"\n".join(each[2:-2]) for each in (lines, evil_lines))
    end = len(lines)
    goes_on = f"line {end + 1}: the file goes on after the key"

    def block(*parts: bytes) -> bytes:
        return b"\n".join([BEGIN, *parts, END, b""])

    return {
        "plain": OddFile(good),
        "usual headers": OddFile(good.replace(BEGIN, BEGIN + b"\nVersion: GnuPG v2\nComment: " + BEGIN)),
        "CRLF throughout": OddFile(good.replace(b"\n", b"\r\n")),
        "empty lines around": OddFile(b"\n\n" + good + b"\n"),
        "no end of line at the end": OddFile(good.rstrip()),
        "no checksum": OddFile(armor(g)),
        "two blocks, the good one first": OddFile(good + evil, goes_on),
        "two blocks, the good one last": OddFile(evil + good, f"line {len(evil_lines) + 1}: the file goes on"),
        "the good block twice": OddFile(good + good, goes_on),
        "text between": OddFile(good + b"\nand now\n\n" + evil, f"line {end + 2}: the file goes on"),
        "binary after armor": OddFile(good + e, goes_on),
        "NUL after armor": OddFile(good + b"\0" + evil, goes_on),
        "junk header": OddFile(evil.replace(BEGIN, BEGIN + b"\njunk") + good, "line 2: expected an armor header"),
        "unknown header": OddFile(good.replace(BEGIN, BEGIN + b"\nEvil: yes"), "line 2: expected an armor header"),
        "NUL in a header": OddFile(evil.replace(BEGIN, BEGIN + b"\nComment: \0") + good, "line 2: expected"),
        "blanks for the empty line": OddFile(
            evil.replace(b"\n\n", b"\n \n") + good, "line 2: expected an armor header"
        ),
        "no empty line": OddFile(evil.replace(b"\n\n", b"\n") + good, "line 2: expected an armor header"),
        "a key among the headers": OddFile(block(b"Comment: x", evil, body), "line 3: expected an armor header"),
        "a key within a key": OddFile(block(b"", evil, body), "line 3: the armor is damaged"),
        "no END": OddFile(evil.replace(END, b"") + good, "the armor is damaged"),
        "no END, not even of a line": OddFile(
            good.replace(b"\n" + END + b"\n", b""), f"line {end - 1}: the file ends before"
        ),
        "END of another kind": OddFile(good.replace(END, b"-----END PGP MESSAGE-----"), f"line {end}: the armor"),
        "space after END": OddFile(good.replace(END, END + b" "), f"line {end}: the armor is damaged"),
        "empty line within": OddFile(block(b"", evil_body, b"", body), "the armor is damaged: ''"),
        "padding within": OddFile(block(b"", base64.b64encode(e + b"e" * (4 - len(e) % 3)), body), "is not base64"),
        "checksum within": OddFile(block(b"", evil_body, evil_lines[-2], body), "the armor is damaged"),
        "spaces in the text": OddFile(block(b"", body.replace(b"\n", b" \n")), "line 3: the armor is damaged"),
        "no text": OddFile(block(b""), "is not base64"),
        "bits beyond the end": OddFile(block(b"", base64.b64encode(b"\0\1")[:2] + b"F="), "is not base64"),
        "wrong checksum": OddFile(armor(g, b"AAAA"), "the checksum is wrong"),
        "cut checksum": OddFile(good.replace(lines[-2], lines[-2][:3]), f"line {end - 1}: the armor is damaged"),
        "two checksums": OddFile(good.replace(END, lines[-2] + b"\n" + END), f"line {end}: the armor is damaged"),
        "two keys in one block": OddFile(armor(g + e), f"byte {len(g)}: found a second key"),
        "two keys in one block, the good one last": OddFile(armor(e + g), f"byte {len(e)}: found a second key"),
        "nothing": OddFile(b"", "the file is empty"),
        "larger than any key": OddFile(good + b"\n" * 300_000, "larger than 256 KiB"),
    }


def _binary(g: bytes, e: bytes) -> dict[str, OddFile]:
    (_, key), (_, user), (_, own) = packets(g)[:3]
    (_, evil_key), (_, evil_user), (_, evil_own) = packets(e)[:3]
    subkey = packet(14, evil_key)
    unbound = f"byte {len(g)}: the subkey .* is not signed by the primary key"

    def after(number: int, body: bytes, what: str) -> OddFile:
        return OddFile(g + packet(number, body) + e, f"byte {len(g)}: found {what}")

    def old(size: int) -> bytes:
        kind = {1: 0, 2: 1, 4: 2}[size]
        return b"".join(bytes([0x80 | t << 2 | kind]) + len(b).to_bytes(size, "big") + b for t, b in packets(g))

    def of_version(version: int) -> bytes:
        return packet(6, bytes([version]) + evil_key[1:])

    partial = bytes([0xC6, 224 + 5]) + evil_key[:32] + bytes([len(evil_key) - 32]) + evil_key[32:]
    retyped = own[:1] + b"\x18" + own[2:]
    return {
        "binary": OddFile(g),
        "binary, new format": OddFile(b"".join(packet(t, b) for t, b in packets(g))),
        "binary, old format, two octets": OddFile(old(2)),
        "binary, old format, four octets": OddFile(old(4)),
        "another's user ID": OddFile(g + packet(13, evil_user) + packet(2, evil_own)),
        "signature of another key": OddFile(g + packet(2, evil_own)),
        "signature of an old version": OddFile(g + packet(2, b"\x03" + evil_own[1:])),
        "user attribute": OddFile(g + packet(17, b"\x02\x01x") + packet(2, evil_own)),
        "binary before armor": OddFile(e + armor(g), f"byte {len(e)}: no OpenPGP packet begins here"),
        "armor after binary": OddFile(g + armor(e), f"byte {len(g)}: no OpenPGP packet begins here"),
        "two binary keys": OddFile(g + e, f"byte {len(g)}: found a second key"),
        "partial lengths": OddFile(g + partial, f"byte {len(g)}: the packet does not give its length"),
        "partial lengths first": OddFile(partial + g, "byte 0: the packet does not give its length"),
        "open length": OddFile(g + b"\x9b" + evil_key, f"byte {len(g)}: the packet does not give its length"),
        "cut inside a packet": OddFile(g + e[:40], f"byte {len(g)}: the file ends inside this packet"),
        "length beyond the end": OddFile(b"\xc6\xff\xff\xff\xff\xff" + e, "byte 0: the file ends inside"),
        "length cut": OddFile(g + b"\xc6\xc0", f"byte {len(g)}: the file ends inside"),
        "compressed packet": after(8, b"\x01" + zlib.compress(e)[2:-4], "a compressed packet"),
        "marker packet": after(10, b"PGP", "a marker packet"),
        "trust packet": after(12, b"\x06\x00", "a trust packet"),
        "unknown packet that may be ignored": after(60, e, "a packet of type 60"),
        "secret key": OddFile(packet(5, key) + g, "byte 0: found a secret key"),
        "secret key after": after(5, evil_key, "a secret key"),
        "secret subkey": after(7, evil_key, "a secret subkey"),
        "signature first": OddFile(packet(2, own) + e + g, "byte 0: found a packet of type 2"),
        "version 3 first": OddFile(of_version(3) + g, "byte 0: a key of version 3"),
        "version 6 as a subkey": OddFile(g + packet(14, b"\x06" + evil_key[1:]), f"byte {len(g)}: a key of version 6"),
        "empty key": OddFile(packet(6, b"") + g, "byte 0: a key of version 0"),
        "key longer than its fingerprint can say": OddFile(packet(6, b"\x04" + b"x" * 70_000), "impossible size"),
        "subkey without a signature": OddFile(g + subkey, unbound),
        "subkey signed by itself": OddFile(g + subkey + packet(2, evil_own), unbound),
        "subkey with a binding by itself": OddFile(
            g + subkey + packet(2, evil_own[:1] + b"\x18" + evil_own[2:]), unbound
        ),
        "subkey with the user ID's signature": OddFile(g + subkey + packet(2, own), unbound),
        "subkey with a forged binding": OddFile(g + subkey + packet(2, retyped)),
        "key without a signature": OddFile(packet(6, key) + packet(13, user), "has no self-signature"),
        "key with another's signature": OddFile(packet(6, key) + packet(13, user) + packet(2, evil_own), "no self-sig"),
        "damaged signature": OddFile(
            packet(6, key) + packet(13, user) + packet(2, own[:10]), "the signature is damaged"
        ),
        "damaged subpackets": OddFile(g + packet(2, b"\4\x10\x16\x08\0\1\xff\0\0\0\0"), "the signature is damaged"),
    }
