"""An image by its name, for ``gpuready compat``: a file, an image of this machine's engines, or a published image.

If no engine here has the image, the table of published images is searched, and then its registry.
"""

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from gpuready.base import resources
from gpuready.base.errors import UsageError
from gpuready.base.facts import Answer
from gpuready.base.records import ProbeError, Records, unmarked
from gpuready.base.versions import Version
from gpuready.compat.archive import environment, read_archive
from gpuready.compat.checks import ReadImages
from gpuready.compat.image import facts_of
from gpuready.compat.layers import ImageError, Tree
from gpuready.compat.node_image import node_image
from gpuready.compat.published import not_published, published_image
from gpuready.compat.registry import registry_config
from gpuready.cuda import tables
from gpuready.cuda.facts import CompatLib, ImageFacts
from gpuready.model.images import ImageSpec

REGISTRY = "docker://"
_SECONDS = 180


def is_here(name: str) -> bool:
    """Is it read on this machine, also for the hosts of an inventory?"""
    return name.startswith(REGISTRY) or Path(name).exists()


def check_name(name: str, option: str = "--image") -> None:
    """UsageError for a name that can be neither a file nor an image."""
    if is_here(name):
        return
    if re.match(r"\.{0,2}/", name) or name.endswith(".tar"):
        raise UsageError(f"{option} {name}: no such file", remedy="an archive of docker save, or an OCI layout")
    try:
        ImageSpec(ref=name)
    except ValidationError:
        remedy = "such as app.tar, or nvidia/cuda:12.4.1-base"
        raise UsageError(f"{option} {name}: neither a file nor a reference", remedy=remedy) from None


def read_image(name: str, cuda: Version | None) -> ImageFacts:
    """The facts of an image; ``cuda`` counts where it names none. Raises UsageError where it cannot be read."""
    tried = []
    for find in _ways(name):
        try:
            return find(name, cuda)
        except ImageError as e:
            tried.append(str(e))
    remedy = "an archive of docker save, or an OCI layout"
    if not Path(name).exists():
        remedy = (
            "name its CUDA instead of --image: --image-cuda X.Y; or, where it is: "
            f"docker save -o image.tar {name.removeprefix(REGISTRY)}, and --image image.tar"
        )
    raise UsageError(f"--image {name}: {'; '.join(tried)}", remedy=remedy)


def _ways(name: str) -> tuple[Callable[[str, Version | None], ImageFacts], ...]:
    if name.startswith(REGISTRY):
        return (registry_image,)
    if Path(name).exists():
        return (_archived,)
    return (_engine_image, _published, registry_image)


def _archived(name: str, cuda: Version | None) -> ImageFacts:
    return read_archive(Path(name), cuda=cuda)


def _published(name: str, cuda: Version | None) -> ImageFacts:
    found = published_image(name)
    if found is None:
        raise ImageError(not_published(name))
    return found


def _engine_image(name: str, cuda: Version | None) -> ImageFacts:
    """Search the engines of this machine, as those of a node."""
    question = ReadImages.of([name])
    script = resources.script("compat/read-images", images=question.images, limits=question.limits)
    words = ["sh", "-c", 'NONCE=; eval "$(cat)"']
    try:
        done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=_SECONDS, check=False)
        records = Records(unmarked(done.stdout))
    except subprocess.TimeoutExpired:
        raise ImageError(f"no engine here answered within {_SECONDS} s") from None
    except (FileNotFoundError, ProbeError) as e:
        raise ImageError(f"no engine could be asked: {e}") from None
    rc, out = records.runs.get("image.0", (1, "there was no answer"))
    if rc:
        raise ImageError(out.strip().splitlines()[-1] if out.strip() else f"exit {rc}")
    return node_image(Answer(out=out), cuda)


def registry_image(name: str, cuda: Version | None) -> ImageFacts:
    """Read only the configuration. Its variables name the libcuda of the image, so nothing is certain."""
    env = environment(registry_config(name.removeprefix(REGISTRY)))
    found = facts_of(env, Tree(), cuda)
    if found.image is None:
        return found
    image, library = found.image, (CompatLib(tables.bundled_driver(found.image.cuda)),)
    concluded = ""
    if env.get("NV_CUDA_COMPAT_PACKAGE"):
        image, concluded = replace(image, compat=library), "NV_CUDA_COMPAT_PACKAGE"
    elif env.get("_CUDA_COMPAT_PATH"):
        image, concluded = replace(image, own_compat=library), "_CUDA_COMPAT_PATH"
    note = "only the configuration was read from the registry, no layers"
    if concluded:
        note += f"; {concluded} says that the image has the libcuda of its CUDA version"
    return replace(found, image=image, notes=(note,), sure=False)
