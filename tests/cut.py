"""Cut a process tree at its n-th call that writes, or let that call fail: power cuts and full disks, one after another.

``strace --inject`` counts the calls of each process on its own, and goes on after it killed one; the n-th call of a
shell script with all its children takes a tracer that counts them together. A seccomp filter stops only calls that
may write; of those, only the ones below given directories count. Sources: ptrace(2), seccomp(2), user_64.h.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Calls by number (x86_64): which argument is a descriptor (``fd``), or a path (``at``: with a directory before it).
_CALLS = {
    1: ("write", "fd", 0), 18: ("pwrite64", "fd", 0), 20: ("writev", "fd", 0), 40: ("sendfile", "fd", 0),
    74: ("fsync", "fd", 0), 75: ("fdatasync", "fd", 0), 76: ("truncate", "path", 0), 77: ("ftruncate", "fd", 0),
    82: ("rename", "path", 1), 83: ("mkdir", "path", 0), 84: ("rmdir", "path", 0), 86: ("link", "path", 1),
    87: ("unlink", "path", 0), 88: ("symlink", "path", 1), 90: ("chmod", "path", 0), 91: ("fchmod", "fd", 0),
    92: ("chown", "path", 0), 93: ("fchown", "fd", 0), 94: ("lchown", "path", 0), 188: ("setxattr", "path", 0),
    189: ("lsetxattr", "path", 0), 190: ("fsetxattr", "fd", 0), 258: ("mkdirat", "at", 1), 260: ("fchownat", "at", 1),
    263: ("unlinkat", "at", 1), 264: ("renameat", "at", 3), 265: ("linkat", "at", 3), 266: ("symlinkat", "at", 2),
    268: ("fchmodat", "at", 1), 280: ("utimensat", "at", 1), 285: ("fallocate", "fd", 0), 306: ("syncfs", "fd", 0),
    316: ("renameat2", "at", 3), 326: ("copy_file_range", "fd", 2), 452: ("fchmodat2", "at", 1),
}  # fmt: skip
#: The same for those that open: they count if they may write.
_OPENS = {2: ("open", "path", 0), 85: ("creat", "path", 0), 257: ("openat", "at", 1)}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: rdi, rsi, rdx, r10: bytes into user_regs_struct; the call's number, and its result.
_ARGUMENTS, _NUMBER, _RESULT = (112, 104, 96, 56), 120, 80
_TRACEME, _PEEK, _POKE, _CONT, _OPTIONS = 0, 3, 6, 7, 0x4200
_FOLLOW = 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000  # fork, vfork, clone, exec, seccomp, exitkill
_SECCOMP = 7
_WALL = 0x40000000


def unavailable() -> str | None:
    """None where processes can be cut here, else why not."""
    return None if platform.machine() == "x86_64" else "the numbers of system calls are those of x86_64"


@dataclass(frozen=True)
class Cut:
    """What came of a run: the calls that counted, whether the n-th came, the exit status (None: killed), and stderr."""

    calls: tuple[str, ...]
    reached: bool
    code: int | None
    said: str


def run(
    argv: Sequence[str], below: Sequence[str], nth: int = 0, error: int = 0, counts: Callable[[str], bool] = bool
) -> Cut:
    """Run a command; before its ``nth`` call below one of the directories kill it all, or let that call fail.

    ``counts`` narrows the calls, as ``NAME PATH``. Only for a process without threads or other children.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long
    with tempfile.TemporaryFile() as said:
        first = os.fork()
        if first == 0:
            _become(libc, argv, said.fileno())
        tracer = _Tracer(libc, first, [f"{each}/" for each in below], nth, error, counts)
        code = tracer.loop()
        said.seek(0)
        return Cut(tuple(tracer.calls), tracer.reached, code, said.read().decode("utf-8", "replace"))


