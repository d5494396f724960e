"""Runs the submitter's torch code once and records it as a graph of ATen operations.

`make_fx` on fake tensors traces forward pass, backward pass and metrics; nothing is computed. The optimiser's
update is not part of the graph (see `optimisers`). torch's functionalisation turns every write in place into
a new tensor. So the graph has no side effects, and the new contents of buffers are among its outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
)
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from protocol.capture.errors import Problem, Problems
from protocol.capture.inputs.model import places, tensors_of, with_attributes
from protocol.capture.tracing.assigned import Copied
from protocol.capture.tracing.checkpoints import drawn_once
from protocol.capture.tracing.checks import (
    TraceError,
    data_dependent,
    outside_torch,
    raised,
    raised_by_torch_too,
    require_one_replacement,
    require_same_type,
    require_separate_memory,
)
from protocol.capture.tracing.graph import keep_written_buffers, literals_as_inputs, put_behind
from protocol.capture.tracing.grouped import WRITTEN_OUT
from protocol.capture.tracing.recurrent import Rolled
from protocol.capture.tracing.replaced import replaced
from protocol.capture.tracing.seeds import unseeded
from protocol.capture.tracing.sources import SourceRecorder, is_of_the_step, source_of_error, traceback_of
from protocol.capture.tracing.step import (
    Batch,
    Objective,
    StepModule,
    StepResults,
    compiling,
    decomposed_kernels,
    run_plainly,
    silent_failures,
    without_validation,
)
from protocol.capture.tracing.stepping import unstepped
from protocol.capture.types import as_committed

DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)
"""The errors that torch raises when code reads the contents of a fake tensor."""


@dataclass(frozen=True)
class TracedStep:
    """One training step as ATen operations.

    The placeholders of `graph` are the trained `parameters`, `buffers`, and the batch's tensors, each in
    order. `buffers` holds everything that the step does not train: parameters that the loss does not reach
    (`untouched`), frozen parameters, buffers, and tensor literals in the code (`literal.0`, …). `written`
    names the buffers that the step writes, such as batch norm's running statistics. The outputs are the
    gradients in the parameters' order, the loss, `metrics`, and the new contents of `written`, each in order.
    `thawed` names the frozen parameters for which the step sets `requires_grad`.
    `distributions` lists the classes of torch.distributions that the step creates.
    """

    graph: torch.fx.Graph
    parameters: tuple[str, ...]
    buffers: Mapping[str, Tensor]
    metrics: tuple[str, ...]
    written: tuple[str, ...]
    untouched: tuple[str, ...]
    thawed: tuple[str, ...]
    distributions: tuple[str, ...]
    moving: frozenset[str] = frozenset()
    """The names in `buffers` that another part of the step trains or writes."""


def trace_step(
    model: nn.Module,
    objective: Objective,
    batch: Batch,
    *,
    model_refused: bool = False,
    taken: Collection[str] = (),
) -> TracedStep:
    """Trace loss, metrics and gradients of `model` on a batch like `batch`; only its types and shapes matter.

    Raises `TraceError` for control flow or shapes that depend on data, results that are not f32 scalars,
    unsupported writes, and errors that the step itself raises. `model_refused` says that the checks of
    `inputs` have already refused the model. Then `TraceError` is always raised, but an error that the step
    itself raises is not reported. Such an error may follow from what was refused: the trace converts all
    floats of the model to f32, on which code for another type may fail. No tensor literal gets a name in
    `taken`.
    """
    problems = Problems()
    step = StepModule(model, objective)
    where = places(model)
    parameters = {name: _in_f32(p) for name, p in model.named_parameters() if p.requires_grad}
    frozen = {name: _in_f32(p) for name, p in model.named_parameters() if not p.requires_grad}
    buffers = frozen | {name: _in_f32(b) for name, b in model.named_buffers()}
    originals = dict(tensors_of(model))
    metric_names: list[str] = []
    untouched: list[str] = []
    thawed: list[str] = []
    distributions: list[str] = []
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
        settings = (
            decomposed_kernels(),
            compiling(),
            without_validation(distributions),
            drawn_once(),
            replaced(),
            unseeded(),
            unstepped(),
            Rolled(),
        )
        with ExitStack() as active:
            for setting in (recorder, recorder.names_of(model), *settings):
                active.enter_context(setting)
            tensors = dict(zip(parameters, leaves)) | dict(zip(buffers, b))
            tensors = {name: with_attributes(t, originals[name]) for name, t in tensors.items()}
            named = {f"model.{place}": tensors[name] for place, name in where.items()}
            active.enter_context(Copied([*tensors.values(), *x]))
            batch_and_leaves = dict(zip(batch, x)), leaves
            results: StepResults = functional_call(step, named, batch_and_leaves, tie_weights=False)
            metric_names.extend(results.metrics)
        thawed.extend(results.thawed)
        untouched.extend(name for name, gradient in zip(parameters, results.gradients) if gradient is None)
        gradients = [g for g in results.gradients if g is not None]
        after = [_after(name, old, where, results.buffers) for name, old in zip(buffers, b)]
        require_separate_memory({**dict(zip(parameters, leaves)), **dict(zip(buffers, after))})
        return [*gradients, results.loss, *results.metrics.values()], after

    def refused() -> bool:
        return model_refused or bool(problems) or bool(recorder.problems)

    written: tuple[str, ...] = ()
    try:
        with problems.collected(), silent_failures():
            traced = make_fx(run, tracing_mode="fake", decomposition_table=WRITTEN_OUT)(
                list(parameters.values()), list(buffers.values()), list(batch.values())
            )
            if not refused():
                names = list(parameters), list(buffers), list(batch)
                written = keep_written_buffers(traced.graph, *names, set(frozen))
    except DATA_DEPENDENT as error:
        problems.add([data_dependent(source_of_error(error))])
    except Exception as error:
        source = source_of_error(error)
        if (known := outside_torch(error, source)) is not None:
            problems.add([known])
        # If the model was refused (see above), or if code that looks at the data was given a made-up number,
        # the error may follow from that.
        if not refused():
            if not is_of_the_step(error):
                raise
            problems.add([raised(error, source, traceback_of(error))])
    if refused():
        problems.add(recorder.problems)
        raise TraceError(problems, recorder.graph)
    put_behind(traced.graph, list(parameters), untouched)
    buffers = {name: parameters.pop(name) for name in untouched} | buffers
    buffers |= literals_as_inputs(traced, len(parameters) + len(buffers), {*parameters, *buffers, *taken})
    fixed = {name: as_committed(b) for name, b in buffers.items()}
    return TracedStep(
        graph=traced.graph,
        parameters=tuple(parameters),
        buffers=fixed,
        metrics=tuple(metric_names),
        written=written,
        untouched=tuple(untouched),
        thawed=tuple(thawed),
        distributions=tuple(dict.fromkeys(distributions)),
    )


def as_torch_raises(problem: Problem, model: nn.Module, objective: Objective, batch: Batch) -> Problem:
    """The problem to report: normally `problem` itself. If `problem` has a cause, and the step raises an
    error in plain torch too, the result describes that error instead.
    """
    if problem.cause is None:
        return problem
    try:
        run_plainly(model, objective, batch)
    except Exception as error:
        return raised_by_torch_too(error, source_of_error(error), traceback_of(error))
    return problem


def constants_of(traced: TracedStep) -> dict[torch.fx.Node, Tensor]:
    """The tensors that no part of the step trains or writes, by placeholder."""
    holders = [node for node in traced.graph.nodes if node.op == "placeholder"][len(traced.parameters) :]
    changed = {*traced.written, *traced.moving}
    return {node: t for node, (name, t) in zip(holders, traced.buffers.items()) if name not in changed}


def is_traced(value: object) -> bool:
    """Whether a value is a tensor that exists only in a trace, without elements."""
    return isinstance(value, FakeTensor | FunctionalTensor)


def _in_f32(t: Tensor) -> Tensor:
    return t.detach().float() if t.is_floating_point() else t.detach()


def _functional(tensors: list[Tensor]) -> list[Tensor]:
    return [FunctionalTensor.to_functional(t) for t in tensors]


def _contents(x: Tensor) -> Tensor:
    """The contents of a functional tensor after all writes in place."""
    torch._sync(x)  # type: ignore[attr-defined, no-untyped-call]
    return torch._from_functional_tensor(x.elem)  # type: ignore[attr-defined]


def _after(name: str, old: Tensor, where: Mapping[str, str], after: Mapping[str, Tensor]) -> Tensor:
    """The tensor that holds the buffer `name` after the step: `old`, or another tensor if the model replaced
    it. `where` maps places in the model to names of tensors. `after` maps places to the buffers that are
    there after the step.
    """
    new, *others = [after.get(place, old) for place, of in where.items() if of == name]
    require_one_replacement(name, new, others)
    require_same_type(name, old, new, isinstance(new, FunctionalTensor))
    return new
