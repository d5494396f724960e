"""Which convolutions a process uses: those of an instruction set that products may take and that has passed.

An instruction set is used for convolutions if products may take it (`dispatch`), from the one that they take on, and if
it has passed the self-test of the call's shape class (`convolution_shape_classes`, `convolution_self_test`). After one
wrong bit its convolutions are used for nothing in this process any more: a warning says so once, and the next
instruction set computes. Where `convolution_for` gives None, callers write the windows out and multiply.
"""

from __future__ import annotations

import logging
import os
from functools import cache, lru_cache

import torch
from torch import Tensor

from protocol.numerics.kernels.compiled import Compiled
from protocol.numerics.kernels.convolution import Convolution
from protocol.numerics.kernels.convolution_self_test import failure_of
from protocol.numerics.kernels.convolution_shape_classes import Asked, cases_of
from protocol.numerics.kernels.dispatch import KERNELS, VARIABLE, allowed, first_sound, sound

_log = logging.getLogger("assay.numerics")

CPU = torch.device("cpu")


def convolution_for(x: Tensor, call: Asked) -> Convolution | None:
    """The convolutions to use for `call` on tensors like `x`: None if not f32 on the CPU, not built, not allowed, or if
    none has passed. Raises `NoKernel` where no product may be used either."""
    if x.device.type != "cpu" or x.dtype != torch.float32:
        return None
    return _chosen(os.environ.get(VARIABLE), call)


@lru_cache(maxsize=4096)
def _chosen(wanted: str | None, call: Asked) -> Convolution | None:
    kernels = allowed(wanted)
    first = kernels.index(first_sound(kernels, CPU, 20, 13))
    for kernel in kernels[first:]:
        if not kernel.available(CPU):
            continue
        if not isinstance(kernel, Compiled):
            return None  # whose products are the faster ones, by the order asked for
        convolution = _of(kernel.others)
        if sound(_pairs(kernel), CPU, 20, 13) and passes(convolution, call):
            return convolution
    return None


def _pairs(kernel: Compiled) -> Compiled:
    """The products with which its convolutions are made: those of pairs, whatever others its instruction set has."""
    return next(k for k in KERNELS if isinstance(k, Compiled) and k.variant == kernel.others)


@cache
def _of(variant: str) -> Convolution:
    return Convolution(variant)


_wrong: set[str] = set()
"""Names of those that gave a wrong bit."""


def passes(convolution: Convolution, call: Asked) -> bool:
    """Whether it has given no wrong bit so far, the cases of this call's class included."""
    return convolution.name not in _wrong and all(_tried(convolution, case) for case in cases_of(call))


@cache
def _tried(convolution: Convolution, case: Asked) -> bool:
    """The trial of a case. Once in a process; a failure is logged here."""
    try:
        wrong = failure_of(convolution, case)
    except (RuntimeError, MemoryError) as error:
        _log.warning(
            "%s is not used for this kind of convolution: it does not run (%s)", convolution.name, error
        )
        return False
    if wrong is not None:
        _wrong.add(convolution.name)
        _chosen.cache_clear()
        _log.warning("%s is not used: %s", convolution.name, wrong)
    return wrong is None
