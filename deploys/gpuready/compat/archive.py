"""Read images from files: OCI layouts (a directory or a tar), and archives of ``docker save`` and ``podman save``.

Sources: OCI image specification (image layout, index, manifest); the Docker Image Specification v1.2 (manifest.json).
"""

import contextlib
import itertools
import posixpath
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol, cast

from gpuready.base.documents import read_json
from gpuready.base.files import open_file
from gpuready.base.versions import Version
from gpuready.compat.image import facts_of
from gpuready.compat.layers import Bounded, Counted, ImageError, read_layers, unpacked
from gpuready.cuda.facts import ImageFacts

_MOST_LAYERS = 512
_MOST_FILES = 100_000
_MOST_LINKS = 8
_LARGEST_JSON = 4_000_000
#: The platform that is read from an index of several.
_MACHINE = "amd64"
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")


class Files(Protocol):
    """The files of an archive or a layout directory, by name; nothing outside it. Opening one raises ImageError."""

    def open(self, name: str) -> IO[bytes]: ...

    def has(self, name: str) -> bool: ...


def _json(files: Files, name: str) -> Any:
    """Parse a JSON file of limited size; raises ImageError."""
    with files.open(name) as file:
        data = file.read(_LARGEST_JSON + 1)
    if len(data) > _LARGEST_JSON:
        raise ImageError(f"{name} has more than {_LARGEST_JSON // 1_000_000} MB")
    try:
        return read_json(data, _LARGEST_JSON)
    except ValueError as e:
        raise ImageError(f"{name} is not valid JSON: {e}") from None


class _Directory:
    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def _path(self, name: str) -> Path:
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root):
            raise ImageError(f"{name} is outside the layout")
        return path

    def has(self, name: str) -> bool:
        return self._path(name).is_file()

    def open(self, name: str) -> IO[bytes]:
        try:
            return self._path(name).open("rb")
        except OSError as e:
            raise ImageError(f"{name}: {e.strerror or e}") from None


class _Archive:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members = {posixpath.normpath(member.name): member for member in itertools.islice(tar, _MOST_FILES)}

    def has(self, name: str) -> bool:
        return posixpath.normpath(name) in self._members

    def open(self, name: str) -> IO[bytes]:
        at = posixpath.normpath(name)
        for _ in range(_MOST_LINKS):
            member = self._members.get(at)
            if member is None:
                raise ImageError(f"the archive has no {name}")
            file = self._tar.extractfile(member) if member.isreg() else None
            if file is not None:
                return file
            if member.issym():  # an old docker save stores equal layers once, as links
                at = posixpath.normpath(posixpath.join(posixpath.dirname(at), member.linkname))
            elif member.islnk():
                at = posixpath.normpath(member.linkname)
        raise ImageError(f"{name} is not a file")


def read_archive(path: Path, cuda: Version | None = None) -> ImageFacts:
    """Return the facts of the one image in a file or directory; of an index of platforms, that for amd64.

    ``cuda`` counts only if the image names none. Raises ImageError.
    """
    with _opened(path) as files:
        config, layers = _found(files)
        if len(layers) > _MOST_LAYERS:
            raise ImageError(f"the image has {len(layers)} layers, more than {_MOST_LAYERS}")
        return facts_of(environment(_json(files, config)), read_layers(files.open(name) for name in layers), cuda)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Files]:
    if path.is_dir():
        yield _Directory(path)
        return
    with contextlib.ExitStack() as stack:
        try:
            file: IO[bytes] = stack.enter_context(open_file(path))
            plain = unpacked(file)
            if plain is not file:  # the manifest sets the order of reading, so a compressed archive is unpacked first
                file = cast(IO[bytes], stack.enter_context(tempfile.TemporaryFile()))
                shutil.copyfileobj(cast(IO[bytes], Counted(plain)), file, 1 << 20)
                file.seek(0)
            tar = stack.enter_context(tarfile.open(fileobj=file, mode="r:", tarinfo=Bounded))
            files = _Archive(tar)
        except ImageError:
            raise
        except OSError as e:
            raise ImageError(e.strerror or str(e)) from None
        except Exception as e:  # decompressors and tarfile raise many types of errors, and all mean the same here
            raise ImageError(f"not an image archive: {e or type(e).__name__}") from None
        yield files


def _found(files: Files) -> tuple[str, list[str]]:
    """Return the names of the configuration and of the layers, the lowest first."""
    try:
        if files.has("manifest.json"):
            return _of_docker(_json(files, "manifest.json"))
        if files.has("index.json"):
            return of_index(files, _json(files, "index.json"))
    except (KeyError, TypeError, AttributeError, IndexError) as e:
        raise ImageError(f"its manifest is incomplete: {type(e).__name__}: {e}") from None
    raise ImageError("it has neither manifest.json (docker save) nor index.json (OCI layout)")


def _of_docker(manifest: Any) -> tuple[str, list[str]]:
    if len(manifest) != 1:
        names = ", ".join(tag for one in manifest for tag in one.get("RepoTags") or ["(no name)"])
        raise ImageError(f"it has {len(manifest)} images, expected one; all: {names}")
    return manifest[0]["Config"], list(manifest[0]["Layers"])


def of_index(files: Files, index: Any, depth: int = 0) -> tuple[str, list[str]]:
    """Return the names of the configuration and of the layers of the one image for :data:`_MACHINE`."""
    entries = [one for one in index["manifests"] if "vnd.docker.reference.type" not in (one.get("annotations") or {})]
    fitting = [one for one in entries if (one.get("platform") or {}).get("architecture", _MACHINE) == _MACHINE]
    chosen = fitting or entries
    if len(chosen) != 1 or depth > 3:
        raise ImageError(f"it has {len(chosen)} images for {_MACHINE}, expected one")
    manifest = _json(files, blob(chosen[0]["digest"]))
    if chosen[0].get("mediaType") in INDEXES or "manifests" in manifest:
        return of_index(files, manifest, depth + 1)
    return blob(manifest["config"]["digest"]), [blob(layer["digest"]) for layer in manifest["layers"]]


def blob(digest: str) -> str:
    """Return the name of a blob in an OCI layout."""
    kind, _, value = digest.partition(":")
    if not kind.isalnum() or not value.isalnum():
        raise ImageError(f"{digest!r} is not a digest")
    return f"blobs/{kind}/{value}"


def environment(config: Any) -> dict[str, str]:
    """Return the environment variables in an image's configuration."""
    values = ((config.get("config") or {}).get("Env") or []) if isinstance(config, dict) else []
    return dict(text.partition("=")[::2] for text in values if isinstance(text, str))
