"""Splits a captured step into the three programs of a lane's round, which share one state.

The state is the captured step's state, followed by:

| tensor | type | what |
|---|---|---|
| lane.number | i32 [] | the lane's number |
| lane.base | f32 [N] | during a round: the parameters with which all lanes began it; zeros between rounds |
| lane.feedback | f32 [N] | error feedback: changes of the lane that no message has carried yet |
| message.index, .value, .exponent, .count | see `library.lanes` | the lane's last message |

The message's tensors are always the last of the state. Before the first round, the states of two lanes differ
only in `lane.number` and in `key`, the captured step's key of random numbers.

N is the number of trained parameters, padded to whole groups. The parameters form one row, in the state's
order. Between rounds, the states of all lanes hold the same parameters, so lanes can be compared with each
other, and reports can be read from any lane's state. Each lane has its own optimiser tensors and buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

import torch
from torch import Tensor

from protocol.capture.assembly.state import KEY
from protocol.capture.lowering.concatenation import concatenated
from protocol.capture.result import CapturedStep
from protocol.lanes.errors import LanesError
from protocol.numerics.kernels.fused import MOST_LANES, SHARED
from protocol.numerics.rows import MIN_EXPONENT
from protocol.numerics.types import DType
from protocol.program.attributes import decode_index, encode_index
from protocol.program.builder import Builder, Value
from protocol.program.execute import Interpreter, Kernel
from protocol.program.instruction import Instruction, Operand
from protocol.program.library import Hint, fusions, kernels
from protocol.program.library.function import hints
from protocol.program.library.lanes import BLOCKS, absorb, emit
from protocol.program.opcodes import Op
from protocol.program.program import Program
from protocol.program.step import State, StepProgram
from protocol.program.types import TensorType

NUMBER, BASE, FEEDBACK = "lane.number", "lane.base", "lane.feedback"
INDEX, VALUE, EXPONENT, COUNT = (f"message.{name}" for name in ("index", "value", "exponent", "count"))

MOST_EXPONENT = 0
"""The default of `most_exponent`, the largest exponent of sent values. With this default, a change of
magnitude 2^0 or more is spread over several rounds.
"""

LEAST_CUT, LARGEST_CUT = MIN_EXPONENT, 127
"""Least and greatest value allowed for `most_exponent`, the largest exponent of sent values. `emit` makes no
exponent below `LEAST_CUT`. For an exponent e above `LARGEST_CUT`, 2^e is not an f32.
"""

NO_HINTS: Mapping[bytes, Hint] = MappingProxyType({})
CPU = torch.device("cpu")

Inbox = Sequence[Sequence[Tensor]]
"""The messages of all lanes, in the lanes' order; each ends with its count."""


