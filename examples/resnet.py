"""The ResNet task: a small residual network with batch norm on scikit-learn's 8 x 8 digits, in plain torch.

Everything here runs on the submitter's machine only, once, to be captured. Solvers and verifiers get a program, tensors
and terms; none of them imports this file.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples import digits
from protocol.program.capture import CapturedStep, capture

WIDTHS = (8, 16, 32)
"""Channels of the stages; each after the first halves the image."""
BATCH = 32
PEAK_RATE = 0.05
WEIGHT_DECAY = 5e-4

warm_up_and_cosine = digits.warm_up_and_cosine


class Block(nn.Module):
    """Two convolutions with batch norm, added to what came in."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.first_norm, self.second_norm = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, C, H, W] to [B, width, H / stride, W / stride]."""
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A first convolution, one block a stage, the mean over the image, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(1, WIDTHS[0], 3, padding=1, bias=False), nn.BatchNorm2d(WIDTHS[0]), nn.ReLU()
        )
        pairs = zip((WIDTHS[0], *WIDTHS), WIDTHS, strict=False)
        self.blocks = nn.Sequential(
            *(Block(before, width, 1 + (k > 0)) for k, (before, width) in enumerate(pairs))
        )
        self.last = nn.Linear(WIDTHS[-1], 10)

    def forward(self, images: Tensor) -> Tensor:
        """f32 [B, 1, 8, 8] to logits [B, 10]."""
        x = self.blocks(self.first(images))
        logits: Tensor = self.last(F.adaptive_avg_pool2d(x, 1).flatten(1))
        return logits


def build(steps: int) -> CapturedStep:
    """The captured training step, with learning rates for `steps` steps."""
    training, _ = split()
    model = make_model()
    optimizer = make_optimizer(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_and_cosine(step, steps))
    return capture(model, objective, optimizer, training, batch_size=BATCH, steps=steps, scheduler=scheduler)


def make_model(seed: int = 0) -> ResNet:
    """The same initial weights every time for a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ResNet()


def make_optimizer(model: nn.Module) -> torch.optim.SGD:
    """SGD with momentum and weight decay."""
    return torch.optim.SGD(model.parameters(), lr=PEAK_RATE, momentum=0.9, weight_decay=WEIGHT_DECAY)


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Cross-entropy, and the accuracy on the batch."""
    logits = model(batch["pixels"].reshape(-1, 1, 8, 8))
    labels = batch["labels"]
    return F.cross_entropy(logits, labels), {"accuracy": (logits.argmax(1) == labels).float().mean()}


split = digits.split
