"""The report of a PyTorch on the node, and the oldest NCCL that it should contain.

Source: NCCL's release notes (ncclRemoteError, 2.13.4). Looked up on 2026-11-23.
"""

from collections.abc import Mapping
from typing import Any

#: The first NCCL that reports a lost peer (ncclRemoteError), so that the other ranks can stop.
NCCL_FLOOR = (2, 13, 4)


def error_in(report: Mapping[str, Any], key: str) -> str:
    """Return the error that replaces a value, in one line; empty if there is none."""
    value = report.get(key)
    return " ".join(str(value.get("error")).split()) if isinstance(value, dict) else ""
