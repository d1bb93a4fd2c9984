"""Values that the schema knows but this release of gpuready does not support yet.

This table is the only place that knows them; the loader and the published JSON schema both read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuready.core.errors import SpecError
from gpuready.core.section import Section
from gpuready.spec.source_values import Located, Shown, plain, value_at


@dataclass(frozen=True)
class Missing:
    """``path`` accepts only the values ``only`` (empty: only its default) while this release has no ``part``."""

    path: str
    part: str
    only: tuple[object, ...] = ()


NOT_YET = (
    Missing("runtimes.containerd.service", "support for other units of containerd", ("containerd",)),
    Missing("runtimes.containerd.config", "support for other files of containerd", ("/etc/containerd/config.toml",)),
)


def allowed_now(missing: Missing, model: type[Section]) -> tuple[object, ...]:
    """The values that this release accepts at ``missing.path``."""
    if missing.only:
        return missing.only
    *sections, name = missing.path.split(".")
    here: Section = model()
    for section in sections:
        here = getattr(here, section)
    return (getattr(here, name),)


def refuse_missing(tree: Located, model: type[Section]) -> Iterator[tuple[str, SpecError]]:
    """Path and error of each explicit value that this release does not support."""
    for missing in NOT_YET:
        value = value_at(tree, missing.path.split("."))
        if value is None:
            continue
        allowed = allowed_now(missing, model)
        given = plain(value)
        if any(given == one and isinstance(given, bool) == isinstance(one, bool) for one in allowed):
            continue
        problem = f"{missing.path}: {_named(given)}not supported yet: this release of gpuready has no {missing.part}"
        words = " | ".join(_shown(one) for one in allowed if one is not False)
        yield missing.path, SpecError(problem, where=value.where, given=Shown(value.value), allowed=words)


def _named(value: object) -> str:
    return f"{value}: " if isinstance(value, str) else ""


def _shown(value: object) -> str:
    return value if isinstance(value, str) else "leave it out"
