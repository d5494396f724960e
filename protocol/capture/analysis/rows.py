"""Computes an operation's results for all rows of the committed dataset, by running in torch the part of the
graph that the operation depends on.

The results are computed from the rows in order, but a batch may hold any row at any place. So the results are
valid for every batch only under two conditions. First, each element is computed from at most one row. To test
this, `_Places` numbers the places of the batch and runs these numbers through the graph instead of the data.
The result shows from which places each element is computed. Second, every place of the batch goes through the
same operations. To test this, each of `PROBES` rows is repeated at all places.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from protocol.capture.analysis.checks import refused_by_torch
from protocol.capture.analysis.intervals import Interval
from protocol.capture.analysis.transfers import MOVING
from protocol.capture.errors import CaptureError

aten = torch.ops.aten
AT_ONCE = 1 << 20
"""The most elements that a tensor may have when several batches are computed together."""
PROBES = 8
"""The number of rows that are tried at every place of a batch."""
JOINING = {aten.cat.default, aten.stack.default}
"""Operations that put the elements of several tensors side by side."""
WRITING = {aten.slice_scatter.default, aten.select_scatter.default, aten.copy.default}
"""Operations that write one tensor's elements into another."""
FILLED = {
    *(aten.zeros_like.default, aten.ones_like.default, aten.full_like.default, aten.fill.Scalar),
    *(aten.new_zeros.default, aten.new_ones.default, aten.new_full.default, aten.zero.default),
}
"""Operations that use only the shape of their operand."""
ALONG_AXES = {
    *(aten.sum.dim_IntList, aten.cumsum.default, aten.any.dim, aten.any.dims, aten.all.dim, aten.all.dims),
    *(
        aten.amax.default,
        aten.amin.default,
        aten.max.dim,
        aten.min.dim,
        aten.argmax.default,
        aten.argmin.default,
    ),
    *(aten.mean.dim, aten._softmax.default),
}
"""Operations that combine elements along the axes in their second argument."""
ELEMENTWISE = {
    *(aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar, aten.masked_fill.Tensor),
    *(aten.rsub.Tensor, aten.floor_divide.default, aten.floor_divide.Scalar, aten._to_copy.default),
}
"""Elementwise operations that torch does not tag as pointwise."""


@dataclass(frozen=True)
class Found:
    """The result of a search. If a wrong element was found, `wrong` is the first one and `row` is its row
    (None for a constant). If none was found, `bounds` are the bounds of all elements (None if other batches
    may exceed them).
    """

    wrong: int | None
    row: int | None
    bounds: Interval | None


