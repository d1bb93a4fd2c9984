"""What a new container of an image really got: its libcuda, its source, why, and whether compat predicted it."""

from dataclasses import dataclass

#: Where a library comes from: mounted from the host, a compat directory of CUDA in the image, the stub for linkers, or
#: another file of the image. And how a sentence says it.
SOURCES = {
    "host": "the host's libcuda",
    "compat": "the image's compat library",
    "stub": "the stub that only linkers use",
    "own": "a copy in the image",
}


@dataclass(frozen=True)
class Trace:
    """``path``: libcuda.so.1 as a program in the container loads it; ``file``: with its links resolved.

    ``version`` is empty if the file's name has none. ``source``: one of SOURCES, empty if there is no library.
    ``mode``: of nvidia-container-runtime. ``why``: what made the loader use this file. ``proof``: the lines that show
    it, each with its source. ``cuinit``: what cuInit returned; None if it was not called. ``differs``: what is not as
    predicted; ``unknown``: why nothing was traced.
    """

    path: str = ""
    file: str = ""
    version: str = ""
    source: str = ""
    mode: str = ""
    why: str = ""
    cuinit: int | None = None
    proof: tuple[str, ...] = ()
    differs: str = ""
    unknown: str = ""

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
