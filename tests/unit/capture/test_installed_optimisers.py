"""Optimisers of an installed package. One that counts in its class is refused; one with a cache is not."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from protocol.capture import CaptureError
from tests.unit.capture.steps import captured
from tests.unit.capture.test_optimisers import Gains, compare, in_torch, squares

INSTALLED = """
import functools

import torch

calls = 0


class Base(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.01})

    @torch.no_grad()
    def step(self, closure=None):
        rate = 0.01 if self.counted() <= 100 else 0.001
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=rate)


class Plain(Base):
    def counted(self):
        return 1


class InANumber(Base):
    steps = 0

    def counted(self):
        type(self).steps += 1
        return self.steps


class InADict(Base):
    held = {"steps": 0}

    def counted(self):
        self.held["steps"] += 1
        return self.held["steps"]


class InAList(Base):
    steps = []

    def counted(self):
        self.steps.append(None)
        return len(self.steps)


class InItsBase(Base):
    def counted(self):
        Base.steps = getattr(Base, "steps", 0) + 1
        return Base.steps


class InAGlobal(Base):
    def counted(self):
        global calls
        calls += 1
        return calls


@functools.lru_cache
def coefficients(order):
    return [1.0 / (k + 1) for k in range(order)]


@functools.lru_cache(maxsize=None)
def shaped(shape):
    return {"numbers": shape}


class Cached(Base):
    @staticmethod
    @functools.lru_cache
    def numbers(order):
        return [order]

    def counted(self):
        shape = tuple(self.param_groups[0]["params"][0].shape)
        return coefficients(3)[0] + len(shaped(shape)) + self.numbers(3)[0]
"""
"""The source of an installed package. Its optimisers count their steps up to a limit that no trial reaches; the last
one looks up results in caches.
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The installed package, new for each test."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "counting_optimisers.py").write_text(INSTALLED)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "counting_optimisers", raising=False)
    return importlib.import_module("counting_optimisers")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("InANumber", r"InANumber\.steps in a step"),
        ("InADict", r"InADict\.held\['steps'\] in a step"),
        ("InAList", r"InAList\.steps\[0\] in a step"),
        ("InItsBase", r"Base\.steps in a step"),
        ("InAGlobal", "calls in a step"),
    ],
)
def test_a_count_of_an_installed_optimiser_is_refused_and_its_class_restored(
    name: str, what: str, package: Any
) -> None:
    model = Gains()
    with pytest.raises(CaptureError, match=f"{name} changes {what}"):
        captured(model, squares, getattr(package, name)(model.parameters()))
    assert package.InANumber.steps == 0
    assert package.InADict.held == {"steps": 0}
    assert package.InAList.steps == []
    assert not hasattr(package.Base, "steps")
    assert (package.calls > 0) == (name == "InAGlobal")  # globals of a package are only compared
    captured(model, squares, package.Plain(model.parameters()))


def test_an_installed_optimiser_with_caches_is_captured_and_follows_torch(package: Any) -> None:
    model = Gains()
    optimizer = package.Cached(model.parameters())
    step = captured(model, squares, optimizer)
    compare(model, in_torch(step, model, optimizer, 4))
