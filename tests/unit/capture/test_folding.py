"""Tables computed in float64 from constants alone become literals; any other float64 is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, CaptureError, Phase, capture, capture_phases
from protocol.program.execute import Interpreter

DATA = {"x": torch.randn(5, 6, 8, generator=torch.Generator().manual_seed(0))}


class Rotary(nn.Module):
    """Rotates pairs of features by angles that grow with the position, as in diffusers."""

    def __init__(self, places: Callable[[Rotary, Tensor], Tensor] | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(8, 8)
        self.register_buffer("position", torch.arange(6.0))
        self._places = places

    def forward(self, x: Tensor) -> Tensor:
        """The rotated features."""
        places = self._places(self, x) if self._places else self.get_buffer("position")
        speeds = 1.0 / 10_000 ** (torch.arange(0, 8, 2, dtype=torch.float64) / 8)
        angles = torch.outer(places.double(), speeds).repeat_interleave(2, -1)
        x = self.layer(x)
        turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * angles.cos().float() + turned * angles.sin().float()


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """A loss that depends on every angle."""
    turned: Tensor = model(batch["x"])
    return (turned * torch.arange(1.0, 1.0 + turned.shape[-1])).mean() + turned.square().mean()


def captured(model: nn.Module) -> CapturedStep:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return capture(model, objective, optimizer, DATA, batch_size=2, steps=3)


def test_a_table_is_what_torch_makes_in_float64() -> None:
    model = Rotary()
    step = captured(model)
    tables = [t for name, t in step.constants.items() if name.startswith("literal.") and t.shape == (6, 8)]
    speeds = 1.0 / 10_000 ** (torch.arange(0, 8, 2, dtype=torch.float64) / 8)
    angles = torch.outer(torch.arange(6.0).double(), speeds).repeat_interleave(2, -1)
    assert any(torch.equal(t, angles.cos().float()) for t in tables)
    assert any(torch.equal(t, angles.sin().float()) for t in tables)
    assert not [one for one in step.coverage() if "cos" in one.operation]
    state = slow = step.initial_state(0)
    for _ in range(2):
        state, slow = step.step(state), step.step_program.step(slow, step.fixed, Interpreter())
        assert all(torch.equal(slow[name], t) for name, t in state.items())
    assert step.preflight is not None
    assert step.preflight.gradient_error < 1e-3


def test_a_literal_in_float64_is_a_part_of_a_table() -> None:
    class Scaled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            scales = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64) * 3
            return super().forward(x) * scales.float()

    step = captured(Scaled(8, 3))
    expected = (torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64) * 3).float()
    assert any(t.shape == (3,) and torch.equal(t, expected) for t in step.constants.values())


DEEP = 1_200
"""More operations one behind the other than Python allows nested calls."""


def test_a_table_behind_many_operations_is_a_literal() -> None:
    def deep(model: Rotary, _x: Tensor) -> Tensor:
        places = model.get_buffer("position").double()
        for _ in range(DEEP):
            places = places + 1
        return places

    step = captured(Rotary(deep))
    assert [name for name in step.constants if name.startswith("literal.")]


def test_float64_behind_many_operations_is_refused() -> None:
    def deep(_model: Rotary, x: Tensor) -> Tensor:
        x = x[0, :, 0]
        for _ in range(DEEP):
            x = x * 1.001
        return x

    with pytest.raises(CaptureError, match="float64"):
        captured(Rotary(deep))


def written(model: Rotary, _: Tensor) -> Tensor:
    position = model.get_buffer("position")
    position += 1
    return position


@pytest.mark.parametrize(
    "places",
    [lambda _, x: x[0, :, 0], lambda m, _: m.layer.weight[:6, 0], lambda _m, _x: torch.rand(6), written],
    ids=["data", "a parameter", "random", "a written buffer"],
)
def test_what_depends_on_more_than_constants_is_refused(places: Callable[[Rotary, Tensor], Tensor]) -> None:
    with pytest.raises(CaptureError, match="float64"):
        captured(Rotary(places))


def test_what_another_phase_trains_is_no_constant() -> None:
    model = Rotary(lambda m, _: m.layer.bias[:6])
    trained: dict[str, list[Tensor]] = {"weight": [model.layer.weight], "bias": [model.layer.bias]}
    phases = [Phase(name, objective, torch.optim.SGD(group, lr=0.1)) for name, group in trained.items()]
    with pytest.raises(CaptureError, match="float64"):
        capture_phases(model, phases, DATA, batch_size=2, steps=3)
    model.layer.bias.requires_grad_(False)
    step = capture_phases(model, phases[:1], DATA, batch_size=2, steps=3)
    assert [name for name in step.constants if name.startswith("literal.")]
