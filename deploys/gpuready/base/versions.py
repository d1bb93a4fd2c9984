"""Versions as tuples of numbers: as text, 450.80 sorts after 450.102."""

import re

Version = tuple[int, ...]


def numbers(text: str) -> Version:
    """Parse ``450.102.04`` to (450, 102, 4). Raises ValueError for anything but numbers between dots."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", text):
        raise ValueError(f"{text!r} is not a version")
    return tuple(int(part) for part in text.split("."))


def leading(text: str, most: int) -> Version:
    """Return the first ``most`` numbers in the version of a package or a kernel; fewer if it has fewer."""
    return tuple(map(int, re.findall("[0-9]+", text)[:most]))


def driver(version: Version) -> str:
    """Write a driver version as NVIDIA does: (450, 80, 2) -> ``450.80.02``. Only the third part is padded."""
    return ".".join([*map(str, version[:2]), *(f"{part:02}" for part in version[2:])])


def dotted(version: Version) -> str:
    """Write (12, 4, 1) as ``12.4.1``."""
    return ".".join(map(str, version))


def padded(version: Version, length: int = 4) -> Version:
    """Append zeros, so that 11.2 equals 11.2.0."""
    return version + (0,) * (length - len(version))
