"""dockerd's command line: what its flags say. dockerd refuses a flag beside the same key in daemon.json.

Sources: dockerd's reference, and docker.service of Debian and of docker.com.
"""

from __future__ import annotations

import re

from gpuready.state.model import NodeState, Unknown


def command(state: NodeState) -> tuple[str, ...]:
    """The command line of the dockerd that runs; its unit's ExecStart when none does."""
    if state.dockerd_command:
        return state.dockerd_command
    unit = state.units.get("docker.service") if not isinstance(state.units, Unknown) else None
    return tuple(w for w in unit.exec_start if not w.startswith("$")) if unit else ()


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
    words = command(state)[1:]
    given = [
        word.partition("=")[2] or following
        for word, following in zip(words, (*words[1:], ""), strict=False)
        if re.match(r"--add-runtime(=|$)", word)
    ]
    return next((g.removeprefix(f"{name}=") for g in given if g.startswith(f"{name}=")), None)
