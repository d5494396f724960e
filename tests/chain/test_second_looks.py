"""Second looks through the typed contracts: they are drawn or lapse; the seat reveals or does not, and, if it
is accused, answers or does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.errors import Reverted
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import LookView, TaskStatus
from protocol.commitments import state_root, step_tree, tensor_root
from protocol.commitments.digests import Digester, seat_digest, segment_path
from protocol.commitments.opened_chunks import Opening, open_chunk_of
from protocol.dispute.accusing import Chunk, evidence
from protocol.dispute.keys import (
    NO_SEAT,
    accusation_word,
    priority_commitment,
    revealed_word,
    salt_hash,
    seat_salt,
)
from protocol.dispute.looks import Look
from protocol.dispute.moves import Move
from protocol.dispute.openings import open_leaf
from protocol.dispute.view import Verdict
from protocol.tasks.draws import picks, seed_of
from tests.chain.conftest import Connect
from tests.chain.rounds import word
from tests.chain.test_seats import Scene as Seats
from tests.chain.trees import ROOTS, SEGMENTS, TREE, terms

pytestmark = pytest.mark.chain

STEPS = 2
BYTES = 3_000
AT = Chunk(1, 0, 2)
LOCK = 9 * TOKEN
SOON = 20
"""Seconds in which a few transactions are mined."""


def tensor(number: int) -> bytes:
    """The bytes of the only tensor of the state in the middle of segment `number`."""
    return bytes([number]) * BYTES


def secret(client: Client, seat: int) -> bytes:
    return bytes.fromhex(client.address[2:]).ljust(31, b"\0") + bytes([seat])


@dataclass
class Attested:
    """The attestation of a seat or a look. `segment_roots` has one root for each of its `segments`: the root
    of that segment's step tree under `salt`.
    """

    client: Client
    number: int
    salt: bytes
    segments: list[int]
    result: bytes | None

    def roots(self, segment: int) -> list[bytes]:
        """Roots of a segment's states. The first and the last state have no tensors here, only made-up roots."""
        digester = Digester(self.salt, 1)
        middle = state_root([digester.tensor_root(tensor(segment), 1)])
        return [bytes([segment]) * 32, middle, bytes([segment + 1]) * 32]

    @property
    def segment_roots(self) -> list[bytes]:
        return [step_tree(self.roots(segment)).root for segment in self.segments]

    @property
    def digest(self) -> bytes:
        return seat_digest(self.segment_roots, self.result)

    def opening(self, segment: int) -> Opening:
        digester = Digester(self.salt, 1)
        tree = digester.tensor_tree(tensor(segment), 1)
        return open_chunk_of(tree, AT.chunk, [tree.root], 0, self.roots(segment), 1)


class Scene(Seats):
    """A task with one attested seat of two segments, both of which are to be looked at."""

    def __init__(self, chain: Devnet, connected: Connect) -> None:
        super().__init__(chain, connected, verifiers=5)
        self.task = self.submitted(look_chance=10_000, game_cost=2 * TOKEN, seat_lock=LOCK)
        self.draw()
        self.seat = self.attest(0)
        asked = self.solver.audit.first_draw()
        assert asked is not None
        assert (asked.task, asked.seats, asked.level) == (self.task, 0, 1)
        self.asked = asked

    def client(self, number: int) -> Client:
        """The client whose account has this seat or look."""
        account = self.solver.audit.seat(self.task, number).account
        return next(client for client in self.verifiers if client.address == account)

    def attest(self, number: int) -> Attested:
        client, audit = self.client(number), self.solver.audit
        seed, chain = audit.audit(self.task).seed, self.chain.chain_id
        salt = seat_salt(
            chain, audit.address, self.task, number, client.address, seed, secret(client, number)
        )
        result = ROOTS[SEGMENTS] if number < 32 else None
        made = Attested(client, number, salt, audit.segments(self.task, number), result)
        client.audit.attest(self.task, number, made.digest, salt_hash(salt))
        return made

    def reveal(self, look: Look) -> Attested:
        assert look.seat(2) == 0
        seat, at = self.seat, look.position(2)
        path = segment_path(seat.segment_roots, seat.result, at)
        root = seat.segment_roots[at]
        shown = secret(seat.client, seat.number)
        seat.client.looks.reveal(self.task, look.number, shown, seat.digest, root, path)
        return seat

    def post_steps(self, looker: Client, segment: int) -> int:
        """Open the looker's game on a segment and post the solver's step tree; returns the game's number."""
        calls, chain, salt = looker.commitments, self.chain.chain_id, bytes(32)
        name = priority_commitment(chain, calls.address, self.task, segment, looker.address, salt)
        calls.commit(self.task, NO_SEAT, name)
        self.chain.mine()
        before, after = (open_leaf(TREE, k, ROOTS[k]) for k in (segment - 1, segment))
        game, _ = looker.game.challenge(self.task, segment, salt, before, after)
        roots = plain_roots(segment)
        tree = step_tree(roots)
        ends = open_leaf(tree, 0, roots[0]), open_leaf(tree, STEPS, roots[STEPS])
        move = Move("expandSteps", (self.task, segment, tree.root, *ends), "step tree")
        self.solver.game.send_move(move, bytes(32))
        return game


