"""Fingerprints of key files: what gpg printed for the same files, and no other exception than KeyFileError."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuready.components.openpgp import KeyFileError, fingerprints

DATA = Path(__file__).parent / "data" / "openpgp"
ED25519 = "CFCDB27B5084BE4E7873DB9F8549EB4391176AB3"
RSA3072 = "892BFAA6DC9822B8634749E2583452AB02AA9A9C"
OTHER = "6E77DEE03441CFF7BA224E772DFBF182B1F37779"
V6 = "CB186C4F0609A697E4D52DFA6C722B0C1F1E27C18A56708F6525EC27BAD9ACC9"
FILES = {
    "ed25519.asc": (ED25519,),
    "ed25519.gpg": (ED25519,),
    "rsa3072-subkeys.asc": (RSA3072,),
    "rsa3072-subkeys.gpg": (RSA3072,),
    "other-with-headers.asc": (OTHER,),
    "two.gpg": (ED25519, OTHER),
    "two-in-one-block.asc": (ED25519, OTHER),
    "two-blocks.asc": (ED25519, OTHER),
    "v6-rfc9580.asc": (V6,),
}


def data(name: str) -> bytes:
    return (DATA / name).read_bytes()


def packet(tag: int, body: bytes) -> bytes:
    """A packet in the new format with a five-octet length."""
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


def primary() -> bytes:
    """The body of the ed25519 key's first packet, which has an old-format header of two octets."""
    raw = data("ed25519.gpg")
    assert raw[0] == 0x98
    return raw[2 : 2 + raw[1]]


def test_every_key_file_is_in_the_table() -> None:
    assert {p.name for p in DATA.iterdir()} - {"README.md"} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_what_gpg_printed(name: str) -> None:
    assert fingerprints(data(name)) == FILES[name]


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".asc")])
def test_armor_with_crlf_and_text_around_it(name: str) -> None:
    text = data(name).replace(b"\n", b"\r\n")
    assert fingerprints(b"some words before\r\n" + text + b"\r\nand after\r\n") == FILES[name]


def test_armor_without_its_checksum() -> None:
    lines = [line for line in data("ed25519.asc").splitlines() if not line.startswith(b"=")]
    assert len(lines) < len(data("ed25519.asc").splitlines())
    assert fingerprints(b"\n".join(lines)) == (ED25519,)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_old_format_lengths(size: int) -> None:
    body = primary()
    head = bytes([0x80 | 6 << 2 | {1: 0, 2: 1, 4: 2}[size]])
    assert fingerprints(head + len(body).to_bytes(size, "big") + body) == (ED25519,)


def test_old_format_without_a_length_reaches_to_the_end() -> None:
    assert fingerprints(bytes([0x80 | 6 << 2 | 3]) + primary()) == (ED25519,)


def test_new_format_lengths() -> None:
    body = primary()
    padding = packet(13, b"u" * 300)
    two_octets = bytes([0xC0 | 13, 192 + ((300 - 192) >> 8), (300 - 192) & 0xFF]) + b"u" * 300
    for before in (padding, two_octets, bytes([0xC0 | 13, 3]) + b"abc"):
        assert fingerprints(before + packet(6, body)) == (ED25519,)


def test_a_secret_key_is_refused_in_both_formats() -> None:
    public = data("ed25519.gpg")
    old = bytes([0x80 | 5 << 2 | (public[0] & 3)]) + public[1:]
    with pytest.raises(KeyFileError, match="secret key"):
        fingerprints(old)
    with pytest.raises(KeyFileError, match="secret key"):
        fingerprints(data("ed25519.gpg") + packet(5, primary()))


def test_an_armored_secret_key_is_called_by_its_name() -> None:
    public = data("ed25519.gpg")
    secret = base64.encodebytes(bytes([0x80 | 5 << 2 | (public[0] & 3)]) + public[1:])
    kind = b"PRIVATE KEY BLOCK-----\n"
    text = b"-----BEGIN PGP " + kind + b"\n" + secret + b"-----END PGP " + kind
    with pytest.raises(KeyFileError, match="secret key"):
        fingerprints(text)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no OpenPGP key"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "HTML page"),
        (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!!!!\n-----END PGP PUBLIC KEY BLOCK-----\n", "armor is damaged"),
        (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEZ\n-----END PGP PUBLIC KEY BLOCK-----\n", "armor is damaged"),
        (packet(13, b"only a user id"), "no public key"),
        (packet(6, b""), "version 0"),
        (packet(6, b"\x03" + b"x" * 20), "version 3"),
        (packet(6, b"\x05" + b"x" * 20), "version 5"),
        (bytes([0xC0 | 6, 230]) + b"x" * 600, "partial lengths"),
        (bytes([0xC0 | 6]), "cut"),
        (bytes([0x80 | 6 << 2 | 2, 0, 0]), "cut"),
        (packet(13, b"x") + b"plain", "damaged"),
        (packet(13, b"x") + b"?", "damaged"),
    ],
)
def test_what_is_no_public_key(content: bytes, why: str) -> None:
    with pytest.raises(KeyFileError, match=why):
        fingerprints(content)


@pytest.mark.parametrize("name", ["ed25519.gpg", "rsa3072-subkeys.gpg"])
def test_a_file_cut_inside_a_packet(name: str) -> None:
    whole = data(name)
    for length in (1, 2, 20, len(whole) - 1):
        with pytest.raises(KeyFileError, match="cut"):
            fingerprints(whole[:length])


def test_a_version_4_key_longer_than_its_fingerprint_can_say() -> None:
    with pytest.raises(KeyFileError):
        fingerprints(packet(6, b"\x04" + b"x" * 70000))


def test_armor_headers_full_of_colons_take_no_time() -> None:
    began = time.process_time()
    with pytest.raises(KeyFileError):
        fingerprints(b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n" + b"a:" * 100_000 + b"\nx")
    assert time.process_time() - began < 2


@given(st.binary(max_size=400))
@example(b"\x99\xff\xff")
@example(b"\xc6\xff\xff\xff\xff\xff")
@example(b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\n-----END PGP PUBLIC KEY BLOCK-----")
def test_arbitrary_bytes(content: bytes) -> None:
    _only_key_file_errors(content)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_in_armor(content: bytes) -> None:
    kind = b"PUBLIC KEY BLOCK-----\n"
    _only_key_file_errors(b"-----BEGIN PGP " + kind + b"\n" + base64.encodebytes(content) + b"-----END PGP " + kind)


@given(st.sampled_from(sorted(FILES)), st.integers(0, 2400), st.integers(0, 255))
def test_one_byte_changed(name: str, at: int, value: int) -> None:
    changed = bytearray(data(name))
    changed[at % len(changed)] = value
    _only_key_file_errors(bytes(changed))


def _only_key_file_errors(content: bytes) -> None:
    try:
        found = fingerprints(content)
    except KeyFileError as e:
        assert str(e)
    else:
        assert found and all(len(f) in (40, 64) and f == f.upper() for f in found)
