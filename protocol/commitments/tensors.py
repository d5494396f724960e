"""A named tensor as canonical bytes (docs/spec/encoding.md section 1), and its numpy form.

Type codes are those of `protocol.numerics.types.DType`, as plain integers, so that nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.commitments.chunks import tensor_root
from protocol.commitments.errors import CheckpointError
from protocol.commitments.hashing import BytesLike

# code -> (name, numpy's little-endian type), docs/spec/encoding.md section 1
DTYPES = {
    0: ("f32", "<f4"),
    1: ("u8", "u1"),
    2: ("i32", "<i4"),
    3: ("u32", "<u4"),
    4: ("i64", "<i8"),
    5: ("bool", "?"),
}
CODES = {name: code for code, (name, _) in DTYPES.items()}

MAX_RANK = 8
MAX_DIMENSION = (1 << 31) - 1
MAX_BYTES = 1 << 40
_CANONICAL_NAN = 0x7FC00000


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: `name`, type code, shape, and the bytes of its elements in C order, little-endian. The
    bytes may be a memory-mapped file (`BlobStore.map`).

    Raises CheckpointError if the type or shape is not allowed, or if the bytes do not have the length that
    type and shape give.
    """

    name: str
    dtype: int
    shape: tuple[int, ...]
    data: BytesLike
    _root: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_length(self.name, self.dtype, self.shape, len(self.data))

    @property
    def root(self) -> bytes:
        """The tensor root of the bytes, computed on first use and kept."""
        if self._root is None:
            object.__setattr__(self, "_root", tensor_root(self.data))  # the bytes never change
        found = self._root
        assert found is not None
        return found

    @classmethod
    def from_array(cls, name: str, array: NDArray[Any]) -> Tensor:
        """The tensor of a numpy array. NaNs become canonical; all other values keep their bits. Raises
        CheckpointError unless the array has a committed type.
        """
        kind = array.dtype.newbyteorder("<")
        code = next((code for code, (_, text) in DTYPES.items() if np.dtype(text) == kind), None)
        if code is None:
            raise CheckpointError(
                f"tensor {name!r}",
                expected=f"one of {', '.join(CODES)}",
                got=f"numpy {array.dtype}",
                remedy="convert it to a committed type first",
            )
        values = np.array(array, DTYPES[code][1], order="C")  # a copy, in which NaNs are replaced
        if code == CODES["f32"]:
            values.view(np.uint32)[np.isnan(values)] = _CANONICAL_NAN
        return cls(name, code, tuple(array.shape), values.tobytes())

    def renamed(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The same bytes, shared, under another name and shape. A root that was computed is kept."""
        other = Tensor(name, self.dtype, shape, self.data)
        object.__setattr__(other, "_root", self._root)
        return other

    def array(self) -> NDArray[Any]:
        """The elements as a read-only numpy array of the tensor's shape. A bool is true if its byte is not 0."""
        if self.dtype == CODES["bool"]:
            truth: NDArray[Any] = np.frombuffer(self.data, np.uint8).reshape(self.shape) != 0
            truth.flags.writeable = False
            return truth
        return np.frombuffer(self.data, DTYPES[self.dtype][1]).reshape(self.shape)


def is_canonical(dtype: int, data: BytesLike) -> bool:
    """Whether bytes are the canonical form of a tensor of this type: every NaN is 0x7fc00000, every bool is 0 or 1."""
    if dtype == CODES["bool"]:
        return bool(np.frombuffer(data, np.uint8).max() <= 1)
    if dtype != CODES["f32"]:
        return True
    values = np.frombuffer(data, DTYPES[dtype][1])
    with np.errstate(invalid="ignore"):  # signalling NaNs
        if not np.isnan(values.min()):  # numpy's minimum is NaN if any element is
            return True
    return bool((values.view("<u4")[np.isnan(values)] == _CANONICAL_NAN).all())


def require_length(name: str, dtype: int, shape: Sequence[int], nbytes: int) -> None:
    """Raise CheckpointError unless the elements of a tensor of this type and shape take `nbytes` bytes."""
    due = tensor_bytes(dtype, shape)
    if nbytes != due:
        raise CheckpointError(
            f"tensor {name!r}",
            expected=f"{due} bytes for {DTYPES[dtype][0]} {list(shape)}",
            got=f"{nbytes} bytes",
            remedy="store the elements in C order without gaps",
        )


def tensor_bytes(dtype: int, shape: Sequence[int]) -> int:
    """Length in bytes of a tensor's elements. Raises CheckpointError for an unknown type code, and beyond
    the limits of docs/spec/encoding.md section 1.
    """
    if dtype not in DTYPES:
        raise CheckpointError(
            "type code", expected=f"one of {sorted(DTYPES)}", got=dtype, remedy="use a committed type"
        )
    total = prod(shape) * np.dtype(DTYPES[dtype][1]).itemsize
    if len(shape) > MAX_RANK or any(not 1 <= n <= MAX_DIMENSION for n in shape) or total > MAX_BYTES:
        raise CheckpointError(
            "tensor shape",
            expected=f"rank 0 to {MAX_RANK}, dimensions 1 to {MAX_DIMENSION}, at most {MAX_BYTES} bytes",
            got=list(shape),
            remedy="split or drop the tensor",
        )
    return total
