"""What every rule works with: the builder, values in a given type, constants, and facts about the graph."""

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
    """Random numbers of Philox's `stream`: ones where a word is below `below`, else zeros; uniform ones without it."""

    stream: int
    below: int | None


class Lowering:
    """The context of one graph's lowering. `key`, u32 [2], and `step`, u32 [], key the random numbers of a step, which
    come from `first_stream` and those after it."""

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
        """How often each ATen operation became what (`result.Coverage`)."""
        self.draws: dict[str, Draw] = {}
        """How random numbers are drawn, by the name of their node; a mask of one value is not drawn."""
        self.called: list[str] = []
        """Library functions that the current rule has called."""

    def call(self, function: LibraryFunction, *operands: Value, **attributes: Attribute) -> Value:
        """Call a library function of one result."""
        self.called.append(function.name)
        result: Value = function.call(self.builder, *operands, **attributes)
        return result

    def call_several(
        self, function: LibraryFunction, *operands: Value, **attributes: Attribute
    ) -> tuple[Value, ...]:
        """Call a library function of several results."""
        self.called.append(function.name)
        results: tuple[Value, ...] = function.call(self.builder, *operands, **attributes)
        return results

    def constant(self, value: Scalar, dtype: DType) -> View:
        """One element of a type; f32 literals are rounded to f32."""
        return View.of(self.builder.constant(dtype, (), value))

    def elements(self, x: View, dtype: DType | None = None) -> Value:
        """All elements in order, cast if need be."""
        return self._cast(x.elements(self.builder), dtype)

    def operand(self, x: View | Scalar, dtype: DType) -> Value:
        """An operand of a broadcasting primitive: a view without its repeated axes, or a Python number."""
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
        """The type of a node's result, or of its first one where there are several."""
        value = node.meta["val"]
        return dtype_of(value if isinstance(value, Tensor) else next(v for v in value if v is not None))

    def next_draw(self, node: torch.fx.Node, below: int | None) -> Draw:
        """A draw from a Philox stream that nothing else in the step draws from; numbered in the graph's order."""
        self.draws[node.name] = Draw(next(self._streams), below)
        return self.draws[node.name]


def dtype_of(value: Tensor) -> DType:
    """The program's type for a tensor. Raises `Unsupported` for float64, bfloat16 and the like."""
    if value.dtype not in PROGRAM_TYPES:
        raise Unsupported(f"a tensor of {value.dtype}", "keep the model and the objective in float32")
    return PROGRAM_TYPES[value.dtype]
