"""The parts of a key file at their limits: lengths of packets, keys, signatures and subpackets; exact messages."""

import time
from pathlib import Path

import pytest

from gpuready.components.repository import openpgp
from gpuready.components.repository.openpgp import KeyFileError, certificate
from tests.components.repository.odd_keys import packet, packets

DATA = Path(__file__).parents[2] / "data" / "openpgp"
KEY = (DATA / "ed25519.gpg").read_bytes()
BEGIN, END = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"


def new_length(size: int, octets: int) -> bytes:
    """A length in the new format, of packets and subpackets (RFC 4880 4.2.2)."""
    if octets == 1:
        return bytes([size])
    if octets == 2:
        return bytes([(size - 192 >> 8) + 192, size - 192 & 0xFF])
    return b"\xff" + size.to_bytes(4, "big")


SIZES = [(0, 1), (1, 1), (191, 1), (192, 2), (300, 2), (8383, 2), (0, 5), (192, 5), (8384, 5), (70000, 5)]


@pytest.mark.parametrize(("size", "octets"), SIZES)
def test_packets_of_the_new_format(size: int, octets: int) -> None:
    body = bytes(range(256)) * 300
    one = b"\xd1" + new_length(size, octets) + body[:size]
    found = list(openpgp.read_packets(one + b"\xc2\x01z"))
    assert found == [openpgp.Packet(17, 0, body[:size]), openpgp.Packet(2, len(one), b"z")]


@pytest.mark.parametrize(
    ("size", "kind"), [(0, 0), (1, 0), (224, 0), (255, 0), (0, 1), (256, 1), (60000, 1), (9, 2), (70000, 2)]
)
def test_packets_of_the_old_format(size: int, kind: int) -> None:
    body = bytes(range(256)) * 300
    one = bytes([0x88 | kind]) + size.to_bytes(1 << kind, "big") + body[:size]
    assert list(openpgp.read_packets(one)) == [openpgp.Packet(2, 0, body[:size])]
    assert list(openpgp.read_packets(KEY + one))[-1] == openpgp.Packet(2, len(KEY), body[:size])


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65535, 65536, 65537])
def test_packets_are_written_with_the_shortest_header(size: int) -> None:
    one = openpgp.Packet(13, 0, b"x" * size)
    kind = 0 if size < 256 else 1 if size < 65536 else 2
    assert openpgp._serialised(one) == bytes([0x80 | 13 << 2 | kind]) + size.to_bytes(1 << kind, "big") + one.body


OPEN = "the packet does not give its length, which a key must"
CUT = "the file ends inside this packet"
#: Bytes after a whole key of 248 bytes -> the message.
BAD_PACKETS = {
    b"\xc6\xe0": OPEN,
    b"\xc6\xfe": OPEN,
    b"\x9b": OPEN,
    b"\x8b\x01": OPEN,
    b"\xc6": CUT,
    b"\xc6\xc0": CUT,
    b"\xc6\xbf" + b"x" * 190: CUT,
    b"\xc6\xdf\x01": CUT,
    b"\xc6\xff\x01\x00\x00\x05xxxxx": CUT,
    b"\x99\x01": CUT,
    b"\x99\x00\x02x": CUT,
    b"\x7f": "no OpenPGP packet begins here, found '\\x7f'",
    b"<" + b"x" * 39: f"no OpenPGP packet begins here, found '<{'x' * 39}'",
    b"<\xff" + b"x" * 39: f"no OpenPGP packet begins here, found '<\\ufffd{'x' * 38}'...",
}


@pytest.mark.parametrize("tail", BAD_PACKETS, ids=range(len(BAD_PACKETS)))
def test_a_packet_that_is_none_is_named(tail: bytes) -> None:
    with pytest.raises(KeyFileError) as caught:
        certificate(KEY + tail)
    assert len(KEY) == 248 and str(caught.value) == f"byte 248: {BAD_PACKETS[tail]}"


EXPECTED = f"expected {BEGIN!r}, found"
BASE64 = "the armor is damaged: the text between its lines is not base64"
BAD_ARMOR = {
    "<html>": f"line 1: this is not an OpenPGP public key: {EXPECTED} '<html>'",
    "\n\n<html>": f"line 3: this is not an OpenPGP public key: {EXPECTED} '<html>'",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----": f"line 1: this is a secret key: {EXPECTED} "
    "'-----BEGIN PGP PRIVATE KEY BLOCK-----'",
    f"{BEGIN}\nVersion:1\nHash: x\nEvil: 1\n\n": "line 4: expected an armor header or an empty line, found 'Evil: 1'",
    f"{BEGIN}\n\nAAAA\n": "line 4: the armor is damaged: ''",
    f"{BEGIN}\n\nAAAA": f"line 3: the file ends before {END!r}",
    f"{BEGIN}\n\nAA==AAAA\n{END}\n": "line 3: the armor is damaged: 'AA==AAAA'",
    f"{BEGIN}\n\nAA==\nAAAA\n{END}\n": BASE64,
    f"{BEGIN}\n\nAAAAA\n{END}\n": BASE64,
    f"{BEGIN}\n\nAB==\n{END}\n": BASE64,
    f"{BEGIN}\n\n{END}\n": BASE64,
    f"{BEGIN}\n\nAAAA\n=AAAA\n{END}\n": "line 4: the checksum is wrong, the key is damaged",
    f"{BEGIN}\n\nAAAA\n=AAAA\n=AAAA\n{END}\n": "line 5: the armor is damaged: '=AAAA'",
    f"{BEGIN}\n\nAAAA\n{END}\n\nmore\n": "line 6: the file goes on after the key: 'more'",
    " \n\t\r\n": "the file is empty",
    "": "the file is empty",
    "x" * (openpgp.LIMIT + 1): "the file is larger than 256 KiB; no key is that large",
    "x" * openpgp.LIMIT: f"line 1: this is not an OpenPGP public key: {EXPECTED} '{'x' * 40}'...",
}


