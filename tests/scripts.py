"""Every script template as it reaches a node: rendered with one value in every place."""

import functools
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import meta

from gpuready.base import resources
from gpuready.catalogue import QUESTIONS
from gpuready.contract.ledger import Drop, Put, Putback
from gpuready.contract.question import Question

TEMPLATES = Path(__file__).parents[1] / "templates"
SCRIPTS = sorted(str(path.relative_to(TEMPLATES)).removesuffix(".sh.j2") for path in TEMPLATES.rglob("*.sh.j2"))
NUMBERS = {"limit", "limits"}
LISTS = {"packages", "pins", "old", "purge", "hold", "unhold", "services", "dirs", "driver_dirs", "flags", "work"}
LISTS |= {"scrape", "images", "sysctls", "settings_back", "settings_inside", "initramfs", "kernels", "shadows"}
LISTS |= {"modules", "places", "image_boot"}
FILES = {"puts": Put, "files": Putback, "drops": Drop}


def included(name: str) -> set[str]:
    """The templates that ``name`` includes, by name, at any depth."""
    source = (TEMPLATES / f"{name}.sh.j2").read_text("utf-8")
    parts = set(re.findall(r'{% include "(\S+)\.sh\.j2" %}', source))
    return parts.union(*(included(part) for part in parts))


#: Templates that are parts of others and never sent on their own: their header says so.
PARTS = {name for name in SCRIPTS if "{# Part" in (TEMPLATES / f"{name}.sh.j2").read_text("utf-8")}


#: The parts that follow probe/active.
ASKED = tuple(sorted(kind.template for kind in Question.__subclasses__())) if QUESTIONS else ()


@functools.cache
def variables(name: str) -> frozenset[str]:
    """The variables that a template and its includes take."""
    environment = resources._environment(script=True)
    source = (TEMPLATES / f"{name}.sh.j2").read_text("utf-8")
    found = set(meta.find_undeclared_variables(environment.parse(source)))
    for part in re.findall(r'{% include "(\S+)\.sh\.j2" %}', source):
        set_here = set(re.findall(r"{% set (\w+) =", source))
        found |= variables(part) - set_here
    return frozenset(found)


def values(name: str, value: str) -> dict[str, Any]:
    """``value`` for every variable, in the form that the template takes."""
    forms: dict[str, Any] = {
        **dict.fromkeys(LISTS, (value, value)),
        **{name: [kind(*(value for _ in kind._fields))] for name, kind in FILES.items()},
        "environments": ((value, value),),
        **dict.fromkeys(NUMBERS, 5),
        "dnf": 4,
        "limits": defaultdict(lambda: 5),
        "survives": True,
    }
    return {variable: forms.get(variable, value) for variable in variables(name)}


def empty(name: str) -> dict[str, Any]:
    """The same with nothing where an ``{% if %}`` asks for something, so that each ``{% else %}`` is rendered."""
    asked: set[str] = set()
    for part in (name, *included(name)):
        for condition in re.findall(r"{% if (.+?) %}", (TEMPLATES / f"{part}.sh.j2").read_text("utf-8")):
            asked |= set(condition.split())
    return {k: type(v)() if k in asked else v for k, v in values(name, "value").items()}


@functools.cache
def renderings(value: str) -> Mapping[str, str]:
    """All scripts with ``value`` in every place, by name."""
    found = {}
    for name in SCRIPTS:
        given = values(name, value)
        found[name] = resources.script(name, **given)
        if "survives" in given:
            found[f"{name} (cut off)"] = resources.script(name, **(given | {"survives": False}))
        if "dnf" in given:
            found[f"{name} (dnf 5)"] = resources.script(name, **(given | {"dnf": 5}))
    return found
