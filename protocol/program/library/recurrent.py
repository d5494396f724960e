"""Recurrent layers (LSTM, GRU, plain RNN), forward and backward; a call processes a whole sequence.

| function | operands | results |
|---|---|---|
| `lstm` | input part of the gates, initial h and c, weight, bias or none | h, c, gates i f g o |
| `gru` | input part of the gates, initial h, weight, bias or none | h, gates r z n, recurrent part of n |
| `rnn` | input part, initial h, weight, bias or none | h |

The number of gates is k: 4 for `lstm`, 3 for `gru` and 1 for `rnn`. For T steps, B rows and size H, the gates
are [T, B, k H]; h and c are [T, B, H]; the initial h and c are [B, H]; the weight is [k H, H] and the bias [k
H].

Two things are left to the caller: the input part, which is one product for all T steps, and the gradients of
weights, which are contractions over all T B rows. The recurrent product is computed here; `px` and `py` are
the bits of its two operands, in order. The formulas, and the order of their operations, are those of
`torch.nn.LSTM`, `GRU` and `RNN`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from protocol.numerics.contract import contract
from protocol.numerics.kernels.fused import Fused
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import elementary
from protocol.program.library.contractions import linear, linear_grad_input
from protocol.program.library.function import define_by_body
from protocol.program.library.scan import scan

Values = Sequence[Any]


def _lstm(
    x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None, *, px: int, py: int
) -> tuple[Tensor, ...] | None:
    fused = fused_for(x)
    if not isinstance(fused, Fused) or (bias is not None and bias.shape != weight.shape[:1]):
        return None
    x, c = x.contiguous(), c.contiguous()
    states, cells, gates = x.new_empty(len(x), *h.shape), x.new_empty(len(x), *c.shape), torch.empty_like(x)
    for t, own in enumerate(x):
        product = contract(h, weight, px, py, bias=bias)
        fused.lstm_cell((own, product, c), (gates[t], cells[t], states[t]))
        h, c = states[t], cells[t]
    return states, cells, gates


@define_by_body("lstm", compiled=_lstm)
def lstm(
    b: Builder, x: Value, h: Value, c: Value, weight: Value, bias: Value | None = None, *, px: int, py: int
) -> tuple[Value, Value, Value]:
    """h, c and the gates at each step: c' = f c + i g, h' = o tanh(c')."""
    size = h.shape[-1]

    def step(b: Builder, carried: Values, rows: Values, fixed: Values) -> tuple[Values, Values]:
        before, cell = carried
        raw = b.add(rows[0], linear.call(b, before, *fixed, px=px, py=py))
        i, f, o = (elementary.sigmoid.call(b, _part(b, raw, k, size)) for k in (0, 1, 3))
        g = elementary.tanh.call(b, _part(b, raw, 2, size))
        cell = b.add(b.mul(f, cell), b.mul(i, g))
        after = b.mul(o, elementary.tanh.call(b, cell))
        return (after, cell), (after, cell, b.concat([i, f, g, o], -1))

    _, (states, cells, gates) = scan(b, step, (h, c), (x,), _fixed(weight, bias))
    return states, cells, gates


def _lstm_grad(
    of_h: Tensor,
    of_c: Tensor,
    gates: Tensor,
    cells: Tensor,
    before: Tensor,
    weight: Tensor,
    *,
    px: int,
    py: int,
) -> tuple[Tensor, ...] | None:
    fused = fused_for(of_h)
    if not isinstance(fused, Fused):
        return None
    rows = [x.contiguous() for x in (of_h, of_c, gates, cells, before)]
    raw = torch.empty_like(rows[2])
    dh, dc = torch.zeros_like(rows[0][0]), torch.zeros_like(rows[1][0])
    for t in reversed(range(len(of_h))):
        own_h, own_c, gate, cell, earlier = (x[t] for x in rows)
        following, dc = dc, torch.empty_like(dc)
        fused.lstm_cell_grad((own_h, dh, own_c, following, gate, cell, earlier), (raw[t], dc))
        dh = contract(raw[t], weight.mT, px, py)
    return raw, dh, dc


@define_by_body("lstm_grad", compiled=_lstm_grad)
def lstm_grad(
    b: Builder,
    of_h: Value,
    of_c: Value,
    gates: Value,
    cells: Value,
    before: Value,
    weight: Value,
    *,
    px: int,
    py: int,
) -> tuple[Value, Value, Value]:
    """The gradient of the gates before activation, [T, B, 4 H], and the gradients of the initial h and the
    initial c.

    `of_h` and `of_c` are the gradients of h and c. `cells` is c after each step, and `before` is c before
    each step. The other operands are the gates and the weight.
    """
    size = cells.shape[-1]

    def step(b: Builder, carried: Values, rows: Values, fixed: Values) -> tuple[Values, Values]:
        own_h, own_c, gates, cell, before = rows
        i, f, g, o = (_part(b, gates, k, size) for k in range(4))
        dh = b.add(own_h, carried[0])
        t = elementary.tanh.call(b, cell)
        dc = b.add(b.add(own_c, carried[1]), b.mul(b.mul(dh, o), _one_less(b, b.mul(t, t))))
        raw = b.concat(
            [
                _sigmoid_grad(b, b.mul(dc, g), i),
                _sigmoid_grad(b, b.mul(dc, before), f),
                b.mul(b.mul(dc, i), _one_less(b, b.mul(g, g))),
                _sigmoid_grad(b, b.mul(dh, t), o),
            ],
            -1,
        )
        return (linear_grad_input.call(b, raw, *fixed, px=px, py=py), b.mul(dc, f)), (raw,)

    nothing = _zeros(b, of_h)
    rows = (of_h, of_c, gates, cells, before)
    (dh, dc), (raw,) = scan(b, step, (nothing, nothing), rows, (weight,), reverse=True)
    return raw, dh, dc


@define_by_body("gru")
def gru(
    b: Builder, x: Value, h: Value, weight: Value, bias: Value | None = None, *, px: int, py: int
) -> tuple[Value, Value, Value]:
    """h, the gates, and the recurrent part of n at each step: n = tanh(x + r (h w + bias)), h' = (h - n) z + n."""
    size = h.shape[-1]

    def step(b: Builder, carried: Values, rows: Values, fixed: Values) -> tuple[Values, Values]:
        (before,), (own,) = carried, rows
        recurrent = linear.call(b, before, *fixed, px=px, py=py)
        r, z = (
            elementary.sigmoid.call(b, b.add(_part(b, own, k, size), _part(b, recurrent, k, size)))
            for k in range(2)
        )
        of_n = _part(b, recurrent, 2, size)
        n = elementary.tanh.call(b, b.add(_part(b, own, 2, size), b.mul(r, of_n)))
        after = b.add(b.mul(b.sub(before, n), z), n)
        return (after,), (after, b.concat([r, z, n], -1), of_n)

    _, (states, gates, of_n) = scan(b, step, (h,), (x,), _fixed(weight, bias))
    return states, gates, of_n


@define_by_body("gru_grad")
def gru_grad(
    b: Builder, of_h: Value, gates: Value, of_n: Value, before: Value, weight: Value, *, px: int, py: int
) -> tuple[Value, Value, Value]:
    """Gradients of the input and recurrent parts of the gates, each [T, B, 3 H], and of the initial h.

    The operands are the gradients of h (`of_h`), the gates, the recurrent parts of n (`of_n`), the values of
    h before each step (`before`), and the weight.
    """
    size = before.shape[-1]

    def step(b: Builder, carried: Values, rows: Values, fixed: Values) -> tuple[Values, Values]:
        own, gates, of_n, before = rows
        r, z, n = (_part(b, gates, k, size) for k in range(3))
        dh = b.add(own, carried[0])
        dn = b.mul(b.sub(dh, b.mul(dh, z)), _one_less(b, b.mul(n, n)))
        dr = _sigmoid_grad(b, b.mul(dn, of_n), r)
        dz = _sigmoid_grad(b, b.mul(dh, b.sub(before, n)), z)
        recurrent = b.concat([dr, dz, b.mul(dn, r)], -1)
        kept = b.add(b.mul(dh, z), linear_grad_input.call(b, recurrent, *fixed, px=px, py=py))
        return (kept,), (b.concat([dr, dz, dn], -1), recurrent)

    rows = (of_h, gates, of_n, before)
    (dh,), (own, recurrent) = scan(b, step, (_zeros(b, of_h),), rows, (weight,), reverse=True)
    return own, recurrent, dh


@define_by_body("rnn")
def rnn(
    b: Builder, x: Value, h: Value, weight: Value, bias: Value | None = None, *, relu: bool, px: int, py: int
) -> Value:
    """h at each step: tanh or ReLU of x + (h w + bias)."""

    def step(b: Builder, carried: Values, rows: Values, fixed: Values) -> tuple[Values, Values]:
        raw = b.add(rows[0], linear.call(b, carried[0], *fixed, px=px, py=py))
        after = _relu(b, raw) if relu else elementary.tanh.call(b, raw)
        return (after,), (after,)

    _, (states,) = scan(b, step, (h,), (x,), _fixed(weight, bias))
    return states  # type: ignore[no-any-return]


@define_by_body("rnn_grad")
def rnn_grad(
    b: Builder, of_h: Value, states: Value, weight: Value, *, relu: bool, px: int, py: int
) -> tuple[Value, Value]:
    """The gradient of the sums before activation, [T, B, H], and the gradient of the initial h.

    `of_h` is the gradient of h, [T, B, H], and `states` is h at each step. The last operand is the weight.
    """

    def step(b: Builder, carried: Values, rows: Values, fixed: Values) -> tuple[Values, Values]:
        dh = b.add(rows[0], carried[0])
        if relu:
            raw = b.select(b.lt(_number(b, 0.0), rows[1]), dh, _number(b, 0.0))
        else:
            raw = b.mul(dh, _one_less(b, b.mul(rows[1], rows[1])))
        return (linear_grad_input.call(b, raw, *fixed, px=px, py=py),), (raw,)

    (dh,), (raw,) = scan(b, step, (_zeros(b, of_h),), (of_h, states), (weight,), reverse=True)
    return raw, dh


def _fixed(weight: Value, bias: Value | None) -> tuple[Value, ...]:
    return (weight,) if bias is None else (weight, bias)


def _part(b: Builder, x: Value, number: int, size: int) -> Value:
    return b.slice(x, -1, number * size, (number + 1) * size)


def _number(b: Builder, value: float) -> Value:
    return b.constant(DType.F32, (), value)


def _zeros(b: Builder, like: Value) -> Value:
    """Zeros of the shape of one step."""
    return b.constant(DType.F32, tuple(like.shape[1:]), 0.0)


def _one_less(b: Builder, x: Value) -> Value:
    return b.sub(_number(b, 1.0), x)


def _sigmoid_grad(b: Builder, g: Value, y: Value) -> Value:
    return b.mul(g, b.mul(y, _one_less(b, y)))


def _relu(b: Builder, x: Value) -> Value:
    """ReLU: 0 if x < 0, else x; so NaN stays."""
    return b.select(b.lt(x, _number(b, 0.0)), _number(b, 0.0), x)
