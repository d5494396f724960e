"""One challenge on the real contracts: on time, interrupted between writes, too late, or no longer needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from protocol.chain.client import Client
from protocol.chain.deploy import deploy
from protocol.chain.devnet import Devnet
from protocol.chain.errors import Reverted
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import TaskStatus
from protocol.dispute.keys import NO_SEAT, SEGMENT_UNKNOWN, priority_commitment
from protocol.node.database import Identity
from protocol.node.party.funds import NotEnoughCoin, NotEnoughTokens
from protocol.tasks.admission import Engagement, Owed, Rates, Work
from protocol.tasks.task import Terms
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING, draw_first
from tests.chain.trees import ROOTS, SEGMENTS, TREE, fund, terms
from verifier.bonds import Bonds
from verifier.challenge_commitment import ChallengeCommitment
from verifier.challenging import ChallengeDriver
from verifier.database import COMMITTING, Challenge, Database

pytestmark = pytest.mark.chain

SEGMENT = 2
BOND = terms().bond
LONG = 10_000
"""Length of a challenge window, in seconds. It is longer than the time for which a commitment is valid."""


class Interrupted(Exception):
    """Simulates the death of the process at the point where this is raised."""


class Challenger:
    """A verifier with the tokens of one bond, and a task with a false segment that the verifier must
    challenge. If `seated`, the verifier holds the task's seat and has not attested, and another verifier may
    be drawn after it. Otherwise another verifier holds the seat and has attested.
    """

    def __init__(
        self, chain: Devnet, connected: Connect, folder: Path, seated: bool = False, **changes: int
    ) -> None:
        self.chain, self.terms = chain, terms(**changes)
        self.others: dict[int, Terms] = {}
        """Terms of the tasks other than `task`, by number."""
        self.everywhere: list[Bonds] = []
        """The bonds under all deployments."""
        self.beside: Sequence[Owed] = ()
        self.submitter, self.solver, verifier, self.client = map(connected, (1, 2, 3, 4))
        for party in (self.submitter, self.solver):
            fund(party, 2000)
        for party in (verifier, self.client) if seated else (verifier,):
            fund(party, DEVNET.stake_unit // TOKEN)
            party.audit.register(0, ANYTHING)
        self.task = submitted(chain, self.submitter, self.solver, **changes)
        draw_first(self.solver, chain)
        if not seated:
            verifier.audit.attest(self.task, 0, bytes(32), bytes(32))
        elif self.holder == verifier.address:
            self.client = verifier
        self.mint()
        self.database = Database(folder / "verifier.sqlite", Identity("chain", "market", "account"))
        self.note(0 if seated else NO_SEAT)

    def mint(self) -> None:
        """Give the client the tokens of a bond."""
        self.client.token.mint(self.client.address, BOND)

    @property
    def holder(self) -> str:
        """The account that holds the task's seat."""
        return self.client.audit.seat(self.task, 0).account

    def redraw(self) -> None:
        """Let the seat's time end, and draw it again."""
        self.chain.skip(max(0, self.client.audit.audit(self.task).until - self.client.now()) + 1)
        self.solver.audit.redraw(self.task)
        draw_first(self.solver, self.chain)
        assert self.holder != self.client.address

    def note(self, seat: int) -> None:
        """Record in the database that the segment was found false. `seat` is the seat that the account had
        then, or `NO_SEAT`.
        """
        self.database.put_challenge(
            Challenge(self.task, seat, self.client.address, SEGMENT, bytes(32), b"".join(ROOTS))
        )

    @property
    def challenge(self) -> Challenge:
        """The challenge as the database has it."""
        (found,) = self.database.challenges(self.task)
        return found

    @property
    def unlocked(self) -> int:
        """The client's token units that no lock holds, in the vault and outside it."""
        return self.client.vault.free(self.client.address) + self.client.token.balance_of(self.client.address)

    def commitment(self, challenge: Challenge, client: Client | None = None) -> bytes:
        """The commitment to a challenge of the segment, with the salt of `challenge`. If another `client` is
        given, the commitment is that client's and names no segment.
        """
        calls, chain = self.client.commitments, self.client.deployment.chain_id
        segment, account = (
            (SEGMENT, self.client.address) if client is None else (SEGMENT_UNKNOWN, client.address)
        )
        return priority_commitment(chain, calls.address, self.task, segment, account, challenge.salt)

    def advance(self) -> None:
        """Take the next step, as a newly started process would, and mine a block."""
        self.driver().advance()
        self.chain.mine()  # a commitment is opened in a later block

    def driver(self) -> ChallengeDriver:
        """The challenge's driver, as a newly started process would make it."""
        clients, row = {self.client.address: self.client}, self.challenge
        bonds = Bonds(
            clients,
            self.database,
            lambda task: self.others.get(task, self.terms),
            everywhere=self.everywhere,
        )
        rates, beside = Rates(1e12), self.beside
        commitment = ChallengeCommitment(
            self.client, self.database, bonds, self.terms, row, lambda: rates, beside=lambda _row: beside
        )
        return ChallengeDriver(self.client, self.database, commitment, row)

    def killed(self, before: str, field: str = "") -> None:
        """Take the next step in a process that is killed just before it calls the database's method `before`.
        If `field` is given, only a call that sets that field counts.
        """
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

    def greater_task(self, bond: int, **changes: int) -> int:
        """Bring another task, with twice the stake and with this `bond`, to its submission, and note a false
        segment in it. Returns the task's number.
        """
        changes |= {"bond": bond, "stake": 2 * self.terms.stake}
        fund(self.submitter, 2000)
        fund(self.solver, 2000)
        task = submitted(self.chain, self.submitter, self.solver, **changes)
        draw_first(self.solver, self.chain)
        self.others[task] = terms(**changes)
        self.database.put_challenge(
            Challenge(task, NO_SEAT, self.client.address, SEGMENT, bytes(32), b"".join(ROOTS))
        )
        return task

    def end_task(self) -> None:
        """Settle the task, which nobody has challenged."""
        self.chain.skip(self.terms.challenge_period + 1)
        self.solver.market.settle(self.task)
        assert self.solver.market.task(self.task).status is TaskStatus.SETTLED


