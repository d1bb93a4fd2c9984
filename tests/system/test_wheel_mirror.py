"""A wheel that the node fetches from a mirror on the lab's network: over TLS, cut, wrong, too large."""

import hashlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components.wheels.mirror import Mirror
from tests.components.wheels.wheelfiles import wheel
from tests.lab import Lab, network
from tests.lab.host import sh
from tests.system.faults import leftovers, problem
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Host
from tests.system.test_wheels import receives

ENV = "/opt/train"
MIB = 1 << 20
WHEELS = "/var/lib/gpuready/wheels"
TOKEN = "m1rr0r-t0ken"
SECRET = {"GPUREADY_MIRROR": f"X-Mirror-Key: {TOKEN}"}


@pytest.fixture(scope="module")
def node(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Host]:
    """A machine with an environment and curl."""
    with lab.machine("debian12") as machine:
        machine.install("python3-venv curl")
        machine.run(f"python3 -m venv {ENV}")
        yield Host(machine, gpuready, inventory).only("wheels")


@pytest.fixture(scope="module")
def mirror(node: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """A server of the lab with a certificate that only this machine's root trusts."""
    folder = tmp_path_factory.mktemp("mirror")
    key, cert = folder / "key.pem", folder / "cert.pem"
    sh(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mirror"),
        *("-addext", f"subjectAltName=IP:{network.SERVER}", "-keyout", str(key), "-out", str(cert)),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    node.put(cert, "/root/mirror.pem")
    node.run("echo cacert=/root/mirror.pem >/root/.curlrc")
    served = Mirror(network.SERVER, context)
    yield served
    served.stop()


def served(mirror: Mirror, folder: Path, word: str, mib: int = 3, env: str = ENV, **more: object) -> dict[str, object]:
    """The spec that a new wheel of the mirror is to be in the environment."""
    path = wheel(folder, word=word, extra=os.urandom(mib * MIB), version="2.2.1+cu121")
    data = path.read_bytes()
    mirror.files["/" + path.name.replace("+", "%2B")] = data
    mirror.asked.clear()
    mirror.sent.clear()
    url = f"{mirror.url}/{path.name.replace('+', '%2B')}"
    return {"torch_wheels": [{"wheel": url, "sha256": hashlib.sha256(data).hexdigest(), "env": env, **more}]}


def size(mirror: Mirror) -> int:
    (data,) = mirror.files.values()
    return len(data)


def word(node: Host) -> str:
    return node.run(f"{ENV}/bin/python -IBc 'import torch; print(torch.WORD)'", check=False).stdout.strip()


@pytest.mark.fault("cut-wheel")
def test_a_node_fetches_its_wheel_resumes_it_and_asks_nobody_again(node: Host, mirror: Mirror, tmp_path: Path) -> None:
    spec = served(mirror, tmp_path, "mirrored", 24, header="env:GPUREADY_MIRROR")
    wanted = node.with_spec(**spec)
    node.run("mv /root/.curlrc /root/curlrc")
    result = wanted.apply(env=SECRET, code=1)
    assert "certificate" in problem(result) and "curl -fIL https://" in problem(result)
    node.run("mv /root/curlrc /root/.curlrc")
    plan = wanted.plan(env=SECRET)
    assert any("is on a server, so the libraries that it needs" in note for note in plan.component("wheels")["notes"])
    mirror.sent.clear()
    mirror.cuts = [10 * MIB]
    result = wanted.apply(env=SECRET)
    assert word(node) == "mirrored", result.explain()
    assert mirror.sent == [10 * MIB, size(mirror) - 10 * MIB]
    assert {asked["X-Mirror-Key"] for asked in mirror.asked} == {TOKEN}
    assert TOKEN not in result.stdout + result.stderr + result.explain()
    found = node.run(
        f"journalctl -q | grep -c {TOKEN}; grep -rlsF {TOKEN} /var/lib/gpuready /run /tmp /var/log", check=False
    )
    assert found.stdout.split() == ["0"]
    assert node.run(f"ls -d {WHEELS}", check=False).stdout == "" and leftovers(node) == []
    mirror.asked.clear()
    wanted.settled(env=SECRET)
    assert mirror.asked == []


@pytest.mark.fault("wrong-wheel")
def test_a_wheel_with_another_hash_is_refused(node: Host, mirror: Mirror, tmp_path: Path) -> None:
    before = word(node)
    wanted = node.with_spec(**served(mirror, tmp_path, "wrong"))
    (path,) = mirror.files
    sha256, other = hashlib.sha256(mirror.files[path]).hexdigest(), mirror.files[path] + b"x"
    mirror.files[path] = other
    told = problem(wanted.apply(code=1))
    assert sha256 in told and hashlib.sha256(other).hexdigest() in told and "nothing was kept" in told
    assert mirror.sent == [len(other)] and word(node) == before
    assert node.run(f"find {WHEELS} -type f", check=False).stdout == ""


@pytest.mark.fault("cut-wheel")
def test_the_fetch_goes_on_while_the_connection_is_away(node: Host, mirror: Mirror, tmp_path: Path) -> None:
    wanted = node.with_spec(**served(mirror, tmp_path, "alone"))
    ended: list[str] = []
    kill = "ps -eo pid=,args= | awk '/sshd(-session)?: gpu/ {print $1}' | tee /dev/stderr | xargs -r kill -9"
    mirror.look = lambda: ended.extend(node.run(kill, check=False).stderr.split())
    result = wanted.apply()
    mirror.look = lambda: None
    assert (word(node), len(mirror.asked)) == ("alone", 1) and ended, result.explain()


@pytest.mark.fault("full-disk")
@pytest.mark.parametrize("length", [True, False])
def test_a_wheel_that_is_too_large_fills_no_disk(node: Host, mirror: Mirror, tmp_path: Path, length: bool) -> None:
    node.run(f"mkdir -p {WHEELS} && mount -t tmpfs -o size=80m tmpfs {WHEELS}")
    wanted = node.with_spec(**served(mirror, tmp_path, "large", 100))
    mirror.length = length
    with receives(node, most=(8 if length else 60) * MIB):  # what the sockets of both sides hold
        told = problem(wanted.apply(code=1))
    mirror.length = True
    left = node.run(f"df -k --output=used {WHEELS}").stdout.split()[-1]
    node.run(f"umount {WHEELS}")
    assert f"{WHEELS}/" in told and "MiB free, which is too little for https://" in told and "df -h" in told
    assert int(left) < 1024


@pytest.mark.fault("full-disk")
def test_an_environment_without_room_is_told_before_pip_runs(node: Host, mirror: Mirror, tmp_path: Path) -> None:
    node.run(f"mkdir /opt/small && mount -t tmpfs -o size=40m tmpfs /opt/small && cp -a {ENV}/. /opt/small")
    told = problem(node.with_spec(**served(mirror, tmp_path, "large", env="/opt/small")).apply(code=1))
    node.run("umount /opt/small")
    assert "/opt/small has " in told and " MiB are needed" in told
