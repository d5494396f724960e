"""Convolutions in the compiled library, without materialised windows (native/convolution.cpp).

Callers get them from `convolution_dispatch.convolution_for`.
"""

from __future__ import annotations

import ctypes
import math

import torch
from torch import Tensor

from protocol.numerics.kernels.convolution_shape_classes import AT_INPUT, AT_WEIGHT, FORWARD, ConvolutionCall
from protocol.numerics.kernels.native import address, empty, library, variants


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
    """Computes convolutions with one instruction set. Operands are f32 on the CPU. Results are new tensors,
    contiguous and canonical.
    """

    def __init__(self, variant: str) -> None:
        self.name = f"convolution-{variant}"
        self._variant = variant

    def run(self, call: ConvolutionCall, left: Tensor, image: Tensor, bias: Tensor | None = None) -> Tensor:
        """Compute `call` on these operands, with as many threads as torch uses.

        | kind | left | image | result |
        |---|---|---|---|
        | FORWARD | w [O, C/G, KH, KW] | x [N, C, H, W] | [N, O, OH, OW], plus bias [O] if any |
        | AT_INPUT | w | g [N, O, OH, OW] | [N, C, H, W] |
        | AT_WEIGHT | g | x | [O, C/G, KH, KW] |

        Raises `NumericsError` if an operand is not f32 on the CPU, or if its number of elements is not that
        of its shape in this table, and `MemoryError` if there is no memory for the quantised operands.
        """
        shape = {FORWARD: call.g_shape, AT_INPUT: call.x_shape, AT_WEIGHT: call.w_shape}[call.kind]()
        out = empty(*shape)
        problem, kept = problem_of(call, left, image, bias)
        problem.out = out.data_ptr()
        problem.variant, problem.threads = variants()[self._variant], torch.get_num_threads()
        native = library()
        if native is None or native.assay_convolution(ctypes.byref(problem)) != 0:
            raise MemoryError("no memory for the quantised operands of a convolution; make the batch smaller")
        del kept
        return out


def problem_of(
    call: ConvolutionCall, left: Tensor, image: Tensor, bias: Tensor | None
) -> tuple[Problem, list[Tensor]]:
    """Return the `Problem` for the library, and the tensors whose memory it points to. The address of the
    result is not set yet.
    """
    left_shape = call.g_shape() if call.kind == AT_WEIGHT else call.w_shape()
    image_shape = call.g_shape() if call.kind == AT_INPUT else call.x_shape()
    kept = [t.detach().contiguous() for t in (left, image, bias) if t is not None]
    problem = Problem(
        left=address(kept[0], math.prod(left_shape)),
        image=address(kept[1], math.prod(image_shape)),
        bias=None if bias is None else address(kept[2], call.groups * call.outputs),
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
