"""Builders for JSON schemas of what other systems accept."""

from collections.abc import Sequence
from typing import Any

TEXT = {"type": "string"}


def thing(required: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    """An object with no other fields."""
    return {"type": "object", "required": [*required], "properties": fields, "additionalProperties": False}


def several(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An array."""
    return {"type": "array", "items": item, **more}
