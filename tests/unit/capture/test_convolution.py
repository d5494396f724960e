"""Captured convolutions of any shape match torch; their bits are those of arithmetic.md section 4."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from protocol.program.library import CATALOGUE
from tests.unit.capture.steps import captured, follow

IMAGES = {
    "x": torch.randn(30, 4, 8, 7, generator=torch.Generator().manual_seed(1)),
    "y": torch.randint(0, 3, (30,), generator=torch.Generator().manual_seed(2)),
}
LINES = IMAGES | {"x": IMAGES["x"].flatten(2)}
WINDOWS = {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1}


class Between(nn.Module):
    """A 1 x 1 convolution, then the layer under test, then the mean over positions, then a head."""

    def __init__(self, layer: nn.Module, outputs: int) -> None:
        super().__init__()
        flat = isinstance(layer, nn.Conv1d | nn.ConvTranspose1d)
        plain = nn.Conv1d if flat else nn.Conv2d
        self.body = nn.Sequential(plain(4, 4, 1), nn.ReLU(), layer, nn.ReLU())
        self.head = nn.Linear(outputs, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x).flatten(2).mean(2))
        return logits


LAYERS: dict[str, Any] = {
    "3x3": lambda: nn.Conv2d(4, 6, 3, padding=1),
    "stride": lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False),
    "stride that leaves a rest": lambda: nn.Conv2d(4, 6, (3, 2), stride=(3, 2)),
    "more padding than kernel": lambda: nn.Conv2d(4, 6, 2, padding=3),
    "dilation": lambda: nn.Conv2d(4, 6, 3, dilation=(2, 1), padding=2),
    "groups": lambda: nn.Conv2d(4, 6, 3, groups=2),
    "depthwise": lambda: nn.Conv2d(4, 8, 3, groups=4, padding=1),
    "transposed": lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
    "transposed groups": lambda: nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2, bias=False),
    "transposed, output padding above the stride": lambda: nn.ConvTranspose2d(
        4, 6, 2, stride=2, padding=2, output_padding=3, dilation=4
    ),
    "one axis": lambda: nn.Conv1d(4, 6, 5, stride=2, padding=2),
    "one axis transposed": lambda: nn.ConvTranspose1d(4, 6, 3, stride=2),
    "one axis transposed, output padding of the stride": lambda: nn.ConvTranspose1d(
        4, 6, 2, stride=1, padding=1, output_padding=1, dilation=2
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_convolution_follows_torch(name: str) -> None:
    torch.manual_seed(3)
    layer = LAYERS[name]()
    dataset = LINES if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d) else IMAGES
    follow(Between(layer, layer.out_channels), dataset)


def test_each_gradient_has_its_own_function() -> None:
    step = captured(Between(nn.Conv2d(4, 6, 3), 6), dataset=IMAGES)
    covered: Counter[str] = Counter()
    for entry in step.coverage():
        covered[entry.became] += entry.count
    # The first layer's input is data, so its gradient is not computed.
    assert covered["conv"] == 2
    assert covered["conv_grad_input, conv_grad_weight, sum_rows"] == 1
    assert covered["conv_grad_weight, sum_rows"] == 1


def run(name: str, *operands: Tensor, **attributes: int) -> Tensor:
    windows = {f"{key}_{axis}": value for key, value in WINDOWS.items() for axis in "yx"}
    (result,) = CATALOGUE[name].kernel(windows | attributes)(operands)
    return result


def test_weight_gradient_keeps_small_gradients_beside_large_ones() -> None:
    """At 13 bits, gradients below 2^-14 of the channel's largest would round to zero and bias the sum."""
    g = torch.full((1, 1, 5, 13), 2.0**-15)
    g[0, 0, 0, 0] = 1.0
    x = torch.ones(1, 1, 5, 13)
    assert run("conv_grad_weight", g, x, groups=1, gradient_in_windows=0).item() == 1.0 + 64 * 2.0**-15
    assert run("conv_grad_weight", x, g, groups=1, gradient_in_windows=1).item() == 1.0 + 64 * 2.0**-15
    assert run("conv_grad_weight", x, g, groups=1, gradient_in_windows=0).item() == 1.0


def test_one_sample_does_not_spoil_another() -> None:
    x, w = torch.randn(2, 1, 4, 4), torch.randn(3, 1, 1, 1)
    x[0, 0, 2, 2] = torch.nan
    y = run("conv", x, w, groups=1)
    assert bool(y[0].isnan().all())
    assert not bool(y[1].isnan().any())
    x[0] *= 2.0**40
    x[0, 0, 2, 2] = 0.0
    assert torch.equal(run("conv", x, w, groups=1)[1], y[1])