@dataclass(frozen=True)
class Lanes:
    """A job's programs: `absorb` reads the state and the inbox, `inner` is the captured step, `emit` reads
    the state.

    `parameters` names the exchanged tensors. If `block` is None, a single lane trains alone and runs only
    `inner`.
    """

    captured: CapturedStep
    width: int
    block: int | None
    inner_steps: int
    most_exponent: int
    parameters: tuple[str, ...]
    absorb: StepProgram
    inner: StepProgram
    emit: StepProgram

    @property
    def message_types(self) -> dict[str, TensorType]:
        """Types of a message's tensors by name; these are the last tensors of the state."""
        types = dict(zip(self.inner.state, self.inner.state_types, strict=True))
        return {name: type_ for name, type_ in types.items() if name in (INDEX, VALUE, EXPONENT, COUNT)}

    @property
    def message_bytes(self) -> int:
        """Bytes of one message."""
        return sum(type_.nbytes for type_ in self.message_types.values())

    def initial_state(self, seed: int, lane: int) -> dict[str, Tensor]:
        """The state before the first round. Lanes of one job differ in their number and key (seed).

        Raises `ValueError` for a seed of more than 64 bits, `LanesError` for a lane outside the job.
        """
        if not 0 <= lane < self.width:
            raise LanesError("lane", expected=f"a number from 0 to {self.width - 1}", got=str(lane))
        state = self.captured.initial_state(seed)
        if self.block is None:
            return state
        types = zip(self.inner.state, self.inner.state_types, strict=True)
        return {name: state.get(name, _zeros(type_)) for name, type_ in types} | {
            NUMBER: torch.tensor(lane, dtype=torch.int32)
        }

    def joined(self, member: State, seed: int, lane: int) -> dict[str, Tensor]:
        """The state of a lane that joins: `member`, a trained lane's state, with a new key, number, base,
        feedback and message."""
        initial = self.initial_state(seed, lane)
        return {name: member[name] if name in self.taken_over else x for name, x in initial.items()}

    @property
    def taken_over(self) -> tuple[str, ...]:
        """Names of the tensors that a joining lane takes from a member's state."""
        own = (KEY, NUMBER, BASE, FEEDBACK, *self.message_types)
        return tuple(name for name in self.inner.state if name not in own)

    def message(self, state: State) -> tuple[Tensor, ...]:
        """The message in a state."""
        return tuple(state[name] for name in self.message_types)

    def nothing(self) -> tuple[Tensor, ...]:
        """The message that is absorbed in place of a lane's message if the lane does not count, or if there
        is no message yet. Its tensors are all zeros.
        """
        return tuple(map(_zeros, self.message_types.values()))

    def interpreter(
        self, of_bundle: Mapping[bytes, Hint] = NO_HINTS, device: torch.device = CPU
    ) -> Interpreter:
        """An interpreter of the three programs on `device`, with their functions' kernels.

        `of_bundle` are the hints of a captured step that was read from a bundle.
        """
        found: dict[bytes, Kernel] = {}
        for step in (self.absorb, self.inner, self.emit):
            found |= kernels(step.program, {**of_bundle, **hints(step.program)})
        return Interpreter(found, device, fusions)

    def train(self, state: State, inbox: Inbox, interpreter: Interpreter) -> dict[str, Tensor]:
        """Train one round: absorb, the inner steps, emit. A single lane without messages runs only the inner
        steps. Raises `LanesError` for an inbox of wrong size.
        """
        if self.block is not None:
            state = self.absorbed(state, inbox, interpreter)
        for _ in range(self.inner_steps):
            state = self.inner.step(state, self.captured.fixed, interpreter)
        return dict(state) if self.block is None else self.emit.step(state, (), interpreter)

    def absorbed(self, state: State, inbox: Inbox, interpreter: Interpreter) -> dict[str, Tensor]:
        """The state with all lanes' messages absorbed. After the last round this is the job's result.
        Raises `LanesError` for an inbox of wrong size.
        """
        if len(inbox) != self.width:
            raise LanesError("inbox", expected=f"{self.width} messages", got=str(len(inbox)))
        return self.absorb.step(state, [x for message in inbox for x in message], interpreter)


def seeds(seed: int, width: int) -> list[int]:
    """A 64-bit seed for each lane of a job; they differ in the highest 16 bits. Raises `LanesError`."""
    if not 0 <= seed < 2**64:
        raise LanesError("seed", expected="64 bits", got=str(seed))
    return [seed ^ lane << 48 for lane in range(width)]


