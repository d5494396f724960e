"""Measures how far the exact step is from torch, and decides whether that is close enough.

A tensor of floats passes if it meets one of three conditions: its error is at most a few times that of
torch's own float32; its direction and size agree with the reference; or its error is negligible next to the
other tensors of its kind. For the loss, a small relative error takes the place of the last two conditions.
The first condition is needed because even float32 is inaccurate in a chaotic network, such as a deep one with
batch norm over few examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from protocol.capture.preflight.reference import Results

LEAST_COSINE = 0.999
MOST_NORM = 0.02
MOST_LOSS = 1e-3
"""The loss passes if its relative error is at most this."""
TIMES_FLOAT32 = 4.0
"""A tensor passes if its error is at most this multiple of the error of torch's float32."""
NEGLIGIBLE = 1e-3
"""A gradient or buffer passes if the root mean square of its error is at most this, relative to the root
mean square of all true values of its kind. For example, the gradient of a bias before a batch norm is zero
except for rounding.
"""


TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class Difference:
    """How one tensor of the exact step differs from the reference. `cosine` is the cosine of the angle
    between the two tensors, `norm` is the ratio of their norms, and `error` is the norm of their difference
    relative to the reference's norm. `error_of_float32` is the error of torch's float32, in the same measure.
    """

    name: str
    cosine: float
    norm: float
    error: float
    error_of_float32: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.name}: cosine {self.cosine:.5f}, norm {self.norm:.4f} of torch's, error {self.error:.2g} "
            f"(float32: {self.error_of_float32:.2g})"
        )


def differences(exact: Results, reference: Results, in_float32: Results) -> Iterator[Difference]:
    """The differences of all tensors in `exact` that are too far from `reference`."""
    for kind, ours, true, near in _kinds(exact, reference, in_float32):
        total = _root_mean_square(true.values())
        for name, value in true.items():
            found = measure(f"{kind}{name}", ours[name], value)
            found = replace(found, error_of_float32=measure(name, near[name], value).error)
            if not _passes(found, kind, value, ours[name], near[name], total):
                yield found


@dataclass(frozen=True)
class NotFinite:
    """A tensor that holds NaN or infinity in torch's float32, in the exact step, or in both. `alike` tells
    whether the same elements are finite in both.
    """

    name: str
    in_torch: bool
    in_program: bool
    alike: bool


def not_finite(exact: Results, plain: Results) -> Iterator[NotFinite]:
    """The tensors that hold NaN or infinity in the exact step, in torch, or in both."""
    for kind, ours, theirs in _kinds(exact, plain):
        for name, value in theirs.items():
            in_torch, in_program = value.isfinite(), ours[name].isfinite()
            alike = bool(torch.equal(in_torch, in_program))
            if not alike or not in_torch.all():
                yield NotFinite(f"{kind}{name}", not in_torch.all(), not in_program.all(), alike)


def others(first: Results, second: Results) -> list[str]:
    """The names of the tensors whose elements are not the same in both results; NaN equals NaN."""
    return [
        f"{kind}{name}"
        for kind, ours, theirs in _kinds(first, second)
        for name, value in theirs.items()
        if not ((ours[name] == value) | (ours[name].isnan() & value.isnan())).all()
    ]


def measure(name: str, ours: Tensor, true: Tensor) -> Difference:
    """Cosine, norm and error of `ours` compared with `true`."""
    a, b = (x.detach().double().flatten() for x in (ours, true))
    size, of_ours = float(b.norm()), float(a.norm())
    scale = max(size, TINY)
    return Difference(
        name, float(a @ b) / max(size * of_ours, TINY), of_ours / scale, float((a - b).norm()) / scale
    )


def _passes(found: Difference, kind: str, true: Tensor, ours: Tensor, near: Tensor, total: float) -> bool:
    if not true.is_floating_point():
        return bool(torch.equal(true.long(), ours.long()))
    if not near.isfinite().all():  # float32 overflows too: the same elements must be finite
        return bool(torch.equal(near.isfinite(), ours.isfinite()))
    if found.error <= TIMES_FLOAT32 * found.error_of_float32:
        return True
    if kind == LOSS:
        return found.error <= MOST_LOSS
    if found.cosine >= LEAST_COSINE and abs(found.norm - 1) <= MOST_NORM:
        return True
    return _root_mean_square([ours.double() - true.double()]) <= NEGLIGIBLE * total


LOSS, GRADIENT, BUFFER = "", "gradient of ", "buffer "


def _kinds(*results: Results) -> Iterator[tuple[Any, ...]]:
    """For each kind (loss, gradients, buffers): its prefix, then its tensors by name in each of `results`."""
    for kind, of in (
        (LOSS, lambda r: {"loss": r.loss}),
        (GRADIENT, lambda r: r.gradients),
        (BUFFER, lambda r: r.buffers),
    ):
        yield kind, *map(of, results)


def _root_mean_square(tensors: Iterable[Tensor]) -> float:
    tensors = list(tensors)
    squares = sum(float(t.double().square().sum()) for t in tensors if t.is_floating_point())
    return float((squares / max(1, sum(t.numel() for t in tensors))) ** 0.5)
