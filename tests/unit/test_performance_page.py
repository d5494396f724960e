"""docs/performance.md and its plot match the measured numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import page


def test_the_page_is_current() -> None:
    text = page.PAGE.read_text()
    assert text == page.page(text, json.loads(page.MEASURED.read_text()))


def test_the_plot_is_current(tmp_path: Path) -> None:
    page.plot(json.loads(page.MEASURED.read_text()), tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_bytes() == page.PLOT.read_bytes()


def test_recording_a_group_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, text, plot = (tmp_path / name for name in ("measured.json", "page.md", "plot.svg"))
    text.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    for name, path in (("MEASURED", measured), ("PAGE", text), ("PLOT", plot)):
        monkeypatch.setattr(page, name, path)
    where = {"date": "2026-11-21", "commit": "abc", "hardware": "two cores"}
    row = {
        "what": "a step",
        "value": "0.93x",
        "goal": "1.3x",
        "spread": "0.91–0.94",
        "ratio": [0.93, 0.91, 0.94],
    }
    page.record({"gpt": {**where, "rows": [row]}})
    page.record({"gas": {**where, "rows": [{**row, "what": "a judgment", "ratio": None}]}})
    lines = text.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "| a step | 0.93x | 1.3x | 0.91–0.94 |" in lines
    assert "| a judgment | 0.93x | 1.3x | 0.91–0.94 |" in lines
    assert "old" not in lines


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one part"):
        page.page("no marks", {})
