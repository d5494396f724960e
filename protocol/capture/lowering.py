"""From a graph of ATen operations to instructions: every node by the rule for its operation, nothing by default.

Rules live in `ops`, one file per family, and register themselves with `lowers`. A node without a rule, or one whose
rule raises `Unsupported`, is a `Problem`; all of them are collected and raised together.
"""

from __future__ import annotations

import inspect
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx.node import map_arg

from protocol.capture.datasets import BATCH_STREAM
from protocol.capture.errors import CaptureError, Problem
from protocol.capture.roles import Roles
from protocol.capture.sources import source_of
from protocol.capture.views import View
from protocol.errors import InternalError
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.errors import ProgramError
from protocol.program.library.function import Attribute, LibraryFunction

Lowered = View | tuple["Lowered", ...] | None
Scalar = bool | int | float
Rule = Callable[..., Lowered]
RuleT = TypeVar("RuleT", bound=Rule)

RULES: dict[OpOverload, Rule] = {}
"""The rule of every supported overload: `rule(lowering, node, *args, **kwargs)` with nodes replaced by their views."""

DTYPES = {
    torch.float32: DType.F32,
    torch.uint8: DType.U8,
    torch.int32: DType.I32,
    torch.int64: DType.I32,  # labels and indices; torch insists on int64, 31 bits are enough for both
    torch.bool: DType.BOOL,
}

DEFAULT_REMEDY = "rewrite it with supported operations, or add a rule for it under protocol/capture/ops"
CONSTANT = "make it of float32, int64 or bool, or register it as a buffer of the model in one of these types"
RANDOM = (
    "draw noise when the data are made: the random numbers of a step are the batch draw and dropout's masks"
)
REMEDIES = dict.fromkeys(
    ("bernoulli", "multinomial", "rand", "rand_like", "randn", "randn_like", "randint"), RANDOM
)


class Unsupported(InternalError):
    """Raised by a rule: this use of the operation has no exact form here. `remedy` says what to do instead."""

    remedy: str

    def __init__(self, what: str, remedy: str = DEFAULT_REMEDY) -> None:
        super().__init__(what)
        self.remedy = remedy


def lowers(*overloads: OpOverload) -> Callable[[RuleT], RuleT]:
    """Make a function the rule of some overloads."""

    def register(rule: RuleT) -> RuleT:
        RULES.update(dict.fromkeys(overloads, rule))
        return rule

    return register


class Lowering:
    """What rules work with: the builder, values as elements of a type, constants, and facts about the graph."""

    def __init__(self, builder: Builder, roles: Roles, key: Value, step: Value) -> None:
        self.builder = builder
        self.roles = roles
        self.key, self.step = key, step
        """What random numbers are drawn with: u32 [2] and u32 []."""
        self._streams = count(BATCH_STREAM + 1)
        self.coverage: Counter[tuple[str, str]] = Counter()
        self.called: list[str] = []
        """Library functions that the rule at work has called."""

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
        """An operand of a broadcasting primitive: a view without its repetitions, or a Python number."""
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

    def next_stream(self) -> int:
        """A Philox stream of one's own; streams are numbered in the graph's order."""
        return next(self._streams)


def dtype_of(value: Tensor) -> DType:
    """The program's type for a torch type. Raises `Unsupported` for float64, bfloat16 and the like."""
    if value.dtype not in DTYPES:
        raise Unsupported(f"a tensor of {value.dtype}", "keep the model and the objective in float32")
    return DTYPES[value.dtype]


