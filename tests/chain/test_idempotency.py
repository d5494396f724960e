"""A command that is interrupted and run again finishes what its first run sent, and does nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from assay.notes import remember
from assay.submitting import FIELDS, post, unfinished, unnoted
from protocol.chain.client import Client, connect
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import ChainError, NotMined
from protocol.chain.transactions import Sending
from protocol.node.home import Home
from protocol.node.party.rounds import show_round
from tests.chain.conftest import QUICK, Connect
from tests.chain.rounds import ANYTHING, signature
from tests.chain.sending import after
from tests.chain.trees import fund, terms

pytestmark = pytest.mark.chain


class CutShort(Exception):
    """Simulates the death of the command at the point where this is raised."""


def cut_short(client: Client, monkeypatch: pytest.MonkeyPatch, *, arrives: bool) -> None:
    """Make the command die when it sends a transaction. If `arrives`, it dies after the node has received the
    transaction, otherwise before.
    """
    real = client.connection.broadcast

    def broadcast(raws: Sequence[bytes]) -> list[str | ChainError]:
        if arrives:
            real(raws)
        raise CutShort

    monkeypatch.setattr(client.connection, "broadcast", broadcast)


@pytest.mark.parametrize("arrives", [False, True])
def test_a_post_repeated_after_it_was_cut_short_is_one_task_and_one_escrow(
    chain: Devnet, deployed: Deployment, connected: Connect, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    verifier = connected(3)
    fund(verifier, 100)
    verifier.audit.register(0, ANYTHING)
    asked = terms()
    escrow = asked.escrow(deployed.parameters.draw_fee)
    with connect(chain.url, deployed, "dev:5", sending=QUICK) as dying:
        dying.token.mint(dying.address, 3 * escrow)
        dying.fund(escrow)
        cut_short(dying, monkeypatch, arrives=arrives)
        assert not unfinished(dying, asked)
        with pytest.raises(CutShort):
            post(dying, asked, signature, 1)
    with connect(chain.url, deployed, "dev:5", sending=QUICK) as again:
        derived = replace(asked, challenge_period=asked.challenge_period + 1)
        assert not unfinished(again, derived)
        ((_, sent),) = unfinished(again, derived, FIELDS - {"challenge_period"})
        assert sent == asked
        assert post(again, asked, signature, 1) == 1
        assert (again.market.tasks(), again.token.balance_of(again.address)) == (1, 2 * escrow)
        assert not unfinished(again, asked), "its end was seen"
        assert post(again, asked, signature, 1) == 2
        assert again.token.balance_of(again.address) == escrow


def test_a_post_whose_journal_is_lost_is_found_on_the_chain_once_it_is_mined(
    chain: Devnet, deployed: Deployment, connected: Connect, tmp_path: Path
) -> None:
    verifier, asked = connected(3), terms()
    fund(verifier, 100)
    verifier.audit.register(0, ANYTHING)
    with connect(chain.url, deployed, "dev:5", sending=QUICK) as dying:
        escrow = asked.escrow(deployed.parameters.draw_fee)
        dying.token.mint(dying.address, 3 * escrow)
        dying.fund(3 * escrow)
        show_round(dying, signature)
        chain.connection.request("evm_setAutomine", False)
        assert dying.sender is not None
        dying.sender.sending = Sending(timeout=0.1, poll=0.02)
        with pytest.raises(NotMined):
            post(dying, asked, signature, 1)
        journal = dying.sender.journal.path
    journal.unlink()
    home = Home(tmp_path)
    with connect(chain.url, deployed, "dev:5", sending=QUICK) as again:
        try:
            assert not unfinished(again, asked)
            assert again.sender is not None
            again.sender.sending = Sending(timeout=0.1, poll=0.02)
            with pytest.raises(NotMined, match=r"1 transactions of .* that its journal does not know"):
                unnoted(home, again, asked)
            again.sender.sending = QUICK
            after(lambda: again.market.tasks() == 0, chain.mine)
            assert unnoted(home, again, asked) == 1
        finally:
            chain.connection.request("evm_setAutomine", True)
        assert unnoted(home, again, replace(asked, challenge_period=asked.challenge_period + 1)) is None
        derived = replace(asked, challenge_period=asked.challenge_period + 1)
        assert unnoted(home, again, derived, FIELDS - {"challenge_period"}) == 1, "it may be another by now"
        assert unnoted(home, verifier, asked) is None, "another account's"
        remember(home, again, 1, tmp_path / "task.toml", asked)
        assert unnoted(home, again, asked) is None
        assert post(again, asked, signature, 1) == 2
        assert unnoted(home, again, asked) == 2


def test_a_deposit_that_is_not_mined_yet_is_waited_for_and_one_that_is_was_another(
    chain: Devnet, client: Client
) -> None:
    client.token.mint(client.address, 20)
    client.token.approve(client.vault.address, 20)
    assert client.sender is not None
    client.sender.sending = Sending(timeout=0.1, poll=0.02)
    chain.connection.request("evm_setAutomine", False)
    try:
        for _ in range(2):
            with pytest.raises(NotMined, match="repeating the command waits for the same transaction"):
                client.vault.deposit(5)
        assert len(client.sender.journal.pending()) == 1
        chain.mine()
    finally:
        chain.connection.request("evm_setAutomine", True)
    client.sender.sending = QUICK
    assert client.vault.free(client.address) == 5
    client.vault.deposit(5)
    assert client.vault.free(client.address) == 10


def test_threads_that_send_the_same_call_send_it_each(client: Client) -> None:
    failures: list[BaseException] = []

    def mint() -> None:
        try:
            client.token.mint(client.address, 3)
        except BaseException as error:
            failures.append(error)

    before = client.token.balance_of(client.address)
    threads = [threading.Thread(target=mint) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert client.token.balance_of(client.address) - before == 18


def test_an_attempt_whose_replacement_was_mined_is_not_waited_for(chain: Devnet, client: Client) -> None:
    assert client.sender is not None
    before = client.token.balance_of(client.address)
    client.sender.sending = Sending(timeout=20, poll=0.02, replace_after=0.2)
    chain.connection.request("evm_setAutomine", False)
    journal = client.sender.journal
    try:
        miner = after(
            lambda: any(chain.connection.knows(entry.hash) for entry in journal.pending()[1:]), chain.mine
        )
        client.token.mint(client.address, 4)
        miner.join()
    finally:
        chain.connection.request("evm_setAutomine", True)
    assert client.sender.journal.pending(), "the attempts that were replaced"
    client.token.mint(client.address, 4)
    assert client.token.balance_of(client.address) - before == 8
