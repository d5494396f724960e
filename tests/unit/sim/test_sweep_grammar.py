"""Swept values as operators write them: the meaning of each form, and messages for anything else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ParameterError, SimError, SweepError
from sim.studies.baseline import Baseline
from sim.sweeping.axes import axes_of, texts
from sim.sweeping.grammar import values
from sim.units import TOKEN, Unit

READ = [
    ("500", Unit.TOKENS, (500 * TOKEN,)),
    ("0.5", Unit.TOKENS, (TOKEN // 2,)),
    ("3,1,2", Unit.COUNT, (3, 1, 2)),
    ("1:8", Unit.COUNT, tuple(range(1, 9))),
    ("2:4", Unit.TOKENS, (2 * TOKEN, 3 * TOKEN, 4 * TOKEN)),
    ("0:1:5", Unit.SHARE, (0.0, 0.25, 0.5, 0.75, 1.0)),
    ("0.1:0.3:3", Unit.SHARE, (0.1, 0.2, 0.3)),
    ("100:5000:20", Unit.TOKENS, tuple(round((100 + 4900 * i / 19) * TOKEN) for i in range(20))),
    ("10:1000:3log", Unit.COUNT, (10, 100, 1000)),
    ("0.01:1:3log", Unit.SHARE, (0.01, 0.1, 1.0)),
    ("1:3,8,10:20:2", Unit.COUNT, (1, 2, 3, 8, 10, 20)),
    ("4:4", Unit.COUNT, (4,)),
    ("4:4:1", Unit.COUNT, (4,)),
    (" 1 , 2 ", Unit.COUNT, (1, 2)),
]


@pytest.mark.parametrize(("text", "unit", "expected"), READ)
def test_a_text_stands_for_these_values(text: str, unit: Unit, expected: tuple[float, ...]) -> None:
    found = values(text, unit)
    assert found == pytest.approx(expected, rel=1e-15)
    assert all(isinstance(value, int if unit.whole else float) for value in found)


WRONG = [
    ("", Unit.COUNT, SweepError, "expected values"),
    ("1:", Unit.COUNT, SweepError, "expected values"),
    ("1,,2", Unit.COUNT, SweepError, "expected values"),
    ("1:2:3:4", Unit.COUNT, SweepError, "a:b:n"),
    ("8:1", Unit.COUNT, SweepError, "empty"),
    ("1:8:0", Unit.COUNT, SweepError, "2 to 1,000,000 values"),
    ("1:8:1", Unit.COUNT, SweepError, "2 to 1,000,000 values"),
    ("1:8:-3", Unit.COUNT, SweepError, "2 to 1,000,000 values"),
    ("1:8:3lin", Unit.COUNT, SweepError, "a:b:nlog"),
    ("1:8:9999999999", Unit.COUNT, SweepError, "2 to 1,000,000 values"),
    ("1:99999999", Unit.COUNT, SweepError, "at most 1,000,000"),
    ("0:1:3log", Unit.SHARE, SweepError, "above 0"),
    ("0.1:0.9", Unit.SHARE, SweepError, "whole ends"),
    ("1:3:9", Unit.COUNT, SweepError, "twice once rounded"),
    ("5,5", Unit.COUNT, SweepError, "different values"),
    ("ten", Unit.COUNT, ParameterError, "expected a number of count"),
    ("nan", Unit.SHARE, ParameterError, "expected a number of share"),
    ("1e999999999", Unit.COUNT, ParameterError, "expected a number"),
    ("1e-999999999:1:3", Unit.SHARE, ParameterError, "expected a number"),
    ("1.5", Unit.COUNT, ParameterError, "multiple of 1"),
    ("0.0000001", Unit.TOKENS, ParameterError, "multiple of 10^-6 tokens"),
]


@pytest.mark.parametrize(("text", "unit", "error", "words"), WRONG)
def test_everything_else_is_refused_in_words(
    text: str, unit: Unit, error: type[SimError], words: str
) -> None:
    with pytest.raises(error) as caught:
        values(text, unit)
    assert words in str(caught.value)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(2, 50))
def test_a_range_has_its_ends_and_even_steps(first: int, more: int, number: int) -> None:
    found = values(f"{first}:{first + more}:{number}", Unit.FACTOR)
    assert len(found) == number
    assert (found[0], found[-1]) == (first, first + more)
    steps = [later - earlier for earlier, later in pairwise(found)]
    assert steps == pytest.approx([more / (number - 1)] * (number - 1), rel=1e-6)


def test_parameters_are_found_by_name_and_alias() -> None:
    axes = axes_of(Baseline(), ["audits=1:3", "stake=100", "false_share=0.5"])
    assert axes == {"segments_per_verifier": (1, 2, 3), "stake": (100 * TOKEN,), "false_share": (0.5,)}


REFUSED = [
    (["stake"], SweepError, "name=values"),
    (["=3"], SweepError, "name=values"),
    (["stake="], SweepError, "stake: expected values"),
    (["stakke=3"], ParameterError, "did you mean stake"),
    (["false_shar=0.1"], ParameterError, "did you mean false_share"),
    (["audits=1", "segments_per_verifier=2"], SweepError, "expected once"),
    (["stake=x"], ParameterError, "stake: expected a number of tokens"),
]


@pytest.mark.parametrize(("given", "error", "words"), REFUSED)
def test_a_parameter_that_cannot_be_is_refused_in_words(
    given: list[str], error: type[SimError], words: str
) -> None:
    with pytest.raises(error) as caught:
        axes_of(Baseline(), given)
    assert words in str(caught.value)


def test_a_notebooks_values_are_those_of_the_command_line() -> None:
    assert texts({"stake": 100, "audits": [1, 2], "gain": "1:9:3", "markup": 0.25}) == [
        "stake=100",
        "audits=1,2",
        "gain=1:9:3",
        "markup=0.25",
    ]
