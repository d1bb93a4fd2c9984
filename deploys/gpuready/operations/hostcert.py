"""Host certificates: who signed one, and why it does not prove the name of a host.

paramiko proves only that the server has the certified key. The rest of the certificate is checked here.
Sources: OpenSSH's PROTOCOL.certkeys; sshkey_cert_check_host() in its sshkey.c.
"""

import time
from base64 import b64decode, b64encode
from fnmatch import fnmatchcase

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    SSHCertPublicKeyTypes,
    load_ssh_public_identity,
)
from paramiko import PKey

_SUFFIX = "-cert-v01@openssh.com"


def certified(kind: str) -> str:
    """The algorithm of a certificate for a key of this kind."""
    return kind + _SUFFIX


def read(key: PKey) -> SSHCertificate | None:
    """The certificate that came with the key; None if there is none or if it is not supported."""
    blob = key.public_blob
    if blob is None or not blob.key_type.endswith(_SUFFIX):
        return None
    line = f"{blob.key_type} {b64encode(blob.key_blob).decode()}"
    try:
        found = load_ssh_public_identity(line.encode())
    except (ValueError, UnsupportedAlgorithm):
        return None
    return found if isinstance(found, SSHCertificate) else None


def signer(certificate: SSHCertificate) -> str:
    """Kind and base64 of the authority's key."""
    return _text(certificate.signature_key())


def fault(certificate: SSHCertificate, key: PKey, host: str) -> str:
    """Why the certificate does not prove that ``key`` belongs to ``host`` (a name without port); empty if it does."""
    try:
        certificate.verify_cert_signature()
    except InvalidSignature:
        return "the authority's signature is wrong"
    now = time.time()
    if _text(certificate.public_key()) != f"{key.get_name()} {key.get_base64()}":
        return "it is for another key"
    if _signed_with_sha1(certificate):
        return "it is signed with SHA-1"
    if certificate.type is not SSHCertificateType.HOST:
        return "it is a user's certificate"
    if certificate.critical_options:
        return "it has critical options"
    if not certificate.valid_after <= now < certificate.valid_before:
        return "it has expired" if now >= certificate.valid_before else "it is not valid yet"
    names = [name.decode("utf-8", "replace") for name in certificate.valid_principals]
    if not any(matches(name, host) for name in names):
        return f"it is for {', '.join(names[:5]) or 'no name'}"
    return ""


def matches(pattern: str, host: str) -> bool:
    """Match a pattern of OpenSSH with ``*`` and ``?``, in upper or lower case."""
    pattern, host = pattern.lower(), host.lower()
    return pattern == host or (("*" in pattern or "?" in pattern) and fnmatchcase(host, pattern.replace("[", "[[]")))


def _text(key: SSHCertPublicKeyTypes) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def _signed_with_sha1(certificate: SSHCertificate) -> bool:
    """An RSA signature stands at the end of the certificate: algorithm, and as many bytes as the key has."""
    authority = certificate.signature_key()
    if not isinstance(authority, RSAPublicKey):
        return False
    blob = b64decode(certificate.public_bytes().split()[1])
    return blob[: -4 - authority.key_size // 8].endswith(b"\0\0\0\7ssh-rsa")
