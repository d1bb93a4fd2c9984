"""gpg with a key that it makes, for tests of signatures."""

import re
import subprocess
from pathlib import Path

from gpuready.components.repository.openpgp import Certificate, certificate


class Gpg:
    """gpg with a key of its own."""

    def __init__(self, home: Path, key: str, subkey: str = "") -> None:
        home.mkdir(mode=0o700)
        self.home = home
        self("--quick-generate-key", "bundle <bundle@localhost>", key, "sign", "never")
        self.fingerprint = re.findall(rb"^fpr:*([0-9A-F]{40})", self("--with-colons", "--list-keys"), re.M)[0].decode()
        if subkey:
            self("--quick-add-key", self.fingerprint, subkey, "sign", "1y")

    def __call__(self, *words: str, data: bytes = b"") -> bytes:
        head = ("gpg", "--homedir", str(self.home), "--batch", "--pinentry-mode", "loopback", "--passphrase", "")
        return subprocess.run([*head, *words], input=data, capture_output=True, check=True).stdout

    @property
    def key(self) -> Certificate:
        return certificate(self("--armor", "--export", self.fingerprint))

    def end(self) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill", "all"], check=True)
