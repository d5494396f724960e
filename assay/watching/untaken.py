"""Finds out why no solver bids on a task, as far as its submitter can tell: the reasons for which a solver
with default settings would refuse it.

Actual solvers follow the same rule (`protocol.tasks.offers`), but with their own figures, which nobody else
knows.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Final

from protocol.chain.client import Client
from protocol.chain.recommendation import COIN_PRICE, gas_units
from protocol.node.party.eligible import eligible, least_eligible, least_share
from protocol.tasks import usual_solver
from protocol.tasks.bundles import BundleError, Limits
from protocol.tasks.bundles.sources import open_source, read_manifest
from protocol.tasks.offers import Refusal, decide
from protocol.tasks.task import Terms

SERVED_SECONDS: Final = 10.0
"""Time limit, in seconds, for fetching the manifest from the bundle's server."""
NONE: Final = (
    "a solver with default settings would bid: none may be running, or each has other work, or other figures"
)


def reasons(client: Client, terms: Terms, this_machine: bool) -> list[str]:
    """The reasons for which a solver with default settings and no other work would refuse the task now;
    `[NONE]` if it would bid. With `this_machine`, as on a development chain, a bundle that only this machine
    serves counts as served. Raises ChainError.
    """
    connection, parameters = client.connection, client.deployment.parameters
    gas = gas_units(Fraction(connection.gas_price), COIN_PRICE)
    decision = decide(terms, usual_solver.figures(gas, client.inclusion, parameters.draw_delay))
    found = [decision.reason] if isinstance(decision, Refusal) else []
    chain_id = connection.chain_id
    least = least_eligible(chain_id, terms.verifiers, terms.jurors)
    unseated = eligible(client, terms).refusal(terms, least, least_share(chain_id))
    unserved = _unserved(terms, this_machine)
    found += [reason for reason in (unseated, unserved) if reason is not None]
    return found or [NONE]


def _unserved(terms: Terms, this_machine: bool) -> str | None:
    """The reason why a stranger cannot fetch the bundle from its address; None if its manifest can be
    fetched.
    """
    limits = replace(Limits(this_machine=this_machine), seconds=SERVED_SECONDS)
    try:
        with closing(open_source(terms.bundle, limits)) as source:
            read_manifest(source, limits.manifest_bytes, terms.bundle_hash)
    except BundleError as error:
        return f"its bundle cannot be fetched: {error}"
    return None
