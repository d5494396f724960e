"""Batch norm in the compiled library: functions over [N, C, S] that read each channel from memory only once.

Callers get them from `channels_dispatch.channels_for`.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from protocol.numerics.kernels.native import address, empty, library, variants

WHOLE = frozenset(("x", "g", "y"))
"""Tensors of the size of the operand x [N, C, S]; the others have one element for each channel."""


class Problem(ctypes.Structure):
    """AssayChannels of native/channels.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("g", "x", "mean", "rstd", "gain", "bias", "total", "along")),
        *((name, ctypes.c_void_p) for name in ("y", "first", "second", "third")),
        *((name, ctypes.c_int64) for name in ("samples", "channels", "size")),
        ("eps", ctypes.c_float),
    )


class Channels:
    """The functions of one instruction set: see `library.batch_norm`. Results are new, contiguous and
    canonical.

    They raise `NumericsError` if an operand is not f32 on the CPU or has the wrong number of elements.
    """

    def __init__(self, variant: str) -> None:
        self.name = f"channels-{variant}"
        self._variant = variant

    def statistics(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        """For x [N, C, S], three results of shape [C]: the mean, 1 / sqrt(variance + eps), and the variance
        for running statistics. The variance under the root is a sum of squared deviations divided by N S; the
        one for running statistics is the same sum divided by N S - 1.
        """
        out = {name: empty(x.shape[1]) for name in ("first", "second", "third")}
        self._call("statistics", x, eps=eps, **out)
        return out["first"], out["second"], out["third"]

    def sums(self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of g and the sum of g (x - mean) rstd over each channel, both [C]."""
        first, second = empty(x.shape[1]), empty(x.shape[1])
        self._call("sums", x, g=g, mean=mean, rstd=rstd, first=first, second=second)
        return first, second

    def normalise(
        self, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        """((x - mean) rstd) gain + bias; a bias requires a gain."""
        y = empty(*x.shape)
        self._call("normalise", x, mean=mean, rstd=rstd, gain=gain, bias=bias, y=y)
        return y

    def grad(
        self,
        g: Tensor,
        x: Tensor,
        statistics: tuple[Tensor, Tensor],
        sums: tuple[Tensor, Tensor],
        gain: Tensor | None,
    ) -> Tensor:
        """The gradient of x: ((g - total / M) - n (along / M)) (rstd gain).

        n = (x - mean) rstd and M = N S. `statistics` are mean and rstd, `sums` are total and along.
        """
        y = empty(*x.shape)
        (mean, rstd), (total, along) = statistics, sums
        self._call("grad", x, g=g, mean=mean, rstd=rstd, total=total, along=along, gain=gain, y=y)
        return y

    def _call(self, function: str, x: Tensor, eps: float = 0.0, **tensors: Tensor | None) -> None:
        kept = {name: t.detach().contiguous() for name, t in {**tensors, "x": x}.items() if t is not None}
        samples, channels, size = x.shape
        problem = Problem(samples=samples, channels=channels, size=size, eps=eps)
        for name, t in kept.items():
            setattr(problem, name, address(t, x.numel() if name in WHOLE else channels))
        run = getattr(library(), f"assay_channel_{function}")
        run(variants()[self._variant], ctypes.byref(problem), torch.get_num_threads())
