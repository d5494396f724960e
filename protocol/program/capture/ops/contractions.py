"""Matrix products. Which bits they take follows from their role in training: arithmetic.md section 4's table."""

from __future__ import annotations

import torch

from protocol.program.capture.lowering import Lowering, Unsupported, lowers
from protocol.program.capture.views import View
from protocol.program.library import contractions

aten = torch.ops.aten


@lowers(aten.mm.default)
def matmul(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """x [M, K] times y [K, N]."""
    left, right = (lowering.is_gradient(operand) for operand in node.args)
    if node in lowering.weight_gradients:
        if left:
            return _weight_gradient(lowering, x.turned(), y)
        if right:  # x^T g, as `x @ w` has it: the transpose of g^T x
            return _weight_gradient(lowering, y, x.turned()).turned()
    b = lowering.builder
    if y.turned().whole:
        return View.of(lowering.call(contractions.linear, x.elements(b), y.value))
    function = contractions.linear_grad_input if left else contractions.matmul
    return View.of(lowering.call(function, x.elements(b), y.elements(b)))


@lowers(aten.addmm.default)
def linear(
    lowering: Lowering,
    node: torch.fx.Node,
    bias: View,
    x: View,
    y: View,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> View:
    """bias + x y, the forward pass of `torch.nn.Linear`."""
    if beta != 1 or alpha != 1 or bias.shape != y.shape[1:]:
        raise Unsupported("with factors or a bias that is no row", "write the products and sums out")
    b = lowering.builder
    if lowering.is_gradient(node):
        raise Unsupported("in the backward pass", "write the products and sums out")
    return View.of(
        lowering.call(contractions.linear, x.elements(b), y.turned().elements(b), bias.elements(b))
    )


def _weight_gradient(lowering: Lowering, g: View, x: View) -> View:
    """g [K, M] transposed times x [K, N]; `g` comes from the loss."""
    b = lowering.builder
    return View.of(lowering.call(contractions.linear_grad_weight, g.elements(b), x.elements(b)))
