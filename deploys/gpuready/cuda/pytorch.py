"""What a PyTorch on the node answered, and the oldest NCCL that it should bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: From here on NCCL tells a lost peer (ncclRemoteError), which is what lets the others end.
NCCL_FLOOR = (2, 13, 4)


def error_in(told: Mapping[str, Any], key: str) -> str:
    """The error that stands in place of a value, in one line; empty where there is none."""
    value = told.get(key)
    return " ".join(str(value.get("error")).split()) if isinstance(value, dict) else ""
