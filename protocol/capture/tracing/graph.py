"""Edits of a traced graph. At first, its last outputs are the final contents of all inputs. Of these outputs,
`keep_written_buffers` keeps only those for buffers that the step writes. `literals_as_inputs` turns tensor
literals into inputs. `put_behind` moves the inputs of some parameters behind those of the other parameters.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any

import torch
from torch import Tensor

from protocol.capture.errors import raise_any
from protocol.capture.tracing.checks import written_input
from protocol.capture.tracing.sources import source_of
from protocol.capture.types import PROGRAM_TYPES, fits


def keep_written_buffers(
    graph: torch.fx.Graph, parameters: list[str], buffers: list[str], batch: list[str], frozen: set[str]
) -> tuple[str, ...]:
    """Remove outputs that do not matter. On entry, the last outputs of `graph` are the final contents of all
    inputs. Of these outputs, only those for buffers that the step writes are kept.

    Returns the names of the written buffers. `frozen` names the frozen parameters in `buffers`. Raises
    `CaptureError` if the step writes into a parameter or the batch.
    """
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    outputs: Any = graph.output_node().args[0]
    results, contents = outputs[: -len(placeholders)], outputs[-len(placeholders) :]
    names = [*parameters, *buffers, *batch]
    after = {
        name: new for name, old, new in zip(names, placeholders, contents, strict=True) if new is not old
    }
    raise_any(
        written_input(name, name in (*parameters, *frozen), _source_of_write(node))
        for name, node in after.items()
        if name not in buffers or name in frozen
    )
    graph.output_node().args = ((*results, *after.values()),)
    return tuple(after)


def put_behind(graph: torch.fx.Graph, parameters: list[str], some: Collection[str]) -> None:
    """Move the placeholders of the parameters named in `some` behind those of the other parameters. The
    graph's first placeholders must be those of `parameters`, in order.
    """
    holders = dict(zip(parameters, (node for node in graph.nodes if node.op == "placeholder")))
    *_, last = holders.values()
    for name in some:
        if holders[name] is not last:
            last.append(holders[name])
            last = holders[name]


def literals_as_inputs(traced: torch.fx.GraphModule, after: int, taken: set[str]) -> dict[str, Tensor]:
    """Turn tensor literals in the code, such as `torch.tensor([1, 2])`, into placeholders behind the first
    `after` placeholders.

    Returns the literals by name. The names are `literal.0`, `literal.1`, …, without those in `taken`. A
    literal stays in place in two cases: if no type of a program can hold it (lowering then refuses it), or if
    it has no elements (lowering then ignores it).
    """
    graph = traced.graph
    last = [node for node in graph.nodes if node.op == "placeholder"][after - 1]
    numbers = (k for k in count() if f"literal.{k}" not in taken)
    found: dict[str, Tensor] = {}
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        tensor = getattr(traced, node.target)
        if isinstance(tensor, Tensor) and tensor.dtype in PROGRAM_TYPES and tensor.numel() and fits(tensor):
            with graph.inserting_after(last):
                last = graph.placeholder(node.name)
            last.meta = dict(node.meta)
            node.replace_all_uses_with(last)
            graph.erase_node(node)
            found[f"literal.{next(numbers)}"] = tensor
    return found


def _source_of_write(node: torch.fx.Node) -> str:
    """The source line of a node. For a node without a line, such as one that functionalisation adds, it is
    the line of the nearest operand that has one.
    """
    seen = [node]
    for candidate in seen:
        if source_of(candidate):
            return source_of(candidate)
        seen.extend(operand for operand in candidate.all_input_nodes if operand not in seen)
    return ""
