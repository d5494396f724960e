"""`Builder` writes programs. It has a method for each primitive (encoding.md section 3), and further methods
for views.

    b = Builder("affine")
    x = b.input(TensorType(DType.F32, (8, 4)))
    b.output(b.add(x, b.f32(0x3F800000)))
    program = b.build()

It is also an `Operations` namespace for the functions of `protocol.numerics.elementary`. Functions made of
several primitives are in `library`.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.numerics.types import DType
from protocol.program import attributes as attrs
from protocol.program.errors import RuleError
from protocol.program.opcodes import Op
from protocol.program.recorder import Literal, Recorder, Value, literal
from protocol.program.types import CHUNK_BYTES, TensorType, contiguous_strides

__all__ = ["Builder", "Value", "aligned_length"]


def aligned_length(length: int, itemsize: int) -> int:
    """The least number of elements, at least `length`, for which a row's size in bytes divides 1,024 or is a
    multiple of 1,024.
    """
    whole = CHUNK_BYTES // itemsize
    if length >= whole:
        return -(-length // whole) * whole
    return 1 << (length - 1).bit_length()


class Builder(Recorder):
    """Records a program. If operands do not fit, a method raises `RuleError`, which names the instruction."""

    # movement

    def strided(self, x: Value, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Value:
        """A view of x: element [i…] of the view is the element of x at flat index offset + Σ i stride, which
        must be inside x.
        """
        if len(shape) != len(strides):
            raise RuleError(f"{len(shape)} strides", str(len(strides)), operation="strided")
        declared = TensorType(x.dtype, tuple(shape))
        return self._primitive(Op.STRIDED, (x,), attrs.encode_strided(offset, strides), declared)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """The same elements in C order with another shape. No instruction is recorded if the shape is the same."""
        target = TensorType(x.dtype, tuple(shape))
        if target.elements != x.type.elements:
            raise RuleError(f"a shape of {x.type.elements} elements", str(target), operation="reshape")
        if target == x.type:
            return x
        return self.strided(x, target.shape, contiguous_strides(target.shape))

    def permute(self, x: Value, axes: Sequence[int]) -> Value:
        """Axis k of the result is axis `axes[k]` of x."""
        if sorted(axes) != list(range(x.type.rank)):
            raise RuleError(f"a permutation of {x.type.rank} axes", str(tuple(axes)), operation="permute")
        strides = contiguous_strides(x.shape)
        return self.strided(x, [x.shape[a] for a in axes], [strides[a] for a in axes])

    def transpose(self, x: Value, first: int, second: int) -> Value:
        """Swap two axes. A negative axis counts from the end."""
        axes = list(range(x.type.rank))
        axes[first], axes[second] = axes[second], axes[first]
        return self.permute(x, axes)

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """Repeat x along axes that it lacks or that have size 1, until it has `shape`. Axes are aligned at
        the right. No instruction is recorded if x already has this shape.
        """
        if tuple(shape) == x.shape:
            return x
        missing = len(shape) - x.type.rank
        sizes = (1,) * missing + x.shape
        fits = missing >= 0 and all(size in (1, new) for size, new in zip(sizes, shape, strict=True))
        if not fits:
            raise RuleError(f"a shape that {x.type} broadcasts to", str(tuple(shape)), operation="expand")
        source = (0,) * missing + contiguous_strides(x.shape)
        strides = [s if size == new else 0 for s, size, new in zip(source, sizes, shape, strict=True)]
        return self.strided(x, shape, strides)

    def slice(self, x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
        """The part of x whose indices on one axis are start, start + step, … (below stop). 0 <= start < stop
        <= size and step >= 1 must hold.
        """
        axis %= x.type.rank
        if not 0 <= start < stop <= x.shape[axis] or step < 1:
            wanted = f"a range inside axis {axis} of {x.type}"
            raise RuleError(wanted, f"{start}:{stop}:{step}", operation="slice")
        strides = list(contiguous_strides(x.shape))
        shape = list(x.shape)
        shape[axis] = -(-(stop - start) // step)
        offset = start * strides[axis]
        strides[axis] *= step
        return self.strided(x, shape, strides, offset)

    def flip(self, x: Value, axis: int) -> Value:
        """Reverse one axis."""
        strides = list(contiguous_strides(x.shape))
        offset = (x.shape[axis] - 1) * strides[axis]
        strides[axis] = -strides[axis]
        return self.strided(x, x.shape, strides, offset)

    def concat(self, pieces: Sequence[Value], axis: int) -> Value:
        """Concatenate along an axis; a negative axis counts from the end."""
        rank = pieces[0].type.rank if pieces else 0
        return self._primitive(Op.CONCAT, pieces, attrs.encode_byte(axis % rank if rank else 0))

    def pad(self, x: Value, shape: Sequence[int], low: Sequence[int], fill: Literal) -> Value:
        """Place x in a tensor of `shape`: on axis k it begins at index `low[k]`. All other elements are `fill`."""
        declared = TensorType(x.dtype, tuple(shape))
        return self._primitive(Op.PAD, (x,), attrs.encode_pad(low, literal(x.dtype, fill)), declared)

    def pad_rows(self, x: Value, fill: Literal) -> Value:
        """If necessary, pad the last axis with `fill` to the next row length that a reduction accepts."""
        length = aligned_length(x.shape[-1], x.dtype.itemsize)
        shape = (*x.shape[:-1], length)
        return x if shape == x.shape else self.pad(x, shape, [0] * x.type.rank, fill)

    def gather(self, x: Value, index: Value) -> Value:
        """The rows of x that `index` selects. x is [R, c…], `index` is i32 [n…], and the result is [n…, c…].
        Where an index is outside 0 … R-1, all bits of the row are zero.
        """
        return self._primitive(Op.GATHER, (x, index))

    # single-element operations; operands broadcast

    def add(self, x: Value, y: Value) -> Value:
        """x + y on f32, i32, u32 or i64."""
        return self._primitive(Op.ADD, (x, y))

    def sub(self, x: Value, y: Value) -> Value:
        """x - y on f32, i32, u32 or i64."""
        return self._primitive(Op.SUB, (x, y))

    def mul(self, x: Value, y: Value) -> Value:
        """x y on f32, i32, u32 or i64."""
        return self._primitive(Op.MUL, (x, y))

    def div(self, x: Value, y: Value) -> Value:
        """x / y on f32."""
        return self._primitive(Op.DIV, (x, y))

    def minimum(self, x: Value, y: Value) -> Value:
        """Smaller of two f32; NaN if either is NaN. +0.0 is added, so a zero result is +0."""
        return self._primitive(Op.MINIMUM, (x, y))

    def maximum(self, x: Value, y: Value) -> Value:
        """Larger of two f32; NaN if either is NaN. +0.0 is added, so a zero result is +0."""
        return self._primitive(Op.MAXIMUM, (x, y))

    def sqrt(self, x: Value) -> Value:
        """Square root of f32."""
        return self._primitive(Op.SQRT, (x,))

    def neg(self, x: Value) -> Value:
        """-x on f32."""
        return self._primitive(Op.NEG, (x,))

    def abs(self, x: Value) -> Value:
        """|x| on f32."""
        return self._primitive(Op.ABS, (x,))

    def floor(self, x: Value) -> Value:
        """Largest integral f32 not above x."""
        return self._primitive(Op.FLOOR, (x,))

    def rint(self, x: Value) -> Value:
        """Nearest integral f32, ties to even."""
        return self._primitive(Op.RINT, (x,))

    def scale(self, x: Value, k: Value) -> Value:
        """x 2^k for f32 x and i32 k, rounded once."""
        return self._primitive(Op.SCALE, (x, k))

    def lt(self, x: Value, y: Value) -> Value:
        """x < y as bool on f32, i32, u32 or i64; false on NaN."""
        return self._primitive(Op.LT, (x, y))

    def le(self, x: Value, y: Value) -> Value:
        """x <= y as bool on f32, i32, u32 or i64; false on NaN."""
        return self._primitive(Op.LE, (x, y))

    def eq(self, x: Value, y: Value) -> Value:
        """x == y as bool on f32, i32, u32, i64 or bool; false on NaN."""
        return self._primitive(Op.EQ, (x, y))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """x where the bool `condition` holds, else y. x and y may have any type, but both must have the same type."""
        return self._primitive(Op.SELECT, (condition, x, y))

    def and_(self, x: Value, y: Value) -> Value:
        """Bitwise and on i32, u32, i64 or bool."""
        return self._primitive(Op.AND, (x, y))

    def or_(self, x: Value, y: Value) -> Value:
        """Bitwise or on i32, u32, i64 or bool."""
        return self._primitive(Op.OR, (x, y))

    def xor(self, x: Value, y: Value) -> Value:
        """Bitwise exclusive or on i32, u32, i64 or bool."""
        return self._primitive(Op.XOR, (x, y))

    def shl(self, x: Value, k: Value) -> Value:
        """x shifted left, on i32, u32 or i64. The shift is (k modulo the width) bits."""
        return self._primitive(Op.SHL, (x, k))

    def shr(self, x: Value, k: Value) -> Value:
        """x shifted right, arithmetically if signed, on i32, u32 or i64. The shift is (k modulo the width)
        bits.
        """
        return self._primitive(Op.SHR, (x, k))

    def mulhi(self, x: Value, y: Value) -> Value:
        """High word of the product of two u32."""
        return self._primitive(Op.MULHI, (x, y))

    def cast(self, x: Value, dtype: DType) -> Value:
        """Convert to another type (encoding.md, "Casts"). No instruction is recorded if x already has this type."""
        if x.dtype is dtype:
            return x
        return self._primitive(Op.CAST, (x,), b"", TensorType(dtype, x.shape))

    def bits(self, x: Value) -> Value:
        """The bits of an f32 as u32, or the f32 with the bits of a u32."""
        return self._primitive(Op.BITS, (x,))

    def bits_i32(self, x: Value) -> Value:
        """The bits of an f32 as i32."""
        return self.cast(self.bits(x), DType.I32)

    def from_bits_i32(self, x: Value) -> Value:
        """The f32 with the bits of an i32."""
        return self.bits(self.cast(x, DType.U32))

    def f32_to_i32(self, x: Value) -> Value:
        """`cast` from f32 to i32."""
        return self.cast(x, DType.I32)

    def i32_to_f32(self, x: Value) -> Value:
        """`cast` from i32 to f32."""
        return self.cast(x, DType.F32)

    def power_of_two(self, k: Value) -> Value:
        """2^k as f32 for i32 k."""
        return self.scale(self.f32(0x3F800000), k)

    # names that `numerics.elementary` uses, because other namespaces must know the type of the bits
    add_i32 = add
    sub_i32 = sub
    and_i32 = and_
    shr_i32 = shr
    select_i32 = select
    eq_i32 = eq
    bits_u32 = bits
    from_bits_u32 = bits
    and_u32 = and_
    or_u32 = or_

    # rows and reductions along the last axis

    def exponent(self, x: Value) -> Value:
        """Row exponents of f32 x [… K]: i32 [… 1]."""
        return self._primitive(Op.EXPONENT, (x,))

    def quantise(self, x: Value, e: Value, p: int) -> Value:
        """The integers m_p(x) of arithmetic.md, as i32, for f32 x and i32 e; p is 13, 20 or 30."""
        return self._primitive(Op.QUANTISE, (x, e), attrs.encode_byte(p))

    def to_fixed(self, x: Value, e: Value, p: int = 30) -> Value:
        """The integers m_p(x) of arithmetic.md, as i64, for f32 x and i32 e; p is 30."""
        return self._primitive(Op.TO_FIXED, (x, e), attrs.encode_byte(p))

    def round_scaled(self, s: Value, *exponents: Value, p: int) -> Value:
        """f32 round(s 2^(e + e' - p)) for i64 s and one or two i32 exponents."""
        return self._primitive(Op.ROUND_SCALED, (s, *exponents), attrs.encode_byte(p))

    def dot(self, x: Value, y: Value) -> Value:
        """For each row of x and each row of y, the wrapping sum of the products of their elements. x [… M K]
        and y [… N K] are i32; the result is i64 [… M N].
        """
        return self._primitive(Op.DOT, (x, y))

    def sum(self, x: Value) -> Value:
        """i64 [… K] to [… 1]: the wrapping sum."""
        return self._primitive(Op.SUM, (x,))

    def max(self, x: Value) -> Value:
        """f32 [… K] to [… 1]: the maximum of each row; NaN if any element of the row is NaN. +0.0 is added,
        so a zero result is +0.
        """
        return self._primitive(Op.MAX, (x,))

    def argmax(self, x: Value) -> Value:
        """f32 [… K] to i32 [… 1]: the index of the first NaN, else the lowest index of the maximum."""
        return self._primitive(Op.ARGMAX, (x,))

    def scatter_sum(self, index: Value, x: Value, rows: int) -> Value:
        """i64 [… R] from i32 index [N] and i64 x [… N]: element r is the wrapping sum of the x[k] with
        index[k] = r.

        R is `rows`. Elements with an index outside 0 … R-1 are dropped, so pad with an index of -1.
        """
        return self._primitive(Op.SCATTER_SUM, (index, x), attrs.encode_index(rows))

    def prefix_sum(self, x: Value) -> Value:
        """i64 [… K] to [… K]: element j is the wrapping sum of x[0 … j]."""
        return self._primitive(Op.PREFIX_SUM, (x,))

    def philox(self, key: Value, step: Value, stream: int, shape: Sequence[int]) -> Value:
        """u32 words of Philox4x32-10, in the given shape. `key` is u32 [2], and `step` is u32 with one element."""
        declared = TensorType(DType.U32, tuple(shape))
        return self._primitive(Op.PHILOX, (key, step), attrs.encode_index(stream), declared)
