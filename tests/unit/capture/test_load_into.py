"""`load_into` writes a trained state into the captured model, which may be tied, partly frozen or wrapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import LoadError, load_into
from tests.unit.capture.steps import captured


class Tied(nn.Module):
    """A model with two hidden layers, a batch norm and an output layer. The hidden layers share one weight,
    and the bias of the output layer is frozen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 8, bias=False)
        self.again = nn.Linear(8, 8, bias=False)
        self.again.weight = self.hidden.weight
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(8, 3)
        self.out.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.norm(self.again(torch.tanh(self.hidden(x)))))
        return y


def _compiled_for_several_devices(model: nn.Module) -> nn.Module:
    compiled: Any = torch.compile(model)
    return nn.DataParallel(compiled)


def trained() -> dict[str, Tensor]:
    torch.manual_seed(3)
    step = captured(Tied())
    return step.step(step.initial_state(1))


@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")  # from torch.compile's imports
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda m: m,
        torch.compile,
        nn.DataParallel,
        _compiled_for_several_devices,
        lambda m: torch.compile(nn.DataParallel(m)),
    ],
    ids=["plain", "compiled", "for several devices", "both", "the other way round"],
)
def test_every_tensor_comes_back(wrapped: Callable[[nn.Module], nn.Module]) -> None:
    state, model = trained(), Tied()
    bias = model.out.bias.clone()
    assert [name.split(".", name.count(".") - 1)[-1] for name in load_into(wrapped(model), state)] == [
        "out.bias"
    ]
    assert torch.equal(model.hidden.weight, state["hidden.weight"])
    assert model.again.weight is model.hidden.weight
    assert torch.equal(model.norm.running_mean, state["norm.running_mean"])  # type: ignore[arg-type]
    assert model.norm.num_batches_tracked == 1
    assert torch.equal(model.out.bias, bias)


def test_a_captured_wrapper_loads_into_the_plain_model() -> None:
    step = captured(nn.Sequential(nn.Linear(8, 3)))
    state = {f"_orig_mod.{name}": t for name, t in step.step(step.initial_state(1)).items()}
    model = nn.Sequential(nn.Linear(8, 3))
    assert load_into(model, state) == ()
    assert torch.equal(model.get_parameter("0.weight"), state["_orig_mod.0.weight"])


class Named(nn.Module):
    """A model with a submodule named `module`, as wrappers have."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
        self.module = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.module(x * self.weight)
        return y


def test_a_module_called_module_is_no_wrapper() -> None:
    step = captured(Named())
    state, model = step.step(step.initial_state(1)), Named()
    assert load_into(model, state) == ()
    assert torch.equal(model.weight, state["weight"])
    assert torch.equal(model.module.weight, state["module.weight"])


def test_another_model_is_refused_and_left_as_it_was() -> None:
    state = trained()
    with pytest.raises(LoadError, match="parameters such as weight, bias"):
        load_into(nn.Linear(8, 3), state)
    model = Tied()
    model.out = nn.Linear(8, 4)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    with pytest.raises(LoadError, match=r"out\.weight.*shape \(4, 8\)"):
        load_into(model, state)
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
