"""Convolutions in the compiled library, without windows in memory (native/convolution.cpp).

`convolution_for` gives them where they may be used; where it gives None, callers write the windows out and multiply. An
instruction set is used for convolutions if products may take it (`choice`), from the one that they take on, and if it
has passed the trial of the call's shape class (`convolution_cases`, `convolution_trial`). One wrong bit, and its
convolutions are used for nothing any more in this process, which says so once; the next instruction set computes.
"""

from __future__ import annotations

import ctypes
import logging
import os
from functools import cache, lru_cache

import torch
from torch import Tensor

from protocol.numerics.kernels.compiled import Compiled
from protocol.numerics.kernels.convolution_self_test import failure_of
from protocol.numerics.kernels.convolution_shape_classes import AT_INPUT, AT_WEIGHT, FORWARD, Asked, cases_of
from protocol.numerics.kernels.dispatch import KERNELS, VARIABLE, allowed, first_sound, sound
from protocol.numerics.kernels.native import library, variants

_log = logging.getLogger("assay.numerics")

CPU = torch.device("cpu")


class Problem(ctypes.Structure):
    """AssayConvolution of native/convolution.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("left", "image", "bias", "out")),
        *(
            (name, ctypes.c_int64)
            for name in (
                *("samples", "groups", "inputs", "outputs", "height", "width", "rows", "columns"),
                *("kernel_y", "kernel_x", "stride_y", "stride_x"),
                *("padding_y", "padding_x", "dilation_y", "dilation_x"),
            )
        ),
        *((name, ctypes.c_int32) for name in ("kind", "left_bits", "image_bits", "variant", "threads")),
    )


class Convolution:
    """Convolutions of one instruction set. Operands are f32 on the CPU, results new, contiguous and canonical."""

    def __init__(self, variant: str) -> None:
        self.name = f"convolution-{variant}"
        self._variant = variant

    def run(self, call: Asked, left: Tensor, image: Tensor, bias: Tensor | None = None) -> Tensor:
        """`call` of these operands; threads are those of torch.

        | kind | left | image | result |
        |---|---|---|---|
        | FORWARD | w [O, C/G, KH, KW] | x [N, C, H, W] | [N, O, OH, OW], plus bias [O] if any |
        | AT_INPUT | w | g [N, O, OH, OW] | [N, C, H, W] |
        | AT_WEIGHT | g | x | [O, C/G, KH, KW] |
        """
        shape = {FORWARD: call.g_shape, AT_INPUT: call.x_shape, AT_WEIGHT: call.w_shape}[call.kind]()
        out = torch.empty(shape)
        problem, kept = problem_of(call, left, image, bias)
        problem.out = out.data_ptr()
        problem.variant, problem.threads = variants()[self._variant], torch.get_num_threads()
        native = library()
        if native is None or native.assay_convolution(ctypes.byref(problem)) != 0:
            raise MemoryError("no memory for the quantised operands of a convolution; make the batch smaller")
        del kept
        return out


def problem_of(call: Asked, left: Tensor, image: Tensor, bias: Tensor | None) -> tuple[Problem, list[Tensor]]:
    """The problem for the library but for its result, and the memory that it points to."""
    kept = [t.detach().contiguous() for t in (left, image, bias) if t is not None]
    problem = Problem(
        left=kept[0].data_ptr(),
        image=kept[1].data_ptr(),
        bias=None if bias is None else kept[2].data_ptr(),
        samples=call.samples,
        groups=call.groups,
        inputs=call.inputs,
        outputs=call.outputs,
        height=call.size[0],
        width=call.size[1],
        rows=call.result[0],
        columns=call.result[1],
        kind=call.kind,
        left_bits=call.bits[0],
        image_bits=call.bits[1],
        **call.sliding(),
    )
    return problem, kept


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
