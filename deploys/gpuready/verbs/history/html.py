"""The history as one HTML file: no network, no script. A sparkline shows each status over the period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpuready.contract.node_record import seconds
from gpuready.result.html_page import filled
from gpuready.result.text import printable
from gpuready.verbs.history.timeline import BAD

#: So many checks have a line in the page, the worst first; the rest is in the JSON.
_MOST = 500
_WIDTH, _HEIGHT = 150, 16
#: How high a status stands in a sparkline, so that nothing depends on colour alone.
_HIGH = {"warn": 9, "pending": 9, "unknown": 12, "blocked": 16, "fail": 16, "differs": 16, "unreachable": 16}
_LOW = 4


@dataclass(frozen=True)
class Bar:
    """One status in a sparkline."""

    x: float
    width: float
    height: int
    tone: str
    title: str


def page(found: dict[str, Any]) -> str:
    """The page, ending in a newline. ``found`` is a document of :mod:`gpuready.verbs.history.show`, so it is masked."""
    tracks = [each for each in found["tracks"] if each["bad"] or each["status"] in BAD or each["flapping"]]
    tracks.sort(key=lambda each: (each["status"] not in BAD, each["kind"] != "host", each["name"], each["host"]))
    return filled(
        "history/page.html.j2",
        found=found,
        rows=[(each, tone(each["status"]), sparkline(each["spans"], found)) for each in tracks[:_MOST]],
        more=max(len(tracks) - _MOST, 0),
        wrong={host["name"]: host["wrong"] for host in found["hosts"]},
        drifted={host["name"]: host["drifted"] for host in found["hosts"]},
        width=_WIDTH,
        height=_HEIGHT,
    )


def tone(status: str) -> str:
    """The class of a status in the page's style."""
    return "l" if status in ("warn", "unknown", "pending") else "b" if status in BAD else "g"


def sparkline(spans: list[dict[str, str]], found: dict[str, Any]) -> list[Bar]:
    """The bars of the period, from left to right; before the first result there is none."""
    start, end = seconds(found["from"]), seconds(found["to"])
    scale = _WIDTH / max(end - start, 1.0)
    begins = [seconds(each["since"]) for each in spans]
    made = []
    for span, at, until in zip(spans, begins, [*begins[1:], end], strict=True):
        if until < start or (until == start and until < end):
            continue
        x = (max(at, start) - start) * scale
        width = min(max((until - max(at, start)) * scale, 2.0), _WIDTH - min(x, _WIDTH - 2.0))
        status = span["status"]
        made.append(Bar(round(min(x, _WIDTH - 2.0), 1), round(width, 1), _HIGH.get(status, _LOW), tone(status),
                        printable(f"{status} since {span['since']}")))  # fmt: skip
    return made
