"""Run the submitter's torch code once and keep what it did as a graph of ATen operations.

`make_fx` on fake tensors: forward, backward, metrics. Nothing is computed, nothing is lowered (see `lowering`), and
the optimiser's update is not part of the graph (see `optimisers`). torch's functionalisation turns every write in
place into a new tensor, so the graph has no side effects; what was written into buffers is among its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.nn.attention import SDPBackend, sdpa_kernel

from protocol.program.capture.datasets import as_committed
from protocol.program.capture.errors import CaptureError, Problem, Problems
from protocol.program.capture.lowering import DTYPES, missing
from protocol.program.capture.sources import SourceRecorder, data_dependent, source_of, source_of_error

Batch = Mapping[str, Tensor]
Objective = Callable[[nn.Module, Batch], "Tensor | tuple[Tensor, Mapping[str, Tensor]]"]
"""From the model and a batch to the scalar loss, or to the loss and named scalar metrics."""


@dataclass(frozen=True)
class TracedStep:
    """One training step as ATen operations.

    Placeholders of `graph` are the trainable parameters, then `buffers`, then the batch's tensors, each in order.
    `buffers` holds what the step does not train: frozen parameters, buffers, tensors that the code spells out
    (`literal.0`, …); `written` names those that it writes,
    as batch norm writes its running statistics. The outputs are the gradients in the parameters' order, the loss,
    then `metrics`, then the new contents of `written`, each in order.
    """

    graph: torch.fx.Graph
    parameters: tuple[str, ...]
    buffers: Mapping[str, Tensor]
    metrics: tuple[str, ...]
    written: tuple[str, ...]


class _Step(nn.Module):
    """Model and objective as one module, so that `functional_call` can put traced parameters into the model."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self._objective = objective

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Loss and metrics of one batch, and the model's buffers after it."""
        result = self._objective(self.model, batch)
        loss, metrics = result if isinstance(result, tuple) else (result, {})
        return loss, dict(metrics), dict(self.model.named_buffers())


