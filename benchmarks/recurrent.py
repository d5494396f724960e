"""Compares exact and float32 steps of recurrent layers, in processor time on one thread, and times capture."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import Row, ratio_row, side_by_side
from protocol.capture import CapturedStep, capture
from protocol.program.step import State

ROUNDS = 15
WORDS, WIDTH, CONTEXT = 2_000, 200, 35
PIXELS = 784


class Words(nn.Module):
    """A language model: two LSTMs over 35 words."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.layers = nn.Embedding(WORDS, WIDTH), nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        tokens = batch["tokens"]
        scores = self.out(self.layers(self.embedding(tokens[:, :-1]))[0])
        return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


class Pixels(nn.Module):
    """A classifier of digits that reads them pixel by pixel: an LSTM over 784 steps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = nn.LSTM(1, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return F.cross_entropy(self.out(self.layer(batch["pixels"])[0][:, -1]), batch["labels"])


@dataclass(frozen=True)
class Training:
    """A model, its data, its batch size, and the goal for the ratio of an exact step's time to a float32
    step's time.
    """

    what: str
    model: nn.Module
    data: Mapping[str, Tensor]
    batch: int
    goal: str

    def capture(self) -> CapturedStep:
        """The captured step."""
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        return capture(
            self.model, lambda m, b: m(b), optimizer, self.data, batch_size=self.batch, steps=1_000
        )


def rows() -> list[Row]:
    """Rows for each model: the ratio of the times of exact and float32 steps, and the seconds of the model's
    capture.
    """
    return measured(_trainings())


def measured(trainings: Iterable[Training]) -> list[Row]:
    """Rows for each training: the ratio of the times of exact and float32 steps on one thread, and the
    seconds of capture.
    """
    with one_thread():
        return [row for training in trainings for row in _measured(training)]


def _trainings() -> Iterator[Training]:
    torch.manual_seed(0)
    tokens = torch.randint(WORDS, (200, CONTEXT + 1))
    yield Training(
        f"word model, 2 LSTMs of {WIDTH}, {CONTEXT} steps", Words(), {"tokens": tokens}, 20, "1.5x"
    )
    data = {"pixels": torch.rand(100, PIXELS, 1), "labels": torch.randint(10, (100,))}
    yield Training(f"pixel by pixel, LSTM of 128, {PIXELS} steps", Pixels(), data, 32, "")


def _measured(training: Training) -> Iterator[Row]:
    began = time.process_time()
    captured = training.capture()
    took = time.process_time() - began
    state: State = captured.initial_state(seed=1)
    optimizer = torch.optim.SGD(training.model.parameters(), lr=0.1)

    def exact() -> None:
        nonlocal state
        state = captured.step(state)

    def plain() -> None:
        chosen = torch.randint(len(next(iter(training.data.values()))), (training.batch,))
        optimizer.zero_grad()
        training.model({name: t[chosen] for name, t in training.data.items()}).backward()
        optimizer.step()

    ratios = side_by_side(exact, {"": plain}, ROUNDS, time.process_time)[""]
    yield ratio_row(f"exact step / plain float32 step, {training.what}, 1 thread", ratios, training.goal)
    yield Row(f"capture with its preflight, {training.what}", f"{took:.1f} s", "10 s")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch and the compiled library on one thread, so that processor time includes no waiting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
