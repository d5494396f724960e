"""Compares a GPT's exact training step with its step in float32 torch. Model, optimiser and threads are the same."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.measure import Row, ratio_row, side_by_side
from examples import gpt
from protocol.capture import CapturedStep, capture
from protocol.program.step import State

TOKENS = 2048
SHAPES = {
    "1M": gpt.Shape(4, 4, 128, 256, dropout=0.0),
    "11M": gpt.Shape(6, 6, 384, 256, dropout=0.0),
    "50M": gpt.Shape(16, 8, 512, 256, dropout=0.0),
    "11M-long": gpt.Shape(6, 6, 384, 2048, dropout=0.0),
}
GOALS = {"11M": "1.3x", "50M": "1.1x"}
"""Highest accepted ratio of an exact step to a plain float32 step."""
ROUNDS = {"1M": 31, "50M": 9}


def rows() -> list[Row]:
    """Rows with the ratios of an exact step to plain eager and compiled steps, for all sizes."""
    return [row for name in SHAPES for row in _rows(name)]


def _rows(name: str) -> list[Row]:
    step = captured(name)
    plain = {"eager": plain_step(name), "compiled": plain_step(name, compiled=True)}
    state: State = step.initial_state(seed=1)

    def exact() -> None:
        nonlocal state
        state = step.step(state)

    found = side_by_side(exact, plain, ROUNDS.get(name, 15))
    shape = SHAPES[name]
    parameters = sum(p.numel() for p in gpt.make_model(shape).parameters()) / 1e6
    where = f"{TOKENS // shape.context} x {shape.context} tokens, {torch.get_num_threads()} threads"
    return [
        ratio_row(
            f"exact step / plain {kind} float32 step, GPT of {parameters:.1f}M, {where}",
            ratios,
            GOALS.get(name, "") if kind == "eager" else "",
        )
        for kind, ratios in found.items()
    ]


def captured(name: str) -> CapturedStep:
    """The captured step of a size."""
    return captured_of(SHAPES[name])


def captured_of(shape: gpt.Shape) -> CapturedStep:
    """The captured step of a GPT with `TOKENS` tokens per batch."""
    model, optimizer = _model(shape)
    batch = TOKENS // shape.context
    return capture(
        model, gpt.objective, optimizer, gpt.corpus(shape.context), batch_size=batch, steps=1_000_000
    )


def plain_step(name: str, *, compiled: bool = False) -> Callable[[], None]:
    """The training step of a size in plain float32 torch. It runs eagerly, or with `torch.compile`, which
    needs a C++ compiler.
    """
    shape = SHAPES[name]
    data, batch = gpt.corpus(shape.context), TOKENS // shape.context
    model, optimizer = _model(shape)
    generator = torch.Generator().manual_seed(1)
    objective = torch.compile(gpt.objective) if compiled else gpt.objective

    def plain() -> None:
        chosen = torch.randint(len(data["bytes"]), (batch,), generator=generator)
        loss = objective(model, {"bytes": data["bytes"][chosen]})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return plain


def _model(shape: gpt.Shape) -> tuple[gpt.Gpt, torch.optim.Optimizer]:
    model = gpt.make_model(shape)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
