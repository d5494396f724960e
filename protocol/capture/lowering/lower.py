"""Lowers a graph of ATen operations to instructions. Every node is lowered by the rule for its operation;
there is no default rule.

Importing this module registers all rules. A node that has no rule, or that its rule refuses, becomes a
`Problem`; all problems are collected and raised together.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx.node import map_arg

from protocol.capture.errors import Problem, raise_any
from protocol.capture.expansion.expand import is_expanded
from protocol.capture.lowering import ops  # noqa: F401 - registers the rules
from protocol.capture.lowering.checks import Unsupported, made_inside, unsupported
from protocol.capture.lowering.context import Lowering, dtype_of
from protocol.capture.lowering.rules import RULES, Lowered, Rule, rule_of
from protocol.capture.lowering.views import View
from protocol.errors import AssayError
from protocol.program.errors import ProgramError


def lower(lowering: Lowering, graph: torch.fx.Graph, inputs: Sequence[View]) -> list[View]:
    """Lower the nodes of `graph` that the graph's outputs need. `inputs` are the values of the graph's
    placeholders, in order.

    Returns the outputs. Raises one `CaptureError` with all unsupported nodes.
    """
    graph.eliminate_dead_code()
    known: dict[torch.fx.Node, Any] = {}
    problems: dict[Problem, None] = {}
    remaining = iter(inputs)
    for node in graph.nodes:
        if node.op == "placeholder":
            known[node] = next(remaining)
        elif node.op == "call_function":
            try:
                rule = rule_of(node)
                # A missing operand is explained by an earlier problem.
                if all(operand in known for operand in node.all_input_nodes):
                    known[node] = _apply(lowering, node, rule, known)
            except (Unsupported, ProgramError) as error:
                problems[unsupported(node, error)] = None
        elif node.op == "get_attr":
            held = getattr(graph.owning_module, str(node.target))
            if isinstance(held, Tensor) and held.numel():
                problems.update(dict.fromkeys(map(made_inside, node.users)))
            else:  # an empty tensor, which `torch.cat` ignores, or a random generator, which rules refuse
                known[node] = None if isinstance(held, Tensor) else held
    raise_any(problems)
    (outputs,) = graph.output_node().args
    return [_single(known[node]) for node in outputs]  # type: ignore[union-attr, index]


def without_rule(graph: torch.fx.Graph) -> list[Problem]:
    """A problem for each operation that has no rule or uses a generator, unless the operation will be
    expanded or its result is not used.

    If the graph has an output node, dead code is removed first. The graph of an interrupted trace has none.
    """
    if any(node.op == "output" for node in graph.nodes):
        graph.eliminate_dead_code()
    found: list[Problem] = []
    for node in graph.nodes:
        try:
            if node.op == "call_function" and node.users and not is_expanded(node, RULES.__contains__):
                rule_of(node)
        except Unsupported as error:
            found.append(unsupported(node, error))
    return found


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
    try:
        result = _in_traced_type(lowering, node.meta["val"], rule(lowering, node, *args, **kwargs))
    except AssayError:
        raise
    except Exception as error:  # a rule that these operands do not fit
        raise Unsupported(f"on these operands, {type(error).__name__}: {error}") from error
    became = ", ".join(lowering.called) or rule.__name__.strip("_")
    lowering.coverage[str(node.target), became] += 1
    return result


def _in_traced_type(lowering: Lowering, traced: Any, result: Lowered) -> Lowered:
    """A rule's result, cast to the traced type. Raises `Unsupported` if its shape is not the traced shape.
    This detects a rule that leaves something out.
    """
    if isinstance(result, tuple) and isinstance(traced, tuple | list):
        return tuple(_in_traced_type(lowering, *pair) for pair in zip(traced, result))
    if not isinstance(result, View) or not isinstance(traced, Tensor):
        return result
    if result.shape != tuple(traced.shape):
        raise Unsupported(f"on these operands, with a result of shape {tuple(traced.shape)}")
    dtype = dtype_of(traced)
    return result if result.dtype is dtype else View.of(lowering.elements(result, dtype))


def _single(lowered: Lowered) -> View:
    if not isinstance(lowered, View):
        raise TypeError(f"expected one tensor as a result of the step, got {type(lowered).__name__}")
    return lowered
