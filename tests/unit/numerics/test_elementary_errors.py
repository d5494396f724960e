"""The worst error of each elementary function matches `elementary_errors.json` and is at most 2 ulp."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from tests.vectors.elementary_errors import REFERENCE, SLICES, Worst, kernel, table, worst, worst_of_slice

TABLE = table()
BOUND = 2.0
"""The bound of arithmetic.md section 6, in ulp."""


def ulp_by_mpmath(name: str, case: Worst) -> float:
    """The error of `case.result` at `case.at` in ulp, from mpmath with 40 digits."""
    x, got = np.array([case.at, case.result], np.uint32).view(np.float32).tolist()
    with mpmath.workdps(40):
        exact = {"sigmoid": lambda v: 1 / (1 + mpmath.exp(-v)), "rsqrt": lambda v: 1 / mpmath.sqrt(v)}
        true = (exact.get(name) or getattr(mpmath, name))(mpmath.mpf(x))
        ulp = mpmath.mpf(2) ** max(mpmath.frexp(true)[1] - 24, -149)
        return float(abs(mpmath.mpf(got) - true) / ulp)


def test_the_table_has_every_function() -> None:
    assert list(TABLE) == list(REFERENCE)


@pytest.mark.parametrize("name", TABLE)
def test_worst_cases_are_what_the_table_says(name: str) -> None:
    cases = TABLE[name]
    assert len(cases) == SLICES
    results = kernel(name)(torch.from_numpy(np.array([c.at for c in cases], np.uint32).view(np.float32)))
    assert results.view(torch.int32).numpy().view(np.uint32).tolist() == [c.result for c in cases]
    for case in cases:
        assert case.ulp <= BOUND
        if case.ulp:
            assert ulp_by_mpmath(name, case) == pytest.approx(case.ulp, abs=2e-6)


@pytest.mark.parametrize("name", TABLE)
def test_a_sample_is_no_worse_than_the_table(name: str) -> None:
    draw = np.random.default_rng(3).integers(0, 2**32, 2_000_000, dtype=np.uint32)
    found = worst(name, draw)
    assert 0.4 < found.ulp <= max(TABLE[name]).ulp + 1e-6
    assert ulp_by_mpmath(name, found) == pytest.approx(found.ulp, abs=1e-6)


@pytest.mark.heavy
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", range(SLICES))
@pytest.mark.parametrize("name", TABLE)
def test_every_input_of_a_slice_is_no_worse_than_the_table(name: str, number: int) -> None:
    """A slice has the 2^28 inputs whose first four bits are `number`. The sixteen slices together have all inputs."""
    assert worst_of_slice(name, number).ulp == pytest.approx(TABLE[name][number].ulp, abs=1e-6)
