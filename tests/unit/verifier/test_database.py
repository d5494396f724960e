"""The verifier's database after restarts, damage and mix-ups."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.node.database import DatabaseError, Identity
from verifier.database import COMMITTING, UNTIL_OVER, Challenge, Database, StateRow
from verifier.errors import TwoDigests

ME = Identity("0xgenesis", "0xmarket", "0xaccount")
A, B, HASH = bytes([1]) * 32, bytes([2]) * 32, bytes([3]) * 32
SEAT, LOOK, ACCOUNT = 3, 35, "0xaccount"


def opened(folder: Path, identity: Identity = ME) -> Database:
    return Database(folder / "verifier.sqlite", identity)


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.put_attested(3, 1, HASH, A)
    first.check(3, 2, B)
    first.put_digest(3, HASH, 2, B, A)
    first.put_salt(3, 1, A)
    first.put_challenge(Challenge(4, SEAT, ACCOUNT, 2, A, A + B))
    first.update_challenge((4, SEAT), opening_until=100)
    first.update_challenge((4, SEAT), game=7)
    first.put_state(4, StateRow(1, False, A, "ab" * 32))
    first.finish(5)
    # Not closed: a killed process closes nothing.
    second = opened(tmp_path)
    assert second.attested(3, HASH) == A
    assert (second.checked(3, B), second.checked(3, A)) == ({2}, set())
    assert (second.digest(3, HASH, 2, B), second.digested(3, HASH, B)) == (A, {2})
    assert (second.digest(3, HASH, 2, A), second.digested(3, A, B)) == (None, set())
    assert (second.salts(3, 1), second.salts(3, 0), second.count_salts()) == ([A], [], 1)
    assert second.open_challenges() == [Challenge(4, SEAT, ACCOUNT, 2, A, A + B, 100, 7)]
    assert second.open_challenges()[0].checkpoint_roots() == [A, B]
    assert second.states(4, own=False) == [StateRow(1, False, A, "ab" * 32)]
    assert second.states(4, own=True) == []
    assert [task for task in range(9) if second.is_finished(task)] == [5]


def test_a_second_digest_for_a_seat_is_refused_and_the_first_one_stays(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.put_attested(3, 1, HASH, A)
    database.put_attested(3, 1, HASH, A)
    with pytest.raises(TwoDigests, match="expected the digest attested before"):
        opened(tmp_path).put_attested(3, 1, HASH, B)
    assert database.attested(3, HASH) == A
    database.put_attested(3, 1, B, B)
    assert database.attested(3, B) == B, "another salt is another seat, or another draw's seed"


def test_a_salt_is_kept_once_until_it_is_dropped(tmp_path: Path) -> None:
    database = opened(tmp_path)
    for salt in (A, B, A):
        database.put_salt(3, 1, salt)
    assert (database.salts(3, 1), database.salts(3, 0)) == ([A, B], [])
    database.drop_salt(3, 1, A)
    assert (opened(tmp_path).salts(3, 1), database.count_salts()) == ([B], 1)


def test_a_result_is_held_until_its_time_is_over_and_let_go_once(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.hold(3, UNTIL_OVER)
    database.hold(4, 100)
    database.hold(5, 101)
    assert [task for task in (3, 4, 5, 6) if database.is_held(task)] == [3, 4, 5]
    assert opened(tmp_path).held_before(101) == [4]
    database.let_go(4)
    assert (database.held_before(101), database.is_held(4)) == ([], False)
    database.hold(3, 1)
    assert sorted(database.held_before(102)) == [3, 5]


def test_a_challenge_keeps_its_salt_when_it_is_made_again(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.put_challenge(Challenge(4, SEAT, ACCOUNT, 2, A, b""))
    database.put_challenge(Challenge(4, SEAT, ACCOUNT, None, B, b""))
    assert database.challenge(4, SEAT) == Challenge(4, SEAT, ACCOUNT, 2, A, b"")


def test_a_challenge_that_begins_again_has_another_salt_and_no_commitment(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.put_challenge(Challenge(4, SEAT, ACCOUNT, 2, A, A + B))
    database.update_challenge((4, SEAT), opening_until=COMMITTING)
    assert database.challenge(4, SEAT) == Challenge(4, SEAT, ACCOUNT, 2, A, A + B, COMMITTING)
    database.update_challenge((4, SEAT), opening_until=100)
    database.renew_challenge((4, SEAT), B)
    assert database.open_challenges() == [Challenge(4, SEAT, ACCOUNT, 2, B, A + B)]
    database.update_challenge((4, SEAT), opening_until=200, game=1)
    database.renew_challenge((4, SEAT), A)
    assert database.open_challenges() == [Challenge(4, SEAT, ACCOUNT, 2, B, A + B, 200, 1)], (
        "a game is played to its end"
    )


def test_what_a_seat_was_owed_is_fetched_once(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.put_claimed(4, 1)
    database.put_claimed(4, 1)
    assert [opened(tmp_path).is_claimed(4, seat) for seat in (0, 1)] == [False, True]


def test_a_dropped_state_leaves_the_others_but_for_later_ones_of_the_same_run(tmp_path: Path) -> None:
    database = opened(tmp_path)
    rows = [StateRow(number, own, A, "ab" * 32) for own in (False, True) for number in (0, 1, 2)]
    for row in rows:
        database.put_state(4, row)
        database.put_state(5, row)
    database.drop_state(4, rows[1])
    assert database.states(4, own=False) == [rows[0], rows[2]]
    database.drop_state(4, rows[4])
    assert database.states(4, own=True) == [rows[3]]
    assert database.states(4, own=False) == [rows[0], rows[2]]
    assert database.states(5, own=False) + database.states(5, own=True) == rows


def test_a_state_of_our_own_run_is_noted_only_after_the_one_it_was_computed_from(tmp_path: Path) -> None:
    database = opened(tmp_path)
    first, second, third = (StateRow(number, True, A, "ab" * 32) for number in (0, 1, 2))
    database.put_state(4, first)
    assert not database.put_next(4, second, third), "a gap"
    assert not database.put_next(4, StateRow(0, True, B, "ab" * 32), second), "of another state"
    assert not database.put_next(5, first, second), "of another task"
    assert database.own_run(4) == [first]
    assert database.put_next(4, first, second)
    assert database.put_next(4, first, second), "two threads have computed it"
    assert database.put_next(4, second, third)
    assert database.own_run(4) == [first, second, third]
    database.drop_state(4, second)
    database.put_state(4, third)
    assert database.own_run(4) == [first]


def test_a_challenge_that_is_over_is_not_open(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.put_challenge(Challenge(4, SEAT, ACCOUNT, 2, A, b""))
    database.update_challenge((4, SEAT), outcome="solver_false")
    assert database.open_challenges() == []
    found = database.challenge(4, SEAT)
    assert found is not None
    assert found.outcome == "solver_false"


def test_finishing_a_task_drops_its_states_and_keeps_what_was_attested(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.put_state(4, StateRow(0, True, A, "ab" * 32))
    database.check(4, 1, B)
    database.put_digest(4, HASH, 1, B, A)
    database.put_salt(4, 1, A)
    database.put_attested(4, 0, HASH, A)
    database.finish(4)
    assert database.states(4, own=True) == []
    assert (database.checked(4, B), database.digested(4, HASH, B), database.salts(4, 1)) == (set(), set(), [])
    assert database.attested(4, HASH) == A


@pytest.mark.parametrize("changed", ["chain", "market", "account"])
def test_data_of_another_chain_or_account_are_refused(tmp_path: Path, changed: str) -> None:
    opened(tmp_path).close()
    other = Identity(
        **{"chain": "0xgenesis", "market": "0xmarket", "account": "0xaccount", changed: "0xother"}
    )
    with pytest.raises(DatabaseError, match="expected data of"):
        opened(tmp_path, other)


@pytest.mark.parametrize("version", [3, 9])
def test_another_version_is_refused(tmp_path: Path, version: int) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / "verifier.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(DatabaseError, match=f"version {version}"):
        opened(tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "verifier.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(DatabaseError, match="expected a SQLite database of a verifier"):
        opened(tmp_path)


def test_a_challenge_that_only_asks_is_not_the_solvers_and_goes_on_against_it(tmp_path: Path) -> None:
    database = opened(tmp_path)
    asking = Challenge(4, LOOK, ACCOUNT, 2, A, A + B, asks=True)
    database.put_challenge(asking)
    assert (database.challenges(4), database.all_challenges(4)) == ([], [asking])
    assert database.open_challenges() == [asking], "its game is played"
    database.turn_on_solver(asking)
    assert database.challenges(4) == [replace(asking, asks=False)]


def test_a_challenge_that_only_asked_makes_room_for_one_of_the_solver(tmp_path: Path) -> None:
    """A new challenge against the solver replaces a finished challenge of the same look that only asked for a
    step tree. A look needs this if it has accused a seat, so that its asking is over, and is then accused in
    turn: its account may have to play a game against the solver.
    """
    database = opened(tmp_path)
    asking = Challenge(4, LOOK, ACCOUNT, 2, A, A + B, asks=True)
    database.put_challenge(asking)
    database.update_challenge(asking.key, outcome="dropped")
    database.put_challenge(Challenge(4, LOOK, ACCOUNT, 3, B, A + B))
    assert [(row.segment, row.salt, row.asks) for row in database.all_challenges(4)] == [(3, B, False)]


def test_a_step_tree_that_nobody_had_to_ask_for_is_challenged_as_it_is(tmp_path: Path) -> None:
    database = opened(tmp_path)
    database.turn_on_solver(Challenge(4, LOOK, ACCOUNT, 2, A, A + B, asks=True))
    assert [row.asks for row in database.all_challenges(4)] == [False]
