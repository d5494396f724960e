"""Connects to a deployment's contracts, as the settings of a command say."""

from __future__ import annotations

from protocol.chain.client import Client, connect
from protocol.node.party.settings import ConnectionSettings


def connect_by(settings: ConnectionSettings, *, sends: bool = True) -> Client:
    """A client of the contracts. It has the account of the settings only if the command sends transactions
    (`sends`). Raises what `connect` raises.
    """
    account = settings.account if sends else None
    return connect(
        settings.rpc,
        settings.deployment,
        account,
        password_file=settings.password_file,
        finality=settings.finality,
    )
