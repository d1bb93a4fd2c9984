"""Values of the command line: ``-e hardware.gpus=8`` is a path in the spec and a value.

The schema decides the type: where it wants text, the value is text; else it is read as YAML, as in a file. A name that
begins with ``ansible_`` is a variable of the inventory instead.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from gpuready.base.errors import SpecError, UsageError, Where, did_you_mean
from gpuready.inventory.connection import HONOURED
from gpuready.inventory.source_values import Located, located, merge, plain
from gpuready.inventory.yaml_positions import load_text
from gpuready.model.schema_help import is_text_at
from gpuready.model.spec import NodeSpec

_EXAMPLE = "-e hardware.gpus=8, or -e 'runtimes={docker: {shm_size: 8g}}'"
_VARIABLE = "-e ansible_user=admin; docs/guides/inventory.md lists the variables"


class Extra(NamedTuple):
    """``KEY=VALUE`` and where it was given: ``-e``, or the name of an environment variable."""

    text: str
    place: str = "-e"


def extra_values(given: Sequence[Extra]) -> Located | None:
    """All values of the spec as one ``gpuready`` value; the later wins.

    Raises UsageError, or SpecError for a value that is no YAML.
    """
    found = [_one(each) for each in given if not _is_variable(each)]
    return reduce(merge, found) if found else None


def extra_variables(given: Sequence[Extra]) -> dict[str, Located]:
    """The variables of the inventory, as text; the later wins. UsageError for a name that has no effect."""
    found = {}
    for each in filter(_is_variable, given):
        name, _, text = each.text.partition("=")
        if name.strip() not in HONOURED:
            near = did_you_mean(name.strip(), HONOURED)
            raise UsageError(f"{each.place} {name.strip()}: this variable has no effect{near}", remedy=_VARIABLE)
        found[name.strip()] = Located(text, Where(each.place))
    return found


def _is_variable(each: Extra) -> bool:
    return each.text.lstrip().startswith("ansible_") and "=" in each.text


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
