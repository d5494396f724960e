"""Terms of a replay's tasks: the market's amounts, the training's roots, and periods long enough for all calls."""

from __future__ import annotations

from protocol.program import cost
from protocol.tasks.arithmetics import ARITHMETIC
from protocol.tasks.task import RATE_OF_ALL, Terms
from sim.parameters import MarketParameters
from sim.replay.amounts import Amounts
from sim.replay.training import STEPS, THINNING, Training


def terms(training: Training, parameters: MarketParameters, amounts: Amounts, number: int) -> Terms:
    """Terms of task `number`. The number only makes the tasks' bundles differ."""
    program = training.program
    return Terms(
        program_id=program.program.id,
        constants_root=program.constants_root(training.fixed),
        initial_state=program.state_root(training.initial),
        bundle_hash=number.to_bytes(32, "big"),
        constants=len(training.fixed),
        state_tensors=len(program.state),
        segments=parameters.segments,
        segment_steps=STEPS,
        step_operations=cost(program.program).operations,
        state_bytes=program.state_bytes,
        budget=amounts.budget,
        stake=amounts.stake,
        restitution=amounts.restitution,
        reward=amounts.reward,
        audit_fee=amounts.audit_fee,
        game_cost=amounts.game_cost,
        delay_penalty=amounts.delay_penalty,
        bidding_period=600,
        training_period=10_000,
        challenge_period=60_000,
        attest_period=50_000,
        extension=60,
        clock=500,
        replay_allowance=0,
        verifiers=parameters.verifiers,
        segments_per_verifier=parameters.segments_per_verifier,
        arithmetic=ARITHMETIC,
        thinning=THINNING,
        # Shorter than the challenge period minus the attest period, so locks are taken before anybody challenges.
        move_time=5_000,
        look_chance=round(parameters.look_chance * RATE_OF_ALL),
        jurors=0,
        seat_lock=amounts.seat_lock(parameters),
        bond=amounts.bond,
        retrain_reward=amounts.retrain_reward,
        bundle="http://127.0.0.1/none",
    )
