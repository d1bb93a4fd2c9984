"""``-e KEY=VALUE`` and ``GPUREADY_*``: the spec and the options, set without the inventory."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.errors import GpureadyError, UsageError
from gpuready.inventory.extra import Extra, extra_values
from gpuready.inventory.hosts import load
from gpuready.model.spec import NodeSpec
from tests.command import Exits, write_hosts

HOSTS = """all:
  hosts:
    gpu01: {gpuready: {hardware: {gpus: 4, model: H100}, toolkit: {hold: false}}}
    gpu02: {gpuready: {}}
    db01:
"""


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    return write_hosts(tmp_path, HOSTS)


def specs(inventory: str, *texts: str) -> dict[str, NodeSpec]:
    found = load([inventory], extra=[Extra(text) for text in texts])
    assert [host.name for host in found.skipped] == ["db01"]
    return {entry.name: entry.spec for entry in found.chosen}


def test_it_wins_over_the_inventory_and_leaves_the_rest(inventory: str) -> None:
    found = specs(inventory, "hardware.gpus=8")
    assert [spec.hardware.gpus for spec in found.values()] == [8, 8]
    assert found["gpu01"].hardware.model == "H100" and found["gpu01"].toolkit.hold is False


TYPES: tuple[tuple[str, Any], ...] = (
    ("hardware.gpus=none", "none"),
    ("gpuready.hardware.gpus= 8", 8),
    ("hardware.model=H200", "H200"),
    ("hardware.model=1.5", "1.5"),
    ("hardware.nvswitch=true", True),
    ("ldso=off", "off"),
    ("ldso=[/usr/local/nvidia/lib64]", ("/usr/local/nvidia/lib64",)),
    ("toolkit.version=1.20.0", "1.20.0"),
    ("toolkit.hold=no", False),
    ("runtimes={docker: {shm_size: 8g}}", "8g"),
    ("runtimes.docker.shm_size=1073741824", 1 << 30),
    ("maintenance.batch=1,25%", "1,25%"),
    ("maintenance.node=12", "12"),
    ("hardware.model=null", None),
)


@pytest.mark.parametrize(("text", "value"), TYPES)
def test_the_schema_decides_the_type(text: str, value: Any, inventory: str) -> None:
    here: Any = specs(inventory, text)["gpu01"]
    for part in text.partition("=")[0].removeprefix("gpuready.").split("."):
        here = getattr(here, part)
    assert (here.docker.shm_size if text.startswith("runtimes={") else here) == value


def test_the_last_one_wins(inventory: str) -> None:
    found = specs(inventory, "hardware={gpus: 1, model: L4}", "hardware.gpus=2")["gpu02"].hardware
    assert (found.gpus, found.model) == (2, "L4")


ERRORS = (
    ("hardware.gpuz=8", "-e: hardware.gpuz: unknown key", "did you mean 'gpus'?"),
    ("hardwar.gpus=8", "-e: hardwar: unknown key", "did you mean 'hardware'?"),
    ("hardware.gpus=many", "-e: hardware.gpus: not accepted; given 'many'", "allowed: "),
    ("hardware.gpus=010", "-e: hardware.gpus: YAML reads 010 as 8", "allowed: 8"),
    ("memlock=unlimted", "-e: memlock: not accepted", "did you mean 'unlimited'?"),
    ("images=[a", "-e: images: not YAML", "images"),
    ("ldso=['{{ dirs }}']", "-e: ldso", "templates"),
)


@pytest.mark.parametrize(("text", "begin", "within"), ERRORS)
def test_errors_are_those_of_a_file_at_the_option(text: str, begin: str, within: str, inventory: str) -> None:
    with pytest.raises(GpureadyError) as caught:
        specs(inventory, text)
    assert str(caught.value).startswith(begin) and within in str(caught.value)


@pytest.mark.parametrize("text", ["hardware.gpus", "=8", "hardware..gpus=8", "@vars.yaml"])
def test_what_is_no_pair_is_wrong_usage(text: str, inventory: str, exits: Exits) -> None:
    with pytest.raises(UsageError, match="not NAME=VALUE"):
        extra_values([Extra(text)])
    assert "hardware.gpus=8" in exits(64, "plan", "-i", inventory, "-e", text).err


def test_the_inventory_shows_the_place(inventory: str, exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(*more: str) -> Any:
        found = exits(0, "inventory", "-i", inventory, *more, "--output", "json").document
        return found["hosts"]["gpu01"]["inventory"]["settings"]

    assert {"key": "hardware.gpus", "value": 8, "where": "-e"} in settings("-e", "hardware.gpus=8")
    monkeypatch.setenv("GPUREADY_EXTRA_VARS", "hardware.gpus=2 memlock=unlimited")
    found = settings()
    assert {"key": "memlock", "value": "unlimited", "where": "GPUREADY_EXTRA_VARS"} in found
    assert {"key": "hardware.gpus", "value": 2, "where": "GPUREADY_EXTRA_VARS"} in found


def test_the_environment_gives_defaults_and_is_named(
    inventory: str, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUREADY_INVENTORY", inventory)
    monkeypatch.setenv("GPUREADY_LIMIT", "gpu02")
    told = exits(0, "plan", "--list-hosts")
    assert told.out == "gpu02\n"
    assert f"note: --inventory is from the environment: GPUREADY_INVENTORY={inventory}\n" in told.err
    told = exits(0, "plan", "--list-hosts", "-l", "gpu01")
    assert told.out == "gpu01\n" and "GPUREADY_LIMIT" not in told.err


def test_errors_go_where_the_environment_says(exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_OUTPUT", "json")
    assert json.loads(exits(64, "plan").out)["error"]["kind"] == "usage"


def test_help_names_the_variables_and_consent_has_none(exits: Exits) -> None:
    told = " ".join(exits(0, "apply", "--help").out.split())
    for name in ("INVENTORY", "LIMIT", "EXTRA_VARS", "OUTPUT", "PARALLEL", "PROBE_TIMEOUT", "MAX_FAIL"):
        assert f"[env var: GPUREADY_{name}" in told
    assert "GPUREADY_YES" not in told


def test_a_variable_of_the_inventory_counts_for_all_hosts(exits: Exits) -> None:
    words = ("-i", "gpu01,root@gpu02,", "-e", "ansible_user=admin", "-e", "ansible_port=2222", "-e", "hardware.gpus=4")
    hosts = exits(0, "inventory", *words, "--output", "json").document["hosts"]
    told = {name: host["inventory"] for name, host in hosts.items()}
    assert {(name, each["user"], each["port"]) for name, each in told.items()} == {
        ("gpu01", "admin", 2222),
        ("gpu02", "admin", 2222),
    }
    assert all(each["spec"]["hardware"]["gpus"] == 4 for each in told.values())


@pytest.mark.parametrize("text", ["ansible_usr=root", "ansible_python_interpreter=/usr/bin/python3"])
def test_a_variable_without_effect_is_refused(text: str, exits: Exits) -> None:
    told = exits(64, "plan", "-i", "gpu01,", "-e", text, "--list-hosts").err
    assert f"-e {text.partition('=')[0]}: this variable has no effect" in told
