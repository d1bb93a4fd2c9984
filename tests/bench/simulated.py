"""Many hosts that are not there: one SSH server answers with recorded probes, and the login name is the host.

A host differs from its spec, says yes to every step, and then is as it should be. So a run over any number of hosts has
its real course, and costs nearly only what the controller does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

_SERVER = "tests.hostile.server"


@contextmanager
def hosts(count: int, folder: Path) -> Iterator[dict[str, str]]:
    """Write ``folder/hosts.yaml``; give the environment of a user who may log in."""
    (folder / ".ssh").mkdir(mode=0o700)
    key = folder / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    words = [sys.executable, "-m", _SERVER]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            said = json.loads(server.stdout.readline())
            port = said["ports"][""]
            (folder / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {said['key']}\n")
            width = len(str(count))
            names = [f"converges{at:0{width}}" for at in range(1, count + 1)]
            variables = {
                "ansible_host": "127.0.0.1",
                "ansible_port": port,
                "gpuready": {"hardware": {"gpus": 1}, "memlock": "unlimited"},
            }
            found = {"all": {"vars": variables, "hosts": {name: {"ansible_user": name} for name in names}}}
            (folder / "hosts.yaml").write_text(yaml.safe_dump(found))
            kept = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
            yield {**kept, "HOME": str(folder)}
        finally:
            server.stdin.close()  # it ends by that
