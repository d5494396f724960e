"""Elementary functions: edge cases, agreement of the three evaluations of each operation list, and
symmetry.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from protocol.numerics import elementary, elementary_blocks
from protocol.numerics.reference import philox
from protocol.numerics.reference.operations import IntegerOperations
from protocol.numerics.torch_operations import TorchOperations
from protocol.numerics.types import canonical
from tests.vectors.elementary_errors import kernel
from tests.vectors.numerics_edges import ELEMENTARY, EXP, F32

INF, NAN = float("inf"), float("nan")
FUNCTIONS = elementary.__all__[1:]


def floats_of(bits: np.ndarray) -> Tensor:
    return torch.from_numpy(bits.astype(np.uint32).view(np.float32))


def bits_of(x: Tensor) -> np.ndarray:
    return x.contiguous().view(torch.int32).numpy().view(np.uint32)


@pytest.mark.parametrize(
    ("function", "x", "bits"),
    [
        ("exp", -INF, 0x00000000),
        ("exp", INF, 0x7F800000),
        ("exp", NAN, 0x7FC00000),
        ("exp", 0.0, 0x3F800000),
        ("exp", -0.0, 0x3F800000),
        ("exp", 1e-45, 0x3F800000),
        ("exp", 88.72284, 0x7F800000),
        ("exp", -103.97, 0x00000001),
        ("exp", -104.0, 0x00000000),
        ("exp", -3.4e38, 0x00000000),
        ("log", 0.0, 0xFF800000),
        ("log", -0.0, 0xFF800000),
        ("log", 1.0, 0x00000000),
        ("log", -1e-45, 0x7FC00000),
        ("log", -INF, 0x7FC00000),
        ("log", INF, 0x7F800000),
        ("log", NAN, 0x7FC00000),
        ("log", 1e-45, 0xC2CE8ED0),
        ("tanh", -0.0, 0x80000000),
        ("tanh", 0.0, 0x00000000),
        ("tanh", -1e-45, 0x80000001),
        ("tanh", 9.02, 0x3F800000),
        ("tanh", -INF, 0xBF800000),
        ("tanh", INF, 0x3F800000),
        ("tanh", NAN, 0x7FC00000),
        ("tanh", -3.4e38, 0xBF800000),
        ("sigmoid", 0.0, 0x3F000000),
        ("sigmoid", -0.0, 0x3F000000),
        ("sigmoid", -INF, 0x00000000),
        ("sigmoid", -103.97, 0x00000001),
        ("sigmoid", -104.0, 0x00000000),
        ("sigmoid", 17.4, 0x3F800000),
        ("sigmoid", INF, 0x3F800000),
        ("sigmoid", NAN, 0x7FC00000),
        ("erf", -0.0, 0x80000000),
        ("erf", 1e-45, 0x00000001),
        ("erf", 3.92, 0x3F800000),
        ("erf", -INF, 0xBF800000),
        ("erf", INF, 0x3F800000),
        ("erf", NAN, 0x7FC00000),
        ("sin", -0.0, 0x80000000),
        ("sin", -1e-45, 0x80000001),
        ("sin", 1.57079637, 0x3F800000),
        ("sin", 32768.004, 0x7FC00000),
        ("sin", INF, 0x7FC00000),
        ("sin", NAN, 0x7FC00000),
        ("cos", -0.0, 0x3F800000),
        ("cos", 1e-45, 0x3F800000),
        ("cos", -32768.004, 0x7FC00000),
        ("cos", -INF, 0x7FC00000),
        ("cos", NAN, 0x7FC00000),
        ("rsqrt", 0.0, 0x7F800000),
        ("rsqrt", -0.0, 0xFF800000),
        ("rsqrt", 4.0, 0x3F000000),
        ("rsqrt", 1e-45, 0x64B504F3),
        ("rsqrt", -1e-45, 0x7FC00000),
        ("rsqrt", INF, 0x00000000),
        ("rsqrt", NAN, 0x7FC00000),
    ],
)
def test_special_arguments_give_special_bits(function: str, x: float, bits: int) -> None:
    result = kernel(function)(torch.tensor([x], dtype=torch.float32))
    assert int(bits_of(result)[0]) == bits


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_three_evaluations_of_a_list_agree(name: str) -> None:
    """The three are plain integers, torch operations one by one, and the numpy kernel."""
    patterns = [*F32, *EXP, *ELEMENTARY, *(philox.word((7, 7), 0, 0, i) for i in range(3000))]
    x = floats_of(np.array(patterns))
    function = getattr(elementary, name)
    expected = np.array([function(IntegerOperations(), p) for p in patterns])
    assert (bits_of(kernel(name)(x)) == expected).all()
    assert (bits_of(canonical(function(TorchOperations(x.device), x))) == expected).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_and_threads_do_not_show(name: str) -> None:
    x = np.random.default_rng(4).integers(0, 2**32, (300, 700), dtype=np.uint32).view(np.float32)
    rows = np.concatenate([bits_of(kernel(name)(torch.from_numpy(row))) for row in x])
    for threads in (1, 2, 3):
        y = np.empty(x.size, np.float32)
        elementary_blocks.evaluate(getattr(elementary, name), x.reshape(-1), y, threads)
        assert (y.view(np.uint32) == rows).all()
    turned = kernel(name)(torch.from_numpy(x).T)
    assert (bits_of(turned.T).reshape(-1) == rows).all()


@pytest.mark.parametrize(("name", "sign"), [("tanh", -1), ("erf", -1), ("sin", -1), ("cos", 1)])
def test_odd_and_even_functions_are_so_to_the_bit(name: str, sign: int) -> None:
    x = floats_of(np.random.default_rng(5).integers(0, 2**31, 1_000_000, dtype=np.uint32))
    expected = canonical(kernel(name)(x) * sign)
    assert (bits_of(kernel(name)(-x)) == bits_of(expected)).all()


@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid"])
def test_saturating_functions_stay_within_one(name: str) -> None:
    x = floats_of(np.arange(0x3F000000, 0x42000000, 97))
    y = kernel(name)(x)
    assert y.max().item() == 1.0
    assert y.min().item() > 0.0