def plain_roots(segment: int) -> list[bytes]:
    """The solver's roots of a segment's states."""
    return [ROOTS[segment - 1], state_root([tensor_root(tensor(segment))]), ROOTS[segment]]


def test_a_look_is_drawn_revealed_accused_and_answered(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected)
    task, audit = scene.task, scene.solver.audit
    scene.draw()
    seen = audit.audit(task)
    assert (seen.level, seen.look_draws, seen.looks, seen.looking, seen.looked) == (1, 1, 2, 0b11, 0)
    assert seen.picked_at == scene.solver.now()
    assert not seen.audited
    found = audit.looks(task)
    assert [seat.number for seat in found] == [32, 33]

    look = Look.of(found[1].number)
    seat = scene.reveal(look)
    (segment,) = audit.segments(task, look.number)
    assert segment == seat.segments[look.position(2)]
    root = seat.segment_roots[look.position(2)]
    shown = scene.solver.looks.look(task, look.number)
    assert shown == LookView(revealed_word(seat.salt, root), None, 0, 0, 0, 0, False)

    looker = scene.client(look.number)
    before = scene.free(looker)
    made = scene.attest(look.number)
    assert made.client is looker
    assert scene.free(looker) == before + terms().audit_fee
    assert audit.audit(task).looked == 1 << look.slot

    game = scene.post_steps(looker, segment)
    proof = evidence(tensor(segment), AT, [tensor_root(tensor(segment))], plain_roots(segment))
    looker.looks.accuse(task, look.number, game, seat.salt, root, proof)
    assert scene.solver.game.game(game).verdict is Verdict.DROPPED
    opening = seat.opening(segment)
    accused = scene.solver.looks.look(task, look.number)
    assert accused.accused == accusation_word(proof.place, opening.leaf, root)
    assert (accused.accusations, accused.until) == (1, scene.solver.now() + 50)
    assert scene.solver.looks.answers_until(task) == accused.until
    assert scene.solver.looks.open_accusations(task) == 1
    assert scene.solver.vault.lock_of(accused.lock).remaining == 2 * TOKEN
    with pytest.raises(Reverted, match="TooEarly"):
        looker.looks.take_unanswered(task, look.number)
    before = scene.free(seat.client)
    seat.client.looks.answer(task, look.number, root, opening)
    assert scene.free(seat.client) == before + 2 * TOKEN
    assert scene.solver.looks.open_accusations(task) == 0
    assert scene.solver.looks.look(task, look.number).accused is None

    looker.looks.accuse(task, look.number, 0, seat.salt, root, proof)
    scene.past(scene.solver.looks.look(task, look.number).until)
    with pytest.raises(Reverted, match="TooLate"):
        seat.client.looks.answer(task, look.number, root, opening)
    looker.looks.take_unanswered(task, look.number)
    assert audit.seat(task, seat.number).caught
    assert audit.seat(task, seat.number).attested


