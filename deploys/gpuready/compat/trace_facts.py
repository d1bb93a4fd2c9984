"""Parse what templates/compat/trace.sh.j2 read of a container: its linker, its mounts, and the toolkit's words.

Sources: ld.so(8) (LD_DEBUG, LD_TRACE_LOADED_OBJECTS), proc(5) (mountinfo), the OCI runtime specification (hooks), the
container toolkit's internal/runtime/logger.go and internal/info/auto.go, libnvidia-container's nvc_container.c.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuready.base.documents import read_json
from gpuready.base.facts import Answer, Unknown
from gpuready.base.toml_document import TomlError, read
from gpuready.components.toolkit_config.state import CONFIG, given
from gpuready.model.state import NodeState

_LEGACY_HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
_STAGES = ("prestart", "createRuntime", "createContainer", "startContainer")


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo. ``device`` and ``root``: the file system, and which of its files is mounted."""

    device: str
    root: str
    at: str


@dataclass(frozen=True)
class Container:
    """What is known of a container that ran. ``path``: libcuda.so.1 as the loader finds it; empty if it finds none.

    ``real``: that file with its links resolved. ``by``: the loader's list that has it, in its own words. ``said``: all
    that the container printed. ``hooks``: of the changed specification, in order. ``runtime``: the messages of
    nvidia-container-runtime. ``cli``: lines of nvidia-container-cli about this container.
    """

    path: str = ""
    real: str = ""
    by: str = ""
    said: str = ""
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ()
    cli: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    """A directory that /etc/ld.so.conf.d names -> the first file that names it."""

    @property
    def mount(self) -> Mount | None:
        """The mount that brings the library's file; None if it is on the image's own file system."""
        over = [each for each in self.mounts if f"{self.real}/".startswith(f"{each.at}/")]  # never the one at /
        return max(over, key=lambda each: len(each.at), default=None)

    @property
    def origin(self) -> str:
        """The library's file where it is mounted from, or the file itself."""
        mount = self.mount
        return mount.root if mount else self.real

    @property
    def source(self) -> str:
        """One of trace.SOURCES; empty without a library. A mount of the image's own file is one of the image."""
        if not self.path:
            return ""
        own, mount = next((each.device for each in self.mounts if each.at == "/"), ""), self.mount
        if mount is not None and mount.device != own:
            return "host"
        return "compat" if "/compat/" in self.origin else "stub" if "/stubs/" in self.origin else "own"

    @property
    def mode(self) -> str:
        """The mode that the runtime used, as its log names it; if that is silent, as its hooks show; or empty."""
        for message in self.runtime:
            if m := re.match(r"(?:Auto-detected mode as|Using requested mode) '([a-z-]+)'", message):
                return m[1]
        words = [hook.partition(" ")[0].rpartition("/")[2] for hook in self.hooks]
        if any(word in _LEGACY_HOOKS for word in words):
            return "legacy"
        return "cdi" if any(word in ("nvidia-cdi-hook", "nvidia-ctk") for word in words) else ""


def debug_log(state: NodeState) -> str:
    """Return the path of nvidia-container-cli's debug log, if config.toml names one; gpuready never switches it on."""
    try:
        document = read(state.files[CONFIG].text) if CONFIG in state.files else {}
    except TomlError:
        return ""
    return str(given(document, "nvidia-container-cli.debug") or "")


def container(active: Mapping[str, Answer | Unknown], name: str) -> Container:
    """Return what the records ``NAME.look``, ``.mounts`` ... say. A missing or damaged one says nothing."""

    def text(part: str) -> str:
        answer = active.get(f"{name}.{part}")
        return answer.out if isinstance(answer, Answer) else ""

    said = text("look")
    path, by = _loaded(said)
    return Container(
        path,
        dict(re.findall(r"^at (\S+) (\S+)$", said, re.M)).get(path, path),
        by,
        said,
        tuple(_mounts(text("mounts"))),
        tuple(_hooks(text("spec"))),
        tuple(_messages(text("log"))),
        tuple(cli_lines(text("cli"), text("pid").strip())),
        {directory: file for file, directory in reversed(re.findall(r"^conf (\S+) (\S+)$", said, re.M))},
    )


def _loaded(said: str) -> tuple[str, str]:
    """Return the path of libcuda.so.1, and what the loader was searching when it found that file."""
    own = said.partition("\nloader\n")[2].partition("\nend\n")[0]
    m = re.search(r"^\tlibcuda\.so\.1 => (/\S+) ", own, re.M)
    by, found = "", ""
    for line in own.splitlines():
        text = line.partition(":\t")[2].strip()
        if text.startswith("search path="):
            by = text.rpartition("\t(")[2].rstrip(")")
        elif text.startswith("search cache="):
            by = text.partition("=")[2]
        elif m and text == f"trying file={m[1]}":
            found = by
    return (m[1], found) if m else ("", "")


def _mounts(text: str) -> Iterator[Mount]:
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) > 5:
            yield Mount(words[2], *(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), word) for word in words[3:5]))


def _hooks(text: str) -> Iterator[str]:
    """Each hook of the specification as ``PATH ARGUMENTS``, without the program's own name."""
    hooks = _object(text).get("hooks")
    for stage in _STAGES:
        listed = hooks.get(stage) if isinstance(hooks, dict) else None
        for hook in listed if isinstance(listed, list) else ():
            if isinstance(hook, dict):
                args = hook.get("args")
                yield " ".join(map(str, [hook.get("path", ""), *(args[1:] if isinstance(args, list) else ())]))


def _messages(text: str) -> Iterator[str]:
    """The messages of a log with one JSON object a line. runc, which writes to it, too, says nothing if all is well."""
    for line in text.splitlines():
        message = _object(line).get("msg")
        if isinstance(message, str):
            yield message


def _object(text: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def cli_lines(text: str, pid: str) -> Iterator[str]:
    """Return what nvidia-container-cli says of libcuda and ldconfig, for the container whose first process is ``pid``.

    A line: ``I0629 12:10:31.021014 930305 nvc_container.c:236] selecting ...``. The third word is a pid of its own;
    one of its lines names the container's. Several containers may start at the same time.
    """
    lines = re.findall(r"^[IWE][0-9]{4} [0-9:.]+ ([0-9]+) \S+\] (.*)$", text, re.M)
    own = {by for by, message in lines if message == f"setting pid to {pid}"}
    for by, message in lines:
        if by in own and re.match(r"(selecting|mounting) .*/libcuda\.so\.[0-9]|executing .*ldconfig", message):
            yield message
