"""The lab's apt repository of NVIDIA's packages, laid out and addressed like NVIDIA's: flat, below stable/deb/ARCH.

One is shared by all machines and served by a process of its own. A test that wants another one (signed by another key,
with fewer versions, one that goes down) publishes a copy, which is served from within the test.
"""

import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab import cache, network, packages, scale, signing
from tests.lab import server as web
from tests.lab.host import LabError, architecture, sh
from tests.lab.processes import matching, send, wait_gone


@dataclass
class Repository:
    """A published repository: where its files are, where it is served, and who signs it."""

    directory: Path
    port: int
    signer: str = "lab"
    _server: web.Server | None = None

    @property
    def base(self) -> str:
        """The URL that stands for the repository's host."""
        return f"http://{network.SERVER}:{self.port}"

    @property
    def fingerprint(self) -> str:
        """The full fingerprint of the key that signs it."""
        return signing.fingerprint(self.signer)

    def settings(self) -> dict[str, object]:
        """Its value for the spec's `toolkit.repo`."""
        return {
            "url": f"{self.base}/stable/deb/$(ARCH)",
            "rpm_url": f"{self.base}/stable/rpm/$basearch",
            "key": f"{self.base}/gpgkey",
            "fingerprint": self.fingerprint,
        }

    def start(self) -> None:
        """Serve it from this process, on the port it had before if it had one."""
        if self._server is None:
            self._server = web.Server(self.directory, network.SERVER, self.port)
            self.port = int(self._server.server_address[1])
            self._server.start()

    def stop(self) -> None:
        """Take it off the network: connections are refused until start()."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def rotate(self, signer: str) -> None:
        """Sign it with another key, and serve that key."""
        self.signer = signer
        sign(self.directory, signer)


def shared() -> Repository:
    """The repository of all versions, signed by the lab's key."""
    recipe = {
        "packages": [packages.build(version).name for version in packages.VERSIONS],
        "key": signing.fingerprint("lab"),
        "layout": 1,
    }
    directory = cache.cached("repository", recipe, _publish_all)
    # A port of its own: another checkout, with other packages or keys, may have machines up at the same time.
    return Repository(directory, 20_000 + zlib.crc32(str(directory).encode()) % 10_000)


def publish(directory: Path, signer: str = "lab", versions: Sequence[str] = packages.VERSIONS) -> Repository:
    """Lay out a repository in an empty directory; it is not served yet."""
    flat = directory / f"stable/deb/{architecture()}"
    flat.mkdir(parents=True)
    for version in versions:
        for package in packages.build(version).glob("*.deb"):
            shutil.copyfile(package, flat / package.name)
    index = sh("apt-ftparchive", "packages", ".", cwd=flat)
    (flat / "Packages").write_text(index, "utf-8")
    sh("gzip", "-kn", flat / "Packages")
    head = {"Origin": "gpuready-lab", "Label": "gpuready-lab", "Architectures": architecture()}
    options = [word for key, value in head.items() for word in ("-o", f"APT::FTPArchive::Release::{key}={value}")]
    (flat / "Release").write_text(sh("apt-ftparchive", *options, "release", ".", cwd=flat), "utf-8")
    sign(directory, signer)
    return Repository(directory, 0, signer)


def sign(directory: Path, signer: str) -> None:
    """Sign what is published there, and put the public keys beside it: `gpgkey`, and both by name."""
    signing.sign(directory / f"stable/deb/{architecture()}/Release", signer)
    shutil.copyfile(signing.public(signer), directory / "gpgkey")
    for name in signing.SIGNERS:
        shutil.copyfile(signing.public(name), directory / f"gpgkey-{name}")


def _publish_all(into: Path) -> None:
    publish(into)


def serve_shared() -> None:
    """Serve the shared repository from a process of its own, unless that runs already. The address must be up."""
    wanted = shared()
    tail = [str(wanted.directory), network.SERVER, str(wanted.port)]
    if not _servers(tail):
        command = [sys.executable, str(Path(web.__file__).resolve()), *tail]
        quiet = subprocess.DEVNULL
        subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True)
    limit = scale.Limit(10)
    while not _answers(wanted.port):
        if limit.over():
            raise LabError(f"the lab's repository is not served at {wanted.base}")
        time.sleep(0.01)


def end_shared() -> None:
    """End the processes that serve shared repositories, whoever started them."""
    pids = _servers([])
    send(pids, signal.SIGTERM)
    wait_gone(pids, 5)


def _servers(tail: list[str]) -> list[int]:
    """The lab's server processes whose arguments end so."""
    return matching(
        lambda argv: (
            len(argv) == 5
            and argv[1].endswith("/lab/server.py")
            and argv[3] == network.SERVER
            and argv[5 - len(tail) :] == tail
        )
    )


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((network.SERVER, port), timeout=1):
            return True
    except OSError:
        return False
