"""An image by its name, for ``gpuready compat``: a file, an image of this machine's engines, or one in a registry.

A registry is asked only for what begins with ``docker://``, by skopeo and for the configuration alone: a few kilobytes.
"""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which

from pydantic import ValidationError

from gpuready.base import resources
from gpuready.base.documents import read_json
from gpuready.base.errors import UsageError, brief
from gpuready.base.facts import Answer
from gpuready.base.records import ProbeError, Records, unmarked
from gpuready.base.versions import Version
from gpuready.compat.archive import environment, read_archive
from gpuready.compat.checks import ReadImages
from gpuready.compat.image import facts_of
from gpuready.compat.layers import ImageError, Tree
from gpuready.compat.node_image import node_image
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
    try:
        if name.startswith(REGISTRY):
            return registry_image(name, cuda)
        return read_archive(Path(name), cuda=cuda) if Path(name).exists() else _engine_image(name, cuda)
    except ImageError as e:
        remedy = f"docker pull it, or docker save -o image.tar it, or ask its registry: --image {REGISTRY}HOST/NAME:TAG"
        if name.startswith(REGISTRY):
            save = f"docker save -o image.tar {name.removeprefix(REGISTRY)}, and --image image.tar"
            remedy = (
                f"what does skopeo inspect --config {name} say? Or {save}"
                if which("skopeo")
                else f"install skopeo, or {save}"
            )
        elif Path(name).exists():
            remedy = "an archive of docker save, or an OCI layout"
        raise UsageError(f"--image {name}: {e}", remedy=remedy) from None


def _engine_image(name: str, cuda: Version | None) -> ImageFacts:
    """As a node's engines are asked, only here."""
    question = ReadImages.of([name])
    script = resources.script("compat/read-images", images=question.images, limits=question.limits)
    try:
        records = Records(unmarked(_run(["sh", "-c", 'NONCE=; eval "$(cat)"'], script)))
    except ProbeError as e:
        raise ImageError(str(e)) from None
    rc, out = records.runs.get("image.0", (1, "there was no answer"))
    if rc:
        raise ImageError(out.strip().splitlines()[-1] if out.strip() else f"exit {rc}")
    return node_image(Answer(out=out), cuda)


def registry_image(name: str, cuda: Version | None) -> ImageFacts:
    """The configuration alone: its libcuda is concluded from the package that it names, so nothing is certain."""
    try:
        env = environment(read_json(_run(["skopeo", "inspect", "--config", name])))
    except ValueError as e:
        raise ImageError(f"skopeo's answer is not JSON: {e}") from None
    found = facts_of(env, Tree(), cuda)
    package = env.get("NV_CUDA_COMPAT_PACKAGE", "").partition("=")[0]
    if found.image is None:
        return found
    note = "its layers were not read"
    if package:
        library = CompatLib(tables.bundled_driver(found.image.cuda))
        found = replace(found, image=replace(found.image, compat=(library,)))
        note += f": that it brings the libcuda of {package} is concluded from NV_CUDA_COMPAT_PACKAGE"
    return replace(found, notes=(note,), sure=False)


def _run(words: list[str], text: str = "") -> str:
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise ImageError(f"there is no {words[0]} on this machine") from None
    except subprocess.TimeoutExpired:
        raise ImageError(f"{words[0]}: no answer within {_SECONDS} s") from None
    if done.returncode and words[0] != "sh":
        told = done.stderr.strip().splitlines()
        raise ImageError(f"{words[0]}: {brief(told[-1]) if told else f'exit {done.returncode}'}")
    return done.stdout
