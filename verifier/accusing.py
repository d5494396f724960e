"""Accuses a seat whose digest does not match the states that a look has computed (audit.md section 6).

An accusation needs the solver's step tree of the segment on the chain. If the tree is not there, the look
first plays a game that only asks for it (`looking.asks`). If the solver's tree equals ours, the accusation
shows a random chunk under this tree, and the seat must show that its digest has the same chunk. The
accusation also drops the asking game, if there is still time for that. If the trees differ, the solver's tree
is false: the seat is not accused, and we challenge the solver, in the asking game if there is one.

An asking game may still be open when nobody can be accused any more. Then the trees are compared too. If they
are equal, the game is dropped, if there is still time. If they differ, the game continues against the solver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING

from protocol.chain.views import GameState, Seat, TaskStatus
from protocol.commitments import BytesLike, step_tree, tensor_root
from protocol.dispute.accusing import choose_place, evidence
from protocol.dispute.keys import salt_hash, steps_key
from protocol.dispute.view import Phase
from protocol.node.party.exits import Observation
from protocol.tasks.bundles import BundleError
from verifier.context import Context
from verifier.database import Challenge
from verifier.errors import StateLost
from verifier.jobs import Job
from verifier.look_events import Revealed
from verifier.looking import asking, different, looked_at

if TYPE_CHECKING:
    from protocol.execution.replay import Replay
    from protocol.program.step import StepProgram

NO_GAME = 0
TRIES = 1
"""Limit on a look's accusations. A seat that has answered one accusation may have hashed a single chunk
wrongly on purpose, so that looks accuse the seat without success and lose their deposits to it. The contract
allows five.
"""


class SegmentStates:
    """The states of one segment, replayed on demand (`protocol.dispute.accusing.States`)."""

    def __init__(self, run: Replay, program: StepProgram, segment: int) -> None:
        self._run = run
        self._program = program
        self._segment = segment

    def tensors(self, step: int, /) -> Sequence[BytesLike]:
        """Canonical bytes of the tensors of state `step`, 0 … C."""
        state = self._run.state(self._segment, step)
        return [tensor.data for tensor in self._program.checkpoint(state).tensors]


def jobs(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs for the accusations that our looks can make now. Each replays a segment. Raises ChainError."""
    view = seen.view
    if view.status is not TaskStatus.SUBMITTED:
        return
    for look, told in different(context, seen):
        if not look.attested:
            continue  # the contract refuses accusations by a look that has not attested
        stands = context.looks.of(view.task, look.number)
        if stands is None or stands.accused is not None or stands.accusations >= TRIES:
            continue
        (segment,) = context.segments(view.task, look.number)
        row = context.database.challenge(view.task, look.number)
        if row is not None and not row.asks:
            continue  # the solver is challenged
        claim = context.client.game.claim(steps_key(view.task, segment))
        if not claim.posted_at:
            continue
        game, until = NO_GAME, seen.challenged_until
        if row is not None and row.outcome is None:
            state = None if row.game is None else context.client.game.game(row.game)
            if state is None or state.phase is not Phase.STEP or claim.posted(state) is None:
                continue  # the asking game is about to be opened, or the solver has lost it
            if state.waits:
                continue  # it cannot be dropped yet; nobody settles the task meanwhile
            droppable = _droppable_until(context, state)
            if seen.now <= droppable:
                game, until = state.game, droppable
        work = partial(_accuse, context, seen, look, told, claim.root, game)
        yield Job(view.task, f"accuse {look.number}", work, context.work_by(until))


