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

from protocol.capture.assemble import assemble, initial_tensors
from protocol.capture.captured import CapturedStep, Coverage
from protocol.capture.datasets import as_committed, committed, example_batch
from protocol.capture.errors import CaptureError, Problem, Problems
from protocol.capture.graph import Objective, trace_step
from protocol.capture.lowering import missing
from protocol.capture.models import require_plain, require_types
from protocol.capture.roles import Bits, table_of
from protocol.capture.schedules import learning_rates
from protocol.capture.update import update_of
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
    clip_norm: float | None = None,
    clip_value: float | None = None,
    bits: Mapping[str, Bits] | None = None,
    micro_batches: int = 1,
) -> CapturedStep:
    """Capture one training step of `model`.

    `objective(model, batch)` returns the f32 scalar loss, or the loss and a dict of f32 scalar metrics. `batch` holds
    `batch_size` rows of every tensor of `dataset`, drawn with replacement inside the program; integers arrive as int64.
    `optimizer` is a `torch.optim.SGD`, `Adam` or `AdamW` over the model's parameters; its rates, or those of
    `scheduler`, become a table of `steps` entries. `clip_norm` and `clip_value` limit the gradients as
    `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` do, in this order; with the former, the norm before it is
    the metric `grad_norm`. `bits` replaces rows of the contraction table by role, as in {"vocabulary": (13, 13)}
    (`roles`). Buffers that the step writes are part of the state; frozen parameters and other buffers
    become constants.

    With `micro_batches` the batch is divided into so many equal parts, each a unit with a forward and backward pass of
    its own; gradients, loss, metrics and written f32 buffers are means over the units (`units`). It takes the
    activations of one unit, and up to so many processes can share a step. Raises one `CaptureError` with every reason.
    """
    problems = Problems()
    with problems.collected():
        _require_counts(batch_size=batch_size, steps=steps, micro_batches=micro_batches)
        _require_equal_parts(batch_size, micro_batches)
    counted, traced = not problems, None
    with problems.collected():
        data = committed(dataset)
        if counted:
            traced = trace_step(model, objective, example_batch(data, batch_size // micro_batches))
    for require in (require_types, require_plain):
        with problems.collected():
            require(model)
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with problems.collected():
        update = update_of(optimizer, trainable, clip_norm, clip_value)
    with problems.collected():
        tables = learning_rates(optimizer, scheduler, max(steps, 1))
    with problems.collected():
        table = table_of(bits or {})
    if problems and traced is not None:
        problems.add(missing(traced.graph))
    problems.raise_any()
    assert traced is not None
    rates = {f"learning_rate.{k}": t for k, t in enumerate(tables)}
    parameters = {name: as_committed(p) for name, p in trainable.items()}
    written = {name: traced.buffers[name] for name in traced.written}
    constants = {name: t for name, t in traced.buffers.items() if name not in written} | rates
    assembled = assemble(
        traced, update, parameters, data, constants, tuple(rates), batch_size, table, micro_batches
    )
    program = StepProgram(assembled.program, tuple(assembled.state), len(data), len(constants))
    program.check()
    initial = initial_tensors(assembled, parameters | written)
    return CapturedStep(program, data, constants, initial, assembled.coverage)


def _require_counts(**counts: int) -> None:
    """Raise `CaptureError` for a count that is no integer from 1 to 2^31 - 1."""
    wrong = {
        k: n for k, n in counts.items() if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n < 2**31
    }
    if wrong:
        raise CaptureError(
            Problem(f"{name}={count!r}", "give a whole number from 1 to 2147483647")
            for name, count in wrong.items()
        )


def _require_equal_parts(batch_size: int, micro_batches: int) -> None:
    """Raise `CaptureError` unless the batch can be divided: a mean of means is the batch's for equal parts alone."""
    if batch_size % micro_batches:
        what = f"a batch of {batch_size} rows in {micro_batches} micro-batches"
        raise CaptureError([Problem(what, "give a number of micro-batches that divides the batch size")])
