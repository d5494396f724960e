"""Folders of results: complete or resumable, never mixed, with the same rows for any number of processes."""

from __future__ import annotations

import errno
import json
from collections.abc import Generator, Iterable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import sim
from sim.errors import ResultsError, SimError
from sim.parameters import MarketParameters
from sim.results.code import sources
from sim.results.folder import Folder
from sim.results.manifest import manifest_of
from sim.results.report import page, write_report
from sim.results.results import Results, fill
from sim.results.table import Rows, arrow
from sim.studies.baseline import Baseline
from sim.sweeping.plan import Chunk, Plan, plan
from sim.sweeping.workers import Played, WorkerLost, here, pool
from tests.toolchain.project import REPOSITORY

AXES = {"false_share": (0.1, 0.5), "honest_share": (0.5, 0.7, 0.9)}
COUNT = 6


def asked(*, seed: int = 0, runs: int = 10) -> Plan:
    return plan("baseline", AXES, runs=runs, rounds=5, seed=seed)


def opened(path: Path, question: Plan, *, fresh: bool = False) -> Folder:
    return Folder.open(path, manifest_of(question), fresh=fresh)


def parts(folder: Folder) -> list[bytes]:
    return [path.read_bytes() for path in folder.parts()]


class Counting:
    """Plays in this process and records the chunks. After `most` chunks, it raises KeyboardInterrupt, as
    Ctrl-C does.
    """

    def __init__(self, most: int = COUNT) -> None:
        self.most = most
        self.played: list[int] = []

    def __call__(self, chunks: Iterable[Chunk]) -> Generator[Played]:
        for number, rows in here(chunks):
            if len(self.played) == self.most:
                raise KeyboardInterrupt
            self.played.append(number)
            yield number, rows


def test_rows_are_complete_and_in_order(tmp_path: Path) -> None:
    results = fill(asked(), opened(tmp_path, asked()), here)
    table = results.table
    assert table.num_rows == results.rows.count == COUNT * 10
    assert table["point"].to_pylist() == [point for point in range(COUNT) for _ in range(10)]
    assert table["run"].to_pylist() == list(range(10)) * COUNT
    assert list(results.rows) == table.column_names
    np.testing.assert_array_equal(results.rows["escaped"], table["escaped"].to_numpy())
    assert set(results.rows["rounds"]) == {5.0}


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = fill(asked(), opened(tmp_path / "whole", asked()), here)
    first = Counting(most=2)
    with pytest.raises(KeyboardInterrupt):
        fill(asked(), opened(tmp_path / "broken", asked()), first)
    assert opened(tmp_path / "broken", asked()).missing() == [2, 3, 4, 5]
    told: list[tuple[int, int]] = []
    second = Counting()
    results = fill(
        asked(),
        opened(tmp_path / "broken", asked()),
        second,
        progress=lambda done, total: told.append((done, total)),
    )
    assert (first.played, second.played) == ([0, 1], [2, 3, 4, 5])
    assert told == [(done, COUNT) for done in (2, 3, 4, 5, 6)]
    assert parts(results.folder) == parts(whole.folder)
    third = Counting()
    fill(asked(), opened(tmp_path / "broken", asked()), third)
    assert third.played == []


def test_a_part_that_was_being_written_does_not_count(tmp_path: Path) -> None:
    folder = fill(asked(), opened(tmp_path, asked()), here).folder
    expected = parts(folder)
    folder.part(3).rename(folder.part(3).with_name(".partial-x"))
    assert folder.missing() == [3]
    with pytest.raises(ResultsError, match="expected 6 parts, got 5"):
        Rows(folder)
    fill(asked(), folder, here)
    assert parts(folder) == expected


def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    alone = fill(asked(), opened(tmp_path / "1", asked()), here)
    together = fill(asked(), opened(tmp_path / "2", asked()), pool(2))
    assert parts(alone.folder) == parts(together.folder)
    assert alone.manifest["digest"] == together.manifest["digest"]


def test_an_error_of_a_study_comes_out_of_its_process(tmp_path: Path) -> None:
    source = tmp_path / "broken.py"
    source.write_text(
        "from sim.studies.baseline import Baseline as B\nfrom sim.errors import ParameterError\n"
        "class Broken(B):\n    name = 'broken'\n"
        "    def play(self, point, **sizes):\n        raise ParameterError('expected luck, got none')\n"
    )
    question = plan(str(source), AXES, runs=2, rounds=2)
    with pytest.raises(SimError, match="expected luck"):
        fill(question, opened(tmp_path / "out", question), pool(2))


