"""Verify signatures of a repository's index by its one key (RFC 4880, RFC 9580).

A node's apt or dnf verifies them again. On the controller, there may be no gpg. Weak hashes do not count, nor a
signature of another kind than that of a document.
"""

import hashlib
from collections.abc import Iterator

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from gpuready.components.repository.openpgp import (
    BINDS_SUBKEY,
    SIGNATURE,
    SUBKEY,
    Certificate,
    KeyFileError,
    Packet,
    dearmored,
    parse_signature,
    parts_of,
    read_packets,
)

_ARMOR = "SIGNATURE"
_BEGIN, _BEGIN_SIGNATURE = b"-----BEGIN PGP SIGNED MESSAGE-----", b"-----BEGIN PGP SIGNATURE-----"
_BINARY, _TEXT = 0x00, 0x01
#: RFC 4880 9.4; MD5, SHA-1 and RIPEMD-160 are broken or weak.
_HASHES: dict[int, hashes.HashAlgorithm] = {8: hashes.SHA256(), 9: hashes.SHA384(), 10: hashes.SHA512()}
_RSA, _EDDSA, _ED25519 = (1, 3), 22, 27
#: The curve Ed25519 with its length, which begins a key of the algorithm EdDSA.
_CURVE = bytes.fromhex("092b06010401da470f01")


class SignatureError(ValueError):
    """The file has no valid signature by the key. The message says why; ``remedy`` says what to do."""

    def __init__(self, text: str, remedy: str = "toolkit.repo.fingerprint names the key that signs it") -> None:
        super().__init__(text)
        self.remedy = remedy


def signed_text(data: bytes, key: Certificate, now: float) -> bytes:
    """Return what is signed in a file with a cleartext signature. Nothing may stand around it."""
    lines = data.split(b"\n")
    if lines[0] != _BEGIN or lines.count(_BEGIN_SIGNATURE) != 1 or b"" not in lines:
        raise SignatureError("the file is not one signed text")
    start, end = lines.index(b"") + 1, lines.index(_BEGIN_SIGNATURE)
    if not all(line.startswith(b"Hash: ") for line in lines[1 : start - 1]):
        raise SignatureError("the file is not one signed text")
    text = [line.rstrip(b" \t\r") for line in lines[start:end]]
    if any(line.startswith(b"-") and not line.startswith(b"- ") for line in text):
        raise SignatureError("a line of the signed text begins with a dash")
    text = [line.removeprefix(b"- ") for line in text]
    _check(b"\r\n".join(text), b"\n".join(lines[end:]), _TEXT, key, now)
    return b"\n".join([*text, b""])


def check_detached(data: bytes, signature: bytes, key: Certificate, now: float) -> None:
    """Check an armored signature in a file of its own. Raises :class:`SignatureError`."""
    _check(data, signature, _BINARY, key, now)


def _check(data: bytes, armored: bytes, kind: int, key: Certificate, now: float) -> None:
    if not armored.strip():
        raise SignatureError("the signature is empty")
    try:
        found = list(read_packets(dearmored(armored, _ARMOR)))
    except KeyFileError as e:
        raise SignatureError(f"the signature cannot be read: {e}") from None
    made = [packet for packet in found if packet.tag == SIGNATURE and packet.body[:2] == bytes([4, kind])]
    signers = list(_signers(key, now))
    valid = [packet for packet in made if any(_is_by(signer, data, packet) for signer in signers)]
    for number in {packet.body[2] for packet in made if packet.body[2:]} & {signer.body[5] for signer in signers}:
        if not valid and number not in (*_RSA, _EDDSA, _ED25519):
            text = f"gpuready cannot verify keys of this algorithm ({number})"
            raise SignatureError(text, "use a repository that an RSA or Ed25519 key signs")
    if not valid:
        raise SignatureError(f"no valid signature by the key {key.fingerprint}")
    if all(_expired(packet, now) for packet in valid):
        text = f"the signature by the key {key.fingerprint} has expired"
        raise SignatureError(text, "the owner of the repository must sign its index again")


def _expired(packet: Packet, now: float) -> bool:
    signature = parse_signature(packet)
    return bool(signature.valid) and signature.created + signature.valid <= now


def _signers(key: Certificate, now: float) -> Iterator[Packet]:
    """Yield the primary key, and the subkeys that it signed and that have not expired."""
    parts = parts_of(list(read_packets(key.packets)))
    primary = parts[0][0]
    yield primary
    for head, signatures in parts:
        for packet in signatures if head.tag == SUBKEY else ():
            binding = parse_signature(packet)
            expires = int.from_bytes(head.body[1:5], "big") + binding.lifetime
            if (
                binding.kind == BINDS_SUBKEY
                and (not binding.lifetime or expires > now)
                and not _expired(packet, now)
                and _is_by(primary, _framed(primary) + _framed(head), packet)
            ):
                yield head


def _framed(key: Packet) -> bytes:
    return b"\x99" + len(key.body).to_bytes(2, "big") + key.body


def _is_by(key: Packet, data: bytes, signature: Packet) -> bool:
    """Tell whether the signature (version 4) is a valid one by the key."""
    body = signature.body.ljust(6, b"\0")
    end = 6 + int.from_bytes(body[4:6], "big")
    rest = body[end + 2 + int.from_bytes(body[end : end + 2], "big") + 2 :]
    chosen = _HASHES.get(body[3])
    if chosen is None or body[2] != key.body[5]:
        return False
    message = data + body[:end] + b"\x04\xff" + end.to_bytes(4, "big")
    try:
        if body[2] in _RSA:
            n, e = _numbers(key.body[6:], 2)
            size = (n.bit_length() + 7) // 8
            (value,) = _numbers(rest, 1)
            RSAPublicNumbers(e, n).public_key().verify(value.to_bytes(size, "big"), message, padding.PKCS1v15(), chosen)
        elif body[2] in (_EDDSA, _ED25519):
            point, signed = _ed25519(key.body[6:], rest, body[2])
            Ed25519PublicKey.from_public_bytes(point).verify(signed, hashlib.new(chosen.name, message).digest())
        else:
            return False
    except (InvalidSignature, ValueError, OverflowError):
        return False
    return True


def _ed25519(key: bytes, signature: bytes, algorithm: int) -> tuple[bytes, bytes]:
    """Return the 32 bytes of the key and the 64 of the signature."""
    if algorithm == _ED25519:
        return key[:32], signature[:64]
    if not key.startswith(_CURVE):
        raise ValueError("another curve")
    (point,) = _numbers(key[len(_CURVE) :], 1)
    r, s = _numbers(signature, 2)
    return point.to_bytes(33, "big")[1:], r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _numbers(data: bytes, count: int) -> list[int]:
    """Return so many numbers, each with its bits in the two bytes before it."""
    found: list[int] = []
    for _ in range(count):
        size = (int.from_bytes(data[:2], "big") + 7) // 8
        found.append(int.from_bytes(data[2 : 2 + size], "big"))
        data = data[2 + size :]
    return found
