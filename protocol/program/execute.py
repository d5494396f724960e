"""Runs programs on torch tensors: primitives one by one, calls by a fused kernel or by the callee's body.

A kernel is chosen by the callee's program id, never by a name (dispute.md section 4). Values are freed after
their last use; `trace` uses the same evaluator, but keeps and hashes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import torch
from torch import Tensor

from protocol.numerics.types import NumericsError
from protocol.program.attributes import decode_index
from protocol.program.errors import ValueMismatch
from protocol.program.instruction import Instruction
from protocol.program.liveness import releases, releases_of, touched
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.program import Program
from protocol.program.types import TensorType

Path = tuple[int, ...]
"""The numbers of the `call` instructions that lead to a frame, from the top frame down; () is the top frame."""

Kernel = Callable[[Sequence[Tensor]], tuple[Tensor, ...]]
"""Maps the operands of a call to its results, with the bits of the callee's body.

Never writes to the operands. Raises `NumericsError` for operands that it does not support.
"""


@dataclass(frozen=True)
class Fusion:
    """Instructions of a frame that fast execution may run as one, with the same bits.

    `numbers` are the instructions that are replaced. `run` is called in place of instruction `at`, where all
    `operands` are available. `operands` and `results` are trace leaves: what `run` takes and what it returns.
    Other instructions read no value of the replaced instructions except `results`. `ready` says whether the
    fusion can run now.
    """

    numbers: frozenset[int]
    at: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    ready: Callable[[], bool]
    run: Callable[[Sequence[Tensor]], tuple[Tensor, ...]]


Fuse = Callable[[Program, Mapping[bytes, Kernel]], Sequence[Fusion]]
"""Finds the fusions in a program's own frame, given the kernels by program id."""

Plan = Sequence[tuple[int | Fusion, tuple[int, ...]]]

NO_KERNELS: Mapping[bytes, Kernel] = MappingProxyType({})
CPU = torch.device("cpu")

_log = logging.getLogger("assay.program")

VIEW = 4
"""Maximum storage of a value, as a multiple of the value's size. A view of larger storage is copied.

For example, queries may stay a view of the product that holds queries, keys and values. A single element of a
large tensor is copied; otherwise it would keep the whole tensor in memory.
"""


@dataclass(frozen=True, slots=True)
class Site:
    """One instruction of one frame."""

    path: Path
    program: Program
    number: int

    @property
    def instruction(self) -> Instruction:
        """The instruction at this site."""
        return self.program.instructions[self.number]


