"""Concurrent tasks in flight: which seats stay empty, and for which tasks nobody can lock a stake.

As in the contracts, no draw finds an account that has a seat in another task in flight (`AuditBoard`), and a
stake is locked until its task is over. All accounts are assumed to have one unit and to answer. Tasks are
assumed to be drawn one after the other, each subject to the locks of the `overlap` - 1 tasks before it.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from protocol.tasks.task import ESCROW_DRAWS
from sim.mechanism.draw import TRIES
from sim.theory.bounds import TheoryError, Values, count, number

MOST_STATES = 1 << 20
"""Maximum number of states of the Markov chain in `draws_in_flight`."""


class Draws(NamedTuple):
    """Redraws and empty seats of one task."""

    redraws: float
    """Mean number of redraws."""
    unfilled: float
    """Chance that a seat stays empty, so that the task is void."""


def filled_law(
    *, verifiers: int, accounts: int, bound: int, draws: int = ESCROW_DRAWS
) -> tuple[Values, Draws]:
    """Return two results: the chances that 0 ... V seats are filled in the end, and the task's `Draws`. V is
    `verifiers`, and N is `accounts`. `bound` is the number of accounts that have seats in other tasks.

    A draw fills seats one by one. If b accounts have seats, in this task or in others, the next seat stays
    empty with chance (b / N)^32. The contracts also limit a whole draw to 256 tries, which is left out here.
    Empty seats are redrawn until all seats are filled, or until the number of draws, including the first, is
    `draws`.
    """
    v, n = count("verifiers", verifiers, 1), count("accounts", accounts, 1)
    others = count("bound", bound, 0, n)
    empty = [(min(others + filled, n) / n) ** TRIES for filled in range(v + 1)]
    once = np.zeros((v + 1, v + 1))
    for before in range(v + 1):
        law = np.zeros(v + 1)
        law[before] = 1
        for _ in range(v - before):
            kept = law * empty
            law = kept + np.concatenate([[0.0], (law - kept)[:-1]])
        once[before] = law
    law, redraws = np.eye(v + 1)[0], 0.0
    for left in reversed(range(count("draws", draws, 1))):
        law = law @ once
        redraws += float(law[:v].sum()) if left else 0.0
    return law, Draws(redraws, float(law[:v].sum()))


@lru_cache(maxsize=256)
def draws_in_flight(
    *, verifiers: int, accounts: int, overlap: int, tasks: int, draws: int = ESCROW_DRAWS
) -> Draws:
    """Return the mean `Draws` of the first `tasks` tasks. All accounts are free before the first task.

    The means are exact. They are computed by a Markov chain, whose state is the numbers of seats filled by
    each of the last `overlap` - 1 tasks. Raises TheoryError for more than 2^20 states.
    """
    v, others = count("verifiers", verifiers, 1), count("overlap", overlap, 1) - 1
    if (v + 1) ** others > MOST_STATES:
        raise TheoryError(
            f"overlap must leave at most 2^20 states (V + 1)^(overlap - 1), got overlap {overlap} of {v} seats"
        )
    shape = (v + 1,) * others
    bound = np.indices(shape).sum(axis=0) if others else np.zeros((), dtype=int)
    laws = [
        filled_law(verifiers=v, accounts=accounts, bound=min(b, accounts), draws=draws)
        for b in range(v * others + 1)
    ]
    filled = np.array([law for law, _ in laws])[bound]
    numbers = np.array([tuple(each) for _, each in laws])[bound]
    state, sums = np.zeros(shape), np.zeros(2)
    state[(0,) * others] = 1
    for _ in range(count("tasks", tasks, 1)):
        sums += (state[..., None] * numbers).reshape(-1, 2).sum(axis=0)
        if others:
            # Add the newest task as the first axis; the sum has removed the oldest one.
            state = np.moveaxis((state[..., None] * filled).sum(axis=-2), -1, 0)
    return Draws(*(sums / tasks).tolist())


def least_accounts(*, verifiers: int, overlap: int, redrawn: float) -> int:
    """Return the least number of accounts for which the first draw of a task leaves a seat empty with chance
    `redrawn` or less.

    All seats of the other tasks are assumed to be filled. So V (overlap - 1) accounts are bound, which is the
    maximum.
    """
    v, most = count("verifiers", verifiers, 1), number("redrawn", redrawn, 0, 1)
    bound = v * (count("overlap", overlap, 1) - 1)
    low, high = bound + v, bound + v
    while _redrawn(v, bound, high) > most:
        high *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _redrawn(v, bound, middle) > most else (low, middle)
    return high


def _redrawn(verifiers: int, bound: int, accounts: int) -> float:
    """The chance that the first draw leaves a seat empty."""
    taken = (bound + np.arange(verifiers)) / accounts
    return float(1 - np.prod(1 - taken**TRIES))


def sold_in_flight(*, stakes: int, overlap: int, tasks: int) -> float:
    """Return which fraction of the first `tasks` tasks are sold. `stakes` is the number of stakes that all
    solvers together are assumed to own.

    Of `overlap` consecutive tasks, the first min(stakes, overlap) are sold; nobody has a stake left for the
    others. Earnings are assumed not to pay for a further stake, and no stake is lost.
    """
    period, each = count("overlap", overlap, 1), min(count("stakes", stakes, 0), overlap)
    whole, rest = divmod(count("tasks", tasks, 1), period)
    return (whole * each + min(rest, each)) / tasks
