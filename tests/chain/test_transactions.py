"""Sending: an intent is carried out once whatever dies in between, nonces never jam, and failures say why."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from protocol.chain.accounts import development_account
from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import (
    AccountInUse,
    ChainError,
    InsufficientFunds,
    JournalError,
    NonceTaken,
    NotMined,
    Reverted,
    RpcRefused,
    RpcUnavailable,
)
from protocol.chain.fees import Call
from protocol.chain.journal import Entry, Journal, Status
from protocol.chain.transactions import Sender, Sending, Sent
from tests.chain.conftest import QUICK, Connect
from tests.chain.rpc_proxy import RpcProxy
from tests.chain.trees import fund, terms

pytestmark = pytest.mark.chain

NOWHERE = "0x" + "77" * 20


class Interrupted(Exception):
    """The process dies at this point."""


def transfer(value: int = 1) -> Call:
    return Call(NOWHERE, b"", "transfer", value)


def broken(connection: Connection, *, arrives: bool) -> Connection:
    """The same node, but the process dies while broadcasting, before or after the node has the transaction."""
    frail = Connection(connection.url)
    real = frail.broadcast

    def broadcast(raws: Sequence[bytes]) -> list[str | ChainError]:
        if arrives:
            real(raws)
        raise Interrupted

    frail.broadcast = broadcast  # type: ignore[method-assign]
    return frail


def after(what: Callable[[], bool], act: Callable[[], None]) -> threading.Thread:
    """Act in a thread once something holds."""

    def run() -> None:
        while not what():
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def is_replaced(sender: Sender, intent: str) -> bool:
    """Whether the node has another transaction for the intent than the first one."""
    return any(sender.connection.knows(entry.hash) for entry in sender.journal.of_intent(intent)[1:])


@pytest.fixture
def sender(chain: Devnet) -> Iterator[Sender]:
    with Sender(chain.connection, development_account(4, chain.chain_id), QUICK) as opened:
        yield opened


@pytest.mark.parametrize("arrives", [False, True])
def test_an_intent_interrupted_around_the_broadcast_is_carried_out_once(chain: Devnet, arrives: bool) -> None:
    account = development_account(4, chain.chain_id)
    before = chain.connection.balance(NOWHERE)
    with (
        Sender(broken(chain.connection, arrives=arrives), account, QUICK) as dying,
        pytest.raises(Interrupted),
    ):
        dying.send(transfer(5), "pay")
    with Sender(chain.connection, account, QUICK) as restarted:
        assert restarted.recover() == (0 if arrives else 1)
        first = restarted.send(transfer(5), "pay")
        assert restarted.send(transfer(5), "pay") == first
    assert chain.connection.balance(NOWHERE) - before == 5


def test_calls_without_an_intent_are_each_their_own(sender: Sender) -> None:
    before = sender.connection.balance(NOWHERE)
    assert sender.send(transfer(3)).transaction != sender.send(transfer(3)).transaction
    assert sender.connection.balance(NOWHERE) - before == 6


def test_threads_share_an_account_without_a_gap(sender: Sender) -> None:
    start = sender.connection.transaction_count(sender.address)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            sender.send(transfer(), f"work {number}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sender.connection.transaction_count(sender.address) == start + 8


def _hold(url: str, ready: Any, done: Any) -> None:
    with Sender(Connection(url), development_account(4, 31337)):
        ready.set()
        done.wait(30)


def test_another_process_is_kept_from_the_same_account(chain: Devnet) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(chain.url, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(AccountInUse, match="stop the other process"):
            Sender(chain.connection, development_account(4, chain.chain_id))
    finally:
        done.set()
        other.join()
    Sender(chain.connection, development_account(4, chain.chain_id)).close()


def test_a_refused_call_is_not_sent_and_jams_nothing(client: Client) -> None:
    assert client.sender is not None
    nonce = client.connection.transaction_count(client.address)
    with pytest.raises(Reverted):
        client.market.bid(99, 1)
    assert client.connection.transaction_count(client.address) == nonce
    assert client.sender.journal.pending() == []
    client.token.mint(client.address, 1)


def test_a_call_that_fails_when_it_is_mined_says_why_and_what_it_cost(
    connected: Connect, chain: Devnet
) -> None:
    """A bid that is in time when it is estimated, and too late when it is mined."""
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 2000)
    verifier.audit.register(1)
    task, _ = submitter.market.post(terms())
    assert solver.sender is not None
    solver.sender.sending = Sending(timeout=0.1, poll=0.02)
    chain.connection.request("evm_setAutomine", False)
    try:
        with pytest.raises(NotMined, match="waits for the same transaction"):
            solver.market.bid(task, 10)
        chain.skip(1000)
    finally:
        chain.connection.request("evm_setAutomine", True)
    with pytest.raises(Reverted) as failed:
        solver.market.bid(task, 10)
    assert failed.value.name == "TooLate"
    assert failed.value.gas_used > 21_000
    assert "it was mined and cost" in str(failed.value)
    with pytest.raises(Reverted, match="TooLate") as again:
        solver.market.bid(task, 10)
    assert again.value.gas_used == 0, "a failed intent is tried anew, and refused before it is sent"


def test_a_transaction_that_is_not_mined_gets_a_higher_fee(chain: Devnet, sender: Sender) -> None:
    sender.sending = Sending(timeout=20, poll=0.02, replace_after=0.2)
    before = chain.connection.balance(NOWHERE)
    chain.connection.request("evm_setAutomine", False)
    try:
        miner = after(lambda: is_replaced(sender, "slow"), chain.mine)
        receipt = sender.send(transfer(4), "slow")
        miner.join()
    finally:
        chain.connection.request("evm_setAutomine", True)
    attempts = sender.journal.of_intent("slow")
    assert len(attempts) > 1
    assert len({entry.nonce for entry in attempts}) == 1
    assert receipt.transaction != attempts[0].hash, "the cheapest attempt was replaced"
    assert chain.connection.balance(NOWHERE) - before == 4
    assert sender.send(transfer(4), "slow").transaction == receipt.transaction


def test_a_transaction_that_the_node_lost_is_handed_over_again(chain: Devnet, sender: Sender) -> None:
    known: list[bool] = []

    def is_known() -> bool:
        return any(chain.connection.knows(entry.hash) for entry in sender.journal.pending())

    def lose() -> None:
        chain.connection.request("anvil_dropAllTransactions")
        known.append(is_known())
        after(is_known, chain.mine).join()

    chain.connection.request("evm_setAutomine", False)
    try:
        loser = after(is_known, lose)
        receipt = sender.send(transfer(4), "lost")
        loser.join()
    finally:
        chain.connection.request("evm_setAutomine", True)
    assert known == [False]
    assert [entry.hash for entry in sender.journal.of_intent("lost")] == [receipt.transaction]


def orphan(chain: Devnet, sender: Sender) -> Entry:
    """A transaction that nobody waits for any more, lost by a node that was restarted."""
    sender.sending = Sending(timeout=0.1, poll=0.02)
    chain.connection.request("evm_setAutomine", False)
    try:
        with pytest.raises(NotMined):
            sender.send(transfer(4), "orphan")
        (entry,) = sender.journal.of_intent("orphan")
        chain.connection.request("anvil_dropTransaction", entry.hash)
    finally:
        chain.connection.request("evm_setAutomine", True)
    assert not chain.connection.knows(entry.hash)
    return entry


def test_a_lost_transaction_that_nobody_waits_for_does_not_hold_up_the_next(
    chain: Devnet, sender: Sender
) -> None:
    before = chain.connection.balance(NOWHERE)
    lost = orphan(chain, sender)
    sender.sending = QUICK
    sender.send(transfer(5), "next")
    assert chain.connection.receipt(lost.hash) is not None
    assert chain.connection.balance(NOWHERE) - before == 9


@pytest.mark.parametrize("restarted", [False, True])
def test_a_lost_transaction_that_offers_too_little_by_now_does_not_hold_up_the_next(
    chain: Devnet, sender: Sender, restarted: bool
) -> None:
    before, usual = chain.connection.balance(NOWHERE), chain.connection.block().base_fee
    tip = int(chain.connection.request("eth_maxPriorityFeePerGas"), 16)
    lost = orphan(chain, sender)
    # A hundred times what the lost transaction offers at most; on an old chain the tip is nearly all of it.
    dear = 100 * (2 * usual + tip)
    chain.connection.request("anvil_setNextBlockBaseFeePerGas", hex(dear))
    chain.mine()
    try:
        assert chain.connection.block().base_fee == dear
        sender.sending = Sending(timeout=30, poll=0.01, replace_after=3)
        if restarted:
            assert sender.recover() == 1
        sender.send(transfer(5), "next")
    finally:
        chain.connection.request("anvil_setNextBlockBaseFeePerGas", hex(usual))
    assert chain.connection.receipt(lost.hash) is None
    assert sender.send(transfer(4), "orphan").transaction != lost.hash
    assert chain.connection.balance(NOWHERE) - before == 9


@pytest.mark.parametrize("forgets", [False, True])
def test_a_nonce_used_by_somebody_else_is_reported_and_then_the_intent_goes_on(
    chain: Devnet, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    """Also where the node `forgets` the states of blocks, as pruned ones do, and anvil at times after a revert."""
    if forgets:
        count = Connection.transaction_count

        def of_newest(connection: Connection, address: str, block: int | str = "latest") -> int:
            if isinstance(block, int):
                raise RpcRefused("eth_getTransactionCount", "missing trie node", "ask for a newer block")
            return count(connection, address, block)

        monkeypatch.setattr(Connection, "transaction_count", of_newest)
    account = development_account(4, chain.chain_id)
    with Sender(broken(chain.connection, arrives=False), account, QUICK) as dying, pytest.raises(Interrupted):
        dying.send(transfer(5), "pay")
    chain.connection.request(
        "eth_sendTransaction", {"from": account.address, "to": NOWHERE, "value": "0x1"}, attempts=1
    )
    with Sender(chain.connection, account, Sending(timeout=0.2, poll=0.02)) as sender:
        entry = sender.journal.pending()[0]
        sent = Sent(transfer(5), "pay", entry.nonce)
        assert sender.outcomes([sent]) == [None], "the other transaction may yet be taken back"
        chain.mine(chain.connection.chain.reorg_depth)
        (outcome,) = sender.outcomes([sent])
        assert isinstance(outcome, NonceTaken)
        assert "one program only" in str(outcome)
        before = chain.connection.balance(NOWHERE)
        sender.send(transfer(5), "pay")
        assert chain.connection.balance(NOWHERE) - before == 5


def test_a_transaction_taken_away_by_a_reorganisation_is_handed_over_again(
    chain: Devnet, sender: Sender
) -> None:
    snapshot = chain.connection.request("evm_snapshot")
    receipt = sender.send(transfer(6), "pay")
    before = chain.connection.balance(NOWHERE)
    assert chain.connection.request("evm_revert", snapshot)
    assert chain.connection.receipt(receipt.transaction) is None
    assert sender.recover() == 1
    again = sender.send(transfer(6), "pay")
    assert again.transaction == receipt.transaction
    assert chain.connection.balance(NOWHERE) == before


def test_a_mined_transaction_that_is_taken_back_is_mined_again_before_the_next(
    chain: Devnet, sender: Sender
) -> None:
    """Its receipt was seen, and the next nonce waits for it: nobody is restarted."""
    rpc, before = chain.connection, chain.connection.balance(NOWHERE)
    first = sender.send(transfer(6), "first")

    def waits() -> bool:
        return any(rpc.knows(entry.hash) for entry in sender.journal.of_intent("second"))

    def take_back() -> None:
        rpc.request("anvil_reorg", 1, [])
        # Of the two that wait then, anvil tries the later one first and throws it away: it is lost too.
        for transaction in (first.transaction, sender.journal.of_intent("second")[0].hash):
            after(lambda known=transaction: rpc.knows(known), chain.mine).join()  # type: ignore[misc]

    rpc.request("evm_setAutomine", False)
    try:
        taker = after(waits, take_back)
        second = sender.send(transfer(7), "second")
        taker.join()
    finally:
        rpc.request("evm_setAutomine", True)
    assert rpc.receipt(first.transaction) is not None
    assert rpc.receipt(second.transaction) is not None
    assert rpc.balance(NOWHERE) - before == 13


def test_a_nonce_that_was_given_up_does_not_hold_up_the_next(chain: Devnet, sender: Sender) -> None:
    rpc, before = chain.connection, chain.connection.balance(NOWHERE)
    lost = orphan(chain, sender)
    rpc.request("evm_setAutomine", False)
    try:
        with pytest.raises(NotMined):
            sender.send(transfer(5), "next")
        rpc.request("anvil_dropAllTransactions")
        sender.journal.mark(lost.hash, Status.DROPPED)
    finally:
        rpc.request("evm_setAutomine", True)
    assert sender.recover() == 2
    assert sender.recover() == 0
    sender.sending = QUICK
    sender.send(transfer(5), "next")
    assert rpc.balance(NOWHERE) - before == 5


def test_a_nonce_that_a_node_behind_still_counts_as_free_is_not_used_again(young: Devnet) -> None:
    account = development_account(4, young.chain_id)
    with RpcProxy(young.url) as proxy, Sender(young.connection, account, QUICK) as sender:
        sender.send(transfer(1), "first")
        used = sender.journal.of_intent("first")[0].nonce
        sender.connection = Connection(proxy.url)
        proxy.faults.stale_share = 1.0
        (sent,) = sender.hand_over([(transfer(2), "second")])
        sender.connection.close()
    assert sent.nonce == used + 1


def test_an_empty_account_is_told_what_it_needs(chain: Devnet) -> None:
    from eth_account import Account

    with Sender(chain.connection, Account.create(), QUICK) as poor, pytest.raises(InsufficientFunds) as error:
        poor.send(Call(NOWHERE, b"", "transfer"))
    assert error.value.available == 0
    assert error.value.needed > 0


def test_a_node_that_is_down_is_one_clear_error() -> None:
    with pytest.raises(RpcUnavailable, match="assay devnet"):
        Connection("http://127.0.0.1:1").request("eth_chainId", attempts=2)


def test_a_damaged_or_later_journal_is_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(JournalError, match="SQLite"):
        Journal(damaged)
    import sqlite3

    later = tmp_path / "later.sqlite"
    with sqlite3.connect(later) as database:
        database.execute("PRAGMA user_version = 9")
    database.close()
    with pytest.raises(JournalError, match="version 1"):
        Journal(later)


def test_gas_and_the_status_of_what_was_mined_are_kept(sender: Sender, deployed: Deployment) -> None:
    assert deployed.chain_id == sender.connection.chain_id
    receipt = sender.send(transfer(), "kept")
    assert receipt.gas_used == 21_000
    (entry,) = sender.journal.of_intent("kept")
    assert (entry.status, entry.block) == (Status.MINED, receipt.block)
