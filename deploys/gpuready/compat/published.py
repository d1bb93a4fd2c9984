"""Facts of a published image by its name alone: NGC's PyTorch, pytorch/pytorch and nvidia/cuda (cuda/data/images.yaml).

It needs no network and no container engine.
"""

from gpuready.base.versions import dotted
from gpuready.cuda import tables
from gpuready.cuda.facts import CompatLib, Image, ImageFacts


def published_image(reference: str) -> ImageFacts | None:
    """Return the facts, or None if the table does not have the image."""
    found = tables.published(reference)
    if found is None or found.cuda[:2] not in tables.known_cuda():
        return None
    library = (CompatLib(tables.bundled_driver(found.cuda)),)
    image = Image(
        found.cuda,
        library if found.libcuda == "compat" else (),
        library if found.libcuda == "own" else (),
    )
    doubt = "" if found.sure else ", according to one source only"
    table = f"the table of {tables.dated('images')[0]}"
    note = f"by {table}, this tag has CUDA {dotted(found.cuda)}{doubt}; the image itself was not read"
    supposed = found.libcuda != "none" and tables.one_source("toolkits", dotted(found.cuda))
    note += "; the version of its libcuda is known from one source only" if supposed else ""
    return ImageFacts(image, notes=(note,), sure=found.sure and not supposed)


def not_published(reference: str) -> str:
    """Say that the table does not have the image; for a series of releases, which ones it has."""
    first, last = tables.published_releases(reference)
    has = f", which has its releases {first} to {last}" if first else ""
    return f"not in the table of published images{has}"
