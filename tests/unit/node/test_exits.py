"""Errors end in a message and an exit code, defects leave a traceback in a file, a closed pipe is fine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.errors import SourceError
from protocol.errors import AssayError, InternalError, Retryable
from protocol.node.exits import reported
from solver.errors import StakeSlashed


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (AssayError("wrong chain id:\n expected 1"), 2, "error: wrong chain id: expected 1\n"),
        (Retryable("port in use"), 1, "error: port in use\n"),
        (StakeSlashed("task 3: slashed"), 3, "error: task 3: slashed\n"),
        (
            SourceError("it raises:\n  line 3\nValueError: x"),
            2,
            "error: it raises:\n  line 3\nValueError: x\n",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_an_operators_error_is_its_message_and_a_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, reported():
        raise error
    assert ended.value.code == code
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("error", [ZeroDivisionError("a defect"), InternalError("a defect")])
def test_a_defect_keeps_its_traceback_in_a_file(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, reported():
        raise error
    line = capsys.readouterr().err
    assert ended.value.code == 1
    assert line.startswith(f"error: internal error: {type(error).__name__}: a defect; details in ")
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
