"""What `capture` returns: a step program and all the tensors that it runs on. The step can be run, priced and
committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from protocol.capture.assembly.batch import Drawing
from protocol.capture.assembly.state import KEY
from protocol.capture.lowering.context import Draw
from protocol.capture.optimisers.phases import Phase
from protocol.capture.tracing.tracer import TracedStep
from protocol.errors import AssayError
from protocol.program.cost import Cost, cost
from protocol.program.execute import Interpreter
from protocol.program.library import Hint, fusions, hints, kernels
from protocol.program.step import State, StepProgram

SHOWN = 3
"""The maximum number of names that an error lists."""


@dataclass(frozen=True)
class Coverage:
    """One ATen operation of the submitter's step: what it was lowered to, and how often."""

    operation: str
    became: str
    count: int


@dataclass(frozen=True)
class Report:
    """Results of the preflight: the largest relative errors over all compared batches; NaN if a tensor is not
    finite. Errors are relative to torch's results in float32. For a batch on which the step differs too much
    from torch in float32, they are relative to torch's results in float64.

    `notes` are for the submitter, such as tensors whose difference is explained by precision.
    """

    batches: int
    loss_error: float
    gradient_error: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """The objects from which a step was captured, and the graphs that were traced from them. The objects are
    the submitter's own, not copies. `preflight.following` trains them in torch.

    `draws` holds one mapping per phase. It maps names of nodes in the phase's `traced` graph to the way in
    which the random numbers of these nodes are drawn. If `resumed` is set, the step starts from another
    task's state, not from the model's.
    """

    model: nn.Module
    phases: Sequence[Phase]
    traced: Sequence[TracedStep]
    draws: Sequence[Mapping[str, Draw]]
    drawing: Drawing
    resumed: bool


@dataclass(frozen=True)
class CapturedStep:
    """A training step as data. `dataset` and `constants` are the committed tensors, in the program's order.

    `initial` is the state before the first step, with zeros as its key; `initial_state` sets the key.
    """

    step_program: StepProgram
    dataset: Mapping[str, Tensor]
    constants: Mapping[str, Tensor]
    initial: Mapping[str, Tensor]
    coverage_counts: Mapping[tuple[str, str], int]
    notes: tuple[str, ...] = ()
    """Notes for the submitter, such as parameters that no step changes, or differences that precision
    explains.
    """
    preflight: Report | None = None
    """How close the step is to torch; None if it was not compared."""
    origin: Origin | None = field(default=None, repr=False, compare=False)
    """The submitter's own objects, only on the submitter's machine; None unless `capture` made the step."""

    @property
    def root(self) -> bytes:
        """The program id, 32 bytes, to which a task commits."""
        return self.step_program.program.id

    @property
    def fixed(self) -> tuple[Tensor, ...]:
        """The dataset's tensors, then the constants: the inputs that no step changes."""
        return (*self.dataset.values(), *self.constants.values())

    @cached_property
    def hints(self) -> dict[bytes, Hint]:
        """By program id, the name and attributes of each library function that the program calls and that has
        a kernel. The bundle contains these hints, so that every party that loads it finds the kernels.
        """
        return hints(self.step_program.program)

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(kernels(self.step_program.program, self.hints), fuse=fusions)

    def initial_state(self, seed: int) -> dict[str, Tensor]:
        """The state before the first step: a copy of `initial`, with `seed` as the key of all random numbers.
        Raises `ValueError` unless the seed is an unsigned integer of 64 bits.
        """
        if not 0 <= seed < 2**64:
            raise ValueError(f"expected a seed of 64 bits, got {seed}")
        words = torch.tensor([seed & 0xFFFFFFFF, seed >> 32], dtype=torch.int64, device="cpu")
        return {name: t.clone() for name, t in self.initial.items()} | {KEY: words.to(torch.int32)}

    def step(self, state: State) -> dict[str, Tensor]:
        """The state after a step from `state`, computed by fused kernels: the same bits on every device and with any
        number of threads.
        """
        return self.step_program.step(state, self.fixed, self._interpreter)

    def coverage(self) -> tuple[Coverage, ...]:
        """Every ATen operation of the step, and the library function or rule that it became."""
        return tuple(Coverage(*pair, count) for pair, count in sorted(self.coverage_counts.items()))

    def cost(self) -> Cost:
        """Operations and peak bytes of one step."""
        return cost(self.step_program.program)


