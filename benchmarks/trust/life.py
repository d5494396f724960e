"""Plays tasks, each from its post to its last release. The chain's clock is moved, so that days take
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from assay.submitting import post
from benchmarks.trust.market import VERIFIERS, Market, until
from protocol.chain.recommendation import RULES, default_jurors, move_time
from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.commitments.tensors import Tensor
from protocol.numerics.types import to_bytes
from protocol.tasks.amounts import Amounts, derive
from protocol.tasks.bundles import Bundle, committed_terms, write_bundle
from protocol.tasks.task import Terms
from sim.replay.training import STEPS, Training
from sim.trust_table import DAY, HOUR, ROLLUP, SEGMENTS

BUDGET: Final = 1_000
"""The task's budget in tokens."""
TRAINING_DAYS: Final = 3
_QUARTERS: Final = 4
_SPARE: Final = 600
"""Seconds between the end of the training and its deadline."""


@dataclass(frozen=True)
class Lived:
    """A settled task: its number, its number of looks, and the first and the last of its blocks."""

    number: int
    looks: int
    first_block: int
    last_block: int


def amounts() -> Amounts:
    """The recommended amounts for a task of `BUDGET` tokens and `TRAINING_DAYS` days of training on a
    rollup.
    """
    return derive(ROLLUP.setting(BUDGET, TRAINING_DAYS), RULES)


class Life:
    """Plays tasks on a market, one after another."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._audit, self._tasks = market.submitter.audit, market.submitter.market

    def play(self, look_chance: int | None = None) -> Lived:
        """Play one task until it is settled, all its seats are released and the solver is paid.
        `look_chance`, if given, replaces the chance in the terms. Raises TimeoutError.
        """
        market = self._market
        first = market.devnet.connection.block().number + 1
        pocket = market.solver.token.balance_of(market.solver.address)
        market.training.let(0)
        market.replaying.let(0)
        task = post(market.submitter, self._terms(look_chance), market.relays.signature, len(VERIFIERS))
        self._train(task)
        self._seats(task)
        while not self._audit.audit(task).audited:
            self._level(task)
        market.skip_to(self._tasks.task(task).challenge_until + 1)
        until(lambda: self._tasks.task(task).status is TaskStatus.SETTLED, "the settlement")
        seats = (*self._audit.seats(task), *self._audit.looks(task))
        until(lambda: all(self._audit.seat(task, seat.number).released for seat in seats), "all releases")
        until(lambda: market.solver.token.balance_of(market.solver.address) > pocket, "the solver's pay")
        last = market.devnet.connection.block().number
        return Lived(task, len(self._audit.looks(task)), first, last)

    def _train(self, task: int) -> None:
        """Play the bidding, then the training over its whole period: a quarter of the steps in each quarter
        of the time.
        """
        market = self._market

        def view() -> TaskView:
            return self._tasks.task(task)

        until(lambda: view().bidder != NOBODY, "a bid")
        market.skip_to(view().bids_until + 1)
        until(lambda: view().status is TaskStatus.TRAINING, "the assignment")
        begun, due = market.submitter.now(), view().train_until - _SPARE
        for quarter in range(1, _QUARTERS + 1):
            market.skip_to(begun + (due - begun) * quarter // _QUARTERS)
            segments = SEGMENTS * quarter // _QUARTERS
            market.training.let(segments * STEPS)
            until(partial(self._has, task, segments), "progress")
        until(lambda: view().status is TaskStatus.SUBMITTED, "the submission")

    def _has(self, task: int, segments: int) -> bool:
        """Whether `segments` segments or more are committed."""
        return self._tasks.task(task).size > segments

    def _seats(self, task: int) -> None:
        """Play the first draw, and the replays of the seats, which end half a day after that draw."""
        self._draw(task)
        until(lambda: self._audit.audit(task).drawn_at > 0, "the draw of the seats")
        self._attest(self._audit.audit(task).drawn_at)
        until(lambda: all(seat.attested for seat in self._audit.seats(task)), "all seats' attestations")

    def _level(self, task: int) -> None:
        """Play one draw of looks. If the task is not audited after this draw, also play the looks that were drawn."""
        self._market.replaying.let(0)
        self._draw(task)
        until(lambda: not self._audit.audit(task).pending, "a draw of looks")
        if self._audit.audit(task).audited:
            return
        found = [look.number for look in self._audit.looks(task)]
        looks = self._market.submitter.looks
        until(lambda: all(looks.look(task, number).revealed for number in found), "all opened digests")
        self._attest(self._audit.audit(task).picked_at)
        until(lambda: not self._audit.audit(task).looking, "all looks' attestations")

    def _draw(self, task: int) -> None:
        """Wait until a draw is pending or the task is audited, then move the clock to the time of the draw's
        beacon round.
        """
        until(lambda: self._audit.audit(task).pending or self._audit.audit(task).audited, "a pending draw")
        self._market.skip_to(self._market.deployment.beacon.time_of(self._audit.audit(task).round))

    def _attest(self, since: int) -> None:
        """Move the clock to half a day after `since`, and then let all replays finish."""
        self._market.skip_to(since + DAY // 2)
        self._market.replaying.let(None)

    def _terms(self, look_chance: int | None) -> Terms:
        """The terms of a task for a small program: the recommended amounts, and periods of hours and days."""
        training, made = Training(SEGMENTS), amounts()
        program = training.program
        state = tuple(
            Tensor(name, int(type_.dtype), type_.shape, to_bytes(value, type_.dtype))
            for (name, value), type_ in zip(training.initial.items(), program.state_types, strict=True)
        )
        (data,) = training.fixed
        dataset = (Tensor("data", 0, tuple(data.shape), to_bytes(data, program.fixed_types[0].dtype)),)
        bundle = Bundle("price-of-trust", program, state, dataset, ())
        hash_ = write_bundle(bundle, self._market.bundles)
        parameters = self._market.deployment.parameters
        changed: dict[str, Any] = dict(made.terms())
        if look_chance is not None:
            changed["look_chance"] = look_chance
        return Terms(
            **committed_terms(bundle),
            **changed,
            bundle_hash=hash_,
            bundle=self._market.bundles.as_uri(),
            segments=SEGMENTS,
            segment_steps=STEPS,
            thinning=1,
            budget=BUDGET * 10**18,
            bidding_period=HOUR,
            extension=HOUR,
            training_period=TRAINING_DAYS * DAY,
            challenge_period=ROLLUP.challenge_period,
            attest_period=DAY,
            move_time=move_time(parameters, DAY),
            clock=parameters.max_clock,
            replay_allowance=0,
            jurors=default_jurors(parameters),
        )