class Rows:
    """Runs parts of a traced graph on the dataset. `known` has the tensor of each placeholder that no step
    changes. `dataset` has, for each placeholder of the batch, the tensor of the whole dataset, which has one
    row per example.
    """

    def __init__(self, graph: Graph, known: Mapping[Node, Tensor], dataset: Mapping[Node, Tensor]) -> None:
        self._order = {node: k for k, node in enumerate(graph.nodes)}
        self._known, self._dataset = known, dataset
        self._batch = next(iter(dataset)).meta["val"].shape[0]
        self._rows = next(iter(dataset.values())).shape[0]

    def find(self, node: Node, wrong: Callable[[Tensor], Tensor]) -> Found:
        """Look for an element of `node` for which `wrong` holds, among those computed from at most one row.
        `node` depends only on the dataset and constants. Raises `CaptureError` if torch refuses a row.
        """
        part = self.above(node)
        first, last = _Places(part, self._dataset, self._batch).of(node)
        alone = first >= last
        low, high = [], []
        for rows in self._in_order(part):
            values = self._run_several(part, rows)
            bad = wrong(values) & alone
            if bool(bad.any()):
                at = int(bad.flatten().nonzero()[0])
                place = int(first.flatten()[at % first.numel()])
                row = int(rows[at // first.numel(), place]) if place < self._batch else None
                return Found(int(values.flatten()[at]), row, None)
            low.append(int(values.min()))
            high.append(int(values.max()))
        conclusive = bool(alone.all()) and self._same_at_all_places(part, first)
        return Found(None, None, Interval(min(low), max(high)) if conclusive else None)

    def above(self, node: Node) -> list[Node]:
        """The node and everything it is computed from, in the order of the graph."""
        found, pending = {node}, [node]
        while pending:
            new = [operand for operand in pending.pop().all_input_nodes if operand not in found]
            found.update(new)
            pending += new
        return sorted(found, key=self._order.__getitem__)

    def _in_order(self, part: list[Node]) -> Iterator[Tensor]:
        """Yields the row numbers in order, several batches at a time, as tensors of shape [batches, batch].
        The last batch is filled up by repeating the last row. If `part` does not depend on the dataset,
        yields a single batch.
        """
        count = self._rows if any(node in self._dataset for node in part) else 1
        largest = max(value.numel() for node in part if isinstance(value := node.meta.get("val"), Tensor))
        most = max(1, AT_ONCE // largest)
        for start in range(0, count, most * self._batch):
            batches = min(most, -(-(count - start) // self._batch))
            rows = torch.arange(start, start + batches * self._batch).clamp(max=self._rows - 1)
            yield rows.reshape(batches, self._batch)

    def _run_several(self, part: list[Node], rows: Tensor) -> Tensor:
        """The results of several batches, stacked. The batches are computed together if torch can do so,
        otherwise one after the other.
        """
        if len(rows) > 1:
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about operations that `vmap` runs batch by batch
                result: Tensor = torch.vmap(lambda each: self._run(part, each))(rows)
                return result
        return torch.stack([self._run(part, each) for each in rows])

    def _run(self, part: list[Node], rows: Tensor) -> Tensor:
        values: dict[Node, Any] = {}
        for node in part:
            if node in self._dataset:
                values[node] = self._dataset[node][rows].to(node.meta["val"].dtype)
            elif node in self._known:
                values[node] = self._known[node].to(node.meta["val"].dtype)
            else:
                values[node] = self._computed(node, values, rows)
        result: Tensor = values[part[-1]]
        return result

    def _computed(self, node: Node, values: Mapping[Node, Any], rows: Tensor) -> Any:
        try:
            return _call(node, values)
        except Exception as error:
            raise CaptureError([refused_by_torch(node, int(rows[0]), int(rows[-1]), error)]) from error

    def _same_at_all_places(self, part: list[Node], place: Tensor) -> bool:
        for row in torch.linspace(0, self._rows - 1, PROBES).long():
            values = self._run(part, row.expand(self._batch))
            each = [values[place == k] for k in range(self._batch)]
            if not all(torch.equal(values, each[0]) for values in each):
                return False
        return True


class _Places:
    """Finds, for each element of a node, the places of the batch from which the element may be computed.
    Keeps the first and the last of these places, as two tensors. For an element that depends on no place, the
    first is greater than the last.
    """

    def __init__(self, part: list[Node], of_batch: Collection[Node], batch: int) -> None:
        self._of_batch, self._batch = of_batch, batch
        self._found: dict[Node, Any] = {}
        for node in part:
            self._found[node] = self._of(node)

    def of(self, node: Node) -> tuple[Tensor, Tensor]:
        """The first and the last place of each element, as two tensors with the node's shape."""
        first, last = self._found[node]
        return first, last

    def _of(self, node: Node) -> Any:
        """The tensors of first and last places; two sequences of tensors if the node has several results."""
        target, results = node.target, node.meta.get("val")
        if node.op == "placeholder":
            return self._of_input(node)
        if target in FILLED:
            return self._nowhere(results)  # type: ignore[arg-type]
        if target is operator.getitem or target in MOVING | JOINING | WRITING:
            return tuple(_call(node, self._side(node, side)) for side in (0, 1))
        if target is aten.constant_pad_nd.default:
            x, widths, *_ = node.args
            nowhere = enumerate((self._batch, -1))
            return tuple(target(self._found[x][side], widths, value) for side, value in nowhere)  # type: ignore[index]
        if target is aten.gather.default:
            return self._gathered(node)
        if isinstance(results, Tensor):
            return self._mixed(node, results)
        none = (None, None)
        return tuple(zip(*(none if result is None else self._mixed(node, result) for result in results)))  # type: ignore[union-attr]

    def _of_input(self, node: Node) -> tuple[Tensor, Tensor]:
        if node not in self._of_batch:
            return self._nowhere(node.meta["val"])
        shape = node.meta["val"].shape
        place = torch.arange(self._batch).reshape(-1, *(1 for _ in shape[1:])).expand(shape)
        return place, place

    def _gathered(self, node: Node) -> tuple[Tensor, Tensor]:
        """The first and the last place that each element of a gather's result depends on. An element may be
        taken from anywhere along the axis. So it depends on the places of all elements of the gathered tensor
        along the axis, and on the places of its index.
        """
        given: Any = node.args
        x, axis, index = given[:3]
        found = []
        for of_x, of_index, least in zip(self._found[x], self._found[index], (True, False)):
            along = of_x.amin(axis, keepdim=True) if least else of_x.amax(axis, keepdim=True)
            along = along[tuple(slice(0, size) for size in of_index.shape)].expand(of_index.shape)
            found.append(torch.minimum(along, of_index) if least else torch.maximum(along, of_index))
        return found[0], found[1]

    def _nowhere(self, t: Tensor) -> tuple[Tensor, Tensor]:
        return torch.full(t.shape, self._batch), torch.full(t.shape, -1)

    def _side(self, node: Node, side: int) -> dict[Node, Any]:
        return {operand: self._found[operand][side] for operand in node.all_input_nodes}

    def _mixed(self, node: Node, result: Tensor) -> tuple[Tensor, Tensor]:
        """For each element of the result: the first and the last of the places from which it may be computed."""
        given = [self._found[operand] for operand in node.all_input_nodes] or [
            (torch.tensor(self._batch), torch.tensor(-1))
        ]
        target: Any = node.target
        if torch.Tag.pointwise in target.tags or target in ELEMENTWISE:
            firsts, lasts = ([t.expand(result.shape) for t in side] for side in zip(*given))
            return torch.stack(firsts).amin(0), torch.stack(lasts).amax(0)
        if target in ALONG_AXES and len(node.args) > 1 and node.args[1] not in (None, []):
            first, last = given[0]
            ends = first.amin(node.args[1], keepdim=True), last.amax(node.args[1], keepdim=True)
            wide = first.shape == result.shape
            low, high = (end.expand(result.shape) if wide else end.reshape(result.shape) for end in ends)
            return low, high
        first = torch.stack([first.min() for first, _ in given]).min()
        last = torch.stack([last.max() for _, last in given]).max()
        return first.expand(result.shape), last.expand(result.shape)


def _call(node: Node, values: Mapping[Node, Any]) -> Any:
    args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
    target: Any = node.target
    return target(*args, **kwargs)
