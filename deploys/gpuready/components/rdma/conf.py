"""Which netns_mode ib_core gets when it is loaded: from modprobe.d by its precedence, and from the kernel command line.

Files are read in the order of their names. Of two files with the same name, the one in the first directory counts.
Options accumulate, and the last value of a parameter counts. modprobe applies ``ib_core.netns_mode=`` from
/proc/cmdline after all files. For a built-in ib_core, only the command line counts.
Sources: modprobe.d(5), kmod's libkmod-config.c, kernel-parameters(7), kstrtobool(); tests with kmod 30 and 34.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import basename

from gpuready.components.rdma.state import CONF
from gpuready.model.state import NodeState

#: What the SR-IOV network operator writes (its pkg/consts/constants.go).
OPERATOR = "/etc/modprobe.d/sriov_network_operator_modules_config.conf"
MODES = {"shared": "1", "exclusive": "0"}
DEFAULT = "shared"
_DIRECTORIES = ("/etc/modprobe.d/", "/run/modprobe.d/", "/usr/local/lib/modprobe.d/", "/usr/lib/modprobe.d/")
_SHARED, _EXCLUSIVE = ("1", "y", "t", "on"), ("0", "n", "f", "of")


@dataclass(frozen=True)
class Setting:
    """A file that sets netns_mode. ``mode`` is empty for a value that the kernel refuses."""

    path: str
    mode: str


def mode(value: str) -> str:
    """Return the mode for a boolean as kstrtobool() reads it: by the first character, or two for ``on`` and ``off``."""
    word = value.strip().strip('"').lower()
    if not word or word.startswith(_SHARED):  # a parameter without a value is true
        return "shared"
    return "exclusive" if word.startswith(_EXCLUSIVE) else ""


def settings(state: NodeState) -> tuple[Setting, ...]:
    """Return all settings in modprobe's order. The last one counts."""
    first: dict[str, str] = {}
    paths = state.glob(*_DIRECTORIES)
    for directory in _DIRECTORIES:
        for path in paths:
            if path.startswith(directory):
                first.setdefault(path.removeprefix(directory), path)
    return tuple(
        Setting(first[name], found) for name in sorted(first) for found in _in_file(state.files[first[name]].text)
    )


def _in_file(text: str) -> Iterator[str]:
    if "netns" not in text:  # as in nearly all files
        return
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split()
        if words[:1] == ["options"] and len(words) > 2 and words[1].replace("-", "_") == "ib_core":
            yield from _given(words[2:], "")


def _given(words: Iterable[str], prefix: str) -> Iterator[str]:
    for word in words:
        key, _, value = word.partition("=")
        if key.replace("-", "_") == f"{prefix}netns_mode":
            yield mode(value)


def by_files(state: NodeState, *, without: str = "") -> str:
    """Return the mode that the files set together; the kernel's default if none sets it."""
    found = [setting.mode for setting in settings(state) if setting.path != without and setting.mode]
    return found[-1] if found else DEFAULT


def by_options(text: str) -> str:
    """Return the mode on a kernel command line; empty if it is not there."""
    return ["", *_given(text.split(), "ib_core.")][-1]


def by_next_boot(state: NodeState) -> str:
    """Return the mode on the next boot's command line by the boot loader's files; without them, on this boot's."""
    if not state.boot_options:
        return by_options(state.cmdline)
    said = {by_options(entry) for entry in state.boot_options}
    return said.pop() if len(said) == 1 else "mixed"


def conflicts(state: NodeState, wanted: str) -> tuple[Setting, ...]:
    """Return other files that set another mode and take precedence over gpuready's file."""
    return tuple(
        s
        for s in settings(state)
        if s.path != CONF
        and s.mode not in ("", wanted)
        and not (s.path.startswith("/usr/lib/") and basename(s.path) < basename(CONF))  # a package's default
    )
