"""The context that every rule receives: the builder, conversions, constants, and facts about the graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor

from protocol.capture.analysis.roles import Roles
from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.views import View
from protocol.capture.streams import FIRST_OPERATION_STREAM
from protocol.capture.types import PROGRAM_TYPES
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import Attribute, LibraryFunction

Scalar = bool | int | float


@dataclass(frozen=True)
class Draw:
    """Random numbers from one Philox `stream`: a mask with 1 where a word is less than `below`, or uniform
    numbers if `below` is None.
    """

    stream: int
    below: int | None


class Lowering:
    """The context in which one graph is lowered. The step's random numbers are derived from `key` (u32 [2])
    and `step` (u32 []); they use `first_stream` and the streams after it.
    """

    def __init__(
        self,
        builder: Builder,
        roles: Roles,
        key: Value,
        step: Value,
        first_stream: int = FIRST_OPERATION_STREAM,
    ) -> None:
        self.builder = builder
        self.roles = roles
        self.key, self.step = key, step
        self._streams = count(first_stream)
        self.coverage: Counter[tuple[str, str]] = Counter()
        """Counts each pair of an ATen operation and what it was lowered to (`result.Coverage`)."""
        self.draws: dict[str, Draw] = {}
        """How random numbers are drawn, by node name. Masks that are all 0 or all 1 are not drawn."""
        self.called: list[str] = []
        """Library functions that the current rule has called."""

    def call(self, function: LibraryFunction, *operands: Value, **attributes: Attribute) -> Value:
        """Call a library function with one result."""
        self.called.append(function.name)
        result: Value = function.call(self.builder, *operands, **attributes)
        return result

    def call_several(
        self, function: LibraryFunction, *operands: Value, **attributes: Attribute
    ) -> tuple[Value, ...]:
        """Call a library function with several results."""
        self.called.append(function.name)
        results: tuple[Value, ...] = function.call(self.builder, *operands, **attributes)
        return results

    def constant(self, value: Scalar, dtype: DType) -> View:
        """A constant of one element; f32 literals are rounded to f32."""
        return View.of(self.builder.constant(dtype, (), value))

    def elements(self, x: View, dtype: DType | None = None) -> Value:
        """All elements of the view in order, cast to `dtype` if it is given."""
        return self._cast(x.elements(self.builder), dtype)

    def operand(self, x: View | Scalar, dtype: DType) -> Value:
        """A view or a Python number as the operand of a broadcasting primitive, in the type `dtype`. An axis
        along which a view repeats its elements has size 1 in the operand.
        """
        if isinstance(x, View):
            return self._cast(x.broadcast(self.builder), dtype)
        return self.constant(x, dtype).value

    def _cast(self, x: Value, dtype: DType | None) -> Value:
        if dtype is None or x.dtype is dtype:
            return x
        if x.dtype is DType.F32 and dtype is not DType.BOOL:
            raise Unsupported(
                "a conversion from float to integer", "round where the data are made, not in the model"
            )
        return self.builder.cast(x, dtype)

    @staticmethod
    def dtype_of(node: torch.fx.Node) -> DType:
        """The type of a node's result; of the first one if there are several."""
        value = node.meta["val"]
        return dtype_of(value if isinstance(value, Tensor) else next(v for v in value if v is not None))

    def next_draw(self, node: torch.fx.Node, below: int | None) -> Draw:
        """A draw from a Philox stream that nothing else in the step uses; streams are numbered in the graph's order."""
        self.draws[node.name] = Draw(next(self._streams), below)
        return self.draws[node.name]


def dtype_of(value: Tensor) -> DType:
    """The program type of a tensor. Raises `Unsupported` for float64, bfloat16 and the like."""
    if value.dtype not in PROGRAM_TYPES:
        raise Unsupported(f"a tensor of {value.dtype}", "keep the model and the objective in float32")
    return PROGRAM_TYPES[value.dtype]
