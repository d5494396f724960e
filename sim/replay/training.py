"""The training task of a replay. Its step has two state tensors and one call, so that a whole game takes
seconds.

Right and false runs are both really computed. In a false run, the last step of each false segment flips one
bit of one product inside the call, and everything after it is computed honestly. A challenger bisects down to
that element, and the EVM computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from torch import Tensor

from protocol.commitments import step_tree
from protocol.dispute.provider import Frame
from protocol.execution.replay import Executor, HonestExecutor, Replay
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, Op, Program, Site, StepProgram, TensorType
from protocol.program.step import State

STEPS: Final = 2
"""C: steps of a segment."""
THINNING: Final = 1
"""w: digests cover every chunk."""
HALF: Final = 0x3F000000
_WEIGHTS: Final = TensorType(DType.F32, (7,))
_BIT: Final = 1 << 22
"""The top bit of a binary32 fraction, large enough to survive the sum that follows."""


def _scaled(factor: int) -> Program:
    b = Builder("scaled")
    x = b.input(_WEIGHTS)
    b.output(b.mul(x, b.f32(factor)))
    return b.build()


def step_program(factor: int = HALF) -> StepProgram:
    """weights' = factor x weights + data; count' = count + 1. `factor` holds the bits of a binary32 number."""
    b = Builder("replayed")
    weights, count, data = b.input(_WEIGHTS), b.input(TensorType(DType.I32, ())), b.input(_WEIGHTS)
    b.output(b.add(b.call(_scaled(factor), weights)[0], data))
    b.output(b.add(count, b.i32(1)))
    program = StepProgram(b.build(), ("weights", "count"), datasets=1, constants=0)
    program.check()
    return program


class _Flipping(Interpreter):
    """Computes honestly, except for one bit of the product inside the call."""

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The instruction's results."""
        results = super().results(site, operands)
        if site.path and site.instruction.op is Op.MUL:
            product = results[0].clone()
            product.view(torch.int32)[3] ^= _BIT
            return (product,)
        return results


class Cheating:
    """An executor that computes honestly, except in the last step of each of the segments 1 … `false`. There
    it flips one bit, as `_Flipping` does.
    """

    def __init__(self, program: StepProgram, fixed: Sequence[Tensor], false: int) -> None:
        self._honest = HonestExecutor(program, fixed, Interpreter())
        self._flipping = HonestExecutor(program, fixed, _Flipping())
        self._false = false

    def step(self, state: State, number: int, /) -> State:
        """The state after the step."""
        return self._at(number).step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        """The step as a trace, with all its values."""
        return self._at(number).trace(state, number)

    def _at(self, number: int) -> Executor:
        false = number % STEPS == 0 and number // STEPS <= self._false
        return self._flipping if false else self._honest


@dataclass(frozen=True)
class Training:
    """The task of a replay: K segments of `STEPS` steps. A different `factor` gives a different program."""

    segments: int
    factor: int = HALF

    @cached_property
    def program(self) -> StepProgram:
        """The committed program."""
        return step_program(self.factor)

    @cached_property
    def fixed(self) -> tuple[Tensor, ...]:
        """The dataset."""
        return (torch.arange(7, dtype=torch.float32) / 7,)

    @cached_property
    def initial(self) -> State:
        """The state before the first step."""
        return {
            "weights": torch.arange(1, 8, dtype=torch.float32),
            "count": torch.tensor(0, dtype=torch.int32),
        }

    def by(self, false: int) -> Trained:
        """The run of a solver whose first `false` segments are false."""
        return Trained(self, false)


class Trained:
    """A solver's whole run, and the verifiers' replays of it."""

    def __init__(self, training: Training, false: int) -> None:
        self._training = training
        self.false = false
        self._executor = Cheating(training.program, training.fixed, false)
        self.states = self._states(self._executor)
        self.roots = [training.program.state_root(state) for state in self.states]

    @property
    def run(self) -> Replay:
        """The solver's own run."""
        return self._replay(self._executor, self.states, self.roots)

    @cached_property
    def false_segments(self) -> frozenset[int]:
        """The segments whose end state differs in an honest replay. These are the first `false` segments, but
        they are found by replaying all segments.
        """
        numbers = range(1, self._training.segments + 1)
        return frozenset(number for number in numbers if self.steps_root(number) is None)

    def steps_root(self, segment: int) -> bytes | None:
        """Root of the step tree that a verifier's replay of a segment gives; None if the segment is false."""
        roots = self._replay(self._honest, self.states, self.roots).step_roots(segment)
        return step_tree(list(roots)).root if roots[-1] == self.roots[segment] else None

    def tensors(self, segment: int, step: int) -> list[bytes]:
        """Canonical bytes of each tensor of state `step` (0 to C) of a segment. The state comes from a
        verifier's replay, and the tensors are in the program's order.
        """
        state = self.checked.state(segment, step)
        return [bytes(tensor.data) for tensor in self._training.program.checkpoint(state).tensors]

    @property
    def checked(self) -> Replay:
        """A verifier's honest run from the served checkpoints."""
        return self._replay(self._honest, self.states, self.roots)

    @property
    def repeated(self) -> Replay:
        """A verifier's honest run from the initial state. It is needed if nothing is served."""
        states = self._states(self._honest)
        return self._replay(
            self._honest, states, [self._training.program.state_root(state) for state in states]
        )

    @property
    def _honest(self) -> Executor:
        return HonestExecutor(self._training.program, self._training.fixed, Interpreter())

    def _states(self, executor: Executor) -> list[State]:
        """The initial state, and the states at the ends of all segments."""
        states = [self._training.initial]
        state = self._training.initial
        for number in range(1, self._training.segments * STEPS + 1):
            state = executor.step(state, number)
            if number % STEPS == 0:
                states.append(state)
        return states

    def _replay(self, executor: Executor, states: Sequence[State], roots: Sequence[bytes]) -> Replay:
        task = self._training
        return Replay(task.program, task.fixed, executor, STEPS, lambda i: states[i], lambda: roots)
