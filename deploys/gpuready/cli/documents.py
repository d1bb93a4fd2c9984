"""JSON files that an earlier run wrote, or somebody else: bounded, and refused in one sentence."""

import json
import sys
from typing import Any

from gpuready.base.errors import GpureadyError
from gpuready.base.files import read_file, read_stream, reason

#: Bytes of a document: thousands of hosts.
_MOST = 500_000_000


def read_json(path: str, error: type[GpureadyError], remedy: str) -> Any:
    """The value in a file; ``-`` is stdin. Raises ``error``."""
    return from_json(path, read_data(path, error), error, remedy)


def read_data(path: str, error: type[GpureadyError]) -> bytes:
    """The content of a file; ``-`` is stdin. Raises ``error``."""
    try:
        return read_stream(sys.stdin.buffer, _MOST) if path == "-" else read_file(path, _MOST)
    except (OSError, ValueError) as e:
        raise error(f"{path}: cannot be read: {reason(e)}") from None


def from_json(path: str, data: bytes, error: type[GpureadyError], remedy: str) -> Any:
    """The value in the content of a file. Raises ``error``."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise error(f"{path}: not JSON: {e}", remedy=remedy) from None
