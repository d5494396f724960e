"""Finds where a task would be posted: the deployment and its chain's prices. If no deployment is reachable,
recommended parameters and assumed prices are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from assay.budgeting import Sold
from assay.commands import Context
from assay.deriving import Place
from assay.description import Plan
from assay.recent import recent_tasks, sold
from assay.settings import AssaySettings
from protocol.chain.client import Client
from protocol.chain.errors import ChainError
from protocol.chain.parameters import RECOMMENDED
from protocol.tasks.arithmetics import require_computed


@contextmanager
def reached(context: Context) -> Iterator[Client | None]:
    """A client of the contracts, without an account; None if no deployment is reachable."""
    try:
        client = context.client()
    except ChainError:
        yield None
        return
    with client:
        yield client


def place_of(settings: AssaySettings, client: Client | None) -> Place:
    """Where a task would be posted: the deployment's parameters, and the chain's block time and gas price.
    Without a client, these are the recommended parameters, a development chain's block time and the assumed
    gas price. Raises UnknownArithmetic, ChainError.
    """
    if client is None:
        return Place.at(RECOMMENDED, settings.gas_price, settings.coin_price)
    deployment, connection = client.deployment, client.connection
    require_computed(deployment.arithmetic, "the contracts")
    return Place.at(
        deployment.parameters,
        settings.gas_price,
        settings.coin_price,
        deployment.arithmetic,
        # A measured block time is rounded to whole seconds, so that periods do not vary.
        block_time=connection.chain.block_time or max(1, ceil(connection.block_time)),
        present=connection.gas_price,
    )


def sold_at(client: Client, description: Plan) -> list[Sold]:
    """The sold tasks from which a default budget is derived. The list is empty if the task's description
    gives a budget. Raises ChainError.
    """
    return [] if description.terms.budget is not None else sold(recent_tasks(client))
