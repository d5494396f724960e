"""Models whose next step would differ from the traced one are refused; shared modules are captured."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from protocol.capture import CaptureError
from protocol.program.execute import Interpreter
from tests.unit.capture.steps import BATCH, captured, cross_entropy, drawn, follow, torch_step


def linear() -> nn.Linear:
    """A classifier of `DATASET`."""
    return nn.Linear(8, 3)


def hooked() -> nn.Module:
    """A classifier with a hook that changes a parameter's gradient."""
    model = linear()
    model.weight.register_hook(lambda g: g * 0)
    return model


def hooked_after() -> nn.Module:
    """A classifier with a hook that runs after a parameter's gradient is accumulated."""
    model = linear()
    model.weight.register_post_accumulate_grad_hook(lambda _: None)
    return model


class Hooking(nn.Linear):
    """A classifier that puts a hook on its weight in every step. The hook is made by `register`."""

    def __init__(self, register: Callable[[Tensor], object]) -> None:
        super().__init__(8, 3)
        self.register = register

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.register(self.weight)
        return super().forward(x)


def halve(weight: Tensor) -> object:
    """Put a hook on a parameter that halves its gradient."""
    return weight.register_hook(lambda g: g * 0.5)


def halve_after(weight: Tensor) -> object:
    """Put a hook on a parameter that halves its gradient after the gradient is accumulated."""

    def hook(p: Tensor) -> None:
        assert p.grad is not None
        p.grad.mul_(0.5)

    return weight.register_post_accumulate_grad_hook(hook)


def aliased() -> nn.Module:
    """A classifier with a buffer that is a view of a parameter."""
    model = linear()
    model.register_buffer("old", model.weight.data[:2])
    return model


def twice_in_memory() -> nn.Module:
    """A model with two parameters in the same memory, which an update would change twice."""
    first, second = nn.Linear(8, 8), nn.Linear(8, 8)
    second.weight = nn.Parameter(first.weight.data)
    return nn.Sequential(first, second, linear())


class Counting(nn.Linear):
    """Counts its steps in Python."""

    def __init__(self) -> None:
        super().__init__(8, 3)
        self.steps = 0

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        return super().forward(x) * self.steps