def trace_step(model: nn.Module, objective: Objective, batch: Batch) -> TracedStep:
    """Trace loss, metrics and gradients of `model` on a batch like `batch` (only types and shapes matter).

    Raises `CaptureError` for parameters that are not f32, control flow or shapes that depend on data, and a loss or
    metric that is no f32 scalar; with it for every operation without a rule that was met until then.
    """
    problems = Problems()
    with problems.collected():
        require_types(model)
    step = _Step(model, objective)
    parameters = {name: _in_f32(p) for name, p in model.named_parameters() if p.requires_grad}
    frozen = {name: _in_f32(p) for name, p in model.named_parameters() if not p.requires_grad}
    buffers = frozen | {name: _in_f32(b) for name, b in model.named_buffers()}
    metric_names: list[str] = []
    recorder = SourceRecorder()

    def run(p: list[Tensor], b: list[Tensor], x: list[Tensor]) -> list[Tensor]:
        with FunctionalTensorMode():
            p, b, x = (_functional(group) for group in (p, b, x))
            results, after = forward_and_backward(p, b, x)
            return [_contents(t) for t in (*results, *p, *after, *x)]

    def forward_and_backward(
        p: list[Tensor], b: list[Tensor], x: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        leaves = [value.detach().requires_grad_() for value in p]
        # Fused attention has bits of its own; torch's own writing of it is products, a softmax and masks.
        with recorder, recorder.names_of(model), sdpa_kernel(SDPBackend.MATH), _compiling():
            tensors = dict(zip(parameters, leaves)) | dict(zip(buffers, b))
            named = {f"model.{name}": value for name, value in tensors.items()}
            loss, metrics, after = functional_call(step, named, (dict(zip(batch, x)),))
            _require_scalars(loss, metrics)
            metric_names.extend(metrics)
            gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
        unused = [name for name, gradient in zip(parameters, gradients) if gradient is None]
        remedy = "freeze it (requires_grad_(False)) or remove it"
        problems.add(Problem(f"parameter {name} does not reach the loss", remedy) for name in unused)
        results = [*(g for g in gradients if g is not None), loss, *metrics.values()]
        return results, [_same_kind(name, old, after.get(name, old)) for name, old in zip(buffers, b)]

    try:
        with problems.collected():
            traced = make_fx(run, tracing_mode="fake")(
                list(parameters.values()), list(buffers.values()), list(batch.values())
            )
            names = list(parameters), list(buffers), list(batch)
            written = () if problems or recorder.problems else _keep_writes(traced.graph, *names, set(frozen))
    except (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode) as error:
        problems.add([data_dependent(source_of_error(error))])
    except (RuntimeError, TypeError):
        # A model of another type than f32 may well trip over the f32 that it was given here.
        if not problems and not recorder.problems:
            raise
    problems.add(recorder.problems)
    if problems and recorder.graph is not None:
        problems.add(missing(recorder.graph))
    problems.raise_any()
    buffers |= _literals(traced, len(parameters) + len(buffers), {*parameters, *buffers})
    fixed = {name: as_committed(b) for name, b in buffers.items()}
    return TracedStep(traced.graph, tuple(parameters), fixed, tuple(metric_names), written)


def _in_f32(t: Tensor) -> Tensor:
    return t.detach().float() if t.is_floating_point() else t.detach()


def _functional(tensors: list[Tensor]) -> list[Tensor]:
    return [FunctionalTensor.to_functional(t) for t in tensors]


def _same_kind(name: str, old: Tensor, new: Tensor) -> Tensor:
    """A buffer's tensor after the step, which the model may have replaced: still one of the same type and shape."""
    if new.shape == old.shape and new.dtype == old.dtype and isinstance(new, FunctionalTensor):
        return new
    what = f"buffer {name} changes from {old.dtype} {tuple(old.shape)} to {new.dtype} {tuple(new.shape)}"
    raise CaptureError([Problem(what, "keep its type and shape, computed from the batch and the model")])


@contextmanager
def _compiling() -> Iterator[None]:
    """Let `torch.compiler.is_compiling()` be true, as `torch.export` does: models then skip the shortcuts that look at
    data, such as whether a padding mask hides anything."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


def _contents(x: Tensor) -> Tensor:
    """What a functional tensor holds after all writes in place."""
    torch._sync(x)  # type: ignore[attr-defined, no-untyped-call]
    return torch._from_functional_tensor(x.elem)  # type: ignore[attr-defined]


def _keep_writes(
    graph: torch.fx.Graph, parameters: list[str], buffers: list[str], batch: list[str], frozen: set[str]
) -> tuple[str, ...]:
    """Cut the final contents of all inputs, the last outputs of `graph`, down to those of the buffers it writes.

    Returns the names of these. Raises `CaptureError` where the step writes into anything else.
    """
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    outputs: Any = graph.output_node().args[0]
    results, contents = outputs[: -len(placeholders)], outputs[-len(placeholders) :]
    names = [*parameters, *buffers, *batch]
    after = {
        name: new for name, old, new in zip(names, placeholders, contents, strict=True) if new is not old
    }
    problems = [
        Problem(
            f"the step writes into {'parameter' if name in (*parameters, *frozen) else 'batch tensor'} {name}",
            "leave parameters to the optimiser and make new tensors of the batch; only buffers can be written",
            _source_of_write(node),
        )
        for name, node in after.items()
        if name not in buffers or name in frozen
    ]
    if problems:
        raise CaptureError(problems)
    graph.output_node().args = ((*results, *after.values()),)
    return tuple(after)


def _literals(traced: torch.fx.GraphModule, after: int, taken: set[str]) -> dict[str, Tensor]:
    """Make tensors that the code spells out, `torch.tensor([1, 2])`, placeholders behind the first `after` ones.

    Returns them by name. Those that no type of a program holds stay where they are, for `lowering` to refuse. and
    so do those without elements, for it to ignore.
    """
    graph = traced.graph
    last = [node for node in graph.nodes if node.op == "placeholder"][after - 1]
    numbers = (k for k in count() if f"literal.{k}" not in taken)
    found: dict[str, Tensor] = {}
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        tensor = getattr(traced, node.target)
        if tensor.dtype in DTYPES and tensor.numel() and _fits(tensor):
            with graph.inserting_after(last):
                last = graph.placeholder(node.name)
            last.meta = dict(node.meta)
            node.replace_all_uses_with(last)
            graph.erase_node(node)
            found[f"literal.{next(numbers)}"] = tensor
    return found


def _source_of_write(node: torch.fx.Node) -> str:
    """The line of the nearest operation before a node that has one; functionalisation adds some that have none."""
    seen = [node]
    for candidate in seen:
        if source_of(candidate):
            return source_of(candidate)
        seen.extend(operand for operand in candidate.all_input_nodes if operand not in seen)
    return ""


def require_types(model: nn.Module) -> None:
    """Raise `CaptureError` for parameters and float buffers that are not f32, and integer buffers that i32 cannot hold.

    int64 buffers, such as counters, are i32 in a program.
    """
    problems = []
    for name, t in (*model.named_parameters(), *model.named_buffers()):
        kind = f"{name} is {str(t.dtype).removeprefix('torch.')}"
        if t.is_floating_point() and t.dtype != torch.float32:
            remedy = "call model.float() first; other types are chosen by the arithmetic, not the model"
            problems.append(Problem(kind, f"train in float32: {remedy}"))
        elif t.dtype not in DTYPES:
            problems.append(Problem(kind, "keep it in float32, int64, int32, uint8 or bool"))
        elif not _fits(t):
            problems.append(Problem(f"{name} exceeds 32 bits", "renumber its values, or keep it in float32"))
    if problems:
        raise CaptureError(problems)


def _fits(t: Tensor) -> bool:
    """Whether i32 holds an int64 tensor; other types travel as they are."""
    return t.dtype is not torch.int64 or not t.numel() or -(2**31) <= int(t.min()) <= int(t.max()) < 2**31


def _require_scalars(loss: Tensor, metrics: Mapping[str, Tensor]) -> None:
    if "loss" in metrics:
        raise CaptureError(
            [Problem("a metric is called loss", "give it another name; the loss is one already")]
        )
    if not loss.requires_grad:
        raise CaptureError(
            [Problem("the loss does not depend on a trainable parameter", "compute it with the model")]
        )
    values = {"loss": loss, **metrics}
    wrong = {name: v for name, v in values.items() if v.dtype != torch.float32 or v.numel() != 1}
    if wrong:
        raise CaptureError(
            Problem(
                f"{name} is {str(v.dtype).removeprefix('torch.')} of shape {tuple(v.shape)}, not one float32",
                "reduce it with .mean(), or convert it with .float()",
            )
            for name, v in wrong.items()
        )
