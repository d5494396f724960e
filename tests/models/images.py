"""Shared by the vision families: training of a classifier on small images."""

from __future__ import annotations

from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import nn

from tests.models.entry import ROWS, Training, integers, normal

CLASSES: Final = 5


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    """The usual optimiser for convolutional networks with batch norm."""
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


def classifier(model: nn.Module, size: int = 32, **options: Any) -> Training:
    """The training of an image classifier, with cross-entropy as its loss. The images are square, with sides
    of `size` pixels.
    """
    data = {"x": normal(ROWS, 3, size, size), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data, **options)


def convolutional(model: nn.Module, size: int = 64, **options: Any) -> Training:
    """`classifier` with `sgd`. The default size is 64 because five halvings of 64 pixels still leave 2 x 2
    positions for batch norm.
    """
    return classifier(model, size, optimiser=sgd, **options)
