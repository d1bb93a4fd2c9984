"""``gpuready inventory``: what an inventory says, without a connection."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.cli.app import run
from tests.command import Exits, imported, write_hosts

HOSTS = """all:
  vars:
    gpuready: {toolkit: {hold: false}}
  hosts:
    db01: {gpuready: null}
  children:
    train:
      hosts:
        gpu[01:02]: {ansible_user: admin}
        gpu03:
          ansible_host: "fd00::3"
          ansible_port: 2222
          gpuready:
            hardware: {gpus: 8}
            toolkit: {repo: {proxy: "env:GPUREADY_TEST_INVENTORY_PROXY"}}
"""
OTHERS = "all: {hosts: {gpu01: {gpuready: {}}, web1: {ansible_port: x}}}\n"


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GPUREADY_TEST_INVENTORY_PROXY", "http://me:hunter2@proxy:3128")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "train.yml").write_text("gpuready:\n  runtimes:\n    docker: {shm_size: 8g}\n")
    return write_hosts(tmp_path, HOSTS)


def listed(argv: list[str], exits: Exits) -> dict[str, Any]:
    found = exits(0, "inventory", *argv, "--output", "json").document
    assert found["verb"] == "inventory"
    return found["hosts"]  # type: ignore[no-any-return]


def test_a_password_that_is_not_set_is_a_note(inventory: str, exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a connection nobody needs it; plan does."""
    monkeypatch.delenv("GPUREADY_NO_SUCH_PASSWORD", raising=False)
    path = Path(inventory)
    path.write_text("all: {hosts: {a: {gpuready: {}, ansible_become_password: 'env:GPUREADY_NO_SUCH_PASSWORD'}}}\n")
    (note,) = listed(["-i", inventory], exits)["a"]["notes"]
    assert note.startswith(
        f"{path}:1: ansible_become_password is env:GPUREADY_NO_SUCH_PASSWORD, which plan and apply need: "
    )
    told = exits(0, "plan", "-i", inventory, "--list-hosts")
    assert told.out == "a\n" and "env:GPUREADY_NO_SUCH_PASSWORD" in told.err
    assert run(["plan", "-i", inventory]) == 5


def test_many_groups_are_shortened_for_people_only(tmp_path: Path, exits: Exits) -> None:
    groups = [f"service{n:03}" for n in range(200)]
    members = "".join(f"    {name}: {{hosts: {{gpu1: }}}}\n" for name in groups)
    path = write_hosts(
        tmp_path, f"all:\n  vars: {{gpuready: {{}}}}\n  children:\n{members}    {'x' * 60}: {{hosts: {{gpu2: }}}}\n"
    )
    told = exits(0, "inventory", "-i", path).out
    assert "service000, service001, service002 and 197 more" in told
    assert f" {'x' * 60}  " in told
    assert max(map(len, told.splitlines())) < 120 + len(path)
    assert listed(["-i", path], exits)["gpu1"]["inventory"]["groups"] == groups


def test_ansibles_localhost_is_skipped_with_the_reason(tmp_path: Path, exits: Exits) -> None:
    text = "all:\n  vars: {gpuready: {}}\n  hosts: {gpu1: , localhost: {ansible_connection: local}, 'gpu2': }\n"
    told = exits(0, "inventory", "-i", write_hosts(tmp_path, text)).out
    assert "skipped  localhost: ansible_connection: local; gpuready reaches this machine only as -i @local\n" in told
    assert "add `gpuready: {}`" not in told and "2 hosts chosen, 1 skipped" in told
    other = "all:\n  hosts: {gpu1: {gpuready: {}}, web: , localhost: {ansible_connection: local}}\n"
    assert "fix:     add `gpuready: {}`" in exits(0, "inventory", "-i", write_hosts(tmp_path, other)).out


def test_every_value_has_its_place(inventory: str, exits: Exits) -> None:
    host = listed(["-i", inventory], exits)["gpu03"]["inventory"]
    beside = f"{Path(inventory).parent}/group_vars/train.yml"
    assert host["settings"] == [
        {"key": "hardware.gpus", "value": 8, "where": f"{inventory}:14"},
        {"key": "runtimes.docker.shm_size", "value": "8g", "where": f"{beside}:3"},
        {"key": "toolkit.hold", "value": False, "where": f"{inventory}:3"},
        {"key": "toolkit.repo.proxy", "value": "env:GPUREADY_TEST_INVENTORY_PROXY", "where": f"{inventory}:15"},
    ]
    spec = host["spec"]
    assert (spec["hardware"]["gpus"], spec["toolkit"]["hold"], spec["memlock"]) == (8, False, "auto")
    assert (host["address"], host["user"], host["port"], host["groups"]) == ("fd00::3", None, 2222, ["train"])
    assert host["where"] == f"{inventory}:10"


