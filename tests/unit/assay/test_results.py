"""The folder of a result: no other task's result, and no file of a user, is replaced there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay import proof_files
from assay.errors import ResultError
from assay.holders import Holders
from assay.proofs import BlockFact, Proof, TaskFacts
from assay.replacing import origin_of, require_replaceable
from assay.results import Result, save, save_history
from assay.weights import header
from protocol.chain.views import TaskStatus
from protocol.execution.saving import safetensors_of
from tests.chain.trees import terms
from tests.unit.node.test_party_data import ME, deployed
from tests.unit.solver import tiny

DEPLOYMENT = deployed(1)
ROOT = "0x" + "11" * 32


def result(task: int, origin: Mapping[str, str] | None = None) -> Result:
    found = origin_of(DEPLOYMENT, task) if origin is None else origin
    program, holders = tiny.step_program(), cast(Holders, None)
    return Result(task, TaskStatus.SUBMITTED, bytes(32), found, program, tiny.initial(), holders)


def with_history(task: int) -> Any:
    """A stub of a result that keeps a history."""
    table = {"step": [1, 2], "loss": [0.5, 0.25]}
    return SimpleNamespace(state={}, program=SimpleNamespace(history=lambda _state: table), task=task)


def proof(task: int) -> Proof:
    facts = TaskFacts(
        id=task,
        status="submitted",
        submitter=ME,
        solver=ME,
        price=5,
        terms=terms(),
        segment_root=ROOT,
        result_root=ROOT,
        seats=[],
        looks=[],
        games=[],
    )
    return Proof(
        deployment=DEPLOYMENT,
        block=BlockFact(number=7, hash=ROOT, time=9),
        final=False,
        task=facts,
        segment_roots=None,
        tensor_roots=[ROOT],
        manifest="",
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_another_tasks_result_is_not_replaced(tmp_path: Path) -> None:
    save(result(1), tmp_path)
    proof_files.save(proof(1), tmp_path)
    save_history(with_history(1), tmp_path)
    assert header(tmp_path / "state.safetensors").items() >= origin_of(DEPLOYMENT, 1).items()
    before = contents(tmp_path)
    assert before.keys() == {"state.safetensors", "proof.json", "metrics.csv"}
    with pytest.raises(ResultError, match=r"or that of task 2 .*, got that of task 1 of market 0x"):
        save(result(2), tmp_path)
    (tmp_path / "state.safetensors").unlink()
    with pytest.raises(ResultError, match=r"no proof\.json, or that of task 2"):
        save(result(2), tmp_path)
    (tmp_path / "state.safetensors").write_bytes(before["state.safetensors"])
    assert contents(tmp_path) == before

    save(result(1), tmp_path)
    proof_files.save(proof(1), tmp_path)
    assert save_history(result(1), tmp_path) is None
    assert contents(tmp_path).keys() == {"state.safetensors", "proof.json"}, "no history of an earlier result"


@pytest.mark.parametrize("changed", [{"market": "0x" + "99" * 20}, {"genesis": "0x" + "99" * 32}])
def test_the_same_number_of_another_market_is_another_task(tmp_path: Path, changed: dict[str, str]) -> None:
    save(result(1), tmp_path)
    with pytest.raises(ResultError, match="got that of task 1 of market"):
        save(result(1, origin_of(DEPLOYMENT, 1) | changed), tmp_path)


@pytest.mark.parametrize("name", ["state.safetensors", "proof.json", "metrics.csv"])
def test_a_file_that_no_result_has_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ResultError, match=f"no {name}, .*got one that no result has"):
        require_replaceable(tmp_path, origin_of(DEPLOYMENT, 1))
    assert contents(tmp_path) == {name: b"mine"}


def test_the_result_of_an_older_release_is_told_by_its_task_alone(tmp_path: Path) -> None:
    made = result(1)
    data = safetensors_of(made.program, made.state, {"task": "1"})
    (tmp_path / "state.safetensors").write_bytes(data)
    (tmp_path / "metrics.csv").write_text("step,loss\n")
    with pytest.raises(ResultError, match="got that of task 1;"):
        save(result(2), tmp_path)
    save(result(1), tmp_path)
