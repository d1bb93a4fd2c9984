"""Key files: one certificate is read as gpg reads it and written anew; all else is refused with the place."""

import base64
import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuready.components.repository.openpgp import Certificate, KeyFileError, certificate
from tests.components.repository.odd_keys import armor, binary, odd_files, packet, packets

DATA = Path(__file__).parents[2] / "data" / "openpgp"
ED25519 = "CFCDB27B5084BE4E7873DB9F8549EB4391176AB3"
RSA3072 = "892BFAA6DC9822B8634749E2583452AB02AA9A9C"
FILES = {
    "ed25519.asc": ED25519,
    "ed25519.gpg": ED25519,
    "rsa3072-subkeys.asc": RSA3072,
    "rsa3072-subkeys.gpg": RSA3072,
    "other-with-headers.asc": "6E77DEE03441CFF7BA224E772DFBF182B1F37779",
    "expired.asc": "D6761C8989E5433A70AACF3894555A3C2B2D5B93",
    "revoked.asc": "710B8092E083B578B3D5C37B7B2BA28C7F702A52",
}
REFUSED = {
    "two.gpg": "byte 248: found a second key, 6E77DEE03441CFF7BA224E772DFBF182B1F37779",
    "two-in-one-block.asc": "byte 248: found a second key, 6E77DEE03441CFF7BA224E772DFBF182B1F37779",
    "two-blocks.asc": "line 11: the file goes on after the key: '-----BEGIN PGP PUBLIC KEY BLOCK-----'",
    "v6-rfc9580.asc": "byte 0: a key of version 6; only version 4 works with every apt",
}
#: A key of somebody else, in the form that gpg writes.
EVIL = "expired.asc"
ODD = odd_files((DATA / "ed25519.asc").read_bytes(), (DATA / EVIL).read_bytes())


def data(name: str) -> bytes:
    return (DATA / name).read_bytes()


def test_every_key_file_is_in_a_table() -> None:
    assert {p.name for p in DATA.iterdir()} - {"README.md"} == {*FILES, *REFUSED}


@pytest.mark.parametrize("name", FILES)
def test_what_gpg_printed(name: str) -> None:
    found = certificate(data(name))
    assert found.fingerprint == FILES[name]
    assert certificate(found.armored) == found


@pytest.mark.parametrize("name", ["ed25519", "rsa3072-subkeys"])
def test_what_gpg_exports_is_written_as_it_came(name: str) -> None:
    for form in ("asc", "gpg"):
        assert certificate(data(f"{name}.{form}")).armored == data(f"{name}.asc")
    assert certificate(data(f"{name}.asc")).packets == data(f"{name}.gpg")


@pytest.mark.parametrize("name", REFUSED)
def test_more_than_one_key_or_another_version_is_refused(name: str) -> None:
    with pytest.raises(KeyFileError, match=re.escape(REFUSED[name])):
        certificate(data(name))


@pytest.mark.fault("D1")
@pytest.mark.fault("quirky-armor")
@pytest.mark.parametrize("name", ODD)
def test_odd_files(name: str) -> None:
    """tests/system/test_keys.py gives the same files to apt."""
    odd = ODD[name]
    if odd.refused:
        with pytest.raises(KeyFileError, match=odd.refused) as caught:
            certificate(odd.data)
        assert str(caught.value).isprintable() and len(str(caught.value)) < 300
    elif "forged" in name:  # whether a signature is right, apt's verifier decides
        assert len(certificate(odd.data).packets) > len(binary(data("ed25519.asc")))
    else:
        assert certificate(odd.data).armored == data("ed25519.asc")


def test_expiry_and_revocation_are_told() -> None:
    def why(name: str, day: int) -> str:
        return certificate(data(name)).unusable(1704067200 + day * 86400)

    assert [why("ed25519.asc", day) for day in (0, 9999)] == ["", ""]
    assert [why("expired.asc", day) for day in (0, 29, 30, 9999)] == ["", ""] + 2 * ["expired on 2024-01-31"]
    assert [why("revoked.asc", day) for day in (0, 9999)] == ["revoked", "revoked"]


