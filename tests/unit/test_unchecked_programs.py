"""A program that `check` refuses is refused by the submitter, the solver and the verifier.

Each test uses the party's own code: the function that writes a bundle, and the code by which the solver and
the verifier load the bundle of posted terms. No instruction runs.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.commitments import BlobStore
from protocol.commitments.tensors import Tensor
from protocol.node.home import Home
from protocol.program import Program, StepProgram
from protocol.program.errors import CheckError
from protocol.program.opcodes import Op
from protocol.tasks.bundles import Bundle, BundleMalformed, Limits, write_bundle
from protocol.tasks.bundles.terms import committed_terms
from protocol.tasks.task import Terms
from solver.bundle_cache import fetch_candidate, task_bundle
from solver.context import Context
from solver.settings import SolverSettings
from solver.task_folders import TaskFolders
from tests.chain.trees import terms
from tests.unit.solver import tiny
from verifier.material import Materials

NEVER: Any = None
"""A placeholder for the executor and for other arguments. None of them is used when a program is refused."""
CLIENT: Any = SimpleNamespace(connection=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN))


def unchecked() -> StepProgram:
    """The program of the tiny step, except that one addition has only one operand."""
    honest = tiny.step_program()
    program = honest.program
    number = next(n for n, i in enumerate(program.instructions) if i.op is Op.ADD)
    broken = replace(program.instructions[number], operands=program.instructions[number].operands[:1])
    instructions = (*program.instructions[:number], broken, *program.instructions[number + 1 :])
    return replace(
        honest, program=Program(program.inputs, program.outputs, instructions, program.callees, "broken")
    )


def bundle(step: StepProgram) -> Bundle:
    state = tiny.step_program().checkpoint(tiny.initial()).tensors
    return Bundle("tiny", step, state, (Tensor.from_array("data", tiny.fixed()[0].numpy()),), ())


@pytest.fixture
def posted(tmp_path: Path) -> Terms:
    """Terms of a bundle with the unchecked program. All its hashes are right."""
    made, folder = bundle(tiny.step_program()), tmp_path / "served"
    write_bundle(made, folder)
    broken = unchecked().program
    data = broken.encode()
    manifest = json.loads((folder / "manifest.json").read_bytes())
    blob = BlobStore(folder / "blobs").put(data)
    manifest["programs"][-1] |= {"id": broken.id.hex(), "blob": blob, "bytes": len(data), "hint": None}
    text = json.dumps(manifest, separators=(",", ":")).encode()
    (folder / "manifest.json").write_bytes(text)
    fields = committed_terms(made) | {"program_id": broken.id}
    return terms(**fields, bundle_hash=sha256(text).digest(), bundle=folder.as_uri())


def test_check_names_the_instruction() -> None:
    with pytest.raises(CheckError, match="broken, add"):
        unchecked().check()


def test_who_posts_a_task_writes_no_such_bundle(tmp_path: Path) -> None:
    with pytest.raises(CheckError):
        write_bundle(bundle(unchecked()), tmp_path / "new")
    assert not (tmp_path / "new" / "manifest.json").exists()


def test_a_solver_neither_bids_on_it_nor_trains_it(posted: Terms, tmp_path: Path) -> None:
    settings = SolverSettings(bundles=(tmp_path.as_uri(),))
    home, candidates = Home(tmp_path / "home"), tmp_path / "candidates"
    database = tiny.database(tmp_path)
    folders = TaskFolders(tmp_path, database)
    context = Context(CLIENT, NEVER, settings, NEVER, home, database, folders, NEVER, NEVER, candidates)
    with pytest.raises(BundleMalformed, match="pass `check`"):
        fetch_candidate(context, posted, 60)
    with pytest.raises(BundleMalformed, match="pass `check`"):
        task_bundle(context, posted)
    database.close()


def test_a_verifier_neither_replays_it_nor_attests_anything(posted: Terms, tmp_path: Path) -> None:
    limits = Limits(allowed=(tmp_path.as_uri(),))
    materials = Materials(tmp_path / "node", tmp_path / "held", NEVER, NEVER, limits)
    with pytest.raises(BundleMalformed, match="pass `check`"):
        materials.fetch(1, posted, None)
    assert not materials.has_bundle(posted)
