"""The output formats by name. Each is a rendering of one run and its exit code, as text.

A renderer is imported when its format is wanted: most runs need one of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuready.result.model import Run

FORMATS = ("human", "json", "jsonl", "junit", "html", "github", "gitlab")
#: Of the tests between hosts: a table, and a picture of the matrices.
FABRIC_FORMATS = (*FORMATS, "csv", "svg")
#: Of verbs that describe hosts and judge nothing.
LISTING_FORMATS = ("human", "json", "jsonl")


def formats(verb: str) -> tuple[str, ...]:
    """Return the formats that can show a run of this verb."""
    return FABRIC_FORMATS if verb == "fabric" else LISTING_FORMATS if verb in ("inventory", "status") else FORMATS


def render(run: Run, code: int, form: str, *, color: bool = False) -> str:
    """``run`` in one of the formats (a fabric's: :data:`FABRIC_FORMATS`), ending in a newline; colours are human's."""
    if form == "human" and "image" in run.parts:
        from gpuready.result.compat_report import answer_page

        return answer_page(run.parts["image"], color=color)
    if form == "human" and run.verb == "inventory":
        from gpuready.result.inventory import listing

        return listing(run, color=color)
    if form == "human":
        from gpuready.result.human import human

        return human(run, code, color=color)
    if form == "junit":
        from gpuready.result.junit import junit

        return junit(run, code)
    if form in ("github", "gitlab"):
        from gpuready.result import annotations

        return annotations.github(run) if form == "github" else annotations.gitlab(run)
    if form == "csv":
        from gpuready.result.fabric import csv_table

        return csv_table(run)
    if form == "svg":
        from gpuready.result.heatmap import svg

        return svg(run)
    from gpuready.result.document import document, host_document, read, summary

    if form == "html":
        from gpuready.result.html import html

        return html(*read(document(run, code)))  # a document is masked
    if form == "json":
        return json.dumps(document(run, code), indent=2, allow_nan=False) + "\n"
    # jsonl: one line a host, with its name as ``host``; the last line is the summary, without hosts
    lines = [{"host": host.name, **host_document(host)} for host in run.everyone]
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in (*lines, summary(run, code)))
