"""What recent tasks of a deployment cost: budget, winning price and operations, the newest tasks first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from assay.budgeting import Sold
from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.tasks.task import Terms, TermsError

LAST: Final = 20
"""Number of tasks to look at: few enough to take only a few requests."""
UNSOLD: Final = (TaskStatus.NONE, TaskStatus.BIDDING, TaskStatus.REFUNDED)


@dataclass(frozen=True)
class RecentTask:
    """A task of the deployment. `operations` are the scalar operations of the whole training; `budget` and
    `price` are token units. `price` is the price of the winning bid; None if nobody has won.
    """

    task: int
    status: str
    operations: int
    budget: int
    price: int | None

    def line(self) -> str:
        """The task in words."""
        sold = "not sold" if self.price is None else f"sold at {_tokens(self.price)}"
        if self.price is not None:
            sold += f", {_tokens(self.price * 10**12 // self.operations)} for 10^12 operations"
        what = f"task {self.task}: {self.operations:.3g} operations, budget {_tokens(self.budget)}"
        return f"{what}, {sold} ({self.status})"


def recent_tasks(client: Client, last: int = LAST) -> list[RecentTask]:
    """The newest tasks of all submitters. Raises ChainError."""
    market = client.market
    newest = market.tasks()
    tasks = range(newest, max(0, newest - last), -1)
    with client.connection.view():
        market.ahead(tasks)
        found = [_recent(client, task) for task in tasks]
    return [one for one in found if one is not None]


def sold(tasks: Iterable[RecentTask]) -> list[Sold]:
    """The tasks that somebody won at a price above 0."""
    return [Sold(one.operations, one.price) for one in tasks if one.price]


def _recent(client: Client, task: int) -> RecentTask | None:
    """One task; None if its terms are not valid here, which is possible because strangers may post any terms."""
    view = client.market.task(task)
    try:
        terms = client.market.terms(task)
    except TermsError:
        return None
    price = None if view.status in UNSOLD else view.price
    return RecentTask(task, view.status.name.lower(), operations_of(terms), terms.budget, price)


def operations_of(terms: Terms) -> int:
    """Scalar operations of the whole training."""
    return terms.steps * terms.step_operations


def _tokens(units: int) -> str:
    return f"{units / TOKEN:,.4g}"
