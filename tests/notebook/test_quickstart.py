"""examples/quickstart.ipynb is kept without outputs; a heavy test executes it unchanged."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from protocol.chain.devnet import anvil_program
from tests.e2e.alone import clean_environment, run_alone
from tests.toolchain.project import REPOSITORY

NOTEBOOK = REPOSITORY / "examples" / "quickstart.ipynb"


def cells(path: Path) -> list[Any]:
    found: list[Any] = json.loads(path.read_text())["cells"]
    return found


def outputs(path: Path) -> str:
    """All text that a notebook's cells print or show."""
    shown = [output for cell in cells(path) if cell["cell_type"] == "code" for output in cell["outputs"]]
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in shown]
    return "\n".join("".join(text) for text in texts)


def test_it_is_kept_without_outputs() -> None:
    code = [cell for cell in cells(NOTEBOOK) if cell["cell_type"] == "code"]
    assert len(code) > 8
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    metadata = json.loads(NOTEBOOK.read_text())["metadata"]
    assert metadata.keys() == {"kernelspec", "language_info"}, "nothing about who ran it"
    for cell in code:
        ast.parse("".join(cell["source"]))


def test_the_first_cell_says_what_everybody_reads() -> None:
    first = "".join(cells(NOTEBOOK)[0]["source"])
    assert "**Every party reads the data and the weights of a task**" in first


@pytest.mark.heavy
@pytest.mark.chain
@pytest.mark.timeout(1_200)
def test_it_trains_and_checks_a_model(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="make test-heavy installs it")
    home, executed = tmp_path / "home", tmp_path / "executed.ipynb"
    home.mkdir()
    environment = clean_environment(home, anvil_program()) | {"TMPDIR": str(tmp_path)}
    done = run_alone(
        "tests.notebook.executing", str(NOTEBOOK), str(executed), environment=environment, timeout=1_100
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    said = outputs(executed)
    assert said.count("trust in all") == 2, "the price, before each task"
    assert "is over, settled: the result is final" in said
    losses = [float(found) for found in re.findall(r"step +\d+  loss ([\d.]+)", said)]
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 2
    (accuracy,) = re.findall(r"held-out accuracy ([\d.]+)", said)
    assert float(accuracy) > 0.93
    assert "the 12 tensors of result/state.safetensors are the result's, bit for bit" in said
    assert len(re.findall(r"segment \d: equal, state root", said)) == 1
    assert said.count("equal: all that was checked is as committed") == 2
