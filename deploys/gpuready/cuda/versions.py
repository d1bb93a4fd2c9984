"""Versions of drivers, CUDA and the container toolkit: tuples of numbers, because as text 450.80 is after 450.102."""

from __future__ import annotations

import re

Version = tuple[int, ...]


def numbers(text: str) -> Version:
    """``450.102.04`` -> (450, 102, 4); ValueError for anything but numbers between dots."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", text):
        raise ValueError(f"{text!r} is no version")
    return tuple(int(part) for part in text.split("."))


def driver(version: Version) -> str:
    """As NVIDIA writes a driver: (450, 80, 2) -> ``450.80.02``; the part after the branch is not padded."""
    return ".".join([*map(str, version[:2]), *(f"{part:02}" for part in version[2:])])


def dotted(version: Version) -> str:
    """(12, 4, 1) -> ``12.4.1``."""
    return ".".join(map(str, version))


def padded(version: Version, length: int = 4) -> Version:
    """With zeros behind, so that 11.2 and 11.2.0 are one."""
    return version + (0,) * (length - len(version))
