"""Whole games: one wrong number anywhere in a run is found and judged, whether or not its data is served.

A referee in Python replaces the contracts. tests/chain plays such games on the contracts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from protocol.commitments import segment_tree
from protocol.dispute.evidence import loader
from protocol.dispute.in_process import Serving, Silent
from protocol.dispute.provider import Frame, Run
from protocol.dispute.revealed import LeafStore
from protocol.dispute.view import TreeKind
from protocol.execution.replay import HonestExecutor, Replay, first_step
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, Op, Program, StepProgram, TensorType
from protocol.program.execute import Path, Site
from protocol.program.step import State
from tests.unit.dispute.referee import Referee, cover_up

SEGMENTS, STEPS = 3, 2
ROW = TensorType(DType.F32, (2, 512))
"""Two rows of two blocks each, so a product of two rows is split."""
LONG = TensorType(DType.I64, (1, 130 * 128))
"""One row of 130 blocks, so its sum is split twice."""
TOTAL = TensorType(DType.I64, (1, 1))


def halves() -> Program:
    """Outputs the product of each row of x with each row of x, then x * `factor`, then x * `factor` * `factor`."""
    b = Builder("halves")
    factor, x = b.input(TensorType(DType.F32, ())), b.input(ROW)
    half = b.mul(x, factor)
    e = b.exponent(x)
    m = b.quantise(x, e, 13)
    b.output(b.reshape(b.dot(m, m), (1, 4)))
    b.output(half)
    b.output(b.mul(half, factor))
    return b.build()


def outer() -> Program:
    """A program that calls `halves` with the factor 1/2."""
    b = Builder("outer")
    x = b.input(ROW)
    for result in b.call(halves(), b.f32(0x3F000000), x):
        b.output(result)
    return b.build()


@cache
def step() -> StepProgram:
    """weights' = weights / 4 + data / 2; total' = total + sum(long) + the sum of all products of rows."""
    b = Builder("step")
    weights, total, data, long = b.input(ROW), b.input(TOTAL), b.input(ROW), b.input(LONG)
    products, _, quarter = b.call(outer(), weights)
    b.output(b.add(quarter, b.mul(data, b.f32(0x3F000000))))
    b.output(b.add(b.add(total, b.sum(long)), b.sum(products)))
    program = StepProgram(b.build(), ("weights", "total"), datasets=1, constants=1)
    program.check()
    return program


def fixed() -> tuple[Tensor, ...]:
    data = torch.arange(1024, dtype=torch.float32).reshape(ROW.shape) / 512 + 1
    return data, torch.arange(130 * 128).reshape(LONG.shape)


def initial() -> State:
    return {"weights": fixed()[0] / 3, "total": torch.zeros(TOTAL.shape, dtype=torch.int64)}


@dataclass(frozen=True)
class Fault:
    """A wrong element in a result of one instruction. The fault is in step `number` of the run; steps are
    counted from 1.

    If the instruction makes an output of the top frame, the trace is right, but the state after the step is
    wrong.
    """

    number: int
    path: Path
    instruction: int
    element: int
    result: int = 0
    by: int = 1 << 30


class Wrong(Interpreter):
    """Computes one element wrongly, and then computes everything that depends on it from the wrong element."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        inner = (*site.path, site.number)
        if site.instruction.op is Op.CALL and self.fault.path[: len(inner)] == inner:
            found = list(self.run_frame(site.program.callee(site.number), operands, inner))
        else:
            found = list(super().results(site, operands))
        if (site.path, site.number) == (self.fault.path, self.fault.instruction):
            found[self.fault.result] = found[self.fault.result].clone()
            found[self.fault.result].view(-1)[self.fault.element] += self.fault.by
        return tuple(found)


class Executor(HonestExecutor):
    """An executor that is honest except in the step of its fault, if it has one."""

    def __init__(self, fault: Fault | None) -> None:
        super().__init__(step(), fixed(), Interpreter())
        self.fault = fault

    def step(self, state: State, number: int, /) -> State:
        if self.fault is None or self.fault.number != number:
            return super().step(state, number)
        if not self.fault.path and self.fault.instruction in OUTPUTS:
            state = dict(super().step(state, number))
            name = step().state[OUTPUTS.index(self.fault.instruction)]
            return state | {name: state[name] + 1}
        return step().step(state, fixed(), Wrong(self.fault))

    def trace(self, state: State, number: int, /) -> Frame:
        if self.fault is None or self.fault.number != number:
            return super().trace(state, number)
        return step().trace(state, fixed(), Wrong(self.fault))


