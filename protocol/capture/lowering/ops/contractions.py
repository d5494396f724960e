"""Matrix products. Their role in training determines their bits, by the table of arithmetic.md section 4."""

from __future__ import annotations

import math

import torch

from protocol.capture.analysis.roles import Role
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import contractions
from protocol.program.library.function import LibraryFunction
from protocol.program.types import contiguous_strides

aten = torch.ops.aten


@lowers(aten.mm.default, aten.bmm.default)
def matmul(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """x [… M, K] times y [… K, N]."""
    return _product(lowering, node, x, y)


@lowers(aten.addmm.default, aten.baddbmm.default)
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
    """beta bias + alpha x y. For a bias row and factors 1, this is the forward pass of `torch.nn.Linear`."""
    if beta == alpha == 1 and bias.shape == y.shape[-1:]:
        return _product(lowering, node, x, y, bias)
    return _added(lowering, bias, _product(lowering, node, x, y), beta, alpha)


@lowers(aten.mv.default)
def matrix_vector(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """x [M, K] times y [K]."""
    return _product(lowering, node, x, _column(lowering, y))


@lowers(aten.addmv.default)
def added_matrix_vector(
    lowering: Lowering,
    node: torch.fx.Node,
    bias: View,
    x: View,
    y: View,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> View:
    """beta bias + alpha x y."""
    return _added(lowering, bias, _product(lowering, node, x, _column(lowering, y)), beta, alpha)


@lowers(aten.dot.default)
def dot(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """x [K] times y [K]."""
    return _product(lowering, node, _column(lowering, x).transposed(), _column(lowering, y))


def _product(lowering: Lowering, node: torch.fx.Node, x: View, y: View, bias: View | None = None) -> View:
    """x times y, plus the row `bias` if there is one, in the node's shape. `_function` chooses the library
    function.
    """
    b = lowering.builder
    px, py = lowering.roles.bits(node)
    x, y = _unfolded(x, y)
    left, x_transposed = _laid_out(lowering, x)
    right, y_transposed = _laid_out(lowering, y)
    if x_transposed and (y_transposed or bias is not None):
        left, x_transposed = x.elements(b), False
    function = _function(lowering, node, x_transposed, y_transposed, bias is not None)
    affine = () if bias is None else (bias.elements(b),)
    product = View.of(lowering.call(function, left, right, *affine, px=px, py=py))
    return product.apply(b, aten.view.default, tuple(node.meta["val"].shape))


def _function(
    lowering: Lowering, node: torch.fx.Node, x_transposed: bool, y_transposed: bool, biased: bool
) -> LibraryFunction:
    """The library function for a product. It depends on the operands' layouts and on whether the product is
    `biased`; for `mm` and `addmm`, also on the product's role and on whether it belongs to the backward pass.
    """
    of_layer = node.target in (aten.mm.default, aten.addmm.default)
    backward = node in lowering.roles.gradients
    if x_transposed:
        weight = of_layer and lowering.roles.of(node) is Role.WEIGHT_GRADIENT
        return contractions.linear_grad_weight if weight else contractions.matmul_tn
    if y_transposed:
        return contractions.linear if of_layer or biased else contractions.matmul_nt
    return contractions.linear_grad_input if of_layer and backward and not biased else contractions.matmul


def _laid_out(lowering: Lowering, x: View) -> tuple[Value, bool]:
    """Two results: a value with the view's elements, and whether the last two axes of this value are swapped
    relative to the view. The axes are swapped if the view's elements lie in swapped order in memory, because
    this can avoid a copy.
    """
    swapped = x.transposed()
    if not x.whole and (swapped.whole or x.strides[-2] < x.strides[-1]):
        return swapped.elements(lowering.builder), True
    return x.elements(lowering.builder), False


def _unfolded(x: View, y: View) -> tuple[View, View]:
    """The operands with their original leading axes, if torch has merely folded those axes into one;
    otherwise the operands unchanged.
    """
    whole = [View.of(v.value) for v in (x, y)]
    for k, v in enumerate((x, y)):
        if _is_folded(v.transposed(), whole[k]):
            whole[k] = whole[k].transposed()
        elif not _is_folded(v, whole[k]):
            return x, y
    return (whole[0], whole[1]) if whole[0].shape[:-2] == whole[1].shape[:-2] else (x, y)


def _is_folded(x: View, whole: View) -> bool:
    in_order = x.strides == contiguous_strides(x.shape) and x.value.type.elements == math.prod(x.shape)
    return in_order and len(whole.shape) > len(x.shape) and whole.shape[-2:] == x.shape[-2:]


def _column(lowering: Lowering, x: View) -> View:
    """The vector x, [K], as a view [K, 1] whose transpose is contiguous."""
    return x.apply(lowering.builder, aten.view.default, (1, -1)).transposed()


def _added(lowering: Lowering, bias: View, product: View, beta: float, alpha: float) -> View:
    b = lowering.builder
    result = product.elements(b)
    if alpha != 1:
        result = b.mul(result, lowering.operand(float(alpha), DType.F32))
    if beta != 0:
        scaled = bias.broadcast(b)
        scaled = scaled if beta == 1 else b.mul(scaled, lowering.operand(float(beta), DType.F32))
        result = b.add(scaled, result)
    return View.of(result)