def test_a_look_holds_the_payment_for_six_move_times(chain: Devnet, connected: Connect) -> None:
    """The look opens its game when the window is almost over, and drops it as late as it can. Then it accuses
    whenever the task could be settled in the next second. Early answers do not help. Nothing prevents this.
    The test states the price: the look pays a game's cost to the solver, and for each accusation a game's
    cost to the seat, which may be in league with the look.
    """
    scene = Scene(chain, connected)
    task, calls = scene.task, scene.solver.looks
    scene.draw()
    for number in (32, 33):
        seat = scene.reveal(Look.of(number))
        scene.attest(number)
    looker, (segment,) = scene.client(33), scene.solver.audit.segments(task, 33)
    root = seat.segment_roots[Look.of(33).position(2)]
    proof = evidence(tensor(segment), AT, [tensor_root(tensor(segment))], plain_roots(segment))
    held_from, move_time = scene.solver.market.task(task).challenge_until, terms().move_time
    before = {client: scene.free(client) for client in (scene.solver, seat.client, looker)}

    scene.past(held_from - SOON)
    game = scene.post_steps(looker, segment)
    until = looker.game.game(game).droppable_until(terms().clock, move_time)
    for number in (game, 0, 0, 0, 0):
        chain.connection.request("evm_setNextBlockTimestamp", hex(until), attempts=1)
        looker.looks.accuse(task, 33, number, seat.salt, root, proof)
        seat.client.looks.answer(task, 33, root, seat.opening(segment))
        assert calls.answers_until(task) == until + move_time
        until += move_time
    assert held_from + 6 * move_time - SOON < until < held_from + 6 * move_time
    scene.past(until - SOON)
    with pytest.raises(Reverted, match="TooEarly"):
        scene.solver.market.settle(task)
    assert scene.free(scene.solver) - before[scene.solver] == 2 * TOKEN
    assert scene.free(seat.client) - before[seat.client] == 5 * 2 * TOKEN
    assert before[looker] - scene.free(looker) == 6 * 2 * TOKEN
    scene.past(until)
    scene.solver.market.settle(task)


def test_the_chance_picks_as_in_the_shared_rule(chain: Devnet, connected: Connect) -> None:
    scene = Seats(chain, connected, verifiers=3)
    changes = {"look_chance": 5_000, "game_cost": 2 * TOKEN, "seat_lock": LOCK, "segments_per_verifier": 4}
    task = scene.submitted(**changes)
    scene.draw()
    audit = scene.solver.audit
    (seat,) = audit.seats(task)
    sits = next(client for client in scene.verifiers if client.address == seat.account)
    sits.audit.attest(task, 0, bytes([1]) * 32, bytes([2]) * 32)
    asked = audit.first_draw()
    assert asked is not None
    scene.draw()
    seed = seed_of(chain.chain_id, audit.address, task, TREE.root, 2, word(asked.round))
    picked = [Look(1, slot).number for slot in picks(seed, range(4), 5_000, 4)]
    assert audit.audit(task).looks == len(picked)
    found = [look.number for look in audit.looks(task)]  # two accounts are free, so at most two are filled
    assert set(found) <= set(picked)
    assert len(found) == min(2, len(picked))


def test_a_seat_that_reveals_nothing_is_caught_and_the_task_is_paid(
    chain: Devnet, connected: Connect
) -> None:
    scene = Scene(chain, connected)
    task, audit, look = scene.task, scene.solver.audit, Look(1, 1)
    scene.draw()
    looker = scene.client(look.number)
    with pytest.raises(Reverted, match="TooEarly"):
        scene.solver.looks.take_unrevealed(task, look.number)
    scene.past(audit.audit(task).picked_at + scene.solver.market.terms(task).move_time)
    before = scene.free(looker)
    receipt = scene.solver.looks.take_unrevealed(task, look.number)
    told = scene.solver.looks.event(receipt, "Unrevealed").arguments
    assert (told["account"], told["looker"]) == (scene.seat.client.address, looker.address)
    assert scene.free(looker) == before + told["paid"] == before + LOCK // 2
    assert audit.seat(task, 0).caught
    assert not audit.audit(task).audited
    for seat in audit.looks(task):
        scene.attest(seat.number)
    assert audit.audit(task).audited
    scene.past(scene.solver.market.task(task).challenge_until)
    scene.solver.market.settle(task)
    assert scene.solver.market.task(task).status is TaskStatus.SETTLED


def test_looks_whose_draw_nobody_executes_lapse(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected)
    task, audit = scene.task, scene.solver.audit
    with pytest.raises(Reverted, match="TooEarly"):
        audit.lapse(task)
    scene.past(scene.solver.deployment.beacon.time_of(scene.asked.round) + DEVNET.stall_period)
    audit.lapse(task)
    assert (audit.audit(task).audited, audit.looks(task)) == (True, [])
