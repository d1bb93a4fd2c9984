"""Read the layers of a container image, one over the other, for the files that show its libcuda and CUDA.

Layers are hostile input: nothing is extracted, links stay inside what was read, and every size has a limit. A libcuda
is copied to an anonymous temporary file, because an ELF file needs random access.
Source: OCI image specification, "Image Layer Filesystem Changeset" (whiteouts, opaque directories).
"""

from __future__ import annotations

import gzip
import io
import lzma
import posixpath
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO, BinaryIO, cast

from gpuready.compat.note import NoteError, note_of
from gpuready.cuda.facts import Note

MOST_ENTRIES = 5_000_000
MOST_BYTES = 1 << 38  # of one layer, unpacked: 256 GiB
LARGEST_LIBRARY = 1 << 28
_LARGEST_HEADER = 1 << 20
_HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
_LINKS = re.compile(r"(cuda[^/]*|compat|lib|lib\.real|usr|local|alternatives|libcuda\.so[^/]*)")
_FILES = re.compile(r"libcuda\.so\.[0-9][0-9.]*|libcudart\.so\.[0-9][0-9.]*")
_WHEEL = re.compile(r"nvidia_cuda_runtime(_cu[0-9]+)?-[0-9.]+\.dist-info")
_MOST_LINKS = 40


class ImageError(ValueError):
    """An image that is damaged or exceeds a limit; one sentence."""


@dataclass(frozen=True)
class Entry:
    """A kept path: a link with its ``target``, or a file, with the ELF note of a libcuda."""

    target: str | None = None
    note: Note | None = None
    odd: str = ""


@dataclass
class Tree:
    """The kept files of all layers so far, by path without a leading slash."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def put(self, layer: Layer) -> None:
        """Add one more layer on top."""
        for gone in layer.gone:
            self._drop(gone, itself=True)
        for emptied in layer.opaque:
            self._drop(emptied, itself=False)
        for directory in layer.directories:  # a directory replaces a link, and merges with a directory
            self.entries.pop(directory, None)
        self.entries |= layer.kept

    def _drop(self, path: str, *, itself: bool) -> None:
        inside = f"{path}/" if path else ""
        for known in [one for one in self.entries if one.startswith(inside) or (itself and one == path)]:
            del self.entries[known]

    def resolve(self, path: str) -> str:
        """Resolve all links of a path within the image; raises ImageError for a loop."""
        done, left, follows = "", path.strip("/").split("/"), 0
        while left:
            name = left.pop(0)
            if name in ("", "."):
                continue
            here = posixpath.dirname(done) if name == ".." else posixpath.join(done, name)
            entry = self.entries.get(here)
            if entry is None or entry.target is None or name == "..":
                done = here
                continue
            follows += 1
            if follows > _MOST_LINKS:
                raise ImageError(f"/{path.strip('/')}: its symbolic links form a loop")
            done = "" if entry.target.startswith("/") else done
            left = [*entry.target.split("/"), *left]
        return done

    def files(self, directory: str) -> dict[str, Entry]:
        """Return the kept files in a directory by name, links resolved."""
        at = self.resolve(directory)
        return {
            posixpath.basename(path): entry
            for path, entry in sorted(self.entries.items())
            if posixpath.dirname(path) == at and entry.target is None
        }


@dataclass
class Layer:
    """One layer: entries it adds (``kept``), entries it removes (``gone``), directories it empties (``opaque``)."""

    kept: dict[str, Entry] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)


class Bounded(tarfile.TarInfo):
    """A tar member with a limit on long names and pax headers, which tarfile reads into memory whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Bounded:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > _LARGEST_HEADER:
            raise ImageError(f"a header of {found.size} bytes in a layer")
        return found


class Counted(io.RawIOBase):
    """A stream that raises ImageError after MOST_BYTES."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._left = raw, MOST_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ImageError(f"a layer of more than {MOST_BYTES >> 30} GiB")
        return data


def unpacked(raw: IO[bytes]) -> IO[bytes]:
    """Decompress a stream by its first bytes: gzip, zstd, xz. A stream of something else is returned as it is."""
    whole = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
    head = whole.peek(6)
    if head[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=whole))
    if head[:4] == b"\x28\xb5\x2f\xfd":
        import zstandard

        return cast(IO[bytes], zstandard.ZstdDecompressor().stream_reader(whole, read_across_frames=True))
    if head[:6] == b"\xfd7zXZ\0":
        return cast(IO[bytes], lzma.LZMAFile(whole))
    return whole


def read_layer(raw: IO[bytes]) -> Layer:
    """Read one layer, compressed or not; raises :class:`ImageError`."""
    layer = Layer()
    try:
        with tarfile.open(fileobj=cast(IO[bytes], Counted(unpacked(raw))), mode="r|", tarinfo=Bounded) as tar:
            for number, member in enumerate(tar):
                if number >= MOST_ENTRIES:
                    raise ImageError(f"a layer of more than {MOST_ENTRIES} files")
                _take(layer, tar, member)
                tar.members.clear()  # type: ignore[attr-defined]
    except ImageError:
        raise
    except Exception as e:  # decompressors and tarfile raise many types of errors, and all mean the same here
        raise ImageError(f"a layer is damaged: {type(e).__name__}: {e}") from None
    return layer


def read_layers(layers: Iterable[IO[bytes]]) -> Tree:
    """Read all layers, the lowest first; raises :class:`ImageError`."""
    tree = Tree()
    for raw in layers:
        tree.put(read_layer(raw))
    return tree


def _take(layer: Layer, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    path = posixpath.normpath("/" + member.name).lstrip("/")
    directory, name = posixpath.split(path)
    if name == ".wh..wh..opq":
        layer.opaque.add(directory)
    elif name.startswith(".wh."):
        layer.gone.add(posixpath.join(directory, name[4:]))
    elif not member.isdir():
        if _LINKS.fullmatch(name):
            layer.gone.add(path)
        kept = _kept(layer, tar, member, directory, name)
        if kept is not None:
            layer.kept[path] = kept
    elif _LINKS.fullmatch(name):
        layer.directories.add(path)


def _kept(layer: Layer, tar: tarfile.TarFile, member: tarfile.TarInfo, directory: str, name: str) -> Entry | None:
    if member.issym():
        return Entry(target=member.linkname) if _LINKS.fullmatch(name) else None
    if member.islnk() and _FILES.fullmatch(name):
        return layer.kept.get(posixpath.normpath("/" + member.linkname).lstrip("/"), Entry())
    if not member.isreg():
        return None
    if _FILES.fullmatch(name):
        return _library(tar, member) if name.startswith("libcuda.so.") else Entry()
    return Entry() if name == "METADATA" and _WHEEL.fullmatch(posixpath.basename(directory)) else None


def _library(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    if member.size > LARGEST_LIBRARY:
        return Entry(odd=f"it has {member.size} bytes")
    body = tar.extractfile(member)
    assert body is not None
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(body, copy)
        return library(cast(BinaryIO, copy))


def library(file: BinaryIO) -> Entry:
    """Read the ELF note of a libcuda."""
    file.seek(0)
    try:
        return Entry(note=note_of(file))
    except NoteError as e:
        return Entry(odd=str(e))
