"""The submitter's Python file: what it must provide, and a clear error when it does not."""

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
    ("text", "lines"),
    [
        ("x = (", ['digits.py", line 1', "SyntaxError: '(' was never closed"]),
        (
            "import no_such_package",
            ["line 1, in <module>", "ModuleNotFoundError: No module named 'no_such_package'"],
        ),
        (
            "def half(x):\n    return x / 0\nhalf(1)",
            ["line 3, in <module>", "line 2, in half", "ZeroDivisionError: division by zero"],
        ),
        ("import sys\nsys.exit(3)", ["line 2, in <module>", "SystemExit: 3"]),
        ("def build(steps):\n    return {}['model']", ["line 2, in build", "KeyError: 'model'"]),
        ("def build(steps):\n    raise SystemExit", ["line 2, in build"]),
    ],
)
def test_an_error_of_the_source_is_shown_as_its_own_traceback(
    tmp_path: Path, text: str, lines: list[str]
) -> None:
    file = written(tmp_path, DIGITS)
    (tmp_path / "digits.py").write_text(text)
    with pytest.raises(SourceError) as caught:
        build(read(file))
    told = str(caught.value)
    at = [told.index(line) for line in lines]
    assert at == sorted(at)
    for hidden in ("importlib", "assay/source.py", "exec_module"):
        assert hidden not in told
    assert type(caught.value.__cause__).__name__ in told


def test_a_defect_of_the_package_is_no_error_of_the_source(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, DIGITS)
    (tmp_path / "digits.py").write_text(
        "from protocol.program.builder import Builder\ndef build(steps): Builder('step').constant(None, (), 0)"
    )
    with pytest.raises(AttributeError):
        build(read(file))


def test_an_evaluation_that_fails_is_shown_as_its_own_traceback(tmp_path: Path) -> None:
    file = written(tmp_path, DIGITS)
    (tmp_path / "digits.py").write_text("def held_out_accuracy(state): return state['weight']")
    with pytest.raises(SourceError, match=r"(?s)line 1, in held_out_accuracy.*KeyError: 'weight'"):
        evaluate(read(file), {})


@pytest.mark.parametrize(
    ("text", "got"),
    [
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
