"""The digits task: an MLP on scikit-learn's 8 x 8 handwritten digits, in plain torch.

This code runs only once, on the submitter's machine, when it is captured. Solvers and verifiers get a
program, tensors and terms; they never import this file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture

TRAINING_ROWS = 1_500
"""Number of training images, of 1,797 in total. The others are held out."""
HIDDEN = 512
BATCH = 64
PEAK_RATE = 0.2
WARM_UP = 20
"""Number of steps during which the learning rate rises. It then falls as a half cosine."""
PIXEL_MAXIMUM = 16.0
"""Pixels are integers from 0 to 16, so the division by 16 is exact."""


def build(steps: int, training: Mapping[str, Tensor] | None = None) -> CapturedStep:
    """The captured step on the data `training`, with learning rates for `steps` steps. By default, `training`
    is the training set that `split` returns.
    """
    training = split()[0] if training is None else training
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=PEAK_RATE, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_and_cosine(step, steps))
    return capture(model, objective, optimizer, training, batch_size=BATCH, steps=steps, scheduler=scheduler)


def make_model() -> nn.Module:
    """A model with 64 inputs, one hidden layer and 10 outputs. Its initial weights are always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """The cross-entropy and the accuracy on the batch."""
    logits = model(batch["pixels"])
    labels = batch["labels"]
    return F.cross_entropy(logits, labels), {"accuracy": (logits.argmax(1) == labels).float().mean()}


def warm_up_and_cosine(step: int, steps: int) -> float:
    """The number by which the peak learning rate is multiplied at a step; steps count from 0."""
    return min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / steps))


def split() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Training and held-out images: pixels f32 [N, 64] from 0 to 1, labels int64 [N]."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32) / PIXEL_MAXIMUM
    labels = torch.tensor(digits.target, dtype=torch.int64)
    # Neighbours in the file are by the same writers, so a fixed permutation mixes them.
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    training, held_out = order[:TRAINING_ROWS], order[TRAINING_ROWS:]
    return (
        {"pixels": pixels[training], "labels": labels[training]},
        {"pixels": pixels[held_out], "labels": labels[held_out]},
    )


def held_out_accuracy(state: Mapping[str, Tensor]) -> float:
    """Accuracy of a trained state on the held-out images."""
    model = make_model()
    model.load_state_dict({name: state[name] for name in model.state_dict()})
    _, held_out = split()
    with torch.no_grad():
        _, metrics = objective(model, held_out)
    return float(metrics["accuracy"])
