"""Turn the merged ``gpuready:`` values of one host into a NodeSpec, or into errors with file and line.

A relative path starts at the inventory's directory, the one that holds ``group_vars``. pydantic validates the values;
each of its errors becomes a SpecError with the place, the value, what is allowed and the nearest match.
"""

import datetime
import difflib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from gpuready.base.errors import SpecError, SpecErrors, Where
from gpuready.base.fields import SecretValue, is_url
from gpuready.base.files import why_not
from gpuready.inventory.secrets import is_reference, resolve
from gpuready.inventory.source_values import (
    Located,
    OddFloat,
    OddInt,
    Shown,
    children,
    label,
    located,
    plain,
    refuse_templates,
    value_at,
)
from gpuready.model.schema_help import allowed_at, elsewhere, local_file_at, words_at
from gpuready.model.spec import NodeSpec

_VARS_DIRECTORIES = ("group_vars", "host_vars")


def build(
    tree: Located,
    *,
    today: datetime.date | None,
    allow_exec: bool,
    allow_read: Collection[str] = (),
    check_ids: Callable[[], Collection[str]] | None = None,
) -> NodeSpec:
    """The spec; :class:`SpecErrors` with all errors. A waiver must name one of ``check_ids()`` (None: any name)."""
    if errors := list(_unusable(tree)):
        raise SpecErrors(errors)
    tree = _with_absolute_paths(tree)
    try:
        spec = NodeSpec.model_validate(plain(tree), context={"today": today})
    except ValidationError as e:
        raise SpecErrors(_translate(e, tree)) from None
    errors = [
        *_missing_files(tree),
        *_unresolvable(tree, allow_exec=allow_exec, allow_read=allow_read),
        *_unknown_checks(spec, tree, check_ids),
    ]
    if errors:
        raise SpecErrors(errors)
    return spec


def _unusable(value: Located, path: tuple[object, ...] = ()) -> Iterator[SpecError]:
    """Templates, vaults, and keys or numbers that YAML reads differently from how they are written."""
    name = _dotted(path)
    try:
        refuse_templates(name, value)
    except SpecError as e:
        yield e
        return
    if isinstance(value.value, (OddInt, OddFloat)):
        problem = f"{name}: YAML reads {value.value.text} as {value.value}"
        yield SpecError(problem, where=value.where, allowed=f"{value.value}, or quoted text")
    for key, below in children(value):
        if isinstance(key, str) or isinstance(value.value, list):
            yield from _unusable(below, (*path, key))
        else:
            problem = f"{name}: a key is not text"
            yield SpecError(problem, where=below.where, given=Shown(key), allowed="quoted text")


def _with_absolute_paths(value: Located, path: tuple[object, ...] = ()) -> Located:
    """The tree with each relative path of a :class:`LocalFile` made absolute."""
    if isinstance(value.value, dict):
        tree = {key: _with_absolute_paths(below, (*path, key)) for key, below in value.value.items()}
        return Located(tree, value.where)
    if isinstance(value.value, list):
        entries = [_with_absolute_paths(below, (*path, number)) for number, below in enumerate(value.value)]
        return Located(entries, value.where)
    kind = local_file_at(NodeSpec, path)
    file = kind.path_in(value.value) if kind is not None else ""
    if kind is None or not file or file.startswith("~"):
        return value
    inventory = Path(value.where.file).absolute()
    base = next((p.parent for p in inventory.parents if p.name in _VARS_DIRECTORIES), inventory.parent)
    return Located(f"{kind.prefix}{base / file}", value.where)


def _missing_files(value: Located, path: tuple[object, ...] = ()) -> Iterator[SpecError]:
    """Files that cannot be read; a secret's file is read by :func:`_unresolvable`."""
    for key, below in children(value):
        yield from _missing_files(below, (*path, key))
    if (kind := local_file_at(NodeSpec, path)) is not None and not kind.prefix:
        file = kind.path_in(value.value)
        if file and (problem := why_not(file)):
            message = f"{_dotted(path)}: {problem}"
            yield SpecError(message, where=value.where, given=file, allowed="a file on this machine")


def _translate(error: ValidationError, tree: Located) -> list[SpecError]:
    """One SpecError for each place; of the errors of a union, those that reach deepest."""
    found: dict[tuple[object, ...], Any] = {}
    for detail in error.errors(include_url=False, include_input=False):
        path = _place(tree, detail)
        if path not in found or "error" in detail.get("ctx", {}):
            found[path] = detail
    deepest = [
        path for path in found if not any(len(other) > len(path) and other[: len(path)] == path for other in found)
    ]
    return [_spec_error(found[path], path, tree) for path in deepest]


