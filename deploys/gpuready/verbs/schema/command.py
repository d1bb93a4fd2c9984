"""``gpuready schema``: the JSON Schema of the inventory, for editors; or of the result, for scripts."""

import json

import click

from gpuready.cli.options import Verb
from gpuready.cli.sink import say

_HELP = """Print a JSON Schema: of the inventory's gpuready block, or of the result document.

\b
  gpuready schema > schema.json
  gpuready schema result
"""


@click.command("schema", cls=Verb, help=_HELP)
@click.argument("which", type=click.Choice(["inventory", "result"]), default="inventory")
def command(which: str) -> int:
    if which == "result":
        from gpuready.cli.parts import parts
        from gpuready.result.document import result_schema

        say(json.dumps(result_schema(parts()), indent=2))
    else:
        from gpuready.model.schema import render

        say(render().rstrip())
    return 0
