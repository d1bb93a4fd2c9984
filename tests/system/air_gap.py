"""A machine that reaches only the web server of a bundle, with the commands of the guide."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import Repository, network
from tests.lab.server import Server
from tests.system.harness import ROOT, Result
from tests.system.host import Host

_GUIDE = (ROOT / "docs/guides/air-gap.md").read_text("utf-8")


def commands(**places: str) -> dict[str, list[str]]:
    """The words of the guide's first block by verb, with these places instead of the guide's own."""
    found = {}
    for line in re.findall(r"^\$ gpuready (.*)", _GUIDE.partition("```\n")[0], re.M):
        words = shlex.split(line, comments=True)
        known = {"hosts.yaml": places["hosts"], "bundle": places["folder"], "http://10.0.0.5:8000": places["url"]}
        known["bundle/bundle.yaml"] = f"{places['folder']}/bundle.yaml"
        found[words[0]] = [words[0], *(known.get(word, word) for word in words[1:])]
    return found


@contextmanager
def alone(node: Host) -> Iterator[None]:
    """Meanwhile, the machine has a route to the lab's server only."""
    gateway = network.gateway(node.record.index)
    node.run(f"ip route add {network.SERVER} via {gateway} && ip route del default")
    try:
        assert "unreachable" in node.run("ip route get 192.0.2.1 2>&1", check=False).stdout
        yield
    finally:
        node.run(f"ip route replace default via {gateway} && ip route del {network.SERVER}")


def apply_from_bundle(node: Host, repo: Repository, folder: Path) -> Result:
    """Bundle what the machine needs, take the repository off the network, and apply with the bundle."""
    folder.mkdir(exist_ok=True)
    server = Server(folder, network.SERVER)
    url = f"http://{network.SERVER}:{server.server_port}"
    words = commands(hosts=str(node.where()), folder=str(folder), url=url)
    try:
        node.gpuready(*words["bundle"], code=0)
        repo.stop()
        server.start()
        with alone(node):
            apply = [*words["apply"], "--yes", "--only", "repository,toolkit"]
            result = node.gpuready(*apply, code=0)
            assert node.gpuready(*apply, code=0).changed() == set()
        return result
    finally:
        server.server_close()
        repo.start()


def move_to_mirror(node: Host, repo: Repository) -> None:
    """Another address serves the repository. The toolkit stays as it is, so no installation reads it."""
    mirror = Repository(repo.directory, 0, repo.signer)
    mirror.start()
    mirror.stop()
    moved = node.only("repository", "toolkit")
    moved.repo = mirror
    moved.fails("the repository cannot be read: ")
    mirror.start()
    try:
        result = moved.mends()  # it was not written before
        assert result.changed() == {"repository"}, result.explain()
        assert "repository.candidate" in moved.verify().checks("pass")
    finally:
        mirror.stop()
