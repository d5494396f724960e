"""Sending: an intent is carried out once despite crashes, nonces never block, and failures are explained."""

from __future__ import annotations

import multiprocessing
import threading
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
    InsufficientFunds,
    JournalError,
    NotMined,
    Reverted,
    RpcUnavailable,
)
from protocol.chain.fees import Call
from protocol.chain.journal import Journal, Status
from protocol.chain.transactions import Sender, Sending
from tests.chain.conftest import QUICK, Connect
from tests.chain.rounds import ANYTHING
from tests.chain.sending import NOWHERE, Interrupted, broken, transfer
from tests.chain.trees import fund, terms

pytestmark = pytest.mark.chain


@pytest.mark.parametrize("arrives", [False, True])
def test_an_intent_interrupted_around_the_broadcast_is_carried_out_once(chain: Devnet, arrives: bool) -> None:
    account = development_account(4, chain.chain_id)
    before = chain.connection.balance(NOWHERE)
    with (
        Sender(broken(chain.connection, arrive=int(arrives)), account, QUICK) as dying,
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
        done.wait(200)


def test_another_process_is_kept_from_the_same_account(chain: Devnet) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(chain.url, ready, done))
    other.start()
    try:
        assert ready.wait(200)
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
    """A bid is in time when its gas is estimated, and too late when it is mined."""
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 2000)
    verifier.audit.register(0, ANYTHING)
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
    assert again.value.gas_used == 0, "a failed intent is tried again, and refused before it is sent"


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
