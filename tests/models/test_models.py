"""Checks the quick entries of the model suite, and tests how the suite reports failures and writes its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.models import page, running
from tests.models.check import Differs, check
from tests.models.entry import ROWS, Entry, Training, normal
from tests.models.families import QUICK, entries
from tests.models.running import Result

CHOSEN = [entry for entry in entries(QUICK) if entry.quick]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("entry", CHOSEN, ids=str)
def test_an_entry_is_captured_equal_to_its_bodies_and_follows_float32(entry: Entry) -> None:
    check(entry)


def entry_of(model: Callable[[], nn.Module]) -> Entry:
    return Entry(
        "test",
        "one",
        lambda: Training(model(), lambda m, b: m(b["x"]).square().mean(), {"x": normal(ROWS, 4)}),
    )


def test_a_model_that_parts_from_torch_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    right = check(entry_of(lambda: nn.Linear(4, 2)))
    assert right.apart is not None
    assert 0 <= right.apart < 1e-3
    assert right.own is None
    monkeypatch.setattr("tests.models.check.torch_step", lambda *_: torch.tensor(1e3))
    with pytest.raises(Differs, match=r"torch's \[1000.0, 1000.0, 1000.0\], which are 0 apart from nudged"):
        check(entry_of(lambda: nn.Linear(4, 2)))


@pytest.mark.parametrize(("apart", "good"), [(1.9, True), (2.1, False)])
def test_a_model_may_part_from_torch_about_as_far_as_torch_from_itself(
    apart: float, good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    distances = iter([apart, 0.3, 1.0, 0.2, 0.1])
    monkeypatch.setattr("tests.models.check._distance", lambda *_: next(distances))
    if good:
        found = check(entry_of(lambda: nn.Linear(4, 2)))
        assert (found.apart, found.own) == (apart, 1.0)
    else:
        with pytest.raises(Differs, match="which are 1 apart"):
            check(entry_of(lambda: nn.Linear(4, 2)))


def test_an_unknown_defect_is_what_came_of_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> nn.Module:
        raise LookupError("no such layer")

    monkeypatch.setattr(running, "entries", lambda *_: [entry_of(broken)])
    failure, figures = running.play("test: one", "none")
    assert figures is None
    assert "LookupError: no such layer" in failure


def test_results_are_kept_by_commit_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models.jsonl"
    monkeypatch.setattr(running, "_alone", lambda name, _, commit: Result(name, "", None, commit))
    running.run({"a": "one", "b": "two"}, 2, "first", file)
    monkeypatch.setattr(running, "_alone", lambda name, _, commit: Result(name, "refused", None, commit))
    running.run({"b": "two"}, 1, "second", file)
    assert set(running.kept(file)) == {"a", "b"}
    assert running.kept(file)["b"].failure == "refused"
    assert running.kept(file, "first")["b"].failure == ""
    assert set(running.kept(file, "second")) == {"b"}


def test_the_page_has_figures_by_family_and_names_failures() -> None:
    results = [
        {
            "entry": "torch: linear",
            "failure": "",
            "commit": "c" * 40,
            "figures": {
                "operations": 1234,
                "capture": 0.5,
                "loss_error": 1e-6,
                "gradient_error": 2e-5,
                "apart": None,
            },
        },
        {
            "entry": "torch: lost",
            "failure": "aten.x: not supported\n  at y",
            "commit": "c" * 40,
            "figures": None,
        },
    ]
    text = page.page({"versions": {"torch": "2.13.0"}, "results": results})
    assert "1 of 2 at commit cccccccc, with torch 2.13.0." in text
    assert "| linear | 1,234 | 0.5 | 1.0e-06, 2.0e-05 | draws |" in text
    assert "| torch: lost | aten.x: not supported at y |" in text
