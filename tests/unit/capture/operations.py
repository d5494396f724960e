"""One operation as a training step: its result and gradients from a captured step and from torch in float64.

f32 operands are parameters, and all others are buffers. The result is written into a buffer, so it is in the
next state. With plain SGD at rate 1, a parameter decreases by its gradient. This gradient exceeds the
operation's by 1, because the loss adds the sum of all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture
from protocol.program.execute import Interpreter

Function = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """A function and its operands. An operand is a tensor or a shape. A shape stands for random f32 values: x
    from the standard normal distribution, or |x| + 0.5 if `positive`.
    """

    name: str
    function: Function
    operands: Sequence[tuple[int, ...] | Tensor]
    positive: bool = False
    rtol: float = 2e-5
    atol: float = 2e-5

    def __str__(self) -> str:
        return self.name

    def tensors(self) -> list[Tensor]:
        """The operands; every call returns the same values."""
        generator = torch.Generator().manual_seed(len(self.name))
        return [t if isinstance(t, Tensor) else self._normal(t, generator) for t in self.operands]

    def _normal(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        x = torch.randn(shape, generator=generator)
        return x.abs() + 0.5 if self.positive else x


class Operation(nn.Module):
    """The function as a model without inputs."""

    result: Tensor
    weights: Tensor

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._function = case.function
        self._names = []
        self.unused = nn.Parameter(torch.ones(1))  # some operations have no trainable operand
        for k, t in enumerate(case.tensors()):
            self._names.append(f"x{k}")
            if t.dtype is torch.float32:
                self.register_parameter(f"x{k}", nn.Parameter(t.clone()))
            else:
                self.register_buffer(f"x{k}", t)
        with torch.no_grad():
            y = self()
        generator = torch.Generator().manual_seed(5)
        self.register_buffer("weights", torch.randn(y.shape, generator=generator))
        self.register_buffer("result", torch.zeros(y.shape))

    def forward(self) -> Tensor:
        """The result; integers and booleans are converted to f32."""
        y = self._function(*(getattr(self, name) for name in self._names))
        return y if y.is_floating_point() else y.float()


def objective(model: Operation, _: object) -> Tensor:
    """The sum of the result times fixed weights, plus the sum of all parameters, so that every parameter gets
    a gradient.
    """
    y = model()
    model.result.copy_(y.detach())
    loss: Tensor = (y * model.weights).sum() + sum(p.sum() for p in model.parameters())
    return loss


def captured(model: Operation) -> CapturedStep:
    """A step that evaluates the operation once."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return capture(model, objective, optimizer, {"rows": torch.zeros(1, 1)}, batch_size=1, steps=1)  # type: ignore[arg-type]


def by_capture(case: Case, *, bodies: bool = False) -> tuple[Tensor, list[Tensor]]:
    """Result and gradients from one captured step. With `bodies`, the step also runs without kernels and must
    give the same bits.
    """
    model = Operation(case)
    step = captured(model)
    state = step.initial_state(0)
    after = step.step(state)
    if bodies:
        slow = step.step_program.step(state, step.fixed, Interpreter())
        assert [t.numpy().tobytes() for t in slow.values()] == [t.numpy().tobytes() for t in after.values()]
    gradients = [p.detach() - after[name] - 1 for name, p in model.named_parameters()]
    return after["result"], gradients


def by_torch(case: Case) -> tuple[Tensor, list[Tensor]]:
    """Result and gradients from torch in float64."""
    model = Operation(case).double()
    y = model()
    loss = (y * model.weights).sum()
    if not loss.requires_grad:
        return y.detach(), [torch.zeros_like(p) for p in model.parameters()]
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return y.detach(), [
        torch.zeros_like(p) if g is None else g for p, g in zip(model.parameters(), gradients)
    ]
