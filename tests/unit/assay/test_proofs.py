"""Proof files: strict reading, and what must match the chain's facts. No node is asked here."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ProofMalformed, ProofMismatch
from assay.proofs import (
    MAX_BYTES,
    BlockFact,
    GameFact,
    Proof,
    TaskFacts,
    differing,
    load_proof,
    parse_proof,
    require_consistent,
)
from assay.verify_report import Report
from protocol.chain.views import TaskStatus
from protocol.commitments import segment_tree, state_root
from protocol.errors import ExitCode
from protocol.tasks.bundles import write_bundle
from protocol.tasks.task import Terms
from tests.chain.solver_stage import tiny_bundle
from tests.chain.trees import terms
from tests.unit.node.test_party_data import ME, deployed

GAME = GameFact(number=1, challenger=ME, segment=0, step=0, phase="closed", verdict="challenger_silent")


def hexed(value: bytes) -> str:
    return "0x" + value.hex()


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Proof:
    """The proof of a run whose two segments change nothing."""
    bundle, folder = tiny_bundle(), tmp_path_factory.mktemp("bundle")
    bundle_hash = write_bundle(bundle, folder)
    tensors = [tensor.root for tensor in bundle.state]
    root = state_root(tensors)
    said = terms(bundle_hash=bundle_hash, initial_state=root, state_tensors=2, segments=2)
    return Proof(
        deployment=deployed(1),
        block=BlockFact(number=7, hash=hexed(bytes(31) + b"\x07"), time=9),
        final=True,
        task=TaskFacts(
            id=3,
            status="settled",
            submitter=ME,
            solver=ME,
            price=5,
            terms=said,
            segment_root=hexed(segment_tree([root] * 3).root),
            result_root=hexed(root),
            seats=[],
            looks=[],
            games=[],
        ),
        segment_roots=[hexed(root)] * 3,
        tensor_roots=list(map(hexed, tensors)),
        manifest=(folder / "manifest.json").read_text(),
    )


def test_a_proof_is_read_as_it_was_written(proof: Proof, tmp_path: Path) -> None:
    again = parse_proof(proof.text, "it")
    assert again == proof
    assert isinstance(again.task.terms, Terms)
    assert differing(again.task, proof.task, "task") is None
    assert [entry.name for entry in require_consistent(again).state] == ["weights", "count"]
    file = tmp_path / "proof.json"
    file.write_text(proof.text)
    assert load_proof(file) == proof
    without = proof.model_copy(update={"segment_roots": None})
    assert parse_proof(without.text, "it").roots is None


WRONG: list[tuple[str, Any]] = [
    ("format", "assay-bundle"),
    ("version", 2),
    ("more", 1),
    ("final", 1),
    ("block", {"number": -1, "hash": "0x" + "0" * 64, "time": 0}),
    ("block.hash", "0x" + "A" * 64),
    ("block.hash", "0x" + "0" * 63),
    ("task.id", 0),
    ("task.id", "3"),
    ("task.id", 3.0),
    ("task.status", "slashed"),
    ("task.solver", "0x12"),
    ("task.price", -1),
    ("task.price", 1 << 128),
    ("task.terms", None),
    ("task.terms", []),
    ("task.terms.budget", "1"),
    ("task.terms.budget", True),
    ("task.terms.budget", 0),
    ("task.terms.budget", 10**4_000),
    ("task.terms.segments", 0),
    ("task.terms.program_id", "0x12"),
    ("task.terms.program_id", "0xzz"),
    ("task.terms.program_id", "12" * 32),
    ("task.terms.bundle", ""),
    ("task.terms.bundle", "\ud800"),
    ("task.terms.more", 1),
    ("task.seats", [{}]),
    ("task.seats", [None] * 33),
    ("segment_roots", "0x"),
    ("segment_roots", ["0x"]),
    ("tensor_roots", []),
    ("tensor_roots", None),
    ("manifest", None),
    ("deployment.version", 6),
    ("deployment.addresses.market", "0x12"),
]


@pytest.mark.parametrize(("where", "value"), WRONG)
def test_what_is_no_proof_is_one_clear_error(proof: Proof, where: str, value: Any) -> None:
    told = json.loads(proof.text)
    *path, last = where.split(".")
    inner = told
    for key in path:
        inner = inner[key]
    inner[last] = value
    with pytest.raises(ProofMalformed, match="expected an assay-proof of version 1") as caught:
        parse_proof(json.dumps(told), "it")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_a_field_that_is_missing_is_named(proof: Proof) -> None:
    for field in json.loads(proof.text):
        told = json.loads(proof.text)
        del told[field]
        if field in ("format", "version"):
            continue  # they have a default
        with pytest.raises(ProofMalformed, match=f"got {field}: Field required"):
            parse_proof(json.dumps(told), "it")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    with file.open("wb") as huge:
        huge.truncate(1 << 40)
    with pytest.raises(ProofMalformed, match=f"at most {MAX_BYTES} bytes"):
        load_proof(file)


def test_the_first_difference_is_named_by_its_path(proof: Proof) -> None:
    said = proof.task
    for changed, where in (
        (said.model_copy(update={"price": 6}), "task.price"),
        (said.model_copy(update={"terms": replace(said.terms, reward=1)}), "task.terms.reward"),
        (said.model_copy(update={"games": [GAME]}), "task.games"),
    ):
        found = differing(changed, said, "task")
        assert found is not None
        assert found[0] == where


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("manifest", "{}", "manifest"),
        ("tensor_roots", ["0x" + "11" * 32], "tensor_roots"),
        ("tensor_roots", ["0x" + "11" * 32] * 2, "tensor_roots"),
        ("segment_roots", [], "segment_roots"),
        ("segment_roots", ["0x" + "11" * 32] * 3, "segment_roots"),
    ],
)
def test_what_does_not_hash_to_what_the_chain_says_is_named(
    proof: Proof, field: str, value: Any, named: str
) -> None:
    with pytest.raises(ProofMismatch) as caught:
        require_consistent(proof.model_copy(update={field: value}))
    assert caught.value.field == named
    assert caught.value.exit_code is ExitCode.FRAUD


def test_a_manifest_that_no_party_would_take_is_refused(proof: Proof) -> None:
    said = replace(proof.task.terms, bundle_hash=sha256(b"{}").digest())
    task = proof.task.model_copy(update={"terms": said})
    with pytest.raises(ProofMismatch, match="should not have been taken"):
        require_consistent(proof.model_copy(update={"task": task, "manifest": "{}"}))


@pytest.mark.parametrize(
    ("status", "has_proof", "code", "said"),
    [
        (TaskStatus.SETTLED, True, ExitCode.FINE, "equal: all"),
        (TaskStatus.SUBMITTED, True, ExitCode.FINE, "equal: all"),
        (TaskStatus.SLASHED, True, ExitCode.FRAUD, "does not stand: its task is slashed"),
        (TaskStatus.SLASHED, False, ExitCode.FRAUD, "does not stand: its task is slashed"),
        (TaskStatus.VOID, True, ExitCode.HOPELESS, "does not stand: its task is void"),
        (TaskStatus.UNPAID, True, ExitCode.HOPELESS, "does not stand: its task is unpaid"),
        (TaskStatus.UNPAID, False, ExitCode.FINE, "equal: all"),
        (TaskStatus.TRAINING, False, ExitCode.FINE, "equal: all"),
    ],
)
def test_a_result_stands_as_long_as_its_task_does(
    status: TaskStatus, has_proof: bool, code: ExitCode, said: str
) -> None:
    report = Report(has_proof, 1, 31337, "0x", status, False)
    assert report.code is code
    assert said in report.lines()[-1]
    report.first_false = (2, 3)
    assert report.code is ExitCode.FRAUD
    assert any("one of segments 2 to 3" in line for line in report.lines())
