"""``--output FORMAT[:PATH_OR_URL]`` and ``--history DIR_OR_URL``: where each rendering of the result goes.

Stdout carries one rendering and nothing else. A file appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from gpuready.base import https
from gpuready.base.errors import OutputError, UsageError, did_you_mean
from gpuready.base.files import new_mode, reason, replace_file
from gpuready.base.places import Directory, Remote, place, upload
from gpuready.cli.sink import complain, write_stdout
from gpuready.result.exitcode import exit_code
from gpuready.result.formats import FORMATS, MATRIX_FORMATS
from gpuready.result.render import render
from gpuready.result.text import Painter, one_line, printable

if TYPE_CHECKING:
    from gpuready.result.model import Run

_FOR_MACHINES = ("json", "jsonl", "junit", "intoto", "csv", "svg", "html", "github", "gitlab", "human")
#: Without a host these have nothing to show on stdout: stderr names the error.
_SHOW_HOSTS = ("human", "html", "svg", "csv")
#: Verbs whose failures GPUREADY_HISTORY keeps, too: they do nothing without nodes.
_OVER_NODES = ("plan", "apply", "verify", "stress", "remove", "status", "fabric", "record")


@dataclass(frozen=True)
class Target:
    """One rendering; without a path it goes to stdout. In a ``place``, the path is a name.

    ``kept``: by ``--history``, under a new name.
    """

    form: str
    path: Path | None = None
    place: Directory | Remote | None = None
    kept: bool = False

    @property
    def shown(self) -> str:
        return str(self.path) if self.place is None else f"{self.place}/{self.path}"


def parse(text: str, forms: Sequence[str] = FORMATS) -> Target:
    """``json`` or ``junit:report.xml``, of a verb's ``forms``; UsageError for anything else."""
    form, colon, path = text.partition(":")
    if form not in forms:
        hint = did_you_mean(form, forms)
        raise UsageError(f"--output: no format {form!r}{hint}", remedy=f"one of {', '.join(forms)}, then :PATH")
    if colon and not path:
        raise UsageError(f"--output {text}: the path after the colon is missing")
    if remote := upload(path, "--output"):
        _prepare(remote[0], "--output")
        return Target(form, Path(remote[1]), remote[0])
    return Target(form, _writable(Path(path).expanduser()) if path and path != "-" else None)


def _writable(path: Path) -> Path:
    """Better refused now than after an hour; UsageError."""
    if path.is_dir():
        raise UsageError(f"--output: cannot write {path}: it is a directory")
    if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
        if not os.access(path, os.W_OK):
            raise UsageError(f"--output: cannot write {path}: permission denied")
    elif not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"--output: cannot write {path}: {path.parent} is not a writable directory")
    return path


def targets(texts: Sequence[str], default: str = "human", forms: Sequence[str] = FORMATS) -> tuple[Target, ...]:
    """All wanted outputs; where none goes to stdout, human text does. UsageError if they cannot all be."""
    found = [parse(text, forms) for text in texts]
    _one_server(found)
    if sum(target.path is None for target in found) > 1:
        raise UsageError("only one --output can go to stdout", remedy="give the others a path: FORMAT:PATH")
    paths = [target.shown for target in found if target.path is not None]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"--output: {path} is given twice")
    if len(paths) == len(found):
        found.append(Target(default if not found else "human"))
    return tuple(found)


def kept(history: str) -> tuple[Target, ...]:
    """The result document in the place of ``--history``, if there is one. UsageError if it cannot be written there."""
    if not history:
        return ()
    where = place(history, "--history")
    _prepare(where, "--history")
    return (Target("json", Path(f"-{secrets.token_hex(6)}.json"), where, kept=True),)


def _one_server(found: Sequence[Target]) -> None:
    https.refuse_to_share("PUT", (target.shown for target in found if target.shown.startswith("https://")))


def _prepare(where: Directory | Remote, option: str) -> None:
    """Better refused now than after an hour; UsageError."""
    try:
        where.prepare()
    except OSError as e:
        raise UsageError(f"{option}: cannot write to {where}: {reason(e)}") from None


def _named(target: Target, run: Run) -> Target:
    """A name that sorts by time, for a file of ``--history``."""
    if not target.kept:
        return target
    when = re.sub("[-:]", "", run.ended or "")
    return replace(target, path=Path(f"{when}-{run.verb.replace(' ', '-') or 'none'}{target.path}"))


def given(argv: Sequence[str], option: str) -> list[str]:
    """The values of an option, as far as they can be told from a command line that may be wrong."""
    argv = argv[: argv.index("--")] if "--" in argv else argv  # what follows is the user's script
    values = [word for before, word in itertools.pairwise(argv) if before == option]
    return values + [word.removeprefix(f"{option}=") for word in argv if word.startswith(f"{option}=")]


