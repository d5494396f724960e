"""Chooses the bits of every contraction by the origin of its operands (arithmetic.md section 4, version 2).

If the terms of a sum differ widely in size, rounding to 13 bits makes the sum biased. Such sums are
recognised by the origin of their terms: attention probabilities and the gradients of their scores, gradients
summed over tokens, and gradients of a vocabulary's logits. The contractions themselves are written in
`lowering.ops.contractions`.

The role of a convolution follows from its operation: forward, gradient of the input, gradient of the weight.
The forward pass of a convolution takes 20 bits for both operands. The reason is that its rounding can move a
ReLU's operand across zero, and each such move turns a whole term of the gradient on or off. Rounding a
gradient turns no terms on or off, so in networks with ReLU more bits for gradients help little
(docs/numerics.md).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch
from torch.fx import Graph, Node

from protocol.capture.analysis.checks import require_bits

aten = torch.ops.aten
Bits = tuple[int, int]


class Role(StrEnum):
    """The part that a contraction plays in a training step."""

    PRODUCT = "product"
    """A product with no other role, such as a forward product, q k^T, dP = dO V^T or dX = G W."""
    ATTENTION = "attention"
    """A product in which one operand is P (the attention probabilities) or dS (the gradient of the scores): P
    V, dV, dQ, dK.
    """
    WEIGHT_GRADIENT = "weight_gradient"
    """The gradient of a weight, G^T X, contracted over tokens or positions."""
    VOCABULARY = "vocabulary"
    """The product dX = G W, where G is the gradient of the operand of a `log_softmax`, such as an LM head's
    logits.
    """
    CONVOLUTION = "convolution"
    """The forward pass of a convolution, transposed or not; the operands are x and w."""
    CONVOLUTION_INPUT_GRADIENT = "convolution_input_gradient"
    """The gradient of a convolution's input; the operands are G and w."""
    CONVOLUTION_WEIGHT_GRADIENT = "convolution_weight_gradient"
    """The gradient of a convolution's weight, over samples and positions; the operands are G and x."""
    UPDATE = "update"
    """Any product in an optimiser's update."""


BITS: Mapping[Role, Bits] = {
    Role.PRODUCT: (13, 13),
    Role.ATTENTION: (20, 20),
    Role.WEIGHT_GRADIENT: (20, 13),
    Role.VOCABULARY: (20, 13),
    Role.CONVOLUTION: (20, 20),
    Role.CONVOLUTION_INPUT_GRADIENT: (13, 13),
    Role.CONVOLUTION_WEIGHT_GRADIENT: (20, 13),
    Role.UPDATE: (20, 20),
}
"""The bits of the two operands for each role. The first number applies to the operand that determines the
role (P, dS or G), and the second to the other operand. For a forward product the order is left, right; for
the forward pass of a convolution it is image, weight.
"""

OPERANDS = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.mv.default: (0, 1),
    aten.dot.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.addmv.default: (1, 2),
    aten.baddbmm.default: (1, 2),
}
"""Maps each contraction to the positions of its two contracted arguments."""

PROBABILITIES = {aten._softmax.default, aten._safe_softmax.default}
SCORE_GRADIENTS = {aten._softmax_backward_data.default}
LOGIT_GRADIENTS = {aten._log_softmax_backward_data.default}
MOVING = {
    operator.getitem,
    *(aten.t.default, aten.transpose.int, aten.permute.default, aten.expand.default),
    *(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default),
    *(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.select.int, aten.slice.Tensor),
    *(aten.alias.default, aten.detach.default, aten.clone.default, aten._to_copy.default, aten.neg.default),
    *(aten.cat.default, aten.split.Tensor, aten.split_with_sizes.default, aten.constant_pad_nd.default),
    *(aten.unsafe_split.Tensor, aten.unbind.int, aten.stack.default),
    *(aten.slice_backward.default, aten.select_backward.default),
    *(aten.native_dropout.default, aten.native_dropout_backward.default),
}
"""Operations that move elements, or join them with others."""
SCALING = {
    *(aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar),
    *(aten.where.self, aten.masked_fill.Scalar, aten.masked_fill.Tensor),
}
"""Elementwise operations that multiply or divide elements, add to them, subtract from them, or replace some
of them.
"""
SUMMING = {aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim}


