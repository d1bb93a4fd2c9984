"""A run and its exit code in one of the output formats, as text.

A renderer is imported when its format is wanted: most runs need one of them.
"""

from __future__ import annotations

import io
import json
from itertools import chain
from typing import TYPE_CHECKING

from gpuready.result.formats import FORMATS
from gpuready.result.text import Painter

if TYPE_CHECKING:
    from gpuready.result.model import Run


def render(run: Run, code: int, form: str, *, color: bool = False) -> str:
    """``run`` in one of its part's formats, ending in a newline; colours are human's."""
    if form not in FORMATS:
        return run.part.rendered(run, form)
    if form == "human":
        if (whole := run.part.whole(run, Painter(color))) is not None:
            from gpuready.result.page import page

            return page(whole)
        from gpuready.result.human import human

        return human(run, code, color=color)
    if form == "junit":
        from gpuready.result.junit import junit

        return junit(run, code)
    if form in ("github", "gitlab"):
        from gpuready.result import annotations

        return annotations.github(run) if form == "github" else annotations.gitlab(run)
    from gpuready.result.document import document, host_document, read, summary

    if form == "html":
        from gpuready.result.html import html

        masked, _ = read(document(run, code), [run.part])
        masked.part = run.part
        return html(masked, code)
    if form == "json":
        text = io.StringIO()  # json.dumps would hold all parts of the text at once: several times its size
        json.dump(document(run, code), text, indent=2, allow_nan=False)
        return text.getvalue() + "\n"
    # jsonl: one line a host, with its name as ``host``; the last line is the summary, without hosts
    lines = ({"host": host.name, **host_document(host)} for host in run.everyone)
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in chain(lines, [summary(run, code)]))
