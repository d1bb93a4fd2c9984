"""Lengths of time: one form for the spec and for the command line."""

import pytest

from gpuready.base.period import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("45s", 45), ("90m", 5400), ("12h", 43200), ("7d", 604800), ("8w", 4838400)]
    + [(text, None) for text in ("", "0d", "7 d", "-1h", "1.5h", "d", "12345678s", "7D", "７d", "7d\n")],
)
def test_a_length_of_time(text: str, expected: int | None) -> None:
    assert seconds(text) == expected