def lower(lowering: Lowering, graph: torch.fx.Graph, inputs: Sequence[View]) -> list[View]:
    """Lower every node of `graph` that its outputs need; its placeholders are `inputs`, in order.

    Returns the outputs. Raises one `CaptureError` with all unsupported nodes.
    """
    graph.eliminate_dead_code()
    known: dict[torch.fx.Node, Lowered] = {}
    problems: dict[Problem, None] = {}
    remaining = iter(inputs)
    for node in graph.nodes:
        if node.op == "placeholder":
            known[node] = next(remaining)
        elif node.op == "call_function":
            try:
                rule = _rule_of(node)
                # Where an operand is missing, a problem listed above explains it.
                if all(operand in known for operand in node.all_input_nodes):
                    known[node] = _apply(lowering, node, rule, known)
            except Unsupported as error:
                problems[Problem(f"{node.target}: {error}", error.remedy, source_of(node))] = None
            except ProgramError as error:
                problems[Problem(f"{node.target}: {error}", DEFAULT_REMEDY, source_of(node))] = None
        elif node.op == "get_attr" and not node.meta["val"].numel():
            known[node] = None  # a tensor without elements, as `torch.cat` passes over
        elif node.op == "get_attr":
            for user in node.users:
                problems[Problem("a tensor made inside the step", CONSTANT, source_of(user))] = None
    if problems:
        raise CaptureError(problems)
    return [_single(known[node]) for node in outputs_of(graph)]


def missing(graph: torch.fx.Graph) -> list[Problem]:
    """The operations of a graph that have no rule; of one that was given up half-way, of those that others use."""
    if any(node.op == "output" for node in graph.nodes):
        graph.eliminate_dead_code()
    found: list[Problem] = []
    for node in graph.nodes:
        try:
            if node.op == "call_function" and node.users:
                _rule_of(node)
        except Unsupported as error:
            found.append(Problem(f"{node.target}: {error}", error.remedy, source_of(node)))
    return found


def outputs_of(graph: torch.fx.Graph) -> tuple[torch.fx.Node, ...]:
    """The nodes that the graph returns."""
    (outputs,) = graph.output_node().args
    return tuple(outputs)  # type: ignore[arg-type]


def _apply(
    lowering: Lowering, node: torch.fx.Node, rule: Rule, known: Mapping[torch.fx.Node, Lowered]
) -> Lowered:
    with_values: Any = map_arg((node.args, node.kwargs), known.__getitem__)  # type: ignore[arg-type]
    args, kwargs = with_values
    if not isinstance(node.target, OpOverload):
        return rule(lowering, node, *args, **kwargs)
    try:
        inspect.signature(rule).bind(lowering, node, *args, **kwargs)
    except TypeError:
        raise Unsupported("with these arguments") from None
    lowering.dtype_of(node)
    lowering.called.clear()
    result = _as_torch_says(lowering, node.meta["val"], rule(lowering, node, *args, **kwargs))
    became = ", ".join(lowering.called) or rule.__name__.strip("_")
    lowering.coverage[str(node.target), became] += 1
    return result


def _as_torch_says(lowering: Lowering, known: Any, result: Lowered) -> Lowered:
    """A rule's result in the type that torch gave the node. Raises `Unsupported` if its shape is another: a rule that
    leaves something out must not go on silently."""
    if isinstance(result, tuple) and isinstance(known, tuple | list):
        return tuple(_as_torch_says(lowering, *pair) for pair in zip(known, result))
    if not isinstance(result, View) or not isinstance(known, Tensor):
        return result
    if result.shape != tuple(known.shape):
        raise Unsupported(f"on these operands, with a result of shape {tuple(known.shape)}")
    dtype = dtype_of(known)
    return result if result.dtype is dtype else View.of(lowering.elements(result, dtype))


def _rule_of(node: torch.fx.Node) -> Rule:
    if node.target is operator.getitem:
        return _item
    if not isinstance(node.target, OpOverload):
        raise Unsupported("not an ATen operation")
    name = node.target.overloadpacket.__name__
    if node.target not in RULES:
        raise Unsupported("not supported", REMEDIES.get(name, DEFAULT_REMEDY))
    return RULES[node.target]


def _item(_: Lowering, __: torch.fx.Node, results: tuple[Lowered, ...], index: int) -> Lowered:
    return results[index]


def _single(lowered: Lowered) -> View:
    if not isinstance(lowered, View):
        raise TypeError(f"expected one tensor as a result of the step, got {type(lowered).__name__}")
    return lowered