def lanes(
    captured: CapturedStep,
    *,
    width: int,
    density: float | Fraction | None,
    inner_steps: int,
    rate: float = 1.0,
    decay: float = 1.0,
    most_exponent: int = MOST_EXPONENT,
    parameters: Sequence[str] | None = None,
) -> Lanes:
    """Split a captured step into the programs of `width` lanes that train `inner_steps` steps per round.

    `density` is the share of the parameters that a message holds: 1, 1/8, 1/16, 1/32 or 1/64. With None,
    which only a single lane may have, nothing is exchanged. A lane absorbs the mean of the messages times
    `rate`. The changes that its message leaves out stay in its error feedback, which the next emit multiplies
    by `decay`. `parameters` names the trained tensors; only a step that was not captured in this process,
    such as one from a bundle, needs it. Raises `LanesError`.
    """
    block = _block(density, width)
    if not 1 <= width <= MOST_LANES:
        raise LanesError("width", expected=f"1 to {MOST_LANES} lanes", got=str(width))
    if inner_steps < 1:
        raise LanesError("inner_steps", expected="at least one step a round", got=str(inner_steps))
    if not LEAST_CUT <= most_exponent <= LARGEST_CUT:
        raise LanesError("most_exponent", expected=f"{LEAST_CUT} to {LARGEST_CUT}", got=str(most_exponent))
    for name, number in (("rate", rate), ("decay", decay)):
        if not abs(number) <= torch.finfo(torch.float32).max:  # also refuses NaN
            raise LanesError(name, expected="a number of f32", got=str(number))
    names = _trained(captured, parameters)
    step = captured.step_program
    if block is None:
        return Lanes(captured, width, block, inner_steps, most_exponent, names, step, step, step)
    of_state = dict(zip(step.state, step.state_types, strict=True))
    length = _length(sum(of_state[name].elements for name in names), block)
    own = _own_types(length, block)
    taken = sorted(own.keys() & of_state.keys())
    if taken:
        raise LanesError(
            "state", expected="no tensor named as a lane's are", got=", ".join(taken), remedy="rename it"
        )
    types = of_state | own
    inner = replace(
        step, program=_widened(step.program, len(of_state), tuple(own.values())), state=tuple(types)
    )
    attributes = {"block": block, "most_exponent": most_exponent}
    split = Lanes(
        captured,
        width,
        block,
        inner_steps,
        most_exponent,
        names,
        _absorbing(types, names, width, {**attributes, "rate": rate}),
        inner,
        _emitting(types, names, {**attributes, "decay": decay}),
    )
    for one in (split.absorb, split.inner, split.emit):
        one.check()
    return split


def _block(density: float | Fraction | None, width: int) -> int | None:
    if density is None:
        if width != 1:
            raise LanesError(
                "density", expected="a density of messages for several lanes", got="none", remedy="say one"
            )
        return None
    found = {Fraction(1, block): block for block in BLOCKS}.get(Fraction(density).limit_denominator(1 << 20))
    if found is None:
        densities = ", ".join(str(Fraction(1, block)) for block in BLOCKS)
        raise LanesError("density", expected=f"one of {densities}", got=str(density))
    return found


