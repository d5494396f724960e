"""`capture` refuses invalid arguments with a reason and a remedy instead of an error from Python or torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

from protocol.capture import CaptureError, Problem, capture
from tests.unit.capture.steps import BATCH, DATASET, cross_entropy

X, Y = DATASET["x"], DATASET["y"]


def refused(**given: Any) -> tuple[Problem, ...]:
    """The problems of a step whose arguments are valid except for `given`."""
    model = given.pop("model", None) or nn.Linear(8, 3)
    weights = model.parameters() if isinstance(model, nn.Module) else nn.Linear(8, 3).parameters()
    arguments: dict[str, Any] = {"objective": cross_entropy, "optimizer": SGD, "dataset": DATASET}
    arguments |= {"batch_size": BATCH, "steps": 4, **given}
    if arguments["optimizer"] is SGD:
        arguments["optimizer"] = SGD(weights, lr=0.1)
    if "scheduler" in given:
        arguments["scheduler"] = given["scheduler"](arguments["optimizer"])
    with pytest.raises(CaptureError) as caught:
        capture(model, **arguments)
    assert all(problem.remedy for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    ("dataset", "what", "remedy"),
    [
        (None, "the dataset is None", "pass a dict of tensors"),
        (X, "the dataset is of type Tensor", "pass a dict of tensors"),
        ((X, Y), "the dataset is of type tuple", "pass a dict of tensors"),
        ({"x": X.tolist(), "y": Y}, "dataset tensor 'x' is of type list", "torch.tensor"),
        ({"x": np.array(["a", "b"]), "y": Y}, "dataset tensor 'x' is of type ndarray", "torch.from_numpy"),
        ({"x": None, "y": Y}, "dataset tensor 'x' is None", "torch.tensor"),
        ({"x": X.to_sparse(), "y": Y}, "dataset tensor 'x' is a sparse tensor (sparse_coo)", ".to_dense()"),
        ({"x": X.to("meta"), "y": Y}, "dataset tensor 'x' is on the meta device", "CPU"),
        ({"x": torch.nested.nested_tensor([X[0], X[1]], layout=torch.jagged)}, "a nested tensor", "padded"),
        ({0: X, "y": Y}, "under 0, of type int", "its own name"),
    ],
)
def test_data_that_are_no_tensors_by_name(dataset: Any, what: str, remedy: str) -> None:
    (problem,) = refused(dataset=dataset)
    assert what in problem.what
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    "optimizer", [None, [], [SGD(nn.Linear(2, 2).parameters(), lr=0.1)], torch.optim.Adam, "sgd"]
)
def test_what_is_no_optimiser(optimizer: Any) -> None:
    (problem,) = refused(optimizer=optimizer)
    assert "the optimiser is " in problem.what
    assert "torch.optim.Optimizer" in problem.remedy


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"model": lambda x: x}, "the model is of type function"),
        ({"objective": None}, "the objective is None"),
        ({"objective": lambda model: model}, "the objective <lambda> does not take two arguments"),
        ({"objective": nn.CrossEntropyLoss(), "model": nn.Linear(8, 3)}, "the step raises TypeError"),
        ({"clip_norm": "1"}, "clip_norm=1"),
        ({"bits": ["vocabulary"]}, "bits is of type list"),
    ],
)
def test_other_arguments_of_other_types(given: dict[str, Any], what: str) -> None:
    (problem,) = refused(**given)
    assert problem.what == what


class Adjacent(nn.Module):
    """Multiplies by a sparse buffer."""

    adjacency: Tensor

    def __init__(self, sparse: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)
        self.register_buffer("adjacency", sparse(torch.eye(8)))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out((self.adjacency @ x.T).T)
        return result


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "what", "remedy"),
    [
        (lambda: Adjacent(Tensor.to_sparse), "adjacency is a sparse tensor (sparse_coo)", ".to_dense()"),
        (lambda: Adjacent(Tensor.to_sparse_csr), "adjacency is a sparse tensor (sparse_csr)", ".to_dense()"),
        (lambda: torch.jit.script(nn.Linear(8, 3)), "the model is a RecursiveScriptModule", "it was made of"),
        (
            lambda: nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(8, 3)))),
            "module 0 is a RecursiveScriptModule",
            "it was made of",
        ),
        (
            lambda: torch.jit.trace(nn.Linear(8, 3), X),
            "the model is a TopLevelTracedModule",
            "it was made of",
        ),
        (lambda: nn.LazyLinear(3), "the model, LazyLinear, has no tensors", "run the model once"),
        (
            lambda: nn.Sequential(nn.Linear(8, 3), nn.LazyBatchNorm1d()),
            "module 1, LazyBatchNorm1d, has no tensors",
            "run the model once",
        ),
    ],
)
def test_models_that_are_no_dense_python_modules(
    make: Callable[[], nn.Module], what: str, remedy: str
) -> None:
    (problem,) = refused(model=make())
    assert what in problem.what
    assert remedy in problem.remedy


def test_a_model_on_the_meta_device() -> None:
    problems = refused(model=nn.Linear(8, 3, device="meta"))
    assert [problem.what.split(" is ")[1] for problem in problems] == [
        "on the meta device, without elements"
    ] * 2


def test_a_schedule_that_ends_before_the_task() -> None:
    (problem,) = refused(scheduler=lambda o: OneCycleLR(o, 0.1, total_steps=3, cycle_momentum=False))
    assert problem.what == "OneCycleLR has 3 steps, the task 4"
    assert "total_steps=4" in problem.remedy


def test_a_schedule_of_the_submitters_that_fails() -> None:
    (problem,) = refused(scheduler=lambda o: LambdaLR(o, lambda step: [1.0, 0.5][step]))
    assert problem.what == "LambdaLR raises IndexError after 2 of 4 steps"
    assert "[1.0, 0.5][step]" in problem.traceback
    assert isinstance(problem.cause, IndexError)


@pytest.mark.parametrize("rate", [float("nan"), float("inf")])
def test_a_schedule_whose_rates_are_no_numbers(rate: float) -> None:
    (problem,) = refused(scheduler=lambda o: LambdaLR(o, lambda step: 1.0 if step < 2 else rate))
    assert problem.what == f"LambdaLR gives step 2 the learning rate {rate}"
