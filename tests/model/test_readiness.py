"""What is still starting or gave no answer: how it is read, and that nothing is compared with it."""

import pytest

from gpuready.components.crio.component import Crio
from gpuready.contract.compare import compare
from gpuready.model.parse import parse
from gpuready.model.readiness import unsettled
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unit, Unknown
from tests.model.probe_answers import lines

pytestmark = pytest.mark.fault("booting-node")


def unit(name: str, active: str, job: str) -> str:
    return f"Id={name}\nLoadState=loaded\nActiveState={active}\nJob={job}\n"


def seen(*units: str, stuck: dict[str, str] | None = None, outs: dict[str, str] | None = None) -> NodeState:
    return parse(lines(outs={"units": "\n".join(units), **(outs or {})}, stuck=stuck))


@pytest.mark.parametrize(
    ("active", "job", "starting"),
    [
        ("activating", "17", True),
        ("inactive", "17", True),  # it waits for another unit
        ("failed", "17", True),
        ("activating", "", False),  # between two tries of systemd: it fails again and again
        ("active", "", False),
        ("active", "17", False),  # a reload
        ("deactivating", "17", False),
        ("inactive", "", False),
        ("activating", "x", False),
    ],
)
def test_a_unit_starts_while_systemd_has_a_job_for_it(active: str, job: str, starting: bool) -> None:
    state = seen(unit("docker.service", active, job))
    assert isinstance(state.units, dict) and state.units["docker.service"].starting is starting
    assert state.docker == (Unknown(unknown="docker.service is still starting") if starting else None)
    restarts = active == "activating" and not starting  # only a run that acts on the node waits for this
    why = "docker.service is still starting" if starting else "docker.service restarts" if restarts else ""
    assert unsettled(state) == ((why,) if why else ())


def test_what_was_abandoned_is_asked_again_unless_no_signal_ends_it() -> None:
    stuck = {"docker": "/proc/7/status:Pid:\t7\nState:\tS (sleeping)\n", "smi": "Pid:\t8\nState:\tD (disk sleep)\n"}
    state = seen(unit("docker.service", "active", ""), stuck=stuck)
    assert state.abandoned == ("docker",)
    assert unsettled(state) == ("docker gave no answer",)
    assert NodeState.model_validate_json(state.model_dump_json()) == state


def test_a_docker_whose_answer_is_an_error_is_asked_again() -> None:
    state = seen(outs={"docker": '{"ServerErrors": ["Cannot connect to the Docker daemon"]}'})
    assert unsettled(state) == ("docker gave no answer",)


def test_an_engine_that_starts_has_one_reason() -> None:
    state = seen(unit("docker.service", "activating", "4"), stuck={"docker": "State:\tS\n", "versions": "State:\tS\n"})
    assert unsettled(state) == ("docker.service is still starting", "versions gave no answer")


def test_nothing_is_compared_with_an_engine_that_starts() -> None:
    state = NodeState(units={"crio.service": Unit(load="loaded", active="inactive", starting=True)})
    assert compare(Crio(), NodeSpec(), state).error == "crio.service is still starting"