def test_a_killed_process_is_an_error_that_a_restart_helps(tmp_path: Path) -> None:
    source = tmp_path / "killed.py"
    source.write_text(
        "import os\nfrom sim.studies.baseline import Baseline as B\n"
        "class Killed(B):\n    name = 'killed'\n"
        "    def play(self, point, **sizes):\n        os._exit(9)\n"
    )
    question = plan(str(source), AXES, runs=2, rounds=2)
    with pytest.raises(WorkerLost, match="run the same command"):
        fill(question, opened(tmp_path / "out", question), pool(2))


OTHER = [
    (plan("baseline", AXES, runs=11, rounds=5), "runs is 10 there and 11 here"),
    (plan("baseline", AXES, runs=10, rounds=6), "rounds is 5 there and 6 here"),
    (plan("baseline", AXES, runs=10, rounds=5, seed=1), "seed is 0 there and 1 here"),
    (plan("baseline", {**AXES, "stake": (10**9,)}, runs=10, rounds=5), "axes is"),
]


@pytest.mark.parametrize(("other", "words"), OTHER, ids=[words for _, words in OTHER])
def test_results_of_another_question_are_refused_and_kept(tmp_path: Path, other: Plan, words: str) -> None:
    kept = parts(fill(asked(), opened(tmp_path, asked()), here).folder)
    with pytest.raises(ResultsError, match=words):
        opened(tmp_path, other)
    assert parts(opened(tmp_path, asked())) == kept


def test_fresh_replaces_another_question_and_goes_on_with_the_same(tmp_path: Path) -> None:
    fill(asked(), opened(tmp_path, asked()), here)
    assert opened(tmp_path, asked(), fresh=True).missing() == []
    assert opened(tmp_path, asked(seed=1), fresh=True).missing() == list(range(COUNT))


def test_fresh_replaces_what_is_sims_and_leaves_other_files(tmp_path: Path) -> None:
    results = fill(asked(), opened(tmp_path, asked()), here)
    write_report(results)
    (tmp_path / "notes.txt").write_text("years of work")
    (tmp_path / ".partial-report").write_text("half of a page")
    again = opened(tmp_path, asked(seed=1), fresh=True)
    assert again.missing() == list(range(COUNT))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".partial-report",
        "manifest.json",
        "notes.txt",
        "parts",
    ]
    assert fill(asked(seed=1), opened(tmp_path, asked(seed=1)), here).rows.count == COUNT * 10


def test_an_interrupted_replacement_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    fill(asked(), opened(tmp_path, asked()), here)
    (tmp_path / "notes.txt").write_text("years of work")
    with monkeypatch.context() as patch:
        patch.setattr("sim.results.folder.write_atomically", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opened(tmp_path, asked(seed=1), fresh=True)
    assert opened(tmp_path, asked(seed=1), fresh=True).missing() == list(range(COUNT))


def test_a_first_manifest_that_was_being_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / ".partial-x").write_text('{"format"')
    assert opened(tmp_path, asked()).missing() == list(range(COUNT))


def test_rows_without_their_question_are_refused(tmp_path: Path) -> None:
    kept = parts(fill(asked(), opened(tmp_path, asked()), here).folder)
    text = (tmp_path / "manifest.json").read_bytes()
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ResultsError, match="one with other files"):
        opened(tmp_path, asked(seed=1))
    (tmp_path / "manifest.json").write_bytes(text)
    assert parts(opened(tmp_path, asked())) == kept


def test_rows_that_are_gone_on_with_keep_their_manifest(tmp_path: Path) -> None:
    first = {**manifest_of(asked()), "commit": "a" * 40}
    text = page(fill(asked(), Folder.open(tmp_path, first), here))
    later = Folder.open(tmp_path, {**first, "commit": "b" * 40})
    assert later.manifest["commit"] == "a" * 40
    assert page(fill(asked(), later, here)) == page(Results.at(tmp_path)) == text


def test_a_study_that_moved_is_found_where_it_is(tmp_path: Path) -> None:
    text = "from sim.studies.baseline import Baseline as B\nclass Mine(B):\n    name = 'mine'\n    runs = 2\n"
    (tmp_path / "old.py").write_text(text)
    question = plan(str(tmp_path / "old.py"), AXES)
    fill(question, opened(tmp_path / "out", question), here)
    (tmp_path / "old.py").rename(tmp_path / "new.py")
    moved = plan(str(tmp_path / "new.py"), AXES)
    assert opened(tmp_path / "out", moved).missing() == []
    assert Results.at(tmp_path / "out").study.name == "mine"


