"""Embedding bags: sums and means of a table's rows. Two successive offsets into the list of indices delimit
the indices of one bag.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.capture.expansion.table import aten, expands

SUM, MEAN = 0, 1


@expands(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    table: Tensor,
    index: Tensor,
    offsets: Tensor,
    by_frequency: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    weights: Tensor | None = None,
    ends: bool = False,
    padding: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bags, and three tensors that torch keeps for the gradient. The gradient here does not need these
    three, so they are zeros.
    """
    _require_plain(by_frequency, mode, sparse)
    count = offsets.shape[0] - ends
    bag = _bag_of_each(index, offsets, count)
    shares = _shares(index, bag, count, mode, weights, padding)
    rows = torch.embedding(table, index) * shares.unsqueeze(1)
    found = table.new_zeros((count, table.shape[1])).index_add(0, bag, rows)
    quick = (
        mode == SUM and padding < 0 and table.stride(1) == 1 and (weights is None or weights.stride(0) == 1)
    )
    nothing = offsets.new_zeros(count)
    return found, offsets.new_zeros(0 if quick else index.shape[0]), nothing, nothing


@expands(aten._embedding_bag_backward.default)
def embedding_bag_gradient(
    g: Tensor,
    index: Tensor,
    offsets: Tensor,
    _: Tensor,
    __: Tensor,
    ___: Tensor,
    rows: int,
    by_frequency: bool,
    mode: int,
    sparse: bool,
    weights: Tensor | None,
    padding: int = -1,
) -> Tensor:
    """The gradient of the table: each row receives its share of the gradient of every bag that holds it."""
    _require_plain(by_frequency, mode, sparse)
    bag = _bag_of_each(index, offsets, g.shape[0])
    shares = _shares(index, bag, g.shape[0], mode, weights, padding)
    given: Tensor = aten.embedding_dense_backward.default(
        g[bag] * shares.unsqueeze(1), index, rows, -1, False
    )
    return given


@expands(aten._embedding_bag_per_sample_weights_backward.default)
def embedding_bag_gradient_of_weights(
    g: Tensor, table: Tensor, index: Tensor, offsets: Tensor, _: Tensor, mode: int, padding: int = -1
) -> Tensor:
    """The gradient of each weight: the dot product of its row and the gradient of its bag; 0 for padding."""
    _require_plain(False, mode, False)
    bag = _bag_of_each(index, offsets, g.shape[0])
    return torch.where(index != padding, (g[bag] * torch.embedding(table, index)).sum(1), 0.0)


def _bag_of_each(index: Tensor, offsets: Tensor, count: int) -> Tensor:
    place = torch.arange(index.shape[0], device=index.device).unsqueeze(1)
    return ((offsets[:count] <= place).to(torch.int64).sum(1) - 1).clamp(0, count - 1)


def _shares(
    index: Tensor, bag: Tensor, count: int, mode: int, weights: Tensor | None, padding: int
) -> Tensor:
    """The factor by which the row of each index enters its bag; 0 for padding."""
    shares = torch.ones(index.shape, device=index.device) if weights is None else weights
    shares = torch.where(index != padding, shares, 0.0)
    if mode == SUM:
        return shares
    sizes = shares.new_zeros(count).index_add(0, bag, shares)
    return shares / sizes.clamp_min(1.0)[bag]


def _require_plain(by_frequency: bool, mode: int, sparse: bool) -> None:
    if by_frequency or sparse or mode not in (SUM, MEAN):
        raise NotImplementedError("maxima, gradients divided by frequency, and sparse ones")
