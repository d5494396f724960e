"""Which registered accounts the draws of a task could find."""

from __future__ import annotations

from typing import Final

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.views import Registration
from protocol.tasks.task import Terms

ELIGIBLE_A_SEAT: Final = 3


def least_eligible(chain_id: int, verifiers: int, jurors: int = 0) -> int:
    """Eligible accounts below which no task of so many seats is posted or bid on, where no setting says another number:
    three for each seat and juror, on a development chain one. A jury that is not found ends a task unpaid.
    """
    seats = verifiers + jurors
    return seats if chain_id == DEVELOPMENT_CHAIN else ELIGIBLE_A_SEAT * seats


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
