"""docs/guide/studies.md: its study has under 60 non-blank lines, and its Python code runs unchanged."""

from __future__ import annotations

import re
from typing import Any

import pytest

import sim
from sim.studies.catalogue import study
from sim.sweeping.axes import axes_of
from tests.toolchain.project import REPOSITORY

PAGE = (REPOSITORY / "docs" / "guide" / "studies.md").read_text()
STUDY, NOTEBOOK = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
MOST_LINES = 60


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> sim.Results:
    source = tmp_path_factory.mktemp("page") / "gambling.py"
    source.write_text(STUDY)
    return sim.run(str(source), runs=100, rounds=10)


def test_a_strategy_and_a_study_take_under_60_lines() -> None:
    assert len([line for line in STUDY.splitlines() if line.strip()]) < MOST_LINES


def test_the_study_is_played_and_its_claims_hold(results: sim.Results) -> None:
    answer = results.answer
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    assert len(answer.claims) == results.manifest["points"] == 8
    # Two false segments of 100 are found with a chance of 0.11, and the gain is 100 tokens.
    assert [finding.sentence for finding in answer.findings] == ["Gambling pays at a stake of [200] tokens"]
    assert answer.findings[0].figure is not None


def test_the_pages_sweeps_can_be_asked(results: sim.Results) -> None:
    commands = re.findall(r"^sim sweep (\S+) (.*?)(?: +#.*)?$", PAGE, re.MULTILINE)
    assert len(commands) == 4
    for name, options in commands:
        params = re.findall(r"--param (\S+)", options)
        source = results.manifest["source"] if name == "gambling.py" else name
        assert len(axes_of(study(source), params)) == len(params)
        if name == "gambling.py":
            swept = sim.run(source, runs=20, rounds=2, params=dict(text.split("=") for text in params))
            assert len(swept.answer.claims) == 4 * 20


def test_the_notebook_runs() -> None:
    names: dict[str, Any] = {}
    exec(compile(NOTEBOOK, "docs/guide/studies.md", "exec"), names)  # noqa: S102
    assert names["results"].table.num_rows == 4 * 50
