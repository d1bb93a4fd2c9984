"""Signatures of a repository's index: NVIDIA's own as published, those that gpg makes, and what must not pass."""

import base64
import hashlib
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gpuready.components.repository.openpgp import certificate, dearmored
from gpuready.components.repository.signature import SignatureError, check_detached, signed_text
from gpuready.model.spec import NodeSpec
from tests.components.repository.gpg import Gpg
from tests.components.repository.odd_keys import packet

DATA = Path(__file__).parents[2] / "data/signatures"
NOW = 1_795_000_000.0
KEY = certificate((DATA / "gpgkey").read_bytes())
INRELEASE = (DATA / "InRelease").read_bytes()
REPOMD, ASC = (DATA / "repomd.xml").read_bytes(), (DATA / "repomd.xml.asc").read_bytes()


def test_nvidias_own_signatures_are_valid() -> None:
    assert KEY.fingerprint == NodeSpec().toolkit.repo.fingerprint
    text = signed_text(INRELEASE, KEY, NOW)
    assert text.startswith(b"Architectures: amd64\n") and text.endswith(b" Packages.xz\n")
    check_detached(REPOMD, ASC, KEY, NOW)


_TEXT, _SIGNATURE = INRELEASE.split(b"-----BEGIN PGP SIGNATURE-----")
_REFUSED = {
    "changed": INRELEASE.replace(b"90397", b"90398"),
    "more before": b"\n" + INRELEASE,
    "more after": INRELEASE + b"Packages\n",
    "a header of the text": INRELEASE.replace(b"Hash: SHA512\n", b"Hash: SHA512\nDate: now\n"),
    "no signature": _TEXT,
    "two signatures": INRELEASE + INRELEASE,
    "a line with a dash": INRELEASE.replace(b"Codename", b"-Codename"),
    "no text": b"",
    "another kind": _TEXT + ASC,
    "a damaged signature": INRELEASE.replace(b"iQIzBAEBCg", b"iQIzBAEBAg"),
}


@pytest.mark.parametrize("data", _REFUSED.values(), ids=_REFUSED)
def test_what_is_not_signed_so_is_refused(data: bytes) -> None:
    with pytest.raises(SignatureError):
        signed_text(data, KEY, NOW)


def test_a_detached_signature_is_of_this_file_alone() -> None:
    for data, signature in ((REPOMD + b"\n", ASC), (REPOMD, ASC + ASC), (REPOMD, b"")):
        with pytest.raises(SignatureError):
            check_detached(data, signature, KEY, NOW)


def test_a_damaged_signature_is_refused_wherever_it_ends() -> None:
    """The armor is whole: only what it holds is cut, or has another byte in its hashed part or its number."""
    packet = dearmored(ASC, "SIGNATURE")
    body = packet[3:]
    check_detached(REPOMD, armored(packet[:3] + body), KEY, NOW)
    for size in range(len(body)):
        with pytest.raises(SignatureError):
            check_detached(REPOMD, armored(b"\xc2\xff" + size.to_bytes(4, "big") + body[:size]), KEY, NOW)
    for at in (0, 1, 2, 3, 4, 5, 6, 20, 34, len(body) - 1):
        changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        with pytest.raises(SignatureError):
            check_detached(REPOMD, armored(packet[:3] + changed), KEY, NOW)


def armored(packets: bytes) -> bytes:
    begin, end = (f"-----{word} PGP SIGNATURE-----".encode() for word in ("BEGIN", "END"))
    return b"\n".join([begin, b"", base64.b64encode(packets), end, b""])


@pytest.mark.parametrize(("key", "subkey"), [("ed25519", ""), ("rsa2048", ""), ("ed25519", "rsa2048")])
def test_what_gpg_signs(tmp_path: Path, key: str, subkey: str) -> None:
    gpg = Gpg(tmp_path / "gpg", key, subkey)
    try:
        text = b"Origin: here  \n- a list\n\nSHA256:\n"
        signed = gpg("--clearsign", data=text)
        assert signed_text(signed, gpg.key, NOW - 86400) == text.replace(b"  \n", b"\n")
        detached = gpg("--armor", "--detach-sign", data=text)
        check_detached(text, detached, gpg.key, NOW - 86400)
        if subkey:
            with pytest.raises(SignatureError):  # the subkey has expired
                check_detached(text, detached, gpg.key, NOW * 2)
        short = gpg("--armor", "--default-sig-expire", "1d", "--detach-sign", data=text)
        check_detached(text, short, gpg.key, NOW - 86400)
        with pytest.raises(SignatureError, match="has expired"):
            check_detached(text, short, gpg.key, time.time() + 2 * 86400)
        weak = gpg("--armor", "--digest-algo", "SHA1", "--detach-sign", data=text)
        for data, signature, by in ((text, weak, gpg.key), (text, detached, KEY)):
            with pytest.raises(SignatureError, match=by.fingerprint):
                check_detached(data, signature, by, NOW - 86400)
    finally:
        gpg.end()


def test_an_algorithm_that_is_not_verified_is_named(tmp_path: Path) -> None:
    gpg = Gpg(tmp_path / "gpg", "nistp256")
    try:
        signature = gpg("--armor", "--detach-sign", data=b"text")
        with pytest.raises(SignatureError, match=r"cannot verify keys of this algorithm \(19\)") as refused:
            check_detached(b"text", signature, gpg.key, NOW - 86400)
        assert "RSA or Ed25519" in refused.value.remedy
    finally:
        gpg.end()


def _signed(by: Ed25519PrivateKey, kind: int, data: bytes, *subpackets: bytes) -> bytes:
    """A signature, with these subpackets in its hashed part."""
    hashed = b"".join(bytes([len(each)]) + each for each in subpackets)
    head = bytes([4, kind, 27, 8]) + len(hashed).to_bytes(2, "big") + hashed
    message = data + head + b"\x04\xff" + len(head).to_bytes(4, "big")
    return packet(2, head + bytes(4) + by.sign(hashlib.sha256(message).digest()))


def test_a_subkey_that_was_bound_until_a_day_signs_nothing_after_it() -> None:
    primary, sub = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    bodies = [b"\x04" + bytes(4) + b"\x1b" + each.public_key().public_bytes_raw() for each in (primary, sub)]
    framed = [b"\x99" + len(body).to_bytes(2, "big") + body for body in bodies]
    issuer, created = b"\x21\x04" + hashlib.sha1(framed[0]).digest(), b"\x02" + (1000).to_bytes(4, "big")
    bound = _signed(primary, 0x18, b"".join(framed), issuer, created, b"\x03" + (60).to_bytes(4, "big"))
    own = _signed(primary, 0x13, b"", issuer, created)
    key = certificate(packet(6, bodies[0]) + packet(13, b"a") + own + packet(14, bodies[1]) + bound)
    signature = armored(_signed(sub, 0x00, b"text", created))
    check_detached(b"text", signature, key, 1059)
    with pytest.raises(SignatureError, match="no valid signature"):
        check_detached(b"text", signature, key, 1060)
