"""Connection settings: host keys are strict, and the time to connect."""

from pathlib import Path

from gpuready.inventory.hosts import Connection
from gpuready.operations.connection import host_data


def test_the_inventory_cannot_make_host_keys_lax(tmp_path: Path) -> None:
    connection = Connection("10.0.0.1", options=(("StrictHostKeyChecking", "no"),))
    data = host_data(connection)
    assert data["ssh_strict_host_key_checking"] == "yes"
    assert "StrictHostKeyChecking no" not in Path(data["ssh_config_file"]).read_text()


def test_the_time_to_connect() -> None:
    assert "timeout" not in host_data(Connection("n1"))["ssh_paramiko_connect_kwargs"]
    assert host_data(Connection("n1", timeout=60))["ssh_paramiko_connect_kwargs"]["timeout"] == 60
