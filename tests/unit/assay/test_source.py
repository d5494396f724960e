"""The submitter's own Python file: what it must give, and the one clear line when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.description import read
from assay.errors import SourceError
from assay.source import build, evaluate
from protocol.program.parallel import units
from tests.toolchain.project import REPOSITORY
from tests.unit.assay.test_description import DIGITS, written

GPT, GPT_SOURCE = ((REPOSITORY / "examples" / name).read_text() for name in ("gpt.toml", "gpt.py"))


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("x = (", "SyntaxError"),
        ("import no_such_package", "ModuleNotFoundError"),
        ("1 / 0", "ZeroDivisionError"),
        ("def other(): ...", "expected a function build"),
        ("build = 3", "expected a function build"),
        ("def build(steps): return steps", "got int"),
    ],
)
def test_a_source_that_does_not_build_is_one_clear_line(tmp_path: Path, text: str, got: str) -> None:
    file = written(tmp_path, DIGITS)
    (tmp_path / "digits.py").write_text(text)
    with pytest.raises(SourceError, match=got):
        build(read(file))


def test_micro_batches_of_the_task_file_reach_the_step(tmp_path: Path) -> None:
    file = tmp_path / "task.toml"
    whole = GPT.replace("# micro_batches", "micro_batches")
    for text, parts in ((GPT, 0), (whole, 4)):
        (tmp_path / "gpt.py").write_text(GPT_SOURCE)
        file.write_text(text)
        assert len(units(build(read(file)).step_program.program)) == parts
    (tmp_path / "gpt.py").write_text("def build(steps): return steps")
    with pytest.raises(SourceError, match="expected it to take micro_batches"):
        build(read(file))


def test_the_evaluation_is_the_function_that_the_file_names(tmp_path: Path) -> None:
    file = written(tmp_path, DIGITS)
    (tmp_path / "digits.py").write_text("def held_out_accuracy(state): return len(state) / 4")
    assert evaluate(read(file), {}) == 0.0
    (tmp_path / "task.toml").write_text(DIGITS.replace('evaluate = "held_out_accuracy"', ""))
    assert evaluate(read(file), {}) is None
