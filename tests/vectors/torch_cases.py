"""Maps the name of each operation in numerics.json to the package's function that computes it on torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from protocol.numerics import elementwise as ew
from protocol.numerics import indexing, reductions, rows, sums
from protocol.numerics.contract import contract, dot
from protocol.numerics.elementary_torch import (
    cos_f32,
    erf_f32,
    exp_f32,
    log_f32,
    rsqrt_f32,
    sigmoid_f32,
    sin_f32,
    tanh_f32,
)
from protocol.numerics.philox import philox
from protocol.numerics.types import DType


@dataclass(frozen=True)
class Call:
    """Operands with their types, the result's type and shape, and the encoded attributes."""

    xs: list[Tensor]
    types: list[DType]
    out: DType
    shape: list[int]
    attributes: bytes


PLAIN: dict[str, Callable[..., Tensor]] = {
    "add": ew.add,
    "sub": ew.sub,
    "mul": ew.mul,
    "div": ew.div,
    "sqrt": ew.sqrt,
    "neg": ew.neg,
    "abs": ew.abs_,
    "minimum": ew.minimum,
    "maximum": ew.maximum,
    "floor": ew.floor,
    "rint": ew.rint,
    "scale": ew.scale,
    "eq": ew.eq,
    "select": ew.select,
    "and": ew.and_,
    "or": ew.or_,
    "xor": ew.xor,
    "shl": ew.shl,
    "mulhi": ew.mulhi,
    "exponent": rows.exponent,
    "dot": dot,
    "sum": reductions.sum_i64,
    "max": reductions.max_f32,
    "argmax": reductions.argmax,
    "prefix_sum": reductions.prefix_sum,
    "exp": exp_f32,
    "log": log_f32,
    "tanh": tanh_f32,
    "sigmoid": sigmoid_f32,
    "erf": erf_f32,
    "sin": sin_f32,
    "cos": cos_f32,
    "rsqrt": rsqrt_f32,
    "sum_f32": sums.sum_f32,
    "gather": indexing.gather,
}
SPECIAL: dict[str, Callable[[Call], Tensor]] = {
    "lt": lambda c: ew.lt(c.xs[0], c.xs[1], c.types[0]),
    "le": lambda c: ew.le(c.xs[0], c.xs[1], c.types[0]),
    "shr": lambda c: ew.shr(c.xs[0], c.xs[1], c.types[0]),
    "cast": lambda c: ew.cast(c.xs[0], c.types[0], c.out),
    "bits": lambda c: (ew.bits if c.types[0] is DType.F32 else ew.from_bits)(c.xs[0]),
    "quantise": lambda c: rows.quantise(c.xs[0], c.xs[1], c.attributes[0]),
    "to_fixed": lambda c: rows.to_fixed(c.xs[0], c.xs[1], c.attributes[0]),
    "round_scaled": lambda c: rows.round_scaled(
        c.xs[0], (c.xs[1], c.xs[2]) if len(c.xs) == 3 else c.xs[1], c.attributes[0]
    ),
    "scatter_sum": lambda c: indexing.scatter_sum_i64(c.xs[0], c.xs[1].T, c.shape[-1]).T,
    "contract": lambda c: contract(c.xs[0], c.xs[1], c.attributes[0], c.attributes[1]),
    "philox": lambda c: philox(c.xs[0], c.xs[1], int.from_bytes(c.attributes, "big"), c.shape),
}


def replay(name: str, call: Call) -> Tensor:
    """The result of one operation on torch tensors."""
    return SPECIAL[name](call) if name in SPECIAL else PLAIN[name](*call.xs)


def parse_type(encoded: bytes) -> tuple[DType, list[int]]:
    """Type and shape from their encoding (encoding.md section 1)."""
    sizes = [int.from_bytes(encoded[2 + 4 * i : 6 + 4 * i], "big") for i in range(encoded[1])]
    return DType(encoded[0]), sizes
