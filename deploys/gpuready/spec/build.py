"""From the merged ``gpuready:`` values of one host to its NodeSpec, or to errors that name file and line.

Relative paths are those of the inventory's directory, the one that holds ``group_vars``. pydantic judges the
values; its errors are said again with the place, what was given, what is allowed and the nearest match.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpuready.core.errors import SpecError
from gpuready.core.fields import is_proxy, is_url
from gpuready.core.files import why_not
from gpuready.spec.model import NodeSpec
from gpuready.spec.not_yet import refuse_missing
from gpuready.spec.schema_help import allowed_at, elsewhere, words_at
from gpuready.spec.secrets import is_reference, resolve
from gpuready.spec.source_values import Located, OddFloat, OddInt, Shown, label, merge, plain, refuse_templates

_VARS_DIRECTORIES = ("group_vars", "host_vars")
_KEY = ("toolkit", "repo", "key")
_PROXY = ("toolkit", "repo", "proxy")


def build(
    tree: Located, *, today: datetime.date | None, allow_exec: bool, check_ids: Collection[str] | None = None
) -> tuple[NodeSpec | None, list[SpecError]]:
    """The spec, or all that is wrong with it; waivers may name ``check_ids`` alone (None: any)."""
    errors = list(_unusable(tree, ""))
    if errors:
        return None, errors
    tree = _with_absolute_paths(tree)
    spec, wrong = None, dict[str, SpecError]()
    try:
        spec = NodeSpec.model_validate(plain(tree), context={"today": today})
    except ValidationError as e:
        wrong = _translate(e, tree)
    errors = list(wrong.values())
    for path, error in refuse_missing(tree, NodeSpec):
        if not any(name == path or name.startswith((f"{path}.", f"{path}[")) for name in wrong):
            errors.append(error)
    if spec is not None and not errors:
        errors = [*_unresolvable(spec, tree, allow_exec=allow_exec), *_unknown_checks(spec, tree, check_ids)]
    return (None, errors) if errors else (spec, [])


def _unusable(value: Located, path: str) -> Iterator[SpecError]:
    """Templates, vaults, and keys that YAML reads as something else than text."""
    try:
        refuse_templates(path or "gpuready", value)
    except SpecError as e:
        yield e
        return
    if isinstance(value.value, (OddInt, OddFloat)):
        problem = f"{path}: YAML reads {value.value.text} as {value.value}"
        yield SpecError(problem, where=value.where, allowed=f"{value.value}, or quoted text")
    elif isinstance(value.value, dict):
        for key, below in value.value.items():
            if isinstance(key, str):
                yield from _unusable(below, f"{path}.{label(key)}" if path else label(key))
            else:
                problem = f"{path or 'gpuready'}: a key that is no text"
                yield SpecError(problem, where=below.where, given=Shown(key), allowed="quoted text")
    elif isinstance(value.value, list):
        for number, entry in enumerate(value.value):
            yield from _unusable(entry, f"{path}[{number}]")


def _with_absolute_paths(tree: Located) -> Located:
    key, proxy = at(tree, _KEY), at(tree, _PROXY)
    if key is not None and isinstance(key.value, str) and key.value and not is_url(key.value):
        tree = _replaced(tree, _KEY, _absolute(key.value, key))
    if proxy is not None and isinstance(proxy.value, str) and proxy.value.startswith("file:"):
        tree = _replaced(tree, _PROXY, f"file:{_absolute(proxy.value[5:], proxy)}")
    wheels = at(tree, ("torch_wheels",))
    if wheels is not None and isinstance(wheels.value, list):
        below = Located([_with_absolute_wheel(entry) for entry in wheels.value], wheels.where)
        tree = merge(tree, Located({"torch_wheels": below}, tree.where))
    return tree


def _with_absolute_wheel(entry: Located) -> Located:
    wheel = at(entry, ("wheel",))
    if wheel is None or not isinstance(wheel.value, str) or not wheel.value:
        return entry
    return merge(entry, Located({"wheel": Located(_absolute(wheel.value, wheel), wheel.where)}, entry.where))


def _absolute(path: str, value: Located) -> str:
    """``path`` as seen from the inventory that holds ``value``."""
    file = Path(value.where.file).absolute()
    base = next((p.parent for p in file.parents if p.name in _VARS_DIRECTORIES), file.parent)
    return path if path.startswith("~") else str(base / path)


def _replaced(tree: Located, path: tuple[str, ...], text: str) -> Located:
    old = at(tree, path)
    assert old is not None
    new = Located(text, old.where)
    for key in reversed(path):
        new = Located({key: new}, old.where)
    return merge(tree, new)


def at(tree: Located, path: tuple[Any, ...]) -> Located | None:
    """The value at a path of keys and list positions; None if there is none."""
    here = tree
    for part in path:
        below: Located | None = None
        if isinstance(here.value, dict):
            below = here.value.get(part)
        elif isinstance(here.value, list) and isinstance(part, int) and part < len(here.value):
            below = here.value[part]
        if below is None:
            return None
        here = below
    return here


def _translate(error: ValidationError, tree: Located) -> dict[str, SpecError]:
    """One SpecError for each place; of a union's complaints those that reach deepest."""
    found: dict[tuple[object, ...], Any] = {}
    for detail in error.errors(include_url=False, include_input=False):
        path = _place(tree, detail)
        if path not in found or "error" in detail.get("ctx", {}):
            found[path] = detail
    deepest = [p for p in found if not any(len(q) > len(p) and q[: len(p)] == p for q in found)]
    return {_dotted(path): _said(found[path], path, tree) for path in deepest}


