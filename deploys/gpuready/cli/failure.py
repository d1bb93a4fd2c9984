"""A run that could not be done: its result, its message and its exit code, in the format that was asked for.

The command line may be what is wrong, so the wanted outputs are read from it leniently, without click.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import click

from gpuready.cli.output import deliver, delivered, requested
from gpuready.cli.sink import say
from gpuready.core.errors import EngineError, GpureadyError, InventoryError, UsageError
from gpuready.report.run import VERBS, Run


def interrupted(argv: Sequence[str]) -> int:
    """Ctrl-C before there was a result, or after it."""
    code = delivered()
    return code if code is not None else deliver(Run(verb_of(argv), interrupted=True), requested(argv))


def failed(argv: Sequence[str], error: Exception) -> int:
    """Any exception; a traceback is shown for our own bugs only."""
    if isinstance(error, GpureadyError):
        told = error
    elif isinstance(error, click.ClickException):
        told = UsageError(_sentence(error), remedy=f"gpuready {verb_of(argv)} --help".replace("  ", " "))
    else:
        import traceback

        say("".join(traceback.format_exception(error)).rstrip(), err=True)
        told = EngineError(
            f"bug in gpuready: {type(error).__name__}: {error}",
            remedy="report it with the traceback on stderr; it is not your mistake",
        )
    run = Run(verb_of(argv), error=told)
    if isinstance(error, InventoryError):
        from gpuready.inventory.hosts import NothingChosen

        run.leave_alone(error.skipped if isinstance(error, NothingChosen) else ())
    return deliver(run, requested(argv), color=_color(argv))


def verb_of(argv: Sequence[str]) -> str:
    """The verb of a command line, or nothing."""
    word, *rest = [*(word for word in argv if not word.startswith("-")), ""]
    both = f"{word} {rest[0]}" if rest else ""
    return both if both in VERBS else word if word in VERBS else ""


def _color(argv: Sequence[str]) -> str:
    """``--color`` as far as it can be told from a command line that may be wrong."""
    given = [word for before, word in itertools.pairwise(argv) if before == "--color"]
    given += [word.partition("=")[2] for word in argv if word.startswith("--color=")]
    return given[-1] if given and given[-1] in ("always", "never") else "auto"


def _sentence(error: click.ClickException) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return "nothing to do: no command is given"
    return error.format_message().rstrip(".") or type(error).__name__