class _Tracer:
    def __init__(
        self, libc: ctypes.CDLL, first: int, below: list[str], nth: int, error: int, counts: Callable[[str], bool]
    ) -> None:
        self.libc, self.first, self.below, self.nth, self.error, self.counts = libc, first, below, nth, error, counts
        self.calls: list[str] = []
        self.reached = False
        self._known: set[int] = set()

    def loop(self) -> int | None:
        """Until all of it has ended; the exit status of the first process."""
        code: int | None = None
        while True:
            try:
                pid, status = os.waitpid(-1, _WALL)
            except ChildProcessError:
                return code
            if os.WIFSTOPPED(status):
                self._stopped(pid, os.WSTOPSIG(status), status >> 16)
                continue
            self._known.discard(pid)
            if pid == self.first and os.WIFEXITED(status):
                code = os.WEXITSTATUS(status)

    def _stopped(self, pid: int, number: int, event: int) -> None:
        if pid not in self._known:  # its first stop
            self._known.add(pid)
            if pid == self.first:
                self.libc.ptrace(_OPTIONS, pid, None, _FOLLOW)
            number = 0
        elif event:
            if event == _SECCOMP:
                self._called(pid)
            number = 0
        self.libc.ptrace(_CONT, pid, None, number)

    def _called(self, pid: int) -> None:
        number = self._peek(pid, _NUMBER)
        name, kind, at = (_CALLS | _OPENS)[number]
        path = self._path(pid, kind, at)
        if not path.startswith(tuple(self.below)) or not self.counts(f"{name} {path}"):
            return
        self.calls.append(f"{name} {path}")
        if len(self.calls) != self.nth:
            return
        self.reached = True
        if self.error:
            self.libc.ptrace(_POKE, pid, _NUMBER, ctypes.c_void_p(-1))
            self.libc.ptrace(_POKE, pid, _RESULT, ctypes.c_void_p(-self.error))
        else:
            for each in self._known:
                os.kill(each, signal.SIGKILL)

    def _peek(self, pid: int, offset: int) -> int:
        ctypes.set_errno(0)
        return int(self.libc.ptrace(_PEEK, pid, offset, None))

    def _path(self, pid: int, kind: str, at: int) -> str:
        argument = self._peek(pid, _ARGUMENTS[at])
        if kind == "fd":
            return _link(f"/proc/{pid}/fd/{argument}")
        path = _text(pid, argument)
        if path.startswith("/"):
            return path
        folder = ctypes.c_int(self._peek(pid, _ARGUMENTS[at - 1])).value if kind == "at" else -1
        return f"{_link(f'/proc/{pid}/fd/{folder}' if folder >= 0 else f'/proc/{pid}/cwd')}/{path}"


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _text(pid: int, address: int) -> str:
    if not address:
        return ""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        data = b""
        while b"\0" not in data and len(data) < 4096:
            size = min(256, 4096 - (address + len(data)) % 4096)
            data += memory.read(size)
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _become(libc: ctypes.CDLL, argv: Sequence[str], said: int) -> None:
    """In the child: be traced, filter the calls, become the command."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for to, source in ((0, nothing), (1, nothing), (2, said)):
            os.dup2(source, to)
        libc.ptrace(_TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        libc.prctl(38, 1, 0, 0, 0)  # no new privileges: what an unprivileged filter needs
        program = _filter()
        code = ctypes.create_string_buffer(program, len(program))
        head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)))
        if libc.prctl(22, 2, head, 0, 0):
            os.write(2, b"no seccomp: %d" % ctypes.get_errno())
            os._exit(127)
        os.execvp(argv[0], list(argv))
    finally:
        os._exit(127)


def _filter() -> bytes:
    """Stop at the calls above, and at those that open for writing."""
    trace, allow = 0x7FF00000, 0x7FFF0000
    rows: list[tuple[int, int, int, int]] = [(0x20, 0, 0, 0)]  # the number
    for number in _CALLS:
        rows += [(0x15, 0, 1, number), (0x06, 0, 0, trace)]
    for number, (name, _, at) in _OPENS.items():
        flags = [(0x20, 0, 0, 16 + 8 * (at + 1)), (0x45, 0, 1, _WRITES)] if name != "creat" else []
        rows += [(0x15, 0, len(flags) + 2, number), *flags, (0x06, 0, 0, trace), (0x06, 0, 0, allow)]
    rows.append((0x06, 0, 0, allow))
    return b"".join(struct.pack("HBBI", *row) for row in rows)


ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO)
