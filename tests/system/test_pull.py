"""The pull way on a machine: systemd runs the printed units, which fetch the spec, apply it, and send the result.

gpuready runs on the machine with this Python, because the machine has none.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from gpuready.contract.image_boot import FILES
from gpuready.contract.node_record import PATH as RECORD
from tests.lab import network
from tests.secure import Secure, Signer
from tests.system.faults import footprint, hold_dpkg, let_go, lock_is_free, until
from tests.system.harness import GPUREADY, ROOT
from tests.system.host import Host, Hosts

UNIT = "gpuready-pull.service"
TOKEN = "r3sult-t0ken"


def put_gpuready(node: Host) -> None:
    """This checkout, what it needs and this Python, at the places where they are here."""
    names, wanted = set(), ["gpuready"]
    while wanted:
        name = wanted.pop()
        if name in names:
            continue
        names.add(name)
        found = metadata.distribution(name)
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if path.is_file() and "__pycache__" not in path.parts:
                node.put(path, str(path))
        requirements = [Requirement(text) for text in found.requires or ()]
        wanted += [one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    base, here = Path(sys.base_prefix), Path(sys.prefix)
    library = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    left_out = shutil.ignore_patterns("site-packages", "test", "__pycache__", "config-*", "idlelib", "ensurepip")
    shutil.copytree(base / library, node.root / f"{base}/{library}".lstrip("/"), ignore=left_out, dirs_exist_ok=True)
    for path in (Path(sys.executable).resolve(), *base.glob("lib/libpython*"), here / "pyvenv.cfg"):
        node.put(path, str(path))
    for part in ("deploys", "templates"):
        node.put(ROOT / part, str(ROOT / part))
    python = node.root / f"{here}/bin/python".lstrip("/")
    python.parent.mkdir(parents=True, exist_ok=True)
    python.symlink_to(Path(sys.executable).resolve())
    node.script("/opt/gpuready/bin/gpuready", f'#!/bin/sh\nexec {here}/bin/python -I -m gpuready "$@"\n')


@pytest.fixture(scope="module")
def booted(shared: Hosts) -> Host:
    return shared()


@pytest.fixture(scope="module")
def site(booted: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """The address of the server goes with the last machine."""
    server = Secure(tmp_path_factory.mktemp("site"), network.SERVER)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return Signer(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def node(booted: Host, site: Secure, ours: Signer) -> Host:
    machine = booted
    machine.install("git openssh-client")
    put_gpuready(machine)
    machine.put(site.certificate, "/etc/gpuready/site.pem")
    machine.put(ours.allowed, "/etc/gpuready/allowed_signers")
    trust = "SSL_CERT_FILE=/etc/gpuready/site.pem\nGIT_SSL_CAINFO=/etc/gpuready/site.pem\n"
    header = f"GPUREADY_OUTPUT_HEADER=Authorization: Bearer {TOKEN}\n"
    (machine.root / "etc/gpuready/pull.env").write_text(trust + header)
    (machine.root / "etc/gpuready/pull.env").chmod(0o600)
    return machine


class Pulled:
    """A node that pulls from a site."""

    def __init__(self, node: Host, site: Secure) -> None:
        self.node, self.site = node, site
        self.result = f"/results/{node.run('hostname').stdout.strip()}.json"

    def spec(self, timeout: int) -> bytes:
        """A spec that differs by one value of NCCL."""
        text = self.node.where(nccl={"extra": {"NCCL_IB_TIMEOUT": str(timeout)}}).read_text()
        spec = yaml.safe_load(text)["all"]["vars"]["gpuready"]
        del spec["verify"]  # no container is started
        return yaml.safe_dump({"all": {"vars": {"gpuready": spec}}}).encode()

    def serve(self, data: bytes) -> str:
        """Serve a spec, and return its pinned URL."""
        self.site.files["/hosts.yaml"] = data
        return f"{self.site.url}/hosts.yaml#sha256={hashlib.sha256(data).hexdigest()}"

    def install(self, url: str) -> None:
        """The timer waits for a random time of up to ten days."""
        words = [GPUREADY, "render", "pull", "--spec", url, "--results", f"{self.site.url}/results", "--every", "20d"]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        self.node.run("sh -s", stdin=printed)

    def starts(self, url: str = "") -> dict[str, Any]:
        """The result that one start of the service sends."""
        if url:
            self.install(url)
        self.site.files.pop(self.result, None)
        self.node.run(f"systemctl start {UNIT}", check=False)
        return self.sent()

    def sent(self) -> dict[str, Any]:
        log = self.node.run(f"journalctl -q --no-pager -o cat -u {UNIT} | tail -40").stdout
        assert self.result in self.site.files, log
        found: dict[str, Any] = json.loads(self.site.files[self.result])
        return found

    def timeout(self) -> str:
        return self.node.run("grep NCCL_IB_TIMEOUT /etc/nccl.conf", check=False).stdout.strip()


@pytest.fixture(scope="module")
def pulled(node: Host, site: Secure) -> Pulled:
    return Pulled(node, site)


@pytest.mark.promise
def test_a_node_fetches_its_spec_applies_it_and_reports(
    pulled: Pulled, node: Host, site: Secure, tmp_path: Path
) -> None:
    pulled.install(pulled.serve(pulled.spec(22)))
    units = "/etc/systemd/system/gpuready-pull.service /etc/systemd/system/gpuready-pull.timer"
    done = node.run(f"systemd-analyze verify {units}", check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert node.run("systemctl is-enabled gpuready-pull.timer").stdout.strip() == "enabled"
    assert node.run("systemctl show -P RandomizedDelayUSec gpuready-pull.timer").stdout.strip() == "1w 3d"
    assert pulled.result not in site.files, "the timer waits"

    found = pulled.starts()
    assert found["hosts"]["@local"]["outcome"] == "changed", found
    assert pulled.timeout() == "NCCL_IB_TIMEOUT=22"
    assert ("PUT", pulled.result, f"Bearer {TOKEN}") in site.asked
    failed = [
        f"{each['id']}: {each['summary']}" for each in found["hosts"]["@local"]["checks"] if each["status"] == "fail"
    ]
    result = node.run(f"systemctl show -P Result {UNIT}").stdout.strip()
    assert not failed, "\n".join(failed)
    assert (found["exit_code"], result) == (0, "success")
    seen = node.run(f"journalctl -q -o cat | grep -c {TOKEN}; systemctl cat {UNIT} | grep -c {TOKEN}", check=False)
    assert seen.stdout.split() == ["0", "0"]

    # The timer starts the service, now without the delay.
    node.run(
        "mkdir -p /etc/systemd/system/gpuready-pull.timer.d && cd /etc/systemd/system/gpuready-pull.timer.d &&"
        " printf '[Timer]\\nRandomizedDelaySec=0\\n' >now.conf && systemctl daemon-reload"
    )
    site.files.pop(pulled.result)
    node.run("systemctl restart gpuready-pull.timer")
    until(lambda: pulled.result in site.files, 120)
    assert pulled.sent()["hosts"]["@local"]["outcome"] == "ok"
    node.run("rm -r /etc/systemd/system/gpuready-pull.timer.d; systemctl daemon-reload")

    (tmp_path / "results").mkdir()
    (tmp_path / pulled.result.lstrip("/")).write_bytes(site.files[pulled.result])
    report = node.gpuready("report", str(tmp_path / "results"), code=0)
    assert [host["outcome"] for host in report.document["hosts"].values()] == ["ok"]


@pytest.mark.fault("wrong-spec")
def test_a_spec_that_is_not_the_expected_one_changes_nothing(
    pulled: Pulled, node: Host, site: Secure, ours: Signer, tmp_path: Path
) -> None:
    assert pulled.starts(pulled.serve(pulled.spec(22)))["exit_code"] == 0
    before, changed = set(footprint(node)), pulled.spec(18)
    url = pulled.serve(pulled.spec(22))
    site.files["/hosts.yaml"] = changed
    found = pulled.starts(url)
    assert (found["exit_code"], found["hosts"]) == (5, {})
    expected = hashlib.sha256(pulled.spec(22)).hexdigest()
    assert f"the SHA-256 is {hashlib.sha256(changed).hexdigest()}, expected {expected}" in found["error"]["message"]

    other = Signer(tmp_path, "other")
    site.files["/hosts.yaml.sig"] = other.sign(changed)
    found = pulled.starts(f"{site.url}/hosts.yaml#signers=/etc/gpuready/allowed_signers")
    assert "expected a signature by a key in /etc/gpuready/allowed_signers, got: " in found["error"]["message"]

    site.repositories = tmp_path
    commit = other.commit(tmp_path / "fleet", **{"hosts.yaml": changed.decode()})
    git = f"git+{site.url}/git/fleet/.git@main#path=hosts.yaml&signers=/etc/gpuready/allowed_signers"
    assert f"expected commit {commit} to be signed by a key in" in pulled.starts(git)["error"]["message"]
    assert pulled.timeout() == "NCCL_IB_TIMEOUT=22"
    new = {path for path in set(footprint(node)) ^ before if "gpuready-pull" not in str(path)}
    assert new == set()

    site.files["/hosts.yaml.sig"] = ours.sign(changed)
    pulled.starts(f"{site.url}/hosts.yaml#signers=/etc/gpuready/allowed_signers")
    assert pulled.timeout() == "NCCL_IB_TIMEOUT=18"
    ours.commit(tmp_path / "fleet", **{"hosts.yaml": pulled.spec(20).decode()})
    pulled.starts(git)
    assert pulled.timeout() == "NCCL_IB_TIMEOUT=20"


def test_a_run_that_is_killed_leaves_no_lock(pulled: Pulled, node: Host, site: Secure) -> None:
    pulled.install(pulled.serve(pulled.spec(22)))
    packages = node.run("dpkg-query -Wf '${Package} ' '*nvidia-container*'").stdout
    node.run(f"apt-get -qq remove --allow-change-held-packages {packages} >/dev/null")
    waiting = hold_dpkg(node)
    node.run(f"systemctl start --no-block {UNIT}")
    until(waiting.exists, 120)
    assert not lock_is_free(node)
    node.run(f"systemctl kill --signal=KILL {UNIT}")
    let_go(node)
    steps = "systemctl list-units --no-legend 'gpuready-*' | grep -v gpuready-pull"
    until(lambda: lock_is_free(node) and not node.run(steps, check=False).stdout, 120)
    assert node.run(f"systemctl show -P Result {UNIT}").stdout.strip() == "signal"
    (node.root / "etc/apt/apt.conf.d/99held").unlink()
    assert pulled.starts()["hosts"]["@local"]["outcome"] in ("ok", "changed")


def test_an_image_of_a_running_machine_starts_nothing(node: Host) -> None:
    """As Packer makes one over SSH. It is the last test of this machine, which loses its host keys."""
    node.run(f"rm -f {RECORD}")
    node.put(node.where(runtimes={"docker": {"default_runtime": True}}), "/etc/gpuready/image.yaml")
    units = "docker.service containerd.service ssh.service gpuready-image-boot.service nvidia-cdi-refresh.service"
    look = f"systemctl show -p Id,ActiveState,InvocationID {units}; ls /run; docker info --format "
    look += "'{{.DefaultRuntime}}'"
    policy = node.script("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n")
    before = node.run(look).stdout
    words = "-i /etc/gpuready/image.yaml -i @local --limit @local --image --yes --output json"
    found = json.loads(node.run(f"/opt/gpuready/bin/gpuready apply {words}").stdout)["hosts"]["@local"]
    assert [item["name"] for item in found["components"] if item["changed"]] == ["docker"]
    assert '"default-runtime": "nvidia"' in (node.root / "etc/docker/daemon.json").read_text()
    assert found["first_boot"]["pending"] and node.run(look).stdout == before and "runc" in before
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"  # another one was in its place during the run
    assert [path for path in FILES if not (node.root / path.lstrip("/")).exists()] == []
