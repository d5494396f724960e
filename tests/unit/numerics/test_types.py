"""Canonical bytes: storing, loading hostile bytes, and refused input."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from protocol.numerics.elementwise import bits
from protocol.numerics.types import (
    DType,
    NumericsError,
    canonical_buffer,
    canonical_rows,
    flattened,
    from_bytes,
    to_bytes,
)


def test_codes_are_those_of_the_encoding() -> None:
    assert {dtype.name: (int(dtype), dtype.itemsize) for dtype in DType} == {
        "F32": (0, 4),
        "U8": (1, 1),
        "I32": (2, 4),
        "U32": (3, 4),
        "I64": (4, 8),
        "BOOL": (5, 1),
    }


@pytest.mark.parametrize("dtype", list(DType))
def test_bytes_survive_a_round_trip(dtype: DType) -> None:
    data = (bytes([0, 1, 1, 0, 1, 0, 0, 1]) if dtype is DType.BOOL else bytes(range(1, 9))) * 6
    shape = (2, len(data) // dtype.itemsize // 2)
    assert to_bytes(from_bytes(data, dtype, shape), dtype) == data


def test_every_nan_is_stored_and_loaded_canonical() -> None:
    payloads = torch.tensor([0x7F800001, 0x7FFFFFFF, -1, -0x3FEDCC], dtype=torch.int32)
    assert to_bytes(payloads.view(torch.float32), DType.F32) == bytes.fromhex("0000c07f") * 4
    loaded = from_bytes(payloads.numpy().tobytes(), DType.F32, (4,))
    assert loaded.view(torch.int32).tolist() == [0x7FC00000] * 4


def test_subnormals_and_negative_zero_are_kept() -> None:
    data = bytes.fromhex("01000000 00000080 ffff7f80")
    assert to_bytes(from_bytes(data, DType.F32, (3,)), DType.F32) == data


def test_any_non_zero_byte_loads_as_true_and_is_stored_as_one() -> None:
    assert to_bytes(from_bytes(bytes([0, 1, 2, 255]), DType.BOOL, (4,)), DType.BOOL) == bytes([0, 1, 1, 1])


def test_order_is_c_order_whatever_the_strides() -> None:
    x = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    assert to_bytes(x.T, DType.I32) == to_bytes(x.T.contiguous(), DType.I32)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 1), (3, 2)])
def test_a_flattened_tensor_can_be_viewed_as_bytes_whatever_the_strides(shape: tuple[int, ...]) -> None:
    """torch may keep a stride of 0 on an axis of size 1. A tensor with such an axis can nevertheless be
    flattened and viewed as bytes.
    """
    expanded = torch.zeros((), dtype=torch.int64).expand(shape)
    turned = torch.arange(expanded.numel()).reshape(shape[::-1]).permute(tuple(reversed(range(len(shape)))))
    for x in (expanded, turned):
        assert flattened(x).view(torch.uint8).numpy().tobytes() == to_bytes(x, DType.I64)


def test_loaded_tensor_does_not_share_the_bytes() -> None:
    data = bytearray(4)
    x = from_bytes(data, DType.I32, (1,))
    data[0] = 7
    assert int(x) == 0


def test_bits_of_a_transposed_tensor_keep_its_shape() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert bits(x.T).shape == (3, 2)
    assert int(bits(x.T)[0, 1]) == 0x40800000


@pytest.mark.parametrize(("size", "shape"), [(7, (2,)), (0, (0,)), (9, (2,)), (0, (2, 0)), (4, (-1, -1))])
def test_wrong_length_or_empty_shape_is_refused(size: int, shape: tuple[int, ...]) -> None:
    with pytest.raises(NumericsError, match=r"expected .* bytes"):
        from_bytes(bytes(size), DType.F32, shape)


def test_wrong_storage_and_empty_tensors_are_refused() -> None:
    with pytest.raises(NumericsError, match="cast it explicitly"):
        to_bytes(torch.zeros(2, dtype=torch.float64), DType.F32)
    with pytest.raises(NumericsError, match="at least one element"):
        to_bytes(torch.zeros(0), DType.F32)


@pytest.mark.parametrize("dtype", list(DType))
def test_a_buffer_has_the_bytes_without_a_copy(dtype: DType) -> None:
    """The bytes are right for all types, layouts and ranks. If a tensor is already in committed form and does
    not hold bools, its bytes are not copied.
    """
    data = bytes(n % 2 for n in range(48)) if dtype is DType.BOOL else bytes(range(1, 49))
    x = from_bytes(data, dtype, (len(data) // dtype.itemsize,))
    assert canonical_buffer(x, dtype) == to_bytes(x, dtype) == data
    if dtype is not DType.BOOL:  # bools are copied, as 0 or 1
        assert np.frombuffer(canonical_buffer(x, dtype), np.uint8).ctypes.data == x.data_ptr()
    for other in (x.reshape(2, -1).T, x[0], x[::2]):
        assert canonical_buffer(other, dtype) == to_bytes(other, dtype)
    with pytest.raises(NumericsError):
        canonical_buffer(torch.zeros(2, dtype=torch.float64), dtype)


@pytest.mark.parametrize("dtype", list(DType))
def test_rows_have_the_bytes_without_a_copy(dtype: DType) -> None:
    data = bytes(n % 2 for n in range(96)) if dtype is DType.BOOL else bytes(range(1, 97))
    x = from_bytes(data, dtype, (6, len(data) // dtype.itemsize // 6))[::2]
    rows = canonical_rows(x, dtype)
    assert rows.tobytes() == to_bytes(x, dtype)
    assert (rows.ctypes.data == x.data_ptr()) == (dtype is not DType.BOOL)


def test_a_buffer_has_canonical_nans_and_leaves_the_tensor_as_it_was() -> None:
    words = [0x7FC00000, 0x7F800001, -1, -0x80000000, 0x7F800000, 1]
    x = torch.tensor(words, dtype=torch.int32).view(torch.float32)
    assert canonical_buffer(x, DType.F32) == to_bytes(x, DType.F32)
    assert canonical_buffer(x, DType.F32)[8:12] == bytes.fromhex("0000c07f")
    assert canonical_rows(x.view(3, 2)[::2], DType.F32).tobytes() == to_bytes(x.view(3, 2)[::2], DType.F32)
    assert x.view(torch.int32).tolist() == words
