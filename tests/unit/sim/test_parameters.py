"""The market's parameters: the escrow, redraws, a bound, and gas as measured by the contracts' tests."""

import json
from pathlib import Path

import pytest

from protocol.chain.parameters import RECOMMENDED
from protocol.tasks.task import ESCROW_DRAWS
from sim.errors import ParameterError
from sim.parameters import MarketParameters

GAS = json.loads((Path(__file__).parents[2] / "vectors" / "gas.json").read_text())
PARAMETERS = MarketParameters()


@pytest.mark.parametrize(
    ("default", "calls"),
    [
        (PARAMETERS.gas_attest, ("attest", "release")),
        (PARAMETERS.gas_task, ("bid", "assign", "first progress", "submit", "settle")),
    ],
)
def test_gas_is_what_the_contracts_use(default: int, calls: tuple[str, ...]) -> None:
    """Each default is at least the gas that the contracts' tests measured, and at most a quarter above it. It
    may be above, because some token amounts take more gas to write than the amounts in those tests.
    """
    measured = sum(GAS[call] for call in calls)
    assert measured <= default <= 1.25 * measured


def test_a_submitter_locks_what_the_escrow_may_pay() -> None:
    parameters = MarketParameters(
        budget=100, restitution=0, audit_fee=3, draw_fee=5, verifiers=2, segments_per_verifier=4
    )
    assert parameters.seat_fee == 12
    assert parameters.silence_costs == 17
    assert parameters.escrow == 100 + 2 * 12 + ESCROW_DRAWS * 5


def test_the_stall_period_has_time_for_the_redraws() -> None:
    """Each redraw takes the draw delay, and a day for the attestation."""
    assert PARAMETERS.redraws == RECOMMENDED.stall_period // (RECOMMENDED.draw_delay + 86_400)


def test_more_segments_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(ParameterError, match="segments_per_verifier: expected at most 3"):
        MarketParameters(segments=3, segments_per_verifier=4)
