"""Chooses the fused functions: those of the fastest instruction set that is allowed and has passed.

As with products, an instruction set is used only if ASSAY_KERNELS allows it and if it passes its self-test in
this process. The test compares the digests of every function's results with the digests of the right results
(`fused_self_test`).
"""

from __future__ import annotations

import logging
import os
from functools import cache

import torch
from torch import Tensor

from protocol.numerics.cuda import launch
from protocol.numerics.cuda.fused import CudaFused
from protocol.numerics.kernels.dispatch import VARIABLE
from protocol.numerics.kernels.fused import FUSED, Fused
from protocol.numerics.kernels.fused_digests import CPU_DIGESTS, DIGESTS
from protocol.numerics.kernels.fused_self_test import DEVICE, digests_of

CUDA = torch.device("cuda")

_log = logging.getLogger("assay.numerics")


def fused_for(x: Tensor) -> Fused | CudaFused | None:
    """The functions to use for `x`. None if no functions may be used, or if `x` is empty, is not f32, or is
    on neither the CPU nor CUDA.
    """
    if x.dtype != torch.float32 or x.numel() == 0:
        return None
    if x.device.type == "cpu":
        return _chosen(os.environ.get(VARIABLE))
    return cuda_functions(os.environ.get(VARIABLE), x.device) if x.device.type == "cuda" else None


@cache
def cuda_functions(wanted: str | None, device: torch.device = CUDA) -> CudaFused | None:
    """The functions for a CUDA device (default: the current one), or None.

    They must be allowed by `wanted`, a value of ASSAY_KERNELS, and pass the self-test on the device.
    """
    fused = CudaFused()
    names = None if not wanted else {name.strip() for name in wanted.split(",")}
    usable = (names is None or fused.name in names) and launch.runs_on(device)
    return fused if usable and _passes(fused, device) else None


@cache
def _chosen(wanted: str | None) -> Fused | None:
    names = None if not wanted else {name.strip() for name in wanted.split(",")}
    for fused in FUSED:
        if (names is None or fused.name in names) and fused.available() and _passes(fused):
            return fused
    return None


@cache
def _passes(fused: Fused | CudaFused, device: torch.device = DEVICE) -> bool:
    try:
        wrong = [
            name
            for name, made in digests_of(fused, device).items()
            if made != {**DIGESTS, **CPU_DIGESTS}[name]
        ]
    except (RuntimeError, MemoryError) as error:
        _log.warning("fused functions %s are not used: they do not run (%s)", fused.name, error)
        return False
    if wrong:
        _log.warning("fused functions %s are not used: wrong bits in %s", fused.name, ", ".join(wrong))
    return not wrong
