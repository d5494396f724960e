"""The step to trace: model and objective as one module, and the torch settings under which it runs."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.func import functional_call
from torch.jit._fuser import optimized_execution
from torch.nn.attention import SDPBackend, sdpa_kernel

from protocol.capture.errors import raise_any
from protocol.capture.inputs.checks import hooks_on_gradients
from protocol.capture.inputs.model import places, tensors_of, with_attributes
from protocol.capture.inputs.python_values import in_library, is_installed
from protocol.capture.tracing.checks import (
    require_loss_and_metrics,
    require_no_gradients,
    require_no_new_attributes,
    require_same_parameters,
)

Batch = Mapping[str, Tensor]
Objective = Callable[[nn.Module, Batch], "Tensor | tuple[Tensor, Mapping[str, Tensor]]"]
"""Takes the model and a batch; returns the scalar loss, or the loss and named scalar metrics."""


@dataclass(frozen=True)
class StepResults:
    """The results of a step. A gradient is None if the parameter does not affect the loss. `buffers` holds
    the model's buffers after the step, by place in the model (`inputs.model.places`). `thawed` names the
    parameters that were frozen before the step and are not frozen after it.
    """

    loss: Tensor
    metrics: Mapping[str, Tensor]
    gradients: Sequence[Tensor | None]
    buffers: Mapping[str, Tensor]
    thawed: Sequence[str]


class StepModule(nn.Module):
    """Model and objective as one module, so that `functional_call` can put traced tensors into the model."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self._objective = objective

    def forward(self, batch: Batch, trained: list[Tensor]) -> StepResults:
        """Run one step without its update. The gradients are computed here, while the traced tensors are
        still in the model, because `torch.utils.checkpoint` may run parts of the model again in the backward
        pass.
        """
        tensors = dict((*tensors_of(self.model), *batch.items()))
        attributes = {name: dict(vars(t)) for name, t in tensors.items()}
        parameters = dict(self.model.named_parameters(remove_duplicate=False))
        frozen = {name for name, p in parameters.items() if not p.requires_grad}
        loss, metrics = require_loss_and_metrics(self._objective(self.model, batch))
        leaves = {name: t for name, t in tensors.items() if any(t is leaf for leaf in trained)}
        require_no_gradients(leaves)
        raise_any(hooks_on_gradients(leaves))
        gradients = torch.autograd.grad(loss, trained, allow_unused=True)
        require_no_new_attributes(tensors, attributes)
        require_same_parameters(parameters, dict(self.model.named_parameters(remove_duplicate=False)))
        buffers = dict(self.model.named_buffers(remove_duplicate=False))
        thawed = [name for name in parameters if name in frozen and parameters[name].requires_grad]
        return StepResults(loss, metrics, gradients, buffers, thawed)


def run_plainly(model: nn.Module, objective: Objective, batch: Batch) -> StepResults:
    """Run the step in plain torch, on copies of the model's tensors and the batch. Raises whatever the step raises."""
    copies = {
        name: with_attributes(t.detach().clone().requires_grad_(t.requires_grad), t)
        for name, t in tensors_of(model)
    }
    named = {f"model.{place}": copies[name] for place, name in places(model).items()}
    given = {name: t.clone() for name, t in batch.items()}, [t for t in copies.values() if t.requires_grad]
    with torch.random.fork_rng(devices=[]):
        found: StepResults = functional_call(StepModule(model, objective), named, given, tie_weights=False)
    return found


@contextmanager
def silent_failures() -> Iterator[None]:
    """Keep torch from logging errors of fake tensors. These errors are also raised, and are then reported in
    the submitter's terms.
    """
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextmanager
def without_validation(made: list[str]) -> Iterator[None]:
    """Disable the validation of distributions' arguments, because their contents are unknown in a trace.
    Validation that the code itself requests is not disabled. The class name of every distribution that is
    created is added to `made`.
    """
    make, before = Distribution.__init__, Distribution._validate_args

    @functools.wraps(make)
    def making(self: Distribution, *args: Any, **kwargs: Any) -> None:
        made.append(type(self).__name__)
        make(self, *args, **kwargs)

    Distribution.set_default_validate_args(False)
    Distribution.__init__ = making  # type: ignore[method-assign]
    try:
        yield
    finally:
        Distribution.__init__ = make  # type: ignore[method-assign]
        Distribution.set_default_validate_args(before)


@contextmanager
def decomposed_kernels() -> Iterator[None]:
    """Make torch decompose its fused kernels, whose bits no program can reproduce. Attention becomes
    products, a softmax and masks; recurrent layers become products and gates. Also disable TorchScript's
    optimiser, which would use other derivatives after some calls.
    """
    before = torch.backends.mkldnn.set_flags(_enabled=False)
    try:
        with sdpa_kernel(SDPBackend.MATH), optimized_execution(False):
            yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=before[0])


class _TrueInPackages:
    """True when code of torch or of an installed package tests it, false in any other code. It combines with other
    truth values like a bool.
    """

    def __bool__(self) -> bool:
        return _in_a_package(sys._getframe(1))

    def __or__(self, other: bool) -> bool:
        return _in_a_package(sys._getframe(1)) | other

    def __and__(self, other: bool) -> bool:
        return _in_a_package(sys._getframe(1)) & other

    __ror__, __rand__ = __or__, __and__


def _in_a_package(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return in_library(path) or is_installed(path)


@contextmanager
def compiling() -> Iterator[None]:
    """Inside the context, `torch.compiler.is_compiling()` is true for code of torch and of installed
    packages, as in `torch.export`. Models then skip shortcuts that look at the data, such as a check whether
    a padding mask hides anything. The submitter's own code gets torch's usual answer, because anything that
    it skips while compiling would be missing from every trace.

    Models that believe they are compiling check tensors with `torch._check_tensor_all`. Inside the context,
    `torch._check_tensor_all` does nothing, because a trace has no elements to check.
    """
    before = torch.compiler._is_compiling_flag, torch._check_tensor_all
    torch.compiler._is_compiling_flag = cast(bool, _TrueInPackages())
    torch._check_tensor_all = _unchecked
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag, torch._check_tensor_all = before


def _unchecked(cond: Tensor, message: Callable[[], str] | None = None) -> None:
    """Replaces `torch._check_tensor_all`, and checks nothing."""
