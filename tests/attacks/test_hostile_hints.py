"""Calls of library functions with unintended operands and attributes; a stranger may post any such call.

The body of a library function broadcasts its operands and accepts several types, but the function's kernel
reads memory in the sizes that it expects. So the kernel is used only for the documented forms, where its
result equals the body's bit for bit. Otherwise the body runs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from protocol.numerics.types import DType, to_bytes
from protocol.program.builder import Builder
from protocol.program.cost import cost
from protocol.program.errors import ProgramError
from protocol.program.execute import Interpreter
from protocol.program.library import CATALOGUE, Hint, recognise
from protocol.program.library.forms import FORMS
from protocol.program.program import Program
from protocol.program.recorder import Recorder
from protocol.program.types import TensorType
from tests.unit.library.cases import CASES, Case, f32, operands, sliding

TWICE = 2**60 + 2**36 + 1
"""An integer that torch rounds to f32 once and the body twice, by way of float64, with different results."""
ABOVE = 2.0**128 - 2.0**104 + 2.0**100
"""A number above the largest f32. The body rounds it to the largest f32; torch refuses it."""
VALUES = (
    *(0, 1, -1, 2, 30, 2**31, 2**32, 2**62, True, False, 0.0, -0.0, 1.0, -1.5, 1e-42, 1e300),
    *(TWICE, -TWICE, 2**53 + 1, 2**63 - 1, ABOVE, -ABOVE, 2.0**128 - 2.0**104),
)
I32_ONE = TensorType(DType.I32, (1, 1, 1, 1))
SMALL = 1 << 22
"""Only programs that need fewer bytes and fewer operations than this are run here."""


def twisted(case: Case) -> Iterator[Case]:
    """Variants of a call: operands of different shapes or types, one operand fewer or more, a different
    attribute value.
    """
    for k, type_ in enumerate(case.operands):
        for other in _neighbours(type_):
            changed = (*case.operands[:k], other, *case.operands[k + 1 :])
            yield Case(case.function, changed, case.attributes, case.labels)
    yield Case(case.function, case.operands[:-1], case.attributes, case.labels)
    yield Case(case.function, (*case.operands, case.operands[-1]), case.attributes, case.labels)
    integers = tuple(TensorType(DType.I32, type_.shape) for type_ in case.operands)
    yield Case(case.function, integers, case.attributes, case.labels)
    for name in case.attributes:
        for value in VALUES:
            yield Case(case.function, case.operands, {**case.attributes, name: value}, case.labels)


def _neighbours(type_: TensorType) -> Iterator[TensorType]:
    shapes = {(*type_.shape[:k], size, *type_.shape[k + 1 :]) for k in range(type_.rank) for size in (1, 2)}
    shapes |= {
        (),
        (1,),
        (1, *type_.shape),
        (2, *type_.shape),
        (*type_.shape, 1),
        type_.shape[1:],
        type_.shape[:-1],
    }
    yield from (TensorType(type_.dtype, shape) for shape in shapes - {type_.shape} if len(shape) <= 8)
    yield from (TensorType(dtype, type_.shape) for dtype in DType if dtype is not type_.dtype)


def build(case: Case) -> Program | None:
    """The program of a call; None if the function refuses the operands or attributes, or if the program is
    not cheap to run.
    """
    try:
        program = CATALOGUE[case.function].program(case.operands, case.attributes)
        program.id  # noqa: B018  (a dimension of 1.0 is found out here)
        due = cost(program)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return program if max(due.peak_bytes, due.operations) < SMALL else None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_kernel_differs_from_its_body_on_what_it_was_not_made_for(case: Case) -> None:
    for other in twisted(case):
        program = build(other)
        kernel = program and recognise(program, Hint(other.function, other.attributes))
        if not program or not kernel:
            continue
        given = [_apart(x) for x in operands(other, "edges", 3)]
        for type_, fast, slow in zip(
            program.outputs, kernel(given), Interpreter().run(program, given), strict=True
        ):
            assert to_bytes(fast, type_.dtype) == to_bytes(slow, type_.dtype), (str(other), other.attributes)


def _apart(x: Tensor) -> Tensor:
    """The same values in memory that is not contiguous, as in a view."""
    return torch.stack([x, x], dim=-1)[..., 0]


def test_every_function_has_a_form() -> None:
    assert set(FORMS) == set(CATALOGUE)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("layer_norm", (f32(4, 300), f32(1), f32(300))),
        ("adamw", (f32(70), f32(1), f32(70), f32(70), f32(), f32(), f32())),
        ("silu_grad", (f32(1), f32(90_000))),
        ("softmax_grad", (f32(1, 40), f32(9, 40))),
        ("linear", (f32(5, 10), f32(7, 10), f32(5, 7))),
    ],
)
def test_smaller_operands_that_a_body_broadcasts_run_by_the_body(
    name: str, types: tuple[TensorType, ...]
) -> None:
    attributes = next(case.attributes for case in CASES if case.function == name)
    program = CATALOGUE[name].program(types, attributes)
    assert recognise(program, Hint(name, attributes)) is None


@pytest.mark.parametrize("limit", [TWICE, ABOVE])
def test_a_number_that_torch_rounds_otherwise_runs_by_the_body(limit: float) -> None:
    """A kernel that reads this limit with torch would give bits that differ from the body's, or would raise
    an error and so end the step.
    """
    program = CATALOGUE["clip_value"].program((f32(3),), {"limit": limit})
    assert recognise(program, Hint("clip_value", {"limit": limit})) is None
    given = torch.tensor([1.0, 1e30, -3.4e38])
    (clipped,) = Interpreter().run(program, [given])
    (rounded,) = struct.unpack("<f", struct.pack("<f", limit))
    assert torch.equal(clipped, given.clamp(-rounded, rounded))


def test_numbers_that_python_takes_for_equal_make_programs_of_their_own() -> None:
    layer_norm = CATALOGUE["layer_norm"]
    zero, minus = (layer_norm.program((f32(2, 8),), {"eps": eps}) for eps in (0.0, -0.0))
    assert zero.id != minus.id
    assert recognise(zero, Hint("layer_norm", {"eps": -0.0})) is None
    softmax = CATALOGUE["linear"].program((f32(2, 8), f32(3, 8)), {"px": 13, "py": 13})
    assert recognise(softmax, Hint("linear", {"px": 13.0, "py": 13})) is None


def test_more_bits_than_kernels_have_run_by_the_body() -> None:
    program = CATALOGUE["linear"].program((f32(2, 8), f32(3, 8)), {"px": 30, "py": 30})
    assert recognise(program, Hint("linear", {"px": 30, "py": 30})) is None
    (x,) = Interpreter().run(program, [torch.ones(2, 8), torch.ones(3, 8)])
    assert torch.equal(x, torch.full((2, 3), 8.0))


def test_rows_beyond_a_word_are_refused_by_the_body() -> None:
    with pytest.raises(ProgramError):
        CATALOGUE["draw_batch"].program(CASES[-1].operands, {"batch": 4, "rows": 2**32, "stream": 0})


@pytest.mark.parametrize(
    "padding", [{"padding_y": 2**29}, {"padding_y": 2**29, "kernel_y": 2**30}, {"padding_x": 2**29}], ids=str
)
def test_a_false_hint_records_no_more_than_the_program_has(padding: dict[str, int]) -> None:
    b = Builder("tiny")
    b.output(b.add(b.input(f32(1, 1, 1, 1)), b.f32(0)))
    tiny = b.build()
    recorded = []
    append = Recorder._append

    def counted(self: Recorder, *arguments: Any) -> Any:
        recorded.append(self.name)
        assert len(recorded) < 10, "a false hint builds a long program"
        return append(self, *arguments)

    with mock.patch.object(Recorder, "_append", counted):
        assert recognise(tiny, Hint("max_pool", sliding(1, rows=1, columns=1) | padding)) is None
    assert len(recorded) <= len(tiny.instructions) + 1


@pytest.mark.parametrize(
    ("name", "types", "attributes"),
    [
        ("max_pool", (f32(1, 1, 2048, 2048),), sliding(2048, rows=1, columns=1)),
        ("max_pool", (f32(5, 3, 9, 9),), sliding(5, 4, rows=2, columns=2)),
        ("mean_pool", (f32(1, 1, 2048, 2048),), sliding(2048, divisor=1, include_padding=0)),
        ("max_pool_grad", (f32(1, 1, 1, 1), I32_ONE), sliding(15, height=15, width=15)),
        (
            "mean_pool_grad",
            (f32(1, 1, 1, 1),),
            sliding(15, height=15, width=15, divisor=1, include_padding=1),
        ),
    ],
)
def test_large_windows_of_few_elements_run_by_the_body(
    name: str, types: tuple[TensorType, ...], attributes: dict[str, int]
) -> None:
    # Their kernels call torch for each element of a window, whatever its cost says.
    program = CATALOGUE[name].program(types, attributes)
    assert recognise(program, Hint(name, attributes)) is None


@pytest.mark.parametrize(
    ("name", "types", "attributes"),
    [
        ("max_pool", (f32(8, 32, 5, 5),), sliding(5, rows=1, columns=1)),
        ("mean_pool", (f32(4, 64, 224, 224),), sliding(224, divisor=224 * 224, include_padding=1)),
        ("max_pool_grad", (f32(1, 1, 1, 1), I32_ONE), sliding(16, height=16, width=16)),
        (
            "mean_pool_grad",
            (f32(1, 1, 1, 1),),
            sliding(16, height=16, width=16, divisor=1, include_padding=1),
        ),
    ],
)
def test_large_windows_of_many_elements_keep_their_kernel(
    name: str, types: tuple[TensorType, ...], attributes: dict[str, int]
) -> None:
    program = CATALOGUE[name].program(types, attributes)
    assert recognise(program, Hint(name, attributes)) is not None
