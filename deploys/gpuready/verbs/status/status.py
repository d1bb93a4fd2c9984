"""What ``gpuready status`` reports of a node: its record, and what has changed since. Pure: it renders one probe."""

import time
from collections.abc import Sequence
from typing import Literal

from gpuready.base.errors import brief
from gpuready.base.versions import numbers
from gpuready.contract.node_record import Record, last_record, seconds, spec_hash
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.verbs.status.part import Status


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
        lock=state.lock_owner,
        step=brief(state.step, 80),
    )


def _release(recorded: str, ours: str) -> Literal["same", "older", "newer", "other"]:
    if recorded == ours:
        return "same"
    try:
        return "newer" if numbers(recorded) > numbers(ours) else "older"
    except ValueError:
        return "other"
