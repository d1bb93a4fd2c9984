"""The reference of the documentation, made from the code: spec, exit codes, result, components, checks, commands.

``python -m docs.reference`` writes docs/reference, which GitHub shows, too. Only the commands are made with the site,
because click's versions word their help differently.
"""

from __future__ import annotations

import html
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs import matrix
from docs.manual import contexts
from gpuready.base.errors import EXIT_CODES
from gpuready.catalogue import BY_ID
from gpuready.contract.check import Check
from gpuready.contract.component import Component
from gpuready.messages.find import TABLE
from gpuready.model.schema import inventory_schema
from gpuready.model.schema_help import allowed_at
from gpuready.model.spec import NodeSpec
from gpuready.node import NODE
from gpuready.result.exitcode import MEANING
from gpuready.result.verbs import VERBS

DOCS = Path(__file__).parent


def reference() -> dict[str, str]:
    """The pages in docs/reference by their path below docs."""
    pages = {
        "reference/spec.md": _spec(),
        "reference/exit-codes.md": _exit_codes(),
        "reference/result.md": _result(),
        "reference/components.md": _components(),
        "reference/compat.md": matrix.page(),
    }
    areas: dict[str, list[Check]] = {}
    for check in BY_ID.values():
        areas.setdefault(_area_of(check), []).append(check)
    pages["reference/checks/index.md"] = _checks(areas)
    return pages | {f"reference/checks/{name}.md": _area(name, checks) for name, checks in areas.items()}


def _spec() -> str:
    definitions = inventory_schema()["$defs"]
    lines = ["# The spec", "", "What a host's `gpuready` value may hold. In an inventory, the keys are nested:", "",
             "```yaml", "gpuready:", "  runtimes:", "    docker:", "      shm_size: 8g", "```", "",
             "If you delete a key, the node keeps its last value: `gpuready remove --only COMPONENT`, then",
             "`gpuready apply`, bring back what was there before. `gpuready schema` prints the same as a JSON Schema.",
             ""]  # fmt: skip
    for name, field in definitions["NodeSpec"]["properties"].items():
        rows = list(_keys([name], field, definitions))
        lines += [f"## {name}", "", _text(field.get("description", "") or _of(field, definitions)), ""]
        lines += [*_table(("key", "allowed", "default", "meaning"), rows), ""]
    return "\n".join(lines)