def _trained(captured: CapturedStep, given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the trained tensors, in the state's order. Raises `LanesError`."""
    if given is None:
        if captured.origin is None:
            raise LanesError(
                "parameters",
                expected="their names, of a step that was not captured here",
                got="none",
                remedy="give them",
            )
        given = [name for traced in captured.origin.traced for name in traced.parameters]
    step = captured.step_program
    types = dict(zip(step.state, step.state_types, strict=True))
    wrong = [name for name in given if name not in types or types[name].dtype is not DType.F32]
    if wrong or not given:
        raise LanesError(
            "parameters", expected="names of f32 tensors of the state", got=", ".join(wrong) or "none"
        )
    return tuple(name for name in step.state if name in set(given))


def _length(count: int, block: int) -> int:
    """`count` rounded up to a multiple of `SHARED` blocks of `block` numbers."""
    whole = SHARED * block
    return -(-count // whole) * whole


def _own_types(length: int, block: int) -> dict[str, TensorType]:
    row, blocks = TensorType(DType.F32, (length,)), length // block
    return {
        NUMBER: TensorType(DType.I32, ()),
        BASE: row,
        FEEDBACK: row,
        **({INDEX: TensorType(DType.U8, (blocks,))} if block > 1 else {}),
        VALUE: TensorType(DType.U8, (blocks,)),
        EXPONENT: TensorType(DType.I32, (blocks // SHARED,)),
        COUNT: TensorType(DType.F32, ()),
    }


def _widened(program: Program, state: int, more: Sequence[TensorType]) -> Program:
    """The program with the tensors `more` added to its state. As inputs, they follow the first `state`
    inputs; as outputs, they come last. The program passes them on unchanged.
    """

    def moved(instruction: Instruction) -> Instruction:
        if instruction.op is not Op.INPUT:
            return instruction
        k = decode_index(instruction.attributes)
        return replace(instruction, attributes=encode_index(k if k < state else k + len(more)))

    instructions = [moved(instruction) for instruction in program.instructions]
    for k, type_ in enumerate(more, state):
        leaf = instructions[-1].leaves.stop
        instructions.append(Instruction(Op.INPUT, leaf, (), (type_,), encode_index(k)))
        instructions.append(Instruction(Op.OUTPUT, leaf + 1, (Operand(leaf, type_),), (), encode_index(k)))
    inputs = (*program.inputs[:state], *more, *program.inputs[state:])
    outputs = (*program.outputs, *more)
    return replace(program, inputs=inputs, outputs=outputs, instructions=tuple(instructions))


def _absorbing(
    types: Mapping[str, TensorType], names: Sequence[str], width: int, attributes: Mapping[str, float]
) -> StepProgram:
    b = Builder("lane absorb")
    state = {name: b.input(type_) for name, type_ in types.items()}
    sent = [type_ for name, type_ in types.items() if name.startswith("message.")]
    inbox = [b.input(type_) for _ in range(width) for type_ in sent]
    own = [state[name] for name in types if name.startswith("message.") and name != COUNT]
    shared = _row(b, [state[name] for name in names], types[BASE].elements)
    base, feedback = absorb.call(b, shared, state[FEEDBACK], state[NUMBER], *own, *inbox, **attributes)
    state |= _parts(b, base, {name: types[name] for name in names}) | {BASE: base, FEEDBACK: feedback}
    return _built(b, state, len(inbox))


def _emitting(
    types: Mapping[str, TensorType], names: Sequence[str], attributes: Mapping[str, float]
) -> StepProgram:
    b = Builder("lane emit")
    state = {name: b.input(type_) for name, type_ in types.items()}
    base, row = state[BASE], types[BASE]
    local = _row(b, [state[name] for name in names], row.elements)
    *message, feedback = emit.call(b, base, local, state[FEEDBACK], **attributes)
    sent = [name for name in types if name.startswith("message.") and name != COUNT]
    state |= _parts(b, base, {name: types[name] for name in names})
    state |= {
        BASE: b.constant(DType.F32, row.shape, 0.0),
        FEEDBACK: feedback,
        COUNT: b.constant(DType.F32, (), 1.0),
    }
    return _built(b, state | dict(zip(sent, message, strict=True)), 0)


def _built(b: Builder, state: Mapping[str, Value], inbox: int) -> StepProgram:
    for value in state.values():
        b.output(value)
    return StepProgram(b.build(), tuple(state), 0, inbox)


def _row(b: Builder, tensors: Sequence[Value], length: int) -> Value:
    """All elements in one row, padded with zeros to `length`."""
    pieces = [b.reshape(x, (x.type.elements,)) for x in tensors]
    missing = length - sum(piece.type.elements for piece in pieces)
    if missing:
        pieces.append(b.constant(DType.F32, (missing,), 0.0))
    return concatenated(b, pieces, 0)


def _parts(b: Builder, row: Value, types: Mapping[str, TensorType]) -> dict[str, Value]:
    """The tensors in a row: the inverse of `_row`."""
    ends = [0]
    for type_ in types.values():
        ends.append(ends[-1] + type_.elements)
    return {
        name: b.reshape(b.slice(row, 0, start, start + type_.elements), type_.shape)
        for start, (name, type_) in zip(ends, types.items(), strict=False)
    }


def _zeros(type_: TensorType) -> Tensor:
    return torch.zeros(type_.shape, dtype=type_.dtype.storage)
