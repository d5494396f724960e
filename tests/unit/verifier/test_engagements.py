"""When a verifier admits a challenge, its other work counts too: its seats, its games, and the draws that may
find its free accounts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.parameters import DEVNET
from protocol.dispute.keys import NO_SEAT
from protocol.node.database import Identity
from protocol.tasks import owed
from protocol.tasks.admission import Clocks, Engagement, Rates, Standing
from tests.chain.trees import terms
from tests.unit.verifier.test_seats import ME, MINE_TOO, NOW, OTHER, observation, seat
from verifier.context import Context
from verifier.database import COMMITTING, Challenge, Database
from verifier.engagements import Engagements
from verifier.registration import standing

TASK, OTHER_TASK = 1, 9
TERMS = terms(attest_period=100)
CLOCKS = Clocks(2.0, 0.5, NOW)
SEEN = observation(seats=(seat(0), seat(1, OTHER), seat(2, MINE_TOO, attested=True)))


class Stand:
    """A verifier with two accounts; those in `bound` have a seat."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder / "verifier.sqlite", Identity("chain", "market", ME))
        self.bound = {ME, MINE_TOO}
        self.terms = TERMS
        self.clients = {ME: self.client(ME, 2), MINE_TOO: self.client(MINE_TOO, 3)}
        context = SimpleNamespace(
            client=self.clients[ME],
            clients=self.clients,
            database=self.database,
            terms=lambda _task: self.terms,
            segments=lambda _task, _seat: [1, 2],
            juries=SimpleNamespace(of=lambda _task: None),
            clocks=lambda _client, now=0.0: replace(CLOCKS, now=now),
            rates=Rates(2e9),
        )
        self.context = cast(Context, context)
        self.engagements = Engagements(self.context)

    def client(self, account: str, index: int) -> Any:
        """The client of an account that offers 10^8 operations a second."""

        def registration(_account: str) -> SimpleNamespace:
            return SimpleNamespace(is_bound=account in self.bound, offer=SimpleNamespace(speed=10**8))

        return SimpleNamespace(
            address=account,
            audit=SimpleNamespace(registration=registration, address=OTHER),
            sender=SimpleNamespace(account=development_account(index, DEVELOPMENT_CHAIN)),
            deployment=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN, parameters=DEVNET),
        )

    def challenge(self, task: int, seat: int = NO_SEAT, at_stake: bool = True) -> Challenge:
        """Record a challenge, by default with a bond at stake."""
        made = Challenge(task, seat, ME, 1, bytes(32), b"")
        self.database.put_challenge(made)
        if at_stake:
            self.database.update_challenge(made.key, opening_until=COMMITTING)
        return made

    def beside(self, challenge: Challenge) -> list[str]:
        """Names of the engagements that count in addition to a challenge."""
        return [one.name for one in self.engagements.beside(challenge)]


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    yield made
    made.database.close()


def test_an_own_seat_owes_the_segments_that_have_no_digest_yet(stand: Stand) -> None:
    stand.engagements.see(SEEN)
    mine = stand.challenge(OTHER_TASK, at_stake=False)
    (found,) = stand.engagements.beside(mine)
    until = SEEN.seats[0].until
    assert found == owed.seat("seat 0 of task 1", TERMS, 2, until)
    stand.engagements.see(replace(SEEN, now=until + 1))
    assert stand.beside(mine) == [], "its time is over"
    stand.engagements.see(SEEN)
    stand.engagements.forget(TASK)
    assert stand.beside(mine) == []


def test_with_looks_places_owe_answers_also_when_they_are_attested(stand: Stand) -> None:
    stand.terms = replace(TERMS, look_chance=1, seat_lock=4 * TERMS.seat_lock)
    stand.engagements.see(SEEN)
    assert stand.beside(stand.challenge(OTHER_TASK, at_stake=False)) == [
        "seat 0 of task 1",
        "answers for seat 0 of task 1",
        "answers for seat 2 of task 1",
    ]


def test_a_seat_whose_solver_is_challenged_leaves_its_time_to_the_game(stand: Stand) -> None:
    """A verifier challenges the solver of the task in which it has a seat. The seat's work is then not
    counted in addition to the game, because the game is the work to be admitted. This holds even before a
    bond is at stake.
    """
    mine = stand.challenge(TASK, at_stake=False)
    stand.engagements.see(SEEN)
    assert stand.beside(mine) == []


def test_hopeless_work_keeps_no_game_away(stand: Stand) -> None:
    stand.terms = replace(TERMS, step_operations=10**15)
    stand.engagements.see(SEEN)
    assert stand.beside(stand.challenge(OTHER_TASK, at_stake=False)) == []


def test_challenges_at_stake_are_games_and_those_that_are_not_are_none(stand: Stand) -> None:
    mine = stand.challenge(TASK)
    stand.challenge(OTHER_TASK)
    stand.challenge(OTHER_TASK + 1, at_stake=False)
    (found,) = stand.engagements.beside(mine)
    assert isinstance(found, Engagement)
    assert found.name == f"the game of task 9 that account {ME} has a bond in"
    assert found.work == owed.game("", TERMS).work


def test_an_account_that_is_free_may_be_drawn_into_what_its_offer_takes(stand: Stand) -> None:
    mine = stand.challenge(TASK)
    assert stand.beside(mine) == []
    stand.bound = {ME}
    (found,) = stand.engagements.beside(mine)
    assert isinstance(found, Standing)
    assert found == standing(MINE_TOO, 10**8, DEVNET.min_period, replace(CLOCKS, now=0.0))


def test_seats_under_other_contracts_count_and_offers_there_do_not(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Stand(tmp_path / "other")
    other.engagements = Engagements(other.context, stand.engagements)
    stand.engagements.see(SEEN)
    other.bound = {ME}
    stand.bound = set()
    assert other.beside(other.challenge(OTHER_TASK, at_stake=False)) == [
        "seat 0 of task 1",
        f"seats of account {MINE_TOO}",
    ]
    assert other.engagements.admitting is stand.engagements.admitting
    other.database.close()
