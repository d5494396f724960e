"""A step program maps a state to the next state (encoding.md section 4).

Its inputs are the tensors of the state, then of the dataset, then the constants. Its outputs are the state's
tensors, in the same order. `StepProgram` also holds the names of the state's tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.commitments.chunks import tensor_root
from protocol.commitments.digests import Digester
from protocol.commitments.hashing import BytesLike
from protocol.commitments.roots import constants_tree, state_root
from protocol.commitments.states import Checkpoint
from protocol.commitments.tensors import Tensor as StoredTensor
from protocol.numerics.cuda import hashing
from protocol.numerics.types import canonical_buffer, from_bytes, to_bytes
from protocol.program.check import check
from protocol.program.digesting import salted_state_root
from protocol.program.errors import CheckError, ValueMismatch
from protocol.program.execute import Evaluator, Interpreter, require_types
from protocol.program.program import Program
from protocol.program.trace import Trace, trace
from protocol.program.types import TensorType

State = Mapping[str, Tensor]

METRIC = "metric."
"""Name prefix of the scalars in the state that hold the loss and the metrics of the last step's batch."""


HISTORY = "history"
"""Name of the state's last tensor, if the state keeps metrics: f32 [metrics, N], with step s in column s mod
N.

Here steps are counted from 0.
"""


def metrics(state: State) -> dict[str, float]:
    """The loss and the metrics in a state, by name without the prefix."""
    found = {name: x for name, x in state.items() if name.startswith(METRIC) and x.numel() == 1}
    return {name.removeprefix(METRIC): float(x) for name, x in found.items()}


@dataclass(frozen=True)
class StepProgram:
    """A step program. `state` names its first inputs. `datasets` and `constants` say how many inputs of each
    kind follow.
    """

    program: Program
    state: tuple[str, ...]
    datasets: int
    constants: int

    @property
    def state_types(self) -> tuple[TensorType, ...]:
        """Types of the state's tensors."""
        return self.program.inputs[: len(self.state)]

    def history(self, state: State) -> dict[str, list[float]]:
        """The metrics that the state keeps, which are those of the most recent steps. Returns columns by
        name: `step`, counted from 1, and one column for each metric.

        Empty if the state keeps no metrics.
        """
        if self.state[-1] != HISTORY:  # a model's buffer may have this name, but comes earlier
            return {}
        kept, done = state[HISTORY], int(state["step"])
        steps = range(max(0, done - kept.shape[1]), done)
        columns = [step % kept.shape[1] for step in steps]
        names = [name.removeprefix(METRIC) for name in self.state if name.startswith(METRIC)]
        table = zip(names, kept[:, columns].tolist(), strict=True)
        return {"step": [step + 1 for step in steps], **dict(table)}

    @property
    def fixed_types(self) -> tuple[TensorType, ...]:
        """Types of the dataset's tensors, then of the constants."""
        return self.program.inputs[len(self.state) :]

    @property
    def state_bytes(self) -> int:
        """Canonical bytes of one state."""
        return sum(type_.nbytes for type_ in self.state_types)

    def check(self) -> None:
        """Check the program, and that it maps a state to a state. Raises `CheckError`."""
        check(self.program)
        name = self.program.name
        if len(set(self.state)) != len(self.state) or not self.state:
            raise CheckError("distinct names of at least one state tensor", str(self.state), operation=name)
        inputs = len(self.state) + self.datasets + self.constants
        if min(self.datasets, self.constants) < 0 or len(self.program.inputs) != inputs:
            raise CheckError(f"{inputs} inputs", str(len(self.program.inputs)), operation=name)
        if self.program.outputs != self.state_types:
            expected = ", ".join(map(str, self.state_types))
            got = ", ".join(map(str, self.program.outputs))
            raise CheckError(f"outputs of the state's types {expected}", got, operation=name)

    def order(self, state: State) -> tuple[Tensor, ...]:
        """The state's tensors in the program's order. Raises `ValueMismatch` for other names or types."""
        if set(state) != set(self.state):
            raise ValueMismatch(f"state tensors {sorted(self.state)}", str(sorted(state)))
        tensors = tuple(state[name] for name in self.state)
        require_types(self.state_types, tensors, "state tensors")
        return tensors

    def checkpoint(self, state: State) -> Checkpoint:
        """A state in committed form: canonical bytes of its tensors, in the program's order."""
        return Checkpoint(
            [
                StoredTensor(name, int(type_.dtype), type_.shape, to_bytes(x, type_.dtype))
                for name, type_, x in zip(self.state, self.state_types, self.order(state), strict=True)
            ]
        )

    def state_of(self, data: Sequence[BytesLike]) -> dict[str, Tensor]:
        """The state whose tensors have these bytes, in the program's order.

        Raises `NumericsError` for wrong lengths.
        """
        return {
            name: from_bytes(item, type_.dtype, type_.shape)
            for name, type_, item in zip(self.state, self.state_types, data, strict=True)
        }

    def step(self, state: State, fixed: Sequence[Tensor], interpreter: Interpreter) -> dict[str, Tensor]:
        """The next state. `fixed` are the dataset's tensors, then the constants."""
        outputs = interpreter.run(self.program, (*self.order(state), *fixed))
        return dict(zip(self.state, outputs, strict=True))

    def trace(self, state: State, fixed: Sequence[Tensor], evaluator: Evaluator | None = None) -> Trace:
        """The traced run of one step."""
        return trace(self.program, (*self.order(state), *fixed), evaluator)

    def tensor_roots(self, state: State) -> tuple[bytes, ...]:
        """Tensor roots of a state: the leaves of its state tree."""
        return _roots(self.state_types, self.order(state))

    def state_root(self, state: State) -> bytes:
        """The root that commits to a state."""
        return state_root(self.tensor_roots(state))

    def salted_state_root(self, state: State, digester: Digester, step: int, threads: int = 1) -> bytes:
        """The root of a state in a seat's digest (audit.md section 4). `step` is the state's number in its
        segment.
        """
        dtypes = [type_.dtype for type_ in self.state_types]
        return salted_state_root(self.order(state), dtypes, digester, step, threads)

    def constants_root(self, fixed: Sequence[Tensor]) -> bytes:
        """The root of the tree over the dataset's tensors and then the constants. There must be at least one
        of them.
        """
        require_types(self.fixed_types, fixed, "dataset tensors and constants")
        return constants_tree(_roots(self.fixed_types, fixed)).root


def _roots(types: Sequence[TensorType], tensors: Sequence[Tensor]) -> tuple[bytes, ...]:
    on_device = hashing.roots(tensors, [type_.dtype for type_ in types])
    if on_device is not None:
        return tuple(on_device)
    return tuple(
        tensor_root(canonical_buffer(x, type_.dtype)) for type_, x in zip(types, tensors, strict=True)
    )
