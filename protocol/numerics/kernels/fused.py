"""Fused functions in the compiled library: functions of arithmetic.md sections 5 and 6 in one pass.

Callers get them from `fused_dispatch.fused_for`. If it returns None, callers run the same operations in
torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum

import torch
from torch import Tensor

from protocol.numerics.kernels.native import address, empty, library, variants
from protocol.numerics.shapes import broadcast
from protocol.numerics.types import NumericsError

SHARED, MOST_LANES = 64, 16
"""Blocks in a group, and the most messages in one call, as in native/lanes.h."""


class Map(IntEnum):
    """Functions of one element, as numbered in native/fused.h. Those named GRAD multiply by a gradient."""

    EXP, LOG, TANH, SIGMOID, ERF, SIN, COS, RSQRT, GELU_ERF, GELU_TANH, SILU = range(11)
    GELU_ERF_GRAD, GELU_TANH_GRAD, SILU_GRAD = range(11, 14)


class Pair(IntEnum):
    """Operations on two elements, as numbered in native/fused.h. LT and LE return bools."""

    ADD, SUB, MUL, DIV, MINIMUM, MAXIMUM, LT, LE = range(8)


class Adam(ctypes.Structure):
    """Adam of native/fused.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("p", "g", "m", "v", "p_new", "m_new", "v_new")),
        *((name, ctypes.c_float) for name in ("size", "eps", "kept", "beta1", "rest1", "beta2", "rest2")),
    )


class Sgd(ctypes.Structure):
    """Sgd of native/fused.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("p", "g", "buffer", "p_new", "buffer_new")),
        *((name, ctypes.c_float) for name in ("rate", "momentum", "decay")),
        *((name, ctypes.c_int32) for name in ("decays", "nesterov")),
    )


class LstmCell(ctypes.Structure):
    """LstmCell of native/fused.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("x", "product", "cell", "gates", "next", "hidden")),
        ("size", ctypes.c_int64),
    )


class LstmCellGrad(ctypes.Structure):
    """LstmCellGrad of native/fused.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("own_h", "later_h", "own_c", "later_c", "gates", "cell")),
        *((name, ctypes.c_void_p) for name in ("before", "raw", "earlier_c")),
        ("size", ctypes.c_int64),
    )


class Message(ctypes.Structure):
    """Message of native/lanes.h."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("index", "value", "exponent"))


class Emit(ctypes.Structure):
    """Emit of native/lanes.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("base", "local", "feedback", "index", "value", "exponent")),
        ("kept", ctypes.c_void_p),
        ("block", ctypes.c_int64),
        *((name, ctypes.c_float) for name in ("decay", "top")),
    )


class Absorb(ctypes.Structure):
    """Absorb of native/lanes.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("base", "feedback")),
        ("own", Message),
        ("inbox", Message * MOST_LANES),
        *((name, ctypes.c_void_p) for name in ("moved", "kept")),
        ("block", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("messages", "limit")),
        *((name, ctypes.c_float) for name in ("rate", "divisor", "returned")),
    )


