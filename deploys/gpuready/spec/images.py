"""The spec of the images that run on a node: verify says of each whether it can."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gpuready.core.fields import Allowed, Image
from gpuready.core.section import Section
from gpuready.cuda import tables
from gpuready.cuda.versions import dotted, numbers

Cuda = Annotated[
    str, Field(pattern=r"^[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]{1,3})?$"), Allowed("X.Y, such as 12.4 (in quotes)")
]


class ImageSpec(Section):
    """An image that runs on this node."""

    ref: Image
    """The reference by which Docker, containerd or podman of the node has it; it is never pulled."""
    cuda: Cuda | None = None
    """The CUDA that it is made for, where the image itself does not say."""

    @model_validator(mode="after")
    def _released(self) -> ImageSpec:
        if self.cuda is not None and numbers(self.cuda)[:2] not in tables.known_cuda():
            known = f"one of {', '.join(dotted(one) for one in tables.known_cuda())}"
            raise PydanticCustomError("version", "no such CUDA toolkit is known", {"at": "cuda", "allowed": known})
        return self


Images = tuple[Image | ImageSpec, ...]


def named(images: Images) -> tuple[ImageSpec, ...]:
    """A bare reference is an image of which nothing else is said."""
    return tuple(ImageSpec(ref=one) if isinstance(one, str) else one for one in images)
