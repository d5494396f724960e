"""Tensors as views: a program value read with an offset and strides, so that a transpose costs nothing.

Every ATen view is one affine map over a value. torch itself computes the map, on a meta tensor. An instruction
(`strided`) is written only if a rule needs the elements in order.
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
    """A view of a program value: element [i…] is element `offset + sum(i * strides)` of the flat `value`."""

    value: Value
    shape: Shape
    strides: Shape
    offset: int = 0
    _copies: dict[tuple[Shape, Shape, int], Value] = field(default_factory=dict, repr=False)
    """Copies made so far, by shape, strides and offset. A view shares them with all views derived from it."""

    @classmethod
    def of(cls, value: Value) -> View:
        """A view of a whole value."""
        return cls(value, value.shape, contiguous_strides(value.shape))

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.value.dtype

    @property
    def whole(self) -> bool:
        """Whether this is the value itself in its own shape."""
        shape = self.value.shape
        return (
            self.shape == shape
            and self.offset == 0
            and _same_map(shape, self.strides, contiguous_strides(shape))
        )

    def elements(self, b: Builder) -> Value:
        """A value with the view's shape and elements: the viewed value itself if the view is `whole`, else a
        copy by one `strided`.
        """
        if self.whole:
            return self.value
        key = (self.shape, self.strides, self.offset)
        if key not in self._copies:
            self._copies[key] = b.strided(self.value, *key)
        return self._copies[key]

    def broadcast(self, b: Builder) -> Value:
        """A value that broadcasts to the view: repeated axes have size 1, and leading axes of size 1 are dropped."""
        shape = tuple(1 if stride == 0 else size for size, stride in zip(self.shape, self.strides))
        while shape and shape[0] == 1:
            shape = shape[1:]
        strides = self.strides[len(self.strides) - len(shape) :]
        return View(self.value, shape, strides, self.offset, self._copies).elements(b)

    def transposed(self) -> View:
        """The view with its last two axes swapped."""
        shape, strides = ((*x[:-2], x[-1], x[-2]) for x in (self.shape, self.strides))
        return View(self.value, shape, strides, self.offset, self._copies)

    def apply(self, b: Builder, operation: Callable[..., Tensor], *args: Any, **kwargs: Any) -> View:
        """The result of an ATen view operation on this view, after a copy if torch would have to make one."""
        try:
            meta = operation(self._meta(), *args, **kwargs)
        except RuntimeError:  # torch: "view size is not compatible with input tensor's size and stride"
            if self.whole:
                raise
            return self._copied(b, lambda meta: operation(meta, *args, **kwargs)).apply(
                b, operation, *args, **kwargs
            )
        shape, strides = tuple(meta.shape), tuple(meta.stride())
        return View(self.value, shape, strides, int(meta.storage_offset()), self._copies)

    def _copied(self, b: Builder, operation: Callable[[Tensor], Tensor]) -> View:
        """A contiguous copy of the view, normally in the order of its axes. If the view's last two axes are
        swapped in memory and `operation` accepts this, the copy keeps them swapped in memory. So a product
        can read k^T from k without another copy.
        """
        transposed = (
            self.transposed() if len(self.shape) > 1 and self.strides[-2] < self.strides[-1] else self
        )
        if transposed is not self:
            try:
                operation(torch.empty(transposed.shape, device="meta").mT)
            except RuntimeError:
                transposed = self
        return (
            View.of(self.elements(b)) if transposed is self else View.of(transposed.elements(b)).transposed()
        )

    def _meta(self) -> Tensor:
        flat = torch.empty(self.value.type.elements, device="meta")
        return flat.as_strided(self.shape, self.strides, self.offset)


def _same_map(shape: Shape, left: Shape, right: Shape) -> bool:
    return all(size == 1 or x == y for size, x, y in zip(shape, left, right))
