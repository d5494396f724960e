"""Fast and traced execution have the same bits; a call equals its body; the evaluator can be replaced."""

from __future__ import annotations

import random
import weakref
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocol.commitments import Tree, tensor_root
from protocol.numerics.types import DType, NumericsError, from_bytes, to_bytes
from protocol.program import (
    PRIMITIVES,
    Builder,
    Instruction,
    Interpreter,
    Path,
    Program,
    Site,
    TensorType,
    Trace,
    ValueMismatch,
    check,
    cost,
    decode_closure,
    trace,
)
from protocol.program.cost import DISPATCH
from protocol.program.cost import ROW as ROW_OPERATIONS
from protocol.program.opcodes import Op
from tests.unit.program.random_programs import random_inputs, random_program

F32 = DType.F32
ROW = TensorType(F32, (2, 4))


def data_of(program: Program, outputs: Sequence[Tensor]) -> list[bytes]:
    return [to_bytes(x, type_.dtype) for x, type_ in zip(outputs, program.outputs, strict=True)]


def frames(run: Trace) -> list[Trace]:
    """A trace and all traces below it."""
    below = [frame for number in run.program.calls() for frame in frames(run.callee(number))]
    return [run, *below]


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_fast_equals_traced(seed: int) -> None:
    r = random.Random(seed)
    inner = random_program(r, [])
    middle = random_program(r, [inner])
    program = random_program(r, [inner, middle])
    check(program)
    assert decode_closure([p.encode() for p in program.closure()]) == program
    inputs = random_inputs(program, r)
    before = [x.clone() for x in inputs]

    fast = data_of(program, Interpreter().run(program, inputs))
    kept = trace(program, inputs)
    assert data_of(program, kept.outputs) == fast
    again = trace(program, inputs, keep=0)
    assert again.roots == kept.roots
    leaf = r.randrange(program.trace_leaves)
    assert again.value(leaf) == kept.value(leaf)
    assert tensor_root(kept.value(leaf)) == kept.root(leaf)
    assert all(torch.equal(x.view(torch.uint8), y.view(torch.uint8)) for x, y in _bits(inputs, before))

    found = frames(kept)
    sizes = [sum(frame.program.leaf_type(k).nbytes for k in range(len(frame.roots))) for frame in found]
    assert cost(program).traced_bytes == sum(sizes)
    for frame in found:
        assert frame.tree.root == Tree.from_leaves(frame.roots).root


