"""dockerd's command line: what its flags say. dockerd refuses a flag beside the same key in daemon.json.

Sources: dockerd's reference, and docker.service of Debian and of docker.com.
"""

from __future__ import annotations

import re

from gpuready.core.json_document import Document
from gpuready.state.docker_daemon import command, engine_version
from gpuready.state.model import NodeState


def flags(state: NodeState) -> dict[str, str]:
    """The long flags, without dashes -> value; the last one of several."""
    found: dict[str, str] = {}
    words = command(state)[1:]
    for word, following in zip(words, (*words[1:], ""), strict=False):
        if word.startswith("--"):
            key, eq, value = word[2:].partition("=")
            found[key] = value if eq else ("" if following.startswith("-") else following)
    return found


def validation_flags(state: NodeState) -> tuple[str, ...]:
    """All words but --config-file, for ``dockerd --validate`` of another file."""
    words = command(state)[1:]
    return tuple(
        word
        for before, word in zip(("", *words), words, strict=False)
        if before != "--config-file" and not re.match(r"--config-file(=|$)", word)
    )


def added_runtime(state: NodeState, name: str) -> str | None:
    """The path that --add-runtime gives to a runtime; the flag may stand there several times."""
    given = _words_of(state, "add-runtime")
    return next((g.removeprefix(f"{name}=") for g in given if g.startswith(f"{name}=")), None)


def _words_of(state: NodeState, flag: str) -> list[str]:
    """All values of a flag that may stand there several times."""
    words = command(state)[1:]
    return [
        word.partition("=")[2] or following
        for word, following in zip(words, (*words[1:], ""), strict=False)
        if re.match(rf"--{flag}(=|$)", word)
    ]


def no_start(document: Document, state: NodeState) -> str:
    """Why a dockerd would not start with this daemon.json although ``dockerd --validate`` is content; else empty."""
    given = document.get("runtimes")
    runtimes = given if isinstance(given, dict) else {}
    strict = not (0,) < engine_version(state) < (23, 0)  # 20.10 starts with a runtime that has nothing
    if "runc" in runtimes:
        return "runtimes.runc: dockerd reserves that name"
    for name, entry in runtimes.items():
        if isinstance(entry, dict) and not entry.get("path") and not entry.get("runtimeType") and strict:
            return f"runtimes.{name} has no path"
    default = document.get("default-runtime")
    known = {"runc", *runtimes} | {g.partition("=")[0] for g in _words_of(state, "add-runtime")}
    shim = isinstance(default, str) and default.startswith(("io.containerd.", "/"))
    if isinstance(default, str) and default and default not in known and not shim:
        return f"default-runtime is {default!r}, which runtimes does not name (known: {', '.join(sorted(known))})"
    return ""
