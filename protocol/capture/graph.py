"""Run the submitter's torch code once and keep what it did as a graph of ATen operations.

`make_fx` on fake tensors: forward, backward, metrics. Nothing is computed, nothing is lowered (see `lowering`), and
the optimiser's update is not part of the graph (see `optimisers`). torch's functionalisation turns every write in
place into a new tensor, so the graph has no side effects; what was written into buffers is among its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

from protocol.capture.datasets import as_committed
from protocol.capture.errors import CaptureError, Problem, Problems
from protocol.capture.lowering import DTYPES, missing
from protocol.capture.models import fits, places, repeatable, require_plain, require_types
from protocol.capture.sources import SourceRecorder, data_dependent, source_of, source_of_error

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
    """Model and objective as one module, so that `functional_call` can put traced tensors into the model."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self._objective = objective

    def forward(self, batch: Batch, trained: list[Tensor]) -> _Results:
        """One step but for its update. The gradients are taken here, where `torch.utils.checkpoint` may run a part of
        the model again and must find the same tensors in it."""
        loss, metrics = _loss_and_metrics(self._objective(self.model, batch))
        gradients = torch.autograd.grad(loss, trained, allow_unused=True)
        held = dict(self.model.named_buffers(remove_duplicate=False))
        return _Results(loss, metrics, gradients, held)


@dataclass(frozen=True)
class _Results:
    """What a step computes. `buffers` is by place in the model (`models.places`)."""

    loss: Tensor
    metrics: Mapping[str, Tensor]
    gradients: Sequence[Tensor | None]
    buffers: Mapping[str, Tensor]


def trace_step(model: nn.Module, objective: Objective, batch: Batch) -> TracedStep:
    """Trace loss, metrics and gradients of `model` on a batch like `batch` (only types and shapes matter).

    Raises `CaptureError` for parameters that are not f32, control flow or shapes that depend on data, and a loss or
    metric that is no f32 scalar; with it for every operation without a rule that was met until then.
    """
    problems = Problems()
    for require in (require_types, require_plain):
        with problems.collected():
            require(model)
    step = _Step(model, objective)
    where = places(model)
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
        with recorder, recorder.names_of(model), _written_out(), _compiling():
            tensors = dict(zip(parameters, leaves)) | dict(zip(buffers, b))
            named = {f"model.{place}": tensors[name] for place, name in where.items()}
            batch_and_leaves = dict(zip(batch, x)), leaves
            results: _Results = functional_call(step, named, batch_and_leaves, tie_weights=False)
            metric_names.extend(results.metrics)
        unused = [name for name, gradient in zip(parameters, results.gradients) if gradient is None]
        remedy = "freeze it (requires_grad_(False)) or remove it"
        problems.add(Problem(f"parameter {name} does not reach the loss", remedy) for name in unused)
        gradients = [g for g in results.gradients if g is not None]
        after = [_held(name, old, where, results.buffers) for name, old in zip(buffers, b)]
        return [*gradients, results.loss, *results.metrics.values()], after

    try:
        with problems.collected(), repeatable(model):
            traced = make_fx(run, tracing_mode="fake")(
                list(parameters.values()), list(buffers.values()), list(batch.values())
            )
            names = list(parameters), list(buffers), list(batch)
            written = () if problems or recorder.problems else _keep_writes(traced.graph, *names, set(frozen))
    except (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode) as error:
        problems.add([data_dependent(source_of_error(error))])
    except Exception as error:
        if (known := _leaving_torch(error)) is not None:
            problems.add([known])
        # A model of another type than f32 may well trip over the f32 that it was given here, and one that looks at
        # the data over the number that was made up.
        if not problems and not recorder.problems:
            raise
    problems.add(recorder.problems)
    if problems and recorder.graph is not None:
        problems.add(missing(recorder.graph))
    problems.raise_any()
    buffers |= _literals(traced, len(parameters) + len(buffers), {*parameters, *buffers})
    fixed = {name: as_committed(b) for name, b in buffers.items()}
    return TracedStep(traced.graph, tuple(parameters), fixed, tuple(metric_names), written)


def _leaving_torch(error: Exception) -> Problem | None:
    """What torch means that says so in its own words only: values that leave it, checkpoints by the old way."""
    text, source = str(error), source_of_error(error)
    if ".numpy()" in text or "tolist()" in text:
        return data_dependent(source)
    if "use_reentrant=True" in text:
        return Problem("torch.utils.checkpoint with use_reentrant=True", "pass use_reentrant=False", source)
    return None


def _in_f32(t: Tensor) -> Tensor:
    return t.detach().float() if t.is_floating_point() else t.detach()


def _functional(tensors: list[Tensor]) -> list[Tensor]:
    return [FunctionalTensor.to_functional(t) for t in tensors]


def _held(name: str, old: Tensor, where: Mapping[str, str], after: Mapping[str, Tensor]) -> Tensor:
    """A buffer's tensor after the step, which the model may have replaced: still one, of the same type and shape."""
    new, *others = [after.get(place, old) for place, of in where.items() if of == name]
    if any(other is not new for other in others):
        what = f"buffer {name} is tied, and the step replaces it in one place only"
        raise CaptureError(
            [Problem(what, "write into it with .copy_(), or give the places buffers of their own")]
        )
    if new.shape == old.shape and new.dtype == old.dtype and isinstance(new, FunctionalTensor):
        return new
    what = f"buffer {name} changes from {old.dtype} {tuple(old.shape)} to {new.dtype} {tuple(new.shape)}"
    raise CaptureError([Problem(what, "keep its type and shape, computed from the batch and the model")])


@contextmanager
def _written_out() -> Iterator[None]:
    """Fused attention and recurrent layers have bits of their own: torch's own writing of them is products, a softmax
    and masks; products and gates."""
    before = torch.backends.mkldnn.set_flags(_enabled=False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=before[0])


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
        if tensor.dtype in DTYPES and tensor.numel() and fits(tensor):
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


def _loss_and_metrics(result: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """What an objective returned. Raises `CaptureError` unless it is a loss, or a loss and metrics, all f32 scalars."""
    loss, metrics = result if isinstance(result, tuple) and len(result) == 2 else (result, {})
    if not isinstance(loss, Tensor) or not isinstance(metrics, Mapping):
        inside = f" of {', '.join(type(x).__name__ for x in result)}" if isinstance(result, tuple) else ""
        what = f"the objective returns a {type(result).__name__}{inside}"
        raise CaptureError(
            [Problem(what, "return the loss, a tensor, or the loss and a dict of metrics by name")]
        )
    if "loss" in metrics:
        raise CaptureError(
            [Problem("a metric is called loss", "give it another name; the loss is one already")]
        )
    if not loss.requires_grad:
        raise CaptureError(
            [Problem("the loss does not depend on a trainable parameter", "compute it with the model")]
        )
    wrong = {name: what for name, v in {"loss": loss, **metrics}.items() if (what := _not_scalar(v))}
    if wrong:
        raise CaptureError(
            Problem(
                f"{name} is {what}, not one float32",
                "reduce it with .mean(), or convert it with .float()",
            )
            for name, what in wrong.items()
        )
    return loss, dict(metrics)


def _not_scalar(value: Any) -> str:
    """What a value is instead of one f32; nothing if it is that."""
    if not isinstance(value, Tensor):
        return f"a Python {type(value).__name__}"
    if value.dtype == torch.float32 and value.numel() == 1:
        return ""
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
