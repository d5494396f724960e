"""Studies in users' files: a file without a complete study is refused with a message at every attempt."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sim.errors import SimError, StudyError
from sim.studies.catalogue import study

HEAD = "from sim.studies.study import Answer, Study\n"
ANSWER = "    def answer(self, table):\n        return Answer([])\n"
REFUSED = [
    (HEAD, "expected one subclass of Study, got 0"),
    (HEAD + "class Mine(Study):\n    name = question = 'mine'\n", "expected a study with answer, got Mine"),
    (HEAD + "class Mine(Study):\n    name = 'mine'\n" + ANSWER, "expected a study with question"),
    ("1 / 0\n", "ZeroDivisionError"),
    ("from sim.errors import ParameterError\nraise ParameterError('expected luck')\n", "expected luck"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_no_study_is_refused_each_time(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    for _ in range(2):
        with pytest.raises(SimError, match=words):
            study(str(path))


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_half_of_a_module_is_not_kept(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        f"{HEAD}class Mine(Study):\n    name = question = 'mine'\n{ANSWER}raise {error.__name__}\n"
    )
    before = set(sys.modules)
    for _ in range(2):
        with pytest.raises(error):
            study(str(path))
    assert not {name for name in set(sys.modules) - before if name.startswith("sim_study_")}


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(StudyError, match="did you mean baseline"):
        study("baselin")
