"""Shell completion: what the shell is offered, and the script by which it asks."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gpuready.catalogue import BY_ID
from gpuready.cli.app import gpuready
from gpuready.node import NODE
from gpuready.result.verbs import VERBS
from tests.command import Exits
from tests.command import gpuready as gpuready_in_process

HOSTS = "all: {children: {train: {hosts: {gpu01: {gpuready: {}}, gpu02: }}}}\n"


def offered(tmp_path: Path, words: str, current: str) -> list[str]:
    """``type,value`` of each item that bash is offered for ``current`` after ``words``."""
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    asked = {"_GPUREADY_COMPLETE": "bash_complete", "COMP_WORDS": f"gpuready {words} {current}"}
    done = gpuready_in_process(env={**os.environ, **asked, "COMP_CWORD": str(len(words.split()) + 1)}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture(autouse=True)
def this_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "deploys"))


def test_verbs_and_options(tmp_path: Path) -> None:
    assert offered(tmp_path, "", "") == [f"plain,{verb}" for verb in VERBS]
    assert offered(tmp_path, "", "in") == ["plain,init", "plain,inventory"]
    assert "plain,--allow-disruption" in offered(tmp_path, "plan", "--al")
    assert offered(tmp_path, "plan --allow-disruption", "re") == ["plain,reload", "plain,recreate", "plain,restart",
                                                                  "plain,reboot"]  # fmt: skip


def test_files_after_the_inventory_option(tmp_path: Path) -> None:
    assert offered(tmp_path, "plan -i", "ho") == ["file,ho"]
    assert offered(tmp_path, "plan -i", "@") == ["plain,@local", "file,@"]


def test_hosts_and_groups_after_limit(tmp_path: Path) -> None:
    for verb in ("plan", "stress"):
        assert offered(tmp_path, f"{verb} -i hosts.yaml -l", "g") == ["plain,gpu01", "plain,gpu02"]
    assert offered(tmp_path, "verify -i hosts.yaml --limit", "train,!gpu") == [
        "plain,train,!gpu01", "plain,train,!gpu02",
    ]  # fmt: skip
    assert "plain,train" in offered(tmp_path, "plan -i hosts.yaml --limit", "")
    assert offered(tmp_path, "plan -i missing.yaml --limit", "g") == []


def test_components_and_checks(tmp_path: Path) -> None:
    assert offered(tmp_path, "plan --only", "dock") == ["plain,docker"] + [
        f"plain,{item.name}" for item in NODE if item.name.startswith("dock") and item.name != "docker"
    ]
    assert "plain,toolkit,docker" in offered(tmp_path, "plan --skip", "toolkit,d")
    assert set(offered(tmp_path, "explain", "libcuda.")) == {f"plain,{id}" for id in BY_ID if id.startswith("libcuda.")}


def test_hosts_of_a_command_about_one_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(tmp_path, "rdma list -i hosts.yaml", "") == ["plain,gpu01", "plain,gpu02"]
    monkeypatch.setenv("GPUREADY_INVENTORY", "hosts.yaml")
    assert offered(tmp_path, "rdma detach", "gpu02") == ["plain,gpu02"]


def test_hosts_of_the_ssh_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host gpu7 gpu*\nHost login\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert offered(tmp_path, "plan -i", "ssh:g") == ["plain,ssh:gpu7"]


def parameters() -> Iterator[tuple[str, click.Context, click.Parameter]]:
    """Those of all commands and subcommands, by name."""
    with click.Context(gpuready, info_name="gpuready") as top:
        for verb in VERBS:
            command = gpuready.get_command(top, verb)
            assert command is not None
            for each in (command, *getattr(command, "commands", {}).values()):
                context = click.Context(each, parent=top, info_name=each.name)
                yield from ((f"{verb} {each.name} {param.name}", context, param) for param in each.params)


def test_every_parameter_that_takes_a_file_a_host_or_a_known_word_offers_it() -> None:
    wrong = []
    for name, context, param in parameters():
        takes = param.metavar or str(param.name)
        kinds = {item.type for item in param.shell_complete(context, "")}
        words = {item.value for item in param.shell_complete(context, "")}
        if re.search(r"\.json|SCRIPT|ARCHIVE|INVENTORY|(?<!:)(FILE|PATH)|^file$", takes) and "file" not in kinds:
            wrong.append(name)
        if re.search("FORMAT|COMPONENT|NAME,\\.\\.\\.|ID", takes) and not words - {""}:
            wrong.append(name)
        if re.search(r"\bHOST\b(?!\[)", takes) and "USER" not in takes:
            context.params["inventory"] = ("some-host,",)
            wrong += [] if "some-host" in {each.value for each in param.shell_complete(context, "")} else [name]
    assert wrong == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_gpuready(shell: str, exits: Exits) -> None:
    assert f"_GPUREADY_COMPLETE={shell}_complete" in exits(0, "completion", shell).out
    exits(64, "completion", "tcsh")


def test_bash_takes_the_script(exits: Exits, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(exits(0, "completion", "bash").out)
    command = ["bash", "-c", f". {tmp_path}/script; complete -p gpuready"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "gpuready" in done.stdout
