"""The table of rules: the function that lowers each ATen operation. The modules of `lowering.ops` fill it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload

from protocol.capture.lowering.checks import GENERATOR, Unsupported, remedy_of
from protocol.capture.lowering.views import View

Lowered = View | tuple["Lowered", ...] | None
Rule = Callable[..., Lowered]
RuleT = TypeVar("RuleT", bound=Rule)

RULES: dict[OpOverload, Rule] = {}
"""The rule of every supported overload. A rule is called as `rule(lowering, node, *args, **kwargs)`, with the
node's arguments, in which each node is replaced by its view.
"""


def lowers(*overloads: OpOverload) -> Callable[[RuleT], RuleT]:
    """Decorator: register a function as the rule of some overloads."""

    def register(rule: RuleT) -> RuleT:
        RULES.update(dict.fromkeys(overloads, rule))
        return rule

    return register


def rule_of(node: torch.fx.Node) -> Rule:
    """The rule that lowers a node. Raises `Unsupported` if there is none, or if the node uses a generator."""
    if node.target is operator.getitem:
        return _item
    if not isinstance(node.target, OpOverload):
        raise Unsupported("not an ATen operation")
    name = node.target.overloadpacket.__name__
    if node.kwargs.get("generator") is not None:
        raise Unsupported("with a generator", GENERATOR)
    if node.target not in RULES:
        raise Unsupported("not supported", remedy_of(name))
    return RULES[node.target]


def _item(_: Any, __: torch.fx.Node, results: tuple[Lowered, ...], index: int) -> Lowered:
    return results[index]
