"""A real H200 whose driver is mounted at /usr/local/nvidia (the layout of GCP Batch), after gpuready converged it.

The state was probed there (driver 580.159.04, Docker 20.10 started by hand, no systemd) and masked. Taking away the
one file and the cache entries gives the machine as it came: nobody had told ldconfig.
"""

from datetime import date
from pathlib import Path

import pytest

from gpuready.catalogue import CATALOGUE
from gpuready.components.cdi.component import Cdi
from gpuready.components.ldso.component import CONF, Ldso
from gpuready.contract.check import run_checks
from gpuready.contract.compare import compare
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Linker, NodeState
from gpuready.node import REMOVALS

DATA = Path(__file__).parents[1] / "data" / "h200-mounted-driver" / "state.json"


@pytest.fixture
def converged() -> NodeState:
    return NodeState.model_validate_json(DATA.read_text("utf-8"))


@pytest.fixture
def untold(converged: NodeState) -> NodeState:
    assert isinstance(converged.linker, Linker)
    files = {path: file for path, file in converged.files.items() if path != CONF}
    linker = converged.linker.model_copy(update={"cache": {}, "loader": ""})
    return converged.model_copy(update={"files": files, "linker": linker})


def judged(state: NodeState, **hardware: object) -> dict[str, str]:
    spec = NodeSpec.model_validate({"hardware": hardware})
    found = run_checks(CATALOGUE, spec, state, "h200", active=False, today=date(2026, 11, 21))
    return {one.check.id: one.verdict.status for one in found}


def test_the_cache_that_was_never_told_is_found_and_auto_names_one_directory(untold: NodeState) -> None:
    verdicts = judged(untold, gpus=1)
    assert (verdicts["libcuda.ldcache"], verdicts["libcuda.loader"]) == ("fail", "skip")
    diff = {change.key: change.expected for change in compare(Ldso(), NodeSpec(), untold).diff}
    # lib is a link to lib64 there: two names, one place, and the name that people know is written.
    assert diff["ldso.conf"] == ("/usr/local/nvidia/lib64",)
    assert diff["ldso.cache./usr/local/nvidia/lib64"] == ("libcuda.so.1", "libnvidia-ml.so.1")


def test_the_converged_machine_passes_and_a_lost_gpu_fails(converged: NodeState) -> None:
    verdicts = judged(converged, gpus=1, model="H200")
    passed = {"driver.loaded", "driver.match", "gpu.count", "gpu.model", "cdi.stale"}
    passed |= {"libcuda.stub", "libcuda.ldcache", "libcuda.loader"}
    assert {id: verdicts[id] for id in passed} == dict.fromkeys(passed, "pass")
    assert converged.driver.owner == "mount" and not compare(Cdi(), NodeSpec(), converged).diff
    assert judged(converged, gpus=8)["gpu.count"] == "fail"
    assert judged(converged)["gpu.count"] == "warn"


def test_the_way_back_names_all_that_was_put_in(converged: NodeState) -> None:
    found = {item.name: compare(item, NodeSpec(), converged) for item in REMOVALS}
    assert not [each for each in found.values() if each.error]
    differs = {name for name, each in found.items() if each.diff}
    assert differs == {"docker", "cdi", "ldso", "toolkit", "repository", "ledger"}
