"""The layers of a container image, one over the other: only what tells which libcuda and which CUDA is in it.

Layers are streams that anybody may have made: nothing is extracted, links are followed within what was read, and every
size has a bound. A libcuda goes through an anonymous temporary file, because ELF is no stream.
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

from gpuready.cuda.facts import Note
from gpuready.tools.compat.note import NoteError, note_of

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
    """An image that cannot be read, or not within the bounds; one sentence."""


@dataclass(frozen=True)
class Entry:
    """A kept path: a link with its ``target``, or a file, with the ELF note of a libcuda."""

    target: str | None = None
    note: Note | None = None
    odd: str = ""


@dataclass
class Tree:
    """What is kept of the layers so far, by path without a leading slash."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def put(self, layer: Layer) -> None:
        """Lay one more layer over it."""
        for gone in layer.gone:
            self._drop(gone, itself=True)
        for emptied in layer.opaque:
            self._drop(emptied, itself=False)
        for directory in layer.directories:  # over a link it replaces it, over a directory it is one with it
            self.entries.pop(directory, None)
        self.entries |= layer.kept

    def _drop(self, path: str, *, itself: bool) -> None:
        inside = f"{path}/" if path else ""
        for known in [one for one in self.entries if one.startswith(inside) or (itself and one == path)]:
            del self.entries[known]

    def resolve(self, path: str) -> str:
        """Where a path ends after all links, within the image; ImageError for a circle."""
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
                raise ImageError(f"/{path.strip('/')}: its symbolic links go in a circle")
            done = "" if entry.target.startswith("/") else done
            left = [*entry.target.split("/"), *left]
        return done

    def files(self, directory: str) -> dict[str, Entry]:
        """The kept files in a directory, links resolved, by name."""
        at = self.resolve(directory)
        return {
            posixpath.basename(path): entry
            for path, entry in sorted(self.entries.items())
            if posixpath.dirname(path) == at and entry.target is None
        }


@dataclass
class Layer:
    """What one layer says: what it brings, what it takes away, which directories it empties first."""

    kept: dict[str, Entry] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)


class Bounded(tarfile.TarInfo):
    """Long names and pax headers are read into memory whole, so their size has a bound."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Bounded:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > _LARGEST_HEADER:
            raise ImageError(f"a header of {found.size} bytes in a layer")
        return found


class Counted(io.RawIOBase):
    """A stream that ends in an error after so many bytes."""

    def __init__(self, raw: IO[bytes], most: int) -> None:
        self._raw, self._left = raw, most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ImageError(f"a layer of more than {MOST_BYTES >> 30} GiB")
        return data


def unpacked(raw: IO[bytes]) -> IO[bytes]:
    """The stream without its compression, told by its first bytes: gzip, zstd, xz or none."""
    head = raw.read(6)
    whole = cast(IO[bytes], _Chained(head, raw))
    if head[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=whole))
    if head[:4] == b"\x28\xb5\x2f\xfd":
        import zstandard

        return cast(IO[bytes], zstandard.ZstdDecompressor().stream_reader(whole, read_across_frames=True))
    if head == b"\xfd7zXZ\0":
        return cast(IO[bytes], lzma.LZMAFile(whole))
    return whole


class _Chained(io.RawIOBase):
    """What was read ahead, then the rest."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read(size)
        if size < 0:
            data, self._head = self._head + self._rest.read(), b""
        else:
            data, self._head = self._head[:size], self._head[size:]
        return data

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def read_layer(raw: IO[bytes]) -> Layer:
    """One layer, packed or not; raises :class:`ImageError`."""
    layer = Layer()
    try:
        with tarfile.open(
            fileobj=cast(IO[bytes], Counted(unpacked(raw), MOST_BYTES)), mode="r|", tarinfo=Bounded
        ) as tar:
            for number, member in enumerate(tar):
                if number >= MOST_ENTRIES:
                    raise ImageError(f"a layer of more than {MOST_ENTRIES} files")
                _take(layer, tar, member)
                tar.members.clear()  # type: ignore[attr-defined]
    except ImageError:
        raise
    except Exception as e:  # decompressors and tarfile have many of them, and each means the same
        raise ImageError(f"a layer is damaged: {type(e).__name__}: {e}") from None
    return layer


def read_layers(layers: Iterable[IO[bytes]]) -> Tree:
    """All layers, the lowest first."""
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
        copy.seek(0)
        try:
            return Entry(note=note_of(cast(BinaryIO, copy)))
        except NoteError as e:
            return Entry(odd=str(e))
