"""Transactions that are sent together: the chain is read once for all of them, their nonces are consecutive,
and each is sent once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic, sleep

import pytest
from eth_account import Account

from protocol.chain.accounts import development_account
from protocol.chain.connection import Connection
from protocol.chain.devnet import Devnet
from protocol.chain.errors import ChainError, InsufficientFunds, Reverted, RpcRefused
from protocol.chain.fees import Call
from protocol.chain.journal import Status
from protocol.chain.receipts import Receipt
from protocol.chain.transactions import Sender, Sending, Sent
from tests.chain.conftest import QUICK, Connect
from tests.chain.rpc_proxy import RpcProxy
from tests.chain.sending import NOWHERE, Interrupted, broken, transfer

pytestmark = pytest.mark.chain

COUNT = 16
"""The most nodes that a demand may name."""
TOGETHER = [(transfer(2**k), f"part {k}") for k in range(COUNT)]


@pytest.fixture
def proxy(chain: Devnet) -> Iterator[RpcProxy]:
    with RpcProxy(chain.url) as made:
        yield made


@contextmanager
def held(chain: Devnet) -> Iterator[None]:
    """Mine no blocks inside the context."""
    chain.connection.request("evm_setAutomine", False)
    try:
        yield
    finally:
        chain.connection.request("evm_setAutomine", True)


def nonces_of(sent: Sequence[Sent]) -> list[int]:
    """Nonces of the transactions that were not refused."""
    return [one.nonce for one in sent if one.nonce is not None and one.refused is None]


def received(sender: Sender, sent: Sequence[Sent]) -> list[Receipt]:
    """Wait until none of the sent transactions is pending; returns the receipts of those that were mined."""
    give_up = monotonic() + 60
    while None in (outcomes := sender.outcomes(sent)):
        assert monotonic() < give_up
        sleep(0.01)
    return [outcome for outcome in outcomes if isinstance(outcome, Receipt)]


def test_sixteen_ask_the_node_for_little_and_share_a_block(chain: Devnet, proxy: RpcProxy) -> None:
    """The transactions share the calls for nonce, block, fees and balance: sixteen transactions need at most
    48 calls, in at most eight requests.
    """
    connection = Connection(proxy.url)
    patient = replace(QUICK, look_again=600.0)
    with Sender(connection, development_account(4, chain.chain_id), patient) as sender:
        sender.send(transfer(), "first")  # from now on the chain is known
        before, requests = proxy.asked.total(), proxy.requests
        with held(chain):
            sent = sender.hand_over(TOGETHER)
            assert proxy.asked.total() - before <= 3 * COUNT
            assert proxy.requests - requests <= 8
            first = sent[0].nonce
            assert first is not None
            assert nonces_of(sent) == list(range(first, first + COUNT))
            requests = proxy.requests
            assert sender.outcomes(sent) == [None] * COUNT
            assert proxy.requests - requests <= 2
            chain.mine()
        receipts = received(sender, sent)
        assert len(receipts) == COUNT
        assert len({receipt.block for receipt in receipts}) == 1
    connection.close()


def test_a_node_that_takes_no_batches_is_asked_one_by_one(chain: Devnet, proxy: RpcProxy) -> None:
    proxy.faults.batches = False
    before = chain.connection.balance(NOWHERE)
    connection = Connection(proxy.url)
    with Sender(connection, development_account(4, chain.chain_id), QUICK) as sender:
        sent = sender.hand_over(TOGETHER)
        assert len(received(sender, sent)) == COUNT
    connection.close()
    assert chain.connection.balance(NOWHERE) - before == 2**COUNT - 1


def test_they_go_to_every_node_and_one_is_enough(chain: Devnet, proxy: RpcProxy) -> None:
    before = chain.connection.balance(NOWHERE)
    with RpcProxy(chain.url) as far:
        connection = Connection((proxy.url, far.url))
        with Sender(connection, development_account(4, chain.chain_id), QUICK) as sender:
            proxy.faults.lose_broadcasts = True
            sent = sender.hand_over(TOGETHER[:8])
            assert len(received(sender, sent)) == 8, "the other node has them"
            far.faults.down, proxy.faults.lose_broadcasts = True, False
            sent += sender.hand_over(TOGETHER[8:])
            far.faults.down, proxy.faults.error = False, "too many requests"
            assert len(received(sender, sent)) == COUNT
        assert proxy.asked["eth_sendRawTransaction"] == COUNT
        connection.close()
    assert chain.connection.balance(NOWHERE) - before == 2**COUNT - 1


@pytest.mark.parametrize("arrive", [0, 7, COUNT])
def test_each_is_carried_out_once_whatever_arrived_before_the_process_died(
    chain: Devnet, arrive: int
) -> None:
    account = development_account(4, chain.chain_id)
    before = chain.connection.balance(NOWHERE)
    with (
        Sender(broken(chain.connection, arrive=arrive), account, QUICK) as dying,
        pytest.raises(Interrupted),
    ):
        dying.hand_over(TOGETHER)
    with Sender(chain.connection, account, QUICK) as restarted:
        signed = [entry.nonce for entry in restarted.journal.since(0) if entry.intent.startswith("part")]
        assert len(signed) == COUNT
        assert restarted.recover() == COUNT - arrive
        sent = restarted.hand_over(TOGETHER)
        assert nonces_of(sent) == signed
        assert received(restarted, sent) == received(restarted, restarted.hand_over(TOGETHER))
    assert chain.connection.balance(NOWHERE) - before == 2**COUNT - 1


def test_one_that_a_contract_refuses_holds_none_of_the_others(connected: Connect, sender: Sender) -> None:
    market = connected(5).market
    refused = Call(market.address, market.contract.encode("assign", (99,)), "TaskMarket.assign")
    sent = sender.hand_over([TOGETHER[0], (refused, "refused"), TOGETHER[1]])
    assert isinstance(sent[1].refused, Reverted)
    assert len(received(sender, [sent[0], sent[2]])) == 2
    assert sent[2].nonce == (sent[0].nonce or 0) + 1


def test_what_the_balance_does_not_reach_for_is_sent_later(chain: Devnet) -> None:
    """A node refuses transactions that together cost more than the balance."""
    account = Account.create()
    give = 10**16
    with Sender(chain.connection, account, QUICK) as poor:
        chain.connection.request("anvil_setBalance", account.address, hex(3 * give))
        wanted = [(transfer(give), f"gift {k}") for k in range(3)]
        sent = poor.hand_over(wanted)
        assert [type(one.refused) for one in sent] == [type(None), type(None), InsufficientFunds]
        assert len(received(poor, sent[:2])) == 2
        chain.connection.request("anvil_setBalance", account.address, hex(2 * give))
        again = poor.hand_over(wanted)
        assert len(received(poor, again)) == 3
        assert nonces_of(again) == [0, 1, 2]


def test_a_nonce_that_the_node_refused_among_them_is_used_by_the_next(chain: Devnet) -> None:
    connection = Connection(chain.url)
    real = connection.broadcast

    def refuses_the_second(raws: Sequence[bytes]) -> list[str | ChainError]:
        taken = real([raw for k, raw in enumerate(raws) if k != 1])
        return [*taken[:1], RpcRefused("broadcast", "transaction pool is full"), *taken[1:]]

    account = development_account(4, chain.chain_id)
    with Sender(connection, account, Sending(timeout=30, poll=0.01)) as sender:
        connection.broadcast = refuses_the_second  # type: ignore[method-assign]
        sent = sender.hand_over(TOGETHER[:3])
        assert isinstance(sent[1].refused, RpcRefused)
        connection.broadcast = real  # type: ignore[method-assign]
        (again,) = sender.hand_over(TOGETHER[1:2])
        assert again.nonce == sent[1].nonce
        assert len(received(sender, [sent[0], again, sent[2]])) == 3
        assert [entry.status for entry in sender.journal.of_intent("part 1")] == [Status.MINED]
    connection.close()


def test_what_is_asked_for_twice_is_sent_once(sender: Sender) -> None:
    before = sender.connection.balance(NOWHERE)
    twice = sender.hand_over([TOGETHER[3], TOGETHER[3]])
    assert twice[0] == twice[1]
    assert len(received(sender, twice)) == 2
    assert sender.connection.balance(NOWHERE) - before == 8
