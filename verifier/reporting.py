"""A verifier's reports to its operator: alerts and deadlines of its tasks, and what its accounts lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.node.monitoring.alerts import Alarm, Alerts
from protocol.node.monitoring.deadlines import Deadline
from protocol.node.party.balances import Balance, Bound
from protocol.node.party.exits import Observation
from protocol.node.party.followed import follow
from protocol.node.party.funds import COIN
from verifier import answering, juror
from verifier.context import Context
from verifier.seats import attestable, own_seats, waits_for_jury


class Reports:
    """Raises alerts and collects deadlines. The argument `alerts` of its methods is None if the node is not
    monitored. Used by the loop's thread.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._late: set[tuple[int, int, int]] = set()
        """The seats that were late: task, seat number and the time by which the seat had to attest. A seat
        that is drawn again may be late again.
        """

    def see(self, seen: Observation, alerts: Alerts | None) -> None:
        """Raise new alerts about a task that the operator has named, or in which one of our accounts has a
        seat or a challenge.
        """
        context, view = self._context, seen.view
        if alerts is None or not self._is_followed(seen):
            return
        terms = context.terms(view.task, takes_bids=view.status is TaskStatus.BIDDING)
        follow(alerts, context.settings, context.client.market.address, view, terms, seen.now)

    def say_what_is_late(self, seen: Observation, alerts: Alerts | None) -> None:
        """Log an error, and raise an alert, once for each of our seats whose time ended without an
        attestation. Seats that wait for a jury do not count.
        """
        if seen.view.status is not TaskStatus.SUBMITTED:
            return
        for seat in own_seats(seen, self._context.clients):
            late = seen.view.task, seat.number, seat.until  # a seat may be drawn again, and be late again
            waits = waits_for_jury(seen, seat)
            if seen.now > seat.until and not waits and late not in self._late:
                self._late.add(late)
                self._context.metrics.late.inc()
                # An account that was silent in a seat is not drawn until `ensure_registered` is called again.
                self._context.log.error(
                    "too late to attest", task=seen.view.task, seat=seat.number, account=seat.account
                )
                if alerts is not None:
                    market, text = (
                        self._context.client.market.address,
                        f"seat {seat.number} of {seat.account}",
                    )
                    alerts.tell(Alarm.LATE, text, market, seen.view.task, f"{seat.number} {seat.until}")

    def forget(self, task: int, alerts: Alerts | None) -> None:
        """Forget a task that is over for good."""
        self._late = {late for late in self._late if late[0] != task}
        if alerts is not None:
            alerts.forget(self._context.client.market.address, task)

    def due(self, observed: Sequence[Observation]) -> list[Deadline]:
        """The deadlines of our accounts. Raises ChainError."""
        return [due for seen in observed for due in self._due(seen)]

    def _due(self, seen: Observation) -> Iterator[Deadline]:
        context, task = self._context, seen.view.task
        market = context.client.market.address
        for seat in attestable(seen, context.clients):
            yield Deadline(market, task, "attest", seat.until, context.terms(task).attest_period)
        for until in juror.deadlines(context, seen):
            yield Deadline(market, task, "jury", until, context.terms(task).move_time)
        for look, _, _ in answering.accused(context, seen):
            stands = context.looks.of(task, look.number)
            if stands is not None and seen.now <= stands.until:
                yield Deadline(market, task, "answer", stands.until, context.terms(task).move_time)

    def _is_followed(self, seen: Observation) -> bool:
        context, task = self._context, seen.view.task
        return (
            task in context.settings.tasks
            or bool(own_seats(seen, context.clients, attested=True))
            or bool(context.database.all_challenges(task))
        )


def bound(context: Context) -> Mapping[str, Bound]:
    """Each account's stake in the vault, and the bonds of its open games. Raises ChainError."""
    client, rows = context.client, context.database.open_challenges()
    found = {}
    for account in context.clients:
        registration = client.audit.registration(account)
        games = [row.game for row in rows if row.account == account and row.game is not None]
        bonds = sum(client.game.game(game).bond for game in games)
        found[account] = Bound([] if registration is None else [registration.lock], bonds)
    return found


def lacking(context: Context, balances: Mapping[str, Balance]) -> str:
    """What the accounts lack, in words: coin for a game, or a place in the draw. Raises ChainError."""
    due = context.client.game.coin_of_longest()
    missing = []
    for account, balance in balances.items():
        if balance.coin < due:
            missing.append(
                f"{account}: {balance.coin / COIN:g} of the chain's coin, a game may take {due / COIN:g}"
            )
        if not context.settings.stake:
            continue
        registration = context.client.audit.registration(account)
        if registration is None:
            missing.append(f"{account}: not registered, with {balance.tokens / TOKEN:g} tokens")
        elif registration.suspended:
            missing.append(f"{account}: suspended after a silence")
    return "; ".join(missing)
