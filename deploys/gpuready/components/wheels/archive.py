"""A wheel: its name, version, tags and hash. Of one on the controller also what its libraries need on the node.

Each file is read at most once per run. A wheel built at home (``linux_x86_64``) declares neither the glibc nor the
libraries of its build host. So its ELF files are read, but only if it is about to be installed.
Sources: the binary distribution format (PEP 427, PEP 491), ELF's gABI and Linux' symbol versioning (DT_VERNEED).
"""

import email.parser
import functools
import hashlib
import posixpath
import re
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from packaging.utils import canonicalize_name, canonicalize_version, parse_wheel_filename

from gpuready.base.files import open_file, reason, status
from gpuready.base.versions import Version, numbers
from gpuready.contract.component import NotComparable

_CHUNK = 1 << 22
_LARGEST_TEXT = 1 << 24
_ELF = b"\x7fELF"
#: Symbol versions of the C and C++ libraries.
_FLOOR = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_([0-9]+(?:\.[0-9]+)+)")
_CUDA = re.compile(r"^cuda\b[^=\n]*= *['\"]([0-9]{1,2}\.[0-9]{1,2})", re.M)
_CUDART = re.compile(r"libcudart\.so\.([0-9]{1,2})(?:\.([0-9]{1,2}))?$")


class WheelError(NotComparable):
    """The file cannot be read, or is not a wheel. The message names it."""


@dataclass(frozen=True)
class Wheel:
    """A wheel. ``file``: its file name. Known only of one on the controller: ``size`` and ``unpacked`` (bytes), and
    ``requires`` (from its metadata).
    """

    file: str
    name: str
    version: str
    tags: frozenset[str]
    sha256: str
    size: int = 0
    unpacked: int = 0
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Needs:
    """What the ELF files of a wheel need on the node.

    ``floors``: the newest symbol version of each kind (GLIBC, GLIBCXX, CXXABI). ``libraries``: sonames that are not in
    the wheel. ``places``: absolute directories in which the files look for libraries. ``cuda``: its CUDA version, if
    known.
    """

    floors: dict[str, Version] = field(default_factory=dict)
    libraries: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    cuda: Version | None = None


_LOCKS: dict[str, threading.Lock] = {}


def named(file: str, sha256: str) -> Wheel:
    """Return what a file name says of a wheel that is elsewhere."""
    name, version, _, tags = parse_wheel_filename(file)
    return Wheel(file, str(name), str(version), frozenset(map(str, tags)), sha256)


def read(path: str) -> Wheel:
    """Return the wheel's metadata and hash. Raises :class:`WheelError`."""
    with _alone(path):
        return _read(path, *_stamp(path))


def needs(path: str) -> Needs:
    """Return what its libraries need; unpacks all of them, one by one. Raises :class:`WheelError`."""
    with _alone(path):
        return _needs(path, *_stamp(path))


def _alone(path: str) -> threading.Lock:
    """Return the lock of a file: one host reads it, the others wait for the result. Created late, under gevent."""
    return _LOCKS.setdefault(path, threading.Lock())


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = status(path)
    except OSError as e:
        raise WheelError(f"{path}: {reason(e)}") from None
    return found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=64)
def _read(path: str, size: int, _mtime: int) -> Wheel:
    wheel = named(Path(path).name, "")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            info = _info(archive, wheel.name)
            said = email.parser.Parser().parsestr(_text(archive, f"{info}/METADATA"))
            archive.getinfo(f"{info}/WHEEL")  # pip needs it
        sha256 = _hashed(path)
    except (OSError, zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, KeyError, RuntimeError) as e:
        raise WheelError(f"{path} is not a readable wheel: {e}") from None
    if canonicalize_version(said["Version"] or "") != canonicalize_version(wheel.version):
        raise WheelError(f"{path} contains version {said['Version']}; pip refuses a renamed wheel")
    return replace(
        wheel,
        sha256=sha256,
        size=size,
        unpacked=sum(member.file_size for member in members),
        requires=tuple(said.get_all("Requires-Dist") or ()),
    )


