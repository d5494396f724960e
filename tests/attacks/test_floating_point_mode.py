"""A library that switches the processor to flushing subnormals after the process has tested itself.

Nothing fails then: small gradients come out as zeros, checkpoints are false and the stake is gone. So no step is run
or traced in such a mode.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from protocol.numerics.self_check import SelfCheckError, require_mode, self_check
from protocol.numerics.types import DType
from protocol.program.builder import Builder
from protocol.program.execute import Interpreter
from protocol.program.step import StepProgram
from protocol.program.types import TensorType
from protocol.replay import HonestExecutor

TINY = 2.0**-149


@pytest.fixture
def flushing() -> Iterator[None]:
    self_check()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor always keeps subnormals")
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def executor() -> HonestExecutor:
    b = Builder("halves")
    b.output(b.mul(b.input(TensorType(DType.F32, (4,))), b.constant(DType.F32, (), 1.0)))
    return HonestExecutor(StepProgram(b.build(), ("x",), datasets=0, constants=0), (), Interpreter())


@pytest.mark.usefixtures("flushing")
def test_no_step_is_run_or_traced_with_subnormals_flushed(executor: HonestExecutor) -> None:
    with pytest.raises(SelfCheckError, match="flush-to-zero"):
        executor.step({"x": torch.full((4,), TINY)}, 1)
    with pytest.raises(SelfCheckError, match="flush-to-zero"):
        executor.trace({"x": torch.full((4,), TINY)}, 1)


def test_a_step_keeps_subnormals_for_any_number_of_threads(executor: HonestExecutor) -> None:
    before = torch.get_num_threads()
    try:
        for threads in (1, 3, 2):
            torch.set_num_threads(threads)
            require_mode()
            (x,) = executor.step({"x": torch.full((4,), TINY)}, 1).values()
            assert torch.equal(x, torch.full((4,), TINY))
    finally:
        torch.set_num_threads(before)
