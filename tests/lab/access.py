"""Who may log in where: the lab's client key, each machine's host key, and the known_hosts of all of them.

Host keys are made per machine before it boots, so that strict checking works from the first connection on and
nothing has to be accepted blindly.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from tests.lab import cache, scale
from tests.lab.host import run_root, sh

USERS = {"root": ("root", 0), "gpu": ("home/gpu", 1000), "pw": ("home/pw", 1001)}


def client_key() -> Path:
    """The private key that every machine lets in."""
    return cache.cached("client-key", {"type": "ed25519"}, lambda into: _keygen(into / "id_ed25519")) / "id_ed25519"


def known_hosts() -> Path:
    """The host keys of all machines there are."""
    return run_root() / "known_hosts"


def install(root: Path, name: str) -> None:
    """Put a fresh host key and the users' authorized_keys on a machine's disk."""
    _keygen(root / "etc/ssh/ssh_host_ed25519_key", name)
    public = client_key().with_suffix(".pub")
    for place, uid in USERS.values():
        folder = root / place / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(public, folder / "authorized_keys")
        os.chown(folder, uid, uid)
        os.chown(folder / "authorized_keys", uid, uid)


def write_known_hosts(hosts: dict[str, Path]) -> None:
    """Rewrite known_hosts from the machines' public host keys, by address; the caller holds the lab's lock."""
    rows = []
    for address, key in hosts.items():
        with suppress(FileNotFoundError):  # a machine that is half gone, or half-made: its key may be empty still
            words = key.read_text("utf-8").split()
            rows += [f"{address} {words[0]} {words[1]}\n"] if len(words) > 1 else []
    fresh = known_hosts().with_suffix(".new")
    fresh.write_text("".join(rows), "utf-8")
    fresh.rename(known_hosts())


def ssh() -> list[str]:
    """The ssh command line of the lab's own connections, untouched by the user's configuration."""
    options = {
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
        "UserKnownHostsFile": known_hosts(),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ConnectTimeout": f"{scale.seconds(30):.0f}",
        "LogLevel": "ERROR",
        "KexAlgorithms": "curve25519-sha256",  # the default, safe from quantum computers, costs 65 ms of CPU time more
    }
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return ["ssh", "-F", "none", "-i", str(client_key()), *words]


def _keygen(path: Path, comment: str = "gpuready-lab") -> None:
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path)
