"""Python environments on the node that the spec names, and what pip recorded about the wheels that gpuready installed.

Sources: PEP 610 (direct_url.json), PEP 425 (tags).
"""

import re
from typing import Any

from pydantic import Field, ValidationError

from gpuready.base.documents import read_json
from gpuready.base.facts import Facts


class Installed(Facts):
    """A distribution in an environment. ``sha256``: the hash of its wheel, empty if pip did not record it."""

    version: str
    sha256: str = ""


class Environment(Facts):
    """An environment. ``trouble``: why it cannot be used; then the other fields are empty.

    ``tag``: the interpreter's own. ``tags``: the requested tags that it accepts. ``found``: the requested libraries
    that it has. ``users``: processes that use it. ``installed``: distributions by normalised name. ``versions``: the
    newest symbol versions of its C and C++ libraries (GLIBC, GLIBCXX, CXXABI).
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
    """Parse the answer of templates/wheels/look.py.j2; an invalid answer becomes ``trouble``."""
    last = text.strip().rpartition("\n")[2]
    if rc:
        return Environment(trouble=last[:600] or f"its python exited with {rc} and no message")
    try:
        told: dict[str, Any] = read_json(last)
        return Environment(**told, users=tuple(users.splitlines()))
    except (ValueError, TypeError, ValidationError):
        return Environment(trouble=f"its python's answer is not understood: {last[:200]!r}")


def installed_hash(direct_url: str) -> str:
    """Return the hash in a direct_url.json; empty if there is none."""
    try:
        archive = read_json(direct_url).get("archive_info") or {}
        found = (archive.get("hashes") or {}).get("sha256") or archive.get("hash") or ""
    except (ValueError, AttributeError):
        return ""
    sha256 = str(found).removeprefix("sha256=")
    return sha256 if re.fullmatch("[0-9a-f]{64}", sha256) else ""


def on_record(text: str) -> dict[str, str]:
    """Parse the probe's lines, ``DIST-INFO<TAB>direct_url.json``, to directory -> hash of the installed wheel."""
    rows = (line.split("\t", 1) for line in text.splitlines())
    return {row[0]: installed_hash(row[1]) for row in rows if len(row) == 2}
