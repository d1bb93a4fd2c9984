"""dockerd's command line and its flags. dockerd refuses a flag beside the same key in daemon.json.

Sources: dockerd's reference, and docker.service of Debian and of docker.com. Looked up on 2026-11-23.
"""

from collections.abc import Iterator

from gpuready.base.json_document import Document
from gpuready.model.docker_daemon import command, engine_version
from gpuready.model.state import NodeState


def flags(state: NodeState) -> dict[str, str]:
    """Return the long flags without dashes, with their values; of several, the last one."""
    return dict(_given(state))


def validation_flags(state: NodeState) -> tuple[str, ...]:
    """Return all words except --config-file, for ``dockerd --validate`` with another file."""
    words = command(state)[1:]
    return tuple(
        word
        for before, word in zip(("", *words), words, strict=False)
        if before != "--config-file" and word.partition("=")[0] != "--config-file"
    )


def added_runtimes(state: NodeState) -> dict[str, str]:
    """Return the paths that --add-runtime gives to runtimes, by name. The flag can occur several times."""
    found = (value.partition("=") for flag, value in _given(state) if flag == "add-runtime")
    return {name: path for name, _, path in found}


def _given(state: NodeState) -> Iterator[tuple[str, str]]:
    """Yield each long flag without dashes, with its value."""
    words = command(state)[1:]
    for word, following in zip(words, (*words[1:], ""), strict=False):
        if word.startswith("--"):
            flag, equals, value = word[2:].partition("=")
            yield flag, value if equals or following.startswith("-") else following


def no_start(document: Document, state: NodeState) -> str:
    """Return why dockerd does not start with this daemon.json, although ``dockerd --validate`` accepts it; or empty."""
    given = document.get("runtimes")
    runtimes = given if isinstance(given, dict) else {}
    strict = not (0,) < engine_version(state) < (23, 0)  # 20.10 starts even with an empty runtime
    if "runc" in runtimes:
        return "runtimes.runc: dockerd reserves that name; rename or remove the entry"
    for name, entry in runtimes.items():
        if isinstance(entry, dict) and not entry.get("path") and not entry.get("runtimeType") and strict:
            return f"runtimes.{name} has no path; add it, or remove the entry"
    default = document.get("default-runtime")
    known = {"runc", *runtimes, *added_runtimes(state)}
    shim = isinstance(default, str) and default.startswith(("io.containerd.", "/"))
    if isinstance(default, str) and default and default not in known and not shim:
        return (
            f"default-runtime is {default!r}, which is not in runtimes (known: {', '.join(sorted(known))}); "
            'add it there, or set "default-runtime": "runc"'
        )
    return ""
