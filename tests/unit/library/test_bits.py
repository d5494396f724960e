"""Every fused kernel has the bits of its function's body, value for value."""

import re

import pytest
import torch

from protocol.numerics.kernels.dispatch import VARIABLE
from protocol.numerics.types import to_bytes
from protocol.program.check import check
from protocol.program.execute import Interpreter
from protocol.program.library import CATALOGUE, kernels
from protocol.program.library.function import hints
from protocol.program.trace import trace
from tests.unit.library.cases import CASES, FILLS, Case, operands

SEEDS = range(4)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel_has_the_bits_of_the_body(case: Case, fill: str) -> None:
    compare(case, fill)


COMPILED = re.compile(
    "softmax|log_softmax|layer_norm|batch_|sgd|adamw|gelu|silu|embedding_grad|sum_|conv|lane_|lstm"
)
"""Matches the names of the functions that compiled kernels may compute."""


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("case", [case for case in CASES if COMPILED.match(case.function)], ids=str)
def test_kernel_has_the_bits_of_the_body_where_nothing_is_compiled(
    case: Case, fill: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "float64")
    compare(case, fill)


def compare(case: Case, fill: str) -> None:
    """Compare kernel and body on operands of the kind `fill`."""
    function = CATALOGUE[case.function]
    program = function.program(case.operands, case.attributes)
    kernel = function.kernel(case.attributes)
    for seed in SEEDS:
        given = operands(case, fill, seed)
        before = [x.clone() for x in given]
        fast = kernel(given)
        slow = trace(program, given).outputs
        assert len(fast) == len(slow) == len(program.outputs)
        for type_, x, y in zip(program.outputs, fast, slow):
            assert tuple(x.shape) == type_.shape
            assert x.dtype == type_.dtype.storage
            assert to_bytes(x, type_.dtype) == to_bytes(y, type_.dtype)
            if x.is_floating_point():  # kernels return canonical NaNs, as the next primitive expects
                assert torch.equal(x.contiguous().view(torch.int32), y.contiguous().view(torch.int32))
        assert all(
            torch.equal(x.view(torch.uint8), y.view(torch.uint8))
            for x, y in zip(map(_flat, given), map(_flat, before))
        )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_body_passes_check_and_calls_may_be_fused_inside_it(case: Case) -> None:
    program = CATALOGUE[case.function].program(case.operands, case.attributes)
    check(program)
    given = operands(case, "normal", 99)
    fused = Interpreter(kernels(program, hints(program)))
    slow = Interpreter()
    for type_, x, y in zip(program.outputs, fused.run(program, given), slow.run(program, given)):
        assert to_bytes(x, type_.dtype) == to_bytes(y, type_.dtype)


def test_every_library_function_has_a_case() -> None:
    assert {case.function for case in CASES} == set(CATALOGUE)


def _flat(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1).contiguous()
