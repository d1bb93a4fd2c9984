"""What ``gpuready status`` reports of a node: its record, and what has changed since. Pure: it renders one probe."""

import time
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from gpuready.base.errors import brief
from gpuready.base.facts import Facts
from gpuready.base.versions import numbers
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.tools.status.record import Record, last_record, seconds, spec_hash


class Status(Facts):
    """status: a node's record and its state now."""

    record: Record | None = Field(description="The last apply that changed the node; null: there is no record.")
    outcome: Literal["converged", "pending", "failed"] | None = Field(description="Of that apply; null: no record.")
    problem: str = Field(description="Why the node's record cannot be read; empty: it can, or there is none.")
    age: int | None = Field(description="Seconds since then, by the node's clock; negative: the clock was set back.")
    release: Literal["same", "older", "newer", "other"] | None = Field(
        description="The release in the record, compared with this one."
    )
    spec: str = Field(description="The hash of the spec, as the inventory is now.")
    spec_changed: bool | None = Field(description="Whether the spec is another one now; null: no record.")
    driver: str = Field(description="The loaded driver; empty: none.")
    driver_changed: bool | None = Field(description="Whether another driver is loaded now; null: no record.")
    rebooted: bool | None = Field(description="Whether the node was rebooted since then; null: no record.")
    differs: tuple[str, ...] = Field(description="The components that differ from the spec now.")
    blocked: tuple[str, ...] = Field(description="The components that cannot be compared now.")
    undecided: str = Field(description="Why the node was not compared; empty: it was.")
    lock: str = Field(description="Who changes the node now; empty: nobody.")
    step: str = Field(description="The step that runs on the node now; empty: none.")


def status_of(
    spec: NodeSpec,
    state: NodeState,
    *,
    release: str,
    differs: Sequence[str] = (),
    blocked: Sequence[str] = (),
    undecided: str = "",
) -> Status:
    """Compare the node's record with the node and the spec as they are now.

    ``release``: this one. ``differs``, ``blocked``: components that differ, or cannot be compared.
    ``undecided``: why there is no comparison.
    """
    last = last_record(state)
    spec_now, driver = spec_hash(spec), state.driver.loaded
    record = last if isinstance(last, Record) else None
    return Status(
        record=record,
        outcome=record.outcome if record else None,
        age=int((state.clock or time.time()) - seconds(record.time)) if record else None,
        release=_release(record.gpuready, release) if record else None,
        spec_changed=record.spec != spec_now if record else None,
        driver_changed=record.driver != driver if record else None,
        rebooted=record.boot_id != state.boot_id if record else None,
        problem=last if isinstance(last, str) else "",
        spec=spec_now,
        driver=driver,
        differs=tuple(differs),
        blocked=tuple(blocked),
        undecided=undecided,
        lock=brief(state.lock.partition(" run=")[0]),
        step=brief(state.step, 80),
    )


def _release(recorded: str, ours: str) -> Literal["same", "older", "newer", "other"]:
    if recorded == ours:
        return "same"
    try:
        return "newer" if numbers(recorded) > numbers(ours) else "older"
    except ValueError:
        return "other"
