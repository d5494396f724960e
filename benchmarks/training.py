"""Compares an exact step of the digits MLP with the same step in float32 torch, on the same threads."""

from __future__ import annotations

import torch

from benchmarks.measure import Row, interleaved, ratio_row
from examples import digits
from protocol.program.step import State

STEPS = 20
"""Steps per timed call."""


def rows() -> list[Row]:
    """A row with the ratio of an exact step to a plain eager step."""
    captured = digits.build(steps=1_000_000)
    state: State = captured.initial_state(seed=1)
    model = digits.make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=digits.PEAK_RATE, momentum=0.9)
    data, _ = digits.split()
    generator = torch.Generator().manual_seed(1)

    def exact() -> None:
        nonlocal state
        for _ in range(STEPS):
            state = captured.step(state)

    def plain() -> None:
        for _ in range(STEPS):
            rows = torch.randint(len(data["labels"]), (digits.BATCH,), generator=generator)
            loss, _ = digits.objective(model, {name: t[rows] for name, t in data.items()})
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    ratios = interleaved(exact, plain, rounds=15)
    what = f"exact step / plain float32 step, digits MLP, {torch.get_num_threads()} threads"
    return [ratio_row(what, ratios)]
