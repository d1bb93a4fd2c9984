"""The JSON Schema of an inventory file, for editors: generated from the models, kept in inventories/schema.json.

In an editor with a YAML language server: ``# yaml-language-server: $schema=schema.json``. What this release
does not do yet is narrowed to what it takes. Draft 7, which those servers know best.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import textwrap
from typing import Any

from pydantic_core import to_jsonable_python

from gpuready.core.section import Section
from gpuready.spec.model import NodeSpec
from gpuready.spec.not_yet import NOT_YET, Missing, allowed_now

Schema = dict[str, Any]

_VARIABLES: dict[str, Schema] = {
    "ansible_host": {"type": "string", "description": "The name or address to connect to."},
    "ansible_user": {"type": "string", "description": "The user to log in as; root, or one with sudo."},
    "ansible_port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "The SSH port."},
    "ansible_ssh_private_key_file": {"type": "string", "description": "The private key on this machine."},
    "ansible_ssh_common_args": {"type": "string", "description": "Only -F FILE, -J HOST and -o Keyword=value."},
    "ansible_become_method": {"enum": ["sudo"], "description": "Only sudo, without a password."},
    "ansible_become_user": {"enum": ["root"], "description": "Only root."},
    "ansible_group_priority": {"type": "integer", "description": "Among groups of one depth the higher wins."},
}


def inventory_schema() -> Schema:
    """The schema of an inventory file: groups, whose variables hold the ``gpuready:`` block."""
    spec = NodeSpec.model_json_schema()
    defs: dict[str, Schema] = {**spec.pop("$defs"), "NodeSpec": spec}
    for model in _sections(Section):
        if model.__name__ in defs:
            _describe(defs[model.__name__]["properties"], model)
    descriptions = {f"#/$defs/{name}": body["description"] for name, body in defs.items()}
    for body in defs.values():
        body["properties"] = {name: _plain(field, descriptions) for name, field in body["properties"].items()}
    for missing in NOT_YET:
        _narrow(defs, missing)
    text = json.dumps(defs)
    kept = {name: body for name, body in defs.items() if name == "NodeSpec" or f'"#/$defs/{name}"' in text}
    for body in kept.values():
        body["type"] = ["object", "null"]  # a heading with nothing below it
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "gpuready inventory",
        "description": "An Ansible YAML inventory; gpuready reads the variable gpuready of hosts and groups.",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Group"},
        "$defs": {**_file_form(), **kept},
    }


def render() -> str:
    """The schema as it stands in inventories/schema.json."""
    return json.dumps(inventory_schema(), indent=2, ensure_ascii=False) + "\n"


def _file_form() -> dict[str, Schema]:
    variables: Schema = {
        "description": "Variables; those that gpuready does not know are left alone.",
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
    """Each field's docstring becomes its description.

    pydantic could do it by itself (use_attribute_docstrings), but in every run, each some 40 ms slower for it.
    """
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(body, ast.ClassDef)
    for field, text in itertools.pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            said = properties[field.target.id]
            said["description"] = inspect.cleandoc(ast.literal_eval(text.value))
            properties[field.target.id] = dict(sorted(said.items()))


def _narrow(defs: dict[str, Schema], missing: Missing) -> None:
    """Leave at one place only the values that this release takes."""
    *sections, name = missing.path.split(".")
    here = defs["NodeSpec"]
    for section in sections:
        field = here["properties"][section]
        (ref,) = [one["$ref"] for one in field.get("anyOf", [field]) if "$ref" in one]
        here = defs[ref.rpartition("/")[2]]
    values = to_jsonable_python(list(allowed_now(missing, NodeSpec)))
    said = here["properties"][name].get("description", "")
    description = f"{said} Not yet: this release of gpuready has no {missing.part}.".strip()
    here["properties"][name] = {"enum": values, "description": description}


def _plain(field: Schema, descriptions: dict[str, str]) -> Schema:
    """Without what differs between pydantic's versions or only repeats itself."""
    if len(field.get("allOf", ())) == 1:
        field = {**field["allOf"][0], **{key: value for key, value in field.items() if key != "allOf"}}
    dropped = {"title"}
    if field.get("default") is None or "$ref" in field:
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
