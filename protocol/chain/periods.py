"""Recommended periods of a task, in seconds: the defaults for a submitter. Pure.

They follow from the task's operations and bytes at an assumed speed, from the chain's block time and from the
deployment's bounds, so that the same task always has the same periods. audit.md section 9 has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from protocol.chain.parameters import Parameters
from protocol.tasks import owed
from protocol.tasks.admission import Rates, Work
from protocol.tasks.keeping import files_of
from protocol.tasks.task import (
    ASSUMED_SPEED,
    BEGUN,
    ESCROW_DRAWS,
    FILE_RATE,
    GAMES_AT_ONCE,
    HASH_RATE,
    INCLUSION_BLOCKS,
    LINE,
    MOST_MOVES,
    SAFETY,
    TENSOR_RATE,
    replay_seconds_of,
)

NAMES: Final = (
    "bidding_period",
    "extension",
    "training_period",
    "attest_period",
    "challenge_period",
    "clock",
)
TWICE: Final = 2
"""Margin factor for computing, fetching and answering, because others use the machine and the network too."""
START: Final = 60.0
"""Seconds for a party to fetch small things, start a process and compile its first step."""
COMMITMENTS: Final = 5
"""Transactions of a solver during its training: four commitments of its progress, and the submission."""
NOTICE: Final = 10
"""Time for a party to see a task and act on it, in multiples of the time that a transaction takes."""
DAYS: Final = 7
"""The recommended clock of a game is at least this many times `min_clock`, unless `max_clock` is shorter. If
`min_clock` is a day, each side has a week, as protection against censorship.
"""


@dataclass(frozen=True, slots=True)
class Load:
    """The size of a task's work. In the order of the fields: segments of the task, steps of a segment, scalar
    operations of a step, bytes of a state, bytes of the whole bundle, the work of a game besides replays
    (`traces`), and tensors of a state.
    """

    segments: int
    segment_steps: int
    step_operations: int
    state_bytes: int
    bundle_bytes: int
    traces: owed.Traces = field(default_factory=owed.Traces)
    state_tensors: int = 1

    @property
    def operations(self) -> int:
        """Scalar operations of the whole training."""
        return self.segments * self.segment_steps * self.step_operations

    @property
    def replay(self) -> float:
        """Seconds to replay a segment at the assumed speed."""
        return replay_seconds_of(self.segment_steps, self.step_operations, self.state_bytes, ASSUMED_SPEED)

    @property
    def step(self) -> float:
        """Seconds that other work may have to wait for a step or an answer that is already being computed, at
        the assumed speed.
        """
        step = Work(self.step_operations, self.state_bytes)
        return max(map(Rates(ASSUMED_SPEED).seconds, (step, self.traces.answer)))


def periods(
    load: Load,
    parameters: Parameters,
    block_time: float,
    *,
    segments_per_verifier: int,
    copies: int,
    looks: bool,
    given: Mapping[str, int],
) -> dict[str, int]:
    """All periods that `NAMES` lists. Those in `given` keep their values. `copies` is the number of states
    that the solver may have to serve at once, to all seats or to a jury
    (`protocol.tasks.offers.copies_at_once`). `looks` is whether the task has looks.

    The deployment's bounds are respected where possible. A task that needs more than the deployment's maximum
    gets the maximum; a solver or verifier then says why it does not take the task.
    """
    least, most = parameters.min_period, parameters.max_period
    inclusion = INCLUSION_BLOCKS * block_time
    notice = NOTICE * inclusion
    fetch = TWICE * load.bundle_bytes / LINE

    bidding = given.get("bidding_period", _within(least, notice + fetch, most))
    extension = given.get("extension", min(bidding, _within(least, 3 * inclusion, most)))
    trained = TWICE * load.operations / ASSUMED_SPEED + COMMITMENTS * inclusion
    hashed = TWICE * load.segments * load.state_bytes / HASH_RATE
    written = TWICE * files_of(load.segments, load.state_tensors) / FILE_RATE  # beside the steps
    training = given.get(
        "training_period", _within(least, START + fetch + max(trained + hashed, written), most)
    )

    replays = TWICE * SAFETY * segments_per_verifier * load.replay
    state = load.state_bytes / LINE + load.state_tensors / TENSOR_RATE
    carried = TWICE * max(copies, segments_per_verifier + 2) * state
    # An answer to a look has only half of an attestation period (`recommendation.move_time`).
    asked = (TWICE if looks else 1) * (replays + carried) + notice + START / TWICE
    longest = min(most, parameters.stall_period // ESCROW_DRAWS - parameters.draw_delay)
    attest = given.get("attest_period", _within(max(least, parameters.min_clock), asked, longest))

    commitment = max(parameters.min_clock, _rounded(notice))
    challenge = given.get("challenge_period", min(most, attest + 2 * commitment))

    traced = Rates(ASSUMED_SPEED).seconds(load.traces.in_games(GAMES_AT_ONCE))
    answers = traced + MOST_MOVES * (inclusion + block_time + BEGUN * load.step)
    censored = min(parameters.max_clock, DAYS * parameters.min_clock)
    clock = given.get("clock", _within(censored, TWICE * answers, parameters.max_clock))
    return dict(zip(NAMES, (bidding, extension, training, attest, challenge, clock), strict=True))


def _within(least: int, seconds: float, most: int) -> int:
    return min(most, max(least, _rounded(seconds)))


def _rounded(seconds: float) -> int:
    """Round up to two significant digits, so that small changes of a program do not change the number."""
    whole = ceil(seconds)
    unit: int = 10 ** max(0, len(str(whole)) - 2)
    return -(-whole // unit) * unit
