"""Read files that a user names: once, up to a maximum size, and without blocking."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

NOT_REGULAR = "not a regular file"
#: Descriptors that the caller opened, as the shell does for ``-i <(command)``.
_INHERITED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def status(path: str | Path) -> os.stat_result:
    """Return the status of a regular file or an inherited descriptor.

    Raises OSError for anything else: opening a FIFO blocks until it has a writer, and reading a device may never end.
    Raises ValueError for a NUL in the path.
    """
    found = Path(path).stat()
    if not stat.S_ISREG(found.st_mode) and not str(path).startswith(_INHERITED):
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
    return found


def open_file(path: str | Path) -> BinaryIO:
    """Open the file for reading. Raises like :func:`status`."""
    status(path)
    return Path(path).open("rb")


def read_file(path: str | Path, most: int) -> bytes:
    """Read the file of at most ``most`` bytes. Raises like :func:`status`, and OSError for a larger file."""
    with open_file(path) as file:
        return read_stream(file, most)


def read_stream(file: BinaryIO, most: int) -> bytes:
    """Like :func:`read_file`, for an open file."""
    found = os.fstat(file.fileno())
    data = b"" if stat.S_ISREG(found.st_mode) and found.st_size > most else file.read(most + 1)
    if len(data) > most or found.st_size > most:
        raise OSError(errno.EFBIG, f"larger than {_size(most)}")
    return data


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """Write the file as a whole, or not at all. ``mode`` is for a new file; one that exists keeps its own.

    Raises OSError.
    """
    import tempfile

    path = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), path.stat().st_mode & 0o777 if path.exists() else mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def new_mode() -> int:
    """Return the mode of a new file, by the umask."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def why_not(path: str | Path) -> str:
    """Return why the path cannot be read as a file, in a few words; empty if it can."""
    try:
        status(path)
    except (OSError, ValueError) as e:
        return reason(e).lower()
    return "" if os.access(path, os.R_OK) else "permission denied"


def reason(error: Exception) -> str:
    """Return the message of an OSError or of a ValueError for a path, without the path."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _size(most: int) -> str:
    return f"{most // 1_000_000} MB" if most >= 1_000_000 else f"{most} bytes"