def _keys(path: list[str], field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    found = _below(field, definitions)
    if len(path) > 1 or not found:
        default = field.get("default")
        shown = "" if default is None else f"`{default if isinstance(default, str) else json.dumps(default)}`"
        yield f"`{'.'.join(path)}`", _code(allowed_at(NodeSpec, path)), shown, _text(field.get("description", ""))
    for name, below in found.items():
        yield from _keys([*path, name], below, definitions)


def _below(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a mapping; of alternatives, those of the one that is a mapping."""
    for form in (field, *field.get("anyOf", ())):
        if "$ref" in form:
            found: Mapping[str, Any] = definitions[form["$ref"].rsplit("/", 1)[1]]["properties"]
            return found
    return {}


def _of(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    return str(definitions[field["$ref"].rsplit("/", 1)[1]]["description"]) if "$ref" in field else ""


def cli() -> str:
    """The page of the commands."""
    lines = ["# The commands", "", "As `gpuready COMMAND --help` prints them.", ""]
    for name, verb in VERBS.items():
        lines += [f"## {name}", "", verb.help, ""]
        for context in contexts(name):
            lines += ["```text", context.command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def _exit_codes() -> str:
    rows = [(f"{code}", meaning.replace("; ", "<br>")) for code, meaning in sorted(MEANING.items())]
    order = ", ".join(map(str, EXIT_CODES))
    more = f"""If several apply, the first of {order} counts. `--output json` prints one valid document with each.

4 is a fault of the network, the host key, the login or sudo. 64 is also `apply` without a terminal and without
`--yes`. 5 is also an `apply` that skips every host. A `plan` of such hosts ends with 0 and says so in its last line."""
    return "\n".join(["# Exit codes", "", *_table(("code", "meaning"), rows), "", more, ""])


def _result() -> str:
    from gpuready.cli.parts import parts
    from gpuready.result.document import result_schema

    schema = result_schema(parts())
    about = """`--output json` prints it, and `gpuready schema result` prints its JSON Schema. Ignore keys that you do
not know: within a version, the document only grows."""
    lines = ["# The result document", "", _text(schema.get("description", "")), "", about, ""]
    for name, part in {"The document": schema, **schema["$defs"]}.items():
        if part.get("properties"):
            keys = part["properties"].items()
            rows = [(f"`{key}`", _kind(value), _text(value.get("description", ""))) for key, value in keys]
            about = _text(part.get("description", "")) if part is not schema else ""
            lines += [f"## {name}", "", about, "", *_table(("key", "type", "meaning"), rows), ""]
    return "\n".join(lines)


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        return " or ".join(map(_kind, alternatives))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"mapping to {_kind(schema['additionalProperties'])}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _components() -> str:
    about = "The parts of a node that gpuready manages, in the order in which it converges them."
    rows = [(f"[`{item.name}`](#{item.name})", _text(_first(item))) for item in NODE]
    lines = ["# Components", "", about, "", *_table(("component", "what it is"), rows), ""]
    for item in NODE:
        checks = [check for check in BY_ID.values() if check.component == item.name]
        lines += [f"## {item.name}", "", _text(inspect.getmodule(item).__doc__ or "", keep=True), ""]
        lines += [f"Spec: [`{item.name}`](spec.md#{item.name}).", ""] if item.name in NodeSpec.model_fields else []
        lines += [f"`owners.{item.owned_as}` says who manages it.", ""] if item.owned_as else []
        if checks:
            lines += ["Checks: " + ", ".join(_link(each, f"checks/{_area_of(each)}.md") for each in checks), ""]
    return "\n".join(lines)


def _first(item: Component) -> str:
    return inspect.cleandoc(item.__doc__ or "").split("\n")[0]


def _checks(areas: Mapping[str, list[Check]]) -> str:
    about = """A check is a question about a node, with an answer. `gpuready explain ID` prints the same,
and `gpuready explain TEXT` finds the checks of a message.
[What verify checks](../../explanation/verify.md) says how they are judged."""
    lines = ["# Checks", "", about, ""]
    for name, checks in areas.items():
        rows = [(_link(each, f"{name}.md"), each.level.name, _sentence(each.cause)) for each in checks]
        lines += [f"## {name}", "", *_table(("check", "level", "cause"), rows), ""]
    return "\n".join(lines)


def _area(name: str, checks: list[Check]) -> str:
    lines = [f"# Checks: {name}", ""]
    for check in checks:
        traits = [f"Level {check.level.name}"]
        traits += ["needs a GPU"] if check.gpu else []
        traits += ["runs in the second exec"] if check.active else []
        lines += [f"## {check.id}", "", ", ".join(traits) + ".", ""]
        lines += [f"**Cause.** {_text(check.cause)}", "", "**Confirm.**", "", "```sh", check.confirm, "```", ""]
        lines += [f"**Fix.** {_text(check.fix)}", ""]
        after = ", ".join(_link(BY_ID[id], f"{_area_of(BY_ID[id])}.md") for id in check.after)
        lines += [f"**Skipped if one of these fails:** {after}.", ""] if after else []
        titles = [f"- `{message.title}`" for message in TABLE if check.id in message.checks]
        lines += ["**Messages that lead here.**", "", *titles, ""] if titles else []
    return "\n".join(lines)


def _area_of(check: Check) -> str:
    return check.id.partition(".")[0]


def _link(check: Check, page: str) -> str:
    return f"[`{check.id}`]({page}#{check.id.replace('.', '')})"


def _sentence(text: str) -> str:
    """The first sentence."""
    return re.split(r"(?<=[.:;])\s", _text(text), maxsplit=1)[0].rstrip(":;")


def _text(text: str, *, keep: bool = False) -> str:
    """Text of the code as Markdown: docstrings have ``code`` and roles; a ``<`` would begin HTML."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", inspect.cleandoc(text)).replace("``", "`")
    parts = text.split("`")
    parts[::2] = [_escaped(part) for part in parts[::2]]
    text = "`".join(parts)
    return text if keep else " ".join(text.split())


def _escaped(text: str) -> str:
    """``*word*`` stays an emphasis; other marks mean themselves."""
    return re.sub(r"(?<!\w)\*\w+\*(?!\w)|[*_]", lambda mark: mark[0] if len(mark[0]) > 1 else f"\\{mark[0]}",
                  text.replace("<", "&lt;"))  # fmt: skip


def _code(text: str) -> str:
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>" if text else ""


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines]


if __name__ == "__main__":
    pages = reference()
    for path in DOCS.glob("reference/**/*.md"):
        if path.relative_to(DOCS).as_posix() not in pages:
            path.unlink()
    for place, text in pages.items():
        (DOCS / place).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / place).write_text(text, "utf-8")
