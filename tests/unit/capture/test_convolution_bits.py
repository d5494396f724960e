"""`capture(bits=...)` for convolutions: other bits give another program, and more bits give a smaller error."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture
from protocol.capture.analysis.roles import BITS, Bits, Role
from protocol.program.execute import Interpreter
from protocol.program.library import CATALOGUE

CONVOLUTIONS = (Role.CONVOLUTION, Role.CONVOLUTION_INPUT_GRADIENT, Role.CONVOLUTION_WEIGHT_GRADIENT)
MOST: Mapping[str, Bits] = dict.fromkeys((*CONVOLUTIONS, Role.PRODUCT, Role.WEIGHT_GRADIENT), (20, 20))
VERSION_1 = "c33581b0623a0c37480adfa6fd2d3f988e2442a35c0c4e46f1c423d929cb3563"
"""Root of `Network`'s program under the first table of bits, which gave forward convolutions 13 x 13 bits."""
BATCH, ROWS = 8, 24


class Network(nn.Module):
    """Plain, grouped and transposed 2-D convolutions and a 1-D one, with smooth activations only."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 8, 3, padding=1)
        self.grouped = nn.Conv2d(8, 8, 3, stride=2, groups=4, bias=False)
        self.turned = nn.ConvTranspose2d(8, 6, 3, stride=2)
        self.line = nn.Conv1d(6, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Maps images [N, 2, 9, 9] to outputs [N, 4]."""
        h = torch.tanh(self.turned(torch.tanh(self.grouped(torch.tanh(self.first(x))))))
        scores: Tensor = self.line(h.flatten(2)).mean(2)
        return scores


def images() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randn(ROWS, 2, 9, 9, generator=generator)
    return {"x": pixels, "y": torch.randint(4, (ROWS,), generator=generator)}


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch["x"]), batch["y"])


def network() -> Network:
    torch.manual_seed(0)
    return Network()


def captured(bits: Mapping[str, Bits]) -> CapturedStep:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    return capture(model, objective, optimizer, images(), batch_size=BATCH, steps=1, bits=bits)


def gradient_error(bits: Mapping[str, Bits]) -> float:
    """Relative error of all gradients against float64. The gradients are read from the momentum after one step."""
    step = captured(bits)
    state = step.initial_state(1)
    draw = CATALOGUE["draw_batch"].kernel({"batch": BATCH, "rows": ROWS, "stream": 0})
    (index,) = draw([state["key"], state["step"]])
    after, model, data = step.step(state), network().double(), images()
    objective(model, {"x": data["x"][index.long()].double(), "y": data["y"][index.long()]}).backward()
    difference = whole = 0.0
    for name, p in model.named_parameters():
        assert p.grad is not None
        difference += float((after[f"{name}.momentum"].double() - p.grad).square().sum())
        whole += float(p.grad.square().sum())
    return math.sqrt(difference / whole)


@pytest.mark.parametrize("role", CONVOLUTIONS)
def test_other_bits_are_another_program_and_fewer_of_them_a_larger_error(role: Role) -> None:
    fewer = {**MOST, role: (13, 13)}
    assert captured(fewer).root != captured(MOST).root
    assert captured({role: BITS[role]}).root == captured({}).root
    assert gradient_error(fewer) > 10 * gradient_error(MOST)


@pytest.mark.parametrize("role", CONVOLUTIONS)
def test_each_operand_has_bits_of_its_own(role: Role) -> None:
    roots = {captured({role: (p, q)}).root for p in (13, 20) for q in (13, 20)}
    assert len(roots) == 4


def test_the_first_versions_bits_give_the_first_versions_program() -> None:
    assert captured({"convolution": (13, 13)}).root.hex() == VERSION_1
    assert captured({}).root.hex() != VERSION_1


@pytest.mark.parametrize("bits", [{}, MOST], ids=["by default", "most"])
def test_kernels_have_the_bits_of_the_bodies(bits: Mapping[str, Bits]) -> None:
    step = captured(bits)
    state = step.initial_state(3)
    slow = step.step_program.step(state, step.fixed, Interpreter())
    assert step.step_program.state_root(step.step(state)) == step.step_program.state_root(slow)