@pytest.mark.parametrize("text", BAD_ARMOR, ids=range(len(BAD_ARMOR)))
def test_armor_that_is_refused_is_named(text: str) -> None:
    with pytest.raises(KeyFileError) as caught:
        certificate(text.encode())
    assert str(caught.value) == BAD_ARMOR[text]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"], ids=range(3))
def test_a_byte_order_mark_is_text(mark: bytes) -> None:
    with pytest.raises(KeyFileError, match="line 1: this is not an OpenPGP public key"):
        certificate(mark + BEGIN.encode())


# --- keys ---


def test_keys_of_impossible_sizes_are_refused() -> None:
    def fingerprint(body: bytes) -> str:
        return openpgp._fingerprint(openpgp.Packet(6, 7, body))

    assert fingerprint(b"\x04" + bytes(6)) != fingerprint(b"\x04" + bytes(65534))
    assert fingerprint(packets(KEY)[0][1]) == "CFCDB27B5084BE4E7873DB9F8549EB4391176AB3"
    for body, what in {
        b"\x04" + bytes(5): "of an impossible size",
        b"\x04" + bytes(65535): "of an impossible size",
        b"\x03" + bytes(20): "of version 3",
        b"": "of version 0",
    }.items():
        with pytest.raises(KeyFileError) as caught:
            fingerprint(body)
        assert str(caught.value) == f"byte 7: a key {what}; only version 4 works with every apt"


@pytest.mark.parametrize(("tag", "what"), [*openpgp._NAMES.items(), (63, "a packet of type 63")])
def test_a_packet_that_no_key_has_is_named(tag: int, what: str) -> None:
    for data, at in ((KEY + packet(tag, b""), 248), (packet(tag, b"") + KEY, 0)):
        with pytest.raises(KeyFileError) as caught:
            certificate(data)
        assert str(caught.value) == f"byte {at}: found {what}, expected one public key and its subkeys only"


def test_a_signature_before_every_key_is_refused() -> None:
    with pytest.raises(KeyFileError, match="byte 0: found a packet of type 2, expected"):
        certificate(packet(2, b"\x04") + KEY)


# --- signatures ---

FINGERPRINT = bytes.fromhex("CFCDB27B5084BE4E7873DB9F8549EB4391176AB3")
CREATED = 1704067200


def subpacket(kind: int, content: bytes, octets: int = 1) -> bytes:
    return new_length(1 + len(content), octets) + bytes([kind]) + content


def signature(hashed: bytes, unhashed: bytes, kind: int = 0x13, end: bytes = b"ab") -> bytes:
    areas = b"".join(len(area).to_bytes(2, "big") + area for area in (hashed, unhashed))
    return bytes([4, kind, 22, 8]) + areas + end


def key(*signatures: bytes) -> bytes:
    """The recorded key and its user ID with these signatures instead."""
    (_, primary), (_, user) = packets(KEY)[:2]
    return packet(6, primary) + packet(13, user) + b"".join(packet(2, each) for each in signatures)


WHEN = subpacket(2, CREATED.to_bytes(4, "big"))
BY_KEY_ID, BY_FINGERPRINT = subpacket(16, FINGERPRINT[-8:]), subpacket(33, b"\x04" + FINGERPRINT)
OTHER = subpacket(33, b"\x04" + bytes(20))


@pytest.mark.parametrize(
    ("hashed", "unhashed", "own"),
    [
        (WHEN, BY_KEY_ID, True),
        (WHEN, BY_FINGERPRINT, True),
        (WHEN + BY_FINGERPRINT, b"", True),
        (WHEN + BY_KEY_ID, b"", True),
        (WHEN + BY_FINGERPRINT, subpacket(16, bytes(8)), True),
        (b"", BY_KEY_ID, True),
        (WHEN, b"", False),
        (WHEN + OTHER, BY_KEY_ID, False),
        (WHEN, subpacket(16, FINGERPRINT[-7:]), False),
        (WHEN, subpacket(17, FINGERPRINT[-8:]), False),
        (WHEN, subpacket(34, b"\x04" + FINGERPRINT), False),
        (WHEN + subpacket(20, bytes(300), 2), BY_KEY_ID, True),
        (subpacket(0x82, CREATED.to_bytes(4, "big")), BY_KEY_ID, True),  # its highest bit says that it is critical
    ],
    ids=range(13),
)
def test_a_signature_is_its_issuers(hashed: bytes, unhashed: bytes, own: bool) -> None:
    data = key(signature(hashed, unhashed))
    if own:
        found = certificate(data)
        assert (found.expires, found.revoked, len(packets(found.packets))) == (None, False, 3)
        return
    with pytest.raises(KeyFileError) as caught:
        certificate(data)
    assert str(caught.value) == (
        f"the key {FINGERPRINT.hex().upper()} has no self-signature, so apt does not accept it"
    )


