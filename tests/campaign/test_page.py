"""The campaign's part of docs/security.md matches the recorded results and is generated as it must be."""

from __future__ import annotations

import pytest

from tests.campaign import page
from tests.campaign.cases import cases
from tests.campaign.results import Result


def test_the_page_is_current() -> None:
    text = page.PAGE.read_text()
    assert text == page.page(text, page.recorded())


def test_every_recorded_case_is_one_of_a_commit() -> None:
    names = {str(case) for case in cases()}
    assert all(result.case in names and result.commit for result in page.recorded())


def test_hands_and_wrongs_are_told() -> None:
    first, second, third = (str(case) for case in cases()[:3])
    said = "error: journal /x: expected an SQLite file, got damage; move the file away; more"
    results = [
        Result(first, (), "", 1.0, "abc"),
        Result(second, (), said, 1.0, "abc"),
        Result(third, ("lost",), "", 1.0, "abc"),
    ]
    text = page.page(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n", results)
    assert "3 were played" in text
    assert f"- move the file away: {second}" in text
    assert f"- {third}: lost" in text
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one part"):
        page.page("no marks", [])
