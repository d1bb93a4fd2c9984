"""Whether a key file has the key that the spec names, and apt and dnf accept it. Pure."""

from gpuready.base.errors import ConvergeError
from gpuready.components.repository.openpgp import Certificate, KeyFileError, certificate
from gpuready.components.toolkit.spec import Repository


def accepted(data: bytes, repo: Repository, now: float) -> Certificate:
    """Return the one key of the file. Raises ConvergeError."""
    try:
        found = certificate(data)
    except KeyFileError as e:
        raise ConvergeError(
            f"{repo.key} is not a usable key: {e}; nothing was written",
            remedy="the file must hold one key and nothing else, as `gpg --armor --export FINGERPRINT` writes it",
        ) from None
    if found.fingerprint != repo.fingerprint:
        raise ConvergeError(
            f"{repo.key} holds the key {found.fingerprint}, the spec asks for {repo.fingerprint}; nothing was written",
            remedy="check the fingerprint with NVIDIA's documentation; then set toolkit.repo.fingerprint",
        )
    if why := found.unusable(now):
        raise ConvergeError(
            f"{repo.key}: the key {found.fingerprint} is {why}; nothing was written",
            remedy="set toolkit.repo.key to a file with the renewed key; for another key also toolkit.repo.fingerprint",
        )
    return found
