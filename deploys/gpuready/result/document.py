"""The result document: the result as JSON. It is valid on every exit, also when nothing was done at all.

Its id is ``gpuready/result/1``; within a version it only grows. Every text in it is masked. Readers should ignore keys
that they do not know.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from gpuready import __version__
from gpuready.base.errors import EXIT_CODES, GpureadyError
from gpuready.base.part import OneOf, Part
from gpuready.model.state import NodeState
from gpuready.result.exitcode import failed
from gpuready.result.mask import mask, mask_state, mask_text, mask_value
from gpuready.result.model import NO_PART, SCHEMA, Form, Host, HostResult, Run, Summary, VerbPart, shared

_OTHER = "use the release of gpuready that wrote it"
#: Hosts share most of their texts.
_masked = functools.lru_cache(maxsize=8192)(mask_text)


class DocumentError(GpureadyError):
    """A file that is no result document, or one that this release cannot read."""

    kind = "document"
    exit_code = 5


def document(run: Run, code: int) -> dict[str, Any]:
    """The whole run as JSON values; ``code`` is the exit code that goes with it."""
    return {**summary(run, code), "hosts": {host.name: host_document(run, host) for host in run.everyone}}


def summary(run: Run, code: int) -> dict[str, Any]:
    """All of the document that is not about a single host."""
    head = {"schema": SCHEMA, "gpuready": __version__, "exit_code": code}
    return {**head, **_mapping(run, Summary), **_plain(run.parts)}


def host_document(run: Run, host: HostResult) -> dict[str, Any]:
    """One host. What ``failed`` depends on is known only here: the verb, its part, and how the host ended."""
    return {**_mapping(host, Host), "failed": failed(run, host), **_plain(host.parts)}


def _mapping(part: Part, form: Any) -> dict[str, Any]:
    """The fields that ``part`` has as a ``form``, and its properties in the document."""
    found = {}
    for name, optional, digits in _fields(form):
        value = getattr(part, name)
        if value is not None or not optional:
            found[name] = _plain(value) if digits is None or value is None else round(value, digits)
    found |= {name: mask_value(found["key"], found[name]) for name in form.keyed}
    return found | {name: _plain(getattr(part, name)) for name in form.derived}


@functools.cache
def _fields(form: Any) -> list[tuple[str, bool, int | None]]:
    return [(f.name, "optional" in f.metadata, f.metadata.get("digits")) for f in dataclasses.fields(form)]


def _plain(value: Any) -> Any:
    """``value`` as JSON, masked."""
    if isinstance(value, str):
        return _masked(value)
    if isinstance(value, Part):
        return _mapping(value, type(value))
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, NodeState):
        return mask_state(value)
    if isinstance(value, BaseModel):
        return mask(value.model_dump())
    return mask({name: _plain(each) for name, each in value.items()}) if isinstance(value, dict) else value


def read(document: object, parts: Sequence[VerbPart]) -> tuple[Run, int]:
    """The run of a document, and its exit code. ``parts``: those of all verbs. Raises :class:`DocumentError`."""
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(schema, str):
        raise DocumentError("this is not a result document", remedy="gpuready writes one with --output json:PATH")
    if schema != SCHEMA:
        raise DocumentError(f"the schema is {schema!r}; this release reads {SCHEMA!r}", remedy=_OTHER)
    code = _valid(Annotated[int, OneOf(EXIT_CODES)], document.get("exit_code"), "exit_code")
    found = _valid(Summary, document)
    hosts = [
        read_host(name, host, parts) for name, host in _valid(dict[str, Any], document.get("hosts"), "hosts").items()
    ]
    run = Run(**vars(found), parts=_values(document, _of_run(parts)))
    for host in hosts:
        (run.unmanaged if host.outcome == "skipped" and not host.probed else run.hosts).append(host)
    run.removing = run.verb == "remove"
    run.part = _part(run, parts)
    return run, code


def _part(run: Run, parts: Sequence[VerbPart]) -> VerbPart:
    """The part that the values belong to, as a dry run is one of ``plan``; without values, that of the verb."""
    keys = {*run.parts, *(key for host in run.everyone for key in host.parts)}
    fitting = [part for part in parts if keys & {*part.of_run, *part.of_host}]
    fitting += [part for part in parts if part.verb == run.verb.partition(" ")[0]]
    return next(iter(fitting), NO_PART)


def _of_run(parts: Sequence[VerbPart]) -> dict[str, Form]:
    return {key: form for part in parts for key, form in part.of_run.items()}


def _of_host(parts: Sequence[VerbPart]) -> dict[str, Form]:
    return {key: form for part in parts for key, form in part.of_host.items()}


def read_host(name: str, host: object, parts: Sequence[VerbPart] = ()) -> HostResult:
    """The host of a document. Raises :class:`DocumentError`."""
    found, place = _valid(Host, host, f"hosts.{name}"), f"hosts.{name}."
    assert isinstance(host, dict)
    found.checks = list(map(shared, found.checks))
    return HostResult(name, **vars(found), parts=_values(host, _of_host(parts), place))


def _values(found: Mapping[str, Any], forms: Mapping[str, Form], place: str = "") -> dict[str, Any]:
    return {kind: _valid(form, found[kind], place + kind) for kind, (form, _) in forms.items() if kind in found}


def _valid(form: Any, value: object, place: str = "") -> Any:
    """``value`` in this form, without keys that this release does not know. ``place``: where it stands."""
    try:
        return _adapter(form).validate_python(value, extra="ignore")
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(filter(None, (place, *map(str, first["loc"])))) or "the document"
        raise DocumentError(f"{where}: {first['msg']}; another release wrote it", remedy=_OTHER) from None


@functools.cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def result_schema(parts: Sequence[VerbPart]) -> dict[str, Any]:
    """The JSON Schema of one document, Draft 2020-12; ``Line`` and ``Summary`` are those of jsonl.

    ``parts``: those of all verbs.
    """

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def encode_default(self, dft: Any) -> Any:
            """Dump a model by itself: it builds its serializer then. pydantic 2.13 fails on one that is not built."""
            return dft.model_dump(mode="json") if isinstance(dft, BaseModel) else super().encode_default(dft)

    of_host, of_run = _of_host(parts), _of_run(parts)
    forms: dict[str, Form] = {"Summary": (Summary, ""), "Host": (Host, ""), **of_host, **of_run}
    found, whole = TypeAdapter.json_schemas(
        [(name, "validation", _adapter(form)) for name, (form, _) in forms.items()], schema_generator=Untitled
    )
    schemas: dict[str, Any] = whole["$defs"]
    for form in _reachable([form for form, _ in forms.values()]):
        _complete(schemas[form.__name__], form)
    for name, kinds in (("Host", of_host), ("Summary", of_run)):
        more = {kind: {**found[kind, "validation"], "description": text} for kind, (_, text) in kinds.items()}
        schemas[name]["properties"] |= more
    top = schemas["Summary"]
    top["properties"] = {
        "schema": {"const": SCHEMA, "type": "string", "description": "The form of this document."},
        "gpuready": {"type": "string", "description": "The release that wrote this."},
        "exit_code": {"enum": sorted(EXIT_CODES), "type": "integer", "description": "The exit code of the run."},
        **top["properties"],
    }
    top["required"] = ["schema", "gpuready", "exit_code", *top["required"]]
    line = schemas["Host"]
    host = {"type": "string", "description": "The name of the host."}
    schemas["Line"] = {
        **line,
        "title": "Line",
        "description": "jsonl: one host.",
        "properties": {"host": host, **line["properties"]},
        "required": ["host", *line["required"]],
    }
    hosts = {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Host"},
        "description": "The hosts by name; unmanaged ones last.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **top,
        "title": SCHEMA,
        "description": (__doc__ or "").strip(),
        "properties": {**top["properties"], "hosts": hosts},
        "required": [*top["required"], "hosts"],
        "$defs": schemas,
    }


def _complete(schema: dict[str, Any], form: Any) -> None:
    """Add what we always write: all fields but the optional ones, and the properties in the document."""
    for name in form.derived:
        getter = getattr(form, name).fget
        hint = get_type_hints(getter, include_extras=True)["return"]
        text = (getter.__doc__ or "").strip()
        schema["properties"][name] = {**_adapter(hint).json_schema(), "description": text}
    schema["required"] = [name for name, optional, _ in _fields(form) if not optional] + list(form.derived)
    for each in schema["properties"].values():
        each.pop("default", None)
        if "description" in each:
            each["description"] = " ".join(each["description"].split())


def _reachable(forms: list[Any]) -> set[type[Any]]:
    """All parts that these forms consist of."""
    found: set[type[Any]] = set()
    while forms:
        form = forms.pop()
        forms += getattr(form, "__args__", ())
        if isinstance(form, type) and issubclass(form, Part) and form not in found:
            found.add(form)
            forms += get_type_hints(form, include_extras=False).values()
    return found
