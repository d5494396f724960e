"""Whether and when a right task is paid: seats that are silent are drawn again, until the stall period is over.

The contracts as they stand (`AuditBoard.redraw`): the seats that are neither attested nor in time are drawn again, all
at once, with the same segments; the silent account pays the draw and is suspended. Empty seats are drawn again too,
eight draws of a task at most paid by its escrow; then the task is void.

Assumes that an account answers or not, independently of the others, and that there are many more accounts than seats.
"""

from sim.mechanism.draw import TRIES
from sim.theory.bounds import count, number


def stall_probability(*, verifiers: int, up: float, redraws: int) -> float:
    """Return the chance that some of V seats is still silent after R redraws: 1 - (1 - (1 - u)^(R + 1))^V.

    Each account answers with chance `up`, and a seat needs one that does among R + 1.
    """
    v, silent = count("verifiers", verifiers, 1), 1 - number("up", up, 0, 1)
    return float(1 - (1 - silent ** (count("redraws", redraws, 0) + 1)) ** v)


def expected_redraws(*, verifiers: int, up: float, redraws: int) -> float:
    """Return how often a task is drawn again on average: the sum over r of 1 to R of `stall_probability` with r - 1.

    The r-th redraw happens iff some seat is silent after r - 1 of them. Each takes a draw delay and an attestation
    period.
    """
    return sum(
        stall_probability(verifiers=verifiers, up=up, redraws=n) for n in range(count("redraws", redraws, 0))
    )


def expected_silences(*, verifiers: int, up: float, redraws: int) -> float:
    """Return how many accounts of a task lose their seat by silence on average: V (s + s^2 + ... + s^R)."""
    v, silent = count("verifiers", verifiers, 1), 1 - number("up", up, 0, 1)
    return float(v * sum(silent**n for n in range(1, count("redraws", redraws, 0) + 1)))


def unfilled_probability(*, bound: float, draws: int = 1) -> float:
    """Return the chance that a seat is empty after that many draws when the share `bound` of the stake has seats.

    Each draw tries 32 slots of the pool (`AuditBoard.TRIES`), and all of them belong to bound accounts.
    """
    return float(number("bound", bound, 0, 1) ** (TRIES * count("draws", draws, 1)))


def least_up(*, verifiers: int, redraws: int, stalled: float) -> float:
    """Return the least chance of answering with which a task stalls with chance `stalled` at most."""
    v, most = count("verifiers", verifiers, 1), number("stalled", stalled, 0, 1)
    each = 1 - (1 - most) ** (1 / v)
    return float(1 - each ** (1 / (count("redraws", redraws, 0) + 1)))
