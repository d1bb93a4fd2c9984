"""The lab's signing keys: `lab`, which its repository is signed with, and `other`, for wrong keys and rotation."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import cache
from tests.lab.host import sh

SIGNERS = ("lab", "other")


def keys() -> Path:
    """A directory with each signer's NAME.secret, NAME.asc (public, armoured) and NAME.fingerprint."""
    return cache.cached("signing-keys", {"algorithm": "ed25519", "signers": SIGNERS}, _generate)


def public(signer: str) -> Path:
    """The public key, ASCII-armoured."""
    return keys() / f"{signer}.asc"


def fingerprint(signer: str) -> str:
    """The key's full fingerprint, 40 hex digits."""
    return (keys() / f"{signer}.fingerprint").read_text("utf-8").strip()


def sign(release: Path, signer: str) -> None:
    """Write InRelease and Release.gpg beside a Release file, replacing older ones."""
    with keyring(signer) as gpg:
        _write(gpg, "--clearsign", release, "InRelease")
        _write(gpg, "--detach-sign", release, "Release.gpg")


def sign_detached(index: Path, signer: str) -> None:
    """Write NAME.asc beside the index of a repository, replacing an older one."""
    with keyring(signer) as gpg:
        _write(gpg, "--detach-sign", index, f"{index.name}.asc")


def _write(gpg: list[str], kind: str, file: Path, target: str) -> None:
    fresh = file.with_name(f".{target}")
    sh(*gpg, "--armor", "--digest-algo", "SHA512", "--output", fresh, kind, file)
    _replace(fresh, file.with_name(target))


def _replace(fresh: Path, target: Path) -> None:
    """Move a new file into place, at least a second younger: HTTP tells files apart by whole seconds."""
    if target.exists():
        young = max(fresh.stat().st_mtime, target.stat().st_mtime + 1)
        os.utime(fresh, (young, young))
    fresh.rename(target)


@contextmanager
def keyring(signer: str) -> Iterator[list[str]]:
    """gpg with the secret key of one signer alone; its second and third word name its directory."""
    with _keyring() as gpg:
        sh(*gpg, "--import", keys() / f"{signer}.secret")
        yield gpg


@contextmanager
def _keyring() -> Iterator[list[str]]:
    """gpg on an empty keyring of its own, which ends together with the agent that gpg starts for it."""
    with tempfile.TemporaryDirectory(prefix="gpuready-lab-gpg-") as home:
        try:
            yield [
                "gpg",
                "--homedir",
                home,
                "--batch",
                "--yes",
                "--quiet",
                "--pinentry-mode",
                "loopback",
                "--passphrase",
                "",
            ]
        finally:
            sh("gpgconf", "--homedir", home, "--kill", "all")


def _generate(into: Path) -> None:
    for signer in SIGNERS:
        with _keyring() as gpg:
            user = f"gpuready lab ({signer}) <{signer}@localhost>"
            sh(*gpg, "--quick-generate-key", user, "ed25519", "sign", "never")
            rows = sh(*gpg, "--with-colons", "--list-keys").splitlines()
            mark = next(row.split(":")[9] for row in rows if row.startswith("fpr:"))
            (into / f"{signer}.fingerprint").write_text(f"{mark}\n", "utf-8")
            (into / f"{signer}.asc").write_text(sh(*gpg, "--armor", "--export", mark), "utf-8")
            secret = into / f"{signer}.secret"
            secret.touch(0o600)
            secret.write_text(sh(*gpg, "--armor", "--export-secret-keys", mark), "utf-8")
