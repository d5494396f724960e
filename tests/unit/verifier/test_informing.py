"""Tests when an offered salt is kept, refused, dropped, or shown to the contract, and what this costs. The
database is real.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, AuditView, Seat, TaskStatus
from protocol.dispute.keys import attestation_word, informing_commitment, salt_hash
from protocol.node.database import Identity
from protocol.node.party.exits import Observation
from tests.unit.verifier.test_seats import AUDIT, ME, MINE_TOO, NOW, OTHER, UNTIL, VIEW, observation, seat
from verifier import offered_salts as module
from verifier.database import Database
from verifier.errors import SaltRefused, TooManySalts
from verifier.informing import BLOCKS, Attestation, parsed_salt
from verifier.metrics import Metrics
from verifier.offered_salts import SALTS_A_SEAT, OfferedSalts

TASK = 1
SALT, DIGEST = bytes(range(32)), bytes([9]) * 32
WRONG = bytes([7]) * 32
LOOKS = "0x" + "44" * 20
SEATS = (seat(0, ME), seat(1, OTHER), seat(2, NOBODY), seat(3, MINE_TOO))
DRAWN = observation(seats=SEATS)


def attested(*numbers: int, seats: tuple[Seat, ...] = SEATS) -> Observation:
    """An observation of the task after these seats have attested."""
    return observation(seats=tuple(replace(one, attested=one.number in numbers) for one in seats))


ATTESTED = attested(1)


class Looks:
    """A stub of the contract. `unseen` lists calls of this account whose outcomes the account has not seen."""

    address = LOOKS

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.committed: dict[bytes, int] = {}
        self.informed: list[tuple[int, int, bytes, bytes]] = []
        self.unseen: list[tuple[int, int, bytes, bytes]] = []

    def interrupted(self, function: str, *arguments: Any) -> str | None:
        assert function == "inform"
        return "an intent" if arguments in self.unseen else None

    def committed_in(self, commitment: bytes) -> int:
        return self.committed.get(commitment, 0)

    def commit_informing(self, commitment: bytes) -> SimpleNamespace:
        assert commitment not in self.committed, "AlreadyCommitted"
        self.committed[commitment] = self._chain.number
        return SimpleNamespace(block=self._chain.number, gas_used=60_000)

    def inform(self, *call: Any) -> SimpleNamespace:
        task, number, digest, salt = call
        if call in self.unseen:
            self.unseen.remove(call)
            return SimpleNamespace(gas_used=80_000)
        due = informing_commitment(31337, LOOKS, task, number, ME, salt)
        assert self.committed[due] < self._chain.number, "in a later block"
        if self._chain.word != attestation_word(digest, salt_hash(salt)):
            raise Reverted("Looks.inform", "NotAttested", {})
        self.informed.append(call)
        self._chain.word = None
        del self.committed[due]
        return SimpleNamespace(gas_used=80_000)

    def event(self, _receipt: object, name: str) -> SimpleNamespace:
        assert name == "Informed"
        return SimpleNamespace(arguments={"paid": 5 * TOKEN})


class Chain:
    """A chain with one task, whose seat 1 attests under SALT. Each call of `look` is in a new block."""

    def __init__(self) -> None:
        self.number = 100
        self.task = VIEW
        self.seats = ATTESTED.seats
        self.audit = AUDIT
        self.word: bytes | None = attestation_word(DIGEST, salt_hash(SALT))
        self.told = Attestation(DIGEST, salt_hash(SALT))
        self.looks = Looks(self)
        self.client = cast(
            Client,
            SimpleNamespace(
                address=ME,
                looks=self.looks,
                deployment=SimpleNamespace(
                    chain_id=31337, block=5, beacon=SimpleNamespace(time_of=lambda number: NOW + number)
                ),
                audit=SimpleNamespace(
                    attestation=lambda _task, _seat: self.word,
                    audit=lambda _task: self.audit,
                    seats=lambda _task: self.seats,
                ),
                market=SimpleNamespace(task=lambda _task: self.task),
                now=lambda: NOW,
                connection=SimpleNamespace(block=lambda: SimpleNamespace(number=self.number), block_time=2.0),
            ),
        )


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    made = Chain()
    told = SimpleNamespace(of=lambda number: made.told if number == 1 else None)
    monkeypatch.setattr(module, "Attested", lambda _client, _task: told)
    return made


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield made
    made.close()


def informer(chain: Chain, database: Database, seen: Observation | None = DRAWN) -> OfferedSalts:
    """An informer that has seen the task as `seen`, or not at all if `seen` is None."""
    made = OfferedSalts(chain.client, {ME, MINE_TOO}, database, Metrics())
    if seen is not None:
        made.see(seen)
    return made


def look(one: OfferedSalts, chain: Chain, seen: Observation = ATTESTED) -> int:
    """Show `seen` to the informer in a new block, run its jobs, and return their number."""
    chain.number += 1
    one.see(seen)
    jobs = one.jobs()
    for job in jobs:
        assert job.key == (TASK, "inform 1")
        job.work()
    return len(jobs)


def test_a_salt_is_shown_once_its_seat_has_attested_under_it(chain: Chain, database: Database) -> None:
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    one.offer(TASK, 1, SALT)
    assert look(one, chain, DRAWN) == 0, "not attested yet"
    assert (look(one, chain), chain.looks.informed) == (1, []), "committed"
    assert (look(one, chain), chain.looks.informed) == (1, [(TASK, 1, DIGEST, SALT)])
    assert look(one, chain) == 0
    one.offer(TASK, 1, SALT)
    assert (look(one, chain), chain.looks.committed) == (1, {}), "the seat is empty by now"


def test_who_attests_under_a_salt_that_everybody_knows_loses_again(chain: Chain, database: Database) -> None:
    """If the same account is drawn for the same seat again, it attests under the same salt."""
    one = informer(chain, database)
    for word in [chain.word] * 2:
        chain.word = word
        one.offer(TASK, 1, SALT)
        look(one, chain)
        look(one, chain)
    assert chain.looks.informed == [(TASK, 1, DIGEST, SALT)] * 2


def test_a_salt_that_does_not_fit_costs_nothing(chain: Chain, database: Database) -> None:
    one = informer(chain, database, ATTESTED)
    for salt in (WRONG, DIGEST, salt_hash(SALT)):
        one.offer(TASK, 1, salt)
    assert look(one, chain) == 1
    assert (look(one, chain), database.count_salts()) == (0, 0), "and is dropped"
    assert not chain.looks.committed


@pytest.mark.parametrize("number", [-1, 0, 2, 3, 4])
def test_only_a_salt_for_somebody_elses_seat_is_taken(chain: Chain, database: Database, number: int) -> None:
    with pytest.raises(SaltRefused, match=f"task 1, seat {number}: expected a seat"):
        informer(chain, database, ATTESTED).offer(TASK, number, SALT)
    assert database.count_salts() == 0


def test_a_salt_for_a_task_that_is_not_open_is_refused(chain: Chain, database: Database) -> None:
    for seen in (None, observation(), observation(TaskStatus.SETTLED, SEATS), replace(DRAWN, seats=())):
        with pytest.raises(SaltRefused, match="no such task"):
            informer(chain, database, seen).offer(TASK, 1, SALT)
    one = informer(chain, database)
    one.forget(TASK)
    with pytest.raises(SaltRefused):
        one.offer(TASK, 1, SALT)


def test_once_the_attestation_is_known_no_flood_keeps_the_right_salt_out(
    chain: Chain, database: Database
) -> None:
    """A salt that does not match is refused at once, without a row or a job."""
    one = informer(chain, database)
    for number in range(SALTS_A_SEAT):
        one.offer(TASK, 1, bytes([number]) * 32)
    with pytest.raises(TooManySalts):
        one.offer(TASK, 1, SALT)
    look(one, chain)
    assert database.count_salts() == 0
    for number in range(SALTS_A_SEAT):
        with pytest.raises(SaltRefused, match="expected the salt under which the seat attested, got another"):
            one.offer(TASK, 1, bytes([number]) * 32)
    assert (database.count_salts(), look(one, chain)) == (0, 0)
    for number in range(SALTS_A_SEAT):  # as many as an earlier process may have left
        database.put_salt(TASK, 1, bytes([number]) * 32)
    one.offer(TASK, 1, SALT)
    look(one, chain)
    look(one, chain)
    assert chain.looks.informed == [(TASK, 1, DIGEST, SALT)]


@pytest.mark.parametrize("between", [attested(seats=(SEATS[0], seat(1, NOBODY, UNTIL))), None])
def test_a_seat_that_is_drawn_again_takes_other_salts(
    chain: Chain, database: Database, between: Observation | None
) -> None:
    """Other salts are taken even if the node did not look at the task between the two attestations."""
    one = informer(chain, database)
    one.offer(TASK, 1, WRONG)
    look(one, chain)
    if between is not None:
        one.see(between)
        with pytest.raises(SaltRefused):
            one.offer(TASK, 1, WRONG)
    again = attested(1, seats=(SEATS[0], seat(1, OTHER, UNTIL + 60), *SEATS[2:]))
    one.see(again)
    one.offer(TASK, 1, WRONG)
    chain.told = Attestation(DIGEST, salt_hash(WRONG))
    chain.word = attestation_word(DIGEST, salt_hash(WRONG))
    look(one, chain, again)
    look(one, chain, again)
    assert chain.looks.informed == [(TASK, 1, DIGEST, WRONG)]


def test_the_seat_that_has_waited_longest_is_first(chain: Chain, database: Database) -> None:
    one = OfferedSalts(chain.client, {ME}, database, Metrics())
    one.see(attested(1, 3))
    for number in (1, 3):
        one.offer(TASK, number, SALT)
    firsts = []
    for _ in range(4):
        job = one.jobs()[0]
        firsts.append(job.what)
        job.work()
    assert firsts == ["inform 1", "inform 3"] * 2


def test_while_a_job_waits_for_the_chain_nobody_waits_for_the_job(
    chain: Chain, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)

    def slowly(_task: int) -> None:
        for call in (lambda: one.offer(TASK, 1, WRONG), lambda: one.see(DRAWN), lambda: one.forget(TASK)):
            beside = Thread(target=call, daemon=True)
            beside.start()
            beside.join(5)
            assert not beside.is_alive(), "it waits"

    monkeypatch.setattr(module, "Attested", lambda _client, _task: SimpleNamespace(of=slowly))
    assert look(one, chain) == 1
    assert database.count_salts() == 2


@pytest.mark.parametrize(
    ("left", "games", "all_attested", "committed"),
    [
        (2 * BLOCKS - 1, 0, True, 0),
        (-1_000, 0, True, 0),
        (2 * BLOCKS, 0, True, 1),
        (2 * BLOCKS - 1, 1, True, 1),
        (2 * BLOCKS - 1, 0, False, 1),
    ],
)
def test_nothing_is_sent_where_the_task_may_be_settled_before(
    chain: Chain, database: Database, left: int, games: int, all_attested: bool, committed: int
) -> None:
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    chain.task = replace(VIEW, challenge_until=NOW + left, open_games=games)
    chain.seats = attested(*range(4 if all_attested else 3)).seats
    assert look(one, chain) == 1
    assert len(chain.looks.committed) == committed
    assert database.salts(TASK, 1) == [SALT], "a game may still open"


def test_a_commitment_is_used_however_late_it_is(chain: Chain, database: Database) -> None:
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    look(one, chain)
    chain.task, chain.seats = replace(VIEW, challenge_until=NOW), attested(*range(4)).seats
    look(one, chain)
    assert chain.looks.informed == [(TASK, 1, DIGEST, SALT)]


@pytest.mark.parametrize(
    ("audit", "sent"),
    [
        (replace(AUDIT, level=1, pending=True, round=2 * BLOCKS + 1), True),
        (replace(AUDIT, level=1, pending=True, round=2 * BLOCKS), False),
        (replace(AUDIT, level=1, pending=False), False),
        (replace(AUDIT, level=1, pending=True, round=1_000, picked_at=NOW - 1), False),
    ],
    ids=["the round is far", "the round may come first", "no draw is pending", "looks were picked"],
)
def test_nothing_is_sent_once_looks_may_reveal_salts(
    chain: Chain, database: Database, audit: AuditView, sent: bool
) -> None:
    """The board refuses a salt that looks may have revealed, so the commitment would only cost gas."""
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    chain.audit = audit
    assert look(one, chain) == 1
    assert len(chain.looks.committed) == sent


def test_a_commitment_is_not_followed_by_a_call_that_looks_forbid(chain: Chain, database: Database) -> None:
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    look(one, chain)
    chain.audit = replace(AUDIT, level=1, pending=True, round=0)
    assert (look(one, chain), chain.looks.informed) == (1, [])
    chain.audit = replace(AUDIT, level=1, pending=True, round=1)
    assert (look(one, chain), chain.looks.informed) == (1, [(TASK, 1, DIGEST, SALT)])


def test_after_a_restart_it_goes_on_where_it_was(chain: Chain, database: Database) -> None:
    informer(chain, database).offer(TASK, 1, SALT)
    look(informer(chain, database), chain)
    assert len(chain.looks.committed) == 1
    look(informer(chain, database), chain)
    assert len(chain.looks.informed) == 1
    assert database.salts(TASK, 1) == []


def test_a_call_that_is_on_its_way_since_before_the_restart_is_waited_for(
    chain: Chain, database: Database
) -> None:
    """The call that an earlier process sent may already be mined. The contract then no longer has its
    commitment, but no second commitment is made.
    """
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    look(one, chain)
    chain.looks.committed.clear()
    chain.looks.unseen.append((TASK, 1, DIGEST, SALT))
    metrics = Metrics()
    look(OfferedSalts(chain.client, {ME}, database, metrics), chain)
    assert metrics.registry.get_sample_value("assay_verifier_informed_total") == 1
    assert (database.salts(TASK, 1), chain.looks.committed) == ([], {})


def test_who_comes_second_sends_nothing_more(chain: Chain, database: Database) -> None:
    first = informer(chain, database)
    first.offer(TASK, 1, SALT)
    chain.word = None
    look(first, chain)
    assert chain.looks.committed == {}, "it was emptied before the commitment"


def test_who_comes_second_after_its_commitment_lets_go(
    chain: Chain, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    look(one, chain)
    words = iter([chain.word, None])  # emptied while the call is on its way
    monkeypatch.setattr(chain.client.audit, "attestation", lambda _task, _seat: next(words))
    chain.word = None
    look(one, chain)
    assert chain.looks.informed == []


def test_while_the_node_is_behind_the_attestation_no_salt_is_dropped(
    chain: Chain, database: Database
) -> None:
    """The node's events show only an earlier attestation, after which the seat was emptied."""
    one = informer(chain, database)
    one.offer(TASK, 1, WRONG)
    due, chain.word = chain.word, attestation_word(DIGEST, salt_hash(WRONG))
    look(one, chain)
    assert database.salts(TASK, 1) == [WRONG]
    chain.word = due
    look(one, chain)
    assert database.salts(TASK, 1) == []


def test_another_refusal_is_tried_again(
    chain: Chain, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = informer(chain, database)
    one.offer(TASK, 1, SALT)
    look(one, chain)
    refused = Reverted("Looks.inform", "SameBlock", {})

    def refuse(*_arguments: object) -> None:
        raise refused

    with monkeypatch.context() as patch:
        patch.setattr(chain.looks, "inform", refuse)
        with pytest.raises(Reverted):
            look(one, chain)
    look(one, chain)
    assert len(chain.looks.informed) == 1


@pytest.mark.parametrize("text", ["", "0x", SALT.hex()[1:], SALT.hex() + "\n", "0x0x" + SALT.hex()[4:]])
def test_a_salt_has_64_digits(text: str) -> None:
    with pytest.raises(SaltRefused, match="expected 64 hexadecimal digits"):
        parsed_salt(text)
    assert parsed_salt(SALT.hex()) == parsed_salt("0x" + SALT.hex().upper()) == SALT
