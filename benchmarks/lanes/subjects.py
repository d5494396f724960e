"""The models of the study: GPTs of three sizes on the standard library's source, and a ResNet on digits."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.lanes.plan import DIGITS, SHAPES
from benchmarks.quality.subjects import resnet_subject
from benchmarks.quality.training import Subject
from examples import gpt


def subject(size: str) -> Subject:
    """The model of a size, with its data and evaluation."""
    return resnet_subject() if size == DIGITS else _gpt(size)


def _gpt(size: str) -> Subject:
    shape = SHAPES[size]
    windows, held_out = gpt.split(shape.context)

    def evaluate(model: nn.Module) -> dict[str, float]:
        with torch.no_grad():
            return {"held-out loss": float(gpt.objective(model, held_out))}

    return Subject(
        f"GPT of {size}",
        lambda seed: gpt.make_model(shape, seed),
        gpt.make_optimizer,
        gpt.warm_up_and_cosine,
        gpt.objective,
        windows,
        gpt.BATCH,
        evaluate,
        gpt.CLIP_NORM,
    )
