"""An inventory from someone else asks for secrets of the controller, for a host of its author."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from gpuready.inventory.extra import Extra
from gpuready.inventory.hosts import load
from tests.command import gpuready, write_hosts
from tests.hostile.server import Server

ENVIRONMENT = {"AWS_SECRET": "hunter2", "GPUREADY_MADE_FOR_THIS": "hunter3"}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(paramiko.ECDSAKey.generate())
    yield made
    made.close()


def inventory(folder: Path, server: Server, reference: str) -> str:
    """Hosts as their author would write them: the host, its key and the wish."""
    key = folder / "key"
    if not key.exists():
        paramiko.ECDSAKey.generate().write_private_key_file(str(key))
    known = f"[127.0.0.1]:{server.port} {server.key.get_name()} {server.key.get_base64()}\n"
    (folder / "known_hosts").write_text(known)
    return write_hosts(
        folder,
        f"""all:
  vars:
    gpuready: {{}}
    ansible_host: 127.0.0.1
    ansible_port: {server.port}
    ansible_user: steals
    ansible_ssh_private_key_file: {key}
    ansible_ssh_common_args: -o UserKnownHostsFile={folder}/known_hosts
    ansible_become_password: {reference}
  hosts:
    gpu1:
""",
    )


@pytest.mark.fault("stolen-secret")
@pytest.mark.parametrize(
    ("reference", "options", "sent"),
    [
        ("env:AWS_SECRET", (), None),
        ("file:FOLDER/token", (), None),
        ("env:AWS_SECRET", ("--allow-read", "env:AWS_SECRET_OTHER"), None),
        ("file:FOLDER/token", ("--allow-read", "file:FOLDER"), None),
        ("env:AWS_SECRET", ("--allow-read", "env:AWS_SECRET"), b"hunter2\n"),
        ("file:FOLDER/token", ("--allow-read", "file:FOLDER/../FOLDER_NAME/token"), b"hunter4\n"),
        ("env:AWS_SECRET", ("--allow-exec",), b"hunter2\n"),
        ("env:GPUREADY_MADE_FOR_THIS", (), b"hunter3\n"),
    ],
)
def test_an_inventory_gets_only_secrets_that_the_command_line_allows(
    reference: str, options: tuple[str, ...], sent: bytes | None, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("hunter4\n")
    here = {"FOLDER_NAME": tmp_path.name, "FOLDER": str(tmp_path)}
    for name, value in here.items():
        reference, options = reference.replace(name, value), tuple(word.replace(name, value) for word in options)
    path = inventory(tmp_path, server, reference)
    environment = {**os.environ, **ENVIRONMENT, "HOME": str(tmp_path)}
    done = gpuready("plan", "-i", path, "--output", "json", *options, env=environment)
    document = json.loads(done.stdout)
    assert "hunter" not in done.stdout + done.stderr
    if sent is None:
        assert (done.returncode, server.accepted, server.stolen) == (5, 0, [])
        message = document["error"]["message"]
        assert f"{path}:9: " in message and f"--allow-read {reference}" in message
    else:
        assert done.returncode == 4 and server.stolen == [sent]
        assert document["hosts"]["gpu1"]["notes"] == [f"known_hosts comes from the inventory: {tmp_path}/known_hosts"]


def test_a_reference_on_the_command_line_needs_no_other_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_FOR_THIS_PROXY", "http://p:1")
    path = write_hosts(
        tmp_path, "all: {hosts: {a: {gpuready: {toolkit: {repo: {proxy: 'env:ONLY_FOR_THIS_PROXY'}}}}}}\n"
    )
    with pytest.raises(Exception, match=r"hosts.yaml:1: toolkit.repo.proxy: .* --allow-read env:ONLY_FOR_THIS_PROXY"):
        load([path])
    given = [Extra("toolkit.repo.proxy=env:ONLY_FOR_THIS_PROXY")]
    assert load([path], extra=given).chosen[0].spec.toolkit.repo.proxy == "env:ONLY_FOR_THIS_PROXY"


def test_what_may_be_allowed_is_a_reference(tmp_path: Path) -> None:
    done = gpuready("plan", "-i", write_hosts(tmp_path), "--allow-read", "AWS_SECRET")
    assert done.returncode == 64 and "--allow-read: 'AWS_SECRET' is not a reference" in done.stderr
