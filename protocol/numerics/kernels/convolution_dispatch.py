"""Chooses convolutions: those of the first allowed instruction set that passes its self-tests.

The search starts with the instruction set that products use (`dispatch`). A set must be usable for products,
and its convolutions must pass the self-test of the call's shape classes (`convolution_shape_classes`,
`convolution_self_test`). After one wrong bit, its convolutions are not used again in this process: a warning
says so once, and the next instruction set is tried. If `convolution_for` returns None, callers materialise
the windows and multiply.
"""

from __future__ import annotations

import logging
import os
from functools import cache, lru_cache

import torch
from torch import Tensor

from protocol.numerics.kernels.compiled import Compiled
from protocol.numerics.kernels.convolution import Convolution
from protocol.numerics.kernels.convolution_self_test import failure_of_class
from protocol.numerics.kernels.convolution_shape_classes import (
    MOST_PHASES,
    MOST_TAPS,
    ConvolutionCall,
    shape_classes_of,
)
from protocol.numerics.kernels.dispatch import (
    KERNELS,
    VARIABLE,
    allowed,
    first_usable,
    found_wrong,
    is_usable,
)

_log = logging.getLogger("assay.numerics")

CPU = torch.device("cpu")


def convolution_for(x: Tensor, call: ConvolutionCall) -> Convolution | None:
    """The convolutions to use for `call` on tensors like `x`.

    None if `x` is not f32 on the CPU, if the call has too many phases or too large a kernel, if a product
    kernel that is not compiled is preferred, or if every instruction set's convolutions are missing,
    forbidden or wrong. Raises `NoKernel` if no product kernel may be used on the CPU.
    """
    if x.device.type != "cpu" or x.dtype != torch.float32:
        return None
    if call.phases() > MOST_PHASES or call.taps() > MOST_TAPS:
        return None
    return _chosen(os.environ.get(VARIABLE), call, found_wrong())


@lru_cache(maxsize=4096)
def _chosen(wanted: str | None, call: ConvolutionCall, _found_wrong: int) -> Convolution | None:
    kernels = allowed(wanted)
    first = kernels.index(first_usable(kernels, CPU, 20, 13))
    for kernel in kernels[first:]:
        if not kernel.available(CPU):
            continue
        if not isinstance(kernel, Compiled):
            return None  # a kernel that is not compiled comes first in the order of preference
        convolution = _of(kernel.others)
        if is_usable(_pairs(kernel), CPU, 20, 13) and passes(convolution, call):
            return convolution
    return None


def _pairs(kernel: Compiled) -> Compiled:
    """The kernel of int16 pairs that convolutions use when products use `kernel`. Often both are the same kernel."""
    return next(k for k in KERNELS if isinstance(k, Compiled) and k.variant == kernel.others)


@cache
def _of(variant: str) -> Convolution:
    return Convolution(variant)


_failed: set[str] = set()
"""Names of convolutions that gave a wrong bit."""


def passes(convolution: Convolution, call: ConvolutionCall) -> bool:
    """Whether `convolution` passes the self-tests of the call's classes and has never given a wrong bit."""
    return convolution.name not in _failed and all(
        _tested(convolution, call) for call in shape_classes_of(call)
    )


@cache
def _tested(convolution: Convolution, call: ConvolutionCall) -> bool:
    """Whether `convolution` passes the self-test of one shape class, which is given by `call`. The test runs
    once in a process, and a failure is logged.
    """
    try:
        wrong = failure_of_class(convolution, call)
    except (RuntimeError, MemoryError) as error:
        _log.warning(
            "%s is not used for this kind of convolution: it does not run (%s)", convolution.name, error
        )
        return False
    if wrong is not None:
        _failed.add(convolution.name)
        _chosen.cache_clear()
        _log.warning("%s is not used: %s", convolution.name, wrong)
    return wrong is None
