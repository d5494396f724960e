"""Runs that are wrong in one element of one instruction in one step, and games about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from protocol.dispute.in_process import Serving, Silent
from protocol.dispute.provider import Frame
from protocol.dispute.view import Verdict
from protocol.execution.replay import HonestExecutor, Replay
from protocol.program.execute import Interpreter, Kernel, Path
from protocol.program.opcodes import Op
from protocol.program.program import Program
from protocol.program.step import State
from tests.adversaries.covering import covers_up
from tests.adversaries.perturbing import Perturbation, PerturbedExecutor, one_ulp, producer_of_output
from tests.chain.arena import Arena, Ended, Subject, replay

SEGMENTS, STEPS = 2, 2
WRONG_STEP = 3  # segment 2, step 1
SERVED_TRANSACTIONS = 12
SERVED_GAS = 3_000_000
JUDGE_GAS = 300_000

Site = tuple[Path, int]
"""Call path and number of a primitive."""


class FalseState:
    """An executor with a perturbed trace. In addition, one weight of its state is wrong in step `WRONG_STEP`,
    so that the step can be challenged in any case.

    This is needed because some wrong values never reach the state: they are in a branch that is not selected,
    or rounding removes the difference.
    """

    def __init__(self, task: Subject, kernels: Mapping[bytes, Kernel], perturbation: Perturbation) -> None:
        end = Perturbation(*producer_of_output(task.program.program, 0), 0, one_ulp, WRONG_STEP, WRONG_STEP)
        self._states = PerturbedExecutor(task.program, task.fixed, kernels, [end])
        self._traces = PerturbedExecutor(task.program, task.fixed, kernels, [perturbation])

    def step(self, state: State, number: int, /) -> State:
        """The state after the step."""
        return self._states.step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        """The step with all its values."""
        return self._traces.trace(state, number)


class Corruptions:
    """Corrupted runs of one subject, which has `SEGMENTS` segments of `STEPS` steps."""

    def __init__(self, subject: Subject, kernels: Mapping[bytes, Kernel]) -> None:
        self.subject = subject
        self.kernels = kernels

    @cached_property
    def honest(self) -> Replay:
        """The honest run."""
        task = self.subject
        return replay(task, HonestExecutor(task.program, task.fixed, Interpreter(self.kernels)))

    @cached_property
    def sites(self) -> list[Site]:
        """Every primitive of the step in execution order, including those of callees, but no outputs."""
        found: list[Site] = []

        def visit(program: Program, path: Path) -> None:
            for number, instruction in enumerate(program.instructions):
                if instruction.op is Op.CALL:
                    visit(program.callee(number), (*path, number))
                elif instruction.op is not Op.OUTPUT:
                    found.append((path, number))

        visit(self.subject.program.program, ())
        return found

    def program(self, path: Path) -> Program:
        """The program that runs at the end of a path."""
        program = self.subject.program.program
        for number in path:
            program = program.callee(number)
        return program

    def wrong_run(self, site: Site, choose: Callable[[int], Sequence[int]]) -> tuple[Replay, int] | None:
        """A run that is wrong in one element of the instruction at `site`, and the index of that element.
        `choose` takes the count of the instruction's elements and returns the indices to try.

        If the instruction is inside a call, the wrong element must change a result of the call in the top
        frame. Returns None if no element that was tried does this.
        """
        path, number = site
        true = self.honest.frame(2, 1)
        for element in choose(self.program(path).instructions[number].result.elements):
            for flip in (1, 0x4000_0000):
                change = Perturbation(path, number, element, flip.__xor__, WRONG_STEP, WRONG_STEP)
                run = replay(self.subject, FalseState(self.subject, self.kernels, change))
                if not path or self._leaves_the_call(path[0], run.frame(2, 1), true):
                    return run, element
        return None

    def play(self, chain: Arena, run: Replay, *, silent: bool = False) -> Ended:
        """Submit the run, and challenge it at its first wrong segment. With `silent` the solver serves
        nothing, and the challenge is blind.
        """
        (task,) = chain.submitted(self.subject, [run])
        pairs = zip(run.segment_roots() or (), self.honest.segment_roots() or (), strict=True)
        segment = next(i for i, (claimed, own) in enumerate(pairs) if claimed != own)
        provider = Silent() if silent else Serving(run)
        return chain.play(
            task, self.subject, run, self.honest, provider, None if silent else segment, covers_up
        )

    def check(self, chain: Arena, site: Site, choose: Callable[[int], Sequence[int]]) -> bool:
        """Corrupt an element of the site, play the game, and check that exactly this element is judged,
        within the limits of gas and transactions. Returns False if no corruption has an effect.
        """
        made = self.wrong_run(site, choose)
        if made is None:
            return False
        run, element = made
        ended = self.play(chain, run)
        assert ended.verdict is Verdict.SOLVER_FALSE
        assert (ended.view.path, ended.judged["n"]) == site
        if "element" in ended.judged:  # an input is judged as an edge: its root, not an element
            assert ended.judged["element"] == element
            assert ended.judged["claimed"] != ended.judged["computed"]
        assert ended.gas[-1] < JUDGE_GAS
        assert len(ended.gas) <= SERVED_TRANSACTIONS
        assert sum(ended.gas) < SERVED_GAS
        return True

    def _leaves_the_call(self, call: int, false: Frame, true: Frame) -> bool:
        instruction = self.subject.program.program.instructions[call]
        return any(false.root(leaf) != true.root(leaf) for leaf in instruction.leaves)
