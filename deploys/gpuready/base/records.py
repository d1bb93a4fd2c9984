"""Parse the node's answer: the lines that the probe, the active checks and other scripts print, as records.

A damaged line is an error, never a guess. templates/lib/PROTOCOL.md describes the lines.
"""

import base64
import binascii
import re
from collections.abc import Callable

from gpuready.base.archive import ArchiveError, members
from gpuready.base.errors import GpureadyError
from gpuready.base.facts import File, Unknown

#: Limits of one answer. The probe has 2 MB for its files; base64 adds a third.
MOST_CHARACTERS = 16_000_000
MOST_RECORDS = 10_000
#: Limits of one part of the node's answer, in characters: a configuration file (the probe's ``find`` leaves out larger
#: ones), what the shell itself read, and a command's output.
MOST_FILE, MOST_TEXT, MOST_OUTPUT = 1 << 20, 1 << 20, 2 << 20


class ProbeError(GpureadyError):
    """The node's answer is incomplete, or not in the form that gpuready's scripts print."""

    kind = "probe"
    exit_code = 4


def unmarked(text: str) -> list[str]:
    """Return the lines after ``begin`` from a script that ran without a nonce; none if there is no ``begin``."""
    lines = [line.rstrip(" ") if line.startswith(("begin", "end ")) else line for line in text.splitlines()]
    return lines[lines.index("begin") + 1 :] if "begin" in lines else []


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as e:
        raise ProbeError(f"the node's answer is damaged ({e})") from None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class Records:
    """The records by kind and name. ``pause`` is called before a part is returned: to parse it takes time."""

    def __init__(self, lines: list[str], pause: Callable[[], None] = lambda: None) -> None:
        self._pause = pause
        self.files: dict[str, File] = {}
        self.texts: dict[str, str] = {}
        self.runs: dict[str, tuple[int, str]] = {}
        self.stuck: dict[str, str] = {}
        size = sum(map(len, lines))
        if len(lines) > MOST_RECORDS or size > MOST_CHARACTERS:
            raise ProbeError(f"the node printed {size} characters in {len(lines)} lines: too much")
        for seen, line in enumerate(lines):
            word, *rest = line.split(" ")
            if word == "end":
                if rest != [str(seen)]:
                    raise ProbeError(f"the node's answer is cut: {seen} records of {' '.join(rest)[:40]}")
                return
            self._take(word, rest, line)
        raise ProbeError("the node's answer is cut: its end marker is missing")

    def _take(self, word: str, rest: list[str], line: str) -> None:
        if word == "tar" and len(rest) == 1:
            self._unpack(_decode(rest[0]))
        elif word == "run" and len(rest) == 3 and rest[1].isascii() and rest[1].isdigit():
            self.runs[rest[0]] = (int(rest[1][:4]), _text(_decode(rest[2])))
        elif word == "failed" and len(rest) == 1:
            raise ProbeError(_text(_decode(rest[0])).strip() or "the script could not begin")
        else:
            raise ProbeError(f"the node's answer has an unknown line: {line[:80]!r}")

    def _unpack(self, data: bytes) -> None:
        own: dict[str, str] = {}
        try:
            for each in members(data):
                text = _text(each.data)
                if each.path.startswith("/P/"):
                    own[each.path[3:]] = text
                else:
                    _bounded(each.path, text, MOST_FILE)
                    self.files[each.path] = File(
                        text=text, mode=each.mode, uid=each.uid, gid=each.gid, mtime=each.mtime
                    )
        except ArchiveError as e:
            raise ProbeError(f"the node's files are damaged ({e})") from None
        for key, text in own.items():
            name, _, kind = key.rpartition(".")
            if kind == "text":
                self.texts[name] = _bounded(key, text, MOST_TEXT)
            elif kind == "stuck":
                self.stuck[name] = _bounded(key, text, MOST_TEXT)
            elif kind == "rc" and text.strip().isdecimal():
                rc = int(text.strip()[:4])
                self.runs[name] = (rc, own.get(f"{name}.err" if rc else f"{name}.out", ""))

    def text(self, name: str) -> str:
        """Return what the shell itself read; empty if there is nothing."""
        self._pause()
        return self.texts.get(name, "")

    def abandoned(self) -> tuple[str, ...]:
        """Name the commands that the probe abandoned at its limit and that may still answer: those not in state D."""
        return tuple(sorted(name for name, text in self.stuck.items() if not re.search(r"State:\s*D", text)))

    def run(self, name: str) -> str | Unknown | None:
        """Return a command's output, or why it is unknown, or None if the probe had no reason to run it."""
        self._pause()
        if name in self.stuck:
            pids = re.findall(r"^[^:\n]*:?Pid:\s*(\d+)", self.stuck[name], re.M)
            states = re.findall(r"State:\s*(\S)", self.stuck[name])
            who = ", ".join(f"pid {p} in state {s}" for p, s in zip(pids, states, strict=False)) or "no process left"
            return Unknown(unknown=f"{name}: no answer within the probe's limit, abandoned ({who})")
        if name not in self.runs:
            return None
        rc, text = self.runs[name]
        if len(text) > MOST_OUTPUT:
            return Unknown(unknown=f"{name}: it printed {len(text)} characters; gpuready reads at most {MOST_OUTPUT}")
        if rc:
            return Unknown(unknown=f"{name}: exit {rc}: {_first(text)}")
        return text


def _bounded(name: str, text: str, most: int) -> str:
    """Return the text; if it is over its limit, fail the host by the part's name.

    Only a command's output over its limit is :class:`Unknown`. Components take a file that is not in the state as
    absent, and a text without lines as "there is none": either could turn a failure into a pass.
    """
    if len(text) > most:
        raise ProbeError(f"{name} of the node's answer has {len(text)} characters; gpuready reads at most {most}")
    return text


def _first(text: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "no message")
