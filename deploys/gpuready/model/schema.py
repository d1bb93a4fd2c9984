"""The JSON Schema of an inventory file, for editors: generated from the models, kept in inventories/schema.json.

In an editor with a YAML language server: ``# yaml-language-server: $schema=schema.json``. Values that this
release does not support yet are left out. It is Draft 7, which those servers support best.
"""

import ast
import functools
import inspect
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from gpuready.base.section import Section
from gpuready.model.spec import NodeSpec

Schema = dict[str, Any]

_VARIABLES: dict[str, Schema] = {
    "ansible_host": {"type": "string", "description": "The host name or address to connect to."},
    "ansible_user": {"type": "string", "description": "The user to log in as; root, or one with sudo."},
    "ansible_port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "The SSH port."},
    "ansible_ssh_private_key_file": {"type": "string", "description": "The private key on this machine."},
    "ansible_ssh_common_args": {"type": "string", "description": "Only -F FILE, -J HOST and -o Keyword=value."},
    "ansible_become_method": {"enum": ["sudo"], "description": "Only sudo."},
    "ansible_become_user": {"enum": ["root"], "description": "Only root."},
    "ansible_group_priority": {"type": "integer", "description": "Among groups of the same depth, the highest wins."},
}


class _Generator(GenerateJsonSchema):
    def encode_default(self, dft: Any) -> Any:
        """Encode plain values without a validator for each; the default of a section is that of its keys."""
        return None if isinstance(dft, Section) else to_jsonable_python(dft)


def inventory_schema() -> Schema:
    """The schema of an inventory file: groups, whose variables hold the ``gpuready:`` block."""
    spec = NodeSpec.model_json_schema(schema_generator=_Generator)
    defs: dict[str, Schema] = {**spec.pop("$defs"), "NodeSpec": spec}
    for model in _sections(Section):
        if model.__name__ in defs:
            _describe(defs[model.__name__]["properties"], model)
    descriptions = {f"#/$defs/{name}": body["description"] for name, body in defs.items()}
    for body in defs.values():
        body["properties"] = {name: _plain(field, descriptions) for name, field in body["properties"].items()}
    for body in defs.values():
        body["type"] = ["object", "null"]  # a heading with nothing below it
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "gpuready inventory",
        "description": "An Ansible YAML inventory; gpuready reads the variable gpuready of hosts and groups.",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Group"},
        "$defs": {**_file_form(), **defs},
    }


def settings() -> dict[str, str]:
    """Return what each setting of the spec means, by its path, such as verify.image."""
    return dict(_settings(inventory_schema()["$defs"], "NodeSpec", ""))


def _settings(defs: Schema, model: str, prefix: str) -> Iterator[tuple[str, str]]:
    for name, field in defs[model]["properties"].items():
        forms = (field, field.get("items", {}), *field.get("anyOf", ()))
        below = [form["$ref"].removeprefix("#/$defs/") for form in forms if "$ref" in form]
        yield f"{prefix}{name}", field.get("description") or defs[below[0]]["description"]
        for section in below:
            yield from _settings(defs, section, f"{prefix}{name}.")


def render() -> str:
    """The text of inventories/schema.json."""
    return json.dumps(inventory_schema(), indent=2, ensure_ascii=False) + "\n"


def _file_form() -> dict[str, Schema]:
    variables: Schema = {
        "description": "Variables; gpuready ignores those that it does not know.",
        "type": ["object", "null"],
        "properties": {
            "gpuready": {"$ref": "#/$defs/NodeSpec"},
            **_VARIABLES,
        },
    }
    group: Schema = {
        "description": "A group of hosts.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            "hosts": {
                "description": "Hosts by name; ranges such as gpu[01:16].",
                "type": ["object", "string", "null"],
                "additionalProperties": {"$ref": "#/$defs/Variables"},
            },
            "vars": {"$ref": "#/$defs/Variables"},
            "children": {
                "description": "Groups within this group.",
                "type": ["object", "string", "null"],
                "additionalProperties": {"$ref": "#/$defs/Group"},
            },
        },
    }
    return {"Group": group, "Variables": variables}


def _sections(base: type[Section]) -> list[type[Section]]:
    return [found for below in base.__subclasses__() for found in (below, *_sections(below))]


def _describe(properties: Schema, model: type[Section]) -> None:
    """Make each field's docstring its description.

    pydantic's use_attribute_docstrings does the same, but it makes every run of gpuready about 40 ms slower.
    """
    for field, text in itertools.pairwise(_classes(model.__module__)[model.__name__].body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            schema = properties[field.target.id]
            schema["description"] = inspect.cleandoc(ast.literal_eval(text.value))
            properties[field.target.id] = dict(sorted(schema.items()))


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _plain(field: Schema, descriptions: dict[str, str]) -> Schema:
    """The field's schema without what pydantic's versions write differently, and without repetitions."""
    if len(field.get("allOf", ())) == 1:
        field = {**field["allOf"][0], **{key: value for key, value in field.items() if key != "allOf"}}
    if "oneOf" in field:  # a union with a discriminator; its alternatives exclude each other anyway
        field = dict(sorted(("anyOf" if key == "oneOf" else key, value) for key, value in field.items()))
    dropped = {"title"}
    if field.get("default") is None or "$ref" in field or len(field.get("enum", ())) == 1:
        dropped.add("default")
    if descriptions.get(field.get("$ref", "")) == field.get("description"):
        dropped.add("description")
    if "const" in field:
        dropped |= {"enum", "type"}
    kept = {key: value for key, value in field.items() if key not in dropped}
    if "anyOf" in kept:
        kept["anyOf"] = [_plain(alternative, descriptions) for alternative in kept["anyOf"]]
    return kept


if __name__ == "__main__":
    print(render(), end="")
