"""Matrix products: arithmetic.md section 4.

| function | operands | result |
|---|---|---|
| `linear` | x [… M, K], w [… N, K], bias [N] or none | x w^T + bias [… M, N] |
| `matmul` | x [… M, K], y [… K, N], bias [N] or none | x y + bias [… M, N] |
| `linear_grad_input` | g [… M, K], w [… K, N] | g w [… M, N] |
| `linear_grad_weight` | g [… K, M], x [… K, N] | g^T x [… M, N] |
| `matmul_nt` | x [… M, K], y [… N, K] | x y^T [… M, N], such as attention's scores q k^T |
| `matmul_tn` | x [… K, M], y [… K, N] | x^T y [… M, N], such as the gradient P^T dO of the values |

The leading axes of both operands are equal. `px` and `py` are the bits of the left and the right operand, 13
or 20; `capture.analysis.roles` chooses them by the role of a product. In each operand, every row along the
contracted axis has its own exponent.
"""

from __future__ import annotations

from torch import Tensor

from protocol.numerics.contract import contract
from protocol.numerics.operations import add
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define


def _linear(x: Tensor, w: Tensor, bias: Tensor | None = None, *, px: int = 13, py: int = 13) -> Tensor:
    if bias is None or bias.shape == w.shape[-2:-1]:
        return contract(x, w, px, py, bias=bias)
    return add(contract(x, w, px, py), bias)  # any other shape that the body accepts


@define("linear", kernel=_linear)
def linear(b: Builder, x: Value, w: Value, bias: Value | None = None, *, px: int = 13, py: int = 13) -> Value:
    """x times w transposed, plus a bias."""
    product = _contract(b, x, w, px, py)
    return product if bias is None else b.add(product, bias)


def _matmul(x: Tensor, y: Tensor, bias: Tensor | None = None, *, px: int = 13, py: int = 13) -> Tensor:
    return _linear(x, y.mT, bias, px=px, py=py)


@define("matmul", kernel=_matmul)
def matmul(b: Builder, x: Value, y: Value, bias: Value | None = None, *, px: int = 13, py: int = 13) -> Value:
    """x times y, plus a bias."""
    product = _contract(b, x, b.transpose(y, -2, -1), px, py)
    return product if bias is None else b.add(product, bias)


@define("linear_grad_input", kernel=_matmul)
def linear_grad_input(b: Builder, g: Value, w: Value, *, px: int = 13, py: int = 13) -> Value:
    """g times w."""
    return _contract(b, g, b.transpose(w, -2, -1), px, py)


def _matmul_tn(x: Tensor, y: Tensor, *, px: int, py: int) -> Tensor:
    return contract(x.mT, y.mT, px, py)


@define("linear_grad_weight", kernel=_matmul_tn)
def linear_grad_weight(b: Builder, g: Value, x: Value, *, px: int, py: int) -> Value:
    """g transposed times x.

    Each sum runs over the batch, so the terms of a sum may differ widely in size.
    """
    return _contract(b, b.transpose(g, -2, -1), b.transpose(x, -2, -1), px, py)


@define("matmul_nt", kernel=_linear)
def matmul_nt(b: Builder, x: Value, y: Value, *, px: int, py: int) -> Value:
    """x times y transposed."""
    return _contract(b, x, y, px, py)


@define("matmul_tn", kernel=_matmul_tn)
def matmul_tn(b: Builder, x: Value, y: Value, *, px: int, py: int) -> Value:
    """x transposed times y."""
    return _contract(b, b.transpose(x, -2, -1), b.transpose(y, -2, -1), px, py)


def _contract(b: Builder, x: Value, y: Value, px: int, py: int) -> Value:
    """The product [… M, N] of f32 [… M, K] and [… N, K], rounded once from the exact integer."""
    x, y = b.pad_rows(x, 0.0), b.pad_rows(y, 0.0)
    ex, ey = b.exponent(x), b.exponent(y)
    product = b.dot(b.quantise(x, ex, px), b.quantise(y, ey, py))
    return b.round_scaled(product, ex, b.transpose(ey, -2, -1), p=px + py)


CONTRACTED = {
    "linear": (-1, -1),
    "matmul": (-1, -2),
    "linear_grad_input": (-1, -2),
    "linear_grad_weight": (-2, -2),
    "matmul_nt": (-1, -1),
    "matmul_tn": (-2, -2),
}
"""For each function, the two axes that it contracts: that of the left operand, then that of the right operand."""