def requested(argv: Sequence[str], forms: Sequence[str]) -> tuple[Target, ...]:
    """What a command line seems to want, right or wrong; for runs that never began. ``forms``: the verb's."""
    texts = given(argv, "--output") or os.environ.get("GPUREADY_OUTPUT", "").split()
    known = {*FORMATS, *forms} & set(_FOR_MACHINES)  # the others show values alone, and there are none
    found: list[Target] = []
    for text in texts:
        with contextlib.suppress(UsageError):
            found.append(parse(text, tuple(known)))
    try:
        _one_server(found)
    except UsageError:
        found.clear()
    around = os.environ.get("GPUREADY_HISTORY", "") if argv[:1] and argv[0] in _OVER_NODES else ""
    with contextlib.suppress(UsageError):
        found += kept([around, *given(argv, "--history")][-1])
    default = "json" if "record" in argv[:1] and not texts else "human"
    on_stdout = [target.form for target in found if target.path is None] or [default]
    shown = min(on_stdout, key=_FOR_MACHINES.index)
    return (Target(shown), *(target for target in found if target.path is not None))


def deliver(run: Run, wanted: Sequence[Target], *, color: str = "auto", detailed: bool = False) -> int:
    """Write every rendering, the one on stdout last; the exit code. An interrupt ends it before stdout has begun."""
    code = exit_code(run, detailed=detailed)
    if run.interrupted:
        complain("gpuready: interrupted\n")
    elif run.error is not None:
        from gpuready.result.page import problem

        complain(problem(run.error.message, run.error.remedy, color=use_color(color, sys.stderr)))
    told = not run.hosts and run.error is not None and not run.parts  # stderr has shown the error
    if any(target.path is None and target.form not in MATRIX_FORMATS for target in wanted):
        _tell_hosts(run, color)
    run.ended = run.ended or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    wanted = [_named(target, run) for target in wanted if not (target.kept and run.of_no_node)]
    rendered = [
        (target, render(run, code, target.form, color=target.path is None and use_color(color, sys.stdout)))
        for target in sorted(wanted, key=lambda target: target.path is None)
        if not (told and target.path is None and target.form in _SHOW_HOSTS)
    ]
    return write(rendered, code)


def write(rendered: Iterable[tuple[Target, str]], code: int) -> int:
    """Write each text to where it belongs; the exit code: ``code``, or 74 if that is 0 and a text was not written."""
    global _delivered
    with _whole():
        for target, text in rendered:
            try:
                _write(target, text)
            except OutputError as e:
                complain(f"gpuready: {e}\n")
                code = code or e.exit_code
        _delivered = code
    return code


#: The exit code of the result that this run has delivered.
_delivered: int | None = None


def delivered() -> int | None:
    """The exit code of a result that is out already: no other one may follow it."""
    return _delivered


def begin() -> None:
    """Nothing is delivered yet."""
    global _delivered
    _delivered = None


def _tell_hosts(run: Run, color: str) -> None:
    """On stderr: what is wrong with hosts, and notes, for a format that shows values alone."""
    from gpuready.base.host_list import hostlist
    from gpuready.result.blocks import error_blocks, note_blocks
    from gpuready.result.page import problem

    on = use_color(color, sys.stderr)
    for (_, message, remedy), hosts in error_blocks(run).items():
        complain(problem(f"{hostlist(hosts)}: {message}", remedy, color=on))
    for note, hosts in note_blocks(run).items():
        complain(f"note: {hostlist(hosts)}: {one_line(note)}\n")
    tell_skipped(run, color)


def tell_skipped(run: Run, color: str = "auto") -> None:
    """Who is left alone, on stderr: for verbs whose stdout has another form."""
    from gpuready.result.blocks import skipped_lines

    complain("".join(f"{line}\n" for line in skipped_lines(run, Painter(use_color(color, sys.stderr)))))


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """The first interrupt waits for the end of the document, because half of one is no JSON; the second one does not.

    The reader of a pipe may never take the rest.
    """
    seen = 0

    def wait(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            raise KeyboardInterrupt
        with contextlib.suppress(RuntimeError):  # it may have come while stderr was being written
            complain("gpuready: writing the result; interrupt again to give it up\n")

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    caught = [number for number in numbers if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, wait) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def use_color(choice: str, stream: object) -> bool:
    """``auto``: only on a terminal, and not against NO_COLOR (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    isatty = getattr(stream, "isatty", None)
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and bool(isatty and isatty())


def _write(target: Target, text: str) -> None:
    if target.path is None:
        return write_stdout(text)
    data = printable(text).encode("utf-8", "backslashreplace")
    try:
        if target.place is None:
            _write_file(target.path, data)
        else:
            target.place.write(str(target.path), data)
    except OSError as e:
        raise OutputError(f"the result was not written to {target.shown}: {reason(e)}") from None


def _write_file(path: Path, data: bytes) -> None:
    if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
        path.write_bytes(data)
    else:
        replace_file(path, data, new_mode())


def write_new(path: Path, text: str, exists: UsageError) -> None:
    """Write a file that is not there yet. Raises ``exists`` if it is, and UsageError if it cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise exists from None
    except OSError as e:
        raise UsageError(f"cannot write {path}: {e.strerror}") from None
