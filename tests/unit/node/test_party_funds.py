"""A party's tokens: moved into the vault as needed, and withdrawn as far as they are free."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.node.party.funds import NotEnoughTokens, require_free, withdraw_above

ME = "0x" + "11" * 20


class Bank:
    """A vault and a token with one account's amounts."""

    def __init__(self, free: int, held: int) -> None:
        self.sent: list[tuple[str, int]] = []
        self.client = cast(
            Client,
            SimpleNamespace(
                address=ME,
                tokens=lambda _account: (free, held),
                vault=SimpleNamespace(free=lambda _who: free, withdraw=lambda n: self._send("withdraw", n)),
                fund=lambda n: self._send("fund", n),
            ),
        )

    def _send(self, what: str, amount: int) -> str:
        self.sent.append((what, amount))
        return what


def test_what_is_missing_is_brought_in() -> None:
    bank = Bank(free=3 * TOKEN, held=2 * TOKEN)
    require_free(bank.client, 5 * TOKEN)
    assert bank.sent == [("fund", 5 * TOKEN)]


def test_with_too_few_tokens_nothing_is_sent() -> None:
    bank = Bank(free=3 * TOKEN, held=2 * TOKEN - 1)
    with pytest.raises(
        NotEnoughTokens,
        match=rf"^account {ME}: expected 5 tokens for the escrow, got 4.999999; send tokens to it, on a dev",
    ):
        require_free(bank.client, 5 * TOKEN, "for the escrow")
    with pytest.raises(NotEnoughTokens, match=r": expected 6 tokens, got 4.999999; "):
        require_free(bank.client, 6 * TOKEN)
    assert bank.sent == []


@pytest.mark.parametrize(("free", "kept", "due"), [(5, 0, 5), (5, 2, 3), (5, 5, 0), (5, 9, 0), (0, 0, 0)])
def test_what_is_free_beyond_what_is_kept_is_taken_out(free: int, kept: int, due: int) -> None:
    bank = Bank(free=free, held=0)
    amount, receipt = withdraw_above(bank.client, kept)
    assert amount == due
    assert bank.sent == ([("withdraw", due)] if due else [])
    assert (receipt is None) == (due == 0)


class Racing:
    """A token and a vault of one account. A deposit waits up to 0.3 seconds for a second deposit to begin."""

    def __init__(self) -> None:
        self.free = self.allowed = 0
        self._both = Barrier(2)

    def approve(self, _vault: str, amount: int) -> str:
        """Let the vault take `amount` units. This replaces an earlier approval."""
        self.allowed = amount
        return "approve"

    def deposit(self, amount: int) -> str:
        """Use up the approval. Raises Reverted if it is too low."""
        with suppress(BrokenBarrierError):
            self._both.wait(0.3)
        if self.allowed < amount:
            raise Reverted("StakeVault.deposit", "ERC20InsufficientAllowance", {})
        self.allowed -= amount
        self.free += amount
        return "deposit"


def test_two_threads_that_need_tokens_at_once_do_not_use_each_others_approval() -> None:
    racing = Racing()
    client: Any = Client(Mock(), Mock(), None)
    client.tokens = lambda: (racing.free, 0)
    client.token = SimpleNamespace(allowance=lambda *_who: racing.allowed, approve=racing.approve)
    client.vault = SimpleNamespace(address=ME, deposit=racing.deposit)
    with ThreadPoolExecutor(2) as threads:
        sent = [future.result() for future in [threads.submit(client.fund, 900) for _ in range(2)]]
    assert sorted(sent) == [[], ["approve", "deposit"]]
    assert racing.free == 900
