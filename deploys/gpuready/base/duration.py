"""Durations as users write them: ``90s``, ``30m``, ``12h``, ``7d``, ``8w``."""

import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
FORM = "[1-9][0-9]{0,8}[smhdw]"
EXAMPLES = "seconds, minutes, hours, days or weeks, such as 90s, 30m, 12h, 7d, 8w"


def seconds(text: str) -> int | None:
    """Return a duration in seconds; None if the text is not one."""
    return int(text[:-1]) * _UNITS[text[-1]] if re.fullmatch(FORM, text) else None
