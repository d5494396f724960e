"""Traced steps that compute integers from a batch, and their results in the program and in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from protocol.capture.analysis.ranges import require_ranges
from protocol.capture.analysis.roles import roles_of
from protocol.capture.inputs.dataset import committed, example_batch
from protocol.capture.lowering.context import Lowering, dtype_of
from protocol.capture.lowering.lower import lower
from protocol.capture.lowering.views import View
from protocol.capture.tracing.tracer import TracedStep, trace_step
from protocol.capture.types import as_seen_by_torch
from protocol.numerics.types import DType
from protocol.program.builder import Builder
from protocol.program.execute import Interpreter
from protocol.program.program import Program
from protocol.program.types import TensorType

Batch = Mapping[str, Tensor]
Function = Callable[[Batch], Tensor]


class Kept(nn.Module):
    """A model whose buffer `kept` holds the integers that the last step computed."""

    kept: Tensor

    def __init__(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.register_buffer("kept", torch.zeros(shape, dtype=dtype))


def traced(function: Function, dataset: Batch, rows: int) -> tuple[TracedStep, dict[str, Tensor]]:
    """A step that applies `function` to a batch of `rows` rows and writes the result into the buffer `kept`.
    Returns the step and its dataset.
    """
    data = committed(dataset)
    example = example_batch(data, rows)

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        assert isinstance(model, Kept)
        model.kept.copy_(function(batch))
        return model.weight * 2

    with FakeTensorMode():
        result = function({name: torch.zeros(t.shape, dtype=t.dtype) for name, t in example.items()})
    return trace_step(Kept(result.shape, result.dtype), objective, example), data


def checked(function: Function, dataset: Batch, rows: int = 5) -> tuple[TracedStep, dict[str, Tensor]]:
    """Like `traced`, but raises `CaptureError` for integers that are out of range."""
    step, data = traced(function, dataset, rows)
    require_ranges(step, data, steps=4)
    return step, data


def program_of(step: TracedStep) -> Program:
    """The traced graph alone as a program; its inputs are the placeholders, a key and a counter."""
    b = Builder("graph")
    values = [node.meta["val"] for node in step.graph.nodes if node.op == "placeholder"]
    inputs = [View.of(b.input(TensorType(dtype_of(value), tuple(value.shape)))) for value in values]
    keyed = b.input(TensorType(DType.U32, (2,))), b.input(TensorType(DType.U32, ()))
    lowering = Lowering(b, roles_of(step.graph, len(step.parameters), len(step.buffers)), *keyed)
    for result in lower(lowering, step.graph, inputs):
        b.output(lowering.elements(result))
    return b.build()


def both(function: Function, step: TracedStep, data: Batch, rows: int = 5) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the program's result and torch's result for each batch in turn."""
    program = program_of(step)
    count = next(iter(data.values())).shape[0]
    fixed = [torch.ones(()), *step.buffers.values()]
    for start in range(0, count, rows):
        index = torch.arange(start, start + rows) % count
        batch = {name: t[index] for name, t in data.items()}
        key = torch.zeros(2, dtype=torch.int32), torch.zeros((), dtype=torch.int32)
        outputs = Interpreter().run(program, (*fixed, *batch.values(), *key))
        yield outputs[-1], function({name: t.to(as_seen_by_torch(t.dtype)) for name, t in batch.items()})
