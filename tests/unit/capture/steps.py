"""Small training steps for the tests of `capture`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, Objective, capture
from protocol.capture.types import as_seen_by_torch
from protocol.program.execute import Interpreter
from protocol.program.library import CATALOGUE

DATASET = {
    "x": torch.randn(50, 8, generator=torch.Generator().manual_seed(1)),
    "y": torch.randint(0, 3, (50,), generator=torch.Generator().manual_seed(2)),
}
BATCH = 6


def cross_entropy(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The loss of a classifier."""
    return F.cross_entropy(model(batch["x"]), batch["y"])


def captured(
    model: nn.Module,
    objective: Objective = cross_entropy,
    optimizer: torch.optim.Optimizer | None = None,
    dataset: Mapping[str, Tensor] = DATASET,
    **options: Any,
) -> CapturedStep:
    """A captured step, with plain SGD by default."""
    chosen = optimizer or torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    return capture(model, objective, chosen, dataset, **{"batch_size": BATCH, "steps": 4, **options})


def drawn(step: CapturedStep, state: Mapping[str, Tensor], batch_size: int = BATCH) -> dict[str, Tensor]:
    """The batch that the next step from `state` draws, as the objective sees it."""
    rows = next(iter(step.dataset.values())).shape[0]
    draw = CATALOGUE["draw_batch"].kernel({"batch": batch_size, "rows": rows, "stream": 0})
    (index,) = draw([state["key"], state["step"]])
    return {name: t[index.long()].to(as_seen_by_torch(t.dtype)) for name, t in step.dataset.items()}


def torch_step(
    model: nn.Module, objective: Objective, optimizer: torch.optim.Optimizer, batch: Mapping[str, Tensor]
) -> Tensor:
    """One step in plain torch; updates the model and returns the loss."""
    result = objective(model, batch)
    loss = result[0] if isinstance(result, tuple) else result
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def follow(
    model: nn.Module, dataset: Mapping[str, Tensor] = DATASET, *, rate: float = 0.1, steps: int = 4
) -> CapturedStep:
    """Capture a classifier and train it alongside torch. Assert that losses, weights and buffers agree.

    Every step is run twice, once with kernels and once with bodies, and the two runs must have the same bits.
    At the end, `model` holds the captured state.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=rate, momentum=0.9)
    step = captured(model, optimizer=optimizer, dataset=dataset)
    state = slow = step.initial_state(11)
    for _ in range(steps):
        loss = torch_step(model, cross_entropy, optimizer, drawn(step, state))
        state, slow = step.step(state), step.step_program.step(slow, step.fixed, Interpreter())
        assert {name: t.tolist() for name, t in state.items()} == {
            name: t.tolist() for name, t in slow.items()
        }
        torch.testing.assert_close(state["metric.loss"], loss, rtol=3e-3, atol=3e-3)
    held = {name: t.detach() for name, t in (*model.named_parameters(), *model.named_buffers())}
    ours = {name: {**step.constants, **state}[name] for name in held}
    for name, theirs in held.items():
        difference = (ours[name].to(theirs.dtype) - theirs).abs().max()
        assert float(difference) <= 0.02 * float(theirs.abs().max()) + 2e-3, f"{name}: {difference}"
    model.load_state_dict(ours, strict=False)  # a tied tensor is listed only once
    return step
