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
        """The kernel's name in ASSAY_KERNELS and in messages."""

    def __hash__(self) -> int:
        """Kernels are hashable, because results of self-tests are cached by kernel."""

    def available(self, device: torch.device) -> bool:
        """Whether the kernel can run on `device`."""

    def tiling(self, px: int, py: int, /) -> Tiling:
        """The sizes at which products of px by py bits change their path through the kernel. They define the
        shape classes.
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
        """The product of each row of x with each row of y, as f32 [..., M, N], rounded once. x and y are f32;
        their elements are first quantised to px and py bits. Both px and py are 13 or 20.

        `ex`, i32 [..., M, 1], and `ey`, i32 [..., N, 1], are the exponents of the rows of x and of y. They
        are computed if they are None. A `bias` f32 [N] is added to the rounded product, in f32. NaN is
        canonical.
        """

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        """i64 [..., M, N]: the product of i32 rows, |x| <= 2^px and |y| <= 2^py; px and py are 13 or 20."""


class UnifiedKernel(ABC):
    """A kernel whose `contract` and `dot` run the same code: `_run`, on f32 or on integers."""

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
        """The product in `dtype`: f32, or i64 for integer operands."""