class Noisy(nn.Linear):
    """Draws a random number in Python."""

    def __init__(self) -> None:
        super().__init__(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * random.random()


class Replacing(nn.Module):
    """A model whose two parts share a buffer. Each step replaces the buffer in only one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.left, self.right = linear(), nn.Module(), nn.Module()
        shared = torch.ones(3)
        self.left.register_buffer("scale", shared)
        self.right.register_buffer("scale", shared)

    def forward(self, x: Tensor) -> Tensor:
        self.right.scale = torch.add(self.right.get_buffer("scale"), 1)
        result: Tensor = self.out(x) * self.left.get_buffer("scale")
        return result


class Leaving(nn.Linear):
    """Converts its input to numpy and back."""

    def __init__(self) -> None:
        super().__init__(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(torch.from_numpy(x.numpy() * 2))


def empty() -> nn.Module:
    """A classifier with a buffer without elements."""
    model = linear()
    model.register_buffer("nothing", torch.zeros(0))
    return model


class Checkpointed(nn.Module):
    """Recomputes its layers in the backward pass."""

    def __init__(self, p: float = 0.0, reentrant: bool = False, same: bool = True) -> None:
        super().__init__()
        self.same = same
        self.first = nn.Linear(8, 8)
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(p), nn.Linear(8, 3))
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = checkpoint(
            self.layers, self.first(x), use_reentrant=self.reentrant, preserve_rng_state=self.same
        )
        return result


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (hooked, "parameter weight has a hook"),
        (hooked_after, "parameter weight has a hook"),
        (lambda: Hooking(halve), "parameter weight has a hook"),
        (lambda: Hooking(halve_after), "parameter weight has a hook"),
        (aliased, "share memory"),
        (twice_in_memory, "0.weight and 1.weight share memory"),
        (Counting, "steps changes from 1 to 2"),
        (Noisy, "Python's random numbers"),
        (Replacing, "buffer left.scale is tied"),
        (Leaving, "depends on the data"),
        (empty, "nothing has shape (0,)"),
        (lambda: Checkpointed(0.5, same=False), "drawn again in the backward pass"),
        (lambda: Checkpointed(reentrant=True), "use_reentrant=True"),
    ],
)
def test_what_a_trace_would_miss_is_refused(make: Callable[[], nn.Module], what: str) -> None:
    with pytest.raises(CaptureError) as caught:
        captured(make())
    (problem,) = caught.value.problems
    assert what in problem.what
    assert problem.remedy


@pytest.mark.parametrize("register", [halve, halve_after])
def test_a_hook_that_the_objective_puts_on_a_parameter_is_refused(
    register: Callable[[Tensor], object],
) -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        register(model.get_parameter("0.weight"))
        return cross_entropy(model, batch)

    with pytest.raises(CaptureError, match=r"parameter 0\.weight has a hook on its gradient"):
        captured(nn.Sequential(linear()), objective)


def test_parameters_side_by_side_in_one_storage_are_no_alias() -> None:
    model, flat = linear(), torch.randn(27)
    model.weight, model.bias = nn.Parameter(flat[:24].view(3, 8)), nn.Parameter(flat[24:])
    captured(model)


@pytest.mark.parametrize(
    "result", [None, 3.0, {"loss": torch.ones(())}, (torch.ones(()), torch.ones(())), (1, {})], ids=str
)
def test_an_objective_returns_a_loss_or_a_loss_and_metrics(result: object) -> None:
    with pytest.raises(CaptureError, match="the objective returns a"):
        captured(linear(), lambda _model, _batch: result)  # type: ignore[arg-type,return-value]


def test_a_metric_that_is_a_python_number_is_refused() -> None:
    with pytest.raises(CaptureError, match="rate is a Python float"):
        captured(linear(), lambda model, batch: (cross_entropy(model, batch), {"rate": 0.5}))  # type: ignore[dict-item]


def test_an_optimiser_that_has_stepped_or_has_hooks_is_refused() -> None:
    model = linear()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.register_step_post_hook(lambda *_: None)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    with pytest.raises(CaptureError) as caught:
        captured(model, optimizer=optimizer)
    assert [p.what.split()[2] for p in caught.value.problems] == ["has", "has"]
    assert "hooks" in str(caught.value)


def test_a_module_in_two_places_is_trained_once_and_stays_the_submitters() -> None:
    shared = nn.Linear(8, 8)
    model = nn.Sequential(shared, nn.Tanh(), shared, linear())
    follow(model)
    assert all(type(p) is nn.Parameter and type(p.data) is Tensor for p in model.parameters())


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_products_and_gates(layer: type[nn.Module]) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.out = layer(2, 5, batch_first=True), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.out(self.cells(x.view(-1, 4, 2))[0][:, -1])
            return result

    torch.manual_seed(3)
    follow(Recurrent())


def test_checkpointed_layers_train_as_without() -> None:
    torch.manual_seed(4)
    follow(Checkpointed())


def test_writing_one_value_by_a_mask() -> None:
    class Masking(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            h = x * 1
            h[x > 0.5] = 0.25
            h[x[:, 0] < -0.5] = -1.0
            return super().forward(h)

    torch.manual_seed(5)
    model = Masking(8, 3)
    step, optimizer = captured(model), torch.optim.SGD(model.parameters(), lr=0.1)
    state = step.initial_state(2)
    after = step.step(state)
    slow = step.step_program.step(state, step.fixed, Interpreter())
    assert all(torch.equal(after[name], slow[name]) for name in after)
    loss = torch_step(model, cross_entropy, optimizer, drawn(step, state))
    torch.testing.assert_close(after["metric.loss"], loss, rtol=2e-3, atol=2e-3)


def test_padding_that_torch_writes_piece_by_piece() -> None:
    class Circular(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular")

        def forward(self, x: Tensor) -> Tensor:
            return F.gelu(self.conv(x.view(BATCH, 2, 4))).mean(-1)

    torch.manual_seed(6)
    follow(Circular())
