"""The models for docs/numerics.md: a small GPT on the standard library's source, and a small ResNet on digits."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.quality.training import Subject
from examples import gpt, resnet

GPT_SHAPE = gpt.Shape(layers=2, heads=2, width=64, context=64, dropout=0.0)
"""The shape of the GPT. It has no dropout, because dropout's random bits would differ between the arithmetics
and add unrelated noise.
"""


def gpt_subject() -> Subject:
    """A GPT with 120,576 parameters, trained on 1,024 tokens per step."""
    training, held_out = gpt.split(GPT_SHAPE.context)

    def evaluate(model: nn.Module) -> dict[str, float]:
        with torch.no_grad():
            return {"held-out loss": float(gpt.objective(model, held_out))}

    return Subject(
        "GPT",
        lambda seed: gpt.make_model(GPT_SHAPE, seed),
        gpt.make_optimizer,
        gpt.warm_up_and_cosine,
        gpt.objective,
        training,
        16,
        evaluate,
        gpt.CLIP_NORM,
    )


def resnet_subject() -> Subject:
    """A ResNet with batch norm on 8 x 8 digits."""
    training, held_out = resnet.split()

    def evaluate(model: nn.Module) -> dict[str, float]:
        with torch.no_grad():
            loss, metrics = resnet.objective(model, held_out)
            return {"held-out loss": float(loss), "held-out accuracy": float(metrics["accuracy"])}

    return Subject(
        "ResNet",
        resnet.make_model,
        resnet.make_optimizer,
        resnet.warm_up_and_cosine,
        resnet.objective,
        training,
        resnet.BATCH,
        evaluate,
    )
