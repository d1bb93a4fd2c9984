"""apt's sources on a node with a history: old lists go, keys are rotated, a proxy is really used."""

import base64
import hashlib
import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gpuready.components.repository.source import AptSource
from gpuready.components.toolkit.spec import TOOLKIT_VERSION
from tests.lab import Lab, Repository
from tests.lab.network import SERVER
from tests.lab.processes import matching
from tests.lab.server import Threads
from tests.system.air_gap import apply_from_bundle, move_to_mirror
from tests.system.host import Host, Hosts

LISTS = "/etc/apt/sources.list.d"
BACKUP = "/var/lib/gpuready/backup"
NVIDIA = "https://nvidia.github.io"
OLD = {
    # As NVIDIA's own guides of several years told people to write them.
    "nvidia-docker.list": f"deb {NVIDIA}/libnvidia-container/stable/debian11/$(ARCH) /\n"
    f"deb {NVIDIA}/nvidia-container-runtime/stable/debian11/$(ARCH) /\n"
    f"deb {NVIDIA}/nvidia-docker/debian11/$(ARCH) /\n",
    "toolkit.sources": f"Types: deb\nURIs: {NVIDIA}/libnvidia-container/stable/deb/$(ARCH)\nSuites: /\n"
    "Signed-By: /usr/share/keyrings/nvidia.gpg\n",
    "mixed.list": "# our mirror\ndeb [trusted=yes] file:/srv/ours ./\n"
    "deb [signed-by=/usr/share/keyrings/other.gpg] {url} /\n",
    "mixed.sources": "# our mirror\nTypes: deb\nURIs: file:/srv/ours\nSuites: ./\nTrusted: yes\n\n"
    "Types: deb\nURIs: {url}/\nSuites: /\nSigned-By: /usr/share/keyrings/other.gpg\n",
    "off.sources": f"Enabled: no\nTypes: deb\nURIs: {NVIDIA}/libnvidia-container/stable/deb/$(ARCH)\nSuites: /\n",
}
GONE = {"nvidia-docker.list", "toolkit.sources"}


@pytest.fixture(scope="module")
def repo(lab: Lab) -> Iterator[Repository]:
    """A repository of our own, whose key can be rotated."""
    with lab.publish() as published:
        yield published


@pytest.fixture(scope="module")
def node(shared: Hosts, repo: Repository) -> Host:
    """A machine with all the lists that somebody may have left."""
    machine = shared()
    machine.repo = repo
    machine.run("mkdir -p /srv/ours && : >/srv/ours/Packages")
    for name, text in old(repo).items():
        (machine.root / LISTS.lstrip("/") / name).write_text(text, "utf-8")
    return machine


def old(repo: Repository) -> dict[str, str]:
    """The lists' names and texts."""
    return {name: text.replace("{url}", str(repo.settings()["url"])) for name, text in OLD.items()}


def test_old_lists_are_taken_out_and_kept(node: Host, repo: Repository) -> None:
    assert len(node.plan().component("repository")["notes"]) == len(OLD) - 1
    node.apply()
    assert set(node.run(f"ls {LISTS}").stdout.split()) & set(OLD) == set(OLD) - GONE
    assert node.run(f"cat {LISTS}/mixed.list").stdout == "# our mirror\ndeb [trusted=yes] file:/srv/ours ./\n"
    kept = node.run(f"cat {LISTS}/mixed.sources").stdout
    assert "file:/srv/ours" in kept and str(repo.settings()["url"]) not in kept
    assert node.run(f"cat {LISTS}/off.sources").stdout == OLD["off.sources"]
    for name, text in old(repo).items():
        if name != "off.sources":
            assert node.run(f"cat {BACKUP}{LISTS}/{name}.original").stdout == text
    node.run("apt-get update -q -o APT::Update::Error-Mode=any")
    node.plan("--detailed-exitcode")


def test_the_key_is_rotated_when_the_spec_says_so(node: Host, repo: Repository) -> None:
    node.apply()
    before, signer = node.run(f"cat {AptSource.keyring}").stdout, repo.fingerprint
    update = f"apt-get update -q -o Dir::Etc::sourcelist={AptSource.path} -o Dir::Etc::sourceparts=- "
    update += "-o APT::Update::Error-Mode=any"
    repo.rotate("other")
    assert node.run(update, check=False).returncode != 0
    result = node.apply()
    assert result.changed() == {"repository"}, result.explain()
    assert result.diff("repository") == {"repository.key": ([signer], [repo.fingerprint])}
    assert node.run(f"cat {AptSource.keyring}").stdout != before
    node.run(update)
    node.plan("--detailed-exitcode")


