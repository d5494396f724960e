"""Replays one case of `tests/vectors/numerics.json` on torch: the name of each operation to the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from protocol.numerics import elementwise as ew
from protocol.numerics import indexing, rows, sums
from protocol.numerics.contract import contract, dot
from protocol.numerics.elementary_torch import exp_f32, log_f32
from protocol.numerics.philox import philox
from protocol.numerics.types import DType

Operation = Callable[[list[Tensor], list[DType], DType, bytes], Tensor]


def _plain(function: Callable[..., Tensor]) -> Operation:
    return lambda xs, types, out, attributes: function(*xs)


def _typed(function: Callable[..., Tensor]) -> Operation:
    return lambda xs, types, out, attributes: function(*xs, types[0])


def _with_p(function: Callable[..., Tensor]) -> Operation:
    return lambda xs, types, out, attributes: function(*xs, attributes[0])


PLAIN: dict[str, Callable[..., Tensor]] = {
    **{"add": ew.add, "sub": ew.sub, "mul": ew.mul, "div": ew.div, "sqrt": ew.sqrt, "neg": ew.neg, "abs": ew.abs_},
    **{"minimum": ew.minimum, "maximum": ew.maximum, "floor": ew.floor, "rint": ew.rint, "scale": ew.scale},
    **{"eq": ew.eq, "select": ew.select, "and": ew.and_, "or": ew.or_, "xor": ew.xor, "shl": ew.shl},
    **{"mulhi": ew.mulhi, "exponent": rows.exponent, "dot": dot, "sum": sums.sum_i64, "max": sums.max_f32},
    **{"argmax": sums.argmax, "exp": exp_f32, "log": log_f32, "sum_f32": sums.sum_f32, "gather": indexing.gather},
}
OPERATIONS: dict[str, Operation] = {
    **{name: _plain(function) for name, function in PLAIN.items()},
    **{name: _typed(function) for name, function in (("lt", ew.lt), ("le", ew.le), ("shr", ew.shr))},
    **{name: _with_p(function) for name, function in (("quantise", rows.quantise), ("to_fixed", rows.to_fixed))},
    "cast": lambda xs, types, out, attributes: ew.cast(xs[0], types[0], out),
    "bits": lambda xs, types, out, attributes: (ew.bits if types[0] is DType.F32 else ew.from_bits)(xs[0]),
    "round_scaled": lambda xs, types, out, attributes: rows.round_scaled(
        xs[0], (xs[1], xs[2]) if len(xs) == 3 else xs[1], attributes[0]
    ),
    "contract": lambda xs, types, out, attributes: contract(xs[0], xs[1], attributes[0], attributes[1]),
}


def replay(name: str, attributes: bytes, operands: list[tuple[Tensor, DType]], out: DType, shape: list[int]) -> Tensor:
    """The result of one case on torch tensors."""
    if name == "philox":
        return philox(operands[0][0], operands[1][0], int.from_bytes(attributes, "big"), shape)
    xs, types = [x for x, _ in operands], [dtype for _, dtype in operands]
    return OPERATIONS[name](xs, types, out, attributes)


def parse(value: dict[str, Any]) -> tuple[bytes, DType, list[int]]:
    """Bytes, type and shape of a value in the file."""
    return bytes.fromhex(value["data"][2:]), DType[value["type"].upper()], value["shape"]
