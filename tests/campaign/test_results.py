"""A campaign resumes where it stopped: only good results of the same commit count."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.cases import cases
from tests.campaign.results import Result, Results


def test_what_has_ended_well_is_left_out_on_its_commit_alone(tmp_path: Path) -> None:
    file = tmp_path / "build" / "results.jsonl"
    first, second, *others = cases()
    results = Results(file, "abc")
    results.add(Result(str(first), (), "", 1.0, "abc"))
    results.add(Result(str(second), ("lost",), "", 1.0, "abc"))
    assert Results(file, "abc").left() == [second, *others]
    assert Results(file, "def").left() == [first, second, *others]
    assert Results(file, "def", any_commit=True).left() == [second, *others]


def test_what_a_changed_checkout_has_played_is_played_again(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    Results(file, "").add(Result(str(cases()[0]), (), "", 1.0, ""))
    assert Results(file, "").left() == list(cases())
    assert Results(file, "abc", any_commit=True).left() == list(cases())


def test_a_case_that_is_none_any_more_is_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    Results(file, "abc").add(Result("nobody, never: nothing", (), "", 1.0, "abc"))
    assert not Results(file, "abc").found
