"""The catalogue: each check explains itself, passes and fails in some row, and crashes on no node."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.catalogue import BY_ID, CATALOGUE
from gpuready.contract.check import STATUSES, Check, Level, run_checks, skip
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, NodeState
from gpuready.node import NODE
from tests.model.probe_answers import h200
from tests.verdicts import SMOKE, TODAY, UNREADABLE, WITHOUT_GPUS, Row

TESTS = Path(__file__).parent
IDS = [check.id for check in CATALOGUE]


def test_ids_are_unique_and_found_by_id() -> None:
    assert len(set(IDS)) == len(IDS)
    assert [BY_ID[id] for id in IDS] == list(CATALOGUE)


@pytest.mark.parametrize("check", CATALOGUE, ids=lambda c: c.id)
def test_each_check_explains_itself(check: Check) -> None:
    for text in (check.title, check.cause, check.confirm, check.fix):
        assert text.strip() == text
        assert len(text) > 5
    assert check.cause.endswith(".")
    area, _, name = check.id.partition(".")
    assert area.isidentifier() and name.isidentifier()
    assert check.level in (Level.config, Level.effective, Level.smoke)


@pytest.mark.parametrize("check", CATALOGUE, ids=lambda c: c.id)
def test_roots_exist_and_come_before(check: Check) -> None:
    for root in check.after:
        assert IDS.index(root) < IDS.index(check.id)


def test_every_component_has_its_check() -> None:
    assert {f"{component.name}.config" for component in NODE} <= set(IDS)
    assert {check.component for check in CATALOGUE} <= {c.name for c in NODE} | {""}


def test_what_the_first_release_promises() -> None:
    wanted = {"driver.loaded", "driver.match", "libcuda.ldcache", "libcuda.stub", "gpu.count", "docker.runtime"}
    assert wanted | {"libcuda.init", "docker.smoke"} <= set(IDS)
    assert {check.id for check in CATALOGUE if check.active} >= {"libcuda.init", "docker.smoke"}


def rows() -> Iterator[Row]:
    """The rows that the files with verdicts run."""
    for path in sorted(TESTS.rglob("test_*_verdicts.py")):
        module = importlib.import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))
        yield from module.test_verdict.pytestmark[0].args[1]


def test_every_check_is_seen_passing_and_failing() -> None:
    seen: dict[str, set[str]] = {}
    for id, status, *_ in rows():
        seen.setdefault(id, set()).add(status)
    assert set(seen) == set(IDS)
    # Their whole node stands in tests/components; a node without stale files does not need the last.
    without_pass = {"toolkit.config", "repository.config", "legacy.config"}
    assert {id for id, statuses in seen.items() if "pass" not in statuses} == without_pass
    assert {id for id, statuses in seen.items() if not statuses & {"fail", "warn"}} == set()


def test_the_recorded_machine_misses_the_rest_and_none_crashes() -> None:
    judged = run_checks(CATALOGUE, NodeSpec(), h200(), "n1", active=True, today=TODAY)
    assert [j.check.id for j in judged] == IDS
    assert all(j.verdict.status in STATUSES for j in judged)


def test_no_check_crashes_on_an_empty_node_or_one_of_which_nothing_is_known() -> None:
    blind = NodeState(
        packages=UNREADABLE,
        units=UNREADABLE,
        docker=UNREADABLE,
        containerd=UNREADABLE,
        tools=UNREADABLE,
        linker=UNREADABLE,
        driver=Driver(smi=UNREADABLE),
    )
    for node in (NodeState(), blind):
        judged = run_checks(CATALOGUE, NodeSpec.model_validate(SMOKE), node, "n1", active=True, today=TODAY)
        assert len(judged) == len(CATALOGUE)
    assert not [
        j.check.id for j in judged if j.verdict.status == "pass" and j.check.id not in ("node.reboot", "node.drained")
    ]


def test_which_checks_are_skipped_without_a_gpu() -> None:
    found = run_checks(CATALOGUE, NodeSpec.model_validate(WITHOUT_GPUS), h200(), "n", active=True, today=TODAY)
    skipped = {j.check.id for j in found if j.verdict == skip("hardware.gpus: none")}
    assert skipped == {check.id for check in CATALOGUE if check.gpu and check.level <= Level.effective}
    assert skipped >= {
        *("driver.loaded", "driver.match", "driver.floor", "driver.nodes", "driver.fabricmanager", "libcuda.init"),
        *(id for id in IDS if id.startswith("gpu.")),
        *(f"driver.{n}" for n in ("firmware", "charlinks", "persistenced", "companions", "peers", "processes", "imex")),
        *("cdi.spec", "cdi.stale", "cdi.shadow", "cdi.podman", "cdi.rootless", "containerd.cdi", "crio.cdi"),
        *("image.compat", "rdma.gdr", "reconverge.last"),
    }
