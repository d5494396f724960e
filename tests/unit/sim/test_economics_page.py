"""docs/economics.md matches the stored findings and the recommended parameters. Every figure that the page
shows has a file, and no other file of an economics figure is left over.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sim
from protocol.chain.parameters import RECOMMENDED, TOKEN
from sim import economics_page
from sim.studies.catalogue import STUDIES
from sim.studies.margins import challenges

KEPT: Mapping[str, Any] = json.loads(economics_page.KEPT.read_text())


def test_the_page_is_current() -> None:
    assert economics_page.PAGE.read_text() == economics_page.page(KEPT), "run `make studies`"


def test_every_study_is_on_it_and_every_claim_holds() -> None:
    assert list(KEPT) == list(STUDIES), "run `make studies`"
    for name, study in KEPT.items():
        assert study["question"] == STUDIES[name].question
        assert study["held"] == study["claims"], name


def test_every_figure_is_there_and_none_is_left_over() -> None:
    shown = set(re.findall(r"\(figures/(economics-[^)]+)\)", economics_page.PAGE.read_text()))
    assert shown == {file.name for file in economics_page.FIGURES.glob("economics-*.svg")}


def test_other_recommendations_make_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.economics_page.RECOMMENDED", replace(RECOMMENDED, draw_fee=3 * TOKEN))
    assert "3 tokens" in economics_page.page(KEPT)
    assert economics_page.PAGE.read_text() != economics_page.page(KEPT)


def test_the_reward_stands_beside_the_cost_of_a_challenge() -> None:
    row = next(line for line in economics_page.page(KEPT).splitlines() if line.startswith("| reward |"))
    found = challenges()
    assert f"{found.least:.1f} to {found.most:.1f} times what a challenge costs" in row


def test_fees_are_those_of_the_table() -> None:
    text = economics_page.page(KEPT)
    cells = [row.strip("| ").split(" | ") for row in text.splitlines()]
    fees = {row[0]: row[8] for row in cells if len(row) == 10}
    words = " ".join(text.split())
    said = re.search(r"audit fees are ([\d.]+) budgets at K = (\d+) and ([\d.]+) at K = (\d+)\.", words)
    assert said
    assert (fees[said[2]], fees[said[4]]) == (said[1], said[3])


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a page of one study."""
    monkeypatch.setattr(economics_page, "STUDIES", {"baseline": STUDIES["baseline"]})
    monkeypatch.setattr(economics_page, "FIGURES", tmp_path / "docs" / "figures")
    monkeypatch.setattr(economics_page, "KEPT", tmp_path / "docs" / "economics.json")
    monkeypatch.setattr(economics_page, "PAGE", tmp_path / "docs" / "economics.md")
    params = {"false_share": "0.5", "honest_share": "0.5,0.9"}
    sim.run("baseline", runs=20, rounds=5, params=params, out=tmp_path / "baseline")
    return tmp_path / "docs"


def test_findings_are_taken_from_results(docs: Path) -> None:
    found = sim.Results.at(docs.parent / "baseline")
    kept, drawn = economics_page.gather(docs.parent)
    assert not docs.exists()
    assert [one["sentence"] for one in kept["baseline"]["findings"]] == [
        one.sentence for one in found.answer.findings
    ]
    economics_page.write(kept, drawn)
    assert economics_page.PAGE.stat().st_mode & 0o777 == 0o644
    text = economics_page.PAGE.read_text()
    assert found.answer.findings[0].sentence in text
    assert "2 points, 20 runs of 5 rounds each" in text
    widest = found.answer.ordered[0]
    assert f"Weak: {widest.text}: {widest.words}" in text
    assert f"with each of two seeds, {found.answer.weak} of them weakly" in text
    assert economics_page.page(json.loads(economics_page.KEPT.read_text())) == text
    files = sorted(file.name for file in (docs / "figures").iterdir())
    assert files == [f"economics-baseline-{n}.svg" for n in (1, 2, 3)]
    assert all((docs / "figures" / name).read_text().startswith("<?xml") for name in files)


def test_a_page_that_cannot_be_composed_replaces_nothing(docs: Path) -> None:
    kept, drawn = economics_page.gather(docs.parent)
    economics_page.write(kept, drawn)
    (docs / "figures" / "economics-old-1.svg").write_text("<svg/>")
    before = {path: path.read_bytes() for path in docs.rglob("*.*")}
    spoiled = {"baseline": {**kept["baseline"], "findings": [{"sentence": "Half"}]}}
    with pytest.raises(KeyError):
        economics_page.write(spoiled, {**drawn, "economics-new-1.svg": "<svg/>"})
    assert {path: path.read_bytes() for path in docs.rglob("*.*")} == before
    economics_page.write(kept, drawn)
    assert not (docs / "figures" / "economics-old-1.svg").exists()
