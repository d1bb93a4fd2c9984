"""Find the facts of an image for the predictor: its CUDA, its NVIDIA_REQUIRE_* conditions and its libcudas."""

import posixpath
import re
from collections.abc import Mapping

from gpuready.base.versions import Version, dotted, numbers
from gpuready.compat.layers import Tree
from gpuready.cuda import tables
from gpuready.cuda.facts import CompatLib, Image, ImageFacts
from gpuready.cuda.require import of_image

COMPAT = "usr/local/cuda/compat"
OWN = f"{COMPAT}/lib.real"
_RUNTIME = re.compile(
    r"libcudart\.so\.([0-9]+\.[0-9]+)\.[0-9]+|nvidia_cuda_runtime(?:_cu[0-9]+)?-([0-9]+\.[0-9]+)(?:\.[0-9]+)*\.dist-info"
)


def facts_of(env: Mapping[str, str], tree: Tree, cuda: Version | None = None) -> ImageFacts:
    """Read the configuration's environment and the files of the layers. ``cuda`` counts only if these name none."""
    found, wrong = _cuda(env, tree)
    compat, odd = _libraries(tree, COMPAT)
    own, worse = _libraries(tree, OWN)
    notes = (*odd, *worse, *_beside(tree))
    if found and cuda and found[: len(cuda)] != cuda:
        notes = (f"the image itself says CUDA {dotted(found)}, which overrides {dotted(cuda)}", *notes)
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
        return None, "the image has neither CUDA_VERSION nor libcudart; give its CUDA with --image-cuda"
    found = numbers(m[0])
    if found[:2] not in tables.known_cuda():
        return None, f"{source} says {text}, which was not a known CUDA toolkit on {tables.dated('toolkits')[0]}"
    return found, ""


def _libraries(tree: Tree, directory: str) -> tuple[tuple[CompatLib, ...], tuple[str, ...]]:
    found, odd = [], []
    for name, entry in tree.files(directory).items():
        m = re.fullmatch(r"libcuda\.so\.([0-9]{3,4}(\.[0-9]{1,4}){1,2})", name)
        if m is not None and numbers(m[1])[0] >= min(tables.branches()):
            found.append(CompatLib(numbers(m[1]), entry.note))
            if entry.odd:
                odd.append(f"/{directory}/{name}: unreadable ELF note ({entry.odd}); only its version counts")
    return tuple(found), tuple(odd)


def _beside(tree: Tree) -> tuple[str, ...]:
    """Note the compat directories outside /usr/local/cuda, which no program searches."""
    known = {tree.resolve(COMPAT), tree.resolve(OWN)}
    others = {
        posixpath.dirname(path) for path in tree.entries if re.search(r"/compat(/[^/]+)?/libcuda\.so\.[0-9]{3}", path)
    }
    return tuple(f"/{path} is not in /usr/local/cuda, so no program uses it" for path in sorted(others - known))