def _place(tree: Located, detail: Any) -> tuple[object, ...]:
    """The path in the document: pydantic's location without the names of a union's alternatives."""
    below = detail.get("ctx", {}).get("at", "")
    path: tuple[object, ...] = ()
    for part in (*detail["loc"], *below.split(".")):
        if value_at(tree, (*path, part)) is not None:
            path = (*path, part)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else path


def _dotted(path: tuple[object, ...]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{label(p)}" for p in path).lstrip(".") or "gpuready"


def _spec_error(detail: Any, path: tuple[object, ...], tree: Located) -> SpecError:
    here = value_at(tree, path) or value_at(tree, path[:-1]) or tree
    name, context = _dotted(path), detail.get("ctx", {})
    if detail["type"] == "missing":
        return SpecError(f"{name} is missing", where=here.where, allowed=allowed_at(NodeSpec, path))
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(path[-1]), words_at(NodeSpec, path[:-1]), 1)
        near = near or elsewhere(NodeSpec, path[-1])[:1]
        allowed = allowed_at(NodeSpec, path[:-1])
        problem = f"{name}: unknown key"
        return SpecError(problem, where=here.where, given=path[-1], allowed=allowed, near="".join(near))
    reason = context.get("error") or (detail["msg"] if detail["type"] in ("floor", "version") else "not accepted")
    allowed = context.get("allowed") or allowed_at(NodeSpec, path)
    near = []
    if isinstance(here.value, str):
        near = difflib.get_close_matches(here.value, words_at(NodeSpec, path), 1)
        near = [word for word in near if word != here.value]
    kind = local_file_at(NodeSpec, path)
    secret = isinstance(kind, SecretValue) and not kind.plain
    secret = secret or (is_url(str(here.value)) and "@" in str(here.value))
    given = Shown("***" if secret else here.value)
    return SpecError(f"{name}: {reason}", where=here.where, given=given, allowed=allowed, near="".join(near))


def references(value: Located, path: tuple[object, ...] = ()) -> Iterator[tuple[str, Located, SecretValue]]:
    """All references to secrets in the tree: the name of the setting, the reference, and what the secret must be."""
    for key, below in children(value):
        yield from references(below, (*path, key))
    kind = local_file_at(NodeSpec, path)
    if isinstance(kind, SecretValue) and isinstance(value.value, str) and is_reference(value.value):
        yield _dotted(path), value, kind


def local_values(spec: NodeSpec) -> tuple[tuple[str, str], ...]:
    """Return the keys and values of a spec that name files of this machine, or refer to secrets on it."""
    return tuple(_local_values(located(spec.model_dump(mode="json", exclude_defaults=True), Where("gpuready"))))


def _local_values(value: Located, path: tuple[object, ...] = ()) -> Iterator[tuple[str, str]]:
    for key, below in children(value):
        yield from _local_values(below, (*path, key))
    kind, text = local_file_at(NodeSpec, path), value.value
    if kind is not None and isinstance(text, str) and (kind.path_in(text) or is_reference(text)):
        yield _dotted(path), text


def _unresolvable(tree: Located, *, allow_exec: bool, allow_read: Collection[str]) -> Iterator[SpecError]:
    """Secrets that are not available, or do not fit their setting."""
    for name, place, kind in references(tree):
        reference = str(place.value)
        try:
            secret = resolve(reference, allow_exec=allow_exec, allow_read=allow_read, where=place.where)
        except SpecError as e:
            yield SpecError(f"{name}: {e.message}", where=e.where, given=e.given, allowed=e.allowed)
            continue
        if not kind.fits(secret.reveal()):
            problem = f"{name}: the secret is not {kind.what}"
            yield SpecError(problem, where=place.where, given=reference, allowed=kind.allowed)


def _unknown_checks(
    spec: NodeSpec, tree: Located, check_ids: Callable[[], Collection[str]] | None
) -> Iterator[SpecError]:
    """Waivers of unknown checks: a misspelt one would go unnoticed until the check fails."""
    for number, waiver in enumerate(spec.verify.waive):
        place = value_at(tree, ("verify", "waive", number, "check"))
        if check_ids is not None and place is not None and waiver.check not in check_ids():
            near = difflib.get_close_matches(waiver.check, sorted(check_ids()), 1)
            problem = f"verify.waive[{number}].check: no such check"
            allowed = "the id of a check; gpuready explain lists them"
            yield SpecError(problem, where=place.where, given=waiver.check, allowed=allowed, near="".join(near))


def written(spec: NodeSpec) -> str:
    """Return an inventory (YAML) without hosts that gives this spec to every host."""
    given = spec.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump({"all": {"vars": {"gpuready": given}}}, sort_keys=False, allow_unicode=True)
