"""A bundle in memory: the step program and the tensors that it starts from, as canonical bytes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from protocol.commitments import Tree, constants_tree, state_tree
from protocol.commitments.tensors import Tensor
from protocol.commitments.threads import each
from protocol.numerics.types import DType, canonical_buffer, from_bytes
from protocol.program.cost import Cost, cost
from protocol.program.library import Hint
from protocol.program.step import StepProgram
from protocol.program.types import TensorType
from protocol.tasks.arithmetics import ARITHMETIC

if TYPE_CHECKING:  # only submitters need capturing
    from protocol.capture import CapturedStep


class Held(NamedTuple):
    """What a bundle takes up while it is in memory, if it was loaded from files: `maps` memory maps, and
    `read` bytes of tensors that were read instead of mapped.
    """

    maps: int = 0
    read: int = 0


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle. `state`, `dataset` and `constants` hold the step program's inputs, in the program's order.
    `hints` help to find kernels. `held` matters only if the bundle was loaded from files.
    """

    name: str
    step: StepProgram
    state: tuple[Tensor, ...]
    dataset: tuple[Tensor, ...]
    constants: tuple[Tensor, ...]
    hints: Mapping[bytes, Hint] = field(default_factory=dict)
    arithmetic: int = ARITHMETIC
    held: Held = field(default_factory=Held)

    @classmethod
    def of(cls, name: str, captured: CapturedStep, initial: Mapping[str, torch.Tensor]) -> Bundle:
        """The bundle of a captured step that starts from `initial` (`CapturedStep.initial_state`)."""
        step = captured.step_program
        state = _tensors(dict(zip(step.state, step.order(initial), strict=True)), step.state_types)
        fixed = _tensors({**captured.dataset, **captured.constants}, step.fixed_types)
        return cls(name, step, state, fixed[: step.datasets], fixed[step.datasets :], captured.hints)

    @cached_property
    def state_tree(self) -> Tree:
        """The initial state's tree; its root is r_0."""
        return state_tree([tensor.root for tensor in self.state])

    @cached_property
    def constant_roots(self) -> tuple[bytes, ...]:
        """Tensor roots of the dataset's tensors, then of the constants."""
        return tuple(tensor.root for tensor in (*self.dataset, *self.constants))

    @cached_property
    def constants_tree(self) -> Tree:
        """The tree over `constant_roots`."""
        return constants_tree(self.constant_roots)

    @cached_property
    def cost(self) -> Cost:
        """The cost of one step."""
        return cost(self.step.program)

    def initial_state(self) -> dict[str, torch.Tensor]:
        """The state before the first step, as fresh CPU tensors by name."""
        return dict(zip([tensor.name for tensor in self.state], _fresh(self.state), strict=True))

    def fixed(self) -> tuple[torch.Tensor, ...]:
        """The dataset's tensors, then the constants, as CPU tensors that share the bundle's bytes.

        Do not write to them. They may be larger than memory (`BlobStore.map`).
        """
        return tuple(_shared(tensor) for tensor in (*self.dataset, *self.constants))


def _tensors(values: Mapping[str, torch.Tensor], types: Sequence[TensorType]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(name, int(type_.dtype), type_.shape, canonical_buffer(value, type_.dtype))
        for (name, value), type_ in zip(values.items(), types, strict=True)
    )


def _shared(tensor: Tensor) -> torch.Tensor:
    """A torch tensor over the canonical bytes of `tensor`. Every bool in the bytes is 0 or 1. The bytes are
    copied only on a big-endian machine.
    """
    dtype = DType(tensor.dtype)
    if sys.byteorder != "little":
        return _torch(tensor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch has no tensor that cannot be written to
        return torch.frombuffer(tensor.data, dtype=dtype.storage).view(tensor.shape)


def _fresh(tensors: Sequence[Tensor]) -> list[torch.Tensor]:
    return each(
        _torch, tensors, torch.get_num_threads()
    )  # memory is touched for the first time: half the time on two


def _torch(tensor: Tensor) -> torch.Tensor:
    dtype = DType(tensor.dtype)
    if not any(tensor.data[:64]) and not np.frombuffer(tensor.data, np.uint8).any():
        # Zeros, as Adam begins with, take no memory until something is written to them.
        return torch.from_numpy(np.zeros(len(tensor.data), np.uint8)).view(dtype.storage).view(tensor.shape)
    return from_bytes(tensor.data, dtype, tensor.shape)
