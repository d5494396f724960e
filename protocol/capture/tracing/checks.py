"""Refusals of a step while it is traced: the objective's results, writes, and code that cannot be traced.

Functions named `require_…` raise `CaptureError`; the others return the `Problem` or the note for their caller
to collect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from protocol.capture.errors import CaptureError, Problem, Problems, raise_any
from protocol.capture.types import type_name

DRAWN = (
    "the random numbers of a step are uniform, normal and exponential ones, integers, masks and permutations"
)
PACKING = ("pack_padded_sequence(", "pack_sequence(")
"""Calls whose result has a shape that depends on the lengths of the batch's rows."""
SHOWN = 5
"""The maximum number of parameters that a note names."""


class TraceError(CaptureError):
    """Raised if the step cannot be traced. `graph` holds the operations traced until then, or is None."""

    def __init__(self, problems: Problems, graph: torch.fx.Graph | None) -> None:
        super().__init__(problems)
        self.graph = graph


def data_dependent(source: str, remedy: str = "") -> Problem:
    """The refusal for a decision or a shape, at line `source`, that depends on the batch's contents."""
    usual = "use torch.where or a mask in place of `if`, `.item()`, boolean indexing and `nonzero`"
    if any(name in source for name in PACKING):
        usual = (
            "run the recurrent layer over the padded batch: take each row's output at its last step with torch.gather, "
            "and mask the steps after it in the loss"
        )
    return Problem("a decision or a shape depends on the data", remedy or usual, source)


def state_made_inside(source: str) -> Problem:
    """The refusal for a step that creates a module, whose parameters would be new in every step."""
    remedy = "a module is made inside the step, and its constructor makes state: make it part of the model"
    return Problem("new parameters in every step", remedy, source)


def second_derivative(of: str, source: str) -> Problem:
    """The refusal for a step that takes a second derivative. `of` says of what, for example a recurrent layer."""
    remedy = "leave out create_graph, or write the layer's steps in torch's operations: its gradients are one operation"
    return Problem(f"a second derivative of {of}", remedy, source)


def seeded(source: str) -> Problem:
    """The refusal for a step that sets the seed or the state of torch's random numbers at line `source`."""
    remedy = (
        "leave it out: all random numbers are drawn with the state's key; draw numbers that are the same in every step "
        "once, before training, and keep them as a buffer"
    )
    return Problem("the step seeds torch's random numbers", remedy, source)


def reentrant(source: str) -> Problem:
    """The refusal for a step that makes a reentrant checkpoint at line `source`."""
    remedy = "pass use_reentrant=False to checkpoint; it computes the same"
    what = "a reentrant checkpoint (use_reentrant=True), whose gradients a trace does not contain"
    return Problem(what, remedy, source)


def steps_an_optimizer(kind: str, source: str) -> Problem:
    """The refusal for a step that calls `step` of an optimiser of class `kind` at line `source`."""
    remedy = "give each optimiser a phase of capture_phases; a program updates parameters after the objective alone"
    return Problem(f"the objective steps an optimiser, {kind}", remedy, source)


def outside_torch(error: Exception, source: str) -> Problem | None:
    """The refusal for a step that converts tensors to NumPy or lists, or uses a reentrant checkpoint.

    torch's errors in these cases have no specific type, so the message of `error` is examined. None for any
    other error.
    """
    text = str(error)
    if ".numpy()" in text or "tolist()" in text:
        return data_dependent(source)
    if "use_reentrant=True" in text:
        return Problem("torch.utils.checkpoint with use_reentrant=True", "pass use_reentrant=False", source)
    return None


def raised(error: Exception, source: str, traceback: str) -> Problem:
    """The refusal for a step that raises `error` while it is traced."""
    remedy = (
        "torch runs this step unchanged; what is traced has types and shapes but no elements: write it in operations "
        "that need no more"
    )
    return Problem(f"tracing the step raises {type(error).__name__}", remedy, source, traceback, error)


