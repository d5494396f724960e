"""Stakes of verifiers whose unbonding is over: given back, each once."""

from __future__ import annotations

from protocol.chain.client import Client
from protocol.chain.events import Follower


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
