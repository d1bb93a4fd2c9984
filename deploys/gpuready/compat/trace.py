"""What a new container of an image really got: its libcuda, its source, why, and whether compat predicted it."""

from dataclasses import dataclass
from typing import Annotated

from gpuready.base.part import OneOf, Part

#: Where a library comes from: mounted from the host, a compat directory of CUDA in the image, the stub for linkers, or
#: another file of the image. And how a sentence says it.
SOURCES = {
    "host": "the host's libcuda",
    "compat": "the image's compat library",
    "stub": "the stub that only linkers use",
    "own": "a copy in the image",
}


@dataclass(frozen=True)
class Trace(Part):
    """compat --trace: what a new container of the image got."""

    path: str = ""
    """libcuda.so.1 as a program in the container loads it; empty: there is none, or it was not traced."""
    file: str = ""
    """That path with its links resolved."""
    version: str = ""
    """The version in the file's name; empty: it has none."""
    source: Annotated[str, OneOf((*SOURCES, ""))] = ""
    """host: mounted from the host; compat, stub, own: a file of the image; empty: there is no library."""
    mode: str = ""
    """The mode of nvidia-container-runtime."""
    why: str = ""
    """What made the loader use this file."""
    cuinit: int | None = None
    """What cuInit returned there; null: it was not called."""
    proof: tuple[str, ...] = ()
    """The lines that show it, each with its source."""
    differs: str = ""
    """What is not as predicted."""
    unknown: str = ""
    """Why nothing was traced."""

    @property
    def agrees(self) -> bool:
        """Whether something was traced, and nothing is known to differ from the prediction."""
        return not (self.differs or self.unknown)

    @property
    def summary(self) -> str:
        """``the host's libcuda 580.159.04: /usr/lib/...; cuInit returns 0``."""
        if self.unknown:
            return self.unknown
        called = "" if self.cuinit is None else f"; cuInit returns {self.cuinit}"
        return f"{self.got}{f': {self.file}' if self.file else ''}{called}"

    @property
    def got(self) -> str:
        """``the host's libcuda 580.159.04``."""
        what = SOURCES.get(self.source, "no libcuda.so.1")
        return f"{what} {self.version}" if self.version else what
