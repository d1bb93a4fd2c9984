"""The folder of a bundle: files are fetched into it, resumed, and checked before they get their name.

SHA256SUMS is written last, and removed before anything changes: a folder without it is not complete.
"""

import hashlib
import http.client
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuready.base.errors import OutputError
from gpuready.base.files import new_mode, reason, replace_file
from gpuready.base.https import LIMITS, StatusError, add_header, answered
from gpuready.verbs.bundle.contents import RUN_AGAIN, Content, FetchError, Item, path_of
from gpuready.verbs.bundle.part import BundledFile

SUMS = "SHA256SUMS"
#: Bytes of a file of an index, and of one read.
_MOST_INDEX, _CHUNK = 64 << 20, 1 << 20
#: A server's answer if nothing comes after the beginning that is here.
_NO_MORE = 416


def read(url: str) -> bytes:
    """Return a file of an index. Raises StatusError, and FetchError for all else."""
    data = bytearray()
    try:
        with answered(urllib.request.Request(url)) as answer:
            for piece in _pieces(url, answer):
                data += piece
                if len(data) > _MOST_INDEX:
                    raise FetchError(f"{url}: more than {_MOST_INDEX >> 20} MiB", remedy=RUN_AGAIN)
    except StatusError:
        raise
    except OSError as e:
        raise _unreachable(url, e) from None
    return bytes(data)


def _pieces(url: str, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield the content as it arrives. Raises OSError if some is missing, FetchError if it is too slow."""
    left, since, arrived = answer.length, time.monotonic(), 0
    while (left is None or left > 0) and (data := answer.read1(_CHUNK)):
        left = None if left is None else left - len(data)
        arrived += len(data)
        if time.monotonic() - since > LIMITS.patience:
            if arrived < LIMITS.slowest * LIMITS.patience:
                text = f"{url}: less than {LIMITS.slowest} bytes/s in {LIMITS.patience} s"
                raise FetchError(text, remedy=RUN_AGAIN)
            since, arrived = time.monotonic(), 0
        yield data
    if left is not None and left > 0:
        raise OSError(f"{left} bytes are missing")


def _unreachable(url: str, error: OSError) -> FetchError:
    remedy = f"this machine must reach it: curl -fI {url}; for a proxy, set http_proxy or https_proxy"
    return FetchError(f"{url} cannot be fetched: {error}", remedy=remedy)


class Folder:
    """The folder that the bundle is written to. Its methods raise OutputError and FetchError."""

    def __init__(self, root: Path, tell: Callable[[str], object]) -> None:
        self.root, self._tell = root, tell
        self.files: dict[str, BundledFile] = {}

    def begin(self) -> None:
        """From now on, it is not complete."""
        with _written(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            (self.root / SUMS).unlink(missing_ok=True)

    def put(self, name: str, data: bytes) -> None:
        """Write a file whose content is at hand."""
        path = self._path(name)
        sha256 = hashlib.sha256(data).hexdigest()
        with _written(path):
            if fresh := not path.is_file() or path.read_bytes() != data:
                replace_file(path, data, new_mode())
        self.files[name] = BundledFile(name, len(data), sha256, fresh)

    def fetch(self, item: Item) -> None:
        """Fetch a file, unless it is there."""
        name = path_of(item.url)
        path = self._path(name)
        part = path.with_name(f".{path.name}.part")
        with _written(path):
            sha256, digest = _hashes(path, item.content.algorithm)
            if fresh := digest != item.content.digest:
                if name in self.files:
                    text = f"{item.url}: the specs name two contents for {name}"
                    raise FetchError(text, remedy="all specs must have the same hash for a URL")
                self._tell(f"fetch {item.url}")
                sha256 = _download(item, part)
                part.replace(path)
        self.files[name] = BundledFile(name, path.stat().st_size, sha256, fresh)

    def copy(self, source: Path) -> BundledFile:
        """Copy a file of this machine, unless it is there."""
        with _written(source):
            sha256, _ = _hashes(source, "sha256")
        name = f"wheels/{sha256}/{source.name}"
        path = self._path(name)
        part = path.with_name(f".{path.name}.part")
        with _written(path):
            if fresh := _hashes(path, "sha256")[0] != sha256:
                shutil.copyfile(source, part)
                Content("sha256", sha256).compare(str(source), _hashes(part, "sha256")[0])
                part.replace(path)
        self.files[name] = BundledFile(name, path.stat().st_size, sha256, fresh)
        return self.files[name]

    def finish(self) -> tuple[BundledFile, ...]:
        """Write the hashes of all files, and return them."""
        files = tuple(self.files[name] for name in sorted(self.files))
        with _written(self.root):
            text = "".join(f"{each.sha256}  {each.path}\n" for each in files)
            replace_file(self.root / SUMS, text.encode(), new_mode())
        return files

    def _path(self, name: str) -> Path:
        path = self.root / name
        with _written(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise OutputError(f"{e.filename or path}: {reason(e)}") from None


def _hashes(path: Path, algorithm: str) -> tuple[str, str]:
    """Return two hashes of a file: SHA-256, and the one that ``algorithm`` names. Both are empty without a file."""
    if not path.is_file():
        return "", ""
    first, other = hashlib.sha256(), hashlib.new(algorithm)
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            first.update(data)
            other.update(data)
    return first.hexdigest(), other.hexdigest()


def _download(item: Item, part: Path) -> str:
    """Fetch into ``part``, which may have the beginning; return its SHA-256. What is wrong is removed."""
    resumed, failed, most = part.is_file(), 0, 0
    while True:
        had = part.stat().st_size if part.is_file() else 0
        if not had or had != item.content.size:
            try:
                _get(item, part, had)
            except OSError as e:
                size = part.stat().st_size
                failed = 0 if size > max(had, most) else failed + 1
                most = max(had, most, size)
                refused = isinstance(e, StatusError) and not (e.status == _NO_MORE and had)
                if refused or failed == LIMITS.attempts:
                    raise _unreachable(item.url, e) from None
                if isinstance(e, StatusError):
                    part.unlink()
                continue
        sha256, digest = _hashes(part, item.content.algorithm)
        if digest == item.content.digest:
            return sha256
        part.unlink()
        if not resumed:
            item.content.compare(item.url, digest)
        resumed, most = False, 0  # the server has another file by now, or the beginning was damaged


def _get(item: Item, part: Path, had: int) -> None:
    """Append what is missing, if the server can resume. Raises OSError for the network, OutputError for the disk."""
    request = urllib.request.Request(item.url, headers={"Range": f"bytes={had}-"} if had else {})
    if item.header:
        add_header(request, item.header)
    with _written(part):
        file = part.open("ab")
        free = shutil.disk_usage(part.parent).free - (LIMITS.reserve << 20)
    with file, answered(request) as answer:
        if answer.status != http.client.PARTIAL_CONTENT:
            file.truncate(0)
        for data in _pieces(item.url, answer):
            free -= len(data)
            if free < 0:
                part.unlink()
                why = f"the file system is too small for {item.url}; {LIMITS.reserve} MiB must stay free"
                raise OutputError(f"{part.parent}: {why}", remedy="free space, or choose another folder")
            with _written(part):
                file.write(data)
                file.flush()
            if 0 <= item.content.size < file.tell():
                return
