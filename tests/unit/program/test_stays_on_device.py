"""A step on a device copies nothing from or to the device. Otherwise a CUDA graph could not hold the step.
Products of integers of unknown magnitude are an exception: they read values back from the device, so a step
with such products is not recorded as a graph.

The tests need no device. Torch's `meta` tensors have shapes but no values, so reading a value raises. They
take the same code paths as tensors on a CUDA device.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protocol.numerics.kernels import dispatch
from protocol.numerics.kernels.float64 import Float64
from protocol.program import Interpreter, Op, Program
from protocol.program.library import CATALOGUE
from tests.unit.library.cases import CASES, FILLS, Case, operands
from tests.unit.program.random_programs import random_inputs, random_program

META = torch.device("meta")


class _OneDevice(TorchDispatchMode):
    """Raises if an operation has tensors of two devices."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        function: Any,
        _types: Sequence[type],
        arguments: Sequence[Any] = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:
        found = function(*arguments, **(keywords or {}))
        tensors = [x for x in tree_leaves((arguments, keywords, found)) if isinstance(x, Tensor)]
        devices = {x.device.type for x in tensors}
        assert len(devices) <= 1, f"{function} has tensors of {sorted(devices)}"
        return found


def twice(step: Callable[[], object]) -> None:
    """Run the step twice. Only the first run may copy constants to the device, where they stay."""
    step()
    with _OneDevice():
        step()


def made(seed: int) -> tuple[Program, random.Random]:
    """A random program, and the generator for its inputs."""
    r = random.Random(seed)
    return random_program(r, [random_program(r, [])]), r


def has_products(program: Program) -> bool:
    """Whether the program has products of integers of unknown magnitude."""
    return any(each.op is Op.DOT for frame in program.closure() for each in frame.instructions)


@pytest.mark.parametrize("seed", [seed for seed in range(72) if not has_products(made(seed)[0])])
def test_random_programs(seed: int) -> None:
    program, r = made(seed)
    inputs = [x.to(META) for x in random_inputs(program, r)]
    interpreter = Interpreter(device=META)
    twice(lambda: interpreter.run(program, inputs))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_library_functions(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        dispatch, "_chosen", lambda *_: Float64()
    )  # without values, no kernel passes its self-test
    kernel = CATALOGUE[case.function].kernel(case.attributes)
    given = [x.to(META) for x in operands(case, FILLS[0], 0)]
    twice(lambda: kernel(given))
