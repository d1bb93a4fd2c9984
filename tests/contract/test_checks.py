"""How checks are run: failures told once, levels, what is skipped, and waivers."""

from typing import Any

import pytest

from gpuready.contract.check import (
    Check,
    Judged,
    Level,
    Verdict,
    fail,
    has_gpu,
    passed,
    run_checks,
    skip,
    unknown,
    warn,
)
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.verdicts import GPU, TODAY, state


@pytest.mark.parametrize(
    ("pci", "gpus", "expected"),
    [
        ((GPU,), (), True),
        (("0000:01:00.0 0x030000 0x2684",), (), True),
        (("0000:01:00.0 0x040300 0x22ba", "0000:05:00.0 0x068000 0x22a3"), (), False),
        (("broken",), (), False),
        ((), ("0000:00:06.0",), True),
        ((), (), False),
    ],
)
def test_what_a_gpu_is(pci: tuple[str, ...], gpus: tuple[str, ...], expected: bool) -> None:
    assert has_gpu(state({"pci": pci, "gpus": gpus})) is expected


def made(id: str, verdict: Verdict, **fields: Any) -> Check:
    level = fields.pop("level", Level.config)
    return Check(id, "title", level, "cause.", "confirm", "the fix", lambda *_: verdict, **fields)


def judged(*checks: Check, active: bool = True, **blocks: Any) -> dict[str, Verdict]:
    found = run_checks(checks, NodeSpec.model_validate(blocks), NodeState(), "gpu01.rack-b", active=active, today=TODAY)
    assert all(isinstance(j, Judged) for j in found)
    return {j.check.id: j.verdict for j in found}


@pytest.mark.parametrize("root", [fail("x"), unknown("x"), passed("x"), warn("x"), skip("x"), None], ids=repr)
def test_a_failure_is_reported_once_at_its_root(root: Verdict | None) -> None:
    effect = made("b.effect", fail("because of a"), after=("a.root",))
    found = judged(*([made("a.root", root)] if root else []), effect)
    hidden = root is not None and root.status in ("fail", "unknown")
    assert found["b.effect"] == (skip("see a.root") if hidden else fail("because of a", "the fix"))
    assert root is None or found["a.root"].status == root.status


def test_active_checks_need_the_second_exec() -> None:
    checks = (made("a.one", passed("x")), made("b.two", passed("x"), active=True))
    assert list(judged(*checks, active=False)) == ["a.one"]
    assert list(judged(*checks, active=True)) == ["a.one", "b.two"]


@pytest.mark.parametrize(
    ("level", "run"),
    [("config", {"config"}), ("effective", {"config", "effective"}), ("smoke", {"config", "effective", "smoke"})],
)
def test_levels(level: str, run: set[str]) -> None:
    checks = [made(f"a.{name}", passed("x"), level=Level[name]) for name in ("config", "effective", "smoke", "fabric")]
    found = judged(*checks, verify={"level": level})
    assert {id.partition(".")[2] for id, verdict in found.items() if verdict.status == "pass"} == run
    assert all(f"verify.level: {level}" in v.summary for v in found.values() if v.status == "skip")


def test_a_named_image_asks_for_the_smoke_container() -> None:
    found = judged(made("a.smoke", passed("x"), level=Level.smoke), verify={"image": "debian:13"})
    assert found["a.smoke"].status == "pass"


def test_without_gpus_by_the_spec_gpu_checks_are_skipped() -> None:
    check = made("a.gpu", fail("x"), gpu=True)
    assert judged(check, hardware={"gpus": "none"})["a.gpu"] == skip("hardware.gpus: none")
    assert judged(check, hardware={"gpus": 1})["a.gpu"].status == "fail"


def test_components_that_were_not_chosen_are_not_judged() -> None:
    of = {"docker.x": "docker", "libcuda.x": "ldso", "node.x": ""}
    checks = tuple(made(id, fail("x"), component=name) for id, name in of.items())
    found = run_checks(checks, NodeSpec(), NodeState(), "n", active=True, today=TODAY, left_out={"docker", "ldso"})
    assert {j.check.id: j.verdict.status for j in found} == {"docker.x": "skip", "libcuda.x": "skip", "node.x": "fail"}


def test_a_failure_has_the_checks_fix_unless_it_has_its_own() -> None:
    assert judged(made("a.x", fail("x")))["a.x"].remedy == "the fix"
    assert judged(made("a.x", fail("x", "my own")))["a.x"].remedy == "my own"


def waiver(**fields: Any) -> dict[str, Any]:
    return {"check": "a.x", "reason": "spare part ordered", "until": "2026-12-31", **fields}


@pytest.mark.parametrize("verdict", [fail("broken", "r", "e"), unknown("broken", "r")])
@pytest.mark.parametrize("host", ["*", "gpu*", "gpu01.rack-?", "gpu01.rack-b"])
def test_a_waiver_makes_a_failure_a_warning(verdict: Verdict, host: str) -> None:
    found = judged(made("a.x", verdict), verify={"waive": [waiver(host=host)]})["a.x"]
    assert found.status == "warn"
    for part in ("waived until 2026-12-31", "spare part ordered", "broken"):
        assert part in found.summary
    assert (found.remedy, found.evidence) == (verdict.remedy, verdict.evidence)


@pytest.mark.parametrize(
    "fields", [{"host": "gpu02*"}, {"host": "gpu01"}, {"host": "GPU*"}, {"check": "a.y"}, {"check": "a.*"}]
)
def test_a_waiver_of_something_else_changes_nothing(fields: dict[str, str]) -> None:
    found = judged(made("a.x", fail("broken")), verify={"waive": [waiver(**fields)]})["a.x"]
    assert found == fail("broken", "the fix")


@pytest.mark.parametrize("verdict", [passed("x"), warn("x"), skip("x")])
def test_a_waiver_changes_no_verdict_that_is_not_bad(verdict: Verdict) -> None:
    assert judged(made("a.x", verdict), verify={"waive": [waiver()]})["a.x"] == verdict


def test_a_waiver_holds_on_its_last_day_and_not_after() -> None:
    def at(until: str) -> Verdict:
        return judged(made("a.x", fail("broken")), verify={"waive": [waiver(until=until)]})["a.x"]

    assert at("2026-11-21").status == "warn"
    ended = at("2026-11-20")
    assert ended.status == "fail"
    assert ended.summary == "broken (its waiver expired on 2026-11-20)"


def test_of_several_waivers_the_valid_one_counts() -> None:
    waivers = [waiver(until="2026-01-01"), waiver(host="gpu02"), waiver(until="2027-01-01", reason="again")]
    found = judged(made("a.x", fail("broken")), verify={"waive": waivers})["a.x"]
    assert found.status == "warn"
    assert "again" in found.summary
