"""Runs a training twice on the same batches: with a captured exact step, and with eager float32 torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from protocol.capture import CapturedStep, capture
from protocol.capture.streams import BATCH_STREAM
from protocol.program.library.sampling import draw_batch
from protocol.program.step import State, metrics

Tensors = Mapping[str, Tensor]
EVERY = 10
"""Steps between two points of a curve. A point is the mean loss since the previous point."""


@dataclass(frozen=True)
class Subject:
    """A model and its training. `evaluate` returns figures of a trained model on held-out data."""

    name: str
    make_model: Callable[[int], nn.Module]
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    factor: Callable[[int, int], float]
    objective: Callable[[nn.Module, Tensors], Any]
    training: Tensors
    batch: int
    evaluate: Callable[[nn.Module], dict[str, float]]
    clip_norm: float | None = None
    bits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Rows that replace those of the default table of contractions (see `capture`)."""

    def captured(self, seed: int, steps: int) -> CapturedStep:
        """The exact step, starting from the initial weights of `seed`."""
        model = self.make_model(seed)
        optimizer = self.make_optimizer(model)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: self.factor(step, steps))
        return capture(
            model,
            self.objective,
            optimizer,
            self.training,
            batch_size=self.batch,
            steps=steps,
            scheduler=scheduler,
            clip_norm=self.clip_norm,
            bits=self.bits,
        )


@dataclass(frozen=True)
class Trained:
    """One run: its loss curve, the mean loss of its last tenth, and the held-out figures."""

    curve: list[float]
    final_loss: float
    held_out: dict[str, float]

    @classmethod
    def of(cls, losses: list[float], held_out: dict[str, float]) -> Trained:
        """The result of a run, from the losses of all its steps and its held-out figures."""
        parts = [losses[k : k + EVERY] for k in range(0, len(losses), EVERY)]
        curve = [sum(part) / len(part) for part in parts]
        last = losses[-max(1, len(losses) // 10) :]
        return cls(curve, sum(last) / len(last), held_out)


def exact(subject: Subject, seed: int, steps: int) -> Trained:
    """Train with the captured step."""
    step = subject.captured(seed, steps)
    state: State = step.initial_state(seed)
    losses = []
    for _ in range(steps):
        state = step.step(state)
        losses.append(metrics(state)["loss"])
    model = subject.make_model(seed).eval()
    known = model.state_dict()
    model.load_state_dict({name: x for name, x in state.items() if name in known}, strict=False)
    return Trained.of(losses, subject.evaluate(model))


def plain(subject: Subject, seed: int, steps: int) -> Trained:
    """Train with eager float32 torch, on the same batches as the exact step."""
    model = subject.make_model(seed).train()
    optimizer = subject.make_optimizer(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: subject.factor(step, steps))
    losses = []
    for step in range(steps):
        batch = drawn(subject, seed, step)
        result = subject.objective(model, batch)
        loss = result[0] if isinstance(result, tuple) else result
        optimizer.zero_grad()
        loss.backward()
        if subject.clip_norm is not None:
            clip_grad_norm_(model.parameters(), subject.clip_norm)
        optimizer.step()
        scheduler.step()
        losses.append(float(loss.detach()))
    return Trained.of(losses, subject.evaluate(model.eval()))


def drawn(subject: Subject, seed: int, step: int) -> dict[str, Tensor]:
    """The batch that the program draws in a step."""
    rows = len(next(iter(subject.training.values())))
    key = torch.tensor([seed & 0xFFFFFFFF, seed >> 32], dtype=torch.int32)
    attributes = {"batch": subject.batch, "rows": rows, "stream": BATCH_STREAM}
    (index,) = draw_batch.kernel(attributes)([key, torch.tensor(step, dtype=torch.int32)])
    return {name: t[index.long()] for name, t in subject.training.items()}
