"""Runs a step program in the processes of a group; each process runs a share of the units."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from protocol.program.attributes import decode_index
from protocol.program.execute import Interpreter, Site, gather_operands, require_types
from protocol.program.opcodes import Op
from protocol.program.parallel.errors import TooManyProcesses
from protocol.program.parallel.exchange import Group, Transfer
from protocol.program.parallel.plan import Plan, plan
from protocol.program.parallel.units import units
from protocol.program.program import Program
from protocol.program.step import State, StepProgram


class SharedStep:
    """A step program shared by the processes of `group`.

    All processes must call `step` with the same state; each gets the whole next state. `fixed` are the
    dataset's tensors, then the constants. Raises `TooManyProcesses`.
    """

    def __init__(
        self, program: StepProgram, fixed: Sequence[Tensor], interpreter: Interpreter, group: Group
    ) -> None:
        most = max(1, len(units(program.program)))
        if group.size > most:
            raise TooManyProcesses(most, group.size)
        self._program = program
        self._fixed = tuple(fixed)
        self._interpreter = interpreter
        self._group = group
        self._plan = plan(program.program, group.rank, group.size)

    def step(self, state: State) -> dict[str, Tensor]:
        """The next state, with the same bits as from one process. Raises `PartnerLost` and `ValueMismatch`."""
        program = self._program.program
        inputs = (*self._program.order(state), *self._fixed)
        require_types(program.inputs, inputs, f"inputs of {program.name}")
        outputs = _Run(program, inputs, self._interpreter, self._group).outputs(self._plan)
        return dict(zip(self._program.state, outputs, strict=True))

    def agreed_root(self, state: State) -> bytes:
        """The state root, if all processes agree on it.

        If they do not, raises `RanksDisagree` in all of them. Raises `PartnerLost`.
        """
        root = self._program.state_root(state)
        self._group.require_equal(root)
        return root


class _Run:
    """One step of one process: the available values, and results of units in transit."""

    def __init__(
        self, program: Program, inputs: Sequence[Tensor], interpreter: Interpreter, group: Group
    ) -> None:
        self._program = program
        self._inputs = inputs
        self._interpreter = interpreter
        self._group = group
        self._values: dict[int, Tensor] = {}
        self._made: dict[int, tuple[Tensor, ...]] = {}
        self._under_way: dict[int, Transfer] = {}

    def outputs(self, plan: Plan) -> list[Tensor]:
        """The program's outputs."""
        found: dict[int, Tensor] = {}
        sent = {number for units in plan.exchanges.values() for number, _ in units}
        for place, number in enumerate(plan.order):
            self._exchange(plan, place)
            instruction = self._program.instructions[number]
            for operand in instruction.operands:
                if operand.leaf not in self._values:
                    self._arrive(self._program.producer(operand.leaf))
            operands = gather_operands(instruction, self._values, self._inputs)
            if instruction.op is Op.OUTPUT:
                found[decode_index(instruction.attributes)] = operands[0].contiguous()
            else:
                results = self._interpreter.results(Site((), self._program, number), operands)
                if number in sent:
                    self._made[number] = results
                else:
                    self._values.update(zip(instruction.leaves, results, strict=True))
            for leaf in plan.freed[place]:
                self._values.pop(leaf, None)
        self._exchange(plan, len(plan.order))
        for number in list(self._under_way):
            self._arrive(number)
        return [found[k] for k in range(len(self._program.outputs))]

    def _exchange(self, plan: Plan, place: int) -> None:
        for number, source in plan.exchanges.get(place, ()):
            types = self._program.instructions[number].results
            results = self._made.pop(number) if source == self._group.rank else None
            self._under_way[number] = self._group.exchange(source, types, results)

    def _arrive(self, number: int) -> None:
        results = self._under_way.pop(number).wait()
        self._values.update(zip(self._program.instructions[number].leaves, results, strict=True))