def submitted(chain: Devnet, submitter: Client, solver: Client, **changes: int) -> int:
    """Bring a new task to its submission, after which it can be challenged; returns its id."""
    task, _ = submitter.market.post(terms(**changes))
    solver.market.bid(task, 90 * TOKEN)
    chain.skip(terms().bidding_period + 1)
    solver.market.assign(task)
    path = TREE.inclusion_path(SEGMENTS)
    solver.market.submit(task, TREE.root, TREE.inclusion_path(0), [], ROOTS[SEGMENTS], path)
    return task


@pytest.fixture
def challenger(chain: Devnet, connected: Connect, tmp_path: Path) -> Iterator[Challenger]:
    made = Challenger(chain, connected, tmp_path, challenge_period=LONG)
    yield made
    made.database.close()


def test_without_coin_for_the_game_nothing_is_committed_until_it_comes(challenger: Challenger) -> None:
    client, connection = challenger.client, challenger.chain.connection
    kept = connection.balance(client.address)
    due = client.game.coin_of_longest()
    try:
        connection.request("anvil_setBalance", client.address, hex(due // 2))
        with pytest.raises(
            NotEnoughCoin, match="of the chain's coin for deposits and gas of 1 of the longest games"
        ):
            challenger.advance()
        assert challenger.challenge.opening_until is None
    finally:
        connection.request("anvil_setBalance", client.address, hex(kept))
    challenger.advance()
    assert challenger.challenge.opening_until not in (None, COMMITTING)


def test_coin_for_a_game_under_other_contracts_is_not_spent_twice(
    challenger: Challenger, tmp_path: Path
) -> None:
    client, connection = challenger.client, challenger.chain.connection
    database = Database(tmp_path / "elsewhere.sqlite", Identity("chain", "elsewhere", "account"))
    database.put_challenge(Challenge(7, NO_SEAT, client.address, SEGMENT, bytes(32), b""))
    database.update_challenge((7, NO_SEAT), opening_until=COMMITTING)
    Bonds({}, database, lambda _task: challenger.terms, everywhere=challenger.everywhere)
    kept, due = connection.balance(client.address), client.game.coin_of_longest()
    try:
        connection.request("anvil_setBalance", client.address, hex(due * 3 // 2))
        with pytest.raises(NotEnoughCoin, match="2 of the longest games"):
            challenger.advance()
    finally:
        connection.request("anvil_setBalance", client.address, hex(kept))
    assert challenger.challenge.opening_until is None
    database.close()


def test_the_tokens_for_one_bond_go_to_the_task_with_the_larger_stake(challenger: Challenger) -> None:
    challenger.greater_task(BOND, challenge_period=LONG)
    with pytest.raises(NotEnoughTokens):
        challenger.advance()
    assert (challenger.challenge.opening_until, challenger.unlocked) == (None, BOND)


def test_a_bond_beyond_all_tokens_keeps_no_smaller_one_from_being_locked(challenger: Challenger) -> None:
    """A solver in league with a submitter could otherwise keep a verifier from all smaller tasks by a task
    with a bond that the verifier cannot pay. Such a task costs them nothing.
    """
    challenger.greater_task(BOND + 1, challenge_period=LONG)
    challenger.advance()
    assert challenger.challenge.is_committed


def test_a_larger_task_that_cannot_be_challenged_any_more_keeps_no_bond(challenger: Challenger) -> None:
    """Nobody has to settle the larger task, so it may stay unsettled for as long as its solver likes."""
    task = challenger.greater_task(BOND, challenge_period=300)
    until = challenger.client.market.task(task).challenge_until
    challenger.chain.skip(until - challenger.client.now() + 1)
    challenger.advance()
    assert challenger.challenge.is_committed


def test_tokens_that_are_kept_ready_under_other_contracts_go_to_a_challenge(
    challenger: Challenger, connected: Connect, tmp_path: Path
) -> None:
    """Otherwise, a task with a large bond under old contracts, which anyone may post, would bind the tokens
    of a verifier, and no cheat under the new ones would be challenged.
    """
    deployer, client = connected(0).sender, challenger.client
    assert deployer is not None
    there = client.for_deployment(deploy(deployer, token=client.token.address, salt="later"))
    database = Database(tmp_path / "elsewhere.sqlite", Identity("chain", "elsewhere", "account"))
    elsewhere = Bonds(
        {client.address: there}, database, lambda _task: challenger.terms, everywhere=challenger.everywhere
    )
    elsewhere.make_ready(client.address, 1)
    assert (challenger.unlocked, there.vault.free(client.address)) == (0, BOND)
    challenger.advance()
    assert challenger.challenge.is_committed
    assert (challenger.unlocked, there.vault.free(client.address)) == (0, 0)
    database.close()


def test_a_refused_commitment_keeps_no_tokens_for_its_bond(
    challenger: Challenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window ends after the bond was noted as at stake and before the commitment is sent. The tokens then
    go to a challenge in another task.
    """
    real = challenger.database.update_challenge

    def late(key: tuple[int, int], **fields: Any) -> None:
        real(key, **fields)
        challenger.chain.skip(LONG + 1)

    with monkeypatch.context() as patch:
        patch.setattr(challenger.database, "update_challenge", late)
        with pytest.raises(Reverted):
            challenger.advance()
    assert challenger.challenge.opening_until is None
    challenger.task = challenger.greater_task(BOND, challenge_period=LONG)
    challenger.advance()
    assert challenger.challenge.is_committed


def test_a_challenge_is_committed_and_then_opened(challenger: Challenger) -> None:
    challenger.advance()
    assert (challenger.unlocked, challenger.challenge.game) == (0, None)
    challenger.advance()
    game = challenger.client.game.game(1)
    assert (challenger.challenge.game, game.task, game.segment) == (1, challenger.task, SEGMENT)


@pytest.fixture
def seated(chain: Devnet, connected: Connect, tmp_path: Path) -> Iterator[Challenger]:
    made = Challenger(chain, connected, tmp_path, seated=True, challenge_period=LONG)
    yield made
    made.database.close()


def test_a_difference_of_a_seat_that_was_drawn_again_is_challenged_without_the_seat(
    seated: Challenger,
) -> None:
    seated.redraw()
    seated.advance()
    assert (seated.unlocked, seated.challenge.is_committed) == (0, True)
    seated.advance()
    game = seated.client.game.game(1)
    assert (seated.challenge.game, game.challenger, game.segment) == (1, seated.client.address, SEGMENT)


def test_a_bond_that_comes_after_the_seat_was_drawn_again_is_used(seated: Challenger) -> None:
    seated.client.token.approve(seated.solver.address, BOND)
    taken = seated.client.address, seated.solver.address, BOND
    seated.solver.token.write("transferFrom", *taken)
    with pytest.raises(NotEnoughTokens, match="for bonds"):
        seated.advance()
    seated.redraw()
    seated.mint()
    seated.advance()
    seated.advance()
    assert (seated.unlocked, seated.challenge.game) == (0, 1)


def test_a_commitment_that_was_sent_before_the_redraw_is_found_after_a_kill(seated: Challenger) -> None:
    seated.killed("update_challenge", "opening_until")
    assert seated.challenge.opening_until == COMMITTING
    seated.redraw()
    seated.advance()
    seated.advance()
    assert seated.challenge.game == 1


def test_a_game_that_was_opened_before_a_kill_is_found_after_the_window(challenger: Challenger) -> None:
    challenger.advance()
    challenger.killed("update_challenge", "game")
    assert challenger.client.game.games() == 1
    challenger.chain.skip(LONG + 1)
    challenger.advance()
    assert (challenger.challenge.game, challenger.challenge.outcome) == (1, None)


def test_a_commitment_that_was_made_before_a_kill_needs_no_second_bond(challenger: Challenger) -> None:
    challenger.killed("update_challenge", "opening_until")
    assert challenger.unlocked == 0
    assert challenger.challenge.opening_until == COMMITTING, "at stake, though nobody knows until when"
    challenger.advance()
    challenger.advance()
    assert challenger.challenge.game == 1


def test_a_commitment_that_was_made_before_a_kill_is_lost_with_a_task_that_is_over(
    challenger: Challenger,
) -> None:
    challenger.killed("update_challenge", "opening_until")
    challenger.end_task()
    challenger.advance()
    challenger.advance()
    assert (challenger.challenge.outcome, challenger.unlocked) == ("forfeited", 0)


def test_no_bond_is_locked_for_a_task_that_is_over(challenger: Challenger) -> None:
    challenger.end_task()
    challenger.advance()
    assert (challenger.challenge.outcome, challenger.unlocked) == ("needless", BOND)


def test_no_bond_is_locked_where_a_move_would_be_late_for_its_block(
    chain: Devnet, connected: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast the machine is, two blocks of 20 s for each of 111 moves do not fit into the clock."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    entry = 'name = "slow"\nblock_time = 20\nfees = "eip1559"\nreorg_depth = 8\nfinality = "latest"\n'
    (tmp_path / "chains.toml").write_text(f"[{chain.chain_id}]\n{entry}")
    challenger = Challenger(chain, connected, tmp_path, challenge_period=LONG, clock=4_439)
    challenger.advance()
    assert (challenger.challenge.outcome, challenger.unlocked) == ("clock_too_short", BOND)
    challenger.database.close()


def test_no_bond_is_locked_beside_work_that_the_game_does_not_fit_to_and_later_it_is(
    chain: Devnet, connected: Connect, tmp_path: Path
) -> None:
    """Of the clock of 300 s, moves take 222 s, and waiting for running steps takes 33.3 s. The other work and
    0.6 s of replays must fit into the remaining 44.7 s.
    """
    challenger = Challenger(chain, connected, tmp_path, challenge_period=LONG, step_operations=5 * 10**10)
    busy = Engagement("seat 0 of task 9", Work(148 * 10**11), 44.8)
    challenger.beside = [busy]
    with structlog.testing.capture_logs() as lines:
        challenger.advance()
    assert (challenger.challenge.opening_until, challenger.challenge.outcome) == (None, None)
    assert challenger.unlocked == BOND
    assert [line["sum"] for line in lines if line["event"] == "not challenged while other work is due"] == [
        "seat 0 of task 9 and this game: 5 min 1 s needed within 5 min"
    ]
    challenger.beside = [replace(busy, work=Work(146 * 10**11))]
    challenger.advance()
    assert challenger.challenge.opening_until not in (None, COMMITTING)
    challenger.database.close()


def test_no_bond_is_locked_when_the_window_is_over(challenger: Challenger) -> None:
    challenger.chain.skip(LONG + 1)
    challenger.advance()
    assert (challenger.challenge.opening_until, challenger.challenge.outcome) == (None, None)
    assert challenger.unlocked == BOND


def test_no_bond_is_locked_where_there_is_no_time_to_open(challenger: Challenger) -> None:
    """A commitment may take two blocks to be mined. Its opening must be in a later block, and may take three
    more blocks.
    """
    until = challenger.client.market.task(challenger.task).challenge_until
    challenger.chain.next_block_at(until - 4)
    challenger.chain.mine()
    challenger.advance()
    assert (challenger.challenge.opening_until, challenger.unlocked) == (None, BOND)


@pytest.mark.parametrize("killed", [False, True])
def test_a_commitment_that_was_not_opened_in_time_is_forfeited_and_made_anew(
    challenger: Challenger, killed: bool
) -> None:
    client = challenger.client
    challenger.advance()
    first = challenger.challenge
    challenger.chain.skip(DEVNET.opening_period + 10)
    if killed:
        challenger.killed("renew_challenge")
        assert challenger.challenge == first
    challenger.advance()
    assert (challenger.challenge.opening_until, challenger.challenge.outcome) == (None, None)
    assert challenger.challenge.salt != first.salt
    assert challenger.unlocked == 0
    burned = client.vault.burned()
    challenger.solver.commitments.forfeit(client.address, challenger.commitment(first))
    assert client.vault.burned() == burned + BOND
    client.token.mint(client.address, BOND)
    challenger.advance()
    assert challenger.unlocked == 0
    challenger.advance()
    assert challenger.challenge.game == 1


@pytest.mark.parametrize("opened", [0, 1])
def test_commitments_that_were_not_opened_double_no_bond(
    challenger: Challenger, connected: Connect, opened: int
) -> None:
    """While a stranger's sixteen commitments are held, each with a bond, the next bond is doubled. The
    stranger opens `opened` of them as games. When the time to open the others has passed, the challenger
    burns the stranger's bonds for those by `forfeit`, so that the challenger's own bond is not doubled.
    """
    client, stranger, driver = challenger.client, connected(5), challenger.driver()
    fund(stranger, 2000)
    salts = [bytes([k]) * 32 for k in range(16)]
    for salt in salts:
        stranger.commitments.commit(
            challenger.task,
            NO_SEAT,
            challenger.commitment(replace(challenger.challenge, salt=salt), stranger),
        )
    challenger.chain.mine()
    for salt in salts[:opened]:
        stranger.game.challenge_blind(challenger.task, salt)
    assert client.commitments.bond(challenger.task, NO_SEAT) == 2 * BOND
    challenger.chain.skip(DEVNET.opening_period + 10)
    burned = client.vault.burned()
    while not challenger.challenge.is_committed:
        driver.advance()
        challenger.chain.mine()
    assert client.vault.burned() == burned + (16 - opened) * BOND
    assert challenger.unlocked == 0
    assert client.commitments.held(challenger.task) == 1 + opened


def test_a_commitment_that_was_not_opened_before_the_window_ended_is_not_repeated(
    challenger: Challenger,
) -> None:
    challenger.advance()
    challenger.chain.skip(LONG + 1)
    challenger.advance()
    challenger.client.token.mint(challenger.client.address, BOND)
    challenger.advance()
    assert challenger.unlocked == BOND
    challenger.end_task()
    challenger.advance()
    assert (challenger.challenge.outcome, challenger.unlocked) == ("needless", BOND)
