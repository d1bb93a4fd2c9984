"""Describe what a place in the spec allows; derived from the models, so that it is never out of date."""

import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from gpuready.base.fields import Allowed, LocalFile
from gpuready.base.section import Section

_SIMPLE = {
    bool: "true | false",
    int: "a whole number",
    float: "a number",
    str: "text",
    dict: "a mapping",
}


@dataclass(frozen=True)
class Form:
    """One alternative of a type, with its annotations."""

    kind: Any
    notes: tuple[object, ...]

    def words(self) -> str:
        """The allowed values, in words."""
        for note in self.notes:
            if isinstance(note, Allowed):
                return note.text
        if get_origin(self.kind) is Literal:
            return " | ".join(map(_word, get_args(self.kind)))
        if _is_section(self.kind):
            return f"a mapping with {', '.join(self.kind.model_fields)}"
        if get_origin(self.kind) is tuple:
            return f"a list, each entry {' | '.join(form.words() for form in _below(self, 0))}"
        return _SIMPLE.get(get_origin(self.kind) or self.kind, "something else")


def _word(value: object) -> str:
    """The value as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def allowed_at(model: type[Section], path: Sequence[object]) -> str:
    """The allowed values at ``path``; for a path that the model does not know, those of its parent."""
    return " | ".join(form.words() for form in _forms_at(model, path) if form.kind is not type(None))


def words_at(model: type[Section], path: Sequence[object]) -> list[str]:
    """The fixed words at ``path``, for near matches: the values of a Literal, or the keys of a mapping."""
    found: list[str] = []
    for form in _forms_at(model, path):
        if get_origin(form.kind) is Literal:
            found += map(_word, get_args(form.kind))
        elif _is_section(form.kind):
            found += list(form.kind.model_fields)
    return found


def is_text_at(model: type[Section], path: Sequence[object]) -> bool:
    """Whether the value at ``path`` can only be text (or null): a plain ``1.20`` stands for these letters there."""
    forms = [form for form in _forms_at(model, path) if form.kind is not type(None)]
    literals = (value for form in forms if get_origin(form.kind) is Literal for value in get_args(form.kind))
    texts = all(form.kind is str or get_origin(form.kind) is Literal for form in forms)
    return bool(forms) and texts and all(isinstance(value, str) for value in literals)


def local_file_at(model: type[Section], path: Sequence[object]) -> LocalFile | None:
    """The annotation of a value that is a path on this machine; None for other values."""
    notes = (note for form in _forms_at(model, path) for note in form.notes)
    return next((note for note in notes if isinstance(note, LocalFile)), None)


def elsewhere(model: type[Section], name: object) -> list[str]:
    """Paths of all keys of this name below ``model``: the key may be right, but on the wrong level."""
    found: list[str] = []
    for key, field in model.model_fields.items():
        if key == name:
            found.append(key)
        for form in _forms(field.annotation, field.metadata):
            if _is_section(form.kind):
                found += [f"{key}.{path}" for path in elsewhere(form.kind, name)]
    return found


def _forms_at(model: type[Section], path: Sequence[object]) -> list[Form]:
    here = [Form(model, ())]
    for part in path:
        below = [form for outer in here for form in _below(outer, part)]
        if not below:
            break
        here = below
    return here


def _below(form: Form, part: object) -> Iterator[Form]:
    if isinstance(part, int) and get_origin(form.kind) is tuple:
        yield from _forms(get_args(form.kind)[0], ())
    elif get_origin(form.kind) is dict:
        yield from _forms(get_args(form.kind)[1], ())
    elif _is_section(form.kind) and part in form.kind.model_fields:
        field: FieldInfo = form.kind.model_fields[part]
        yield from _forms(field.annotation, field.metadata)


def _forms(annotation: Any, notes: Iterable[object]) -> Iterator[Form]:
    """The alternatives of an annotation; an :class:`Allowed` for a whole union hides its alternatives."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        yield from _forms(inner, (*more, *notes))
    elif get_origin(annotation) in (Union, types.UnionType) and not any(isinstance(n, Allowed) for n in notes):
        for alternative in get_args(annotation):
            yield from _forms(alternative, notes)
    else:
        yield Form(annotation, tuple(notes))


def _is_section(kind: object) -> bool:
    # in Python 3.10, tuple[str, ...] is an instance of type
    return get_origin(kind) is None and isinstance(kind, type) and issubclass(kind, Section)
