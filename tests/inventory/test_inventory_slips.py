"""Slips with -i and in values that used to be taken silently, or to end nowhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuready.base.errors import GpureadyError, InventoryError, SpecErrors
from gpuready.inventory.hosts import load
from tests.command import python, write_hosts

LOAD = "import sys\nfrom gpuready.inventory.hosts import load\nprint([e.name for e in load(sys.argv[1:]).chosen])"
SHADOW = "root:*:19000:0:99999:7:::\ndaemon:$6$secret:19000:0:99999:7:::\n"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("010", "8"), ("1:30", "90"), ("0x10", "16"), ("0b11", "3"), ("1_000", "1000"), ("+010", "8"), ("1:30.5", "90.5")],
)
def test_a_number_that_yaml_reads_otherwise_is_refused(written: str, meant: str, tmp_path: Path) -> None:
    text = f"all:\n hosts: {{a: }}\n vars:\n  rack: {written}\n  gpuready:\n   hardware:\n    gpus: {written}\n"
    path = write_hosts(tmp_path, text)
    with pytest.raises(SpecErrors) as caught:
        load([path])
    message = f"{path}:7: hardware.gpus: YAML reads {written} as {meant}; allowed: {meant}, or quoted text"
    assert str(caught.value) == message


@pytest.mark.parametrize("written", ["8", "+8", "0", "-1", "1e3", "0.85", ".5"])
def test_plain_numbers_are_what_they_say(written: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(f"all: {{hosts: {{a: {{gpuready: {{verify: {{thresholds: {{write_bw: {written}}}}}}}}}}}}}\n")
    try:
        assert load([str(path)])
    except SpecErrors as e:
        assert "YAML reads" not in str(e)


def test_a_file_of_passwords_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "shadow").write_text(SHADOW)
    with pytest.raises(InventoryError, match="shadow: not an inventory") as caught:
        load([str(tmp_path / "shadow")])
    assert "secret" not in str(caught.value) and "root" not in str(caught.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("api_url: http://maas\napi_key: secret\n", " not an inventory: its top-level keys are variables"),
        ("gpu: {hosts: {a: }}\napi_key: secret\n", "2: group api_key: text is not accepted; allowed: a mapping"),
    ],
)
def test_a_file_of_variables_is_refused_and_not_shown(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "all.yml").write_text(text)
    with pytest.raises(GpureadyError, match=re.escape(f"all.yml:{says}")) as caught:
        load([str(tmp_path / "all.yml")])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("place", ["hosts.yaml", "group_vars/all.yml", "host_vars/a.yml", "inventory/10-hosts"])
def test_a_pipe_without_a_writer_does_not_block(place: str, tmp_path: Path) -> None:
    write_hosts(tmp_path)
    source = tmp_path / place
    source.parent.mkdir(exist_ok=True)
    source.unlink(missing_ok=True)
    os.mkfifo(source)
    done = python("-c", LOAD, tmp_path / ("inventory" if place.startswith("inventory") else "hosts.yaml"))
    assert done.returncode == 1 and f"{source}: cannot be read: not a regular file" in done.stderr


def test_a_limit_from_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "limit")
    with pytest.raises(InventoryError, match=f"^--limit @{tmp_path}/limit: cannot be read: not a regular file"):
        load([write_hosts(tmp_path)], limit=[f"@{tmp_path}/limit"])


def test_a_pipe_of_the_shell_is_read() -> None:
    command = f"'{sys.executable}' -c \"$0\" <(echo 'all: {{hosts: {{a: {{gpuready: {{}}}}}}}}')"
    done = subprocess.run(["bash", "-c", command, LOAD], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "['a']\n", done.stderr


@pytest.mark.parametrize("place", ["inventory/again", "inventory/sub/again", "inventory/group_vars/all/again"])
def test_a_directory_that_leads_back_into_itself_is_refused_once(place: str, tmp_path: Path) -> None:
    link = tmp_path / place
    link.parent.mkdir(parents=True)
    (tmp_path / "inventory" / "hosts.yaml").write_text("all: {hosts: {a: {gpuready: {}}}}\n")
    link.symlink_to(tmp_path / "inventory" / ("group_vars/all" if "group_vars" in place else ""))
    with pytest.raises(InventoryError, match=f"^{link}: the link points back") as caught:
        load([str(tmp_path / "inventory")])
    assert str(caught.value).count("again") == 1


EXPORT = '{"_meta": {"hostvars": {"a": {"gpuready": {}}}}, "g": {"hosts": ["a"]}}'


@pytest.mark.parametrize("text", ["all: {hosts: {a: {gpuready: {}}}}", "[g]\na gpuready={}\n", EXPORT])
def test_an_inventory_from_stdin(text: str) -> None:
    done = python("-c", LOAD, "-", "b,", input=text)
    assert done.stdout in ("['a', 'b']\n", "['b', 'a']\n"), done.stderr  # ungrouped hosts come first


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all:\n  hosts: a: b\n", "<stdin>:2: not YAML"),
        ("[g]\nh a b\n", "<stdin>:2: host h: word 2"),
        ("", "-i -: stdin is empty"),
        ("a: " + "x" * 5_000_001, "<stdin>: too large for an inventory"),
    ],
)
def test_stdin_that_is_not_an_inventory(text: str, says: str) -> None:
    done = python("-c", LOAD, "-", input=text)
    assert done.returncode == 1 and says in done.stderr


def test_stdin_is_read_once_and_a_terminal_is_refused() -> None:
    assert "-i -: stdin is empty" in python("-c", LOAD, "-", "-", input="[g]\na gpuready={}\n").stderr
    ours, theirs = os.openpty()
    done = python("-c", LOAD, "-", stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert "-i -: stdin is not a file or pipe" in done.stderr
