"""Programs that seem cheap but need much time or memory. Their cost must be found correctly, because a solver
that bids on one would otherwise lose its stake.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from protocol.node.memory import forget_peak, peak_memory
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.check import check
from protocol.program.cost import DISPATCH, HASHED, cost
from protocol.program.execute import Interpreter, Site
from protocol.program.parallel.plan import plan
from protocol.program.parallel.units import units
from protocol.program.program import Program
from protocol.program.types import TensorType
from protocol.tasks.bundles.limits import WORKSPACE

ONE = TensorType(DType.F32, (1,))
LARGE = TensorType(DType.F32, (1 << 20,))
LIMIT = 1 << 48
"""The maximum number of operations of a step that `bundles.Limits` allows by default."""


def tower(levels: int, width: int) -> Program:
    """A program with calls nested `levels` deep: on each level, a program calls the next one `width` times.
    The innermost program does nothing.
    """
    b = Builder("nothing")
    b.output(b.input(ONE))
    program = b.build()
    for _ in range(levels):
        b = Builder("tower")
        x = b.input(ONE)
        for _ in range(width):
            (x,) = b.call(program, x)
        b.output(x)
        program = b.build()
    return program


def test_a_tower_of_empty_programs_costs_its_calls() -> None:
    program = tower(7, 40)
    check(program)
    assert cost(program).operations > 40**7 * DISPATCH > LIMIT


def test_small_instructions_count_as_long_as_they_take() -> None:
    program = tower(2, 40)
    Interpreter().run(program, [torch.ones(1)])
    fastest = min(_seconds(program) for _ in range(3))
    assert (
        cost(program).operations / 2e9 > fastest / 10
    )  # at 2 x 10^9 operations a second, even on a busy machine


def _seconds(program: Program) -> float:
    start = time.process_time()
    Interpreter().run(program, [torch.ones(1)])
    return time.process_time() - start


def test_rows_that_nothing_is_added_to_count() -> None:
    b = Builder("rows")
    index, x = b.input(TensorType(DType.I32, (1,))), b.input(TensorType(DType.I64, (1,)))
    b.output(b.scatter_sum(index, x, rows=1 << 28))
    assert cost(b.build()).operations > 1 << 28


def test_a_step_costs_at_least_the_hashing_of_its_trace() -> None:
    """The admission assumes a third of the machine's rates; the other two thirds must suffice for traces. So
    a step must cost at least as much as hashing its values.
    """
    b = Builder("wide")
    b.output(b.add(b.input(LARGE), b.constant(DType.F32, (), 1.0)))
    assert cost(b.build()).operations >= HASHED * 2 * LARGE.nbytes


def test_a_path_of_frames_counts_what_is_most_on_any_path() -> None:
    """One callee has the most operations, the other the most bytes. The step itself has four instructions: an
    input, two calls and an output.
    """
    busy = Builder("busy")
    x = busy.input(ONE)
    for _ in range(9):
        x = busy.neg(x)
    busy.output(x)
    wide = Builder("wide")
    wide.output(wide.slice(wide.expand(wide.input(ONE), LARGE.shape), 0, 0, 1))
    slow, large = busy.build(), wide.build()
    b = Builder("step")
    (x,) = b.call(slow, b.input(ONE))
    (x,) = b.call(large, x)
    b.output(x)
    found, below = cost(b.build()), [cost(program) for program in (slow, large)]
    own = 4 * DISPATCH
    assert found.eager_operations == own + max(one.eager_operations for one in below)
    assert found.path_bytes == 3 * ONE.nbytes + LARGE.nbytes + 2 * ONE.nbytes
    assert found.value_bytes == LARGE.nbytes
    # Hashing decides the step's operations, so its calls count as the same share of more.
    assert found.operations == HASHED * found.path_bytes
    steps = own + below[0].eager_operations + below[1].eager_operations
    assert found.called_operations == -(-(steps - own) * found.operations // steps)


def test_programs_that_call_thousands_of_others_are_costed_once_each() -> None:
    leaves = []
    for k in range(1100):  # more than any cache of costs holds
        b = Builder("leaf")
        b.output(b.add(b.input(ONE), b.constant(DType.F32, (), float(k))))
        leaves.append(b.build())
    callers = []
    for k in range(30):
        b = Builder("caller")
        x = b.add(b.input(ONE), b.constant(DType.F32, (), float(k)))
        for leaf in leaves:
            (x,) = b.call(leaf, x)
        b.output(x)
        callers.append(b.build())
    b = Builder("all")
    x = b.input(ONE)
    for caller in callers:
        (x,) = b.call(caller, x)
    b.output(x)
    program = b.build()
    start = time.process_time()
    assert cost(program).operations > 30 * 1100 * DISPATCH
    assert time.process_time() - start < 5


def test_thousands_of_outputs_are_found_at_once() -> None:
    b = Builder("many")
    for x in [b.input(ONE) for _ in range(8000)]:
        b.output(x)
    program = b.build()
    start = time.process_time()
    assert [program.output(k)[1].operands[0].leaf for k in range(8000)] == list(range(8000))
    assert time.process_time() - start < 3


@pytest.mark.parametrize("inside", [False, True], ids=["slices", "slices that calls give"])
def test_small_pieces_do_not_keep_large_tensors_alive(inside: bool) -> None:
    cut = Builder("cut")
    cut.output(cut.slice(cut.neg(cut.input(LARGE)), 0, 5, 6))
    piece = cut.build()
    b = Builder("pieces")
    x = b.input(LARGE)
    pieces = [b.call(piece, x)[0] if inside else b.slice(b.neg(x), 0, 5, 6) for _ in range(8)]
    for each in pieces:
        b.output(each)
    for made in Interpreter().run(b.build(), [torch.ones(LARGE.shape)]):
        assert made.untyped_storage().nbytes() <= 4 * ONE.nbytes


@pytest.mark.parametrize(("rows", "held"), [(4, 4), (5, 1)])
def test_a_piece_holds_at_most_four_times_its_own_bytes(rows: int, held: int) -> None:
    """A slice of one row out of four stays a view, which holds all four rows in memory. A slice of one row
    out of five is copied, and the five rows are released.
    """
    b = Builder("piece")
    whole = TensorType(DType.F32, (rows, 16))
    b.output(b.slice(b.neg(b.input(whole)), 0, 0, 1))
    (made,) = Interpreter().run(b.build(), [torch.ones(whole.shape)])
    assert made.untyped_storage().nbytes() == held * 16 * 4


def test_a_row_that_is_packed_with_absent_ones_counts_their_room() -> None:
    b = Builder("dot")
    row = TensorType(DType.I32, (1, 1 << 20))
    b.output(b.dot(b.input(row), b.input(row)))
    given = 2 * row.nbytes
    assert cost(b.build()).peak_bytes * WORKSPACE > given + 2 * 32 * 6 * (1 << 20)


class Made(TorchDispatchMode):
    """Counts the bytes of storage that torch operations allocate."""

    bytes: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        given = {x.untyped_storage().data_ptr() for x in args if isinstance(x, torch.Tensor)}
        if isinstance(found, torch.Tensor) and found.untyped_storage().data_ptr() not in given:
            self.bytes += found.untyped_storage().nbytes()
        return found


SQUARE = TensorType(DType.F32, (512, 512))
USES = 50


def _made(program: Program, *inputs: torch.Tensor) -> int:
    check(program)
    made = Made()  # type: ignore[no-untyped-call]
    with made:
        Interpreter().run(program, inputs)
    return made.bytes


def _corners(b: Builder, x: Value) -> None:
    """Output a sum of `USES` terms, each of which is the same element of `x`, read by a separate instruction."""
    corner = b.strided(x, (1,), (0,), 3)
    for _ in range(USES - 1):
        corner = b.add(corner, b.strided(x, (1,), (0,), 3))
    b.output(corner)


def test_an_element_of_a_large_constant_does_not_copy_the_constant() -> None:
    inner = Builder("corners")
    _corners(inner, inner.constant(DType.F32, SQUARE.shape, 1.0))
    corners = inner.build()
    b = Builder("calls")
    for _ in range(3):
        b.output(b.call(corners)[0])
    assert _made(b.build()) < SQUARE.nbytes


def test_an_element_of_a_transposed_value_does_not_copy_the_value() -> None:
    """Reading one element does not copy the whole value: neither in the frame that makes the value, nor in a
    called frame that gets the value at each of several calls.
    """
    inner = Builder("corners")
    _corners(inner, inner.input(SQUARE))
    corners = inner.build()
    b = Builder("calls")
    x = b.transpose(b.input(SQUARE), 0, 1)
    for _ in range(3):
        b.output(b.call(corners, x)[0])
    _corners(b, x)
    assert _made(b.build(), torch.ones(SQUARE.shape)) < SQUARE.nbytes


@pytest.mark.parametrize("inside", [False, True], ids=["of the step", "of calls"])
def test_outputs_of_one_value_share_one_copy(inside: bool) -> None:
    b = Builder("outputs")
    x = b.constant(DType.F32, SQUARE.shape, 1.0)
    for _ in range(USES):
        b.output(x)
    program = b.build()
    if inside:
        b = Builder("calls")
        b.output(b.strided(b.call(program)[-1], (1,), (0,)))
        program = b.build()
    assert _made(program) < 2 * SQUARE.nbytes


def test_a_value_that_calls_pass_through_is_not_copied_by_each() -> None:
    inner = Builder("inner")
    inner.output(inner.input(SQUARE))
    middle = Builder("middle")
    middle.output(middle.call(inner.build(), middle.input(SQUARE))[0])
    through = middle.build()
    b = Builder("calls")
    x = b.transpose(b.input(SQUARE), 0, 1)
    passed = [b.call(through, x)[0] for _ in range(USES)]
    b.output(passed[-1])
    assert _made(b.build(), torch.ones(SQUARE.shape)) < 2 * SQUARE.nbytes


def test_outputs_are_held_in_every_frame_of_a_path() -> None:
    """Each frame outputs values one after the other, and then calls the next frame."""
    width, levels = 15, 8
    program = None
    for _ in range(levels):
        b = Builder("frame")
        x = b.input(SQUARE)
        for _ in range(width):
            b.output(b.neg(x))
        if program is not None:
            b.output(b.strided(b.call(program, x)[0], (1,), (0,)))
        program = b.build()
    assert program is not None
    alive: list[int] = []
    made: list[weakref.ref[torch.Tensor]] = []

    class Counting(Interpreter):
        def results(self, site: Site, operands: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
            results = super().results(site, operands)
            made.extend(map(weakref.ref, results))
            held = {id(x): x.nbytes for x in (ref() for ref in made) if x is not None}
            alive.append(sum(held.values()))
            return results

    Counting().run(program, [torch.ones(SQUARE.shape)])
    assert max(alive) > levels * width * SQUARE.nbytes
    assert cost(program).peak_bytes >= max(alive)


ROWS, COLUMNS, BOTH = (2048, 1), (1, 4096), (2048, 4096)
F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL


@pytest.mark.parametrize(
    ("types", "made"),
    [
        ([(U32, ROWS), (U32, COLUMNS)], lambda b, x, y: b.mulhi(x, y)),
        ([(U32, ROWS), (U32, COLUMNS)], lambda b, x, y: b.shr(x, y)),
        ([(F32, ROWS), (I32, COLUMNS)], lambda b, x, y: b.scale(x, y)),
        ([(F32, ROWS), (I32, COLUMNS)], lambda b, x, y: b.quantise(x, y, 30)),
        ([(F32, ROWS), (I32, COLUMNS)], lambda b, x, y: b.to_fixed(x, y)),
        ([(I64, ROWS), (I32, COLUMNS)], lambda b, x, y: b.round_scaled(x, y, p=30)),
        ([(I64, (1, 1)), (I32, ROWS), (I32, COLUMNS)], lambda b, x, y, z: b.round_scaled(x, y, z, p=30)),
        ([(I64, BOTH), (I32, ROWS), (I32, COLUMNS)], lambda b, x, y, z: b.round_scaled(x, y, z, p=30)),
        ([(I64, (1, 1)), (I32, BOTH)], lambda b, x, y: b.round_scaled(x, y, p=30)),
        ([(BOOL, BOTH), (F32, ROWS), (F32, COLUMNS)], lambda b, q, x, y: b.select(q, x, y)),
        ([(U8, BOTH)], lambda b, x: b.cast(x, I32)),
        ([(U8, BOTH)], lambda b, x: b.cast(x, F32)),
        ([(BOOL, BOTH)], lambda b, x: b.cast(x, U8)),
    ],
    ids=lambda value: None if callable(value) else "_".join(f"{t.name}{s}" for t, s in value),
)
def test_temporaries_of_a_primitive_fit_into_what_is_counted(
    types: list[tuple[DType, tuple[int, ...]]], made: Callable[..., Value]
) -> None:
    """The memory counted for a primitive is enough for its temporaries, even where the operands are far
    smaller than the result.
    """
    b = Builder("one")
    b.output(made(b, *(b.input(TensorType(*type_)) for type_ in types)))
    program = b.build()
    inputs = [torch.ones(shape).to(dtype.storage) for dtype, shape in types]
    Interpreter().run(program, inputs)
    given = sum(x.nbytes for x in inputs)
    forget_peak()
    before = _resident()
    Interpreter().run(program, inputs)
    peak = peak_memory()
    assert peak is not None
    spare = 2 << 20  # the allocator's, a few percent of a result
    assert given + peak - before <= WORKSPACE * cost(program).peak_bytes + spare


def _resident() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def shared_chain(links: int, calls: int) -> Program:
    """Many independent calls, all of which need the same long chain of instructions with 255 operands each."""
    b = Builder("inner")
    b.output(b.neg(b.neg(b.input(ONE))))
    inner = b.build()
    b = Builder("chain")
    x = b.input(ONE)
    for _ in range(links):
        x = b.slice(b.concat([x] * 255, 0), 0, 0, 1)
    for _ in range(calls):
        (y,) = b.call(inner, x)
    b.output(y)
    return b.build()


def test_units_and_plans_read_each_operand_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the fix, each call walked through the whole chain. By the count that bids use, a program of
    16,000 links and 32,000 calls costs 1.6 s a step. By estimate, finding its units would have taken hours.
    """
    asked = 0

    def producer(program: Program, leaf: int) -> int:
        nonlocal asked
        asked += 1
        return plainly(program, leaf)

    plainly = Program.producer
    monkeypatch.setattr(Program, "producer", producer)
    program = shared_chain(40, 200)
    assert len(units(program)) == 200
    for rank in range(2):
        plan(program, rank, 2)
    assert asked < 8 * sum(len(instruction.operands) for instruction in program.instructions)
