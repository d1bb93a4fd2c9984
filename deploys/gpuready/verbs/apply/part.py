"""The part of apply: with --image, what the first boot of the image does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuready.base.part import Part
from gpuready.base.words import count
from gpuready.result.model import Run, VerbPart
from gpuready.result.text import Painter


@dataclass(frozen=True)
class FirstBoot(Part):
    """apply --image: what was left to the first boot, and what of the builder was removed."""

    unit: str
    """The service that does the rest at the first boot."""
    pending: tuple[str, ...]
    """The components that wait for the first boot."""
    removed: tuple[str, ...]
    """The files of the builder that were removed, or emptied."""


class ApplyPart(VerbPart):
    """A value of the host that is an image."""

    def blocks(self, run: Run, paint: Painter) -> Iterator[list[str]]:
        """Say what was not done, and who does it."""
        for image in _images(run):
            yield [
                paint("bold", "This is an image: nothing was started, and no check ran."),
                f"  pending until the first boot: {', '.join(image.pending)}",
                f"  {image.unit} does that, verifies the node, and removes itself",
                *([f"  removed: {', '.join(image.removed)}"] if image.removed else []),
            ]

    def tally(self, run: Run) -> str:
        """An image is not ready, and matches its spec only after its first boot."""
        words = [f"{count(len(image.pending), 'component')} pending until the first boot" for image in _images(run)]
        return "; ".join(["the image is made", *words]) if words else ""


PART = ApplyPart(
    verb="apply", of_host={"first_boot": (FirstBoot, "apply --image: what was left to the first boot of the image.")}
)


def _images(run: Run) -> list[FirstBoot]:
    return [host.parts["first_boot"] for host in run.hosts if "first_boot" in host.parts]
