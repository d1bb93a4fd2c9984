"""Values of the command line: ``-e hardware.gpus=8`` is a path in the spec and a value.

The schema decides the type: where it wants text, the value is text; else it is read as YAML, as in a file.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from gpuready.base.errors import SpecError, UsageError, Where
from gpuready.inventory.source_values import Located, located, merge, plain
from gpuready.inventory.yaml_positions import load_text
from gpuready.model.schema_help import is_text_at
from gpuready.model.spec import NodeSpec

_EXAMPLE = "-e hardware.gpus=8, or -e 'runtimes={docker: {shm_size: 8g}}'"


class Extra(NamedTuple):
    """``KEY=VALUE`` and where it was given: ``-e``, or the name of an environment variable."""

    text: str
    place: str = "-e"


def extra_values(given: Sequence[Extra]) -> Located | None:
    """All of them as one ``gpuready`` value; the later wins. UsageError, or SpecError for a value that is no YAML."""
    return reduce(merge, map(_one, given)) if given else None


def _one(extra: Extra) -> Located:
    key, equals, text = extra.text.partition("=")
    path = [part.strip() for part in key.strip().removeprefix("gpuready.").split(".")]
    if not equals or not all(path):
        raise UsageError(f"{extra.place} {extra.text}: not NAME=VALUE", remedy=_EXAMPLE)
    where = Where(extra.place)
    if is_text_at(NodeSpec, path) and text.strip() not in ("", "null", "~"):
        value = Located(text, where)
    else:
        value = _yaml(".".join(path), text, where)
    for part in reversed(path):
        value = Located({part: value}, where)
    return value


def _yaml(name: str, text: str, where: Where) -> Located:
    try:
        found = load_text(text, where.file)
    except SpecError as e:
        raise SpecError(f"{name}: {e.message}", where=where, given=e.given or text, allowed=e.allowed) from None
    return located(found and plain(found), where)  # the command line has no lines
