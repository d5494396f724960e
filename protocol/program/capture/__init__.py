"""`capture`: from a submitter's own torch code to a program that anybody can run without it.

The code runs once, on fake tensors. Everything it did is lowered to library functions and primitives, or the capture
fails with one error that lists all that cannot be. See `graph` for the tracing, `lowering` and `ops` for the rules,
`optimisers` and `schedules` for the update, `assemble` for the step as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.program.capture.assemble import assemble, initial_tensors
from protocol.program.capture.captured import CapturedStep, Coverage
from protocol.program.capture.datasets import as_committed, committed, example_batch
from protocol.program.capture.errors import CaptureError, Problem
from protocol.program.capture.graph import Objective, trace_step
from protocol.program.capture.optimisers import parameter_updates
from protocol.program.capture.schedules import learning_rates
from protocol.program.step import StepProgram

__all__ = ["CaptureError", "CapturedStep", "Coverage", "Objective", "Problem", "capture"]


def capture(
    model: nn.Module,
    objective: Objective,
    optimizer: Optimizer,
    dataset: Mapping[str, Tensor],
    *,
    batch_size: int,
    steps: int,
    scheduler: LRScheduler | None = None,
) -> CapturedStep:
    """Capture one training step of `model`.

    `objective(model, batch)` returns the f32 scalar loss, or the loss and a dict of f32 scalar metrics. `batch` holds
    `batch_size` rows of every tensor of `dataset`, drawn with replacement inside the program; integers arrive as int64.
    `optimizer` is a `torch.optim.SGD` over the model's parameters; its rates, or those of `scheduler`, become a table
    of `steps` entries. Buffers that the step writes are part of the
    state; frozen parameters and other buffers become constants. Raises `CaptureError` with every reason.
    """
    if batch_size < 1 or steps < 1:
        raise CaptureError([Problem(f"batch_size={batch_size}, steps={steps}", "both must be at least 1")])
    data = committed(dataset)
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    updates = parameter_updates(optimizer, trainable)
    traced = trace_step(model, objective, example_batch(data, batch_size))
    rates = {f"learning_rate.{k}": t for k, t in enumerate(learning_rates(optimizer, scheduler, steps))}
    parameters = {name: as_committed(p) for name, p in trainable.items()}
    written = {name: traced.buffers[name] for name in traced.written}
    constants = {name: t for name, t in traced.buffers.items() if name not in written} | rates
    assembled = assemble(traced, updates, parameters, data, constants, tuple(rates), batch_size)
    program = StepProgram(assembled.program, tuple(assembled.state), len(data), len(constants))
    program.check()
    return CapturedStep(program, data, constants, initial_tensors(assembled, parameters | written), assembled.coverage)
