"""What is trained on CUDA: the examples' models on random data, so that nothing but torch is needed to capture them."""

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
    """A model, and the steps after which its bits are compared."""

    name: str
    build: Callable[[int], CapturedStep]
    """From the number of steps that its rates are for to the captured step."""
    steps: int = 8
    dry_steps: int = 3
    """Where there is no CUDA device. From the third step on a device's executor tries to record a graph."""


def images() -> dict[str, Tensor]:
    """Random pixels f32 [N, 64] from 0 to 1 and labels i64 [N], in the shape of the digits."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(17, (IMAGES, 64), generator=generator) / digits.PIXEL_MAXIMUM
    return {"pixels": pixels, "labels": torch.randint(LABELS, (IMAGES,), generator=generator)}


def _linear(steps: int) -> CapturedStep:
    """One layer: the least that can be trained."""
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
"""The last is for `bits` alone: a step of it takes a second on a CPU without the compiled kernels."""
