"""Which kernels may boot next, and whether nouveau is blocked. Pure.

Sources: GRUB's manual (default, saved_entry, next_entry), the Boot Loader Specification (on Fedora and related systems,
an entry's name ends with its kernel), modprobe.d(5), systemd's kernel-command-line(7), dracut.cmdline(7).
"""

import re

from gpuready.model.state import NodeState

#: What a person does in MokManager, which shim starts if a key is queued. It drops the queue when it ends.
ENROL = (
    "reboot with a person at the machine's console: press a key within 10 seconds, then Enroll MOK, Continue, Yes, the "
    "password, Reboot; without that, the key must be queued again"
)
_LINUX = re.compile(r"linux(?:16|efi)?\s+\S*/vmlinuz-(\S+)")
_CHOSEN = re.compile(r"(?:saved|next)_entry=(.+)")
#: `set default=` with an entry other than the first, and not a variable.
_PINNED = re.compile(r'set default="?([^"$0]|0[^"])')
_COMMAND_LINE = re.compile(r"(^|\s)(modprobe\.blacklist|rd\.driver\.blacklist|module_blacklist)=(\S+,)?nouveau(,|\s|$)")
_MODESET = re.compile(r"(^|\s)nouveau\.modeset=0(\s|$)")
_MODPROBE = re.compile(
    r"^[ \t]*(blacklist[ \t]+nouveau|install[ \t]+nouveau[ \t]+/(usr/)?bin/(true|false)"
    r"|alias[ \t]+nouveau[ \t]+off)\b",
    re.M,
)


def kernels(state: NodeState) -> tuple[tuple[str, ...], bool]:
    """Return the kernels that may boot next, newest first, and whether this is certain."""
    there = sorted(state.boots.kernels, key=_by_version, reverse=True)
    if not there:  # the host boots this guest with a kernel of its own
        return ((state.kernel,) if state.kernel in state.boots.installed else ()), True
    chosen = [m[1].strip() for line in state.boots.grub if (m := _CHOSEN.fullmatch(line))]
    named = [kernel for kernel in there if any(entry.endswith(kernel) for entry in chosen)]
    if len(chosen) == 1 and len(named) == 1:
        return (named[0],), True
    if chosen or any(_PINNED.match(line) for line in state.boots.grub):
        return tuple(there), False
    first = next((m[1] for line in state.boots.grub if (m := _LINUX.match(line))), there[0])
    return (first,), True


def nouveau_kept_away(state: NodeState) -> str:
    """Return what keeps nouveau from loading by itself; empty if nothing does."""
    named = [path for path, file in state.files.items() if "/modprobe.d/" in path and "nouveau" in file.text]
    for path in sorted(named):
        if not path.startswith("/var/") and _MODPROBE.search(state.files[path].text):
            return path
    found = _COMMAND_LINE.search(state.cmdline) or _MODESET.search(state.cmdline)
    return "the kernel's command line" if found else ""


def _by_version(kernel: str) -> list[tuple[int, int, str]]:
    """Return a sort key that compares the numbers in a name as numbers, as ``sort -V`` does."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|\D+", kernel)]
