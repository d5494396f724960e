"""Loads the compiled library next to this file, if the build made one. It has a plain C ABI, used by ctypes.

`setup.py` compiles native/*.cpp if it finds a C++ compiler with OpenMP. Without the library everything still
works, with float64 products and torch's operations. torch is imported first, so that the library shares its
OpenMP threads.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch  # its libgomp must be the one that the library finds loaded
from torch import Tensor

from protocol.numerics.types import NumericsError

VERSION = 2
"""Version of the structures and functions that Python shares with the library.

If one of them changes, increase it here and in `assay_version` of native/product.cpp. A library of another
version is not used.
"""


class Operand(ctypes.Structure):
    """AssayOperand of native/problem.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("row_stride", ctypes.c_int64),
        ("term_stride", ctypes.c_int64),
        ("exponents", ctypes.c_void_p),
        ("bits", ctypes.c_int32),
        ("is_integer", ctypes.c_int32),
    )


class Problem(ctypes.Structure):
    """AssayProblem of native/problem.h."""

    _fields_ = (
        ("x", Operand),
        ("y", Operand),
        ("batch", ctypes.c_int64),
        ("terms", ctypes.c_int64),
        ("out", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("variant", ctypes.c_int32),
        ("threads", ctypes.c_int32),
    )


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Memory for the library's results: contiguous, on the CPU, whatever torch's default type and device are."""
    return torch.empty(shape, dtype=dtype, device="cpu")


def address(x: Tensor | None, count: int | None = None, dtype: torch.dtype = torch.float32) -> int | None:
    """The address of a tensor's elements; None for None.

    Raises `NumericsError` unless the tensor is contiguous, of type `dtype`, on the CPU and, if `count` is
    given, of `count` elements. The library would read or write beyond the end of a smaller tensor.
    """
    if x is None:
        return None
    require_elements(x, dtype)
    if not x.is_contiguous() or (count is not None and x.numel() != count):
        wanted = "contiguous elements" if count is None else f"{count} contiguous elements"
        raise NumericsError(
            f"expected {wanted}, got shape {tuple(x.shape)} with strides {x.stride()}; run the function's body"
        )
    return x.data_ptr()


def require_elements(x: Tensor, dtype: torch.dtype = torch.float32) -> None:
    """Raise `NumericsError` unless a tensor's elements are `dtype` on the CPU."""
    if x.dtype != dtype or x.device.type != "cpu":
        raise NumericsError(
            f"expected {dtype} on the CPU, got {x.dtype} on {x.device}; run the function's body"
        )


@cache
def library() -> ctypes.CDLL | None:
    """The library with typed functions, or None if it is not built, does not load or has another version."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_native{suffix}")
        if path.is_file():
            try:
                native = ctypes.CDLL(str(path))
                return _typed(native) if native.assay_version() == VERSION else None
            except (OSError, AttributeError):  # built for another machine, or before it had a version
                return None
    return None


@cache
def variants() -> dict[str, int]:
    """The instruction sets that both the library and this processor have, fastest first. Each name is mapped
    to the library's number for the instruction set.

    Empty without the library.
    """
    found: dict[str, int] = {}
    native = library()
    number = 0
    while native is not None and (name := native.assay_variant_name(number)) is not None:
        if native.assay_variant_supported(number):
            found[name.decode()] = number
        number += 1
    return found


def _typed(native: ctypes.CDLL) -> ctypes.CDLL:
    native.assay_variant_name.argtypes = (ctypes.c_int32,)
    native.assay_variant_name.restype = ctypes.c_char_p
    native.assay_variant_supported.argtypes = (ctypes.c_int32,)
    native.assay_variant_supported.restype = ctypes.c_int32
    native.assay_product.argtypes = (ctypes.POINTER(Problem),)
    native.assay_product.restype = ctypes.c_int32
    native.assay_convolution.restype = ctypes.c_int32
    native.assay_channel_sums.restype = None
    return native