def raised_by_torch_too(error: Exception, source: str, traceback: str) -> Problem:
    """The refusal for a step that raises `error` in plain torch too."""
    remedy = "torch raises it without `capture` too: mend it, and try the objective on a batch of the dataset"
    return Problem(f"the step raises {type(error).__name__}", remedy, source, traceback, error)


def left_untouched(parameters: Sequence[str]) -> Iterator[str]:
    """The note on trainable parameters that have no gradient, if there are any."""
    if parameters:
        more = f" and {len(parameters) - SHOWN} more" if len(parameters) > SHOWN else ""
        shown = ", ".join(parameters[:SHOWN])
        yield f"the loss does not reach {shown}{more}: left unchanged, as torch leaves them"


def unvalidated(distributions: Sequence[str]) -> Iterator[str]:
    """The note on the torch distributions that the step creates, if there are any: no program checks their
    arguments.
    """
    if distributions:
        yield f"{', '.join(distributions)}: no program checks the arguments of torch.distributions"


def require_traced(operands: Any, source: str) -> None:
    """Refuse a real tensor among the operands. In a trace, the tensors of the model and the batch are fake,
    so a real tensor belongs to neither.
    """
    real = [x for x in tree_leaves(operands) if type(x) in (torch.Tensor, nn.Parameter, nn.Buffer)]
    if any(isinstance(x, nn.Parameter) for x in real):
        what = "a parameter that the objective did not read from the model"
        remedy = (
            "read it inside the objective, as model.weight or model.parameters(), not from a variable outside; if "
            "list(model.parameters()) lacks it, assign it, or the module that has it, to an attribute of the model, "
            "and keep several modules in an nn.ModuleList; then pass the optimiser all parameters of the model"
        )
        raise CaptureError([Problem(what, remedy, source)])
    if real:
        what = "a tensor from outside the model and the batch"
        remedy = (
            "register it as a buffer of the model or put it into the dataset; a loss whose constructor makes state, "
            "as one with weights does, has to be a part of the model"
        )
        raise CaptureError([Problem(what, remedy, source)])


