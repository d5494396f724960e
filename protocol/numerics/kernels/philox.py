"""Computes Philox words and masks with the compiled library (native/philox.cpp), if the library passes a
self-test.

The functions return None if the library cannot be used or the key is not on the CPU. Then
`protocol.numerics.philox` uses torch.
"""

from __future__ import annotations

import ctypes
import logging
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from protocol.numerics.kernels.native import empty, library
from protocol.numerics.reference.philox import word

MASK = 0xFFFFFFFF
TASK = 1 << 14
"""Words that a thread computes at a time (TASK of native/philox.cpp)."""

_log = logging.getLogger("assay.numerics")


def words(key: Tensor, step: Tensor, stream: int, shape: Sequence[int]) -> Tensor | None:
    """Random words, u32 of `shape` (held in int32). None if the library cannot be used or the key is not on
    the CPU.
    """
    native = _tested() if key.device.type == "cpu" else None
    return None if native is None else _words(native, key, step, stream, shape)


def mask(key: Tensor, step: Tensor, stream: int, shape: Sequence[int], below: int) -> Tensor | None:
    """A mask, f32 of `shape`: 1 where the word is less than `below`, else 0. None if the library cannot be
    used or the key is not on the CPU.
    """
    native = _tested() if key.device.type == "cpu" else None
    return None if native is None else _mask(native, key, step, stream, shape, below)


def _words(native: Any, key: Tensor, step: Tensor, stream: int, shape: Sequence[int]) -> Tensor:
    out = empty(*shape, dtype=torch.int32)
    native.assay_philox(*_draw(key, step, stream, shape), out.data_ptr())
    return out


def _mask(native: Any, key: Tensor, step: Tensor, stream: int, shape: Sequence[int], below: int) -> Tensor:
    out = empty(*shape)
    native.assay_keep_mask(*_draw(key, step, stream, shape), below, out.data_ptr())
    return out


def _draw(key: Tensor, step: Tensor, stream: int, shape: Sequence[int]) -> tuple[int, ...]:
    given = (*key.reshape(2).tolist(), *step.reshape(1).tolist(), stream)
    return (*(value & MASK for value in given), math.prod(shape), torch.get_num_threads())


@cache
def _tested() -> ctypes.CDLL | None:
    """The library, with the types of its Philox functions declared. None if the library is missing or these
    functions give wrong bits.
    """
    native = library()
    if native is None:
        return None
    common = [*4 * (ctypes.c_uint32,), ctypes.c_int64, ctypes.c_int32]
    native.assay_philox.argtypes = (*common, ctypes.c_void_p)
    native.assay_keep_mask.argtypes = (*common, ctypes.c_uint64, ctypes.c_void_p)
    native.assay_philox.restype = native.assay_keep_mask.restype = None
    if _is_right(native):
        return native
    _log.warning("the compiled random words are not used: they have other bits")
    return None


def _is_right(native: Any) -> bool:
    """Whether the library's words equal those computed with plain integers, and whether its mask follows from
    the words. The compared words cover every vector lane and the borders between three blocks of up to `TASK`
    words.
    """
    key, step, stream, below = (0xFFFFFFFE, 0x12345678), 0x80000001, 3, 0xE6666666
    count = 2 * TASK + 7
    given = torch.tensor([*key, step], dtype=torch.int64, device="cpu").to(torch.int32)
    found = _words(native, given[:2], given[2], stream, (count,)).to(torch.int64) & MASK
    kept = _mask(native, given[:2], given[2], stream, (count,), below)
    indices = [*range(600), *range(TASK - 3, TASK + 3), *range(count - 300, count)]
    expected = torch.tensor([word(key, step, stream, i) for i in indices], device="cpu")
    return torch.equal(found[indices], expected) and torch.equal(kept, (found < below).to(torch.float32))
