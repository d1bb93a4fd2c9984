"""A step that fails: its error has the script's message, and what to do about it if the step knows."""

import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyinfra.api.exceptions import ConnectError

from gpuready.base.step import Reply, Step
from gpuready.components.repository.component import Repository
from gpuready.components.toolkit.component import Toolkit
from gpuready.contract.compare import compare
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations import step as module
from gpuready.operations.step import StepCommand
from tests.operations.begun import begun

TEMPLATES = Path(__file__).parents[2] / "templates"
SPEC, STATE = NodeSpec(), NodeState(have=("apt-get",))


def steps() -> Iterator[Step]:
    """The first step of each component that reads the repository."""
    for each in (Repository(), Toolkit()):
        yield next(each.converge(compare(each, SPEC, STATE).diff, SPEC, STATE))


@pytest.mark.parametrize("step", list(steps()), ids=lambda step: step.name)
def test_a_repository_out_of_reach_says_what_to_set(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.lock, "hold", lambda host: None)
    ((begin, fix),) = step.fixes
    assert f'die "{begin}' in step.script, "the script has this message"
    for message, remedy in ((f"{begin}: Could not resolve 'nvidia.github.io'", fix), ("/tmp is full", "")):
        command = StepCommand(step)
        monkeypatch.setattr(module, "run_step", lambda host, step, said=message: Reply(1, "", f"apt's log\n{said}\n"))
        command.execute(None, begun(), None)
        assert str(command.error) == message and command.error.remedy == remedy
    assert "{repo: {url: URL, key: URL}}" in fix and NodeSpec.model_validate(
        {"toolkit": {"repo": {"url": "https://mirror.example/deb", "key": "https://mirror.example/key"}}}
    )


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("cannot write in /etc/apt/keyrings (full, out of inodes, read-only or immutable?); K was not changed",
         "find the cause with df -h /etc/apt/keyrings; df -i /etc/apt/keyrings; findmnt"),
        ("cannot write to /run (full or read-only?); nothing was changed", "find the cause with df -h /run;"),
        ("/etc/hosts cannot be written (is it immutable, see lsattr, or ...?)", "df -h /etc/hosts;"),
        ("/tmp has 0 MiB free, 1 MiB are needed; nothing was changed", "free space there (df -h /tmp; df -i /tmp)"),
        ("/var has 3 inodes free, 64 are needed; nothing was changed", "free space there (df -h /var; df -i /var)"),
        ("cannot write /var/lib/gpuready/x (is /var full?); F was not touched", "free space there (df -h /var;"),
        ("cannot make a temporary directory (is /tmp full?); nothing was changed", "free space there (df -h /tmp;"),
        ("no room for 2 MB in /run or in /tmp; nothing was changed", "free space in /run or /tmp"),
        ("the step did not end on its own: result signal", "run again: gpuready repairs what is left"),
        ("apt-get install failed; E: Sub-process /usr/bin/dpkg returned an error code (1)", "dpkg --audit"),
        ("apt-get could not remove docker.io containerd", "dpkg --audit"),
        ("dnf could not remove moby-engine", "dnf check"),
        ("Docker rejected the new configuration: no. gpuready restored F; Docker still runs", "journalctl -u docker;"),
        ("Docker gave no answer (docker events); gpuready restored F", "journalctl -u docker;"),
        ("containerd rejected the new configuration: no. gpuready restored F", "journalctl -u containerd;"),
        ("CRI-O rejected the new configuration: no. gpuready restored F", "journalctl -u crio;"),
        ("CRI-O could not start with its files as they are: no. Nothing was changed", "journalctl -u crio;"),
        ("CRI-O rejected the new F (no), and the restored one too: no", "systemctl status crio "),
        ("cannot write in /etc (full?); Docker runs as wanted, but F was not reduced", "df -h /etc;"),
        ("F changed since the plan was made; it was not touched, run again", "run again"),
    ],
)  # fmt: skip
def test_a_message_of_any_step_says_what_to_do(message: str, remedy: str) -> None:
    assert remedy in next(steps()).fix(message) and "run again" in next(steps()).fix(message)


def test_a_path_of_a_hostile_node_is_no_command() -> None:
    fix = next(steps()).fix
    assert [fix(f"{path} has 0 MiB free, 1 MiB are needed") for path in ("/$(id)", "/`id`", "/a;id", "/a|id")] == [
        ""
    ] * 4
    assert not {*"$`|()"} & {*fix("cannot write in /etc/$(id)/`id` (full?)")}


def test_a_missing_command_is_named() -> None:
    fix = next(steps()).fix("there is no nvidia-ctk on this node; F was not touched")
    assert fix == "install nvidia-ctk on the node, or put it on root's PATH"


def test_every_message_of_a_full_disk_says_what_to_do() -> None:
    """The messages of all templates, with a path for each of their variables."""
    found = {
        re.sub(r"\$\{?\w+[^ ;}]*\}?", "/x", message)
        for path in TEMPLATES.rglob("*.j2")
        for message in re.findall(r'(?:die|fail|failed .*|unwritten\(\) \{ die) "([^"]*)', path.read_text("utf-8"))
        if re.search(r"\b(?:full|MiB free|inodes free)\b", message)
    }
    found = {message for message in found if " has " not in message}  # of `room`, above
    assert len(found) > 12 and [each for each in found if not next(steps()).fix(each)] == []


def test_a_refused_connection_is_tried_again_with_longer_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [ConnectError("refused")] * 5 + [EOFError()]
    connect = Mock(side_effect=[*refused, None])
    pauses: list[float] = []
    monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setattr(module, "hang_up", lambda host: None)
    monkeypatch.setattr(module.gevent, "sleep", pauses.append)
    module._reconnect_at_last(Mock())
    assert connect.call_count == 7 and pauses == [0.5, 1, 2, 4, 4, 4]
