"""Connection settings: host keys strict, and only of the kinds that known_hosts can judge."""

from pathlib import Path

import pytest

from gpuready.inventory.hosts import Connection
from gpuready.operations.connection import host_data

KEY = "AAAAB3NzaC1yc2EAAAADAQABAAAAgQ=="


def algorithms(known: Path, text: str, port: int | None = None) -> list[str]:
    known.write_text(text)
    connection = Connection("10.0.0.1", port=port, options=(("UserKnownHostsFile", str(known)),))
    extra = host_data(connection)["ssh_paramiko_connect_kwargs"]
    return list(extra.get("disabled_algorithms", {"keys": []})["keys"])


@pytest.mark.parametrize(
    ("text", "port", "asked"),
    [
        (f"10.0.0.1 ssh-rsa {KEY}\n", None, {"rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"}),
        (f"10.0.0.1 ssh-ed25519 {KEY}\n10.0.0.1 ssh-rsa {KEY}\n", None, {"ssh-ed25519", "rsa-sha2-512"}),
        (f"[10.0.0.1]:2222 ssh-ed25519 {KEY}\n", 2222, {"ssh-ed25519"}),
    ],
)
def test_only_known_kinds_of_host_keys_are_asked_for(
    text: str, port: int | None, asked: set[str], tmp_path: Path
) -> None:
    off = algorithms(tmp_path / "known", text, port)
    assert not asked & set(off)
    assert "ecdsa-sha2-nistp256" in off


def test_a_host_that_nobody_knows_may_offer_any_kind(tmp_path: Path) -> None:
    assert algorithms(tmp_path / "other", f"10.0.0.2 ssh-rsa {KEY}\n") == []


def test_the_inventory_cannot_make_host_keys_lax(tmp_path: Path) -> None:
    connection = Connection("10.0.0.1", options=(("StrictHostKeyChecking", "no"),))
    data = host_data(connection)
    assert data["ssh_strict_host_key_checking"] == "yes"
    assert "StrictHostKeyChecking no" not in Path(data["ssh_config_file"]).read_text()


def test_the_time_to_connect() -> None:
    assert "timeout" not in host_data(Connection("n1"))["ssh_paramiko_connect_kwargs"]
    assert host_data(Connection("n1", timeout=60))["ssh_paramiko_connect_kwargs"]["timeout"] == 60
