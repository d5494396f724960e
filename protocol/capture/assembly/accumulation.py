"""Buffers that a step only accumulates into: batch norm's running statistics and its count of batches.

A unit is the pass over one micro-batch. It keeps a fixed share of the previous contents of such a buffer and
adds its own contribution, and nothing else in the unit reads the buffer. So every unit can start from zero,
and the contributions are then added in order, as torch does when it accumulates gradients.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from protocol.capture.tracing.tracer import TracedStep

aten = torch.ops.aten
_BATCH_NORM = aten._native_batch_norm_legit_functional.default
_RUNNING = (3, 4)
"""The positions of the running statistics, both among batch norm's operands and among its results."""


def accumulated(traced: TracedStep) -> dict[str, float]:
    """Maps the name of each accumulated buffer to the share of its previous contents that a unit keeps."""
    holders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    before = dict(zip(traced.buffers, holders[len(traced.parameters) :]))
    outputs: Any = traced.graph.output_node().args[0]
    after = dict(zip(traced.written, outputs[len(outputs) - len(traced.written) :]))
    kept = {name: _kept(before[name], new) for name, new in after.items() if outputs.count(new) == 1}
    return {name: share for name, share in kept.items() if share is not None}


def _kept(old: Node, new: Any) -> float | None:
    """The share of the previous contents that a unit keeps. None if the new contents are neither the old ones
    plus a Python integer nor running statistics of batch norm in training. Also None if anything else reads
    the old or the new contents.
    """
    if not isinstance(new, Node) or len(old.users) != 1:
        return None
    given: tuple[Any, ...] = new.args
    readers = {user.target for user in new.users} - {"output"}
    if new.target is aten.add.Tensor and given[0] is old and type(given[1]) is int and not new.kwargs:
        return None if readers else 1.0
    normed, place = given if len(given) == 2 else (None, None)
    if not isinstance(normed, Node) or normed.target is not _BATCH_NORM or place not in _RUNNING:
        return None
    of_norm: tuple[Any, ...] = normed.args
    training, momentum = of_norm[5], of_norm[6]
    # The new statistics are an operand of the backward pass too, but it does not read them in training.
    if of_norm[place] is not old or not training or readers - {aten.native_batch_norm_backward.default}:
        return None
    return 1.0 - float(momentum)
