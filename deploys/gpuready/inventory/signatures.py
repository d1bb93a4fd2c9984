"""SSH signatures, as ``ssh-keygen -Y sign`` writes them, by a key in a file of allowed signers.

Specs and results have a namespace each, so a signature of one does not count for the other.

Source: ssh-keygen(1).
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpuready.base.errors import brief
from gpuready.base.files import read_file, reason
from gpuready.inventory.programs import run

#: The namespaces of signatures; one that was made for another purpose does not count.
SPEC, RESULT = "gpuready", "gpuready-result"
#: Bytes of a file of allowed signers; a line has about 150.
_MOST = 10_000_000


class SignatureError(ValueError):
    """The signature does not count. The message says what it is instead."""


def sign_command(namespace: str) -> str:
    """Return the command that signs a file.

    With FILE as an argument, ssh-keygen asks before it replaces a signature, and may keep the old one.
    """
    return f"ssh-keygen -Y sign -n {namespace} -f KEY < FILE > FILE.sig"


@dataclass(frozen=True)
class Signers:
    """A file of allowed signers, read once: it may be a pipe."""

    name: str
    content: bytes

    @classmethod
    def read(cls, name: str) -> "Signers":
        """Raises ValueError, which says why the file cannot be read."""
        try:
            return cls(name, read_file(Path(name).expanduser(), _MOST))
        except RuntimeError:
            raise ValueError("no such user") from None
        except (OSError, ValueError) as e:
            raise ValueError(reason(e).lower()) from None


def signer(data: bytes, signature: bytes, signers: Signers, namespace: str) -> str:
    """Return who signed ``data``, by the name in ``signers``. Raises SignatureError and InventoryError."""
    meaning = {  # parts of messages of ssh-keygen
        "incorrect signature": "the file was changed after it was signed, or the signature is older than the file",
        "namespace does not match": f"one for another namespace than {namespace}",
    }
    with tempfile.TemporaryDirectory(prefix="gpuready-") as folder:
        sig, signed, allowed = Path(folder, "sig"), Path(folder, "data"), Path(folder, "allowed")
        sig.write_bytes(signature)
        allowed.write_bytes(signers.content)
        signed.write_bytes(data)
        words = ("-s", str(sig), "-n", namespace)
        # Whose signature it is, and whether it fits at all; only then who is allowed.
        code, message = _ssh_keygen(signed, "check-novalidate", *words)
        if code:
            raise SignatureError(next((text for part, text in meaning.items() if part in message), brief(message)))
        key = message.partition(" with ")[2]
        code, message = _ssh_keygen(signed, "find-principals", "-s", str(sig), "-f", str(allowed))
        if code:
            raise SignatureError(brief(message) if "key " in message else f"one by another key: {brief(key)}")
        why = "one by a key without a name in the file of allowed signers"
        for principal in message.splitlines():
            code, why = _ssh_keygen(signed, "verify", *words, "-f", str(allowed), "-I", principal)
            if not code:
                return principal
        raise SignatureError(brief(why))


def _ssh_keygen(signed: Path, action: str, *words: str) -> tuple[int, str]:
    """Return the exit code, and the message or stdout."""
    code, out, err = run(["ssh-keygen", "-Y", action, *words], "ssh-keygen", stdin=signed)
    return code, err if code and err else out.decode(errors="replace")
