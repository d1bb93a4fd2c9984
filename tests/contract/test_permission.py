"""What may happen: the least of spec and command line; what waits says for what, and how to consent."""

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from gpuready.base import window
from gpuready.base.errors import UnreachableError
from gpuready.base.step import Step, Steps
from gpuready.components.driver.component import Driver
from gpuready.contract.attempt import Attempt
from gpuready.contract.compare import Plan, compare
from gpuready.contract.component import Change, Component, Disruption
from gpuready.contract.ledger import WriteFiles
from gpuready.contract.permission import Permission, permission, permissions
from gpuready.model.slurm import SlurmNode
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Container, Docker, NodeState, Package, Unknown
from gpuready.result.model import ComponentResult, Error, HostResult
from gpuready.run.evaluate import fill_attempts, fill_components, look_back

TRAIN = Container(id="1", name="train", image="registry:5000/team/pytorch:2.9", gpu=True)
BUSY, FREE = NodeState(docker=Docker(containers=(TRAIN,))), NodeState(docker=Docker())
DIFF = (Change("x.file", 1, 2), Change("x.running", 1, 2))


class Engine(Component):
    """A component with a part that is reloaded, and one that takes more."""

    name = "engine"
    requires = ("toolkit",)
    kind = Disruption.restart

    def expected(self, spec: NodeSpec, state: NodeState) -> dict[str, int]:  # type: ignore[override]
        return {c.key: 2 for c in DIFF}

    def actual(self, spec: NodeSpec, state: NodeState) -> dict[str, int]:  # type: ignore[override]
        return {c.key: 1 for c in DIFF}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return self.kind if DIFF[1] in diff else Disruption.reload

    def groups(self, diff: tuple[Change, ...]) -> tuple[tuple[Change, ...], ...]:
        return tuple((change,) for change in diff)

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        assert isinstance(state.docker, Docker)
        return tuple(f"{c.name} ({c.image})" for c in state.docker.containers) if DIFF[1] in diff else ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        yield Step("x", WriteFiles(()))


class Recreating(Engine):
    kind = Disruption.recreate


class Rebooting(Engine):
    kind = Disruption.reboot


def maintenance(**values: Any) -> NodeSpec:
    return NodeSpec.model_validate({"maintenance": values})


