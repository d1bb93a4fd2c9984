"""The part of bundle: its files, and how to use them."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gpuready.base.part import Count, Part
from gpuready.base.words import count
from gpuready.result.ending import limit_options
from gpuready.result.mask import options_to_paste
from gpuready.result.model import Run, VerbPart
from gpuready.result.text import Painter, columns


@dataclass(frozen=True)
class BundledFile(Part):
    """A file of a bundle."""

    path: str
    """Its path in the folder, and below the URL."""
    size: Count
    """Its bytes."""
    sha256: str
    """The SHA-256 of its content."""
    fetched: bool
    """This run wrote it; false: it was there."""


@dataclass(frozen=True)
class Bundle(Part):
    """bundle: a folder with what the hosts fetch."""

    folder: str
    """The folder."""
    url: str
    """Where the nodes find it."""
    files: tuple[BundledFile, ...]
    """Its files, as in SHA256SUMS."""

    @property
    def size(self) -> float:
        """MiB."""
        return sum(each.size for each in self.files) / 2**20


class BundlePart(VerbPart):
    """A value of the run."""

    def blocks(self, run: Run, paint: Painter) -> Iterator[list[str]]:
        """How to check, serve and use the bundle."""
        if bundle := _bundle(run):
            folder, limit = shlex.quote(bundle.folder), limit_options(run.limit)
            options = f"{options_to_paste(run.choice)} -i {shlex.quote(f'{bundle.folder}/bundle.yaml')}{limit}"
            yield columns([
                ("check", f"(cd {folder} && sha256sum -c SHA256SUMS)"),
                ("serve", f"any web server, at {bundle.url}"),
                ("use", f"gpuready apply {options}"),
            ])  # fmt: skip

    def done(self, run: Run) -> str:
        if not (bundle := _bundle(run)):
            return super().done(run)
        fetched = sum(each.fetched for each in bundle.files)
        return f"{count(len(bundle.files), 'file')}, {bundle.size:.1f} MiB, {fetched} of them new"


def _bundle(run: Run) -> Bundle | None:
    found: Bundle | None = run.parts.get("bundle")
    return found


PART = BundlePart(
    verb="bundle",
    of_run={"bundle": (Bundle, "bundle: what was written.")},
    judges=False,
)
