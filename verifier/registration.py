"""Being in the draw: the account's registration, learned from the board's events, and made once."""

from __future__ import annotations

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.node import logs
from protocol.node.party.funds import require_free


def is_registered(client: Client) -> bool:
    """Whether the account has live slots: it has registered and not resigned since."""
    account = bytes(12) + bytes.fromhex(client.address.removeprefix("0x"))
    board = {client.audit.address: client.audit.contract}
    follower = Follower(client.connection, board, client.deployment.block, topics=[None, account])
    told = [event.name for event in follower.poll().events if event.name in ("Registered", "Resigned")]
    return bool(told) and told[-1] == "Registered"


def ensure_registered(client: Client, slots: int) -> None:
    """Lock the stake of `slots` units, unless the account is registered. Raises NotEnoughTokens, ChainError."""
    if slots == 0 or is_registered(client):
        return
    parameters = client.deployment.parameters
    stake, bond = slots * parameters.stake_unit, parameters.challenge_bond
    require_free(client, stake + bond if _wealth(client) >= stake + bond else stake)
    client.audit.register(slots)
    logs.get("verifier").info("registered", slots=slots)


def ensure_bond(client: Client) -> None:
    """Have one bond free in the vault, if there are tokens for it: a commitment then waits for no deposit, and the
    earliest commitment is rewarded.
    """
    bond = client.deployment.parameters.challenge_bond
    if _wealth(client) >= bond:
        client.fund(bond)
    else:
        logs.get("verifier").warning("no tokens for a bond: nobody can be challenged", units=bond)


def _wealth(client: Client) -> int:
    return client.vault.free(client.address) + client.token.balance_of(client.address)
