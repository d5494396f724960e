"""`solver earnings`: sums the ledgers of a home folder by month and task, or prints each entry as CSV."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Final, TextIO

from protocol.chain.parameters import TOKEN
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.node.settings import SettingsError, load
from solver.control import ask
from solver.database import Database
from solver.errors import NotRunning
from solver.ledger import Flow, Kind, Spent, Sums, by_month_and_task, month_of, total, written
from solver.status import COIN, files

Entry = Flow | Spent
COLUMNS: Final = (
    "time",
    "month",
    "market",
    "account",
    "task",
    "what",
    "tokens",
    "coin",
    "gas",
    "gas_price_wei",
    "block",
    "transaction",
)
SIGNS: Final = {Kind.LOST: -1, Kind.BURNED: -1, Kind.LOCKED: -1, Kind.WITHDRAWN: -1}
"""The sign of an entry in the CSV, by kind; kinds that are not listed are positive."""


@dataclass(frozen=True)
class Ledger:
    """The ledger of one account in one deployment, or one month of it. `booked` is the time in UTC up to
    which it is complete; None if nothing is booked.
    """

    market: str
    account: str
    entries: Sequence[Entry]
    booked: str | None


def earnings(home: Home, month: str | None, as_csv: bool, as_json: bool) -> None:
    """Print the earnings. Raises SettingsError, DatabaseError, HomeError."""
    if month is not None and not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", month):
        raise SettingsError("--month", expected="a year and a month, such as 2026-11", got=repr(month[:20]))
    if as_csv and as_json:
        raise SettingsError(expected="--csv or --json", got="both", remedy="leave one out")
    output = Output("solver earnings", as_json)
    why = _brought_up_to_date(home)
    ledgers = [_of_month(ledger, month) for ledger in read(home)]
    if as_csv:
        write_csv(ledgers, sys.stdout)
        return
    price = _coin_price(home)
    if why:
        output.say(why)
    for ledger in ledgers:
        for line in _lines(ledger, price):
            output.say(line)
    if not ledgers:
        output.say(f"no node has run in {home.root}")
    output.result(
        {"month": month, "coin_price": str(price), "ledgers": [_data(one, price) for one in ledgers]}
    )


def read(home: Home) -> Iterator[Ledger]:
    """All ledgers of a home folder. Raises DatabaseError, HomeError."""
    for file in files(home):
        if Database.market_of(file) is None:
            continue
        database = Database(file, None)
        try:
            booked, identity = database.booked(), database.identity
            entries: list[Entry] = [*database.flows(), *database.spent()]
            entries.sort(key=lambda entry: entry.block)
            yield Ledger(
                identity.market, identity.account, entries, None if booked is None else written(booked.time)
            )
        finally:
            database.close()


def write_csv(ledgers: Sequence[Ledger], file: TextIO) -> None:
    """Write a header, and one line for every entry. Amounts are in tokens and coin; amounts that went out
    have a minus sign (`SIGNS`).
    """
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(COLUMNS)
    for ledger in ledgers:
        for entry in ledger.entries:
            rows.writerow(_row(ledger, entry))


def _row(ledger: Ledger, entry: Entry) -> tuple[object, ...]:
    head = written(entry.time), month_of(entry.time), ledger.market, ledger.account, entry.task
    if isinstance(entry, Flow):
        tokens = _exact(SIGNS.get(entry.kind, 1) * entry.units, TOKEN)
        return *head, entry.kind.value, tokens, "", "", "", entry.block, entry.transaction
    coin = _exact(entry.credit - entry.fee - entry.value, COIN)
    what = entry.what if entry.succeeded else f"{entry.what} (reverted)"
    return *head, what, "", coin, entry.gas, entry.price, entry.block, entry.transaction


def _exact(amount: int, unit: int) -> str:
    """An amount in tokens or coin, with all its digits and without an exponent. `unit` is the number of
    smallest units in one token or coin.
    """
    whole, rest = divmod(abs(amount), unit)
    digits = f"{whole}.{rest:0{len(str(unit)) - 1}}".rstrip("0").removesuffix(".")
    return f"-{digits}" if amount < 0 else digits


def _of_month(ledger: Ledger, month: str | None) -> Ledger:
    if month is None:
        return ledger
    entries = [entry for entry in ledger.entries if month_of(entry.time) == month]
    return Ledger(ledger.market, ledger.account, entries, ledger.booked)


def _brought_up_to_date(home: Home) -> str:
    """Let the running node update its ledgers. Returns the reason if that failed, otherwise an empty text."""
    from protocol.errors import AssayError

    try:
        ask(home, "book")
    except NotRunning:
        return f"no node runs in {home.root}: entries are those that the last one booked"
    except AssayError as error:
        return f"entries may be behind: {error}"
    return ""


def _coin_price(home: Home) -> Decimal:
    from solver.settings import SolverSettings

    return load(SolverSettings, "solver", home.config, {}).values.coin_price


def _profit(sums: Sums, price: Decimal) -> Decimal:
    """The profit in tokens: income less the coin spent, at `price` tokens for one coin."""
    return Decimal(sums.income) / TOKEN - Decimal(sums.coin) / COIN * price


def _lines(ledger: Ledger, price: Decimal) -> Iterator[str]:
    yield f"{ledger.account} on the market {ledger.market}, booked up to {ledger.booked or 'nothing yet'}"
    head = ("month", "task", "earned", "lost", "burned", "locked", "gas in coin", "profit")
    yield f"  {head[0]:8} {head[1]:>8} " + " ".join(f"{name:>12}" for name in head[2:])
    groups = by_month_and_task(ledger.entries)
    rows = [(month, str(task or "-"), sums) for (month, task), sums in groups.items()]
    for month, task, sums in [*rows, ("in all", "", total(ledger.entries))]:
        tokens = (sums.earned, sums.lost, sums.burned, sums.locked)
        amounts = [f"{units / TOKEN:.6g}" for units in tokens]
        amounts += [f"{sums.coin / COIN:.6g}", f"{_profit(sums, price):.6g}"]
        yield f"  {month:8} {task:>8} " + " ".join(f"{amount:>12}" for amount in amounts)
    yield f"  amounts are tokens, gas and deposits of games coin; profit has coin at {price} tokens (coin_price)"


def _data(ledger: Ledger, price: Decimal) -> dict[str, object]:
    def of(sums: Sums) -> dict[str, str]:
        return {name: str(value) for name, value in asdict(sums).items()} | {
            "profit_tokens": f"{_profit(sums, price):f}"
        }

    groups = by_month_and_task(ledger.entries)
    return {
        "market": ledger.market,
        "account": ledger.account,
        "booked": ledger.booked,
        "rows": [{"month": month, "task": task, **of(sums)} for (month, task), sums in groups.items()],
        "total": of(total(ledger.entries)),
    }
