"""The manual page gpuready(1), made from the commands: ``python -m docs.manual`` writes docs/gpuready.1."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gpuready import __version__
from gpuready.cli.app import HELP, gpuready
from gpuready.result.exitcode import MEANING
from gpuready.result.verbs import VERBS

MANUAL = Path(__file__).with_name("gpuready.1")


def contexts(name: str) -> Iterator[Any]:
    """A command and its subcommands, each with what its help needs."""
    settings = {**gpuready.context_settings, "terminal_width": 100, "max_content_width": 100}
    with click.Context(gpuready, info_name="gpuready", **settings) as top:
        command: Any = gpuready.get_command(top, name)
        below = getattr(command, "commands", {}).items()
        for title, each in ((name, command), *((f"{name} {word}", each) for word, each in below)):
            yield click.Context(each, parent=top, info_name=title)


def manual() -> str:
    """The manual page gpuready(1), in the macros of man(7)."""
    about, _, examples = HELP.partition("\n\n\b\n")
    lines = [f'.TH GPUREADY 1 "" "gpuready {__version__}" "User Commands"', ".SH NAME"]
    lines += ["gpuready \\- prepare GPU nodes for containers and multi\\-node training", ".SH SYNOPSIS"]
    lines += [".B gpuready", "COMMAND [OPTION]...", ".SH DESCRIPTION", _roff(about), *_as_it_is(examples)]
    lines += [".SH COMMANDS"]
    for name in VERBS:
        for context in contexts(name):
            usage = " ".join(context.command.collect_usage_pieces(context))
            lines += [f".SS gpuready {_roff(context.info_name)} {_roff(usage)}"]
            lines += _about(context.command.help or "")[1:]  # a paragraph begins anyway
            for param in context.command.params:
                if param.param_type_name == "argument":
                    continue
                record = param.get_help_record(context)
                lines += [".TP", f"\\fB{_roff(record[0])}\\fR", _roff(" ".join(record[1].split()))] if record else []
    lines += [".SH EXIT STATUS"]
    for code, meaning in sorted(MEANING.items()):
        lines += [".TP", f"\\fB{code}\\fR", _roff(meaning)]
    lines += [".SH FILES", ".TP", "\\fI~/.ssh/config\\fR, \\fI~/.ssh/known_hosts\\fR",
              "Connections work as with ssh; host keys are checked strictly.",
              ".SH SEE ALSO", ".BR ssh_config (5),", ".BR ansible-inventory (1)"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _about(text: str) -> list[str]:
    """The paragraphs of a command's help; examples, after ``\\b``, keep their lines."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        example = paragraph.removeprefix("\b\n")
        lines += _as_it_is(example) if example != paragraph else [".PP", _roff(" ".join(paragraph.split()))]
    return lines


def _as_it_is(text: str) -> list[str]:
    return [".PP", ".nf", *map(_roff, text.rstrip().split("\n")), ".fi"]


def _roff(text: str) -> str:
    """Plain text on a line: no escapes, no request at its beginning, and hyphens and quotes that can be copied."""
    marks = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", "\n": " "}
    text = text.translate(str.maketrans(marks))
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    MANUAL.write_text(manual(), "utf-8")
