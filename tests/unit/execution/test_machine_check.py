"""The check of the machine's arithmetic in a separate process: what it reports, and what follows if the
process ends without a valid report.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from protocol.errors import ExitCode, exit_code_of
from protocol.execution.device import device_name
from protocol.execution.errors import CheckLost, DeviceError
from protocol.execution.machine_check import check_machine
from protocol.numerics.errors import SelfCheckError

FLUSHING = "import torch; torch.set_flush_denormal(True)"


def spoil(folder: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Make the process that checks the machine run the statement `what` first. Other processes do not run it."""
    lines = f"import sys\nif 'protocol.execution.machine_check' in sys.orig_argv:\n    {what}\n"
    (folder / "sitecustomize.py").write_text(lines)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_sound_machine_is_described() -> None:
    found, threads = check_machine("cpu"), torch.get_num_threads()
    name = device_name(torch.device("cpu")).removesuffix(f", {threads} threads")
    assert (found.torch, found.device) == (torch.__version__, "cpu")
    assert re.fullmatch(rf"{re.escape(name)}, [1-9]\d* threads", found.name), "with its own number of threads"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DeviceError, match="found none; install the CUDA build"):
        check_machine("cuda")


def test_wrong_bits_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(tmp_path, monkeypatch, FLUSHING)
    with pytest.raises(SelfCheckError, match="do not compute commitments on this machine"):
        check_machine("cpu")


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        (r"import os; os.write(2, b'no room\n'); os._exit(1)", "exit code 1; no room"),
        (r"import os; os.write(1, b'[]]\n'); os._exit(0)", "exit code 0"),
        (r"import os; os.write(1, b'[]\n'); os._exit(0)", "exit code 0"),
        (r"""import os; os.write(1, b'{"error": "Other"}\n'); os._exit(0)""", "exit code 0"),
    ],
)
def test_a_check_that_says_nothing_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, said: str
) -> None:
    spoil(tmp_path, monkeypatch, end)
    with pytest.raises(CheckLost, match=said) as found:
        check_machine("cpu")
    assert exit_code_of(found.value) is ExitCode.RETRY


def test_a_node_on_a_machine_with_wrong_bits_takes_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(tmp_path, monkeypatch, FLUSHING)
    code = "import verifier.cli as cli; cli.main()"
    command = [sys.executable, "-c", code, "watch", "--home", str(tmp_path), "--rpc", "http://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.HOPELESS
    assert "do not compute commitments on this machine" in done.stderr.splitlines()[-1]
