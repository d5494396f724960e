"""Matrix products: arithmetic.md section 4, one body for all, bits by the role that the product plays in training.

| function | operands | result | bits |
|---|---|---|---|
| `linear` | x [M, K], w [N, K], bias [N] or none | x w^T + bias [M, N] | 13 x 13 |
| `matmul` | x [M, K], y [K, N] | x y [M, N] | 13 x 13 |
| `linear_grad_input` | g [M, K], w [K, N] | g w [M, N] | 13 x 13 |
| `linear_grad_weight` | g [K, M], x [K, N] | g^T x [M, N] | 20 x 13 |

The exponent group is a row along the contracted axis, on both sides.
"""

from __future__ import annotations

from torch import Tensor

from protocol.numerics.contract import contract
from protocol.numerics.elementwise import add
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define


def _linear(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    product = contract(x, w, 13, 13)
    return product if bias is None else add(product, bias)


@define("linear", kernel=_linear)
def linear(b: Builder, x: Value, w: Value, bias: Value | None = None) -> Value:
    """x [M, K] times w [N, K] transposed, plus a bias [N]."""
    product = _contract(b, x, w, 13, 13)
    return product if bias is None else b.add(product, bias)


def _matmul(x: Tensor, y: Tensor) -> Tensor:
    return contract(x, y.mT, 13, 13)


@define("matmul", kernel=_matmul)
def matmul(b: Builder, x: Value, y: Value) -> Value:
    """x [M, K] times y [K, N]."""
    return _contract(b, x, b.transpose(y, 0, 1), 13, 13)


def _linear_grad_input(g: Tensor, w: Tensor) -> Tensor:
    return contract(g, w.mT, 13, 13)


@define("linear_grad_input", kernel=_linear_grad_input)
def linear_grad_input(b: Builder, g: Value, w: Value) -> Value:
    """g [M, K] times w [K, N]."""
    return _contract(b, g, b.transpose(w, 0, 1), 13, 13)


def _linear_grad_weight(g: Tensor, x: Tensor) -> Tensor:
    return contract(g.mT, x.mT, 20, 13)


@define("linear_grad_weight", kernel=_linear_grad_weight)
def linear_grad_weight(b: Builder, g: Value, x: Value) -> Value:
    """g [K, M] transposed times x [K, N]; a row is one column of the batch, so its terms may differ widely in size."""
    return _contract(b, b.transpose(g, 0, 1), b.transpose(x, 0, 1), 20, 13)


def _contract(b: Builder, x: Value, y: Value, px: int, py: int) -> Value:
    """f32 [M, K] and [N, K] to [M, N], rounded once from the exact integer."""
    x, y = b.pad_rows(x, 0.0), b.pad_rows(y, 0.0)
    ex, ey = b.exponent(x), b.exponent(y)
    product = b.dot(b.quantise(x, ex, px), b.quantise(y, ey, py))
    return b.round_scaled(product, ex, b.transpose(ey, 0, 1), p=px + py)