def test_a_longer_life_counts_from_the_newest_self_signature() -> None:
    parts = packets(data("ed25519.gpg"))
    (_, key), (_, user), (_, own) = parts[:3]
    at = own.index(bytes([5, 2]) + (1704067200).to_bytes(4, "big"))

    def signed(day: int, life: int) -> bytes:
        when = bytes([5, 2]) + (1704067200 + day * 86400).to_bytes(4, "big")
        hashed = own[6:at] + when + own[at + 6 : 6 + int.from_bytes(own[4:6], "big")]
        hashed += bytes([5, 9]) + (life * 86400).to_bytes(4, "big")
        rest = own[6 + int.from_bytes(own[4:6], "big") :]
        return packet(2, own[:4] + len(hashed).to_bytes(2, "big") + hashed + rest)

    for first, last in ((signed(0, 10), signed(1, 100)), (signed(1, 100), signed(0, 10))):
        found = certificate(packet(6, key) + packet(13, user) + first + last)
        assert found.expires == 1704067200 + 100 * 86400


def test_a_revoked_subkey_is_left_out() -> None:
    parts = packets(data("rsa3072-subkeys.gpg"))
    number, (_, binding) = [(n, p) for n, p in enumerate(parts) if p[0] == 2][-1]
    assert (parts[number - 1][0], binding[1]) == (14, 0x18)
    revoked = data("rsa3072-subkeys.gpg") + packet(2, binding[:1] + b"\x28" + binding[2:])
    kept = packets(certificate(revoked).packets)
    assert kept == parts[: number - 1]


def test_a_file_cut_anywhere_is_refused() -> None:
    for name in ("ed25519.gpg", "rsa3072-subkeys.gpg"):
        whole, ends = data(name), {0}
        for _, body in packets(whole):
            ends.add(max(ends) + len(packet(0, body)) - 6 + (2 if len(body) < 256 else 3))
        for length in range(1, len(whole)):
            if length not in ends:
                with pytest.raises(KeyFileError, match="ends inside"):
                    certificate(whole[:length])


@pytest.mark.parametrize("text", [b"a:" * 120_000, b"\n" * 250_000, b"A\n" * 120_000, b"=" * 250_000])
def test_large_files_take_no_time(text: bytes) -> None:
    began = time.process_time()
    for start in (b"", b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n", b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n"):
        with pytest.raises(KeyFileError):
            certificate(start + text)
    assert time.process_time() - began < 20


def test_many_packets_take_no_time() -> None:
    began = time.process_time()
    with pytest.raises(KeyFileError):
        certificate(data("ed25519.gpg") + packet(2, b"\x03") * 38_000)  # too large
    many = certificate(data("ed25519.gpg") + packet(2, b"\x03") * 36_000)
    assert many.armored == data("ed25519.asc") and time.process_time() - began < 3


@given(st.binary(max_size=400))
@example(b"\x99\xff\xff")
@example(b"\xc6\xc0")
@example(b"\xc6\xff\xff\xff\xff\xff")
@example(b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\n-----END PGP PUBLIC KEY BLOCK-----")
def test_arbitrary_bytes(content: bytes) -> None:
    _a_key_or_an_error(content)
    _a_key_or_an_error(armor(content))


@given(st.sampled_from(sorted({*FILES, *REFUSED})), st.integers(0, 2400), st.integers(0, 255))
def test_one_byte_changed(name: str, at: int, value: int) -> None:
    changed = bytearray(data(name))
    changed[at % len(changed)] = value
    _a_key_or_an_error(bytes(changed))
    _a_key_or_an_error(armor(bytes(changed)))


def _a_key_or_an_error(content: bytes) -> None:
    """Of whatever is accepted, all that is written is read again as the same."""
    try:
        found = certificate(content)
    except KeyFileError as e:
        assert str(e).isprintable()
    else:
        assert isinstance(found, Certificate) and re.fullmatch("[0-9A-F]{40}", found.fingerprint)
        assert certificate(found.armored) == found
        assert found.unusable(0) == "" or found.revoked or found.expires is not None
        assert base64.b64decode(b"".join(found.armored.splitlines()[2:-2])) == found.packets
