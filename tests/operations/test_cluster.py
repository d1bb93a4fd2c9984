"""What leaves this machine for the workers of a cluster, and to whom."""

import pickle
import re
import types
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import dask.config
import distributed  # noqa: F401  # its settings
import pytest

from gpuready import __version__
from gpuready.base.errors import GpureadyError, SpecError, UsageError
from gpuready.inventory import secrets
from gpuready.inventory.hosts import load
from gpuready.inventory.secrets import Secret
from gpuready.run.cluster import check_address, chunks, same_version
from tests.command import write_hosts


@pytest.mark.parametrize(
    "address", ["10.0.0.5:8786", "tcp://10.0.0.5:8786", "tcp://dask.example:8786", "ws://[fd00::1]:8786"]
)
def test_another_machine_needs_tls(address: str) -> None:
    with pytest.raises(UsageError, match="without TLS"):
        check_address(address)
    check_address(address, plain=True)


@pytest.mark.parametrize(
    "address", ["tls://10.0.0.5:8786", "wss://dask.example:443", "127.0.0.1:8786", "tcp://[::1]:1"]
)
def test_tls_and_this_machine_are_accepted(address: str) -> None:
    check_address(address)


def test_the_guide_names_settings_that_dask_has() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/fleets.md").read_text("utf-8")
    exported = dict(re.findall(r"^export (DASK_\w+)=(\S+)$", guide, re.M))
    found = dask.config.collect_env(exported)["distributed"]["comm"]
    assert found == {
        "require_encryption": True,
        "tls": {"ca_file": "ca.pem", "client": {"cert": "gpuready.pem", "key": "gpuready-key.pem"}},
    }
    known = dask.config.get("distributed.comm")
    assert {"require-encryption", "tls"} <= known.keys() and {"ca-file", "client"} <= known["tls"].keys()


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ({}, "the Dask cluster has no worker"),
        ({"tls://w1:1": __version__, "tls://w2:1": "0.0.9"}, "worker tls://w2:1 has gpuready 0.0.9, and this is"),
        ({"tls://w1:1": PackageNotFoundError("gpuready")}, "worker tls://w1:1 has no gpuready, and this is"),
    ],
)
def test_workers_have_the_same_release(workers: dict[str, object], message: str) -> None:
    client = types.SimpleNamespace(run=lambda function, *words, on_error: workers)
    with pytest.raises(GpureadyError, match=message):
        same_version(client)
    same_version(types.SimpleNamespace(run=lambda function, *words, on_error: {"tls://w1:1": __version__}))


def test_a_reference_travels_and_the_secret_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "sudo"
    secret.write_text("hunter2-in-clear")
    where = write_hosts(
        tmp_path, f"all: {{hosts: {{n1: {{gpuready: {{}}, ansible_become_password: 'file:{secret}'}}}}}}\n"
    )
    monkeypatch.setattr(secrets, "_resolved", {})
    hosts = pickle.dumps(load([where], allow_exec=True).chosen)
    assert b"hunter2" not in hosts and f"file:{secret}".encode() in hosts
    assert secrets.used_references() == (f"file:{secret}",)

    def arrives() -> str:
        """What a worker reads, as gpuready.run.process does: it may have another secret there, or none."""
        monkeypatch.setattr(secrets, "_resolved", {})
        secrets.resolve(f"file:{secret}", allow_exec=True)
        password = pickle.loads(hosts)[0].connection.become_password
        return str(password.reveal())

    secret.write_text("of-the-worker")
    assert arrives() == "of-the-worker"
    secret.unlink()
    with pytest.raises(SpecError, match="cannot be read"):
        arrives()


def test_a_typed_password_stays_here() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("typed"))


@pytest.mark.parametrize(("hosts", "threads"), [(1, 4), (7, 2), (64, 1), (65, 1), (1000, 3), (3, 8)])
def test_chunks_are_a_partition(hosts: int, threads: int) -> None:
    names = [f"n{number}" for number in range(hosts)]
    parts = chunks(names, threads)
    assert [name for part in parts for name in part] == names
    assert all(1 <= len(part) <= 64 for part in parts) and len(parts) >= min(hosts, threads)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
