"""Lengths of time as users write them: ``90m``, ``12h``, ``7d``."""

import re

#: The form, for JSON Schema, too.
FORM = "([1-9][0-9]{0,6})([smhdw]?)"
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def seconds(text: str) -> int | None:
    """Return the seconds; digits alone are seconds. None: it is not a length of time."""
    found = re.fullmatch(FORM, text)
    return int(found[1]) * _SECONDS[found[2]] if found else None
