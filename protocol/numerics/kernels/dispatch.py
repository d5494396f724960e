"""Which product kernel a process uses: the fastest that this machine runs, that is allowed, and that has proved itself.

ASSAY_KERNELS may hold a list of names, most wanted first; then only those are considered, and no functions but those it
names (`fused`). A kernel is tried at its first use on a device for a pair of widths (`trial.failure`) and again before
the first product of each shape class (`trial.failure_of`, `cases`); one that fails is never used in this process again,
which says so once, in plain words, on the log, and goes on with the next.
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
from protocol.numerics.kernels.self_test import failure, failure_of
from protocol.numerics.kernels.shape_classes import Call, Case, cases_of
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
"""Fastest first, as measured by `make bench`; the portable loop is there for processors and compilers unheard of."""

FUNCTIONS = (*(fused.name for fused in FUSED), CudaFused.name)
"""What ASSAY_KERNELS may name beside them: the functions of `fused`, fastest first."""

_log = logging.getLogger("assay.numerics")


class NoKernel(AssayError, RuntimeError):
    """No kernel that is allowed on this machine gives the right bits; nothing may be computed here."""


def kernel_for(device: torch.device, px: int, py: int, call: Call | None = None) -> ProductKernel:
    """The kernel for products of px by py bits on `device`, tried for what `call` is if that is given.

    Raises `NoKernel`, or `NumericsError` for unknown names.
    """
    return _chosen(device.type, px, py, os.environ.get(VARIABLE), call)


@lru_cache(maxsize=4096)
def _chosen(device_type: str, px: int, py: int, wanted: str | None, call: Call | None) -> ProductKernel:
    return first_sound(allowed(wanted), torch.device(device_type), px, py, call)


def first_sound(
    kernels: Sequence[ProductKernel], device: torch.device, px: int, py: int, call: Call | None = None
) -> ProductKernel:
    """The first of `kernels` that runs on `device` and passes its self-test. Raises `NoKernel`."""
    reasons = []
    for kernel in kernels:
        wrong = _verdict(kernel, device, px, py, None)
        for case in () if call is None else cases_of(call, kernel.cuts(px, py), px, py):
            wrong = wrong or _verdict(kernel, device, px, py, case)
        if wrong is None:
            return kernel
        reasons.append(f"{kernel.name}: {wrong}")
    raise NoKernel(
        expected=f"one product kernel with exact bits on {device}",
        got=f"none ({'; '.join(reasons)})",
        remedy=f"widen {VARIABLE}, use another torch build or another machine",
    )


@lru_cache(maxsize=4096)
def sound(kernel: ProductKernel, device: torch.device, px: int, py: int, call: Call | None = None) -> bool:
    """Whether this kernel runs on `device` and passes."""
    try:
        return first_sound((kernel,), device, px, py, call) is kernel
    except NoKernel:
        return False


_wrong: dict[tuple[ProductKernel, str], str] = {}
"""What kernels got wrong, by device: one wrong bit, and it is not used for anything any more."""


def _verdict(kernel: ProductKernel, device: torch.device, px: int, py: int, case: Case | None) -> str | None:
    """Why the kernel is not used, or None. Once wrong, always wrong."""
    return _wrong.get((kernel, device.type)) or _tried(kernel, device, px, py, case)


@cache
def _tried(kernel: ProductKernel, device: torch.device, px: int, py: int, case: Case | None) -> str | None:
    """What the trial of a case, or of the widths as such, finds. Once in a process; a failure is logged here."""
    if not kernel.available(device):
        return "not available"
    try:
        wrong = failure(kernel, device, px, py) if case is None else failure_of(kernel, device, case)
    except (RuntimeError, MemoryError) as error:
        unable = f"it does not run ({error})"
        _log.warning(
            "product kernel %s is not used on %s for this kind of product: %s", kernel.name, device, unable
        )
        return unable
    if wrong is not None:
        _wrong[kernel, device.type] = wrong
        _chosen.cache_clear()
        sound.cache_clear()
        _log.warning("product kernel %s is not used on %s: %s", kernel.name, device, wrong)
    return wrong


def allowed(wanted: str | None) -> tuple[ProductKernel, ...]:
    """The kernels that a value of ASSAY_KERNELS names, in its order; all of them where it names none."""
    if library() is None:
        _say_slow()
    elif "avx2" not in variants():
        _say_old()
    if not wanted:
        return KERNELS
    by_name = {kernel.name: kernel for kernel in KERNELS}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    known = (*by_name, *FUNCTIONS)
    if not names or not set(names) <= set(known):
        raise NumericsError(f"{VARIABLE}: expected names out of {', '.join(known)}; got {wanted!r}")
    return tuple(by_name[name] for name in names if name in by_name) or KERNELS


@cache
def _say_slow() -> None:
    _log.warning(
        "the compiled product kernels are not built, so products run in float64, several times slower; "
        "install a C++ compiler with OpenMP and run `make setup` again"
    )


@cache
def _say_old() -> None:
    _log.warning(
        "this processor has no AVX2, so products and fused functions run on %s, several times slower; the bits are the "
        "same",
        next(iter(variants()), "float64"),
    )
