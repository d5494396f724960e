"""Tensors as views: a value of the program seen through an offset and strides, so that transposes cost nothing.

Every ATen view is one affine map over the value below. torch itself works out the map, on a meta tensor; an instruction
(`strided`) is made only when somebody needs the elements in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.types import Shape, contiguous_strides


@dataclass(eq=False)
class View:
    """Element [i…] is element `offset + sum(i * strides)` of the flat `value`."""

    value: Value
    shape: Shape
    strides: Shape
    offset: int = 0
    _copy: Value | None = field(default=None, repr=False)

    @classmethod
    def of(cls, value: Value) -> View:
        """A value as it is."""
        return cls(value, value.shape, contiguous_strides(value.shape))

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.value.dtype

    @property
    def whole(self) -> bool:
        """Whether this is the value itself under its own shape."""
        shape = self.value.shape
        return (
            self.shape == shape
            and self.offset == 0
            and _same_map(shape, self.strides, contiguous_strides(shape))
        )

    def elements(self, b: Builder) -> Value:
        """The view as a value of its shape, copied by one `strided` where it is not the value itself."""
        if self.whole:
            return self.value
        if self._copy is None:
            self._copy = b.strided(self.value, self.shape, self.strides, self.offset)
        return self._copy

    def broadcast(self, b: Builder) -> Value:
        """A value that broadcasts to the view: repeated axes have size 1 and leading ones are gone."""
        shape = tuple(1 if stride == 0 else size for size, stride in zip(self.shape, self.strides))
        while shape and shape[0] == 1:
            shape = shape[1:]
        strides = self.strides[len(self.strides) - len(shape) :]
        return View(self.value, shape, strides, self.offset).elements(b)

    def turned(self) -> View:
        """The transpose of a rank 2 view."""
        return View(self.value, self.shape[::-1], self.strides[::-1], self.offset)

    def apply(self, b: Builder, operation: Callable[..., Tensor], *args: Any, **kwargs: Any) -> View:
        """The view that an ATen view operation makes of this one; copies first where torch would have to."""
        try:
            meta = operation(self._meta(), *args, **kwargs)
        except RuntimeError:  # torch: "view size is not compatible with input tensor's size and stride"
            if self.whole:
                raise
            return View.of(self.elements(b)).apply(b, operation, *args, **kwargs)
        return View(self.value, tuple(meta.shape), tuple(meta.stride()), int(meta.storage_offset()))

    def _meta(self) -> Tensor:
        flat = torch.empty(self.value.type.elements, device="meta")
        return flat.as_strided(self.shape, self.strides, self.offset)


def _same_map(shape: Shape, left: Shape, right: Shape) -> bool:
    return all(size == 1 or x == y for size, x, y in zip(shape, left, right))
