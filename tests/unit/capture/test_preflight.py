"""The preflight names what differs from torch, reports a lack of precision, and passes the rest."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CaptureError
from protocol.capture.inputs.python_state import PythonState
from protocol.capture.lowering.ops.operands import f32
from protocol.capture.lowering.rules import RULES
from protocol.capture.lowering.views import View
from protocol.capture.result import Report
from tests.unit.capture.steps import captured, cross_entropy

aten = torch.ops.aten


class Normalised(nn.Module):
    """A model with dropout, with buffers that every step writes, and with a bias whose gradient is zero
    except for rounding.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.out = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3)
        self.drop = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(self.drop(torch.tanh(self.norm(self.first(x)))))
        return result


def report_of(model: nn.Module, **options: Any) -> Report:
    found = captured(model, **options).preflight
    assert found is not None
    return found


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_the_same_batches_and_masks_give_the_same_step(micro_batches: int) -> None:
    torch.manual_seed(0)
    report = report_of(Normalised(), micro_batches=micro_batches)
    assert report.batches == 2
    assert report.notes == ()
    assert 0 < report.loss_error < 1e-3
    assert 0 < report.gradient_error < 5e-3


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_it_looks_at_states_after_the_first_step_too(optimizer: str) -> None:
    model = Normalised()
    chosen = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01)
    assert report_of(model, optimizer=chosen).batches == 2


