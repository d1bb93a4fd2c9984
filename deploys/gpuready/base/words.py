"""Words of a sentence that depend on a number."""


def count(number: int, one: str, many: str = "") -> str:
    """``1 host``, ``2 hosts``."""
    return f"{number} {one if number == 1 else many or one + 's'}"
