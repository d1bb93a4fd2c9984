"""What a benchmark's document says: tables for the page, and the goals with what was measured."""

import re
from statistics import median
from typing import Any

#: The measured commands in the order of the tables, with the colour of each in the plot.
COLOURS = {
    "connect + true": "#bbbbbb",
    "connect + probe": "#888888",
    "gpuready": "#2a9d4a",
    "pyinfra": "#3b6fb6",
    "Mitogen": "#c98a1b",
    "Ansible": "#b8372f",
}
_BEGIN, _END = "<!-- begin figures -->\n", "<!-- end figures -->\n"
Run = dict[str, Any]


def tables(document: dict[str, Any]) -> str:
    """All figures in Markdown: medians, and the median of the ratios of each round."""
    runs = document["runs"]
    loads = sorted(run["load"] for run in runs)
    rounds = max(run["round"] for run in runs) + 1
    found = (
        f"Measured on {document['date']} with `{document['command']}` on {document['machine']}; load average "
        f"{loads[0]} to {loads[-1]}; {rounds} round{'s' if rounds > 1 else ''}. "
        + ", ".join(f"{name} {version}" for name, version in document["versions"].items())
        + f"; {document['items']} operations or tasks.\n"
    )
    found += (
        "\n| hosts | round trip | command | wall | : gpuready | CPU | : gpuready | CPU of the node, a host "
        "| memory | sessions, a host | bytes, a host |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    for hosts, delay in dict.fromkeys((run["hosts"], run["delay"]) for run in runs):
        cell = [run for run in runs if (run["hosts"], run["delay"]) == (hosts, delay)]
        for tool in dict.fromkeys(run["tool"] for run in cell):
            mine = [run for run in cell if run["tool"] == tool]

            def middle(key: str, mine: list[Run] = mine) -> float:
                return float(median(run[key] for run in mine))

            wall, cpu = (_times(ratio(cell, tool, "gpuready", key)) for key in ("wall", "cpu"))
            found += (
                f"| {hosts} | {delay} ms | {tool} | {middle('wall'):.2f} s | {wall} | {middle('cpu'):.2f} s | {cpu} "
                f"| {middle('node_cpu') / hosts:.2f} s | {middle('memory') / 1e6:.0f} MB "
                f"| {middle('sessions') / hosts:.0f} | {middle('bytes') / hosts / 1e3:.0f} kB |\n"
            )
    return found


def ratio(cell: list[Run], over: str, under: str, key: str) -> float | None:
    """The median, over the rounds that have both, of one command's figure divided by another's."""
    found = []
    for at in {run["round"] for run in cell}:
        figures = {run["tool"]: run[key] for run in cell if run["round"] == at}
        if over in figures and under in figures:
            found.append(figures[over] / figures[under])
    return median(found) if found else None


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def renewed(page: str, documents: list[dict[str, Any]]) -> str:
    """The page with these figures between its two markers."""
    figures = _BEGIN + "\n".join(map(tables, documents)) + _END
    text, count = re.subn(f"{_BEGIN}.*?{_END}", lambda match: figures, page, flags=re.S)
    assert count == 1, "the page has no place for the figures"
    return text
