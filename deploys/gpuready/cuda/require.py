"""Evaluate NVIDIA_REQUIRE_*: an image's conditions for its start, as libnvidia-container and the CSV mode read them.

Spaces mean OR, commas mean AND, several variables mean AND. A result is True, False or None: unknown, because a
property of the GPU is unknown. CDI and jit-cdi ignore the conditions.
Sources: src/cli/{dsl,configure}.c of NVIDIA/libnvidia-container; internal/requirements and internal/config/image of
NVIDIA/nvidia-container-toolkit.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from gpuready.base.versions import Version, numbers, padded

PROPERTIES = ("cuda", "driver", "arch", "brand")
_CLAUSE = re.compile(r"([^<>=!]+)(!=|<=|>=|=|<|>)([^<>=!]+)")
_OPERATORS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_TRUE = ("1", "t", "T", "TRUE", "true", "True")  # strconv.ParseBool


class RequireError(ValueError):
    """An invalid expression. In legacy mode, the container does not start."""


@dataclass(frozen=True)
class Properties:
    """The properties of a host. None and an empty set mean unknown."""

    cuda: Version | None
    driver: Version
    arch: Version | None = None
    brands: frozenset[str] = frozenset()


def of_image(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requirements in an image's environment; none if NVIDIA_DISABLE_REQUIRE is true."""
    if env.get("NVIDIA_DISABLE_REQUIRE") in _TRUE:
        return ()
    found = [
        value
        for name, value in sorted(env.items())
        if name.startswith("NVIDIA_REQUIRE_") and not name.startswith("NVIDIA_REQUIRE_JETPACK") and value.strip()
    ]
    old = re.match(r"[0-9]+\.[0-9]+", env.get("CUDA_VERSION", ""))
    return (*found, f"cuda>={old[0]}") if old and not env.get("NVIDIA_REQUIRE_CUDA") else tuple(found)


def check(requirement: str) -> None:
    """Raise :class:`RequireError` for an invalid requirement."""
    satisfied(requirement, Properties(None, (0,)))


def satisfied(requirement: str, host: Properties) -> bool | None:
    """Tell whether the host meets one requirement; None if that is unknown. Raises :class:`RequireError`."""
    terms = [_all(term, host) for term in requirement.split(" ") if term]
    if not terms:
        return True
    return True if True in terms else None if None in terms else False


def _all(term: str, host: Properties) -> bool | None:
    clauses = [_clause(clause, host) for clause in term.split(",") if clause]
    return False if False in clauses else None if None in clauses else True


def _clause(clause: str, host: Properties) -> bool | None:
    m = _CLAUSE.fullmatch(clause)
    if m is None:
        raise RequireError(f"{clause!r} is not a condition such as cuda>=12.4")
    name, operator, value = m[1].lower(), m[2], m[3]
    if name == "brand":
        return _brand(operator, value.lower(), host.brands)
    if name not in PROPERTIES:
        raise RequireError(f"{clause!r}: unknown property {name!r} (allowed: {', '.join(PROPERTIES)})")
    try:
        wanted = numbers(value)
    except ValueError:
        raise RequireError(f"{clause!r}: {value!r} is not a version") from None
    has = {"cuda": host.cuda, "driver": host.driver, "arch": host.arch}[name]
    return None if has is None else bool(_OPERATORS[operator](padded(has), padded(wanted)))


def _brand(operator: str, word: str, brands: frozenset[str]) -> bool | None:
    if operator not in ("=", "!="):
        raise RequireError(f"brand{operator}{word}: a brand allows only = and !=")
    equal = None if not brands or (word in brands and len(brands) > 1) else word in brands
    return equal if equal is None or operator == "=" else not equal
