"""Places for results: a directory, or a URL that fsspec (an extra) knows, such as ``s3://bucket/fleet``.

A web server (``https://``) only gets files (PUT). Others may write to a place, too, so a reader expects anything: it
takes regular files only, follows no link, and bounds what it reads.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.base import https
from gpuready.base.child import command, environment
from gpuready.base.errors import UsageError, brief
from gpuready.base.files import NOT_REGULAR, new_mode, read_stream, replace_file

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
#: Seconds for one upload.
_UPLOAD = 300


@dataclass(frozen=True)
class Entry:
    """A file of a place. ``stamp`` changes with its content. ``problem``: why it is not read; empty if it can be."""

    name: str
    stamp: str
    problem: str = ""


def place(text: str, option: str) -> Directory | Remote:
    """The place that a user names. ``option``: for the message of the UsageError if it cannot be one."""
    url = _URL.match(text)
    if url is None:
        return Directory(Path(text).expanduser())
    if url[1].lower() in ("http", "https"):
        raise UsageError(f"{option} {text}: results are not kept over {url[1]}", remedy="a directory, or s3://BUCKET")
    return _remote(text, option)


def upload(text: str, option: str) -> tuple[Remote, str] | None:
    """The place, and the name in it, of a file whose URL a user names; None for a path. Raises UsageError."""
    url = _URL.match(text)
    if url is None:
        return None
    where, _, name = text.rpartition("/")
    scheme = url[1].lower()
    wrong = https.problem(text) if scheme == "https" else "results are not sent over http" if scheme == "http" else ""
    if not wrong and (not name or len(where) <= url.end()):
        wrong = "the directory or the name of the file is missing"
    if wrong:
        raise UsageError(f"{option} {text}: {wrong}", remedy="https://HOST/FILE, or s3://BUCKET/FILE")
    return Remote(where) if scheme == "https" else _remote(where, option), name


def _remote(text: str, option: str) -> Remote:
    if importlib.util.find_spec("fsspec") is None:
        raise UsageError(
            f"{option} {text}: a URL needs fsspec, which is not installed",
            remedy="pip install fsspec beside gpuready, or pipx inject gpuready fsspec",
        )
    return Remote(text)


class Directory:
    """A local directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key = str(path.absolute())

    def __str__(self) -> str:
        return str(self.path)

    def prepare(self) -> None:
        """Create the directory, unless it exists. Raises OSError if no file can be written to it."""
        self.path.mkdir(exist_ok=True)
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "permission denied")

    def write(self, name: str, data: bytes) -> None:
        """Write a new file, as a whole or not at all. Raises OSError."""
        replace_file(self.path / name, data, new_mode())

    def entries(self) -> Iterator[Entry]:
        """All files but hidden ones. Raises OSError."""
        with os.scandir(self.path) as found:
            for each in found:
                with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                    if each.name.startswith("."):
                        continue
                    status = each.stat(follow_symlinks=False)
                    regular = stat.S_ISREG(status.st_mode)
                    problem = "" if regular else "a symlink" if each.is_symlink() else NOT_REGULAR
                    yield Entry(each.name, f"{status.st_size} {status.st_mtime_ns}", problem)

    def read(self, name: str, most: int) -> bytes:
        """The file of at most ``most`` bytes. Raises OSError."""
        handle = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, NOT_REGULAR)
            return read_stream(file, most)


class Remote:
    """A directory of a URL. A store takes a file as a whole.

    A process of its own writes: a run over hosts has patched threads for gevent, and fsspec's own loop fails on that.
    """

    def __init__(self, url: str) -> None:
        scheme, _, path = url.partition("://")
        self.url = self.key = f"{scheme.lower()}://{path.rstrip('/') or path[:1]}"
        self._opened: tuple[Any, str] | None = None

    def __str__(self) -> str:
        return self.url

    def prepare(self) -> None:
        """Find what the URL needs; a web server needs nothing. Raises OSError."""
        if not self.url.startswith("https://"):
            self._apart()

    def write(self, name: str, data: bytes) -> None:
        """Write a new file. Raises OSError."""
        self._apart(name, data)

    def _apart(self, name: str = "", data: bytes = b"") -> None:
        try:
            done = subprocess.run(
                command(__name__),
                input=f"{self.url}\n{name}\n".encode() + data,  # the URL may hold credentials, and all users see words
                capture_output=True, env=environment(), timeout=_UPLOAD, check=False,
                start_new_session=True,  # Ctrl-C ends the run, which still writes its result
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise OSError(errno.ETIMEDOUT, f"no answer within {_UPLOAD} s") from None
        if done.returncode:
            *_, last = ["", *done.stderr.decode(errors="replace").strip().splitlines()]
            raise OSError(errno.EIO, brief(last) or f"exit {done.returncode}")

    def entries(self) -> Iterator[Entry]:
        """All files but hidden ones. Raises OSError."""
        try:
            system, path = self._open()
            found = system.ls(path, detail=True)
        except Exception as e:
            raise _failed(e) from None
        for each in found:
            name = str(each["name"]).rstrip("/").rpartition("/")[2]
            if name and not name.startswith("."):
                stamp = repr(sorted((key, str(value)) for key, value in each.items()))
                yield Entry(name, stamp, "" if each.get("type") == "file" else NOT_REGULAR)

    def read(self, name: str, most: int) -> bytes:
        """The file of at most ``most`` bytes. Raises OSError."""
        try:
            system, path = self._open()
            data: bytes = system.cat_file(f"{path}/{name}", start=0, end=most + 1)
        except Exception as e:
            raise _failed(e) from None
        if len(data) > most:
            raise OSError(errno.EFBIG, f"larger than {most // 1_000_000} MB")
        return data

    def _open(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        if self._opened is None:
            from fsspec.core import url_to_fs

            self._opened = url_to_fs(self.url)
        return self._opened


def _failed(error: Exception) -> OSError:
    """A store's library may raise anything."""
    named = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "  # fsspec says what to install
    return OSError(errno.EIO, brief(f"{named}{error}"))


def _main() -> None:
    """Write stdin behind its two first lines, URL and NAME, to that file; without a name, find what the URL needs."""
    url, name = (sys.stdin.buffer.readline().decode().rstrip("\n") for _ in range(2))
    try:
        if url.startswith("https://"):
            https.exchange("PUT", f"{url}/{name}", sys.stdin.buffer.read())
            return
        system, path = Remote(url)._open()
        if name:
            system.pipe_file(f"{path}/{name}", sys.stdin.buffer.read())
    except Exception as e:
        raise SystemExit(_failed(e).strerror) from None


if __name__ == "__main__":
    _main()
