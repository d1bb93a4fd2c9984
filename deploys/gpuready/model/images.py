"""The spec of the images that run on a node; verify checks that each of them can."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gpuready.base.fields import Allowed, Image
from gpuready.base.section import Section
from gpuready.base.versions import dotted, numbers
from gpuready.cuda import tables

Cuda = Annotated[
    str, Field(pattern=r"^[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]{1,3})?$"), Allowed("X.Y, such as 12.4 (in quotes)")
]


class ImageSpec(Section):
    """An image that runs on this node."""

    ref: Image
    """The image's reference in Docker, containerd or podman on the node; it is never pulled."""
    cuda: Cuda | None = None
    """The CUDA version of the image, if the image itself does not state it."""

    @model_validator(mode="after")
    def _released(self) -> ImageSpec:
        if self.cuda is not None and numbers(self.cuda)[:2] not in tables.known_cuda():
            known = f"one of {', '.join(dotted(one) for one in tables.known_cuda())}"
            raise PydanticCustomError("version", "unknown CUDA version", {"at": "cuda", "allowed": known})
        return self


Images = tuple[Image | ImageSpec, ...]


def named(images: Images) -> tuple[ImageSpec, ...]:
    """The images as sections; a bare reference becomes one without a CUDA version."""
    return tuple(ImageSpec(ref=one) if isinstance(one, str) else one for one in images)
