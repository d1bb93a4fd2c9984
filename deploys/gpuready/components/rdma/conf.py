"""What ib_core will be told when it is loaded: modprobe.d by its rules of precedence, and the kernel command line.

Files are read in the order of their names, whatever their directory; of two with one name that of the directory that
comes first counts; options add up, and of a parameter that is given twice the last one holds. modprobe takes
``ib_core.netns_mode=`` from /proc/cmdline after all files, and where ib_core is built in there is nothing else.
Sources: modprobe.d(5), kmod's libkmod-config.c, kernel-parameters(7), kstrtobool(); tried with kmod 30 and 34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpuready.components.rdma.state import CONF
from gpuready.state.model import NodeState

#: What the SR-IOV network operator writes (its pkg/consts/constants.go).
OPERATOR = "/etc/modprobe.d/sriov_network_operator_modules_config.conf"
MODES = {"shared": "1", "exclusive": "0"}
DEFAULT = "shared"
_DIRECTORIES = ("/etc/modprobe.d/", "/run/modprobe.d/", "/usr/local/lib/modprobe.d/", "/usr/lib/modprobe.d/")
_SHARED, _EXCLUSIVE = ("1", "y", "t", "on"), ("0", "n", "f", "of")


@dataclass(frozen=True)
class Setting:
    """One place that sets netns_mode, and to what ("" for a value that the kernel refuses)."""

    path: str
    mode: str

    @property
    def vendor(self) -> bool:
        """Is it a package's default, which files in /etc are meant to override?"""
        return self.path.startswith("/usr/lib/")


def mode(value: str) -> str:
    """A bool parameter as kstrtobool() reads it: by its first character, and two of ``on`` and ``off``."""
    word = value.strip().strip('"').lower()
    if not word or word.startswith(_SHARED):  # a parameter without a value is true
        return "shared"
    return "exclusive" if word.startswith(_EXCLUSIVE) else ""


def settings(state: NodeState) -> tuple[Setting, ...]:
    """All files that set it, in the order in which modprobe adds them up: the last one counts."""
    first: dict[str, str] = {}
    for directory in _DIRECTORIES:
        for path in state.glob(directory):
            first.setdefault(path.removeprefix(directory), path)
    return tuple(
        Setting(first[name], found) for name in sorted(first) for found in _in_file(state.files[first[name]].text)
    )


def _in_file(text: str) -> Iterator[str]:
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
    """The mode that the files amount to; shared, the kernel's own, where none says anything."""
    found = [setting.mode for setting in settings(state) if setting.path != without and setting.mode]
    return found[-1] if found else DEFAULT


def by_options(text: str) -> str:
    """What a kernel command line says; nothing where it is silent."""
    return ["", *_given(text.split(), "ib_core.")][-1]


def by_next_boot(state: NodeState) -> str:
    """What the command line of the next boot says, as far as the boot loader's files tell; else that of this boot."""
    if not state.boot_options:
        return by_options(state.cmdline)
    said = {by_options(entry) for entry in state.boot_options}
    return said.pop() if len(said) == 1 else "mixed"


def conflicts(state: NodeState, wanted: str) -> tuple[Setting, ...]:
    """Others' files that say something else and would not give way to ours."""
    return tuple(
        s
        for s in settings(state)
        if s.path != CONF and s.mode not in ("", wanted) and not (s.vendor and _name(s.path) < _name(CONF))
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]
