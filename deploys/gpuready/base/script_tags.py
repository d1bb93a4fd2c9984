"""Tags of script templates.

- ``{% arguments one two %}``: the shell variables ONE and TWO, with the values of these names.
- ``{% each puts same path before %}``: one call of the shell function ``same`` for each item of ``puts``, with these
  attributes of the item as its arguments.
"""

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser


class ScriptTags(Extension):
    """The tags; each value is quoted, as everywhere in a script."""

    tags = {"arguments", "each"}

    def parse(self, parser: Parser) -> nodes.Node:
        tag = next(parser.stream)
        names = []
        while parser.stream.current.type == "name":
            names.append(next(parser.stream).value)
        return (_arguments(names) if tag.value == "arguments" else _each(*names)).set_lineno(tag.lineno)


def _arguments(names: list[str]) -> nodes.Node:
    parts: list[nodes.Expr] = []
    for name in names:
        parts += [nodes.TemplateData(f"{name.upper()}="), nodes.Name(name, "load"), nodes.TemplateData("\n")]
    return nodes.Output(parts)


def _each(items: str, function: str, *attributes: str) -> nodes.Node:
    parts: list[nodes.Expr] = [nodes.TemplateData(function)]
    for name in attributes:
        parts += [nodes.TemplateData(" "), nodes.Getattr(nodes.Name("item", "load"), name, "load")]
    call = nodes.Output([*parts, nodes.TemplateData("\n")])
    return nodes.For(nodes.Name("item", "store"), nodes.Name(items, "load"), [call], [], None, False)