def test_the_table_shows_shared_values_once(inventory: str, tmp_path: Path, exits: Exits) -> None:
    told = exits(0, "inventory", "-i", inventory).out
    assert "gpu01  admin@gpu01" in told and "gpu03  [fd00::3]:2222" in told and "hunter2" not in told
    assert told.count("gpu[01-02]: defaults, and") == 1 and told.count("8g") == 2
    assert told.endswith("4 hosts chosen, 0 skipped\n")
    document = exits(0, "inventory", "-i", inventory, "--output", "json").document
    (tmp_path / "inventory.json").write_text(json.dumps(document))
    assert exits(0, "report", str(tmp_path / "inventory.json")).out == told


def test_a_long_value_leaves_the_columns_in_line(tmp_path: Path, exits: Exits) -> None:
    image = "registry.example.com/" + "x" * 40 + ":1"
    spec = f"{{verify: {{image: {image}}}, hardware: {{gpus: 8}}, toolkit: {{hold: false}}}}"
    path = write_hosts(tmp_path, f"all:\n  vars: {{gpuready: {spec}}}\n  hosts: {{gpu1: }}\n")
    lines = [line for line in exits(0, "inventory", "-i", path).out.splitlines() if line.startswith("    ")]
    assert len({line.index(f"  {path}:") for line in lines if path in line}) == 1
    assert [line.split() for line in lines][2:] == [["verify.image", image], [f"{path}:2"]]


def test_hosts_that_do_not_fold_are_on_several_lines(tmp_path: Path, exits: Exits) -> None:
    names = [f"aws-instance-with-a-long-name-{letter}" for letter in "abcde"]
    path = write_hosts(tmp_path, f"all:\n  vars: {{gpuready: {{}}}}\n  hosts: {{{': , '.join(names)}: }}\n")
    head = exits(0, "inventory", "-i", path).out.split("\n\n")[1].splitlines()
    assert head == [f"{','.join(names[:3])},", f"  {','.join(names[3:])}: all defaults"]


def test_an_alias_of_ssh_is_shown_with_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(
        "Host gpu01\n  HostName 198.18.0.6\nHost gpu*\n  HostName %h.example.com\n"
    )
    (tmp_path / "conf").write_text("HostName elsewhere\n")
    text = "all: {hosts: {gpu03: {ansible_host: 10.0.0.3}, gpu04: {ansible_ssh_common_args: '-F ./conf'}}}\n"
    path = write_hosts(tmp_path, text.replace("{hosts", "{vars: {gpuready: {}}, hosts"))
    monkeypatch.chdir(tmp_path)
    found = listed(["-i", "ops@gpu01,gpu02", "-i", path], exits)
    assert {name: each["inventory"].get("hostname") for name, each in found.items()} == {
        "gpu01": "198.18.0.6", "gpu02": "gpu02.example.com", "gpu03": None, "gpu04": None
    }  # fmt: skip
    assert "gpu01  ops@gpu01 (198.18.0.6)  " in exits(0, "inventory", "-i", "ops@gpu01,gpu02").out


def test_skipped_hosts_have_a_reason(tmp_path: Path, exits: Exits) -> None:
    path = write_hosts(tmp_path, OTHERS)
    hosts = listed(["-i", path], exits)
    assert hosts["web1"]["outcome"] == "skipped" and "no gpuready value" in hosts["web1"]["reason"]
    assert "ansible_port" in hosts["web1"]["notes"][0] and "inventory" not in hosts["web1"]
    told = exits(0, "inventory", "-i", path).out
    assert "gpu01: all defaults" in told and "skipped  web1: no gpuready value in the inventory" in told


def test_this_machine_and_limits(inventory: str, exits: Exits) -> None:
    assert "@local  this machine" in exits(0, "inventory", "-i", "@local").out
    assert set(listed(["-i", inventory, "-l", "train,!gpu02"], exits)) == {"gpu01", "gpu03"}


def test_errors_are_those_of_plan(inventory: str, exits: Exits) -> None:
    Path(inventory).write_text("all: {hosts: {a: {gpuready: {hardwar: {}}}}}\n")
    assert f"{inventory}:1: hardwar: unknown key" in exits(5, "inventory", "-i", inventory).err
    assert run(["inventory", "-i", inventory, "--output", "junit"]) == 64


def test_it_connects_to_nothing(inventory: str) -> None:
    assert not {"pyinfra", "paramiko", "gevent", "rich"} & imported("inventory", "-i", inventory)