def replay(executor: Executor) -> Replay:
    states: list[State] = [initial()]
    for segment in range(1, SEGMENTS + 1):
        state = states[-1]
        for number in range(first_step(segment, STEPS), first_step(segment + 1, STEPS)):
            state = executor.step(state, number)
        states.append(state)
    roots = [step().state_root(state) for state in states]
    return Replay(step(), fixed(), executor, STEPS, lambda i: states[i], lambda: roots)


@cache
def honest() -> Replay:
    return replay(Executor(None))


def find(program: Program, op: Op) -> list[int]:
    return [n for n, instruction in enumerate(program.instructions) if instruction.op is op]


INPUTS, OUTPUTS = (find(step().program, op) for op in (Op.INPUT, Op.OUTPUT))
CALLS = (*find(step().program, Op.CALL), *find(outer(), Op.CALL))
ELEMENTS = {
    "of the top frame": Fault(4, (), find(step().program, Op.ADD)[0], 700),
    "of the top frame, too large": Fault(1, (), find(step().program, Op.ADD)[1], 0, by=1),
    "of the top frame, too small": Fault(1, (), find(step().program, Op.ADD)[1], 0, by=-1),
    "of a callee": Fault(3, CALLS, find(halves(), Op.MUL)[1], 1023),
    "from a row of two blocks": Fault(6, CALLS, find(halves(), Op.DOT)[0], 2),
    "from a row of 130 blocks": Fault(1, (), find(step().program, Op.SUM)[0], 0),
}
EDGES = {
    "state before the step": (Fault(2, (), INPUTS[1], 0), INPUTS[1]),
    "dataset": (Fault(3, (), INPUTS[2], 800), INPUTS[2]),
    "constant": (Fault(6, (), INPUTS[3], 5), INPUTS[3]),
    "operand of the call": (Fault(4, CALLS, 1, 300), 1),
    "result of the callee": (Fault(5, CALLS[:1], CALLS[1], 9, 2), find(halves(), Op.OUTPUT)[2]),
    "state after the step": (Fault(3, (), OUTPUTS[1], 0), OUTPUTS[1]),
}
SERVED = pytest.mark.parametrize("served", [True, False], ids=["served", "withheld"])


def played(
    fault: Fault, served: bool, silent_from: int | None = None, kept: LeafStore | None = None
) -> Referee:
    """Play a whole game about a run with this fault. The game must end at the step of the fault.

    The solver serves its data if `served` is true; if `silent_from` is also given, it stops serving after
    that many moves. If `kept` is given, the challenger restarts before each of its moves.
    """
    run = replay(Executor(fault))
    roots = run.segment_roots()
    assert roots is not None
    referee = Referee(step().program, STEPS, run, honest())
    referee.kept = kept
    serving = Stopping(run, lambda: silent_from is not None and len(referee.notes) >= silent_from)
    ended = referee.play(segment_tree(roots).root, len(roots), serving if served else Silent(), cover_up)
    assert first_step(ended.segment, STEPS) + ended.step - 1 == fault.number
    return referee


class Stopping:
    """A solver that answers each request only the first time, and answers nothing while `has_stopped` returns
    true.
    """

    def __init__(self, run: Run, has_stopped: Callable[[], bool]) -> None:
        self._serving = Serving(run)
        self._has_stopped = has_stopped
        self._answered: set[tuple[object, ...]] = set()

    def segment_roots(self) -> Sequence[bytes] | None:
        return self._serving.segment_roots() if self._answers() else None

    def step_roots(self, *at: int) -> Sequence[bytes] | None:
        return self._serving.step_roots(*at) if self._answers(*at) else None

    def tensor_roots(self, *at: int) -> Sequence[bytes] | None:
        return self._serving.tensor_roots(*at) if self._answers(*at) else None

    def trace_roots(self, segment: int, step: int, path: tuple[int, ...]) -> Sequence[bytes] | None:
        answers = self._answers(segment, step, path)
        return self._serving.trace_roots(segment, step, path) if answers else None

    def value(self, segment: int, step: int, path: tuple[int, ...], leaf: int) -> bytes | None:
        answers = self._answers(segment, step, path, leaf)
        return self._serving.value(segment, step, path, leaf) if answers else None

    def _answers(self, *question: object) -> bool:
        """Whether this question is answered. The number of arguments tells the kinds of questions apart."""
        if self._has_stopped() or question in self._answered:
            return False
        self._answered.add(question)
        return True


