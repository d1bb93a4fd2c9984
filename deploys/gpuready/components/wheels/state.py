"""Python environments of a node, as they were asked about by name: only where wheels are to be installed into them.

And what pip says of the wheels that gpuready installed earlier, which the probe reads of every node. Sources: PEP 610
(direct_url.json), PEP 425 (tags).
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, ValidationError

from gpuready.core.documents import read_json
from gpuready.core.facts import Facts


class Installed(Facts):
    """A distribution in an environment; ``sha256`` is the wheel's that pip installed, empty where pip does not say."""

    version: str
    sha256: str = ""


class Environment(Facts):
    """An environment: ``trouble`` is why it cannot be used, and then nothing else counts.

    ``tag``: the interpreter's own. ``tags``: of those that were asked about, what it takes. ``found``: of the libraries
    that were asked about, what is there. ``users``: processes that use it. ``installed``: by normalised name.
    ``versions``: the newest symbol versions of its C and C++ libraries (GLIBC, GLIBCXX, CXXABI).
    """

    trouble: str = ""
    python: str = ""
    pip: str = ""
    tag: str = ""
    tags: tuple[str, ...] = ()
    purelib: str = ""
    platlib: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    found: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    installed: dict[str, Installed] = Field(default_factory=dict)


def environment(rc: int, text: str, users: str) -> Environment:
    """From the answer of templates/wheels/look.py.j2; one that is no answer is its trouble."""
    last = text.strip().rpartition("\n")[2]
    if rc:
        return Environment(trouble=last[:600] or f"its python ended with {rc} and no message")
    try:
        told: dict[str, Any] = read_json(last)
        return Environment(**told, users=tuple(users.splitlines()))
    except (ValueError, TypeError, ValidationError):
        return Environment(trouble=f"its python's answer is not understood: {last[:200]!r}")


_HASH = re.compile(r"sha256=([0-9a-f]{64})")


def installed_hash(direct_url: str) -> str:
    """The hash in a direct_url.json; empty where there is none."""
    try:
        archive = read_json(direct_url).get("archive_info") or {}
        found = (archive.get("hashes") or {}).get("sha256") or archive.get("hash") or ""
    except (ValueError, AttributeError):
        return ""
    m = _HASH.fullmatch(f"sha256={str(found).removeprefix('sha256=')}")
    return m[1] if m else ""


def on_record(text: str) -> dict[str, str]:
    """The probe's lines, ``DIST-INFO<TAB>direct_url.json``: directory -> hash of the wheel that pip installed there."""
    rows = (line.split("\t", 1) for line in text.splitlines())
    return {row[0]: installed_hash(row[1]) for row in rows if len(row) == 2}