class LoadError(AssayError):
    """Raised if a trained state does not fit the model it is loaded into; the model is unchanged."""


def load_into(model: nn.Module, state: State, strict: bool = False) -> tuple[str, ...]:
    """Copy the parameters and buffers of a trained state into a model. Tensors are matched by their names in
    the captured model.

    Since the capture, `model` may have been frozen or tied, or wrapped by `torch.compile` or by a module for
    several devices. Returns the names of the model's parameters that the state lacks. Training did not change
    these: they were frozen, or the loss did not reach them. Raises `LoadError` if a tensor has another shape,
    or if the state has none of the model's parameters. With `strict`, also raises `LoadError` if the state
    lacks a parameter, has a tensor that the model lacks, or has floats of a different type from the model's.
    """
    model = _unwrapped(model)
    own = {_plain(name): t for name, t in (*model.named_parameters(), *model.named_buffers())}
    given = {_in_model(name, own): t for name, t in state.items()}
    shared = own.keys() & given.keys()
    if not shared.intersection(_plain(name) for name, _ in model.named_parameters()):
        raise LoadError(
            "trained state",
            expected=f"parameters such as {', '.join([*own][:SHOWN])}",
            got=f"{', '.join([*given][:SHOWN])}",
            remedy="make the model as the captured one was made",
        )
    if strict:
        _require_same([_plain(name) for name, _ in model.named_parameters()], own, given)
    for name in sorted(shared):
        if own[name].shape != given[name].shape:
            raise LoadError(
                f"tensor {name} of the trained state",
                expected=f"the shape {tuple(own[name].shape)}",
                got=tuple(given[name].shape),
                remedy="make the model as the captured one was made",
            )
    with torch.no_grad():
        for name in shared:
            own[name].copy_(given[name])
    return tuple(name for name, _ in model.named_parameters() if _plain(name) not in given)


def _require_same(parameters: Sequence[str], own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Raise `LoadError` unless a state has all of a model's parameters, no tensor that the model lacks, and
    the same type as the model for every tensor of floats.
    """
    for missing, what in (
        ([name for name in parameters if name not in given], "parameter {} of the model"),
        ([name for name in given if name not in own], "tensor {} of the trained state"),
    ):
        if missing:
            raise LoadError(
                what.format(missing[0]),
                expected="the same names in model and trained state",
                got=f"{len(missing)} that only one of them has: {', '.join(missing[:SHOWN])}",
                remedy="make the model as the captured one was made",
            )
    for name in sorted(given):
        if given[name].is_floating_point() and own[name].dtype != given[name].dtype:
            raise LoadError(
                f"tensor {name} of the model",
                expected=given[name].dtype,
                got=own[name].dtype,
                remedy="load into a float32 model, and cast that",
            )


def _unwrapped(model: nn.Module) -> nn.Module:
    """The model inside the wrappers of torch.compile and of the modules for several devices."""
    while True:
        if isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        elif isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        else:
            return model


def _in_model(name: str, own: Mapping[str, Tensor]) -> str:
    """A tensor's name in a model without wrappers (`own`), from its name in a model with wrappers."""
    name = _plain(name)
    while name not in own and name.startswith("module."):
        name = name.removeprefix("module.")
    return name


def _plain(name: str) -> str:
    """A tensor's name without the parts that torch.compile inserts."""
    return ".".join(part for part in name.split(".") if part != "_orig_mod")
