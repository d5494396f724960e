"""Confirmation before a payment: who confirms the posting of a task, and what happens if nobody can confirm it."""

from __future__ import annotations

import sys
from collections.abc import Callable

from assay.errors import NotConfirmed
from assay.pricing import Price
from protocol.node.output import Output
from protocol.node.words import amount, tokens

Ask = Callable[[Price], bool]
"""Decides whether to post a task at this price."""


def require_asked(yes: bool, output: Output) -> None:
    """Raise NotConfirmed unless `yes` is set or a person can be asked. A person can be asked only at a
    terminal and without `--json`.
    """
    if not yes and (output.as_json or not _is_terminal()):
        raise NotConfirmed(
            "posting",
            expected="--yes, where no terminal is there to ask at",
            got="--json" if output.as_json else "no terminal",
            remedy="look at the price with --dry-run, then pass --yes",
        )


def at_terminal(price: Price) -> bool:
    """Ask at the terminal whether to post the task at this price, and return whether the answer is yes. The
    question goes to stderr, because stdout carries the result.
    """
    print(_question(price), end="", file=sys.stderr, flush=True)
    return _is_yes(sys.stdin.readline())


def prompt(price: Price) -> bool:
    """Print the price, ask with `input` whether to post the task, and return whether the answer is yes. Works
    at a terminal and in a notebook.
    """
    print(price)
    try:
        return _is_yes(input(_question(price)))
    except EOFError:
        return False


def require_yes(ask: Ask, price: Price) -> None:
    """Call `ask` with the price. Raises NotConfirmed for any answer but yes."""
    if not ask(price):
        raise NotConfirmed(
            "posting", expected="yes", got="another answer", remedy="nothing was sent", price=price
        )


def _question(price: Price) -> str:
    return (
        f"Post it? {tokens(price.escrow)} are locked: a budget of {amount(price.budget)}, and "
        f"{amount(price.escrow - price.budget)} for audits. What is not used comes back. [y/N] "
    )


def _is_yes(said: str) -> bool:
    return said.strip().lower() in ("y", "yes")


def _is_terminal() -> bool:
    """Whether standard input is a terminal. A process may have no standard input at all."""
    return sys.stdin is not None and sys.stdin.isatty()