def test_a_signature_without_dates_has_none() -> None:
    found = openpgp.parse_signature(openpgp.Packet(2, 0, signature(b"", BY_KEY_ID)))
    assert found == openpgp._Signature(0x13, 0, 0, 0, FINGERPRINT[-8:].hex().upper())
    life = subpacket(9, (86400).to_bytes(4, "big"))
    found = openpgp.parse_signature(openpgp.Packet(2, 0, signature(WHEN + life, b"")))
    assert found == openpgp._Signature(0x13, CREATED, 0, 86400, "")
    valid = subpacket(3, (60).to_bytes(4, "big"))
    found = openpgp.parse_signature(openpgp.Packet(2, 0, signature(WHEN + valid, life)))
    assert found == openpgp._Signature(0x13, CREATED, 60, 0, "")
    assert openpgp.parse_signature(openpgp.Packet(2, 0, b"\x03")) == openpgp._NO_SIGNATURE


@pytest.mark.parametrize(
    "body",
    [signature(WHEN, BY_KEY_ID, end=b"a"), signature(WHEN, BY_KEY_ID, end=b"")[:-1], b"\x04\x13\x16\x08\x00"],
    ids=range(3),
)
def test_a_signature_that_is_cut_is_refused(body: bytes) -> None:
    with pytest.raises(KeyFileError) as caught:
        openpgp.parse_signature(openpgp.Packet(2, 5, body))
    assert str(caught.value) == "byte 5: the signature is damaged"
    assert openpgp.parse_signature(openpgp.Packet(2, 5, signature(WHEN, BY_KEY_ID, end=b"ab"))).created == CREATED


@pytest.mark.parametrize(
    ("size", "octets"), [(1, 1), (2, 1), (191, 1), (192, 2), (300, 2), (16319, 2), (1, 5), (70000, 5)]
)
def test_subpackets(size: int, octets: int) -> None:
    content = b"x" * (size - 1)
    assert list(openpgp._subpackets(subpacket(20, content, octets) + BY_KEY_ID, 0)) == [
        (20, content),
        (16, FINGERPRINT[-8:]),
    ]


@pytest.mark.parametrize(
    "data",
    [b"\x00", b"\x00\x10\x10", b"\x02\x10", b"\xc0", b"\xff\x00\x00\x00\x00", b"\xff\x01\x00\x00\x01\x10"],
    ids=range(6),
)
def test_subpackets_that_are_cut_are_refused(data: bytes) -> None:
    with pytest.raises(KeyFileError) as caught:
        list(openpgp._subpackets(data, 9))
    assert str(caught.value) == "byte 9: the signature is damaged"


def test_the_newest_signature_and_only_one_of_the_key_itself_sets_the_expiry() -> None:
    def signed(created: int, days: int, kind: int = 0x13) -> bytes:
        dates = subpacket(2, created.to_bytes(4, "big")) + subpacket(9, (days * 86400).to_bytes(4, "big"))
        return signature(dates, BY_KEY_ID, kind)

    assert certificate(key(signed(5, 10), signed(9, 20), signed(7, 30))).expires == CREATED + 20 * 86400
    (_, primary), (_, user) = packets(KEY)[:2]
    revoked = packet(6, primary) + packet(2, signed(9, 20, 0x20)) + packet(13, user) + packet(2, signed(5, 10))
    assert certificate(revoked).expires == CREATED + 10 * 86400
    revoked_name = key(signed(5, 10), signed(9, 20, 0x30))
    assert certificate(revoked_name).expires == CREATED + 10 * 86400


def test_a_day_of_expiry_is_one_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "FAR+12")
    time.tzset()
    try:
        found = certificate((DATA / "expired.asc").read_bytes())
        assert found.expires is not None and found.unusable(found.expires) == "expired on 2024-01-31"
        assert found.unusable(found.expires - 1) == ""
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_subkey_of_somebody_else_is_refused() -> None:
    parts = packets((DATA / "rsa3072-subkeys.gpg").read_bytes())
    head = b"".join(packet(*part) for part in parts[:-1])
    fingerprint = openpgp._fingerprint(openpgp.Packet(14, 0, parts[-2][1]))
    assert parts[-2][0] == 14
    at = len(head) - len(packet(*parts[-2]))
    for tail in (b"", packet(2, signature(WHEN, BY_KEY_ID, 0x18)), packet(2, b"\x03")):
        with pytest.raises(KeyFileError) as caught:
            certificate(head + tail)
        assert str(caught.value) == f"byte {at}: the subkey {fingerprint} is not signed by the primary key"
