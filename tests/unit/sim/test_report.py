"""Reports: one HTML file that loads nothing, with findings and claims, and all input escaped."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import sim
from sim import figures
from sim.parameters import MarketParameters, unit_of
from sim.results.report import MOST_CLAIMS, page, svg, write_report
from sim.studies.study import Answer, Claim, Finding, Table


class Reader(HTMLParser):
    """Collects a page's tags, ids and references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "xlink:href", "src") and value:
                self.references.append(value)
            if name in ("clip-path", "style"):
                self.references += re.findall(r"url\((.*?)\)", value or "")


@pytest.fixture(scope="module")
def results() -> sim.Results:
    return sim.run("baseline", runs=20, rounds=5)


def test_a_report_has_everything_in_one_file_that_loads_nothing(results: sim.Results) -> None:
    path = write_report(results)
    text = path.read_text()
    assert text == page(results)  # The same rows give the same text.
    read = Reader(text)
    assert read.tags.count("svg") == 3
    assert {"script", "link", "iframe", "img"}.isdisjoint(read.tags)
    assert len(read.ids) == len(set(read.ids))
    assert {reference.removeprefix("#") for reference in read.references} <= set(read.ids)
    for finding in results.answer.findings:
        assert f"<h2>{escape(finding.sentence)}</h2>" in text
    assert "84 of 84 claims hold, " in text
    assert results.manifest["digest"] in text
    assert f"stake</td><td>{unit_of('stake').format(MarketParameters().stake)}</td><td>tokens" in text


def test_claims_that_fail_come_first_and_long_tables_end(
    results: sim.Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = [Claim(f"claim {n}", 1.0, 1.0, 0.001 + 1e-6 * n, draws=9) for n in range(MOST_CLAIMS - 1)]
    claims += [Claim("wide", 1.0, 1.0, 0.1, draws=9)]
    claims += [Claim("<b>off</b>", 1.0, 2.0, 0.1, draws=9), Claim("empty", float("nan"), 2.0, 0.1, draws=9)]
    told = Answer([Finding("A & B <i>differ</i>", note="1 < 2")], claims)
    asked = sim.Results(results.folder, results.study)

    def answer(table: Table) -> Answer:
        del table
        return told

    monkeypatch.setattr(asked.study, "answer", answer)
    text = page(asked)
    assert "<h2>A &amp; B &lt;i&gt;differ&lt;/i&gt;</h2>" in text
    assert "1 &lt; 2" in text
    assert f"{MOST_CLAIMS} of {MOST_CLAIMS + 2} claims hold, 1 of them weakly" in text
    # Failing claims come first, then those with the widest tolerance.
    places = [
        text.index(f"<td>{name}<") for name in ("&lt;b&gt;off&lt;/b&gt;", "wide", f"claim {MOST_CLAIMS - 2}")
    ]
    assert places == sorted(places)
    assert "<td>weakly</td>" in text
    assert '<td class="number">nan</td>' in text
    assert text.count("<td>yes</td>") == MOST_CLAIMS - 3
    assert "2 more claims are left out" in text


def test_every_figure_is_drawn_with_its_words_as_text() -> None:
    line = figures.Line("honest", [1, 10, 100], [1.0, 2.0, 3.0], [0.5, 1, 2], [2, 3, 4], [1.1, 2.1, 2.9])
    drawn = [
        figures.lines(
            [line, figures.Line("lazy", [1, 10], [3, 1])], x="across", y="upwards", log_x=True, level=2.0
        ),
        figures.heat_map(
            [1, 2, 3], [1, 2], [[-1, 0, 1], [-2, 1, 3]], x="across", y="upwards", label="profit"
        ),
        figures.heat_map([1], [1], [[5]], x="across", y="upwards", label="one cell"),
        figures.heat_map([1, 2], [1, 2], [[np.nan] * 2] * 2, x="across", y="upwards", label="nothing known"),
        figures.tornado(["stake", "gain"], [1.0, 2.0], [4.0, 2.5], centre=2.2, x="across"),
        figures.parity([0, 1], [0.1, 0.9], [0.1, 0.1], x="across"),
    ]
    for number, figure in enumerate(drawn):
        text = svg(figure, f"f{number}")
        assert text.startswith("<svg")
        assert ">across<" in text
        assert svg(figure, f"f{number}") == text


def test_a_tornados_widest_bar_is_on_top() -> None:
    figure = figures.tornado(["narrow", "wide"], [1.0, 0.0], [2.0, 9.0], centre=1.5, x="profit")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["narrow", "wide"]
    figure = figures.tornado(["wide", "narrow"], [0.0, 1.0], [9.0, 2.0], centre=1.5, x="profit")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["narrow", "wide"]


def test_many_points_are_drawn_as_pixels(tmp_path: Path) -> None:
    many = np.linspace(0, 1, 20_000)
    text = svg(figures.parity(many, many, many * 0), "many")
    (tmp_path / "many.svg").write_text(text)
    assert len(text) < 1_000_000
