"""Checks of the last run on the node itself: did it run since the boot and the driver change, and how did it end?"""

from typing import Any

from gpuready.components.reconverge.component import RESULT, SCRIPT, UNIT, begins, last_run, missed
from gpuready.contract import owners
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, warn
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def _last(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.reconverge.on_driver_change == "off":
        return skip("reconverge.on_driver_change: off")
    if whose := owners.observed("driver", spec, state):
        return skip(whose)
    if not state.driver.loaded or not state.systemd:
        return skip("no NVIDIA driver is loaded" if state.systemd else "no systemd runs here to start it")
    since, said = missed(state), last_run(state) or {}
    if since and begins(state):
        return warn(f"it has not run since {since}, and is about to", "verify again in a minute")
    if said.get("outcome") == "failed":
        reason = str(said.get("reason"))
        return fail(f"it failed: {reason[:300]}", f"gpuready apply; journalctl -u {UNIT}", _told(said.get("failed")))
    if since:
        return fail(f"it has not run since {since}", f"gpuready apply; or systemctl start {UNIT}", f"see {RESULT}")
    outcome, reason = str(said.get("outcome")), str(said.get("reason"))
    if outcome == "idle":
        return warn("no driver was loaded when it ran", f"systemctl start {UNIT}")
    if outcome == "stale":
        return warn(
            f"left unrepaired: {reason[:300]}", "run gpuready explain with the name of each", _told(said.get("left"))
        )
    mended = ", ".join(map(str, said.get("mended") or []))
    return passed(f"it mended {mended}" if mended else "it found nothing stale")


def _told(rows: Any) -> str:
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return "; ".join(": ".join(map(str, row.values())) for row in found)[:2000]


CHECKS = (
    Check(
        "reconverge.last",
        "the service after a driver change did its work",
        Level.effective,
        "The service that looks after the node when its driver changes did not run, failed, or found what it may not "
        "mend: a module of another version than the libraries, programs that hold deleted libraries.",
        f"cat {RESULT}; journalctl -u {UNIT}",
        f"systemctl start {UNIT}; journalctl -u {UNIT} says what it did; or gpuready apply (it is {SCRIPT})",
        _last,
        component="reconverge",
        gpu=True,
        after=("driver.loaded",),
    ),
)
