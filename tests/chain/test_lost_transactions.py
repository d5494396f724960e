"""Transactions lost, re-organised, replaced or given up: none takes effect twice or blocks others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from protocol.chain.accounts import development_account
from protocol.chain.blocks import BlockId
from protocol.chain.connection import Connection
from protocol.chain.devnet import Devnet
from protocol.chain.errors import (
    ChainError,
    NonceTaken,
    NotMined,
    Reverted,
    RpcRefused,
)
from protocol.chain.fees import MOST, unsigned
from protocol.chain.journal import Entry, Status
from protocol.chain.transactions import Sender, Sending, Sent
from tests.chain.conftest import QUICK
from tests.chain.rpc_proxy import Faults, RpcProxy
from tests.chain.sending import (
    NOWHERE,
    Interrupted,
    after,
    broken,
    is_replaced,
    refusing,
    transfer,
    wait_mined,
)

pytestmark = pytest.mark.chain

REVERTS = "0x60006000fd"
"""Code of a contract that reverts every call without a reason."""


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


def test_the_fee_is_not_raised_far_above_the_usual_one(chain: Devnet, sender: Sender) -> None:
    """No block is mined while the sender raises the fee."""
    sender.sending = Sending(timeout=20, replace_after=0.0)
    chain.connection.request("evm_setAutomine", False)
    try:
        sender.hand_over([(transfer(4), "slow")])
        for _ in range(40):
            sender.recover()
    finally:
        chain.connection.request("evm_setAutomine", True)
    require_bounded(sender, chain)


def test_the_fee_is_not_raised_far_for_a_node_that_forgets_and_refuses_what_it_had(chain: Devnet) -> None:
    forgetful, had = Connection(chain.url), set[bytes]()

    def broadcast(raws: Sequence[bytes]) -> list[str | ChainError]:
        full = RpcRefused("broadcast", "txpool is full")
        answers: list[str | ChainError] = [full if raw in had else "0x" for raw in raws]
        had.update(raws)
        return answers

    forgetful.broadcast = broadcast  # type: ignore[method-assign]
    with Sender(forgetful, development_account(4, chain.chain_id), Sending(timeout=20)) as sender:
        sender.hand_over([(transfer(4), "slow")])
        for _ in range(40):
            sender.recover()
        require_bounded(sender, chain)
        forgetful.close()


def require_bounded(sender: Sender, chain: Devnet) -> None:
    """Require that the fee of the intent "slow" has grown by a factor of at least `MOST`, but less than 1.2
    times `MOST`.
    """
    first, *_, last = (unsigned(one.raw, chain.chain_id) for one in sender.journal.of_intent("slow"))
    assert MOST <= last["maxFeePerGas"] / first["maxFeePerGas"] < 1.2 * MOST


def test_a_transaction_that_was_refused_is_signed_again(chain: Devnet) -> None:
    """Signing again gives the same transaction, because the nonce and the fees are those of the refused one."""
    account, before = development_account(4, chain.chain_id), chain.connection.balance(NOWHERE)
    with Sender(refusing(chain.connection, 1), account, QUICK) as sender:
        (refused,) = sender.hand_over([(transfer(5), "pay")])
        assert isinstance(refused.refused, RpcRefused)
        (dropped,) = sender.journal.signed(0)
        assert dropped.status is Status.DROPPED
        assert sender.send(transfer(5), "pay").transaction == dropped.hash
        sender.connection.close()
    assert chain.connection.balance(NOWHERE) - before == 5


def test_a_gap_that_the_node_refused_to_fill_is_filled_later(chain: Devnet) -> None:
    account, before = development_account(4, chain.chain_id), chain.connection.balance(NOWHERE)
    with Sender(refusing(chain.connection, 2), account, QUICK) as sender:
        sent = sender.hand_over([(transfer(5), "first"), (transfer(6), "second")])
        assert [one.refused is None for one in sent] == [False, True]
        for _ in range(2):  # the first is refused
            sender.recover()
        sender.send(transfer(6), "second")
        sender.send(transfer(5), "first")
        sender.connection.close()
    assert chain.connection.balance(NOWHERE) - before == 11


def test_a_transaction_that_the_node_took_in_spite_of_its_error_is_not_sent_again(chain: Devnet) -> None:
    account, before = development_account(4, chain.chain_id), chain.connection.balance(NOWHERE)
    with RpcProxy(chain.url) as proxy, Sender(Connection(proxy.url), account, QUICK) as sender:
        proxy.faults.fail_broadcasts = "context deadline exceeded"
        first = sender.send(transfer(5), "pay")
        proxy.faults.fail_broadcasts = None
        assert sender.send(transfer(5), "pay") == first
        sender.connection.close()
    assert chain.connection.balance(NOWHERE) - before == 5


def test_a_refusal_does_not_count_while_another_node_has_not_answered(chain: Devnet) -> None:
    """One node takes the transaction, but its answer is garbled. The other node refuses the transaction, and
    when asked for it later, does not know it.
    """
    account, before = development_account(4, chain.chain_id), chain.connection.balance(NOWHERE)
    with RpcProxy(chain.url) as near, RpcProxy(chain.url) as far:
        both, answer = Connection((near.url, far.url)), near.answer

        def unaware(query: dict[str, Any]) -> Any:
            return {"result": None} if query["method"] == "eth_getTransactionByHash" else answer(query)

        with Sender(both, account, QUICK) as sender:
            near.faults = Faults(refuse_broadcasts="txpool is full")
            far.faults = Faults(garbage="cut short", garbage_method="eth_sendRawTransaction")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(near, "answer", unaware)
                (sent,) = sender.hand_over([(transfer(5), "pay")])
            assert sent.refused is None
            sender.send(transfer(5), "pay")
        both.close()
    assert chain.connection.balance(NOWHERE) - before == 5


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


def revert_replacement(chain: Devnet, sender: Sender) -> list[Entry]:
    """Send the intent "pay". Its transaction is replaced by one with a higher fee, which is mined and
    reverts. Returns both, oldest first.
    """
    rpc, usual = chain.connection, sender.sending
    sender.sending = Sending(timeout=20, poll=0.02, replace_after=0.0)
    rpc.request("evm_setAutomine", False)
    try:
        (sent,) = sender.hand_over([(transfer(4), "pay")])
        sender.recover()
        assert is_replaced(sender, "pay")
        sender.sending = usual
        rpc.request("anvil_setCode", NOWHERE, REVERTS)
        chain.mine()
        with pytest.raises(Reverted):
            sender.receipt(sent)
    finally:
        rpc.request("anvil_setCode", NOWHERE, "0x")
        rpc.request("evm_setAutomine", True)
    assert sent.nonce is not None
    first, last = sender.journal.signed(sent.nonce)
    assert (first.status, last.status) == (Status.PENDING, Status.FAILED)
    return [first, last]


def test_when_a_replacement_has_reverted_the_intent_is_sent_again_at_once(
    chain: Devnet, sender: Sender
) -> None:
    before = chain.connection.balance(NOWHERE)
    used = revert_replacement(chain, sender)[0].nonce
    receipt = sender.send(transfer(4), "pay")
    (entry,) = sender.journal.of_intent("pay")
    assert (entry.hash, entry.nonce) == (receipt.transaction, used + 1)
    assert chain.connection.balance(NOWHERE) - before == 4


def test_an_attempt_that_is_mined_in_place_of_one_that_reverted_carries_out_the_intent(
    chain: Devnet, sender: Sender
) -> None:
    """A re-organisation removes the reverted transaction, and the other attempt is mined instead."""
    snapshot, before = chain.connection.request("evm_snapshot"), chain.connection.balance(NOWHERE)
    first, last = revert_replacement(chain, sender)
    assert chain.connection.request("evm_revert", snapshot)
    chain.connection.request("anvil_dropAllTransactions")
    chain.connection.broadcast([first.raw])
    wait_mined(chain.connection, first.hash)
    assert chain.connection.receipt(last.hash) is None
    assert sender.send(transfer(4), "pay").transaction == first.hash
    assert chain.connection.balance(NOWHERE) - before == 4


def orphan(chain: Devnet, sender: Sender) -> Entry:
    """A transaction that nobody waits for any more, and that the node has lost, as in a restart."""
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
    # A hundred times the most that the lost transaction offers; on an old chain that is nearly all tip.
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
    """With `forgets`, the node has no old states, like a pruned node, or like anvil after a revert."""
    if forgets:
        count = Connection.transaction_count

        def of_newest(connection: Connection, address: str, block: int | str = "latest") -> int:
            if isinstance(block, int):
                raise RpcRefused("eth_getTransactionCount", "missing trie node", "ask for a newer block")
            return count(connection, address, block)

        monkeypatch.setattr(Connection, "transaction_count", of_newest)
    account = development_account(4, chain.chain_id)
    with Sender(broken(chain.connection, arrive=0), account, QUICK) as dying, pytest.raises(Interrupted):
        dying.send(transfer(5), "pay")
    other = chain.connection.request(
        "eth_sendTransaction", {"from": account.address, "to": NOWHERE, "value": "0x1"}, attempts=1
    )
    wait_mined(chain.connection, other)
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


@pytest.mark.parametrize("code", ["0x", REVERTS])
def test_all_attempts_of_what_is_taken_back_are_pending_again(
    chain: Devnet, sender: Sender, code: str
) -> None:
    """The attempt with the lower fee is mined and seen, perhaps reverted, and then taken back."""
    rpc, usual, before = chain.connection, sender.sending, chain.connection.balance(NOWHERE)
    snapshot = rpc.request("evm_snapshot")
    sender.sending = Sending(timeout=20, poll=0.02, replace_after=0.0)
    rpc.request("evm_setAutomine", False)
    try:
        (sent,) = sender.hand_over([(transfer(4), "pay")])
        sender.recover()
        assert sent.nonce is not None
        lower, _higher = sender.journal.signed(sent.nonce)
        sender.sending = usual
        rpc.request("anvil_dropAllTransactions")
        rpc.broadcast([lower.raw])
        rpc.request("anvil_setCode", NOWHERE, code)
        chain.mine()
        with suppress(Reverted):
            sender.receipt(sent)
        status = Status.MINED if code == "0x" else Status.FAILED
        assert [entry.status for entry in sender.journal.signed(sent.nonce)] == [status, Status.PENDING]
        assert rpc.request("evm_revert", snapshot)
        rpc.request("anvil_dropAllTransactions")
        sender.recover()
        assert {entry.status for entry in sender.journal.of_intent("pay")} == {Status.PENDING}
        assert len(sender.journal.of_intent("pay")) == 2
    finally:
        rpc.request("evm_setAutomine", True)
    chain.mine()
    assert sender.send(transfer(4), "pay").transaction in [
        entry.hash for entry in sender.journal.signed(sent.nonce)
    ]
    assert rpc.balance(NOWHERE) - before == 4


def test_a_mined_transaction_that_is_taken_back_is_mined_again_before_the_next(
    chain: Devnet, sender: Sender
) -> None:
    """The sender has already seen the receipt of the transaction that is taken back. The transaction with the
    next nonce is pending.
    """
    rpc, before = chain.connection, chain.connection.balance(NOWHERE)
    first = sender.send(transfer(6), "first")

    def waits() -> bool:
        return any(rpc.knows(entry.hash) for entry in sender.journal.of_intent("second"))

    def take_back() -> None:
        rpc.request("anvil_reorg", 1, [])
        # Anvil tries the later of the two pending transactions first and drops it, so that one is lost too.
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


@pytest.fixture
def watched(chain: Devnet) -> Iterator[tuple[RpcProxy, Sender]]:
    """A proxy that counts requests, and a sender that checks for lost transactions at every opportunity."""
    sending = Sending(timeout=30.0, poll=0.01, look_again=0.0)
    account = development_account(4, chain.chain_id)
    with RpcProxy(chain.url) as proxy, Sender(Connection(proxy.url), account, sending) as sender:
        yield proxy, sender
        sender.connection.close()


def looks(proxy: RpcProxy, sender: Sender) -> bool:
    """Let the sender see the head of the chain, and at once call the sender's `tend`. Returns whether the
    sender asks the node for its nonce during that call.
    """
    sender.connection.block()
    before = proxy.asked["eth_getTransactionCount"]
    sender.tend()
    return proxy.asked["eth_getTransactionCount"] > before


def mined(chain: Devnet, sender: Sender, value: int) -> str:
    """Send a transfer and wait until it is mined; returns its hash. Unlike in `send`, the sender itself does
    not look for the receipt.
    """
    (sent,) = sender.hand_over([(transfer(value), f"transfer {value}")])
    (entry,) = sender.journal.of_intent(sent.intent)
    wait_mined(chain.connection, entry.hash)
    return entry.hash


def test_what_is_mined_is_looked_for_once_a_block_until_it_is_deep(
    chain: Devnet, watched: tuple[RpcProxy, Sender]
) -> None:
    proxy, sender = watched
    for value in (1, 2):  # later transactions are looked for too
        mined(chain, sender, value)
        depth = chain.connection.chain.reorg_depth
        for _ in range(depth + 1):
            assert looks(proxy, sender)
            assert not looks(proxy, sender), "no block is new"
            chain.mine()
        assert not looks(proxy, sender)


def test_what_is_taken_back_before_it_is_deep_is_handed_over_again(
    chain: Devnet, watched: tuple[RpcProxy, Sender]
) -> None:
    proxy, sender = watched
    snapshot = chain.connection.request("evm_snapshot")
    transaction = mined(chain, sender, 3)
    assert looks(proxy, sender)
    chain.mine()
    assert looks(proxy, sender)
    assert chain.connection.request("evm_revert", snapshot)
    assert chain.connection.receipt(transaction) is None
    assert looks(proxy, sender)
    wait_mined(chain.connection, transaction)


def test_a_count_that_is_far_too_high_is_not_believed(sender: Sender) -> None:
    """A nonce far ahead would make the account pay for a transaction with each nonce before it."""
    sender.send(transfer())
    real = Connection.transaction_count

    def count(self: Connection, address: str, block: BlockId = "latest") -> int:
        return real(self, address, block) + (200 if block == "pending" else 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "transaction_count", count)
        with pytest.raises(RpcRefused, match="200 that wait and are not in its journal"):
            sender.send(transfer())
    used = sender.connection.transaction_count(sender.address)
    sender.send(transfer())
    assert sender.connection.transaction_count(sender.address) == used + 1