class Evaluator(Protocol):
    """Computes the values of a trace, one instruction at a time."""

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results of the instruction at `site`.

        An `input` instruction has the frame's input as its operand.
        """


class Interpreter:
    """The honest evaluator. `kernels` maps program ids to kernels. Constants are made on `device`.

    With `fuse`, an interpreter whose device is a CPU runs the fusions of a frame if all of them are ready. It
    then does not call `results` for the instructions that these fusions replace.
    """

    def __init__(
        self,
        kernels: Mapping[bytes, Kernel] = NO_KERNELS,
        device: torch.device = CPU,
        fuse: Fuse | None = None,
    ) -> None:
        self._kernels = kernels
        self._device = device
        self._constants: dict[tuple[bytes, int], Tensor] = {}
        self._unfit: set[bytes] = set()
        self._fuse = fuse
        self._fused: dict[bytes, tuple[tuple[Fusion, ...], Plan]] = {}

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results of one instruction. A call runs the callee's kernel or body.

        If a kernel refuses its operands, or its results do not have the callee's types, the callee runs by
        its body from then on. Raises `ValueMismatch` if a primitive's result does not have the instruction's
        type.
        """
        instruction = site.instruction
        if instruction.op is Op.INPUT:
            return (operands[0],)
        if instruction.op is Op.CALL:
            return self._call(site, operands)
        if instruction.op is Op.CONSTANT:
            return (self._constant(site),)
        result = (_compact(PRIMITIVES[instruction.op].evaluate(instruction, operands)),)
        require_types(
            instruction.results, result, f"results of instruction {site.number} of {site.program.name}"
        )
        return result

    def run(self, program: Program, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs of a checked program.

        The outputs are contiguous. Do not write to them: an output may be one of the inputs.

        Raises `ValueMismatch` if the inputs do not have the program's types, or if the results of an
        instruction do not have its types.
        """
        outputs = self.run_frame(program, inputs, ())
        # An output that calls only pass on may be a view of an input.
        whole = {id(x): x.contiguous() for x in outputs}
        return tuple(whole[id(x)] for x in outputs)

    def run_frame(self, program: Program, inputs: Sequence[Tensor], path: Path) -> tuple[Tensor, ...]:
        """The outputs of the frame at `path`. An output that is an input of the frame, or a result of a call,
        is not copied. So it need not be contiguous, unlike an output of `run`.

        Copying such outputs in each frame would not be covered by the cost of a call, which is 2^14
        operations. Any other output is made contiguous, and the cost of the instruction that made the value
        covers this copy. If several outputs have the same value, only one copy is made.
        """
        require_types(program.inputs, inputs, f"inputs of {program.name}")
        values: dict[int, Tensor] = {}
        outputs: dict[int, Tensor] = {}
        for work, freed in self._plan(program):
            if isinstance(work, Fusion):
                results = work.run([values[leaf] for leaf in work.operands])
                types = [program.leaf_type(leaf) for leaf in work.results]
                require_types(types, results, f"results of instructions of {program.name} that run as one")
                values.update(zip(work.results, results, strict=True))
                del results
            else:
                instruction = program.instructions[work]
                operands = gather_operands(instruction, values, inputs)
                if instruction.op is Op.OUTPUT:
                    leaf = instruction.operands[0].leaf
                    if program.instructions[program.producer(leaf)].op in PRIMITIVES:
                        values[leaf] = values[leaf].contiguous()
                    outputs[decode_index(instruction.attributes)] = values[leaf]
                else:
                    results = self.results(Site(path, program, work), operands)
                    values.update(zip(instruction.leaves, results, strict=True))
                    del results
                del operands  # like `results`, it would hold freed values while the next instruction runs
            for leaf in freed:
                del values[leaf]
        return tuple(outputs[k] for k in range(len(program.outputs)))

    def _constant(self, site: Site) -> Tensor:
        """The tensor of a `constant` instruction.

        On a device other than the CPU the tensor is cached, so that it is copied to the device only in the
        first step.
        """
        evaluate = PRIMITIVES[Op.CONSTANT].evaluate
        if self._device.type == "cpu":
            return evaluate(site.instruction, ())
        key = (site.program.id, site.number)
        if key not in self._constants:
            self._constants[key] = evaluate(site.instruction, ()).to(self._device)
        return self._constants[key]

    def _plan(self, program: Program) -> Plan:
        """The work of a frame in order: instructions and fusions, each with the leaves to free after it."""
        if self._fuse is None or self._device.type != "cpu":
            return list(enumerate(releases(program)))
        if program.id not in self._fused:
            found = tuple(self._fuse(program, self._kernels))
            self._fused[program.id] = found, _plan_of(program, found)
        fusions, plan = self._fused[program.id]
        if fusions and all(fusion.ready() for fusion in fusions):
            return plan
        return list(enumerate(releases(program)))

    def _call(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        callee = site.program.callee(site.number)
        kernel = self._kernels.get(callee.id)
        if kernel is not None and callee.id not in self._unfit:
            try:
                results = kernel(operands)
                require_types(callee.outputs, results, f"results of the kernel of {callee.name}")
                return tuple(map(_compact, results))
            except (NumericsError, ValueMismatch) as error:
                self._unfit.add(callee.id)
                _log.warning("a call of %s runs without its kernel: %s", callee.name, error)
        return self.run_frame(callee, operands, (*site.path, site.number))


def _plan_of(program: Program, fusions: Sequence[Fusion]) -> Plan:
    instead = {fusion.at: fusion for fusion in fusions}
    gone = {number for fusion in fusions for number in fusion.numbers}
    order: list[int | Fusion] = [
        instead.get(number, number)
        for number in range(len(program.instructions))
        if number in instead or number not in gone
    ]
    leaves = [
        (*work.operands, *work.results) if isinstance(work, Fusion) else touched(program.instructions[work])
        for work in order
    ]
    return list(zip(order, releases_of(leaves), strict=True))


def _compact(value: Tensor) -> Tensor:
    """The value, or a copy if the value is a view of far larger storage."""
    if value.untyped_storage().nbytes() <= VIEW * value.numel() * value.element_size():
        return value
    return value.clone(memory_format=torch.contiguous_format)


def gather_operands(
    instruction: Instruction, values: Mapping[int, Tensor], inputs: Sequence[Tensor]
) -> list[Tensor]:
    """The tensors that an instruction reads: its operands from `values` or, for an `input`, the frame's input."""
    if instruction.op is Op.INPUT:
        return [inputs[decode_index(instruction.attributes)]]
    return [values[operand.leaf] for operand in instruction.operands]


def require_types(types: Sequence[TensorType], tensors: Sequence[Tensor], what: str) -> None:
    """Raise `ValueMismatch` unless there is one tensor for each of `types`, with its storage type and its shape."""
    if len(types) != len(tensors):
        raise ValueMismatch(f"{len(types)} {what}", str(len(tensors)))
    for k, (type_, tensor) in enumerate(zip(types, tensors, strict=True)):
        if tensor.dtype != type_.dtype.storage or tuple(tensor.shape) != type_.shape:
            raise ValueMismatch(
                f"{type_} as number {k} of the {what}", f"{tensor.dtype} {list(tensor.shape)}"
            )
