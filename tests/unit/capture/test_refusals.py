"""A step that cannot be captured gives one error with every reason, the submitter's line and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CaptureError, Objective, Problem
from protocol.capture.analysis.transfers import TRANSFERS
from protocol.capture.lowering.rules import RULES
from tests.unit.capture.steps import DATASET, captured, cross_entropy


class Head(nn.Module):
    """A linear layer; subclasses transform its input first."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)

    def before(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.before(x), self.out.weight, self.out.bias)


class Several(Head):
    def before(self, x: Tensor) -> Tensor:
        h = torch.i0(self.out(x) @ self.out.weight)
        h = h * torch.poisson(h)
        return h.erfinv()


class Bessel(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.i0(x)


class Item(Head):
    def before(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum().item() > 0 else x


class Branch(Head):
    def before(self, x: Tensor) -> Tensor:
        return x + 1 if (x > 0).any() else x


class Equal(Head):
    def before(self, x: Tensor) -> Tensor:
        return x + 1 if torch.equal(x, x * 2) else x


class Masked(Head):
    def before(self, x: Tensor) -> Tensor:
        return x[x > -1e9].view(-1, 8)


class Wide(Head):
    def before(self, x: Tensor) -> Tensor:
        return x.double().float()


class Bytes(Head):
    def before(self, x: Tensor) -> Tensor:
        return x + x.byte().float()


def refused(model: nn.Module, objective: Objective = cross_entropy, **options: Any) -> tuple[Problem, ...]:
    with pytest.raises(CaptureError) as caught:
        captured(model, objective, **options)
    assert all(problem.remedy for problem in caught.value.problems)
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


def test_every_unsupported_operation_is_listed_with_its_line_and_a_remedy() -> None:
    problems = refused(Several())
    found = {problem.what.split(":")[0]: problem for problem in problems}
    assert {
        "aten.i0.default",
        "aten.special_i1.default",
        "aten.poisson.default",
        "aten.erfinv.default",
    } <= set(found)
    assert "test_refusals.py" in found["aten.i0.default"].source
    assert "h = torch.i0(self.out(x) @ self.out.weight)" in found["aten.i0.default"].source
    # The backward pass has no source line; the error names the forward line.
    assert found["aten.special_i1.default"].source == found["aten.i0.default"].source
    assert "return h.erfinv()" in found["aten.erfinv.default"].source
    assert "when the data are made" in found["aten.poisson.default"].remedy


def test_the_module_is_named() -> None:
    problems = refused(nn.Sequential(Bessel(), nn.Linear(8, 3)))
    assert all("(module 0)" in problem.source for problem in problems)
    assert "return torch.i0(x)" in problems[0].source


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (Item, "if x.sum().item() > 0"),
        (Branch, "if (x > 0).any()"),
        (Equal, "torch.equal(x"),
        (Masked, "x[x > -1e9]"),
    ],
)
def test_data_dependent_control_flow_names_its_line(model: type[nn.Module], line: str) -> None:
    (problem,) = refused(model())
    assert line in problem.source


