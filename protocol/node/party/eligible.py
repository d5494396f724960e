"""The registered accounts that the draws of a task could find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.tasks.task import Terms

ELIGIBLE_A_SEAT: Final = 3
ELIGIBLE_SHARE: Final = 0.5
"""Minimum share of the registered stake that must accept a task's terms. If the share is smaller, the author
of the terms may have chosen who can be drawn.
"""


def least_eligible(chain_id: int, verifiers: int, jurors: int = 0) -> int:
    """Default minimum number of eligible accounts for posting or bidding on a task: three for each seat and
    each juror, or one for each on a development chain. Jurors count, because a jury that cannot be filled
    ends a task unpaid.
    """
    seats = verifiers + jurors
    return seats if chain_id == DEVELOPMENT_CHAIN else ELIGIBLE_A_SEAT * seats


def least_share(chain_id: int) -> float:
    """Default minimum share of the registered slots that must accept a task before a solver works for it: one
    half, or 0 on a development chain.
    """
    return 0.0 if chain_id == DEVELOPMENT_CHAIN else ELIGIBLE_SHARE


@dataclass(frozen=True, slots=True)
class Eligible:
    """Accounts that a draw for some terms could find now, or once they are free of their present seats.
    `slots` is their weight in draws, 2^level each; `registered` is the weight of all accounts that have not
    resigned and are not suspended.
    """

    accounts: tuple[str, ...]
    slots: int
    registered: int
    unmet: Mapping[str, int] = field(default_factory=dict)
    """How many other accounts cannot be drawn, by reason: the field of their offer that excludes these terms,
    or "stake" if their stake is too small. An account may have several reasons.
    """

    @property
    def share(self) -> float:
        """Share of the registered slots that accept the terms; 0 if there are none."""
        return self.slots / self.registered if self.registered else 0.0

    def refusal(self, terms: Terms, least: int, share: float) -> str | None:
        """Why a solver refuses these terms; None if it does not. The solver requires that at least `least`
        accounts are eligible, and that these hold at least the share `share` of the registered stake. It
        requires this because a task whose seats stay empty is never paid, and because the submitter's
        accounts could stay silent if only they could be drawn.
        """
        if len(self.accounts) < least:
            return (
                f"{len(self.accounts)} verifiers take {terms.verifiers} seats and juries of {terms.jurors}, {least} "
                f"are asked for (min_eligible){self.why_not_more}"
            )
        if self.share < share:
            return (
                f"its terms are taken by {self.slots} of {self.registered} slots of registered stake, a share of "
                f"{self.share:.3g}, {share:g} is asked for (min_share){self.why_not_more}"
            )
        return None

    @property
    def why_not_more(self) -> str:
        """Text for the end of a message: why other accounts cannot be drawn. Empty if there are no such accounts."""
        counts = ", ".join(f"{name} {accounts}" for name, accounts in sorted(self.unmet.items()))
        return f"; others are passed over, by what their offers ask: {counts}" if counts else ""


def eligible(client: Client, terms: Terms) -> Eligible:
    """The accounts that could be drawn for these terms. Reads all registration events since the deployment.
    Raises ChainError.
    """
    audit = client.audit
    (topic,) = (topic for topic, event in audit.contract.events.items() if event["name"] == "Registered")
    follower = Follower(
        client.connection, {audit.address: audit.contract}, client.deployment.block, topics=[topic]
    )
    accounts = dict.fromkeys(str(event.arguments["account"]) for event in follower.poll().events)
    found = (audit.registration(account) for account in accounts)
    ready = [one for one in found if one and not one.resigned_at and not one.suspended]
    unit = client.deployment.parameters.stake_unit
    unmet = {
        one.account: (*one.offer.unmet(terms), *(["stake"] if unit << one.level < terms.seat_lock else []))
        for one in ready
    }
    taking = [one for one in ready if not unmet[one.account]]
    slots, registered = (sum(1 << one.level for one in some) for some in (taking, ready))
    counted = Counter(name for names in unmet.values() for name in names)
    return Eligible(tuple(one.account for one in taking), slots, registered, counted)
