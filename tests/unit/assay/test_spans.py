"""Spans of time in words."""

import pytest

from assay.spans import in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (59.6, "1 minute"),
        (90, "1 minute 30 seconds"),
        (3_599, "59 minutes 59 seconds"),
        (3_661, "1 hour 1 minute"),
        (86_399, "1 day"),
        (604_800, "7 days"),
    ],
)
def test_the_two_largest_units_are_said(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
