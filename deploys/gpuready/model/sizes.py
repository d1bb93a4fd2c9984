"""Parse sizes in dockerd's notation. Source: RAMInBytes of docker/go-units (factor 1024)."""

import re

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?(?:([kmgtp])i?)?b?", re.IGNORECASE)
_FACTOR = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def to_bytes(value: object) -> int:
    """The bytes of ``8g``, ``64M``, ``1.5GiB`` or a plain number; ValueError if it is not a size."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) and value.isascii() else None
    if not match:
        raise ValueError(f"{value!r} is not a size")
    number, factor = match[1], _FACTOR[(match[2] or "").lower()]
    return int(float(number) * factor) if "." in number else int(number) * factor
