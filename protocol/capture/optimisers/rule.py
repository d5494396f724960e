"""The interface of all ways to update parameters: kernels (`methods`) and the optimiser's own code (`traced`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from torch import Tensor

from protocol.capture.lowering.context import Lowering
from protocol.program.builder import Value
from protocol.program.types import TensorType


class Rule(Protocol):
    """An update of parameters from their gradients, which are already clipped."""

    @property
    def initial(self) -> Mapping[str, Tensor]:
        """The optimiser's state tensors before the first step, by name. Those that are left out are zero."""

    def state(self, parameters: Mapping[str, TensorType]) -> list[tuple[str, TensorType]]:
        """Names and types of the optimiser's state, in order."""

    def write(
        self,
        lowering: Lowering,
        state: Mapping[str, Value],
        gradients: Mapping[str, Value],
        rates: Sequence[Value],
    ) -> dict[str, Value]:
        """The parameters and the optimiser's state after the step. `rates` holds one f32 [] for each group."""
