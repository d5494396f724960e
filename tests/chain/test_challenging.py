"""One accusation on the real contracts: interrupted between two writes, too late, or with nothing left to accuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import TaskStatus
from protocol.dispute.keys import NO_SEAT, priority_commitment
from protocol.node.database import Identity
from protocol.node.party.funds import NotEnoughCoin
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING, draw_first
from tests.chain.trees import ROOTS, SEGMENTS, TREE, fund, terms
from verifier import accusing
from verifier.bonds import Bonds
from verifier.challenging import Challenge
from verifier.database import COMMITTING, Accusation, Database

pytestmark = pytest.mark.chain

SEGMENT = 2
BOND = terms().bond
LONG = 10_000
"""Seconds of a window that is open for longer than a commitment."""


class Interrupted(Exception):
    """The process dies at this point."""


class Accuser:
    """A verifier with the tokens of one bond, and its task."""

    def __init__(self, chain: Devnet, connected: Connect, folder: Path, **changes: int) -> None:
        self.chain, self.terms = chain, terms(**changes)
        self.submitter, self.solver, verifier, self.client = map(connected, (1, 2, 3, 4))
        for party in (self.submitter, self.solver, verifier):
            fund(party, 2000)
        verifier.audit.register(0, ANYTHING)
        self.task = submitted(chain, self.submitter, self.solver, **changes)
        draw_first(verifier, chain)
        verifier.audit.attest(self.task, 0, bytes(32), bytes(32))
        self.client.token.mint(self.client.address, BOND)
        self.database = Database(folder / "verifier.sqlite", Identity("chain", "market", "account"))
        self.accuse(NO_SEAT)

    def accuse(self, seat: int) -> None:
        """Note that the segment was found false."""
        self.database.accuse(
            Accusation(self.task, seat, self.client.address, SEGMENT, bytes(32), b"".join(ROOTS))
        )

    @property
    def accusation(self) -> Accusation:
        """As it is kept."""
        (found,) = self.database.accusations(self.task)
        return found

    @property
    def unlocked(self) -> int:
        """Tokens that no lock holds."""
        return self.client.vault.free(self.client.address) + self.client.token.balance_of(self.client.address)

    def commitment(self, accusation: Accusation) -> bytes:
        """What an accusation of the segment commits to."""
        calls, chain = self.client.commitments, self.client.deployment.chain_id
        return priority_commitment(
            chain, calls.address, self.task, SEGMENT, self.client.address, accusation.salt
        )

    def advance(self) -> None:
        """The next thing, as a process does it that has just been started."""
        clients, row = {self.client.address: self.client}, self.accusation
        bonds = Bonds(clients, self.database, lambda _task: self.terms)
        accuser = accusing.Accuser(self.client, self.database, bonds, self.terms, row, 1e12)
        Challenge(self.client, self.database, accuser, row).advance()
        self.chain.mine()  # a commitment is opened in a later block

    def killed(self, before: str, field: str = "") -> None:
        """The next thing, by a process that is killed just before it notes something, or this field of it."""
        real = getattr(self.database, before)

        def note(key: tuple[int, int], *values: Any, **fields: Any) -> None:
            if not field or fields.get(field):
                raise Interrupted
            real(key, *values, **fields)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.database, before, note)
            with pytest.raises(Interrupted):
                self.advance()
        self.chain.mine()

    def end_task(self) -> None:
        """Settled: nobody has accused it."""
        self.chain.skip(self.terms.challenge_period + 1)
        self.solver.market.settle(self.task)
        assert self.solver.market.task(self.task).status is TaskStatus.SETTLED


def submitted(chain: Devnet, submitter: Client, solver: Client, **changes: int) -> int:
    """A task that can be challenged."""
    task, _ = submitter.market.post(terms(**changes))
    solver.market.bid(task, 90 * TOKEN)
    chain.skip(terms().bidding_period + 1)
    solver.market.assign(task)
    path = TREE.inclusion_path(SEGMENTS)
    solver.market.submit(task, TREE.root, TREE.inclusion_path(0), [], ROOTS[SEGMENTS], path)
    return task


@pytest.fixture
def accuser(chain: Devnet, connected: Connect, tmp_path: Path) -> Iterator[Accuser]:
    made = Accuser(chain, connected, tmp_path, challenge_period=LONG)
    yield made
    made.database.close()


def test_without_coin_for_the_game_nothing_is_committed_until_it_comes(accuser: Accuser) -> None:
    client, connection = accuser.client, accuser.chain.connection
    kept = connection.balance(client.address)
    due = client.game.coin_of_longest()
    try:
        connection.request("anvil_setBalance", client.address, hex(due // 2))
        with pytest.raises(
            NotEnoughCoin, match="of the chain's coin for deposits and gas of 1 of the longest games"
        ):
            accuser.advance()
        assert accuser.accusation.opening_until is None
    finally:
        connection.request("anvil_setBalance", client.address, hex(kept))
    accuser.advance()
    assert accuser.accusation.opening_until not in (None, COMMITTING)


def test_an_accusation_is_committed_and_then_opened(accuser: Accuser) -> None:
    accuser.advance()
    assert (accuser.unlocked, accuser.accusation.game) == (0, None)
    accuser.advance()
    game = accuser.client.game.game(1)
    assert (accuser.accusation.game, game.task, game.segment) == (1, accuser.task, SEGMENT)


def test_a_game_that_was_opened_before_a_kill_is_found_after_the_window(accuser: Accuser) -> None:
    accuser.advance()
    accuser.killed("update_accusation", "game")
    assert accuser.client.game.games() == 1
    accuser.chain.skip(LONG + 1)
    accuser.advance()
    assert (accuser.accusation.game, accuser.accusation.outcome) == (1, None)


def test_a_commitment_that_was_made_before_a_kill_needs_no_second_bond(accuser: Accuser) -> None:
    accuser.killed("update_accusation", "opening_until")
    assert accuser.unlocked == 0
    assert accuser.accusation.opening_until == COMMITTING, "at stake, though nobody knows until when"
    accuser.advance()
    accuser.advance()
    assert accuser.accusation.game == 1


def test_a_commitment_that_was_made_before_a_kill_is_lost_with_a_task_that_is_over(accuser: Accuser) -> None:
    accuser.killed("update_accusation", "opening_until")
    accuser.end_task()
    accuser.advance()
    accuser.advance()
    assert (accuser.accusation.outcome, accuser.unlocked) == ("forfeited", 0)


def test_no_bond_is_locked_for_a_task_that_is_over(accuser: Accuser) -> None:
    accuser.end_task()
    accuser.advance()
    assert (accuser.accusation.outcome, accuser.unlocked) == ("needless", BOND)


def test_no_bond_is_locked_where_a_move_would_be_late_for_its_block(
    chain: Devnet, connected: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two blocks of 20 s for each of 111 moves do not fit into the clock, however fast the machine is."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    entry = 'name = "slow"\nblock_time = 20\nfees = "eip1559"\nreorg_depth = 8\nfinality = "latest"\n'
    (tmp_path / "chains.toml").write_text(f"[{chain.chain_id}]\n{entry}")
    accuser = Accuser(chain, connected, tmp_path, challenge_period=LONG, clock=4_439)
    accuser.advance()
    assert (accuser.accusation.outcome, accuser.unlocked) == ("clock_too_short", BOND)
    accuser.database.close()


def test_no_bond_is_locked_when_the_window_is_over(accuser: Accuser) -> None:
    accuser.chain.skip(LONG + 1)
    accuser.advance()
    assert (accuser.accusation.opening_until, accuser.accusation.outcome) == (None, None)
    assert accuser.unlocked == BOND


def test_no_bond_is_locked_where_there_is_no_time_to_open(accuser: Accuser) -> None:
    """A commitment may take two blocks, its opening a later one and two more."""
    until = accuser.client.market.task(accuser.task).challenge_until
    accuser.chain.next_block_at(until - 4)
    accuser.chain.mine()
    accuser.advance()
    assert (accuser.accusation.opening_until, accuser.unlocked) == (None, BOND)


@pytest.mark.parametrize("killed", [False, True])
def test_a_commitment_that_was_not_opened_in_time_is_forfeited_and_made_anew(
    accuser: Accuser, killed: bool
) -> None:
    client = accuser.client
    accuser.advance()
    first = accuser.accusation
    accuser.chain.skip(DEVNET.opening_period + 10)
    if killed:
        accuser.killed("renew_accusation")
        assert accuser.accusation == first
    accuser.advance()
    assert (accuser.accusation.opening_until, accuser.accusation.outcome) == (None, None)
    assert accuser.accusation.salt != first.salt
    assert accuser.unlocked == 0
    burned = client.vault.burned()
    accuser.solver.commitments.forfeit(client.address, accuser.commitment(first))
    assert client.vault.burned() == burned + BOND
    client.token.mint(client.address, BOND)
    accuser.advance()
    assert accuser.unlocked == 0
    accuser.advance()
    assert accuser.accusation.game == 1


def test_a_commitment_that_was_not_opened_before_the_window_ended_is_not_repeated(accuser: Accuser) -> None:
    accuser.advance()
    accuser.chain.skip(LONG + 1)
    accuser.advance()
    accuser.client.token.mint(accuser.client.address, BOND)
    accuser.advance()
    assert accuser.unlocked == BOND
    accuser.end_task()
    accuser.advance()
    assert (accuser.accusation.outcome, accuser.unlocked) == ("needless", BOND)