def drops(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that end our games in which a step tree was asked for. A game is ended once nobody can be accused
    any more, because another look has caught the seat or a jury has ended the task. Each job replays a
    segment, because the game continues against the solver if the solver's step tree is false. Raises
    ChainError.
    """
    view = seen.view
    if not view.status.can_be_challenged:
        return
    looks = {look.number: look for look in seen.looks}
    for row in context.database.all_challenges(view.task):
        look = looks.get(row.seat)
        if look is None or not row.asks or row.outcome is not None or row.game is None:
            continue
        if view.status is TaskStatus.SUBMITTED and not looked_at(context, seen, look).caught:
            continue
        calls = context.client.game
        state = calls.game(row.game)
        if state.phase is not Phase.STEP or state.waits:
            continue
        step_root = calls.claim(state.claim).posted(state)
        if step_root is None:
            continue  # it is the solver's turn
        if (row.task, row.game, step_root) in context.compared:
            continue
        droppable = _droppable_until(context, state)
        until = droppable if seen.now <= droppable else state.deadline  # to continue against a false tree
        work = partial(_drop, context, seen, look, row, step_root, seen.now <= droppable)
        yield Job(row.task, f"drop {look.number}", work, context.work_by(until))


def undecided(context: Context, seen: Observation) -> list[int]:
    """The numbers of our undecided looks. A look is decided once its target was caught. Until then, it is
    undecided if it has made an accusation that is still open. It is also undecided if its target belongs to
    another party and it may still accuse the target or take the target's lock. If the task were settled now,
    the target would keep its lock. After the time for challenges, a look can accuse only if the solver's step
    tree is on the chain, because no game can be opened to obtain the tree any more. Raises ChainError.
    """
    return [
        look.number
        for look in seen.looks
        if look.account in context.clients and _is_open(context, seen, look)
    ]


def _is_open(context: Context, seen: Observation, look: Seat) -> bool:
    task, stands = seen.view.task, context.looks.of(seen.view.task, look.number)
    seat = looked_at(context, seen, look)
    if seat.caught:
        return False
    if stands is not None and stands.accused is not None:
        return True
    if seat.account in context.clients:  # nothing is taken from it
        return False
    if stands is None or stands.revealed is None:
        return True
    if not look.attested or stands.accusations >= TRIES:
        return False
    told, (segment,) = context.looks.revealed(task, look.number), context.segments(task, look.number)
    found = (
        None if told is None else context.database.digest(task, salt_hash(told.salt), segment, seen.view.root)
    )
    if told is not None and found == told.segment_root:
        return False
    return bool(context.client.game.claim(steps_key(task, segment)).posted_at)


def _droppable_until(context: Context, state: GameState) -> int:
    terms = context.terms(state.task)
    return state.droppable_until(terms.game_time, terms.move_time)


def _drop(
    context: Context, seen: Observation, look: Seat, row: Challenge, step_root: bytes, droppable: bool
) -> None:
    """Continue against the solver if the solver's step tree differs from ours; otherwise drop the game if it
    is still `droppable`. If a state or the bundle is lost, the trees are not compared, and the game is
    dropped if it is still `droppable`. Raises ChainError, CommitmentError.
    """
    assert row.game is not None, "only an open game is dropped"
    assert row.segment is not None, "it asks for the step tree of a segment"
    try:
        roots = context.load(row.task).run(row).step_roots(row.segment)
    except (StateLost, BundleError) as error:
        # Nothing fetches them for a comparison, and a dropped game costs less than a lost one.
        context.log.warning("not compared", task=row.task, segment=row.segment, reason=str(error))
    else:
        if _is_turned(context, seen, row, roots, step_root):
            return
    if not droppable:
        context.compared.add((row.task, row.game, step_root))
        context.log.debug("too late to drop", task=row.task, look=look.number, game=row.game)
        return
    receipt = context.clients[look.account].looks.drop(row.task, look.number, row.game)
    context.log.info(
        "dropped: nobody can be accused any more",
        task=row.task,
        look=look.number,
        game=row.game,
        gas=receipt.gas_used,
    )


def _is_turned(
    context: Context, seen: Observation, asked: Challenge, roots: Sequence[bytes], step_root: bytes
) -> bool:
    """Whether the solver's step tree differs from ours. If so, notes that our challenge continues against the
    solver.
    """
    if step_tree(roots).root == step_root:
        return False
    context.log.warning("different", task=asked.task, segment=asked.segment, solver=seen.view.solver)
    context.database.turn_on_solver(asked)
    return True


def _accuse(
    context: Context, seen: Observation, look: Seat, told: Revealed, step_root: bytes, game: int
) -> None:
    """Accuse the seat. If the solver's step tree is false, challenge the solver instead, in the asking game
    if there is one. Raises ChainError, BundleError, CommitmentError, StateLost.
    """
    task, number = seen.view.task, look.number
    material, client = context.load(task), context.clients[look.account]
    (segment,) = context.segments(task, number)
    asked = asking(context, seen, look)
    run, program, terms = material.run(asked), material.work.program, material.terms
    roots = run.step_roots(segment)
    if _is_turned(context, seen, asked, roots, step_root):
        return
    states = SegmentStates(run, program, segment)
    sizes = [len(data) for data in states.tensors(0)]
    at = choose_place(states, sizes, terms.segment_steps, terms.thinning, SystemRandom())
    tensors = states.tensors(at.step)
    shown = evidence(tensors[at.tensor], at, [tensor_root(data) for data in tensors], roots)
    if game == NO_GAME:  # otherwise the asking game's bond becomes free in time
        client.fund(terms.game_cost)
    receipt = client.looks.accuse(task, number, game, told.salt, told.segment_root, shown)
    context.log.warning(
        "accused a seat", task=task, look=number, segment=segment, step=at.step, gas=receipt.gas_used
    )
