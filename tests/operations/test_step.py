"""A step that fails: its error has the script's message, and what to do about it if the step knows."""

from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from gpuready.components.repository.component import Repository
from gpuready.components.toolkit.component import Toolkit
from gpuready.core.compare import compare
from gpuready.core.step import Reply, Step
from gpuready.operations import step as module
from gpuready.operations.step import StepCommand
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

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
        command.execute(None, Mock(connector_data={}), None)
        assert str(command.error) == message and command.error.remedy == remedy
    assert "{repo: {url: URL, key: URL}}" in fix and NodeSpec.model_validate(
        {"toolkit": {"repo": {"url": "https://mirror.example/deb", "key": "https://mirror.example/key"}}}
    )