class Fused:
    """The functions of one instruction set. Operands are f32 on the CPU unless a function says otherwise.

    Results are contiguous, canonical and new, except that some functions write to a given tensor instead.
    Each function raises `NumericsError` if an operand has the wrong type or the wrong number of elements.
    """

    def __init__(self, variant: str) -> None:
        self.name = f"fused-{variant}"
        self._variant = variant

    def available(self) -> bool:
        """Whether the library is built and the processor has the instruction set."""
        return self._variant in variants()

    def map(self, function: Map, x: Tensor, g: Tensor | None = None) -> Tensor:
        """function(x), or g function(x) for the functions named GRAD. `x` may have any shape; `g` has the
        same shape.
        """
        x = x.detach().contiguous()
        g = None if g is None else g.detach().contiguous()
        out = empty(*x.shape)
        count = x.numel()
        self._call("map", int(function), _at(g, count), _at(x), _at(out), _long(count))
        return out

    def pair(self, operation: Pair, x: Tensor, y: Tensor) -> Tensor:
        """operation(x, y) for tensors of equal shape, or for a tensor and a single element; see `elementwise`."""
        x, y = x.detach().contiguous(), y.detach().contiguous()
        dtype = torch.float32 if operation < Pair.LT else torch.bool
        out = empty(*broadcast(x.shape, y.shape), dtype=dtype)
        count = out.numel()
        ones = (int(x.numel() == 1 != count), int(y.numel() == 1))
        at = (_at(t, 1 if one else count) for t, one in zip((x, y), ones))
        self._call("pair", int(operation), *at, _at(out, count, dtype), _long(count), *ones)
        return out

    def select(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """`x` where the bool `condition` holds, else `y`. `x` and `y` each have the condition's shape or a
        single element.
        """
        condition, x, y = (t.detach().contiguous() for t in (condition, x, y))
        out = empty(*condition.shape)
        count = out.numel()
        ones = (int(x.numel() == 1), int(y.numel() == 1))
        at = (_at(t, 1 if one else count) for t, one in zip((x, y), ones))
        self._call("select", _at(condition, count, torch.bool), *at, _at(out), _long(count), *ones)
        return out

    def softmax(self, x: Tensor, safe: bool) -> Tensor:
        """Rows of [… N]: exp(x - max) / (sum of exp(x - max)); with `safe`, a row of only -inf gives zeros."""
        x = x.detach().contiguous()
        out = empty(*x.shape)
        self._call("softmax", _at(x), _at(out), *_table(x), int(safe))
        return out

    def softmax_grad(self, g: Tensor, y: Tensor) -> Tensor:
        """Rows of [… N]: y (g - sum(g y))."""
        g, y = g.detach().contiguous(), y.detach().contiguous()
        out = empty(*g.shape)
        self._call("softmax_grad", _at(g), _at(y, g.numel()), _at(out), *_table(g))
        return out

    def log_softmax(self, x: Tensor) -> Tensor:
        """Rows of [… N]: x - max - log(sum of exp(x - max))."""
        x = x.detach().contiguous()
        out = empty(*x.shape)
        self._call("log_softmax", _at(x), _at(out), *_table(x))
        return out

    def log_softmax_grad(self, g: Tensor, y: Tensor) -> Tensor:
        """Rows of [… N]: g - exp(y) sum(g)."""
        g, y = g.detach().contiguous(), y.detach().contiguous()
        out = empty(*g.shape)
        self._call("log_softmax_grad", _at(g), _at(y, g.numel()), _at(out), *_table(g))
        return out

    def sum_rows(self, x: Tensor) -> Tensor:
        """Row sums, [… N] to [… 1]: section 5."""
        x = x.detach().contiguous()
        out = empty(*x.shape[:-1], 1)
        self._call("sum_rows", _at(x), _at(out), *_table(x))
        return out

    def sum_columns(self, x: Tensor) -> Tensor:
        """Column sums, [M, N] to [1, N]: section 5."""
        x = x.detach().contiguous()
        out = empty(1, x.shape[1])
        self._call("sum_columns", _at(x), None, None, None, _at(out), *_table(x))
        return out

    def layer_norm(
        self, x: Tensor, gain: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Layer norm of x [M, N]: y, mean [M, 1] and rstd [M, 1]; see `library.layer_norm`."""
        x = x.detach().contiguous()
        gain, bias = (None if t is None else t.detach().contiguous() for t in (gain, bias))
        rows, columns = x.shape
        y, mean, rstd = empty(rows, columns), empty(rows, 1), empty(rows, 1)
        given = (_at(x), _at(gain, columns), _at(bias, columns))
        made = (_at(y), _at(mean), _at(rstd))
        self._call("layer_norm", *given, ctypes.c_float(eps), *made, *_table(x))
        return y, mean, rstd

    def layer_norm_grad(
        self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None
    ) -> Tensor:
        """The gradient of x [M, N]; see `library.layer_norm`."""
        kept = [None if t is None else t.detach().contiguous() for t in (g, x, mean, rstd, gain)]
        rows, columns = g.shape
        out = empty(rows, columns)
        counts = (g.numel(), g.numel(), rows, rows, columns)
        self._call("layer_norm_grad", *map(_at, kept, counts), _at(out), *_table(g))
        return out

    def layer_norm_grad_gain(self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
        """The gradient of the gain, [N]: column sums of g (x - mean) rstd."""
        kept = [t.detach().contiguous() for t in (g, x, mean, rstd)]
        rows, columns = g.shape
        out = empty(columns)
        counts = (g.numel(), g.numel(), rows, rows)
        self._call("sum_columns", *map(_at, kept, counts), _at(out), *_table(g))
        return out

    def scalars(self, *values: Tensor) -> tuple[float, ...]:
        """Scalars in the form that `adamw` and `absorb` take: here floats."""
        return tuple(x.item() for x in values)

    def adamw(
        self, tensors: tuple[Tensor, Tensor, Tensor, Tensor], scalars: tuple[float, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One AdamW update from the tensors p, g, m, v to p', m', v'; see `library.adam`.

        The scalars are size, eps, kept, beta1, 1 - beta1, beta2, 1 - beta2.
        """
        kept = [t.detach().contiguous() for t in tensors]
        made = [empty(*kept[0].shape) for _ in range(3)]
        count = kept[0].numel()
        adam = Adam(*(address(t, count) for t in (*kept, *made)), *scalars)
        self._call("adamw", ctypes.byref(adam), _long(count))
        return made[0], made[1], made[2]

    def sgd(
        self,
        tensors: tuple[Tensor, ...],
        rate: float,
        weight_decay: float,
        momentum: float = 0.0,
        nesterov: bool = False,
    ) -> tuple[Tensor, ...]:
        """One SGD update: from p and g to p', or from p, g and a buffer to p' and the next buffer; see
        `library.sgd`.
        """
        kept = [t.detach().contiguous() for t in tensors]
        made = tuple(empty(*kept[0].shape) for _ in kept[1:])
        count = kept[0].numel()
        at = {name: address(t, count) for name, t in zip(("p", "g", "buffer"), kept)}
        at |= {name: address(t, count) for name, t in zip(("p_new", "buffer_new"), made)}
        scalars = {"rate": rate, "momentum": momentum, "decay": weight_decay}
        sgd = Sgd(**at, **scalars, decays=weight_decay != 0, nesterov=nesterov)
        self._call("sgd", ctypes.byref(sgd), _long(count))
        return made

    def lstm_cell(self, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """One step of an LSTM; writes to the tensors `made`.

        All tensors are contiguous; see `library.recurrent`.

        `given`: the input part and the recurrent part of the gates [B, 4 H], and c [B, H]. `made`: the gates
        i f g o [B, 4 H], and the next c and h [B, H].
        """
        rows, size = made[-1].shape
        counts = (rows * size * parts for parts in (4, 4, 1, 4, 1, 1))
        problem = LstmCell(*map(address, (*given, *made), counts), size)
        self._call("lstm_cell", ctypes.byref(problem), _long(rows))

    def lstm_cell_grad(self, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """The gradient of `lstm_cell`; writes to the tensors `made`.

        All tensors are contiguous; see `library.recurrent`.

        `given`, in this order: two gradients of h, from this step's results and from the next step; two
        gradients of c, from the same two sources; the gates; c; and the previous c. `made`: the gradients of
        the gates before activation [B, 4 H] and of the previous c [B, H].
        """
        rows, size = made[-1].shape
        counts = (rows * size * parts for parts in (1, 1, 1, 1, 4, 1, 1, 4, 1))
        problem = LstmCellGrad(*map(address, (*given, *made), counts), size)
        self._call("lstm_cell_grad", ctypes.byref(problem), _long(rows))

    def emit(
        self, tensors: tuple[Tensor, Tensor, Tensor], block: int, decay: float, top: float
    ) -> tuple[Tensor, ...]:
        """A message and the next feedback, from base, local and feedback, each [N]; see `library.lanes`."""
        kept = [t.detach().contiguous() for t in tensors]
        count = kept[0].numel()
        groups = _groups(count, block)
        index = [empty(groups * SHARED, dtype=torch.uint8)] if block > 1 else []
        value, exponent = empty(groups * SHARED, dtype=torch.uint8), empty(groups, dtype=torch.int32)
        left = empty(*kept[0].shape)
        made = (t.data_ptr() for t in (*(index or [value]), value, exponent, left))
        problem = Emit(*(address(t, count) for t in kept), *made, block=block, decay=decay, top=top)
        self._call("lane_emit", ctypes.byref(problem), _long(groups))
        return *index, value, exponent, left

    def absorb(
        self,
        tensors: tuple[Tensor, Tensor],
        messages: Sequence[Sequence[Tensor]],
        sizes: tuple[int, int],
        scalars: tuple[float, float, float],
    ) -> tuple[Tensor, Tensor]:
        """The next base and feedback from the current ones [N]; see `library.lanes`.

        `messages` are the lane's own message, then those of all lanes. `sizes` are the length of a block and
        the largest exponent. `scalars` are the rate, the divisor, and the share of the lane's own message
        that returns to the feedback.
        """
        base, feedback = (t.detach().contiguous() for t in tensors)
        kept = [[t.detach().contiguous() for t in message] for message in messages]
        moved, left = empty(*base.shape), empty(*feedback.shape)
        count = base.numel()
        groups = _groups(count, sizes[0])
        if len(kept) > 1 + MOST_LANES:
            raise NumericsError(f"expected at most {MOST_LANES} messages, got {len(kept) - 1}")
        own, *inbox = (_message(message, groups, sizes[0]) for message in kept)
        problem = Absorb(
            address(base),
            address(feedback, count),
            own,
            (Message * MOST_LANES)(*inbox),
            moved.data_ptr(),
            left.data_ptr(),
        )
        problem.block, problem.limit = sizes
        problem.messages, (problem.rate, problem.divisor, problem.returned) = len(inbox), scalars
        self._call("lane_absorb", ctypes.byref(problem), _long(groups))
        return moved, left

    def scatter_sum(self, index: Tensor, value: Tensor, rows: int) -> Tensor:
        """f32 [rows, N]: row r of the result is the sum of the rows k of `value` for which `index`[k] is r.
        `value` is f32 [K, N], `index` is i32 [K]; see `indexing.scatter_sum`.
        """
        index, value = index.detach().contiguous(), value.detach().contiguous()
        out = empty(rows, value.shape[1])
        at = _at(index, value.shape[0], torch.int32)
        self._call("scatter_sum", _at(value), at, _at(out), *_table(value), _long(rows))
        return out

    def canonical_in_place(self, x: Tensor) -> Tensor:
        """Canonicalise NaNs of an unshared contiguous tensor in place; write to it only if it has a NaN."""
        self._call("canonical", _at(x), _long(x.numel()))
        return x

    def _call(self, function: str, *arguments: object) -> None:
        run = getattr(library(), f"assay_{function}")
        run(variants()[self._variant], *arguments, torch.get_num_threads())


FUSED = tuple(Fused(variant) for variant in ("avx512vnni", "avx2", "baseline"))
"""The library's fused functions, by instruction set, fastest first."""


def _at(
    x: Tensor | None, count: int | None = None, dtype: torch.dtype = torch.float32
) -> ctypes.c_void_p | None:
    return None if x is None else ctypes.c_void_p(address(x, count, dtype))


def _groups(count: int, block: int) -> int:
    """The number of groups of `SHARED` blocks in `count` numbers."""
    groups, rest = divmod(count, SHARED * block)
    if rest or not groups:
        raise NumericsError(f"expected whole groups of {SHARED} blocks of {block}, got {count} numbers")
    return groups


def _message(parts: Sequence[Tensor], groups: int, block: int) -> Message:
    """The record of a message. Its parts are the places (unless a block is a single number), the values and
    the groups' exponents.
    """
    if len(parts) != (3 if block > 1 else 2):
        raise NumericsError(f"expected a message for blocks of {block}, got {len(parts)} tensors")
    *bytes_, exponents = parts
    at = [address(t, groups * SHARED, torch.uint8) for t in bytes_]
    return Message(*([None] * (3 - len(parts))), *at, address(exponents, groups, torch.int32))


def _long(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


def _table(x: Tensor) -> tuple[ctypes.c_int64, ctypes.c_int64]:
    """The number of rows and the number of columns of `x` [… N]."""
    if x.numel() == 0:
        raise NumericsError(f"expected at least one element, got {tuple(x.shape)}")
    return _long(x.numel() // x.shape[-1]), _long(x.shape[-1])
