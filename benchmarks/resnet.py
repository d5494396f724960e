"""Compares a ResNet-18's exact training step on 32 x 32 images with the step of float32 torch: time and peak
memory.

The network is the variant for such images: a 3 x 3 stem without pooling, and four stages of two blocks with
64 to 512 channels. Pixels and labels are random, because the results do not depend on them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import memory
from benchmarks.measure import Row, ratio_row, side_by_side
from examples.resnet import BasicBlock
from protocol.capture import CapturedStep, capture
from protocol.program.step import State

BATCH = 32
IMAGES = 256
CLASSES = 10
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""The channels of each stage, and the stride of its first block."""


class ResNet18(nn.Module):
    """A ResNet-18 with 11.2M parameters."""

    def __init__(self) -> None:
        super().__init__()
        blocks, inputs = [], STAGES[0][0]
        for outputs, stride in STAGES:
            blocks += [BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1)]
            inputs = outputs
        stem = nn.Conv2d(3, STAGES[0][0], 3, padding=1, bias=False)
        self.body = nn.Sequential(stem, nn.BatchNorm2d(STAGES[0][0]), nn.ReLU(inplace=True), *blocks)
        self.head = nn.Linear(inputs, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Images [N, 3, 32, 32] to logits [N, CLASSES]."""
        logits: Tensor = self.head(F.adaptive_avg_pool2d(self.body(x), 1).flatten(1))
        return logits


def rows() -> list[Row]:
    """Three rows, each with a ratio. The first two divide the time of an exact step by the time of an eager
    step and by that of a compiled step. The third divides the peak memory of an exact step by that of an
    eager step.
    """
    step = captured()
    plain = {"eager": plain_step(), "compiled": plain_step(compiled=True)}
    state: State = step.initial_state(seed=1)

    def exact() -> None:
        nonlocal state
        state = step.step(state)

    found = side_by_side(exact, plain, rounds=9)
    where = f"ResNet-18, {BATCH} images of 32 x 32"
    threads = f"{where}, {torch.get_num_threads()} threads"
    steps = [ratio_row(f"exact step / plain {kind} float32 step, {threads}", r) for kind, r in found.items()]
    return [*steps, _memory(where)]


def _memory(where: str) -> Row:
    from protocol.tasks.bundles import Bundle, write_bundle

    with tempfile.TemporaryDirectory() as folder:
        step = captured()
        write_bundle(Bundle.of("resnet18", step, step.initial_state(seed=1)), Path(folder))
        ours, plain = (memory.in_a_process(__name__, side, folder) for side in ("exact", "plain"))
    sizes = f"{ours / memory.MEBIBYTE:,.0f} / {plain / memory.MEBIBYTE:,.0f} MiB"
    return Row(f"peak memory of a step, exact / plain, {where} ({sizes})", f"{ours / plain:.2f}x", "1.3x")


def captured(bits: Mapping[str, tuple[int, int]] | None = None) -> CapturedStep:
    """The captured step."""
    model, optimizer = _model()
    return capture(model, objective, optimizer, _images(), batch_size=BATCH, steps=1_000_000, bits=bits)


def plain_step(*, compiled: bool = False) -> Callable[[], None]:
    """The training step of the same network in plain float32 torch. It runs eagerly, or with `torch.compile`,
    which needs a C++ compiler.
    """
    model, optimizer = _model()
    data = _images()
    generator = torch.Generator().manual_seed(1)
    loss_of = torch.compile(objective) if compiled else objective

    def plain() -> None:
        chosen = torch.randint(IMAGES, (BATCH,), generator=generator)
        loss = loss_of(model, {name: t[chosen] for name, t in data.items()})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return plain


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The cross-entropy of a batch."""
    return F.cross_entropy(model(batch["pixels"]), batch["labels"])


def _model() -> tuple[nn.Module, torch.optim.Optimizer]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ResNet18()
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


def _images() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randn(IMAGES, 3, 32, 32, generator=generator)
    return {"pixels": pixels, "labels": torch.randint(CLASSES, (IMAGES,), generator=generator)}


if __name__ == "__main__":
    grown = memory.exact(sys.argv[2]) if sys.argv[1] == "exact" else memory.growth(plain_step)
    print(json.dumps(grown))
