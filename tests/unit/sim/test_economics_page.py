"""docs/economics.md is what the kept findings and the recommended file say, and every figure it shows is there."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sim
from protocol.chain.parameters import RECOMMENDED, TOKEN
from sim import page
from sim.studies.catalogue import STUDIES

KEPT: Mapping[str, Any] = json.loads(page.KEPT.read_text())


def test_the_page_is_current() -> None:
    assert page.PAGE.read_text() == page.page(KEPT), "run `make studies`"


def test_every_study_is_on_it_and_every_claim_holds() -> None:
    assert list(KEPT) == list(STUDIES), "run `make studies`"
    for name, study in KEPT.items():
        assert study["question"] == STUDIES[name].question
        assert study["held"] == study["claims"], name


def test_every_figure_is_there_and_none_is_left_over() -> None:
    shown = set(re.findall(r"\(figures/(economics-[^)]+)\)", page.PAGE.read_text()))
    assert shown == {file.name for file in page.FIGURES.glob("economics-*.svg")}


def test_other_recommendations_make_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.page.RECOMMENDED", replace(RECOMMENDED, reward_cap=3 * TOKEN))
    assert "3 tokens" in page.page(KEPT)
    assert page.PAGE.read_text() != page.page(KEPT)


def test_findings_are_taken_from_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "STUDIES", {"baseline": STUDIES["baseline"]})
    monkeypatch.setattr(page, "FIGURES", tmp_path / "figures")
    (tmp_path / "figures").mkdir()
    params = {"false_share": "0.5", "honest_share": "0.5,0.9"}
    found = sim.run("baseline", runs=20, rounds=5, params=params, out=tmp_path / "baseline")
    kept = page.gather(tmp_path)
    assert [one["sentence"] for one in kept["baseline"]["findings"]] == [
        one.sentence for one in found.answer.findings
    ]
    text = page.page(kept)
    assert found.answer.findings[0].sentence in text
    assert "2 points, 20 runs of 5 rounds each" in text
    drawn = sorted(file.name for file in (tmp_path / "figures").iterdir())
    assert drawn == [f"economics-baseline-{n}.svg" for n in (1, 2, 3)]
    assert all((tmp_path / "figures" / name).read_text().startswith("<?xml") for name in drawn)