class Disk:
    """Lists of leaves that outlive a process."""

    def __init__(self) -> None:
        self.lists: dict[tuple[bytes, int], Sequence[bytes]] = {}

    def get(self, root: bytes, size: int) -> Sequence[bytes] | None:
        return self.lists.get((root, size))

    def put(self, root: bytes, leaves: Sequence[bytes]) -> None:
        self.lists[root, len(leaves)] = leaves


@SERVED
@pytest.mark.parametrize("fault", ELEMENTS.values(), ids=ELEMENTS.keys())
def test_the_wrong_element_is_judged(fault: Fault, served: bool) -> None:
    referee = played(fault, served)
    assert (referee.view.path, *referee.judged) == (fault.path, fault.instruction, fault.element)
    due = set() if served else {TreeKind.SEGMENT, TreeKind.STEP, TreeKind.TRACE, TreeKind.VALUE}
    assert set(referee.demanded) == due


def test_every_move_says_what_it_is_about() -> None:
    served = played(ELEMENTS["from a row of 130 blocks"], served=True)
    n = served.judged[0]
    assert served.notes == [
        "segment 1",
        "step tree of segment 1",
        "step 1",
        "trace of step 1, frame top",
        f"sum {n}, element 0: state its blocks",
        "2 block results",
        "part 0: blocks 0 to 127",
        "128 block results",
        "block 127 of element 0",
    ]
    withheld = played(ELEMENTS["of a callee"], served=False)
    assert withheld.notes[-5:] == [
        "demand value tree, leaves 0 to 3",
        "value node 0, 4 leaves",
        "demand value tree, leaves 3 to 3",
        "value leaf 3",
        f"mul {withheld.judged[0]}, element 1023",
    ]


def test_operands_are_read_as_unsigned_bits() -> None:
    top = honest().frame(2, 1)
    for frame, op, code, element in (
        (top, Op.SUM, "<u8", 16_639),
        (top.callee(CALLS[0]).callee(CALLS[1]), Op.DOT, "<u4", 1_023),
    ):
        instruction = frame.program.instructions[find(frame.program, op)[0]]
        load = loader(frame, instruction)
        for k, operand in enumerate(instruction.operands):
            due = np.frombuffer(frame.value(operand.leaf), code)
            assert [load(k, at) for at in (0, 1, element)] == due[[0, 1, element]].tolist()


@SERVED
@pytest.mark.parametrize(("fault", "judged"), EDGES.values(), ids=EDGES.keys())
def test_what_enters_or_leaves_a_frame_wrongly_is_judged(fault: Fault, judged: int, served: bool) -> None:
    referee = played(fault, served)
    assert referee.judged == (judged, None)
    assert (TreeKind.STATE in referee.demanded) == (fault.instruction in OUTPUTS and not served)
    assert bool(referee.demanded) != served


FAULTS = ELEMENTS | {name: fault for name, (fault, _) in EDGES.items()}


@SERVED
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_restart_before_every_move_changes_no_move(fault: Fault, served: bool) -> None:
    """The solver serves nothing twice, yet the challenger demands nothing that was served before a restart."""
    assert played(fault, served, kept=Disk()).notes == played(fault, served).notes


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_solver_that_stops_serving_after_any_move_is_convicted(fault: Fault) -> None:
    """The challenger restarts before every move."""
    judged, moves = played(fault, served=True).judged, 0
    while True:
        referee = played(fault, True, moves, Disk())
        assert referee.judged == judged
        if not referee.demanded:
            break
        moves += 1
    assert moves > 1


def test_only_traces_are_kept() -> None:
    """The challenger's disk keeps only the leaves of traces. Values may need more space than the disk has,
    and the leaves of the other trees are not needed after the phase of the game that uses them.
    """
    disk = Disk()
    referee = played(ELEMENTS["from a row of two blocks"], True, kept=disk)
    assert {root for root, _ in disk.lists} == set(referee.view.frame_roots)