def require_loss_and_metrics(result: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss and the named metrics that an objective returned. Each must be a single f32 number, the loss must
    depend on a trainable parameter, and no metric may be called loss.
    """
    loss, metrics = result if isinstance(result, tuple) and len(result) == 2 else (result, {})
    if not isinstance(loss, Tensor) or not isinstance(metrics, Mapping):
        inside = f" of {', '.join(type(x).__name__ for x in result)}" if isinstance(result, tuple) else ""
        what = f"the objective returns a {type(result).__name__}{inside}"
        remedy = "return the loss, a tensor, or the loss and a dict of metrics by name"
        raise CaptureError([Problem(what, remedy)])
    if "loss" in metrics:
        remedy = "give it another name; the loss is one already"
        raise CaptureError([Problem("a metric is called loss", remedy)])
    if not loss.requires_grad:
        what = "the loss does not depend on a trainable parameter"
        raise CaptureError([Problem(what, "compute it with the model")])
    remedy = "reduce it with .mean(), or convert it with .float()"
    wrong = {name: what for name, v in {"loss": loss, **metrics}.items() if (what := _not_scalar(v))}
    raise_any(Problem(f"{name} is {what}, not one float32", remedy) for name, what in wrong.items())
    return loss, dict(metrics)


def require_no_gradients(parameters: Mapping[str, Tensor]) -> None:
    """Refuse an objective that leaves gradients in `parameters`, which had none before the objective ran.
    torch would add the gradients of the loss to the gradients that the objective left.
    """
    remedy = "add what it differentiates to the loss; take other gradients with torch.autograd.grad, or zero them again"
    raise_any(
        Problem(f"the objective leaves a gradient in parameter {name}", remedy)
        for name, p in parameters.items()
        if p.grad is not None
    )


def require_no_new_attributes(
    tensors: Mapping[str, Tensor], attributes: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse a step that sets attributes on `tensors`, the tensors of model and batch. `attributes` holds
    their attributes before the step.
    """
    remedy = "keep it as a buffer of the model, written by tensor operations: tensors of a program have no attributes"
    raise_any(
        Problem(f"the step sets the attribute {key!r} of {name}", remedy)
        for name, t in tensors.items()
        for key, value in vars(t).items()
        if key not in attributes[name] or attributes[name][key] is not value
    )


def require_same_parameters(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Refuse a step that replaces, adds or removes a parameter. Both mappings hold the parameters by place in
    the model.
    """
    remedy = (
        "leave parameters to the optimiser; keep what the step computes itself, such as a moving average, in a "
        "buffer (register_buffer), written by tensor operations"
    )
    raise_any(
        Problem(f"the step replaces parameter {name}", remedy)
        for name in dict.fromkeys((*before, *after))
        if before.get(name) is not after.get(name)
    )


def require_separate_memory(after: Mapping[str, Tensor]) -> None:
    """Refuse a step that leaves a buffer in the memory of a parameter or of another buffer. In torch, a later write
    into one of the two would change both; a program keeps them apart. `after` holds the parameters, then the
    buffers, as they are after the step.
    """
    owners: dict[int, str] = {}
    problems = []
    for name, t in after.items():
        owner = owners.setdefault(t.untyped_storage()._cdata, name)
        if owner != name:
            what = f"the step leaves buffer {name} in the memory of {owner}, so that a change of one changes both"
            problems.append(
                Problem(what, "keep a copy, with .clone() or .copy_(); or read the other tensor instead")
            )
    raise_any(problems)


def require_one_replacement(name: str, new: Tensor, others: list[Tensor]) -> None:
    """Refuse a tied buffer if the step replaces it by `new` in only some of its places in the model."""
    if any(other is not new for other in others):
        what = f"buffer {name} is tied, and the step replaces it in one place only"
        remedy = "write into it with .copy_(), or give the places their own buffers"
        raise CaptureError([Problem(what, remedy)])


def require_same_type(name: str, old: Tensor, new: Tensor, traced: bool) -> None:
    """Refuse a buffer whose type or shape changes, or that is replaced by a tensor that is not `traced`."""
    if not traced or new.shape != old.shape or new.dtype != old.dtype:
        what = f"buffer {name} changes from {old.dtype} {tuple(old.shape)} to {new.dtype} {tuple(new.shape)}"
        raise CaptureError([Problem(what, "keep its type and shape, computed from the batch and the model")])


def data_of_another_type(old: Tensor, new: Any, source: str) -> Problem:
    """The refusal for `x.data = new` at line `source`, if it changes the type or shape of x. `old` is the
    tensor x before the assignment.
    """
    given = f"{new.dtype} {tuple(new.shape)}" if isinstance(new, Tensor) else f"a {type(new).__name__}"
    what = f"an assignment to .data turns {old.dtype} {tuple(old.shape)} into {given}"
    return Problem(what, "keep type and shape, and write with .copy_()", source)


def shared_data(source: str) -> Problem:
    """The refusal for `x.data = y` at line `source`, if y shares memory with a tensor of the step."""
    what = "an assignment to .data makes two tensors share memory"
    return Problem(what, "write the elements instead: x.data.copy_(y)", source)


def written_input(name: str, is_parameter: bool, source: str) -> Problem:
    """The refusal for a step that writes into a parameter or into the batch."""
    return Problem(
        f"the step writes into {'parameter' if is_parameter else 'batch tensor'} {name}",
        "leave parameters to the optimiser and make new tensors of the batch; only buffers can be written",
        source,
    )


def _not_scalar(value: Any) -> str:
    """A description of `value`, for messages, if it is not a single f32; otherwise an empty string."""
    if not isinstance(value, Tensor):
        return f"a Python {type(value).__name__}"
    if value.dtype == torch.float32 and value.numel() == 1:
        return ""
    return f"{type_name(value.dtype)} of shape {tuple(value.shape)}"
