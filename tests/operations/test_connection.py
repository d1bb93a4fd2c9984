"""Connection settings: host keys are strict, and the time to connect."""

import runpy
from pathlib import Path

import pytest

from gpuready.inventory.hosts import Connection, HostEntry, load
from gpuready.operations.connection import explain, host_data
from gpuready.operations.knownhosts import Judgement, Status
from gpuready.operations.ssh import HostKeyRefused
from tests.command import write_hosts
from tests.pages import ROOT


def test_the_inventory_cannot_make_host_keys_lax(tmp_path: Path) -> None:
    connection = Connection("10.0.0.1", options=(("StrictHostKeyChecking", "no"),))
    data = host_data(connection)
    assert data["ssh_strict_host_key_checking"] == "yes"
    assert "StrictHostKeyChecking no" not in Path(data["ssh_config_file"]).read_text()


def test_the_time_to_connect() -> None:
    assert "timeout" not in host_data(Connection("n1"))["ssh_paramiko_connect_kwargs"]
    assert host_data(Connection("n1", timeout=60))["ssh_paramiko_connect_kwargs"]["timeout"] == 60


def test_a_relative_known_hosts_is_named_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collection runs gpuready in the folder of the playbook, and the fix is run somewhere else."""

    def entry(value: str) -> HostEntry:
        arguments = f"{{gpuready: {{}}, ansible_ssh_common_args: -o UserKnownHostsFile={value}}}"
        (found,) = load([write_hosts(tmp_path, f"all: {{hosts: {{gpu01: {arguments}}}}}\n")]).chosen
        return found

    def fix(value: str, status: Status) -> str:
        return explain(entry(value), HostKeyRefused("gpu01", Judgement(status))).remedy

    monkeypatch.chdir(tmp_path)
    note = "known_hosts comes from the inventory"
    assert entry("known_hosts").notes == (f"{note}, but is not there: {tmp_path}/known_hosts",)
    (tmp_path / "known_hosts").touch()
    assert entry("known_hosts").notes == (f"{note}: {tmp_path}/known_hosts",)
    assert entry("/dev/null").notes == (f"{note}, but is not there: /dev/null",)
    assert f"shows and stores it in {tmp_path}/known_hosts (run it in {tmp_path});" in fix("known_hosts", Status.new)
    assert f"(or ssh-keygen -R 'gpu01' -f {tmp_path}/known_hosts)" in fix("known_hosts", Status.changed)
    assert "shows and stores it in /etc/known;" in fix("/etc/known", Status.new)


def test_pyinfras_example_takes_an_inventory_of_another_folder(tmp_path: Path) -> None:
    path = write_hosts(tmp_path, "all: {hosts: {gpu01: {gpuready: {}}}}\n")
    example = tmp_path / "pyinfra" / "example.py"
    example.parent.mkdir()
    example.write_text((ROOT / "inventories/example.py").read_text().replace("example.yaml", f"../{Path(path).name}"))
    assert [name for name, _ in runpy.run_path(str(example))["hosts"]] == ["gpu01"]
