"""The remedies of refusals fit the case. For example, a remedy names an alternative to the operation, or the
option to set in a common library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, distributions, nn

from protocol.capture import CaptureError, Problem
from tests.unit.capture.steps import captured, cross_entropy, drawn

Batch = Mapping[str, Tensor]


def refused(objective: Callable[[nn.Module, Batch], Tensor]) -> tuple[Problem, ...]:
    with pytest.raises(CaptureError) as caught:
        captured(nn.Linear(8, 3), objective)
    assert all("test_remedies.py" in problem.source for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    "change",
    [
        torch.linalg.inv,
        torch.linalg.det,
        torch.linalg.cholesky,
        torch.linalg.pinv,
        torch.linalg.svdvals,
        torch.linalg.matrix_exp,
        lambda w: torch.linalg.solve(w, w),
        lambda w: torch.linalg.eigh(w)[0],
        lambda w: torch.linalg.qr(w)[0],
    ],
)
def test_linear_algebra(change: Callable[[Tensor], Tensor]) -> None:
    problems = refused(lambda m, batch: cross_entropy(m, batch) + change(m.weight[:, :3]).sum())  # type: ignore[index]
    named = [problem for problem in problems if "linalg" in problem.what]
    assert named
    assert all("no program has matrix decompositions" in problem.remedy for problem in named)


GENERATOR = torch.Generator().manual_seed(0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda _: torch.rand(3, generator=GENERATOR),
        lambda _: torch.randn(3, generator=GENERATOR),
        lambda _: torch.randperm(6, generator=GENERATOR).float(),
        lambda _: torch.normal(0.0, 1.0, (3,), generator=GENERATOR),
        lambda x: x.clone().normal_(generator=GENERATOR),
        lambda x: x.clone().uniform_(generator=GENERATOR),
        lambda _: torch.multinomial(torch.ones(3), 1, generator=GENERATOR).float(),
        lambda _: torch.bernoulli(torch.full((3,), 0.5), generator=GENERATOR),
        lambda x: torch.ones_like(x).bernoulli_(0.5, generator=GENERATOR),
    ],
)
def test_numbers_from_a_generator(draw: Callable[[Tensor], Tensor]) -> None:
    problems = refused(lambda m, batch: cross_entropy(m, batch) * draw(batch["x"]).mean())
    assert all("with a generator" in problem.what for problem in problems)
    assert all("leave it out" in problem.remedy for problem in problems)


def test_numbers_of_other_distributions() -> None:
    problems = refused(lambda m, batch: cross_entropy(m, batch) * torch.poisson(batch["x"].abs()).mean())
    assert any("uniform, normal and exponential ones" in problem.remedy for problem in problems)


def normal(model: nn.Module, batch: Batch, **options: Any) -> Tensor:
    mean = model(batch["x"])
    loss: Tensor = -distributions.Normal(mean, mean.exp(), **options).log_prob(batch["x"][:, :3]).mean()
    return loss


def categorical(model: nn.Module, batch: Batch, **options: Any) -> Tensor:
    loss: Tensor = -distributions.Categorical(logits=model(batch["x"]), **options).log_prob(batch["y"]).mean()
    return loss


def made_inside(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(nn.Linear(8, 8)(batch["x"])), batch["y"])


WEIGHTED = nn.CrossEntropyLoss(weight=torch.ones(3))


class Layers:
    """Compares a random number with `layerdrop`, as models of `transformers` do."""

    layerdrop = 0.1

    def run(self, model: nn.Module, batch: Batch) -> Tensor:
        skipped = torch.rand([]) < self.layerdrop
        return cross_entropy(model, batch) * (2.0 if skipped else 1.0)


@pytest.mark.parametrize(
    ("objective", "remedy"),
    [
        (Layers().run, "layerdrop=0"),
        (lambda m, b: normal(m, b, validate_args=True), "validate_args=False"),
        (lambda m, b: categorical(m, b, validate_args=True), "validate_args=False"),
        (made_inside, "its constructor makes state: make it part of the model"),
        (lambda m, b: WEIGHTED(m(b["x"]), b["y"]), "constructor makes state"),
    ],
)
def test_code_that_many_models_share(objective: Callable[[nn.Module, Batch], Tensor], remedy: str) -> None:
    assert any(remedy in problem.remedy for problem in refused(objective))


@pytest.mark.parametrize("objective", [normal, categorical])
def test_distributions_are_captured_without_their_checks(
    objective: Callable[..., Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Loading torch.compile switches these checks off for the whole process.
    monkeypatch.setattr(distributions.Distribution, "_validate_args", True)
    step = captured(nn.Linear(8, 3), objective)
    (note,) = step.notes
    assert note.startswith(("Normal:", "Categorical:"))
    assert distributions.Distribution._validate_args
    with pytest.raises(ValueError, match="scale"):
        distributions.Normal(torch.zeros(1), -torch.ones(1))
    captured(nn.Linear(8, 3), lambda m, batch: objective(m, batch, validate_args=False))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("join", [torch.stack, torch.cat])
def test_more_tensors_than_an_instruction_holds(join: Callable[..., Tensor], axis: int) -> None:
    """Joins of more tensors than one instruction can take are captured, with the right values: 300 tensors
    exceed the operand limit, and 200 tensors of four axes exceed the byte limit.
    """

    def objective(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        x = batch["x"]
        wide = join([x * float(k + 1) for k in range(300)], axis)
        deep = join([x[:, None, None] * float(k + 1) for k in range(200)], axis)
        ramp = torch.arange(wide.numel()).reshape(wide.shape) / wide.numel()
        return cross_entropy(model, batch), {
            "wide": (wide * ramp).mean(),
            "deep": deep[..., -1].square().mean(),
        }

    step = captured(nn.Linear(8, 3), objective)
    state = step.initial_state(1)
    _, metrics = objective(nn.Linear(8, 3), drawn(step, state))
    after = step.step(state)
    for name, value in metrics.items():
        torch.testing.assert_close(after[f"metric.{name}"], value.detach(), rtol=1e-4, atol=1e-5)


class Packed(nn.Module):
    """A recurrent layer over rows of four steps, and a layer on its last output. The rows are padded: the number
    of their steps depends on the data. `packed` says how the layer is run over them.
    """

    def __init__(self, packed: Callable[[Packed, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.recurrent = nn.GRU(2, 4, batch_first=True)
        self.last = nn.Linear(4, 3)
        self.packed = packed

    def forward(self, x: Tensor) -> Tensor:
        """Three numbers per row."""
        lengths = (x[:, :4] > 0).sum(1).clamp(min=1)
        found: Tensor = self.last(self.packed(self, x.view(-1, 4, 2), lengths))
        return found


def by_tensor(m: Packed, x: Tensor, lengths: Tensor) -> Tensor:
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    found: Tensor = m.recurrent(packed)[1][0]
    return found


def by_list(m: Packed, x: Tensor, lengths: Tensor) -> Tensor:
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths.tolist(), batch_first=True, enforce_sorted=False)
    found: Tensor = m.recurrent(packed)[1][0]
    return found


def by_gather(m: Packed, x: Tensor, lengths: Tensor) -> Tensor:
    every = m.recurrent(x)[0]
    return torch.gather(every, 1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, 4))[:, 0]


@pytest.mark.parametrize("packed", [by_tensor, by_list])
def test_packed_rows_are_padded_and_their_last_steps_gathered(packed: Any) -> None:
    with pytest.raises(CaptureError, match="depends on the data") as caught:
        captured(Packed(packed))
    assert "over the padded batch" in caught.value.problems[0].remedy
    assert "torch.gather" in caught.value.problems[0].remedy
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(Packed(by_gather)(x), Packed(packed)(x))
    captured(Packed(by_gather))


def test_a_parameter_outside_the_model_is_made_a_part_of_it() -> None:
    class Scaled(nn.Module):
        """An objective with a parameter."""

        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, model: nn.Module, batch: Batch) -> Tensor:
            """The loss."""
            return cross_entropy(model, batch) * self.scale

    own = Scaled()
    (problem,) = refused(own)
    assert "a parameter that the objective did not read from the model" in problem.what
    assert "if list(model.parameters()) lacks it" in problem.remedy
    assert "to an attribute of the model" in problem.remedy
    model = nn.Linear(8, 3)
    model.objective = own
    step = captured(model, own)
    assert "objective.scale" in step.initial_state(0)


def test_a_parameter_from_a_variable_outside_is_read_inside() -> None:
    def penalty(parameters: Iterable[Tensor]) -> Tensor:
        return torch.stack([p.square().sum() for p in parameters]).sum()

    model = nn.Linear(8, 3)
    listed, weight = list(model.parameters()), model.weight
    for objective in (
        lambda m, batch: cross_entropy(m, batch) + penalty(listed),
        lambda m, batch: cross_entropy(m, batch) + penalty([weight]),
    ):
        with pytest.raises(CaptureError) as caught:
            captured(model, objective)
        (problem,) = caught.value.problems
        assert problem.what == "a parameter that the objective did not read from the model"
        assert problem.remedy.startswith(
            "read it inside the objective, as model.weight or model.parameters()"
        )
    captured(model, lambda m, batch: cross_entropy(m, batch) + penalty(m.parameters()))
    captured(model, lambda m, batch: cross_entropy(m, batch) + penalty([m.weight]))  # type: ignore[list-item]
