"""Captured pooling and resizing match torch, ties included."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.numerics.types import DType
from protocol.program.library import CATALOGUE
from protocol.program.trace import trace
from protocol.program.types import TensorType
from tests.unit.capture.steps import follow

IMAGES = {
    "x": torch.randn(30, 4, 8, 6, generator=torch.Generator().manual_seed(1)),
    "y": torch.randint(0, 3, (30,), generator=torch.Generator().manual_seed(2)),
}


class Pooled(nn.Module):
    """A convolution with ReLU, the layer under test, and a head. ReLU makes many of the layer's inputs equal."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 5, 1)
        self.layer = layer
        size = layer(torch.zeros(1, 5, 8, 6))[0].numel()
        self.head = nn.Linear(size, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(F.relu(self.first(x))).flatten(1))
        return logits


LAYERS: dict[str, Any] = {
    "max": nn.MaxPool2d(2),
    "max overlapping": nn.MaxPool2d(3, 2, 1),
    "max ceil": nn.MaxPool2d((3, 4), (2, 3), ceil_mode=True),
    "max dilation": nn.MaxPool2d(2, 1, dilation=2),
    "mean": nn.AvgPool2d(2),
    "mean overlapping": nn.AvgPool2d(3, 2, 1),
    "mean without padding": nn.AvgPool2d(3, 1, 1, count_include_pad=False),
    "mean divisor": nn.AvgPool2d(2, divisor_override=3),
    "mean ceil that fits": nn.AvgPool2d(2, ceil_mode=True),
    "adaptive": nn.AdaptiveAvgPool2d((4, 3)),
    "adaptive one": nn.AdaptiveAvgPool2d(1),
    "larger": nn.Upsample(scale_factor=2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_pooling_follows_torch(name: str) -> None:
    torch.manual_seed(3)
    follow(Pooled(LAYERS[name]), IMAGES)


@pytest.mark.parametrize("axis", ["max", "mean"])
def test_one_axis_is_two(axis: str) -> None:
    torch.manual_seed(3)
    layer = nn.MaxPool1d(2) if axis == "max" else nn.AvgPool1d(3, 2)
    size = layer(torch.zeros(1, 4, 48))[0].numel()
    model = nn.Sequential(nn.Conv1d(4, 4, 1), layer, nn.Flatten(), nn.Linear(size, 3))
    follow(model, IMAGES | {"x": IMAGES["x"].flatten(2)})


@pytest.mark.parametrize(
    "layer",
    [nn.AdaptiveAvgPool2d((3, 3)), nn.Upsample((12, 6)), nn.AvgPool2d(3, ceil_mode=True)],
    ids=["adaptive", "larger", "ceil"],
)
def test_uneven_blocks_follow_torch(layer: nn.Module) -> None:
    follow(Pooled(layer), IMAGES)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 0, 1), (3, 1, 1, 2), (2, 2, 1, 3), (5, 1, 2, 1), (3, 2, 1, 3)],
)
def test_positions_and_ties_are_torchs(kernel: int, stride: int, padding: int, dilation: int) -> None:
    x = torch.randint(0, 3, (2, 3, 7, 8), generator=torch.Generator().manual_seed(5)).float()
    x[0, 0] = -torch.inf
    values, index = F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    sizes = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    windows = {f"{name}_{axis}": size for name, size in sizes.items() for axis in "yx"}
    rows, columns = values.shape[2:]
    function, attributes = CATALOGUE["max_pool"], windows | {"rows": rows, "columns": columns}
    body = function.program([TensorType(DType.F32, tuple(x.shape))], attributes)
    for ours, at in (function.kernel(attributes)([x]), trace(body, [x]).outputs):
        assert torch.equal(ours, values)
        assert torch.equal(at.long(), index)
