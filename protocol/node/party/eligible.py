"""Which registered accounts the draws of a task could find."""

from __future__ import annotations

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.views import Registration
from protocol.tasks.task import Terms


def eligible_accounts(client: Client, terms: Terms) -> list[str]:
    """Accounts that a draw for these terms could find now, or once their present seats are free. Reads the board's
    events from the deployment on. Raises ChainError.
    """
    audit = client.audit
    (topic,) = (topic for topic, event in audit.contract.events.items() if event["name"] == "Registered")
    follower = Follower(
        client.connection, {audit.address: audit.contract}, client.deployment.block, topics=[topic]
    )
    accounts = dict.fromkeys(str(event.arguments["account"]) for event in follower.poll().events)
    unit = client.deployment.parameters.stake_unit
    found = ((account, audit.registration(account)) for account in accounts)
    return [account for account, registration in found if registration and _takes(registration, terms, unit)]


def _takes(registration: Registration, terms: Terms, unit: int) -> bool:
    return (
        not registration.resigned_at
        and not registration.suspended
        and unit << registration.level >= terms.seat_lock
        and registration.offer.takes(terms)
    )
