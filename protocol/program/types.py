"""The type of a value, which is its element type and its shape; encoding.md section 1.

A `TensorType` also gives the number of chunks of a value, and has an encoding. The functions of this module
compute with shapes, indices and strides, for example for broadcasting. `protocol.numerics.types` converts
tensors to canonical bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from protocol.numerics.types import DType
from protocol.program import codec
from protocol.program.errors import EncodingError, RuleError

CHUNK_BYTES = 1024
MAX_RANK = 8
MAX_DIMENSION = 2**31 - 1
MAX_BYTES = 2**40

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape.

    Raises `EncodingError` unless the rank is 0 to 8, every dimension 1 to 2^31 - 1, and the size at most
    2^40 bytes.
    """

    dtype: DType
    shape: Shape

    def __post_init__(self) -> None:
        if len(self.shape) > MAX_RANK:
            raise EncodingError(f"a rank of at most {MAX_RANK}", f"shape {self.shape}")
        if not all(1 <= size <= MAX_DIMENSION for size in self.shape):
            raise EncodingError(f"dimensions from 1 to {MAX_DIMENSION}", f"shape {self.shape}")
        if self.nbytes > MAX_BYTES:
            raise EncodingError(f"at most {MAX_BYTES} bytes in a tensor", f"{self.nbytes}")

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements; 1 for rank 0."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Length of the canonical bytes."""
        return self.elements * self.dtype.itemsize

    @property
    def chunks(self) -> int:
        """Number of chunks of 1,024 bytes; the last one may be shorter."""
        return -(-self.nbytes // CHUNK_BYTES)

    def chunk_of(self, element: int) -> int:
        """The chunk that holds the element with this flat index."""
        return element * self.dtype.itemsize // CHUNK_BYTES

    def encode(self) -> bytes:
        """`u8 code ‖ u8 rank ‖ rank × u32 dimension`."""
        return _encoded(self)

    @classmethod
    def read(cls, reader: codec.Reader) -> TensorType:
        """Read the next type from a reader. Raises `EncodingError`."""
        code = reader.u8()
        if code not in _CODES:
            raise EncodingError(f"a type code from {sorted(_CODES)}", str(code))
        rank = reader.u8()
        if rank > MAX_RANK:
            raise EncodingError(f"a rank of at most {MAX_RANK}", str(rank))
        return cls(DType(code), tuple(reader.u32() for _ in range(rank)))

    @classmethod
    def decode(cls, data: bytes) -> TensorType:
        """Inverse of `encode`. Raises `EncodingError` for trailing or missing bytes, an unknown code, or an
        impossible type.
        """
        reader = codec.Reader(data)
        result = cls.read(reader)
        reader.end()
        return result

    def __str__(self) -> str:
        return f"{self.dtype.name.lower()}{list(self.shape)}"


_CODES = frozenset(int(dtype) for dtype in DType)


@lru_cache(maxsize=4096)
def _encoded(type_: TensorType) -> bytes:
    """The bytes of a type, cached because a program writes each of its few types thousands of times."""
    return codec.u8(type_.dtype) + codec.u8(type_.rank) + b"".join(map(codec.u32, type_.shape))


def broadcast_shape(shapes: Iterable[Shape]) -> Shape:
    """The shape to which these shapes broadcast, as in numpy. Raises `RuleError` if they do not broadcast."""
    shapes = tuple(shapes)
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        larger = {size for size in sizes if size != 1}
        if len(larger) > 1:
            raise RuleError("shapes that broadcast", " and ".join(map(str, shapes)))
        result.append(larger.pop() if larger else 1)
    return tuple(result)


def broadcast_source(element: int, result: Shape, operand: Shape) -> int:
    """Maps `element`, a flat index into the broadcast result, to the flat index of the operand's element from
    which it is computed.
    """
    index = unravel(element, result)[len(result) - len(operand) :]
    return ravel([0 if size == 1 else i for i, size in zip(index, operand, strict=True)], operand)


def unravel(element: int, shape: Shape) -> Shape:
    """The multi-index for a flat C-order index."""
    index = []
    for size in reversed(shape):
        element, remainder = divmod(element, size)
        index.append(remainder)
    return tuple(reversed(index))


def ravel(index: Sequence[int], shape: Shape) -> int:
    """The flat C-order index for a multi-index."""
    flat = 0
    for i, size in zip(index, shape, strict=True):
        flat = flat * size + i
    return flat


def contiguous_strides(shape: Shape) -> Shape:
    """C-order strides in elements."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
