"""``--ansible``: ansible-inventory reads the files, with plugins, programs and the vault; its output is bounded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpuready.base.errors import InventoryError, SpecErrors
from gpuready.inventory import programs
from gpuready.inventory.hosts import HostEntry, load
from tests.command import Exits

PLUGIN = "plugin: constructed\nstrict: true\ngroups: {big: gpus | int > 4}\n"
PASSWORD = "p w'$x"
VARS = f'gpuready: {{ldso: "off"}}\nansible_become_password: "{PASSWORD}"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An inventory directory with an encrypted file, a plugin and a program; without this machine's settings."""
    pytest.importorskip("ansible", reason="ansible-core")
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    for name, value in (("ANSIBLE_CONFIG", f"{tmp_path}/ansible.cfg"), ("HOME", str(tmp_path)), ("LC_ALL", "C.UTF-8")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    inventory = tmp_path / "inventory"
    (inventory / "group_vars").mkdir(parents=True)
    (inventory / "10-hosts.ini").write_text("[train]\ngpu1 ansible_host=10.0.0.1 gpus=8\ngpu2 gpus=4\n")
    program = inventory / "20-program"
    program.write_text('#!/bin/sh\necho \'{"train": ["gpu3"], "_meta": {"hostvars": {"gpu3": {"gpus": 1}}}}\'\n')
    program.chmod(0o755)
    (inventory / "30.yml").write_text(PLUGIN)
    (tmp_path / "pass").write_text("pw\n")
    encrypted = inventory / "group_vars" / "train.yml"
    encrypted.write_text(VARS)
    vault = [Path(sys.executable).with_name("ansible-vault"), "encrypt", "--vault-password-file", tmp_path / "pass"]
    subprocess.run([*vault, encrypted], check=True, capture_output=True)
    return inventory


def chosen(*sources: Path | str) -> dict[str, HostEntry]:
    return {entry.name: entry for entry in load(list(map(str, sources)), ansible=True, allow_exec=True).chosen}


def test_plugins_programs_and_the_vault(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(folder.parent / "pass"))
    found = chosen(folder, "root@gpu9,")
    assert list(found) == ["gpu9", "gpu1", "gpu2", "gpu3"]
    assert found["gpu1"].groups == ("big", "train") and found["gpu2"].groups == ("train",)
    assert found["gpu1"].connection.address == "10.0.0.1" and found["gpu3"].spec.ldso == "off"
    password = found["gpu1"].connection.become_password
    assert password is not None and password.reveal() == PASSWORD
    assert str(found["gpu1"].given.where).startswith(f"ansible-inventory -i {folder}:")


def test_without_the_password_of_the_vault(folder: Path) -> None:
    with pytest.raises(InventoryError, match="no vault secrets found") as caught:
        chosen(folder)
    assert caught.value.remedy == "set ANSIBLE_VAULT_PASSWORD_FILE"
    with pytest.raises(SpecErrors, match=r"(?s)encrypted with ansible-vault.*--ansible --allow-exec"):
        load([str(folder / "10-hosts.ini"), "gpu1,"])


def test_a_file_that_ansible_cannot_read_is_an_error(folder: Path) -> None:
    broken = folder.parent / "broken.ini"
    broken.write_text("[a\n")
    with pytest.raises(InventoryError, match=r"(?s)ansible-inventory: exit 1: .*broken\.ini"):
        chosen(broken)


def instead(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    """A program in place of ansible-inventory, and an inventory."""
    program = folder / "ansible-inventory"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python3"))
    (folder / "hosts.yaml").write_text("all:\n")
    return folder / "hosts.yaml"


def printing(hostvars: dict[str, object]) -> str:
    document = {"_meta": {"hostvars": {"a": hostvars}}, "all": {"hosts": ["a"]}}
    return f"cat <<'EOF'\n{json.dumps(document)}\nEOF"


def test_what_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f'echo "$* $ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED" >{tmp_path}/asked; ' + printing({"gpuready": {}})
    source = instead(tmp_path, monkeypatch, body)
    assert list(chosen(source)) == ["a"]
    assert (tmp_path / "asked").read_text() == f"--inventory={source} --list --export True\n"


def test_text_that_ansible_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = {"gpuready": {"ldso": {"__ansible_unsafe": "off"}}, "ansible_user": {"__ansible_unsafe": "ops"}}
    entry = chosen(instead(tmp_path, monkeypatch, printing(marked)))["a"]
    assert entry.spec.ldso == "off" and entry.connection.user == "ops"


@pytest.mark.parametrize("password", ["{{ hunter2 }}", "hunter2\n"])
def test_a_password_that_cannot_be_used_is_not_shown(
    password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = instead(tmp_path, monkeypatch, printing({"gpuready": {}, "ansible_become_password": password}))
    with pytest.raises(SpecErrors, match="ansible_become_password") as caught:
        chosen(source)
    assert "hunter2" not in str(caught.value)


def test_it_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = instead(tmp_path, monkeypatch, "")
    (tmp_path / "ansible-inventory").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InventoryError, match="ansible-inventory is not installed") as caught:
        chosen(source)
    assert "pip install ansible-core" in caught.value.remedy


def test_bytes_and_time_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InventoryError, match="printed more than 5 MB"):
        chosen(instead(tmp_path, monkeypatch, "cat /dev/zero"))
    monkeypatch.setattr(programs, "TIMEOUT", 2)
    source = instead(tmp_path, monkeypatch, f"trap '' TERM; echo $$ >{tmp_path}/pid; sleep 1000; true")
    with pytest.raises(InventoryError, match="took longer than 2 s"):
        chosen(source)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists(), "it still runs"


def test_it_needs_allow_exec(exits: Exits) -> None:
    assert "--allow-exec" in exits(64, "inventory", "-i", "hosts.yaml", "--ansible").err