#: A Saturday in Berlin; the next window opens in the evening.
NIGHT, DAY = (datetime(2026, 11, 28, hour, tzinfo=timezone.utc) for hour in (23, 12))
WINDOW = {"window": "Sat 22:00-06:00 Europe/Berlin"}
CLOSED = "for the maintenance window, which opens Sat 2026-11-28 22:00 CET (maintenance.window)"
DRAINED = {"restart": "drained", "drain": "slurm"}
REBOOT = {"reboot": "drained", "drain": "slurm"}
ALL, SOME, LESS = DIFF, DIFF[:1], ()
CASES: dict[str, tuple[Component, dict[str, Any], NodeState, Disruption, tuple[Change, ...], str]] = {
    "idle, and it is": (Engine(), {}, FREE, Disruption.restart, ALL, ""),
    "idle, and it is not": (Engine(), {}, BUSY, Disruption.restart, SOME, "until idle: this change (class restart)"),
    "never": (Engine(), {"restart": "never"}, FREE, Disruption.reboot, SOME, "maintenance.restart is never"),
    "never is about restarts": (Recreating(), {"restart": "never"}, FREE, Disruption.restart, ALL, ""),
    "never, and busy": (Recreating(), {"restart": "never"}, BUSY, Disruption.restart, SOME, "change (class recreate)"),
    "drained moves work away": (Engine(), DRAINED, BUSY, Disruption.restart, ALL, ""),
    "drained, and not allowed": (Engine(), DRAINED, BUSY, Disruption.recreate, SOME, "use --allow-disruption restart"),
    "a reboot takes two words": (
        Rebooting(), {}, FREE, Disruption.restart, SOME,
        "set maintenance: {reboot: idle} (or drained) in the spec and --allow-disruption reboot on the command line",
    ),
    "a reboot takes the spec's word": (
        Rebooting(), {}, FREE, Disruption.reboot, SOME, "reboot: set maintenance: {reboot: idle} (or drained) in",
    ),
    "a reboot takes the command line's word": (
        Rebooting(), {"reboot": "idle"}, FREE, Disruption.restart, SOME, "reboot: set --allow-disruption reboot",
    ),
    "a reboot with both": (Rebooting(), {"reboot": "idle"}, FREE, Disruption.reboot, ALL, ""),
    "a reboot, and busy": (
        Rebooting(), {"reboot": "idle"}, BUSY, Disruption.reboot, SOME, "(class reboot) would affect train",
    ),
    "a reboot after draining": (Rebooting(), REBOOT, BUSY, Disruption.reboot, ALL, ""),
    "restart: drained drains for no reboot": (
        Rebooting(), {**DRAINED, "reboot": "idle"}, BUSY, Disruption.reboot, SOME, "change (class reboot) would",
    ),
    "allowed is the limit": (Engine(), {}, FREE, Disruption.none, LESS, "class reload, and --allow-disruption is none"),
    "the image does not count": (
        Engine(), {"ignore": ["registry:5000/team/pytorch"]}, BUSY, Disruption.restart, ALL, "",
    ),
    "this very tag does not count": (
        Engine(), {"ignore": ["registry:5000/team/pytorch:2.9"]}, BUSY, Disruption.restart, ALL, "",
    ),
    "another tag counts": (
        Engine(), {"ignore": ["registry:5000/team/pytorch:2.8"]}, BUSY, Disruption.restart, SOME, "would affect train",
    ),
    "the registry alone names no image": (Engine(), {"ignore": ["registry"]}, BUSY, Disruption.restart, SOME, "train"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_permission(name: str) -> None:
    item, values, state, allowed, permitted, waits = CASES[name]
    found = permission(item, Plan((item,), maintenance(**values), state), allowed, NIGHT)
    assert found.diff == permitted
    assert waits in found.pending and bool(waits) == bool(found.pending)
    assert found.disruptive == (permitted == ALL)


@pytest.mark.parametrize(
    ("item", "values", "state", "now", "permitted", "waits"),
    [
        (Engine(), WINDOW, FREE, NIGHT, ALL, ""),
        (Engine(), WINDOW, FREE, DAY, SOME, CLOSED),
        (Recreating(), WINDOW, FREE, DAY, ALL, ""),
        (Recreating(), WINDOW, BUSY, DAY, SOME, "until idle: this change (class recreate) would affect"),
        (Recreating(), WINDOW | DRAINED, FREE, DAY, SOME, CLOSED),
        (Recreating(), WINDOW | DRAINED, BUSY, NIGHT, ALL, ""),
        (Rebooting(), WINDOW | REBOOT, BUSY, DAY, SOME, CLOSED),
        (Rebooting(), WINDOW | REBOOT, BUSY, NIGHT, ALL, ""),
        (Engine(), WINDOW | {"restart": "never"}, FREE, DAY, SOME, "maintenance.restart is never"),
    ],
    ids=lambda value: value.name if isinstance(value, Component) else None,
)
def test_outside_of_the_window_no_restart_reboot_or_drain_begins(
    item: Component,
    values: dict[str, Any],
    state: NodeState,
    now: datetime,
    permitted: tuple[Change, ...],
    waits: str,
) -> None:
    found = permission(item, Plan((item,), maintenance(**values), state), Disruption.reboot, now)
    assert found.diff == permitted and waits in found.pending and bool(waits) == bool(found.pending)
    if waits == CLOSED:
        assert permission(item, Plan((item,), maintenance(**values), state), Disruption.reboot, None).diff == ALL


@pytest.mark.parametrize(("verb", "disturbed"), [("plan", True), ("apply", False)])
def test_a_plan_has_the_batches_and_drains_of_the_window(
    verb: str, disturbed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "now", lambda: DAY)
    spec = NodeSpec.model_validate({"hardware": {"gpus": "none"}, "maintenance": WINDOW | DRAINED})
    result = HostResult("n1")
    fill_components(result, Plan((Engine(),), spec, FREE), Disruption.restart, verb=verb)
    assert result.disturbed == disturbed and any("drained first" in note for note in result.notes) == disturbed
    # What needs only a reload does not wait; apply decides by the time at which it runs.
    assert result.components[0].pending_reason == f"only {ALL[-1].key}: {CLOSED}"


@pytest.mark.parametrize(
    ("slurm", "missing"),
    [(None, True), (SlurmNode(name="n1", state="IDLE"), False), (Unknown(unknown="no answer"), False)],
)
def test_a_plan_says_what_a_drain_by_slurm_does_not_find(slurm: SlurmNode | Unknown | None, missing: bool) -> None:
    spec = NodeSpec.model_validate({"hardware": {"gpus": "none"}, "maintenance": DRAINED})
    result = HostResult("n1")
    fill_components(result, Plan((Engine(),), spec, FREE.model_copy(update={"slurm": slurm})), Disruption.restart)
    (note,) = [note for note in result.notes if "drained first, by slurm" in note]
    assert note.endswith("no slurmd runs on this node, or scontrol is missing") == missing


def test_a_plan_names_what_waits_only_if_the_rest_does_not() -> None:
    many = tuple(Change(f"x.{n}", 1, 2) for n in range(6))
    assert Permission(many).forecast(many) == ""
    assert Permission((), pending="until idle").forecast(many) == "until idle"
    assert Permission(many[:4], pending="until idle").forecast(many) == "only x.4, x.5: until idle"
    assert Permission(many[:1], pending="for a").forecast(many) == "only x.1, x.2, x.3, x.4 and 1 more: for a"


def test_what_comes_first_and_waits_holds_up_the_rest() -> None:
    engine = Engine()
    plan = Plan((engine,), NodeSpec(), FREE)
    assert permission(engine, plan, Disruption.restart, NIGHT, ["toolkit"]).pending == "for toolkit"
    toolkit = Recreating()
    toolkit.name = "toolkit"  # type: ignore[misc]
    found = permissions(Plan((toolkit, engine), NodeSpec(), BUSY), Disruption.restart, NIGHT)
    assert [each.pending.partition(":")[0] for each in found.values()] == ["until idle", "for toolkit"]
    assert not any(each.disruptive for each in found.values())


def test_hits_leave_out_what_does_not_count() -> None:
    assert compare(Engine(), NodeSpec(), BUSY).affected == ("train (registry:5000/team/pytorch:2.9)",)
    assert compare(Engine(), maintenance(ignore=["registry:5000/team/pytorch"]), BUSY).affected == ()


def test_the_result_has_what_the_operations_did() -> None:
    spec = NodeSpec.model_validate({"driver": {"policy": "hold"}})
    driver = compare(Driver(), spec, NodeState(have=("apt-get",), packages={}))
    result = HostResult("n1", components=[ComponentResult.of(Attempt(replace(driver, name=name))) for name in "abc"])
    result.components[0].pending_reason = "until idle"
    gone = UnreachableError("lost", remedy="wait")
    fill_attempts(result, {"a": Attempt(replace(driver, name="a"), changed=True), "b": Attempt(driver, error=gone)})
    first, second, third = result.components
    assert (first.attempted, first.changed, first.pending, first.pending_reason) == (True, True, False, "")
    assert second.error == Error("unreachable", "lost", "wait", 4) and not second.blocked
    assert (third.name, third.attempted) == ("c", False)


def test_of_what_waits_in_part_the_second_look_tells_what_is_done() -> None:
    spec = NodeSpec.model_validate({"driver": {"policy": "hold"}})

    def node(**held: bool) -> NodeState:
        there = {name: Package(version="550.163.01-2", arch="amd64", held=held[name]) for name in held}
        return NodeState(have=("apt-get",), packages=there)

    item = Attempt(compare(Driver(), spec, node(libcuda1=False, libnvcuvid1=False)), pending="until idle")
    look_back(Plan((Driver(),), spec, node(libcuda1=True, libnvcuvid1=False)), [item])
    assert (item.changed, item.closed) == (True, {"driver.libcuda1.held"})


def test_what_differs_after_its_steps_says_what_to_do() -> None:
    spec = NodeSpec.model_validate({"driver": {"policy": "hold"}})
    state = NodeState(have=("apt-get",), packages={"libcuda1": Package(version="550.163.01-2", arch="amd64")})
    item = Attempt(compare(Driver(), spec, state))
    look_back(Plan((Driver(),), spec, state), [item])
    assert item.error is not None and "driver still differs after its steps" in str(item.error)
    assert item.error.remedy.startswith("run again; if it still differs, ")


@pytest.mark.parametrize("kind", [Recreating(), Engine(), Rebooting()])
def test_who_waits_is_told_to_run_again_whatever_the_way(kind: Engine) -> None:
    """The same words stand in a plan, an apply and a remove."""
    found = permission(kind, Plan((kind,), maintenance(reboot="idle"), BUSY), Disruption.reboot, NIGHT)
    assert found.pending.endswith("; run again afterwards")