def _place(tree: Located, detail: Any) -> tuple[object, ...]:
    """Where in the document: pydantic's location without the names of a union's alternatives."""
    below = detail.get("ctx", {}).get("at", "")
    path: tuple[object, ...] = ()
    for part in (*detail["loc"], *below.split(".")):
        if at(tree, (*path, part)) is not None:
            path = (*path, part)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else path


def _dotted(path: tuple[object, ...]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{label(p)}" for p in path).lstrip(".") or "gpuready"


def _said(detail: Any, path: tuple[object, ...], tree: Located) -> SpecError:
    here = at(tree, path) or at(tree, path[:-1]) or tree
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
    given = Shown("***" if is_url(str(here.value)) and "@" in str(here.value) else here.value)
    return SpecError(f"{name}: {reason}", where=here.where, given=given, allowed=allowed, near="".join(near))


def _unresolvable(spec: NodeSpec, tree: Located, *, allow_exec: bool) -> Iterator[SpecError]:
    """Key files and secrets must be there before anything is executed."""
    key, proxy = at(tree, _KEY), at(tree, _PROXY)
    if key is not None and not is_url(spec.toolkit.repo.key) and (why := why_not(spec.toolkit.repo.key)):
        problem = f"toolkit.repo.key: {why}"
        yield SpecError(problem, where=key.where, given=spec.toolkit.repo.key, allowed="a file on this machine")
    for number, one in enumerate(spec.torch_wheels):
        place = at(tree, ("torch_wheels", number, "wheel"))
        if place is not None and (why := why_not(one.wheel)):
            problem = f"torch_wheels[{number}].wheel: {why}"
            yield SpecError(problem, where=place.where, given=one.wheel, allowed="a wheel on this machine")
    if proxy is None or not spec.toolkit.repo.proxy or not is_reference(spec.toolkit.repo.proxy):
        return
    try:
        secret = resolve(spec.toolkit.repo.proxy, allow_exec=allow_exec, where=proxy.where)
    except SpecError as e:
        problem = f"toolkit.repo.proxy: {e.message}"
        yield SpecError(problem, where=e.where, given=e.given, allowed=e.allowed)
        return
    if not is_proxy(secret.reveal(), credentials=True):
        problem = "toolkit.repo.proxy: what this stands for is no plain proxy URL"
        given = spec.toolkit.repo.proxy
        yield SpecError(problem, where=proxy.where, given=given, allowed="http(s)://[USER:PASSWORD@]HOST:PORT")


def _unknown_checks(spec: NodeSpec, tree: Located, check_ids: Collection[str] | None) -> Iterator[SpecError]:
    """A waiver for a misspelt check waives nothing, and nobody would notice until the check fails."""
    for number, waiver in enumerate(spec.verify.waive):
        place = at(tree, ("verify", "waive", number, "check"))
        if check_ids is not None and place is not None and waiver.check not in check_ids:
            near = difflib.get_close_matches(waiver.check, sorted(check_ids), 1)
            problem = f"verify.waive[{number}].check: no such check"
            allowed = "the id of a check; gpuready explain lists them"
            yield SpecError(problem, where=place.where, given=waiver.check, allowed=allowed, near="".join(near))