@pytest.mark.parametrize("factor", [1.05, -1.0, 0.0])
def test_a_rule_that_is_wrong_is_named_with_its_line(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right = RULES[aten.tanh.default]

    def wrong(lowering: Any, node: Any, x: View) -> View:
        found = right(lowering, node, x)
        assert isinstance(found, View)
        b = lowering.builder
        return View.of(b.mul(lowering.elements(found), f32(lowering, factor)))

    monkeypatch.setitem(RULES, aten.tanh.default, wrong)
    with pytest.raises(CaptureError) as caught:
        captured(Normalised())
    (problem,) = caught.value.problems
    assert "aten.tanh.default computes something else than torch" in problem.what
    assert "torch.tanh(self.norm(self.first(x)))" in problem.source


def test_a_wrong_gradient_is_named_with_the_line_of_its_forward_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = RULES[aten.tanh_backward.default]

    def wrong(lowering: Any, node: Any, gradient: View, y: View) -> View:
        found = right(lowering, node, gradient, y)
        assert isinstance(found, View)
        b = lowering.builder
        return View.of(b.add(lowering.elements(found), f32(lowering, 0.1)))

    monkeypatch.setitem(RULES, aten.tanh_backward.default, wrong)
    with pytest.raises(CaptureError, match=r"aten\.tanh_backward\.default computes something else") as caught:
        captured(Normalised())
    assert "torch.tanh" in caught.value.problems[0].source


class Cancelling(nn.Module):
    """Subtracts two large products. float32 keeps their small difference, but products of 13 bits lose it."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        large = self.out(x + 3_000.0)
        result: Tensor = large - self.out(torch.full_like(x, 3_000.0))
        return result


def test_a_difference_that_precision_explains_is_reported_with_the_remedy() -> None:
    torch.manual_seed(0)
    step = captured(Cancelling())
    assert step.preflight is not None
    assert any("precision" in note and "bits" in note for note in step.preflight.notes)
    better = captured(Cancelling(), bits={"product": (20, 20), "weight_gradient": (20, 20)})
    assert better.preflight is not None
    assert better.preflight.gradient_error < step.preflight.gradient_error


def test_without_it_nothing_is_compared_and_the_program_is_the_same() -> None:
    torch.manual_seed(0)
    model = Normalised()
    compared, not_compared = captured(model), captured(model, preflight=False)
    assert not_compared.preflight is None
    assert compared.root == not_compared.root


def test_an_error_of_torch_on_a_real_batch_is_the_submitters() -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        assert type(batch["x"]) is not Tensor, "no trace"
        return cross_entropy(model, batch)

    with pytest.raises(CaptureError, match="torch refuses a batch of the data: AssertionError: no trace"):
        captured(nn.Linear(8, 3), objective)


def test_a_step_that_runs_otherwise_than_it_is_traced_is_refused() -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        factor = 0.5 if type(batch["x"]) is Tensor else 1.0
        return cross_entropy(model, batch) * factor

    with pytest.raises(CaptureError, match="another result when it runs than it did when it was traced"):
        captured(nn.Linear(8, 3), objective)


class AtAKink(nn.Module):
    """Two weights that differ in the last bit. Whether a ReLU of their difference passes any gradient depends
    on a single rounding.
    """

    def __init__(self) -> None:
        super().__init__()
        self.high = nn.Parameter(torch.full((64,), 1 + 2.0**-23))
        self.low = nn.Parameter(torch.ones(64))


def test_a_gradient_that_one_rounding_turns_is_not_taken_for_another_run() -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(model, AtAKink)
        lost = 2.0**-23 if type(batch["x"]) is Tensor else 0.0  # like the rounding of a sum in another order
        return 1 + (model.high - model.low - lost).relu().sum() + batch["x"].mean()

    assert captured(AtAKink(), objective).preflight is not None


def test_a_gradient_that_no_rounding_turns_is_another_run() -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(model, AtAKink)
        lost = 2.0**-17 if type(batch["x"]) is Tensor else 0.0
        return 1 + (model.high + 2.0**-18 - model.low - lost).relu().sum() + batch["x"].mean()

    with pytest.raises(CaptureError, match="another result when it runs than it did when it was traced"):
        captured(AtAKink(), objective)


class Caching(nn.Module):
    """Caches tensors in an attribute, a dict and a list, and assigns a new tensor to its buffer."""

    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)
        self.mask: Tensor | None = None
        self.by_size: dict[int, Tensor] = {}
        self.seen: list[Tensor] = []
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        if self.mask is None:
            self.mask = torch.ones(8)
        if 8 not in self.by_size:
            self.by_size[8] = torch.arange(8) + 1.0
            self.seen.append(self.by_size[8])
        self.total = self.total + x.detach().mean(0)
        result: Tensor = self.out(x * self.mask * self.by_size[8])
        return result


@pytest.mark.parametrize("objective", [cross_entropy, lambda model, batch: model(batch["x"]).median()])
def test_a_model_is_left_as_it_was_also_by_a_refusal(objective: Any) -> None:
    model = Caching()
    before = PythonState({"": model, "objective": objective})
    tensors = {name: (t, t.clone()) for name, t in (*model.named_parameters(), *model.named_buffers())}
    ids = set()
    for _ in range(2):
        try:
            ids.add(captured(model, objective).root)
        except CaptureError:
            ids.add(b"refused")
    assert len(ids) == 1
    assert before.changes(PythonState({"": model, "objective": objective})) == []
    assert (model.mask, model.by_size, model.seen) == (None, {}, [])
    for name, t in (*model.named_parameters(), *model.named_buffers()):
        kept, value = tensors[name]
        assert t is kept
        assert torch.equal(t, value)
        assert t.grad is None


def test_values_that_model_and_objective_keep_are_put_back() -> None:
    kept = {"list": [1, 2], "set": {1}, "nested": {"a": 1}}

    def objective(_model: nn.Module, _batch: object) -> int:
        return len(kept)

    model = nn.Linear(8, 3)
    state = PythonState({"": model, "objective": objective})
    kept["list"].append(3)  # type: ignore[attr-defined]
    kept["set"].clear()  # type: ignore[attr-defined]
    kept["nested"]["a"] = 2  # type: ignore[index]
    model.extra = 1  # type: ignore[assignment]
    changed = {change.where for change in state.changes(PythonState(state.roots))}
    assert {"kept['nested']['a']", "len(kept['list'])", "extra"} <= changed
    state.restore()
    assert state.changes(PythonState(state.roots)) == []
    assert kept == {"list": [1, 2], "set": {1}, "nested": {"a": 1}}
    assert not hasattr(model, "extra")


def test_weights_of_an_objective_count_too() -> None:
    """A module that an objective holds in a closure is checked like the model."""
    inner = nn.Linear(8, 8)

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        inner.calls = getattr(inner, "calls", 0) + 1  # type: ignore[assignment]
        return cross_entropy(model, batch)

    with pytest.raises(CaptureError, match=r"inner\.calls changes from 1 to 2 in a step"):
        captured(nn.Linear(8, 3), objective)


class Beating(Thread):
    """A thread with a counter, as progress bars and loggers use."""

    beats = 0


def test_what_runs_beside_the_step_is_not_the_steps() -> None:
    beating = Beating()

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        beating.beats += 1
        return cross_entropy(model, batch)

    captured(nn.Linear(8, 3), objective)


@pytest.mark.parametrize("options", [{"padding": "valid"}, {"padding": "valid", "stride": 2, "groups": 2}])
def test_one_number_may_stand_for_both_axes_of_a_convolution(options: dict[str, Any]) -> None:
    """For the padding "valid", torch passes on a single zero for both axes."""
    model = nn.Sequential(
        nn.Unflatten(1, (2, 2, 2)), nn.Conv2d(2, 4, 2, **options), nn.Flatten(), nn.Linear(4, 3)
    )
    assert report_of(model).loss_error < 1e-3