def _info(archive: zipfile.ZipFile, name: str) -> str:
    tops = {member.partition("/")[0] for member in archive.namelist()}
    found = [top for top in tops if re.match(r"(.+)-[^-]+\.dist-info$", top)]
    found = [top for top in found if canonicalize_name(top.rsplit("-", 2)[0]) == name]
    if len(found) != 1:
        raise RuntimeError(f"there are {len(found)} directories {name}-*.dist-info in it")
    return found[0]


def _text(archive: zipfile.ZipFile, member: str) -> str:
    with archive.open(member) as file:
        return file.read(_LARGEST_TEXT).decode("utf-8", "replace")


def _hashed(path: str) -> str:
    digest = hashlib.sha256()
    with open_file(path) as file:
        for chunk in _chunks(file):
            digest.update(chunk)
    return digest.hexdigest()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Read a large file in pieces, and let other hosts run in between."""
    while chunk := file.read(_CHUNK):
        yield chunk
        time.sleep(0)


@functools.lru_cache(maxsize=64)
def _needs(path: str, _size: int, _mtime: int) -> Needs:
    found = _Found()
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.file_size > 64 and re.search(r"\.so(\.[0-9.]+)?$", member.filename):
                    found.add(archive, member)
            version = [one for one in archive.namelist() if re.fullmatch(r"torch/version\.py", one)]
            cuda = _CUDA.search(_text(archive, version[0])) if version else None
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as e:
        raise WheelError(f"{path} cannot be unpacked: {e}") from None
    runtimes = [(int(m[1]), int(m[2] or 0)) for m in map(_CUDART.match, found.needed) if m]
    return Needs(
        floors=found.floors,
        libraries=frozenset(found.needed - found.own),
        places=frozenset(found.places),
        cuda=numbers(cuda[1]) if cuda else max(runtimes, default=None),
    )


class _Found:
    """The needs of all ELF files of a wheel, collected."""

    def __init__(self) -> None:
        self.floors: dict[str, Version] = {}
        self.needed: set[str] = set()
        self.own: set[str] = set()
        self.places: set[str] = set()

    def add(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        """Add a library. It is unpacked to a file, because the parser seeks in it."""
        self.own.add(posixpath.basename(member.filename))
        with tempfile.TemporaryFile() as copy:
            with archive.open(member) as packed:
                if packed.read(4) != _ELF:
                    return
                packed.seek(0)
                for chunk in _chunks(packed):
                    copy.write(chunk)
            self._elf(copy, member.filename)

    def _elf(self, file: IO[bytes], name: str) -> None:
        from elftools.elf.dynamic import DynamicSection
        from elftools.elf.elffile import ELFFile
        from elftools.elf.gnuversions import GNUVerNeedSection

        try:
            for section in ELFFile(file).iter_sections():
                if isinstance(section, DynamicSection):
                    for tag in section.iter_tags():
                        self._tag(tag)
                elif isinstance(section, GNUVerNeedSection):
                    for _, versions in section.iter_versions():
                        for version in versions:
                            self._floor(version.name)
        except Exception as e:  # elftools and its parser raise many kinds, all with the same meaning
            raise RuntimeError(f"{name} is not a readable ELF file: {type(e).__name__}: {e}") from None

    def _tag(self, tag: object) -> None:
        for kind, into in (("needed", self.needed), ("soname", self.own)):
            if value := getattr(tag, kind, ""):
                into.add(str(value))
        paths = f"{getattr(tag, 'rpath', '')}:{getattr(tag, 'runpath', '')}".split(":")
        self.places |= {path for path in paths if path.startswith("/")}

    def _floor(self, name: str) -> None:
        if m := _FLOOR.fullmatch(name):
            self.floors[m[1]] = max(self.floors.get(m[1], ()), numbers(m[2]))