def _bits(xs: Sequence[Tensor], ys: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Pair the tensors, so that each pair can be viewed as bytes: all have rank 1 or more, and the first one
    of each pair is contiguous.
    """
    return [(torch.atleast_1d(x).contiguous(), torch.atleast_1d(y)) for x, y in zip(xs, ys, strict=True)]


def callee() -> Program:
    b = Builder("callee")
    x = b.input(ROW)
    b.output(b.neg(b.abs(x)))
    b.output(b.max(x))
    return b.build()


def caller() -> Program:
    """Instructions: 0 input, 1 add, 2 call, 3 sub, 4 output, 5 output."""
    b = Builder("caller")
    x = b.input(ROW)
    low, high = b.call(callee(), b.add(x, x))
    b.output(b.sub(low, high))
    b.output(high)
    return b.build()


X = torch.arange(-3.0, 5.0).reshape(2, 4)


def test_the_trace_of_a_call_agrees_with_its_leaves_in_the_caller() -> None:
    run = trace(caller(), [X])
    below = run.callee(2)
    assert below.path == (2,)
    assert below.root(0) == run.root(1)
    assert [below.root(below.program.output(k)[1].operands[0].leaf) for k in (0, 1)] == list(run.roots[2:4])
    with pytest.raises(ValueMismatch, match="instruction 3"):
        run.callee(3)


def test_a_kernel_is_chosen_by_program_id() -> None:
    asked: list[int] = []

    def kernel(operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        asked.append(len(operands))
        return -operands[0].abs(), operands[0].amax(-1, keepdim=True) + 0.0

    program = caller()
    plain = Interpreter().run(program, [X])
    assert data_of(program, Interpreter({callee().id: kernel}).run(program, [X])) == data_of(program, plain)
    assert asked == [1]
    Interpreter({b"\x00" * 32: kernel}).run(program, [X])
    assert asked == [1]


@pytest.mark.parametrize(
    "results", [None, (X,), (X, X), (X, X.to(torch.float64).amax(-1, keepdim=True))], ids=range(4)
)
def test_a_kernel_that_does_not_fit_is_not_used_again_and_the_body_runs(
    results: tuple[Tensor, ...] | None, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    def kernel(operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        asked.append(len(operands))
        if results is None:
            raise NumericsError("expected other operands")
        return results

    program = caller()
    interpreter = Interpreter({callee().id: kernel})
    plain = data_of(program, Interpreter().run(program, [X]))
    for _ in range(2):
        assert data_of(program, interpreter.run(program, [X])) == plain
    assert data_of(program, trace(program, [X], interpreter).outputs) == plain
    assert asked == [1]
    assert [record.getMessage()[:42] for record in caplog.records] == [
        "a call of callee runs without its kernel: "
    ]


def test_an_error_of_a_kernel_that_is_no_refusal_stops_the_step() -> None:
    def kernel(_operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        raise MemoryError("no memory")

    with pytest.raises(MemoryError, match="no memory"):
        Interpreter({callee().id: kernel}).run(caller(), [X])


@pytest.mark.parametrize("wrong", [X[None], X.T, X.to(torch.float64)])
def test_a_primitive_that_gives_another_type_stops_fast_and_traced_execution(
    wrong: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = replace(PRIMITIVES[Op.ADD], evaluate=lambda _instruction, _operands: wrong)
    monkeypatch.setattr("protocol.program.execute.PRIMITIVES", {**PRIMITIVES, Op.ADD: faulty})
    for run in (Interpreter().run, trace):
        with pytest.raises(ValueMismatch, match="results of instruction 1 of caller"):
            run(caller(), [X])


WIDE = 1 << 14


@pytest.mark.parametrize(("one", "other"), [((1, 1), (WIDE,)), ((), (1, 1)), ((1, 1), (1, 1))])
def test_a_branch_of_more_axes_than_the_condition_gives_them_to_the_result(
    one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    """If a branch has more axes than the condition, so does the result. This is tested with a branch that is
    all ones and one that is all zeros, which take different code paths.
    """
    b = Builder("select")
    row, x, y = (b.input(TensorType(F32, shape)) for shape in ((WIDE,), one, other))
    b.output(b.select(b.lt(row, b.constant(F32, (), 0.0)), x, y))
    program = b.build()
    check(program)
    inputs = [torch.linspace(-1, 1, WIDE), torch.ones(one), torch.full(other, 2.0)]
    for value in (1.0, 0.0):
        inputs[1] = torch.full(one, value)
        fast = Interpreter().run(program, inputs)
        assert tuple(fast[0].shape) == program.outputs[0].shape == (1, WIDE)
        assert data_of(program, trace(program, inputs).outputs) == data_of(program, fast)


@pytest.mark.parametrize("inputs", [[], [X, X], [X.to(torch.float64)], [X.reshape(4, 2)]])
def test_inputs_of_other_types_are_refused(inputs: list[Tensor]) -> None:
    for run in (Interpreter().run, trace):
        with pytest.raises(ValueMismatch, match="inputs of caller"):
            run(caller(), inputs)


class OneUlp(Interpreter):
    """Adds one to the bits of the first element of one instruction's first result."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__()
        self._place = (path, number)

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        first, *others = super().results(site, operands)
        if (site.path, site.number) != self._place:
            return first, *others
        moved = first.clone()
        moved.view(torch.int32)[0, 0] += 1
        return moved, *others


def test_a_changed_value_inside_a_call_shows_in_the_caller_and_only_from_there_on() -> None:
    honest, cheat = trace(caller(), [X]), trace(caller(), [X], OneUlp((2,), 2))
    assert cheat.roots[:2] == honest.roots[:2]
    assert cheat.root(2) != honest.root(2)
    assert cheat.root(3) == honest.root(3)
    assert cheat.root(4) != honest.root(4)
    below, true_below = cheat.callee(2), honest.callee(2)
    assert below.roots[:2] == true_below.roots[:2]
    assert below.root(2) == cheat.root(2)
    assert below.root(2) != true_below.root(2)
    fast = OneUlp((2,), 2).run(caller(), [X])
    assert data_of(caller(), fast) == data_of(caller(), cheat.outputs)


def test_a_changed_result_of_a_call_leaves_its_own_trace_honest() -> None:
    honest, cheat = trace(caller(), [X]), trace(caller(), [X], OneUlp((), 2))
    assert cheat.root(2) != honest.root(2)
    assert cheat.callee(2).roots == honest.callee(2).roots


def test_a_changed_input_shows_in_its_own_leaf() -> None:
    cheat = trace(caller(), [X], OneUlp((), 0))
    assert cheat.root(0) != tensor_root(to_bytes(X, F32))


def test_values_are_freed_at_their_last_use() -> None:
    alive: list[int] = []

    class Counting(Interpreter):
        def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
            results = super().results(site, operands)
            made.extend(map(weakref.ref, results))
            alive.append(sum(ref() is not None for ref in made))
            return results

    made: list[weakref.ref[Tensor]] = []
    b = Builder("chain")
    x = b.input(ROW)
    for _ in range(20):
        x = b.neg(x)
    b.output(x)
    program = b.build()
    Counting().run(program, [X])
    assert max(alive) <= 3
    assert cost(program).peak_bytes == 3 * ROW.nbytes


def test_cost_counts_operations_of_primitives_and_callees() -> None:
    b = Builder("counted")
    x = b.input(TensorType(DType.I32, (3, 8)))
    y = b.input(TensorType(DType.I32, (5, 8)))
    d = b.dot(x, y)
    b.output(b.sum(b.pad_rows(d, 0)))
    b.output(b.add(b.cast(d, DType.I32), b.constant(DType.I32, (), 1)))
    counted = cost(b.build())
    dot = 2 * 3 * 5 * 8 + ROW_OPERATIONS * (15 + 24 + 40)
    pad, rows, cast, constant, add = 4 * 3 * 8, 3 * 8 + ROW_OPERATIONS * 3, 32 * 15, 1, 15
    assert counted.operations == 10 * DISPATCH + dot + pad + rows + cast + constant + add
    inner, outer = cost(callee()), cost(caller())
    assert inner.operations == 6 * DISPATCH + 3 * ROW.elements + ROW_OPERATIONS * ROW.shape[0]
    assert outer.operations == 6 * DISPATCH + inner.operations + 2 * ROW.elements


def test_every_element_of_a_trace_follows_from_its_operands() -> None:
    """For every primitive in random programs, elements of the result are computed from the operands, as an
    arbiter does. They must equal the elements in the trace.
    """
    for seed in range(20):
        r = random.Random(seed)
        program = random_program(r, [], moves=40)
        run = trace(program, random_inputs(program, r))
        for instruction in program.instructions:
            if instruction.op in PRIMITIVES:
                _compare(run, instruction)


def _compare(run: Trace, instruction: Instruction) -> None:
    operands = [run.value(operand.leaf) for operand in instruction.operands]

    def load(k: int, element: int) -> int:
        size = instruction.operands[k].type.dtype.itemsize
        return int.from_bytes(operands[k][element * size : (element + 1) * size], "little")

    size = instruction.result.dtype.itemsize
    value = run.value(instruction.first)
    for element in range(0, instruction.result.elements, max(1, instruction.result.elements // 40)):
        bits = PRIMITIVES[instruction.op].element(instruction, element, load)
        assert bits.to_bytes(size, "little") == value[element * size : (element + 1) * size]


def test_non_canonical_bytes_do_not_reach_a_trace() -> None:
    x = from_bytes(bytes.fromhex("010080ff"), F32, ())
    b = Builder()
    b.output(b.neg(b.input(TensorType(F32, ()))))
    assert trace(b.build(), [x]).value(0).hex() == "0000c07f"
