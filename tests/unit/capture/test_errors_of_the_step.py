"""If the model or the objective raises an exception, the submitter sees the traceback of the submitter's own
code, without the internals of tracing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CaptureError, Problem
from tests.unit.capture.steps import captured, cross_entropy

Batch = Mapping[str, Tensor]


def refused(
    objective: Callable[..., Any], model: nn.Module | None = None
) -> tuple[Problem, BaseException | None]:
    with pytest.raises(CaptureError) as caught:
        captured(model or nn.Linear(8, 3), objective)
    (problem,) = caught.value.problems
    assert str(problem) in str(caught.value)
    for hidden in ("site-packages/torch/", "protocol/capture/", "make_fx", "FakeTensor"):
        assert hidden not in str(caught.value)
    return problem, caught.value.__cause__


class Own(Exception):
    """An exception with two arguments, which cannot be rebuilt from its message."""

    def __init__(self, what: str, _: int) -> None:
        super().__init__(what)


def helper(batch: Batch) -> Tensor:
    raise Own("the helper gives up", len(batch))


def through_a_helper(model: nn.Module, batch: Batch) -> Tensor:
    return cross_entropy(model, batch) + helper(batch)


def wrong_shape(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch["x"][:, :4]), batch["y"])


def missing_key(model: nn.Module, batch: Batch) -> Tensor:
    result: Tensor = model(batch["images"])
    return result


def deep(model: nn.Module, batch: Batch) -> Tensor:
    return deep(model, batch)


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(_ctx: object, gradient: Tensor) -> Tensor:
        raise Own("no gradient", gradient.dim())


def fails_backward(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(Failing.apply(model(batch["x"])), batch["y"])  # type: ignore[no-untyped-call]


def written_too_late(model: nn.Module, batch: Batch) -> Tensor:
    hidden = torch.exp(model(batch["x"]))
    loss = hidden.square().mean()
    hidden.mul_(2)
    return loss


@pytest.mark.parametrize(
    ("objective", "kind", "lines"),
    [
        (
            through_a_helper,
            Own,
            ["in through_a_helper", "+ helper(batch)", "in helper", "Own: the helper gives up"],
        ),
        (
            wrong_shape,
            RuntimeError,
            ['model(batch["x"][:, :4])', "mat1 and mat2 shapes cannot be multiplied"],
        ),
        (missing_key, KeyError, ["in missing_key", "KeyError: 'images'"]),
        (deep, RecursionError, ["in deep", "Previous line repeated", "RecursionError"]),
        (fails_backward, Own, ["in backward", "no gradient"]),
    ],
)
def test_the_submitters_own_traceback_is_shown(
    objective: Callable[..., Any], kind: type[Exception], lines: list[str]
) -> None:
    problem, cause = refused(objective)
    assert problem.what == f"the step raises {kind.__name__}"
    assert isinstance(cause, kind)
    assert problem.cause is cause
    at = [problem.traceback.index(line) for line in lines]
    assert at == sorted(at)
    assert problem.source.startswith("tests/unit/capture/test_errors_of_the_step.py:")


def test_an_error_without_a_line_of_the_submitters_is_told_too() -> None:
    problem, cause = refused(written_too_late)
    assert isinstance(cause, RuntimeError)
    assert "modified by an inplace operation" in problem.traceback
    assert problem.remedy


def test_what_only_tracing_raises_says_so() -> None:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        if batch["x"].data_ptr() % 2 == 0 and type(batch["x"]) is not Tensor:
            raise Own("no tensor of torch's", 1)
        return cross_entropy(model, batch)

    with pytest.raises(CaptureError) as caught:
        captured(nn.Linear(8, 3), objective)
    (problem,) = caught.value.problems
    assert problem.what.startswith("tracing the step raises ")
    assert "torch runs this step" in problem.remedy


def test_torch_logs_nothing_of_it(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, logger="torch._subclasses.fake_tensor"):
        refused(wrong_shape)
    assert not [record for record in caplog.records if record.name.startswith("torch._subclasses")]
    assert "fake_tensor" not in "".join(capfd.readouterr())
    assert not logging.getLogger("torch._subclasses.fake_tensor").disabled


def test_other_reasons_are_listed_beside_it() -> None:
    model = nn.Linear(8, 3)
    with pytest.raises(CaptureError) as caught:
        captured(model, missing_key, torch.optim.Adam(model.parameters(), differentiable=True))
    assert [problem.what for problem in caught.value.problems] == [
        "the step raises KeyError",
        "Adam with differentiable=True",
    ]


def test_the_code_runs_again_on_tensors_of_its_own() -> None:
    model = nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 3))
    before = {name: t.clone() for name, t in model.state_dict().items()}
    state = torch.random.get_rng_state()

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return missing_key(model, {"x": F.dropout(model(batch["x"]))})

    refused(objective, model)
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state())
