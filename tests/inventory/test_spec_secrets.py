"""Secrets: found late, shown never, and commands only with consent."""

import copy
import pickle
from pathlib import Path

import pytest

from gpuready.base.errors import SpecError, Where
from gpuready.inventory import secrets
from gpuready.inventory.hosts import load
from gpuready.inventory.secrets import Secret, resolve
from tests.command import write_hosts

HERE = Where("hosts.yaml", 7)


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_resolved", {})


def test_masked() -> None:
    secret = Secret("hunter2")
    assert secret.reveal() == "hunter2"
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
    assert copy.copy(secret) is secret
    with pytest.raises(TypeError, match="cannot be serialized"):
        pickle.dumps(secret)


def test_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_TEST_SECRET", "from-env")
    (tmp_path / "secret").write_text("from-file\n")
    assert resolve("env:GPUREADY_TEST_SECRET").reveal() == "from-env"
    assert resolve(f"file:{tmp_path}/secret", allow_exec=True).reveal() == "from-file"
    assert resolve("cmd:printf 'from cmd; $HOME'", allow_exec=True).reveal() == "from cmd; $HOME"
    assert resolve("http://proxy:3128").reveal() == "http://proxy:3128"


def test_consent_holds_for_the_process(tmp_path: Path) -> None:
    command = f"cmd:sh -c 'echo x >> {tmp_path}/runs; echo secret'"
    with pytest.raises(SpecError, match="only with --allow-exec"):
        resolve(command, where=HERE)
    resolve(command, allow_exec=True)
    assert resolve(command).reveal() == "secret"
    assert (tmp_path / "runs").read_text() == "x\n"


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("env:GPUREADY_TEST_NOT_SET", "is not set"),
        ("env:GPUREADY_TEST_EMPTY", "is empty"),
        ("env:GPUREADY_TEST_TWO", "one printable line"),
        ("file:/nowhere/secret", "No such file"),
        ("file:/", "not a regular file"),
        ("file:/dev/null", "not a regular file"),
        ("file:/dev/zero", "not a regular file"),
        ("cmd:false", "exited with 1"),
        ("cmd:/nowhere/command", "cannot run"),
        ("cmd:'", "cannot run"),
        ("cmd: ", "cannot run"),
        ("cmd:true", "is empty"),
    ],
)
def test_unresolvable(ref: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_TEST_EMPTY", "")
    monkeypatch.setenv("GPUREADY_TEST_TWO", "hunter2\nhunter3")
    with pytest.raises(SpecError) as caught:
        resolve(ref, allow_exec=True, where=HERE)
    assert says in str(caught.value) and str(caught.value).startswith("hosts.yaml:7: ")
    assert repr(ref) in str(caught.value) and "hunter" not in str(caught.value)


def proxy(folder: Path, reference: str) -> str:
    text = f"all:\n  hosts: {{a: }}\n  vars:\n    gpuready: {{toolkit: {{repo: {{proxy: '{reference}'}}}}}}\n"
    return write_hosts(folder, text)


def test_in_an_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proxy").write_text("http://user:hunter2@proxy:3128\n")
    entry = load([proxy(tmp_path, "file:proxy")], allow_read=[f"file:{tmp_path}/proxy"]).chosen[0]
    reference = entry.spec.toolkit.repo.proxy
    assert reference == f"file:{tmp_path}/proxy" and "hunter2" not in repr(entry)
    assert resolve(reference).reveal() == "http://user:hunter2@proxy:3128"
    monkeypatch.setenv("GPUREADY_TEST_SECRET", 'hunter2";')
    with pytest.raises(Exception, match=r"hosts.yaml:4: toolkit.repo.proxy: the secret is not a plain pro") as caught:
        load([proxy(tmp_path, "env:GPUREADY_TEST_SECRET")])
    assert "hunter2" not in str(caught.value)
    assert load([proxy(tmp_path, "cmd:echo http://p:1")], allow_exec=True)
