"""The models trained on CUDA: a model of one layer, and the models of the examples. The image models train on
random images, so that capture needs only torch. The GPTs train on the standard library's source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from examples import digits, gpt, resnet
from protocol.capture import CapturedStep, capture

SEED = 20261120
IMAGES, LABELS = 512, 10


@dataclass(frozen=True)
class Model:
    """A model, and the number of steps for which its bits are compared."""

    name: str
    build: Callable[[int], CapturedStep]
    """Makes the captured step. The argument is the number of steps in the schedule of the learning rate."""
    steps: int = 8
    dry_steps: int = 3
    """Steps in a dry run. From the third step on, a device executor tries to record a graph."""


def images() -> dict[str, Tensor]:
    """Random data in the shape of the digits: pixels from 0 to 1 (f32 [N, 64]) and labels (i64 [N])."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(17, (IMAGES, 64), generator=generator) / digits.PIXEL_MAXIMUM
    return {"pixels": pixels, "labels": torch.randint(LABELS, (IMAGES,), generator=generator)}


def _linear(steps: int) -> CapturedStep:
    """The captured step of a model of one layer, the smallest of `MODELS`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Linear(64, LABELS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return capture(model, digits.objective, optimizer, images(), batch_size=8, steps=steps)


def _gpt(shape: gpt.Shape, batch: int) -> Callable[[int], CapturedStep]:
    return lambda steps: gpt.build_of(gpt.make_model(shape), gpt.corpus(shape.context), batch, steps)


MODELS = (
    Model("linear", _linear),
    Model("mlp", lambda steps: digits.build(steps, images())),
    Model("gpt", gpt.build),
    Model("resnet", lambda steps: resnet.build(steps, images())),
    Model("gpt-0.9M", _gpt(gpt.Shape(4, 4, 128, 256), 8), dry_steps=1),
    Model("gpt-11M", _gpt(gpt.Shape(6, 6, 384, 256), 8), 5, dry_steps=1),
)
"""The models, the smallest first. Only `bits` uses the last one, whose step takes a second on a CPU without
the compiled kernels.
"""
