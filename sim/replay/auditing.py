"""The audit of a task: a draw from the chain's own block, found again in seats, and attestations."""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.chain.header import HISTORY
from protocol.chain.probe import HISTORY_CONTRACT
from sim.engine.task import Checks
from sim.mechanism.arrays import Flags
from sim.mechanism.attestation import attested
from sim.mechanism.draw import Draw
from sim.replay.drawing import redraw
from sim.replay.stage import Stage
from sim.replay.training import Trained
from sim.theory import raised_segments

_UNLOOKED: Final = bytes(31) + b"\x01"
"""The step root of an attestation by somebody who has replayed nothing."""
_REACH: Final = 256
"""Blocks whose hash BLOCKHASH knows."""


class Submitted(NamedTuple):
    """A task that was submitted: `solver` is an account, `escrow` what is left of it after the draw."""

    number: int
    solver: int
    price: int
    escrow: int
    serves: bool
    trained: Trained


def draw(stage: Stage, task: int) -> Draw:
    """Prove the header of the draw's block, after the misses that the scenario asks for."""
    parameters, client = stage.scenario.parameters, stage.referee
    for _ in range(stage.scenario.missed_draws):
        _miss(stage, task)
    block = client.market.task(task).draw_block
    stage.devnet.mine(max(0, block - client.connection.block().number) + 1)
    receipt = client.audit.draw(task, block)
    stage.books.drawn()
    stage.booked(f"task {task}: drawn")
    each = raised_segments(
        parameters.segments_per_verifier, parameters.verifiers, stage.scenario.missed_draws
    )
    seed = client.audit.event(receipt, "Drawn").arguments["seed"]
    drawn = redraw(seed, stage.slots, parameters.verifiers, parameters.segments, each, parameters.matches)
    duties = [(duty.verifier, duty.segment) for duty in client.audit.duties(task)]
    expected = [
        (stage.clients[_verifier(stage, drawn, seat)].address, int(drawn.segments[duty, seat, 0]))
        for seat, duty in _due(drawn)
    ]
    stage.same("duties of the draw", expected, duties)
    return drawn


def lose_draw(stage: Stage, task: int) -> None:
    """Nobody proves a draw in any of its windows."""
    for _ in range(stage.scenario.parameters.max_misses):
        _miss(stage, task)
    _outrun(stage, task)


def _miss(stage: Stage, task: int) -> None:
    _outrun(stage, task)
    stage.referee.audit.missed(task)
    stage.booked(f"task {task}: draw missed")


def _outrun(stage: Stage, task: int) -> None:
    """The draw's block gets out of reach: BLOCKHASH forgets it, and its place in the history is cleared.

    8,191 blocks would clear it too, in minutes.
    """
    devnet, client = stage.devnet, stage.referee
    block = client.market.task(task).draw_block
    devnet.mine(max(0, block - client.connection.block().number) + _REACH + 1)
    place = f"0x{block % HISTORY:064x}"
    devnet.connection.request("anvil_setStorageAt", HISTORY_CONTRACT, place, "0x" + "00" * 32)


def attest(stage: Stage, task: Submitted, checks: Checks) -> Flags:
    """Whoever does attests each of its duties; those that were attested, (q + 1, V, 1)."""
    drawn = checks.drawn
    done = attested(drawn, checks.check.attests)
    for number, (seat, duty) in enumerate(_due(drawn)):
        if done[duty, seat, 0]:
            segment = int(drawn.segments[duty, seat, 0])
            root = task.trained.steps_root(segment) if checks.check.replays[seat, 0] else None
            client = stage.clients[_verifier(stage, drawn, seat)]
            client.audit.attest(task.number, number, root or _UNLOOKED)
    stage.booked(f"task {task.number}: {int(done.sum())} of {int(drawn.due.sum())} duties attested")
    return done


def _verifier(stage: Stage, drawn: Draw, seat: int) -> int:
    return stage.first_verifier + int(drawn.verifiers[seat, 0])


def _due(drawn: Draw) -> list[tuple[int, int]]:
    """(seat, duty) in the order of the board's list."""
    duties, seats, _ = drawn.due.shape
    return [(seat, duty) for seat in range(seats) for duty in range(duties) if drawn.due[duty, seat, 0]]
