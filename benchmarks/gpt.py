"""A GPT's training step: exact beside plain eager float32 torch, the same model, optimiser and number of threads."""

from __future__ import annotations

import torch

from benchmarks.measure import Row, interleaved, middle
from examples import gpt
from protocol.program.capture import capture
from protocol.program.step import State

TOKENS = 2048
SIZES = (("1M", gpt.Shape(4, 4, 128, 256, dropout=0.0)), ("11M", gpt.Shape(6, 6, 384, 256, dropout=0.0)))
GOALS = {"1M": "", "11M": "2.2x"}


def rows() -> list[Row]:
    """Ratio of an exact step to a plain one for both sizes."""
    return [_row(name, shape) for name, shape in SIZES]


def _row(name: str, shape: gpt.Shape) -> Row:
    data, batch = gpt.corpus(shape.context), TOKENS // shape.context
    model, optimizer = _model(shape)
    captured = capture(model, gpt.objective, optimizer, data, batch_size=batch, steps=1_000_000)
    state: State = captured.initial_state(seed=1)
    model, optimizer = _model(shape)
    generator = torch.Generator().manual_seed(1)

    def exact() -> None:
        nonlocal state
        state = captured.step(state)

    def plain() -> None:
        chosen = torch.randint(len(data["bytes"]), (batch,), generator=generator)
        loss = gpt.objective(model, {"bytes": data["bytes"][chosen]})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    ratio, spread = middle(interleaved(exact, plain, rounds=15))
    parameters = sum(p.numel() for p in model.parameters()) / 1e6
    where = f"{TOKENS} tokens, {torch.get_num_threads()} threads"
    what = f"exact step / plain float32 step, GPT of {parameters:.1f}M, {where}"
    return Row(what, f"{ratio:.2f}x", GOALS[name], spread)


def _model(shape: gpt.Shape) -> tuple[gpt.Gpt, torch.optim.Optimizer]:
    model = gpt.make_model(shape)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