def test_rows_of_other_code_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    text = "from sim.studies.baseline import Baseline as B\nclass Mine(B):\n    name = 'mine'\n    runs = 2\n"
    source.write_text(text)
    opened(tmp_path / "out", plan(str(source), AXES))
    source.write_text(text + "    # Another thought.\n")
    with pytest.raises(ResultsError, match="code is"):
        opened(tmp_path / "out", plan(str(source), AXES))


def test_the_code_of_rows_is_all_that_a_study_rests_on() -> None:
    names = {str(path.relative_to(REPOSITORY)) for path in sources(Baseline())}
    assert {
        "sim/studies/baseline.py",
        "sim/studies/study.py",
        "sim/engine/market.py",
        "sim/parameters.py",
    } <= names
    assert {"sim/mechanism/draw.py", "sim/theory/escape.py", "protocol/tasks/economics.py"} <= names
    assert {
        "sim/sweeping/chunk.py",
        "protocol/chain/recommendation.py",
        "protocol/chain/presets/recommended.toml",
    } <= names
    assert not {"sim/figures.py", "sim/cli.py", "sim/results/report.py", "sim/studies/griefing.py"} & names


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ResultsError, match="expected an empty folder"):
        opened(tmp_path, asked(), fresh=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 99}', '{"format": 1}'])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ResultsError, match="manifest"):
        Results.at(tmp_path)
    with pytest.raises(ResultsError, match="manifest"):
        opened(tmp_path, asked(), fresh=True)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    folder = fill(asked(), opened(tmp_path, asked()), here).folder
    folder.part(2).write_bytes(folder.part(2).read_bytes()[:100])
    with pytest.raises(ResultsError, match=r"00002\.parquet: expected rows as Parquet"):
        Rows(folder)


def test_damage_inside_a_part_is_named_when_its_column_is_read(tmp_path: Path) -> None:
    folder = fill(asked(), opened(tmp_path, asked()), here).folder
    column = next(
        found
        for found in map(pq.read_metadata(folder.part(2)).row_group(0).column, range(100))
        if found.path_in_schema == "escaped"
    )
    data = bytearray(folder.part(2).read_bytes())
    data[column.data_page_offset : column.data_page_offset + column.total_compressed_size] = bytes(
        column.total_compressed_size
    )
    folder.part(2).write_bytes(data)
    rows = Rows(folder)
    assert rows["burned"].size == COUNT * 10
    for read in (lambda: rows["escaped"], lambda: arrow(folder)):
        with pytest.raises(ResultsError, match=r"00002\.parquet: expected rows as Parquet.*remove the file"):
            read()


def test_parts_are_closed_once_they_are_read(tmp_path: Path) -> None:
    rows = Rows(fill(asked(), opened(tmp_path, asked()), here).folder)
    assert rows["escaped"].size == rows.count
    held = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
    assert not any(path.is_relative_to(tmp_path) for path in held)


def test_what_the_system_refuses_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    folder = fill(asked(), opened(tmp_path, asked()), here).folder
    monkeypatch.setattr("sim.results.table.pq.ParquetFile", refused)
    with pytest.raises(ResultsError, match="Too many open files") as caught:
        Rows(folder)
    assert "remove" not in str(caught.value)


def test_a_manifest_says_what_was_asked(tmp_path: Path) -> None:
    opened(tmp_path, asked())
    about = json.loads((tmp_path / "manifest.json").read_text())
    question = about["question"]
    assert question["study"] == "baseline"
    assert (question["runs"], question["rounds"], question["seed"]) == (10, 5, 0)
    assert question["axes"]["false_share"] == {"unit": "share", "values": [0.1, 0.5]}
    assert question["parameters"]["stake"] == {"unit": "tokens", "value": MarketParameters().stake}
    assert (about["points"], about["parts"]) == (COUNT, COUNT)
    assert about["versions"]["numpy"] == np.__version__


def test_a_notebook_gets_rows_and_its_folder_goes_with_them() -> None:
    results = sim.run(
        "baseline", runs=3, rounds=2, params={"stake": [500, 600], "honest_share": 0.5, "false_share": 1}
    )
    assert results.table.num_rows == 6
    assert sorted(set(results.rows["stake"])) == [500e6, 600e6]
    path = results.folder.path
    assert path.exists()
    rows = results.rows
    del results
    assert rows["convicted"].size == 6
    del rows
    assert not path.exists()
    with pytest.raises(SimError, match="stake: expected"):
        sim.run("baseline", params={"stake": -1})
