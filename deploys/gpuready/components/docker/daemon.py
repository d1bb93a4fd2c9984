"""dockerd's command line and its flags. dockerd refuses a flag beside the same key in daemon.json.

Sources: dockerd's reference, and docker.service of Debian and of docker.com.
"""

from __future__ import annotations

import re

from gpuready.core.json_document import Document
from gpuready.state.docker_daemon import command, engine_version
from gpuready.state.model import NodeState


def flags(state: NodeState) -> dict[str, str]:
    """Return the long flags without dashes, with their values; of several, the last one."""
    found: dict[str, str] = {}
    for word, following in _words(state):
        if word.startswith("--"):
            key, eq, value = word[2:].partition("=")
            found[key] = value if eq else ("" if following.startswith("-") else following)
    return found


def validation_flags(state: NodeState) -> tuple[str, ...]:
    """Return all words except --config-file, for ``dockerd --validate`` with another file."""
    words = command(state)[1:]
    return tuple(
        word
        for before, word in zip(("", *words), words, strict=False)
        if before != "--config-file" and not re.match(r"--config-file(=|$)", word)
    )


def added_runtime(state: NodeState, name: str) -> str | None:
    """Return the path that --add-runtime gives to a runtime. The flag can occur several times."""
    given = _values_of(state, "add-runtime")
    return next((g.removeprefix(f"{name}=") for g in given if g.startswith(f"{name}=")), None)


def _values_of(state: NodeState, flag: str) -> list[str]:
    return [
        word.partition("=")[2] or following for word, following in _words(state) if re.match(rf"--{flag}(=|$)", word)
    ]


def _words(state: NodeState) -> list[tuple[str, str]]:
    """Return the words after ``dockerd``, each with the one that follows it."""
    words = command(state)[1:]
    return list(zip(words, (*words[1:], ""), strict=False))


def no_start(document: Document, state: NodeState) -> str:
    """Return why dockerd does not start with this daemon.json, although ``dockerd --validate`` accepts it; or empty."""
    given = document.get("runtimes")
    runtimes = given if isinstance(given, dict) else {}
    strict = not (0,) < engine_version(state) < (23, 0)  # 20.10 starts even with an empty runtime
    if "runc" in runtimes:
        return "runtimes.runc: dockerd reserves that name"
    for name, entry in runtimes.items():
        if isinstance(entry, dict) and not entry.get("path") and not entry.get("runtimeType") and strict:
            return f"runtimes.{name} has no path"
    default = document.get("default-runtime")
    known = {"runc", *runtimes} | {g.partition("=")[0] for g in _values_of(state, "add-runtime")}
    shim = isinstance(default, str) and default.startswith(("io.containerd.", "/"))
    if isinstance(default, str) and default and default not in known and not shim:
        return f"default-runtime is {default!r}, which is not in runtimes (known: {', '.join(sorted(known))})"
    return ""
