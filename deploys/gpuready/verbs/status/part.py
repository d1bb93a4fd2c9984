"""The part of status: each host's last apply, from its record, and whether it still matches its spec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from gpuready.base.facts import Facts
from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.contract.node_record import Record
from gpuready.result.facts import HEAD
from gpuready.result.formats import LISTING_FORMATS
from gpuready.result.model import NOT_COMPARED, Run, VerbPart
from gpuready.result.text import Painter, columns, grouped

_HEAD = ("HOST", "LAST CHANGE", "BY", "GPUREADY", "SPEC", "DRIVER", "NOW")
_COLORS = {"failed": "red", "pending": "yellow"}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


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


class StatusPart(VerbPart):
    """A value of each host."""

    def blocks(self, run: Run, paint: Painter) -> Iterator[list[str]]:
        """A table with a line for each host that was probed, and what hosts consist of, once for those alike."""
        hosts: list[tuple[str, Status]] = [(h.name, h.parts["status"]) for h in run.hosts if "status" in h.parts]
        rows = [(name, *_cells(status)) for name, status in hosts]
        if not rows:
            return
        styles = ["bold", *(_COLORS.get(status.outcome or "", "") for _, status in hosts)]
        yield list(map(paint, styles, columns([_HEAD, *rows])))
        alike = grouped((host.facts.cells, host.name) for host in run.hosts if host.facts)
        if alike:
            head = ("HOSTS", *(name.upper() for name in HEAD))
            table = columns([head, *((hostlist(names), *cells) for cells, names in alike.items())])
            yield [paint("bold", table[0]), *table[1:]]

    def tally(self, run: Run) -> str:
        """How many nodes match their spec. Empty if a node was not read: its outcome counts."""
        found = [host.parts["status"] for host in run.hosts if "status" in host.parts]
        if not found or len(found) < len(run.hosts):
            return ""
        differ = sum(bool(each.differs or each.blocked) for each in found)
        left = sum(bool(each.undecided) for each in found)
        same = len(found) - differ - left
        words = [f"{count(same, 'node')} {'matches its' if same == 1 else 'match their'} spec"] if same else []
        words += [f"{count(differ, 'node')} {'differs' if differ == 1 else 'differ'}"] if differ else []
        words += [f"{count(left, 'node')} {NOT_COMPARED}"] if left else []
        return ", ".join(words)

    def well(self, run: Run) -> bool:
        """No node differs, and each was compared."""
        return not any(
            each.differs or each.blocked or each.undecided for host in run.hosts if (each := host.parts.get("status"))
        )


PART = StatusPart(
    verb="status",
    of_host={"status": (Status, "status: the node's record, and what changed since.")},
    formats=LISTING_FORMATS,
    judges=False,
)


def _cells(status: Status) -> tuple[str, ...]:
    record, driver = status.record, status.driver or "none"
    if record is None:
        return ("unreadable record" if status.problem else "no record", "-", "-", "-", driver, _now(status))
    parts = " (some components)" if record.partial else ""
    return (
        f"{status.outcome}{parts}, {_age(status.age or 0)}",
        record.by,
        record.gpuready if status.release == "same" else f"{record.gpuready} ({status.release})",
        "changed since" if status.spec_changed else "same",
        f"{driver}, was {record.driver or 'none'}" if status.driver_changed else driver,
        _now(status),
    )


def _age(seconds: int) -> str:
    """``3 h ago``."""
    if seconds < 0:
        return "in the future"
    return next((f"{seconds // size} {unit} ago" for size, unit in _UNITS if seconds >= size), "just now")


def _now(status: Status) -> str:
    """The run that changes the node now, and how the node differs from its spec."""
    busy = [f"being changed by {status.lock}"] if status.lock else []
    busy += [f"running step {status.step}"] if status.step else []
    if status.undecided:
        return "; ".join([*busy, NOT_COMPARED])
    differs = [f"differs: {', '.join(status.differs)}"] if status.differs else []
    differs += [f"blocked: {', '.join(status.blocked)}"] if status.blocked else []
    return "; ".join([*busy, *(differs or ["matches the spec"])])
