"""NAME: a small network that learns which of two spirals a point lies on. Change the model, the data, the
loss.

This file runs only on your machine: when the task is tried, priced or captured, and when its result is
evaluated. Solvers and verifiers get what `capture` makes of it: the step as a program, and all numbers of the
data and the weights. Anyone can read these.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture

POINTS = 2_000
HELD_OUT = 500
"""Points that are kept out of training."""
BATCH = 64


def build(steps: int, resume: Mapping[str, Tensor] | None = None) -> CapturedStep:
    """Returns the captured step for a training that takes `steps` steps. `assay` calls this with the values
    of the task file. `resume` is the state to continue from, if the task file has a `start`.
    """
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    training, _ = data()
    return capture(
        *(model, objective, optimizer, training),
        batch_size=BATCH,
        steps=steps,
        scheduler=scheduler,
        resume=resume,
    )


def make_model() -> nn.Module:
    """A network that maps two coordinates to one number per spiral. Its initial weights are the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 2))


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a batch, and metrics to watch."""
    logits = model(batch["points"])
    labels = batch["labels"]
    return F.cross_entropy(logits, labels), {"accuracy": (logits.argmax(1) == labels).float().mean()}


def data() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Training and held-out data: points f32 [N, 2], labels int64 [N]. Put your own data here, as tensors or
    numpy arrays by name. Training data may also be a map-style dataset whose items all have one shape.
    """
    generator = torch.Generator().manual_seed(1)
    count = POINTS + HELD_OUT
    labels = torch.randint(0, 2, (count,), generator=generator)
    turn = torch.rand(count, generator=generator) * 9 + 1
    angle = turn + labels * torch.pi
    spiral = torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / 10
    points = spiral + 0.02 * torch.randn(count, 2, generator=generator)
    everything = {"points": points, "labels": labels}
    return (
        {name: t[:POINTS] for name, t in everything.items()},
        {name: t[POINTS:] for name, t in everything.items()},
    )


def held_out_accuracy(state: Mapping[str, Tensor]) -> float:
    """The evaluation that `assay result` prints: the accuracy on points that no step saw."""
    model = make_model()
    model.load_state_dict({name: state[name] for name in model.state_dict()})
    _, held_out = data()
    with torch.no_grad():
        _, metrics = objective(model, held_out)
    return float(metrics["accuracy"])
