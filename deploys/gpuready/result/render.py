"""A run and its exit code in one of the output formats, as text.

A renderer is imported when its format is wanted: most runs need one of them.
"""

from __future__ import annotations

import io
import json
from itertools import chain
from typing import TYPE_CHECKING, Any

from gpuready.result.formats import FORMATS
from gpuready.result.text import Painter

if TYPE_CHECKING:
    from gpuready.result.model import Run


def render(run: Run, code: int, form: str, *, color: bool = False) -> str:
    """``run`` in one of its part's formats, ending in a newline; colours are human's."""
    if form == "intoto":
        from gpuready.result.statement import statement

        return _json(statement(run, code)) + "\n"
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
    from gpuready.result.document import host_document, read, read_host, summary

    if form == "html":
        from gpuready.result.html import html

        masked, _ = read({**summary(run, code), "hosts": {}}, [run.part])
        masked.part = run.part
        for hosts, found in ((run.hosts, masked.hosts), (run.unmanaged, masked.unmanaged)):
            found += [read_host(host.name, host_document(run, host), [run.part]) for host in hosts]
        return html(masked, code)
    if form == "json":
        # Host by host: the values of all hosts, and all parts of the text, would take several times its size.
        text, between = io.StringIO(), ""
        text.write(_json({**summary(run, code), "hosts": {}}).removesuffix("}\n}"))
        for host in run.everyone:
            member = _json({host.name: host_document(run, host)}).removeprefix("{").removesuffix("\n}")
            text.write(between + member.replace("\n", "\n  "))
            between = ","
        text.write("\n  }\n}\n" if between else "}\n}\n")
        return text.getvalue()
    # jsonl: one line a host, with its name as ``host``; the last line is the summary, without hosts
    lines = ({"host": host.name, **host_document(run, host)} for host in run.everyone)
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in chain(lines, [summary(run, code)]))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, allow_nan=False)
