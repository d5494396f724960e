"""The verifier's tokens: what has to be free in the vault before something is locked, and taking earnings out."""

from __future__ import annotations

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from verifier.errors import NotEnoughTokens


def require_free(client: Client, amount: int) -> None:
    """Bring the free balance in the vault to `amount` units, from the account's tokens. Raises NotEnoughTokens."""
    have = client.vault.free(client.address) + client.token.balance_of(client.address)
    if have < amount:
        raise NotEnoughTokens(
            f"account {client.address}: expected {amount / TOKEN:g} tokens, got {have / TOKEN:g}; "
            "send tokens to it, on a development chain by `assay mint`"
        )
    client.fund(amount)


def withdraw_above(client: Client, kept: int) -> int:
    """Take what is free beyond `kept` token units out of the vault; how much it was."""
    amount = client.vault.free(client.address) - kept
    if amount <= 0:
        return 0
    client.vault.withdraw(amount)
    return amount


def finish_unbonding(client: Client) -> int:
    """Free the account's locks whose unbonding is over; how many there were."""
    account = bytes(12) + bytes.fromhex(client.address.removeprefix("0x"))
    vault, first = client.vault, client.deployment.block
    follower = Follower(
        client.connection, {vault.address: vault.contract}, first, topics=[None, None, account]
    )
    now, finished = client.now(), 0
    for event in follower.poll().events:
        if event.name != "Locked":
            continue
        number = int(event.arguments["lock"])
        lock = vault.lock_of(number)
        if lock.remaining and 0 < lock.until < now:
            vault.finish_unbonding(number)
            finished += 1
    return finished