class Everything(Head):
    """Two data-dependent decisions, two operations without a rule, float64 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.double()

    def before(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = torch.i0(x)
        if x.max().item() > 0:
            x = x.erfinv()
        return x


class Loop(Head):
    def before(self, x: Tensor) -> Tensor:
        while x.sum() < 100:
            x = x.erfinv()
        return x


class MaskedLate(Head):
    def before(self, x: Tensor) -> Tensor:
        x = torch.i0(x) * 2
        return x[x > -1e9].view(-1, 8)


def test_problems_of_all_kinds_are_listed_together() -> None:
    model = Everything()
    unknown = torch.optim.LBFGS(model.parameters())
    problems = refused(model, optimizer=unknown, dataset=DATASET)
    places = {problem.source.split(": ")[-1].split(" (")[0]: problem.what for problem in problems}
    assert "depends on the data" in places["if x.sum() > 0:"]
    assert "depends on the data" in places["if x.max().item() > 0:"]
    assert "i0" in places["x = torch.i0(x)"] or "special_i1" in places["x = torch.i0(x)"]
    assert "erfinv" in places["x = x.erfinv()"]
    what = " ".join(problem.what for problem in problems)
    for part in ("out.weight is float64", "out.bias is float64", "LBFGS"):
        assert part in what


def test_a_loop_on_data_ends_with_its_line() -> None:
    problems = refused(Loop())
    assert any("while x.sum() < 100" in problem.source for problem in problems)
    assert any("erfinv" in problem.what for problem in problems)


def test_what_came_before_a_shape_that_depends_on_data_is_listed_too() -> None:
    problems = refused(MaskedLate())
    assert {problem.what.split(":")[0] for problem in problems} >= {
        "a decision or a shape depends on the data",
        "aten.i0.default",
    }


def test_complex_numbers_are_refused() -> None:
    problems = refused(
        Head(), lambda m, b: (cross_entropy(m, b), {"of": torch.fft.fft(b["x"]).t().real.mean()})
    )
    assert any("_fft_r2c" in problem.what for problem in problems)


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (Wide, "float64"),
        (Bytes, "from float32 to uint8"),
    ],
)
def test_what_has_no_exact_form_is_refused(model: type[nn.Module], what: str) -> None:
    assert all(what in problem.what for problem in refused(model()))


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (lambda x: x.index_put((torch.tensor([0, 0]),), x[:2]), "index_put"),
        (lambda x: x.scatter(1, torch.zeros(6, 2, dtype=torch.long), x), "scatter"),
        (lambda x: (x.int() // (x.int() + 1)).float(), "floor_divide"),
    ],
)
def test_uses_without_an_exact_form_are_refused(change: Callable[[Tensor], Tensor], operation: str) -> None:
    problems = refused(
        Head(), lambda m, batch: (cross_entropy(m, batch), {"use": change(batch["x"]).float().mean()})
    )
    assert all(operation in problem.what for problem in problems)
    assert all("test_refusals.py" in problem.source for problem in problems)


@pytest.mark.parametrize(
    ("use", "operation"),
    [
        (lambda x: torch.cat([x[:0], x[:0]]).sum(), "aten.cat.default"),
        (lambda x: x[:0].roll(1, 0).sum(), "aten.roll.default"),
        (lambda x: x[[]].sum(), "aten.index.Tensor"),
        (lambda x: F.max_pool3d(x[0].long().view(1, 2, 2, 2), 2).sum().float(), "aten."),
    ],
)
def test_operands_that_no_rule_expects_are_refused(use: Callable[[Tensor], Tensor], operation: str) -> None:
    problems = refused(Head(), lambda model, batch: (cross_entropy(model, batch), {"use": use(batch["x"])}))
    assert any(operation in problem.what for problem in problems)
    assert all("test_refusals.py" in problem.source for problem in problems)


def test_a_defect_of_a_rule_is_the_refusals_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: Any, **__: Any) -> Any:
        raise KeyError("planted")

    def with_metric(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        x = batch["x"]
        return cross_entropy(model, batch), {"use": x.sin().sum() + x.argmax(1).sum()}

    for table, overload in (
        (RULES, torch.ops.aten.sin.default),
        (TRANSFERS, torch.ops.aten.argmax.default),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(table, overload, defect)
            with pytest.raises(CaptureError, match="planted") as caught:
                captured(Head(), with_metric)
        assert isinstance(caught.value.__cause__, KeyError)
        assert str(overload) in caught.value.problems[0].what


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_float_types_are_refused_before_anything_runs(dtype: torch.dtype) -> None:
    problems = refused(nn.Linear(8, 3).to(dtype))
    assert [problem.what.split()[0] for problem in problems] == ["weight", "bias"]
    assert "model.float()" in problems[0].remedy


def test_tensors_of_other_types_and_arguments_without_a_rule_are_refused() -> None:
    problems = refused(
        Head(),
        lambda m, batch: F.cross_entropy(
            m((batch["x"] + torch.tensor([1.0] * 8, dtype=torch.float64)).float()), batch["y"]
        ),
    )
    assert any("made inside" in problem.what for problem in problems)
    (large,) = refused(
        Head(), lambda m, batch: F.cross_entropy(m(batch["x"] + torch.tensor([2**40] * 8)), batch["y"])
    )
    assert "made inside" in large.what
    outside = torch.ones(8)
    (problem,) = refused(Head(), lambda m, batch: F.cross_entropy(m(batch["x"] + outside), batch["y"]))
    assert "outside" in problem.what
    assert "+ outside" in problem.source


def test_a_loss_without_the_model_and_unusable_metrics_are_refused() -> None:
    (problem,) = refused(Head(), lambda _, batch: batch["x"].mean())
    assert "does not depend on a trainable parameter" in problem.what
    (problem,) = refused(
        Head(), lambda model, batch: (cross_entropy(model, batch), {"loss": batch["x"].mean()})
    )
    assert "called loss" in problem.what
    (problem,) = refused(
        Head(), lambda model, batch: (cross_entropy(model, batch), {"count": (batch["y"] == 1).sum()})
    )
    assert "count is int64" in problem.what


def twice(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Add half of the loss's gradients to the parameters' gradients, then return the loss."""
    loss = cross_entropy(model, batch)
    (0.5 * loss).backward(retain_graph=True)
    return loss


def test_gradients_that_the_objective_leaves_are_refused() -> None:
    problems = refused(Head(), twice)
    assert [problem.what.split()[-1] for problem in problems] == ["out.weight", "out.bias"]

    def zeroed(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        loss = twice(model, batch)
        model.zero_grad()
        return loss

    captured(Head(), zeroed)


def test_names_that_the_state_has_already_are_refused() -> None:
    class Key(Head):
        def __init__(self) -> None:
            super().__init__()
            self.key = nn.Parameter(torch.ones(8))

        def before(self, x: Tensor) -> Tensor:
            return x * self.key

    (problem,) = refused(Key())
    assert "key" in problem.what


@pytest.mark.parametrize(
    ("dataset", "what"),
    [
        ({}, "is empty"),
        ({"x": torch.randn(5, 8), "y": DATASET["y"]}, "rows"),
        ({"x": DATASET["x"].double(), "y": DATASET["y"]}, "torch.float64"),
        ({"x": DATASET["x"], "y": DATASET["y"] + 2**40}, "y exceeds 32 bits"),
        ({"x": torch.tensor(1.0), "y": DATASET["y"]}, "shape ()"),
    ],
    ids=["empty", "lengths", "float64", "too large", "no rows"],
)
def test_datasets_that_cannot_be_committed_are_refused(dataset: Mapping[str, Tensor], what: str) -> None:
    (problem,) = refused(Head(), dataset=dataset)
    assert what in problem.what