def test_another_address_is_read_before_it_is_written(node: Host, repo: Repository) -> None:
    node.apply()
    node.run("rm -rf /var/lib/apt/lists/*")
    move_to_mirror(node, repo)


@pytest.mark.promise
def test_a_node_without_a_route_is_converged_from_a_bundle(node: Host, repo: Repository, tmp_path: Path) -> None:
    node.remove()
    result = apply_from_bundle(node, repo, tmp_path / "bundle")
    assert result.changed() == {"repository", "toolkit"}, result.explain()
    assert f"version {TOOLKIT_VERSION}\n" in node.run("nvidia-ctk --version").stdout


@contextmanager
def proxy(look: Callable[[str], None] = lambda credentials: None) -> Iterator[tuple[str, list[str]]]:
    """An HTTP proxy on the lab's address, and the list of the URLs that it was asked for.

    ``look`` is called at each request with the credentials that came with it.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            look(self.headers.get("Proxy-Authorization", ""))
            url = urlsplit(self.path)
            onward = http.client.HTTPConnection(url.netloc, timeout=20)
            onward.request("GET", url.path, headers={"Host": url.netloc})
            answer = onward.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = Threads((SERVER, 0), Handler)
    server.start()
    yield f"http://{SERVER}:{server.server_port}", asked
    server.stop()


PASSWORD = "hunter2hunter2"


@pytest.mark.fault("D9", "proxy-secret")
def test_a_proxy_is_used_and_its_password_stays_secret(fresh: Hosts) -> None:
    node, wrong, leaked = fresh().with_spec(toolkit={"repo": {"proxy": "env:GPUREADY_LAB_PROXY"}}), [], []
    expected = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()

    def look(credentials: str) -> None:
        wrong.extend([credentials] if credentials != expected else [])
        leaked.extend(matching(lambda argv: PASSWORD in " ".join(argv)))  # machines' processes are this host's, too

    with proxy(look) as (address, asked):
        url = address.replace("//", f"//me:{PASSWORD}@")
        line = f'Acquire::http::Proxy::{SERVER} "{url}";'
        hashes = [hashlib.sha256(text.encode()).hexdigest()[:10] for text in (line, f"{line}\n", url, PASSWORD)]

        def run(*words: str, value: str = url) -> str:
            result = node.call(*words, env={"GPUREADY_LAB_PROXY": value})
            for secret in (PASSWORD, *hashes):
                assert secret not in result.stdout + result.stderr, f"{words}: {secret}"
            return result.stdout

        plan = run("plan")
        assert '"repository.proxy", "actual": null, "expected": "(secret)"' in " ".join(plan.split())
        run("apply")
        assert wrong == [] and leaked == []
        names = {url.rpartition("/")[2] for url in asked}
        assert {"gpgkey", "InRelease"} <= names and sum(name.endswith(".deb") for name in names) == 4
        assert all(url.startswith(f"http://{SERVER}:") for url in asked), "for this repository alone"
        assert node.run(f"cat {AptSource.proxy}").stdout == f"{line}\n"
        others = "find / -xdev -type f -readable -size -1024k 2>/dev/null | xargs -r -d '\\n' grep -ls -e {}"
        for secret in (PASSWORD, *hashes):
            assert node.run(others.format(secret), user="gpu", check=False).stdout == ""
        run("record")
        run("verify", "--passive")
        plan = run("plan", value=url.replace(PASSWORD, "another"))
        assert '"actual": "(another secret)", "expected": "(secret)"' in " ".join(plan.split())
        node.run(f"chmod 644 {AptSource.proxy}")
        assert "(secret), readable by others" in run("apply")
        assert node.run(f"stat -c %a {AptSource.proxy}").stdout == "600\n"
        run("plan", "--detailed-exitcode")
        direct = node.with_spec(toolkit={})
        assert direct.apply().changed() == {"repository"}
        assert node.run(f"test ! -e {AptSource.proxy}", check=False).returncode == 0
        direct.plan("--detailed-exitcode")
        run("apply")
    run("remove")
    assert node.run(f"test ! -e {AptSource.proxy}", check=False).returncode == 0
