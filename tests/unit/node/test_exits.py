"""Errors end in one line and their exit code, defects leave their traceback in a file, a closed pipe is no error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from protocol.node.exits import ExitCode, OperatorError, Retryable, StakeSlashed, reported


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OperatorError("wrong chain id:\n expected 1"), 2, "error: wrong chain id: expected 1\n"),
        (Retryable("port in use"), 1, "error: port in use\n"),
        (StakeSlashed("task 3: slashed"), 3, "error: task 3: slashed\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_an_operators_error_is_one_line_and_a_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, reported():
        raise error
    assert ended.value.code == code
    assert capsys.readouterr().err == line


def test_an_error_of_a_library_is_told_by_the_one_who_knows(capsys: pytest.CaptureFixture[str]) -> None:
    def known(error: BaseException) -> ExitCode | None:
        return ExitCode.HOPELESS if isinstance(error, LookupError) else None

    with pytest.raises(SystemExit) as ended, reported(known):
        raise LookupError("no such file")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: no such file\n"


def test_a_defect_keeps_its_traceback_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, reported():
        raise ZeroDivisionError("a defect")
    line = capsys.readouterr().err
    assert ended.value.code == 1
    assert line.startswith("error: internal error: ZeroDivisionError: a defect; details in ")
    kept = Path(line.split()[-1])
    assert "Traceback" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0
    kept.unlink()


def test_no_error_passes() -> None:
    with reported():
        pass


def test_a_reader_that_leaves_early_is_no_error() -> None:
    program = (
        "from protocol.node.exits import reported\n"
        "with reported():\n"
        "    for _ in range(100000): print('x' * 100)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
