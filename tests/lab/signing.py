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
    with _keyring() as gpg:
        sh(*gpg, "--import", keys() / f"{signer}.secret")
        for kind, target in (("--clearsign", "InRelease"), ("--detach-sign", "Release.gpg")):
            sh(*gpg, "--armor", "--digest-algo", "SHA512", "--output", release.with_name(f".{target}"), kind, release)
            _replace(release.with_name(f".{target}"), release.with_name(target))


def _replace(fresh: Path, target: Path) -> None:
    """Move a new file into place, at least a second younger: HTTP tells files apart by whole seconds."""
    if target.exists():
        young = max(fresh.stat().st_mtime, target.stat().st_mtime + 1)
        os.utime(fresh, (young, young))
    fresh.rename(target)


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
