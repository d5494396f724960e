"""Chooses the product kernel: the fastest one that runs on this machine, is allowed and has passed its
self-tests.

ASSAY_KERNELS may list names of product kernels and of fused functions (`fused_dispatch`), in order of
preference; then only these are considered. But if it names no product kernel, all product kernels are
considered. A kernel is tested on each device and for each pair of widths, before its first use there. It is
tested again before the first product of each shape class (`self_test`). After one wrong bit, the kernel is
not used on that device again in this process: a warning says so once, and the next kernel is tried.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cache, lru_cache

import torch

from protocol.errors import AssayError
from protocol.numerics.cuda.fused import CudaFused
from protocol.numerics.cuda.product import CudaIntMM, TritonInt8
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.kernels.compiled import int8_amx, int16
from protocol.numerics.kernels.float64 import Float64
from protocol.numerics.kernels.fused import FUSED
from protocol.numerics.kernels.int8 import Int8
from protocol.numerics.kernels.native import library, variants
from protocol.numerics.kernels.self_test import failure_of_class, failure_of_widths
from protocol.numerics.kernels.shape_classes import ProductCall, ShapeClass, shape_classes_of
from protocol.numerics.types import NumericsError

VARIABLE = "ASSAY_KERNELS"

KERNELS: tuple[ProductKernel, ...] = (
    int8_amx(),
    int16("avx512vnni"),
    int16("avx2"),
    int16("baseline"),
    TritonInt8(),
    CudaIntMM(),
    Float64(),
    Int8(),
    int16("portable"),
)
"""All product kernels, fastest first as measured by `make bench`; the portable loop is for unknown processors
and compilers."""

FUNCTIONS = (*(fused.name for fused in FUSED), CudaFused.name)
"""Further names for ASSAY_KERNELS: the fused functions, on the CPU (fastest first) and on CUDA."""

_log = logging.getLogger("assay.numerics")


class NoKernel(AssayError, RuntimeError):
    """No allowed kernel runs on this machine with the right bits; nothing may be computed here."""


def kernel_for(device: torch.device, px: int, py: int, call: ProductCall | None = None) -> ProductKernel:
    """The kernel for products of px by py bits on `device`, tested for the shape classes of `call`.

    Raises `NoKernel` if no allowed kernel runs on `device` and passes its self-tests, and `NumericsError` if
    ASSAY_KERNELS has unknown names.
    """
    return _chosen(str(device), px, py, os.environ.get(VARIABLE), call)


@lru_cache(maxsize=4096)
def _chosen(device: str, px: int, py: int, wanted: str | None, call: ProductCall | None) -> ProductKernel:
    return first_usable(allowed(wanted), torch.device(device), px, py, call)


def first_usable(
    kernels: Sequence[ProductKernel], device: torch.device, px: int, py: int, call: ProductCall | None = None
) -> ProductKernel:
    """The first of `kernels` that runs on `device` and passes its self-tests. Raises `NoKernel` if none does."""
    reasons = []
    for kernel in kernels:
        wrong = _refusal(kernel, device, px, py, None)
        for shape_class in () if call is None else shape_classes_of(call, kernel.tiling(px, py), px, py):
            wrong = wrong or _refusal(kernel, device, px, py, shape_class)
        if wrong is None:
            return kernel
        reasons.append(f"{kernel.name}: {wrong}")
    raise NoKernel(
        expected=f"one product kernel with exact bits on {device}",
        got=f"none ({'; '.join(reasons)})",
        remedy=f"widen {VARIABLE}, use another torch build or another machine",
    )


@lru_cache(maxsize=4096)
def is_usable(
    kernel: ProductKernel, device: torch.device, px: int, py: int, call: ProductCall | None = None
) -> bool:
    """Whether this kernel runs on `device` and passes its self-tests."""
    try:
        return first_usable((kernel,), device, px, py, call) is kernel
    except NoKernel:
        return False


_failed: dict[tuple[ProductKernel, str], str] = {}
"""Errors found, by kernel and device. After one wrong bit, a kernel is not used on that device again."""


def found_wrong() -> int:
    """Number of kernels found wrong so far, counted once for each device. A choice that depends on which
    kernels are usable must be made again when this number has changed.
    """
    return len(_failed)


def _refusal(
    kernel: ProductKernel, device: torch.device, px: int, py: int, shape_class: ShapeClass | None
) -> str | None:
    """Why the kernel is not used, or None. A kernel that was wrong once on a device is refused there."""
    return _failed.get((kernel, str(device))) or _tested(kernel, device, px, py, shape_class)


@cache
def _tested(
    kernel: ProductKernel, device: torch.device, px: int, py: int, shape_class: ShapeClass | None
) -> str | None:
    """Why a kernel is not available or fails the self-test of a shape class; None if it passes.

    If `shape_class` is None, the self-test is that of the widths. Each test runs once per process, and a
    failure is logged.
    """
    if not kernel.available(device):
        return "not available"
    try:
        wrong = (
            failure_of_widths(kernel, device, px, py)
            if shape_class is None
            else failure_of_class(kernel, device, shape_class)
        )
    except (RuntimeError, MemoryError) as error:
        unable = f"it does not run ({error})"
        _log.warning(
            "product kernel %s is not used on %s for this kind of product: %s", kernel.name, device, unable
        )
        return unable
    if wrong is not None:
        _failed[kernel, str(device)] = wrong
        _chosen.cache_clear()
        is_usable.cache_clear()
        _log.warning("product kernel %s is not used on %s: %s", kernel.name, device, wrong)
    return wrong


def allowed(wanted: str | None) -> tuple[ProductKernel, ...]:
    """The product kernels whose names are in `wanted`, a value of ASSAY_KERNELS, in the same order. If it
    names no product kernel, all product kernels.

    Raises `NumericsError` for unknown names.
    """
    if library() is None:
        _warn_not_built()
    elif "avx2" not in variants():
        _warn_no_avx2()
    if not wanted:
        return KERNELS
    by_name = {kernel.name: kernel for kernel in KERNELS}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    known = (*by_name, *FUNCTIONS)
    if not names or not set(names) <= set(known):
        raise NumericsError(f"{VARIABLE}: expected names out of {', '.join(known)}; got {wanted!r}")
    return tuple(by_name[name] for name in names if name in by_name) or KERNELS


@cache
def _warn_not_built() -> None:
    _log.warning(
        "the compiled product kernels are not built, so products run in float64, several times slower; "
        "install a C++ compiler with OpenMP and run `make setup` again"
    )


@cache
def _warn_no_avx2() -> None:
    _log.warning(
        "this processor has no AVX2, so products and fused functions run on %s, several times slower; the bits are the "
        "same",
        next(iter(variants()), "float64"),
    )