@dataclass(frozen=True)
class Roles:
    """The role of every contraction in a graph, the bits of each role (`table`), and which nodes are
    gradients.
    """

    table: Mapping[Role, Bits]
    gradients: frozenset[Node]
    _found: Mapping[Node, Role]
    _given_by_right: frozenset[Node]

    def of(self, contraction: Node) -> Role:
        """The role of a contraction."""
        return self._found[contraction]

    def bits(self, contraction: Node) -> Bits:
        """The bits of a contraction's left and right operand."""
        first, second = self.table[self._found[contraction]]
        return (second, first) if contraction in self._given_by_right else (first, second)


def table_of(overrides: Mapping[str, Bits]) -> dict[Role, Bits]:
    """`BITS`, in which `overrides` replaces the bits of the roles that it names. Raises `CaptureError` for
    unknown roles or invalid bits.
    """
    require_bits(overrides, list(Role))
    return {**BITS, **{Role(name): (value[0], value[1]) for name, value in overrides.items()}}


def roles_of(graph: Graph, trained: int, fixed: int, table: Mapping[Role, Bits] = BITS) -> Roles:
    """Find the roles in the graph of a step (`tracing.tracer.TracedStep`).

    The graph's first `trained` placeholders are parameters, the next `fixed` ones are buffers, and the rest
    are the batch. Its first `trained` outputs are the parameters' gradients; the next output is the loss.
    """
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    outputs: Any = graph.output_node().args[0]
    of_weights = _linear_in(outputs[:trained])
    of_batch = _reached(graph, placeholders[trained + fixed :])
    gradients = _reached(graph, _seeds(graph, outputs[trained]))
    attention = _carrying(graph, PROBABILITIES | SCORE_GRADIENTS)
    logits = _carrying(graph, LOGIT_GRADIENTS)
    found: dict[Node, Role] = {}
    by_right = set()
    for node in graph.nodes:
        if node.target not in OPERANDS:
            continue
        left, right = (node.args[k] for k in OPERANDS[node.target])
        role, givers = Role.PRODUCT, gradients
        if left in attention or right in attention:
            role, givers = Role.ATTENTION, attention
        elif (left in gradients) != (right in gradients):
            other = right if left in gradients else left
            if node in of_weights and other in of_batch:
                role = Role.WEIGHT_GRADIENT
            elif other not in of_batch and (left in logits or right in logits):
                role = Role.VOCABULARY
        found[node] = role
        if right in givers and left not in givers:
            by_right.add(node)
    return Roles(table, frozenset(gradients), found, frozenset(by_right))


def _reached(graph: Graph, sources: Iterable[Node]) -> set[Node]:
    """`sources`, and every node that depends on one of them."""
    found = set(sources)
    for node in graph.nodes:
        if any(operand in found for operand in node.all_input_nodes):
            found.add(node)
    return found


def _seeds(graph: Graph, loss: Any) -> list[Node]:
    """The nodes that start the backward pass: the gradient of the loss with respect to itself."""
    ones = [node for node in graph.nodes if node.target is aten.ones_like.default]
    return [node for node in ones if _origin(node.args[0]) is _origin(loss)]


def _origin(node: Any) -> Any:
    while node.target in (aten.alias.default, aten.detach.default):
        node = node.args[0]
    return node


def _carrying(graph: Graph, sources: set[Any]) -> set[Node]:
    """Nodes whose elements are results of the operations `sources`. After those operations, the elements may
    have been moved, or scaled element by element.

    A scaling does not count if it repeats (broadcasts) the elements. For example, each expert's output is
    multiplied by its gate's probability; the product is not a probability.
    """
    found: set[Node] = set()
    for node in graph.nodes:
        held = [operand for operand in node.all_input_nodes if operand in found]
        moved = node.target in MOVING and held
        scaled = node.target in SCALING and any(_elements(operand) == _elements(node) for operand in held)
        if node.target in sources or moved or scaled:
            found.add(node)
    return found


def _linear_in(results: Iterable[Any]) -> set[Node]:
    """`results`, and all nodes that contribute to them by a path of operations that only move, scale or sum."""
    found: set[Node] = set()
    pending = list(results)
    while pending:
        node = pending.pop()
        if not isinstance(node, Node) or node in found:
            continue
        found.add(node)
        if node.target in MOVING | SCALING | SUMMING:
            pending.extend(node.all_input_nodes)
    return found


def _elements(node: Node) -> int:
    return int(node.meta["val"].numel())
