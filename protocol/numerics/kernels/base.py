"""The interface of product kernels: `contract` and `dot`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import torch
from torch import Tensor

from protocol.numerics.kernels.shape_classes import Tiling


class ProductKernel(Protocol):
    """Exact products of quantised rows; operands are [..., M, K] and [..., N, K], batch axes broadcast."""

    @property
    def name(self) -> str:
        """As ASSAY_KERNELS and messages name it."""

    def __hash__(self) -> int:
        """Kernels are keys of the results of self-tests."""

    def available(self, device: torch.device) -> bool:
        """Whether it can run on `device` at all."""

    def tiling(self, px: int, py: int, /) -> Tiling:
        """Terms from which products of px by py bits take another path; the self-test depends on it
        (`shape_classes`).
        """

    def contract(
        self,
        x: Tensor,
        y: Tensor,
        px: int,
        py: int,
        ex: Tensor | None = None,
        ey: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """f32 [..., M, N] of f32 rows, rounded once; px, py of 13 or 20; exponents i32 [..., M, 1], [..., N, 1].

        A `bias` f32 [N] is added to what was rounded, in f32. NaN is canonical.
        """

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        """i64 [..., M, N] of i32 integers with |x| <= 2^px and |y| <= 2^py, px and py of 13 or 20."""


class UnifiedKernel(ABC):
    """A kernel whose `contract` and `dot` run the same code and differ only in how the sums are stored."""

    def contract(
        self,
        x: Tensor,
        y: Tensor,
        px: int,
        py: int,
        ex: Tensor | None = None,
        ey: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """See `ProductKernel`."""
        return self._run(x, y, px, py, ex, ey, bias, torch.float32)

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        """See `ProductKernel`."""
        return self._run(x, y, px, py, None, None, None, torch.int64)

    @abstractmethod
    def _run(
        self,
        x: Tensor,
        y: Tensor,
        px: int,
        py: int,
        ex: Tensor | None,
        ey: Tensor | None,
        bias: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        """The product in `dtype`: f32, or i64 of integer operands."""
