"""Makes the proof of a result, with facts read from the chain, and compares a stranger's proof with the chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import ProofMismatch, ResultError
from assay.proofs import BlockFact, GameFact, Proof, SeatFact, TaskFacts, differing, require_consistent
from assay.results import WITH_RESULT, require_result
from assay.status import games_on, segments_to_replay
from protocol.chain.blocks import Block
from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.deployed_code import differences, is_early_block
from protocol.chain.errors import RpcRefused
from protocol.chain.views import AuditView, Seat, TaskStatus, TaskView
from protocol.commitments import state_root
from protocol.tasks.bundles.manifest import Manifest
from protocol.tasks.task import Terms


@dataclass(frozen=True)
class Compared:
    """The outcome of comparing a proof: sentences on what was compared and on what was not, and the task's
    present state on the chain.
    """

    manifest: Manifest
    status: TaskStatus
    final: bool
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]


def prove(
    client: Client,
    task: int,
    segment_roots: Sequence[bytes] | None,
    tensor_roots: Sequence[bytes],
    manifest: bytes,
) -> Proof:
    """Make a proof of a task's result. `tensor_roots` are the roots of the result's tensors. Raises
    ResultError, ChainError.
    """
    with client.connection.view() as block:
        view = client.market.task(task)
        require_result(view)
        if state_root(tensor_roots) != view.result:
            raise ResultError(
                f"task {task}",
                expected="the result that was fetched",
                got=f"one with root {view.result.hex()}, for the chain was re-organised",
                remedy="try again",
            )
        facts = _facts(client, view)
    return Proof(
        deployment=client.deployment,
        block=_fact(block),
        final=is_final(client, view),
        task=facts,
        segment_roots=None if segment_roots is None else list(map(_hash, segment_roots)),
        tensor_roots=list(map(_hash, tensor_roots)),
        manifest=manifest.decode(),
    )


def compare_contracts(connection: Connection, proof: Proof) -> tuple[list[str], list[str]]:
    """Compare the contracts of a proof with this package's. Returns sentences on what was compared, and on
    what was not. Raises WrongChain, ProofMismatch, UnknownArithmetic.
    """
    deployment = proof.deployment
    connection.require_chain(deployment.chain_id)
    if connection.genesis != deployment.genesis:
        raise ProofMismatch("deployment.genesis", connection.genesis, deployment.genesis)
    found = list(differences(connection, deployment))
    if found:
        raise ProofMismatch("deployment", "this package's contracts, with these arguments", "; ".join(found))
    checked = ["the contracts are this package's, with the parameters, token and beacon that the proof names"]
    try:
        if not is_early_block(connection, deployment):
            raise ProofMismatch("deployment.block", "one before the vault was initialised", deployment.block)
    except RpcRefused:
        return checked, ["the block from which the contracts' events are read: the node has no state of it"]
    return checked, []


def compare(client: Client, proof: Proof) -> Compared:
    """Compare a proof's statements about its task with the contracts. A settled task cannot change, so it is
    read at the newest block; an unsettled one is read at the proof's block.

    Raises ProofMismatch, ChainError, and ResultError if the node no longer has the state of that block.
    """
    connection, said = client.connection, proof.task
    at = _standing(connection, proof.block)
    settled = said.status == "settled"
    try:
        with connection.view("latest" if settled else at.hash):
            view = client.market.task(said.id)
            if view.status not in WITH_RESULT:
                raise ProofMismatch("task.status", view.status.name.lower(), said.status)
            wrong = differing(said, _facts(client, view), "task")
    except RpcRefused as error:
        if settled:
            raise
        raise ResultError(
            f"proof of block {at.number}",
            expected="a node that has the state of this block, for the task was not settled yet",
            got=error.message,
            remedy="make the proof again by `assay result`, or name the URL of an archive node with --rpc",
        ) from error
    if wrong is not None:
        raise ProofMismatch(*wrong)
    manifest = require_consistent(proof)
    now = view if settled else client.market.task(said.id)
    final = is_final(client, now)
    if proof.final and not final:
        raise ProofMismatch("final", "False", "True")
    seats, looks, games = len(said.seats), len(said.looks), len(said.games)
    checked = [
        f"block {at.number} is the chain's",
        f"terms, parties, price, roots, seats ({seats}), looks ({looks}) and games ({games}) are as the contracts say",
        f"the manifest is the bundle's, and the result's {len(proof.tensor_roots)} tensor roots give its root",
    ]
    unchecked = ["the roots of the segments: the proof has none"]
    if proof.segment_roots is not None:
        checked.append(
            f"its {len(proof.segment_roots)} state roots give the committed root of the segment tree"
        )
        unchecked = []
    return Compared(manifest, now.status, final, tuple(checked), tuple(unchecked))


def _standing(connection: Connection, said: BlockFact) -> Block:
    """The chain's block that has the number of the proof's block. Raises ProofMismatch if the two blocks
    differ, or if the chain has no such block yet.
    """
    newest = connection.block()
    if said.number > newest.number:
        raise ProofMismatch(
            "block.number", f"at most {newest.number}", said.number, "ask a node that is not behind"
        )
    block = connection.block(said.number)
    wrong = differing(said, _fact(block), "block")
    if wrong is not None:
        raise ProofMismatch(*wrong)
    return block


def _fact(block: Block) -> BlockFact:
    return BlockFact(number=block.number, hash=block.hash, time=block.time)


def _facts(client: Client, view: TaskView) -> TaskFacts:
    """What the contracts say about a task. Must be called inside a view."""
    client.audit.ahead([view.task])
    terms, audit = client.market.terms(view.task), client.audit.audit(view.task)
    games = games_on(client, [view.task])
    seats, looks = client.audit.seats(view.task), client.audit.looks(view.task)
    return TaskFacts(
        id=view.task,
        status="settled" if view.status is TaskStatus.SETTLED else "submitted",
        submitter=view.submitter,
        solver=view.solver,
        price=view.price,
        terms=terms,
        segment_root=_hash(view.root),
        result_root=_hash(view.result),
        seats=[_seat(client, view.task, seat, audit, terms) for seat in seats],
        looks=[_seat(client, view.task, look, audit, terms) for look in looks],
        games=[
            GameFact(
                number=game.game,
                challenger=game.challenger,
                segment=game.segment,
                step=game.step,
                phase=game.phase.name.lower(),
                verdict=game.verdict.name.lower(),
            )
            for game in games
        ],
    )


def _seat(client: Client, task: int, seat: Seat, audit: AuditView, terms: Terms) -> SeatFact:
    attestation = client.audit.attestation(task, seat.number)
    return SeatFact(
        number=seat.number,
        account=seat.account,
        segments=segments_to_replay(seat, audit, terms),
        attested=seat.attested,
        caught=seat.caught,
        attestation=None if attestation is None else _hash(attestation),
    )


def is_final(client: Client, view: TaskView) -> bool:
    """Whether a task is settled in a final block."""
    return view.status is TaskStatus.SETTLED and client.is_over_for_good(view.task)


def _hash(value: bytes) -> str:
    return f"0x{bytes(value).hex()}"
