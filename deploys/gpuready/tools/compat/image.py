"""The facts of an image: its CUDA, its gate, and the libcudas that it brings, as the predictor takes them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from gpuready.cuda import tables
from gpuready.cuda.facts import CompatLib, Image, ImageFacts
from gpuready.cuda.require import of_image
from gpuready.cuda.versions import Version, dotted, numbers
from gpuready.tools.compat.layers import Entry, Tree

COMPAT = "usr/local/cuda/compat"
OWN = f"{COMPAT}/lib.real"
_RUNTIME = re.compile(
    r"libcudart\.so\.([0-9]+\.[0-9]+)\.[0-9]+|nvidia_cuda_runtime(?:_cu[0-9]+)?-([0-9]+\.[0-9]+)(?:\.[0-9]+)*\.dist-info"
)


def facts_of(env: Mapping[str, str], tree: Tree, cuda: Version | None = None) -> ImageFacts:
    """From the environment of the configuration and the files of the layers; ``cuda`` counts where these name none."""
    found, wrong = _cuda(env, tree)
    compat, odd = _libraries(tree, COMPAT)
    own, worse = _libraries(tree, OWN)
    notes = (*odd, *worse, *_beside(tree))
    if found and cuda and found[: len(cuda)] != cuda:
        notes = (f"the image itself says CUDA {dotted(found)}, which counts, not {dotted(cuda)}", *notes)
    found = found or cuda
    if found is None:
        return ImageFacts(None, wrong, notes)
    return ImageFacts(Image(found, compat, own, of_image(env)), "", notes)


def _cuda(env: Mapping[str, str], tree: Tree) -> tuple[Version | None, str]:
    text, source = env.get("CUDA_VERSION", ""), "CUDA_VERSION"
    if not text:
        runtimes = [numbers(m[1] or m[2]) for m in (_RUNTIME.search(path) for path in tree.entries) if m]
        text, source = (dotted(max(runtimes)) if runtimes else ""), "its libcudart"
    m = re.match(r"[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?", text)
    if m is None:
        return None, "the image says no CUDA_VERSION and has no libcudart; name it with --image-cuda"
    found = numbers(m[0])
    if found[:2] not in tables.known_cuda():
        return None, f"{source} says {text}, which is no CUDA toolkit that is known (on {tables.dated('toolkits')[0]})"
    return found, ""


def _libraries(tree: Tree, directory: str) -> tuple[tuple[CompatLib, ...], tuple[str, ...]]:
    found, odd = [], []
    for name, entry in tree.files(directory).items():
        m = re.fullmatch(r"libcuda\.so\.([0-9]{3,4}(\.[0-9]{1,4}){1,2})", name)
        if m is not None and numbers(m[1])[0] >= min(tables.branches()):
            found.append(CompatLib(numbers(m[1]), entry.note))
            odd += [_told(directory, name, entry)] if entry.odd else []
    return tuple(found), tuple(odd)


def _told(directory: str, name: str, entry: Entry) -> str:
    return f"/{directory}/{name}: its ELF note cannot be read ({entry.odd}), so its version decides alone"


def _beside(tree: Tree) -> tuple[str, ...]:
    """Compat directories that /usr/local/cuda does not lead to: nothing looks there."""
    known = {tree.resolve(COMPAT), tree.resolve(OWN)}
    others = {
        posixpath.dirname(path) for path in tree.entries if re.search(r"/compat(/[^/]+)?/libcuda\.so\.[0-9]{3}", path)
    }
    return tuple(
        f"/{path} is not what /usr/local/cuda leads to; nothing looks there" for path in sorted(others - known)
    )
