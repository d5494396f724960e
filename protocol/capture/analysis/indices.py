"""Which operations take indices, and which indices torch allows for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.analysis.intervals import Interval
from protocol.capture.tracing.sources import source_of

aten = torch.ops.aten
ALONG_AN_AXIS = {
    *(aten.gather.default, aten.index_select.default, aten.index_add.default),
    *(aten.scatter.src, aten.scatter.value, aten.scatter_add.default),
}
"""Operations on a tensor, an axis and indices along it. torch allows no negative indices here."""
FROM_EITHER_END = {
    *(aten.index.Tensor, aten._unsafe_index.Tensor),
    *(aten.index_put.default, aten._unsafe_index_put.default),
}
"""Operations on a tensor and a list of indices for its first axes. Negative indices count from the end."""
OF_LABELS = {aten.nll_loss_forward.default, aten.nll_loss2d_forward.default}
"""Operations on log-probabilities and labels. The classes are along the second axis of the log-probabilities,
or along the first if that is the only axis.
"""


@dataclass(frozen=True)
class Index:
    """An index operand of an operation: its `node`, and the `allowed` indices.

    The index `ignored`, such as the label that a loss ignores, is also accepted.
    """

    operation: str
    node: Node
    allowed: Interval
    ignored: int | None = None

    def allows(self, low: int, high: int) -> bool:
        """Whether all indices from `low` to `high` are in `allowed`, or the only one is `ignored`."""
        return Interval(low, high).inside(self.allowed) or low == high == self.ignored

    def wrong(self, values: Tensor) -> Tensor:
        """Mask of the `values` that torch refuses."""
        outside = (values < self.allowed.low) | (values > self.allowed.high)
        return outside if self.ignored is None else outside & (values != self.ignored)

    def __str__(self) -> str:
        beside = "" if self.ignored is None else f", and {self.ignored}, which is ignored"
        return f"{self.allowed.low} to {self.allowed.high}{beside}"


def indices_of(node: Node) -> Iterator[Index]:
    """The index operands of a node; masks are not indices.

    Operations that exist only as gradients, such as `embedding_dense_backward`, have none here, because
    they use the indices of the forward pass again.
    """
    args: Any = node.args
    name = str(node.target)
    if node.target is aten.embedding.default:
        yield Index(name, args[1], _from_zero(args[0], 0))
    elif node.target in ALONG_AN_AXIS:
        yield Index(name, args[2], _from_zero(args[0], args[1]))
    elif node.target in FROM_EITHER_END:
        for axis, index in enumerate(args[1]):
            if index is not None and index.meta["val"].dtype is not torch.bool:
                size = args[0].meta["val"].shape[axis]
                yield Index(name, index, Interval(-size, size - 1))
    elif node.target in OF_LABELS:
        shape = args[0].meta["val"].shape
        yield Index(name, args[1], Interval(0, shape[min(1, len(shape) - 1)] - 1), args[4])
    elif (classes := _one_hot(node)) is not None:
        yield Index("one_hot", args[0].args[0], Interval(0, classes - 1))


def _from_zero(table: Node, axis: int) -> Interval:
    shape = table.meta["val"].shape
    return Interval(0, (shape[axis] if shape else 1) - 1)


def _one_hot(node: Node) -> int | None:
    """The number of classes if the node is the comparison `eq` in a traced `torch.nn.functional.one_hot`,
    else None.

    A traced `one_hot` consists of `arange(classes)`, `unsqueeze(labels, -1)` and `eq`, in this order and from
    one line of code. The order tells it from a comparison written by hand, in which any labels are allowed:
    such a comparison calls unsqueeze first or swaps the operands of `eq`.
    """
    labels, classes = node.prev, node.prev.prev
    if node.target is not aten.eq.Tensor or node.args != (labels, classes):
        return None
    alike = labels.target is aten.unsqueeze.default and classes.target is aten.arange.default
    if not alike or labels.args[1:] != (-1,) or len({source_of(x) for x in (node, labels, classes)}) > 1:
        return None
    count = classes.args[0]
    return count if isinstance(count, int) else None
