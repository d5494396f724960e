"""The six value types and their canonical bytes: arithmetic.md section 1.

A value is a torch tensor of the type's storage dtype. `u32` is held in `torch.int32` with the same bits,
because torch's own uint32 lacks most operations; code that holds a u32 therefore carries its `DType` along
with the tensor. This module only makes values canonical and converts them to and from bytes.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocol.errors import InternalError


class NumericsError(InternalError, ValueError):
    """A value lacks the type, shape or bytes that an operation needs.

    The message says what was expected, what was given and what to do.
    """


class DType(enum.IntEnum):
    """Type of a committed value; the number is its code in encoded programs."""

    F32 = 0
    U8 = 1
    I32 = 2
    U32 = 3
    I64 = 4
    BOOL = 5

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]

    @property
    def storage(self) -> torch.dtype:
        """The torch dtype that holds this type; `torch.int32` for U32."""
        return _STORAGE[self]

    @property
    def width(self) -> int:
        """Bits of one element; shift counts are taken modulo the width."""
        return 8 * _ITEMSIZE[self]


_ITEMSIZE = {DType.F32: 4, DType.U8: 1, DType.I32: 4, DType.U32: 4, DType.I64: 8, DType.BOOL: 1}
_STORAGE = {
    DType.F32: torch.float32,
    DType.U8: torch.uint8,
    DType.I32: torch.int32,
    DType.U32: torch.int32,
    DType.I64: torch.int64,
    DType.BOOL: torch.bool,
}
_LITTLE_ENDIAN: dict[DType, np.dtype[Any]] = {
    DType.F32: np.dtype("<f4"),
    DType.U8: np.dtype("u1"),
    DType.I32: np.dtype("<i4"),
    DType.U32: np.dtype("<i4"),
    DType.I64: np.dtype("<i8"),
    DType.BOOL: np.dtype("u1"),
}


def canonical(x: Tensor) -> Tensor:
    """Replace every NaN of an f32 tensor by 0x7fc00000; other types pass unchanged. Never writes to `x`.

    The result may be `x` itself. On a CPU, the minimum of all elements is computed first, because it is NaN
    if any element is. If the minimum is not NaN, `x` is returned. This reads each element only once, and
    takes 5 us for 2^16 elements, while replacing takes 100 us.
    """
    if x.dtype != torch.float32:
        return x
    if x.device.type == "cpu" and x.numel() and not bool(torch.isnan(torch.amin(x))):
        return x
    return torch.nan_to_num(x, math.nan, math.inf, -math.inf)  # one kernel, where `where` takes three


def require_storage(x: Tensor, dtype: DType) -> None:
    """Raise `NumericsError` unless `x` is stored as `dtype` and has at least one element."""
    if x.dtype != dtype.storage:
        raise NumericsError(
            f"expected a tensor of {dtype.storage} for {dtype.name}, got {x.dtype}; cast it explicitly"
        )
    if x.numel() == 0:
        raise NumericsError(
            f"expected at least one element, got shape {tuple(x.shape)}; zero-size tensors do not exist"
        )


def flattened(x: Tensor) -> Tensor:
    """The elements of `x` in C order: a vector [x.numel()] of stride 1, without a copy if `x` is contiguous.

    The stride is set explicitly. torch regards an axis of size 1 as contiguous with any stride, and `reshape`
    may keep that stride. With a stride other than 1, torch could not view the vector as a type of another
    width.
    """
    return x.contiguous().as_strided((x.numel(),), (1,))


def to_bytes(x: Tensor, dtype: DType) -> bytes:
    """Canonical bytes: little-endian, C order, last axis contiguous, NaN 0x7fc00000, bool 0 or 1.

    `x` has any shape and any device; the result has `x.numel() * dtype.itemsize` bytes.
    """
    require_storage(x, dtype)
    array = canonical(x.detach()).cpu().contiguous().numpy()
    return bytes(array.astype(_LITTLE_ENDIAN[dtype], copy=False).tobytes())


def canonical_buffer(x: Tensor, dtype: DType) -> memoryview:
    """The bytes of `to_bytes`, valid until `x` is written to. If `x` is a contiguous CPU tensor that has no
    NaN and is not of bools, the bytes are those of `x` itself, not a copy.

    For a contiguous `x`, the function uses one core and none of torch's threads, so it can run at the same
    time as a step.
    """
    require_storage(x, dtype)
    return canonical_rows(x.contiguous().reshape(1, -1), dtype).reshape(-1).data


def canonical_rows(x: Tensor, dtype: DType) -> NDArray[np.uint8]:
    """The canonical bytes of `x` [rows, elements], row by row: u8 [rows, bytes]. If `x` is on the CPU, has no
    NaN and is not of bools, the result shares the memory of `x`. Otherwise it is a copy.

    The elements of a row must be contiguous; there may be gaps between rows.
    """
    require_storage(x, dtype)
    array = x.detach().cpu().numpy()
    if dtype is DType.F32 and np.isnan(array.min()):  # numpy's minimum is NaN if any element is
        array = np.where(np.isnan(array), np.float32(np.nan), array)
    return array.astype(_LITTLE_ENDIAN[dtype], copy=False).view(np.uint8)


def from_bytes(data: bytes | bytearray | memoryview, dtype: DType, shape: Sequence[int]) -> Tensor:
    """Load trusted or untrusted bytes: every NaN becomes 0x7fc00000, and every bool byte other than 0 becomes
    true.

    Returns a new, writable CPU tensor of `shape`. Raises `NumericsError` if the length does not fit the
    shape, or if an axis has size 0.
    """
    count = math.prod(shape)
    raw = np.frombuffer(data, dtype=np.uint8)
    if count < 1 or min(shape, default=1) < 1 or raw.nbytes != count * dtype.itemsize:
        raise NumericsError(
            f"expected {count * dtype.itemsize} bytes for {dtype.name} of shape {tuple(shape)} (no axis of size 0), "
            f"got {raw.nbytes}; fetch the value again or check its declared shape"
        )
    array = raw.view(_LITTLE_ENDIAN[dtype]).reshape(tuple(shape))
    if dtype is DType.BOOL:
        return torch.from_numpy(np.asarray(array != 0))  # for rank 0, numpy returns a scalar
    native = array.astype(array.dtype.newbyteorder("="), copy=True)
    return canonical(torch.from_numpy(native))
