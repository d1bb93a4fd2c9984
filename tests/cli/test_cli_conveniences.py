"""What other command lines have, too: short options, lists with commas, and errors of what cannot be written."""

from pathlib import Path

import pytest

from gpuready.base.errors import UsageError
from gpuready.cli.app import run
from gpuready.cli.request import selection
from gpuready.node import NODE
from tests.command import Exits, gpuready, write_hosts

HOSTS = "all: {hosts: {lab1: {gpuready: {}}, lab2: {gpuready: {}}, db1: {}}}\n"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    return write_hosts(tmp_path, HOSTS)


@pytest.mark.parametrize("argv", [["-h"], ["help"], ["plan", "-h"], ["rdma", "-h"], ["rdma", "attach", "-h"]])
def test_short_help(argv: list[str], exits: Exits) -> None:
    short = exits(0, *argv).out
    told = exits(0, *[word for word in argv if word not in ("-h", "help")], "--help")
    assert short == told.out and "-h, --help" in short


@pytest.mark.parametrize("words", [["plan"], ["rdma", "attach"], ["stress"]])
def test_help_takes_a_command(words: list[str], exits: Exits) -> None:
    assert exits(0, "help", *words).out == exits(0, *words, "--help").out


def test_version_is_a_command_too(exits: Exits) -> None:
    assert exits(0, "version").out == exits(0, "--version").out != ""


def test_apply_offers_no_state(exits: Exits) -> None:
    assert "--state " not in exits(0, "apply", "--help").out


@pytest.mark.parametrize("verb", ["plan", "apply", "trust", "compat", "fabric", "nccl", "remove"])
def test_list_hosts_prints_names_and_does_nothing(verb: str, inventory: str, exits: Exits) -> None:
    told = exits(0, verb, "-i", inventory, "-l", "!lab2", "--list-hosts")
    assert told.out == "lab1\n" and "skipped  db1" in told.err


@pytest.mark.parametrize(
    "words",
    [["attach", "lab1", "--container", "c", "--netdev", "e"], ["detach", "lab1", "--container", "c"], ["list", "lab1"]],
)
def test_list_hosts_knows_the_host_argument(words: list[str], inventory: str, exits: Exits) -> None:
    assert exits(0, "rdma", *words, "-i", inventory, "--list-hosts").out == "lab1\n"
    words[1] = "lab9"
    assert "no host matches" in exits(5, "rdma", *words, "-i", inventory, "--list-hosts").err
    words[1] = " ,"
    assert "HOST is empty" in exits(64, "rdma", *words, "-i", inventory, "--list-hosts").err


def test_list_hosts_says_what_is_wrong(inventory: str, exits: Exits) -> None:
    assert run(["plan", "--list-hosts"]) == run(["plan", "-i", inventory, "--list-hosts", "--output", "json"]) == 64
    assert run(["plan", "-i", inventory, "-l", "lab9", "--list-hosts"]) == 5
    told = exits(0, "plan", "-i", inventory, "-l", "lab1,lab9", "--list-hosts")
    assert told.out == "lab1\n" and "note: --limit lab9 matches no host; did you mean" in told.err


def test_components_may_have_commas() -> None:
    assert selection(["docker,toolkit"], []) == selection(["docker", "toolkit"], []) == {"docker", "toolkit"}
    assert selection(["docker, toolkit"], ["toolkit"]) == {"docker"}
    assert selection([], ["docker,toolkit"]) == {item.name for item in NODE} - {"docker", "toolkit"}
    with pytest.raises(UsageError, match="no component 'dokcer'; did you mean 'docker'"):
        selection(["toolkit,dokcer"], [])
    for nothing in ("", ",", "docker,"):
        with pytest.raises(UsageError, match="no component ''"):
            selection([nothing], [])


@pytest.mark.parametrize("given", ["abc", "0", "9999"])
def test_a_number_that_is_none(given: str, inventory: str, exits: Exits) -> None:
    told = exits(64, "plan", "-i", inventory, "--parallel", given)
    assert f"'{given}' is not a number from 1 to 1024" in told.err.replace('"', "'")


@needs_full
@pytest.mark.fault("full-output")
@pytest.mark.parametrize("argv", [["explain"], ["explain", "docker"], ["schema"], ["--help"], ["--version"]])
def test_texts_on_a_full_disk(argv: list[str]) -> None:
    with FULL.open("w") as full:
        done = gpuready(*argv, stdout=full)
    assert done.returncode == 74
    assert done.stderr == "error: the result was not written to stdout: No space left on device\n"


@needs_full
@pytest.mark.fault("full-output")
def test_a_result_on_a_full_disk(tmp_path: Path, inventory: str, exits: Exits) -> None:
    argv = ["compat", "--driver", "550.54.15", "--gpu", "NVIDIA L4", "--image-cuda", "12.4.1"]
    told = exits(74, *argv, "--output", f"json:{FULL}", "--output", f"human:{tmp_path}/report.txt")
    assert told.err == f"gpuready: the result was not written to {FULL}: No space left on device\n"
    assert "NATIVE" in (tmp_path / "report.txt").read_text()
    assert run(["plan", "-i", inventory, "--bogus", "--output", f"json:{FULL}"]) == 64
