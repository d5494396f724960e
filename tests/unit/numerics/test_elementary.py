"""`exp` and `log`: edges, agreement with the plain-integer run of the same list, and the error bound in ulp."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

from protocol.numerics import elementary
from protocol.numerics.elementary_torch import exp_f32, log_f32
from protocol.numerics.reference import philox
from protocol.numerics.reference.operations import IntegerOperations

INF, NAN = float("inf"), float("nan")
FUNCTIONS = {"exp": (exp_f32, np.exp), "log": (log_f32, np.log)}
MEASURED = {"exp": 0.9764, "log": 0.8399}
"""Worst error in ulp over all 2^32 inputs; the bound of arithmetic.md section 6 is 2."""


def floats_of(bits: np.ndarray) -> Tensor:
    return torch.from_numpy(bits.astype(np.uint32).view(np.float32))


def worst_ulp(name: str, x: Tensor) -> tuple[float, float]:
    """Largest |f(x) - true| / ulp(true), and its x; the ulp is 2^-149 among subnormals. Special results are exact."""
    function, oracle = FUNCTIONS[name]
    got = function(x).numpy()
    with np.errstate(all="ignore"):
        true = oracle(x.numpy().astype(np.float64))
        overflow = true >= 2.0**128 - 2.0**103  # rounds to infinity
        special = ~np.isfinite(true) | overflow
        expected = np.where(overflow, INF, true).astype(np.float32)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    assert same[special].all()
    assert np.isfinite(got[~special]).all()
    ulp = np.exp2(np.maximum(np.frexp(true[~special])[1] - 24, -149).astype(np.float64))
    errors = np.abs(got[~special] - true[~special]) / ulp
    if not errors.size:
        return 0.0, 0.0
    at = int(np.argmax(errors))
    return float(errors[at]), float(x.numpy()[~special][at])


def ulp_by_mpmath(name: str, x: float) -> float:
    """The error at one x in ulp, against 40 digits."""
    with mpmath.workdps(40):
        true = getattr(mpmath, name)(mpmath.mpf(x))
        ulp = mpmath.mpf(2) ** max(mpmath.frexp(true)[1] - 24, -149)
        got = FUNCTIONS[name][0](torch.tensor([x], dtype=torch.float32)).item()
        return float(abs(mpmath.mpf(got) - true) / ulp)


@pytest.mark.parametrize(
    ("function", "x", "bits"),
    [
        (exp_f32, -INF, 0x00000000),
        (exp_f32, INF, 0x7F800000),
        (exp_f32, NAN, 0x7FC00000),
        (exp_f32, 0.0, 0x3F800000),
        (exp_f32, -0.0, 0x3F800000),
        (exp_f32, 1e-45, 0x3F800000),
        (exp_f32, 88.72284, 0x7F800000),
        (exp_f32, -103.97, 0x00000001),
        (exp_f32, -104.0, 0x00000000),
        (exp_f32, -3.4e38, 0x00000000),
        (log_f32, 0.0, 0xFF800000),
        (log_f32, -0.0, 0xFF800000),
        (log_f32, 1.0, 0x00000000),
        (log_f32, -1e-45, 0x7FC00000),
        (log_f32, -INF, 0x7FC00000),
        (log_f32, INF, 0x7F800000),
        (log_f32, NAN, 0x7FC00000),
        (log_f32, 1e-45, 0xC2CE8ED0),
    ],
)
def test_special_arguments_give_special_bits(
    function: Callable[[Tensor], Tensor], x: float, bits: int
) -> None:
    result = function(torch.tensor([x], dtype=torch.float32)).view(torch.int32)
    assert int(result) & 0xFFFFFFFF == bits


@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_and_plain_integers_run_the_same_list(name: str) -> None:
    patterns = [philox.word((7, 7), 0, 0, i) for i in range(4000)]
    expected = [getattr(elementary, name)(IntegerOperations(), x) for x in patterns]
    got = FUNCTIONS[name][0](floats_of(np.array(patterns)))
    assert (got.view(torch.int32).numpy().view(np.uint32) == np.array(expected)).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_do_not_show(name: str) -> None:
    x = floats_of(np.random.default_rng(4).integers(0, 2**32, (300, 700), dtype=np.uint32))
    function = FUNCTIONS[name][0]
    rows = torch.stack([function(row) for row in x])
    assert torch.equal(function(x).view(torch.int32), rows.view(torch.int32))
    assert torch.equal(function(x.T).T.contiguous().view(torch.int32), rows.view(torch.int32))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_on_a_sample_is_below_the_measured_worst(name: str) -> None:
    draw = np.random.default_rng(3).integers(0, 2**32, 2_000_000, dtype=np.uint32)
    worst, x = worst_ulp(name, floats_of(draw))
    assert 0.5 < worst <= MEASURED[name]
    assert ulp_by_mpmath(name, x) == pytest.approx(worst, abs=1e-6)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_on_every_input_is_the_measured_worst(name: str) -> None:
    step = 2**20  # larger blocks spend their time in page faults
    worst, x = max(worst_ulp(name, floats_of(np.arange(at, at + step))) for at in range(0, 2**32, step))
    assert worst == pytest.approx(MEASURED[name], abs=1e-4)
    assert ulp_by_mpmath(name, x) == pytest.approx(worst, abs=1e-6)
