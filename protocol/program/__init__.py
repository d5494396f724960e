"""Programs as data: instructions, their bytes, checking, running, tracing (encoding.md sections 3 to 5).

`capture` turns torch modules into programs, `library` has functions made of primitives, and `dispute` plays
the games.
"""

from protocol.program.builder import Builder, Value
from protocol.program.check import check
from protocol.program.cost import Cost, cost
from protocol.program.errors import CheckError, EncodingError, ProgramError, RuleError, ValueMismatch
from protocol.program.execute import Evaluator, Interpreter, Kernel, Path, Site
from protocol.program.instruction import Instruction, Operand
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES, Reduction, chunks_needed
from protocol.program.program import (
    InstructionOpening,
    Program,
    ProgramOpening,
    decode_closure,
)
from protocol.program.repeat import repeat
from protocol.program.step import StepProgram
from protocol.program.trace import Trace, trace
from protocol.program.types import TensorType

__all__ = [
    "PRIMITIVES",
    "Builder",
    "CheckError",
    "Cost",
    "EncodingError",
    "Evaluator",
    "Instruction",
    "InstructionOpening",
    "Interpreter",
    "Kernel",
    "Op",
    "Operand",
    "Path",
    "Program",
    "ProgramError",
    "ProgramOpening",
    "Reduction",
    "RuleError",
    "Site",
    "StepProgram",
    "TensorType",
    "Trace",
    "Value",
    "ValueMismatch",
    "check",
    "chunks_needed",
    "cost",
    "decode_closure",
    "repeat",
    "trace",
]
