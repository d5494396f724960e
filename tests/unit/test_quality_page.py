"""docs/numerics.md and its figures match the measured numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.quality import __main__ as quality
from benchmarks.quality.page import noise_ratios, page


def test_the_page_is_current() -> None:
    measured = json.loads(quality.MEASURED.read_text())
    elementary = json.loads(quality.ELEMENTARY.read_text())["functions"]
    assert (quality.DOCS / "numerics.md").read_text() == page(measured, elementary)


def test_the_figures_are_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = quality.DOCS / "figures"
    monkeypatch.setattr(quality, "DOCS", tmp_path)
    quality.write()
    written = {path.name: path.read_bytes() for path in (tmp_path / "figures").glob("*.svg")}
    assert written == {name: (figures / name).read_bytes() for name in ("gpt.svg", "resnet.svg")}


def test_exact_training_is_within_the_noise_of_a_seed() -> None:
    measured = json.loads(quality.MEASURED.read_text())
    ratios = [ratio for subject in measured["training"] for ratio in noise_ratios(subject).values()]
    assert len(ratios) == 5
    assert max(ratios) < 1
