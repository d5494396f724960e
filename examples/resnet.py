"""The ResNet task: a small residual network with batch norm on scikit-learn's 8 x 8 digits, in plain torch.

This code runs only once, on the submitter's machine, when it is captured. Solvers and verifiers get a
program, tensors and terms; they never import this file.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples import digits
from protocol.capture import CapturedStep, capture

BATCH = 32
PEAK_RATE = 0.05
WEIGHT_DECAY = 5e-4

warm_up_and_cosine = digits.warm_up_and_cosine


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with batch norm, and a shortcut, which is a 1 x 1 convolution if the shapes differ."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] to [N, outputs, H / stride, W / stride]."""
        h = F.relu(self.norm(self.first(x)), inplace=True)
        h = self.second_norm(self.second(h))
        h += self.shortcut(x)
        return F.relu(h, inplace=True)


class ResNet(nn.Module):
    """A stem with pooling, three stages of `depth` blocks, and a linear head.

    The second and third stages halve the image size and double the width.
    """

    def __init__(self, channels: int = 1, width: int = 8, depth: int = 1, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 1, 1),
        )
        widths = [width, width, 2 * width, 4 * width]
        self.stages = nn.Sequential(
            *(
                BasicBlock(
                    widths[k] if block == 0 else widths[k + 1], widths[k + 1], 2 if k and not block else 1
                )
                for k in range(3)
                for block in range(depth)
            )
        )
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        """Images [N, channels, H, W] to logits [N, classes]."""
        h = F.adaptive_avg_pool2d(self.stages(self.stem(x)), 1)
        logits: Tensor = self.head(torch.flatten(h, 1))
        return logits


def build(steps: int, training: Mapping[str, Tensor] | None = None) -> CapturedStep:
    """The captured step on the data `training`, with learning rates for `steps` steps. By default, `training`
    is the training set that `split` returns.
    """
    training = split()[0] if training is None else training
    model = make_model()
    optimizer = make_optimizer(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_and_cosine(step, steps))
    return capture(model, objective, optimizer, training, batch_size=BATCH, steps=steps, scheduler=scheduler)


def make_model(seed: int = 0) -> ResNet:
    """A model with the initial weights of a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ResNet()


def make_optimizer(model: nn.Module) -> torch.optim.SGD:
    """SGD with momentum and weight decay."""
    return torch.optim.SGD(model.parameters(), lr=PEAK_RATE, momentum=0.9, weight_decay=WEIGHT_DECAY)


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """The cross-entropy and the accuracy on the batch."""
    logits = model(batch["pixels"].reshape(-1, 1, 8, 8))
    labels = batch["labels"]
    return F.cross_entropy(logits, labels), {"accuracy": (logits.argmax(1) == labels).float().mean()}


split = digits.split
