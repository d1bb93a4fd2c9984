"""``gpuready explain ID``: the cause of a check or the purpose of a component, how to confirm it, how to fix it."""

from __future__ import annotations

import difflib
import inspect
import re

import click

from gpuready.catalogue import BY_ID
from gpuready.cli.options import Verb
from gpuready.cli.sink import say
from gpuready.core.check import Check
from gpuready.core.component import Component
from gpuready.core.errors import UsageError
from gpuready.node import NODE

_HELP = """Explain a check or a component: cause, the command that confirms it, the fix.

\b
  gpuready explain                   list them all
  gpuready explain libcuda.ldcache
  gpuready explain docker
  gpuready explain "Error 804"       the checks that mention it
"""
_COMPONENTS = {item.name: item for item in NODE}


@click.command("explain", cls=Verb, help=_HELP)
@click.argument("name", metavar="[ID|TEXT]", required=False)
def command(name: str | None) -> int:
    """Print the text."""
    key = (name or "").strip().lower()
    if name is None:
        say(_list())
    elif key in BY_ID:
        say(_check(BY_ID[key]))
    elif key in _COMPONENTS:
        say(_component(_COMPONENTS[key]))
    elif found := _about_text(name):
        say("\n\n".join(map(_check, found)))
    else:
        near = difflib.get_close_matches(key, [*BY_ID, *_COMPONENTS], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"no check and no component {name!r}{hint}", remedy="gpuready explain lists them")
    return 0


def _about_text(words: str) -> list[Check]:
    """The checks that speak of it: an error message or a part of one; else those that have all of its words."""
    texts = {id: " ".join((c.cause, c.confirm, c.fix)).lower() for id, c in BY_ID.items()}
    whole = words.lower().strip()
    found = [
        id for id, text in texts.items() if len(whole) > 2 and re.search(rf"(?<!\w){re.escape(whole)}(?!\w)", text)
    ]
    parts = re.findall(r"[\w.-]{3,}", whole)
    found = found or [id for id, text in texts.items() if len(parts) > 1 and all(part in text for part in parts)]
    return [BY_ID[id] for id in found]


def _list() -> str:
    width = max(map(len, [*BY_ID, *_COMPONENTS]))
    components = [f"  {name:<{width}}  {_about(item)}" for name, item in _COMPONENTS.items()]
    checks = [f"  {check.id:<{width}}  {check.level.name:<9}  {_traits(check)}".rstrip() for check in BY_ID.values()]
    return "\n".join(["Components", *components, "", "Checks", *checks])


def _about(item: Component) -> str:
    return inspect.cleandoc(item.__doc__ or "").split("\n")[0]


def _traits(check: Check) -> str:
    words = (["needs a GPU"] if check.gpu else []) + (["active: a second exec"] if check.active else [])
    return ", ".join(words)


def _check(check: Check) -> str:
    told = {"cause": check.cause, "confirm": check.confirm, "fix": check.fix, "after": ", ".join(check.after)}
    head = ", ".join(filter(None, (f"level {check.level.name}", _traits(check))))
    return "\n".join([f"{check.id}: {head}", *(f"  {key:<8}{text}" for key, text in told.items() if text)])


def _component(item: Component) -> str:
    module = inspect.cleandoc(inspect.getmodule(item).__doc__ or "")
    checks = [name for name in BY_ID if name.startswith(f"{item.name}.")]
    whose = f"owners.{item.part} in the spec; auto goes by the marks on the node" if item.part else ""
    told = {"owner": whose, "confirm": f"gpuready plan -i INVENTORY --only {item.name}",
            "fix": f"gpuready apply -i INVENTORY --only {item.name}", "checks": ", ".join(checks)}  # fmt: skip
    return "\n".join([f"{item.name}: {module}", *(f"  {key:<8}{text}" for key, text in told.items() if text)])
