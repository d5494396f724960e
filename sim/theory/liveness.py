"""Whether and when a right task is paid: silent seats are redrawn until the stall period is over.

As in `AuditBoard.redraw`, all overdue unattested seats are redrawn at once with the same segments; the silent
account pays the draw and is suspended. Empty seats are redrawn too, with at most eight draws paid by the
task's escrow; then the task is void.

Accounts are assumed to answer independently of each other, and to be far more numerous than seats.
"""

from sim.mechanism.draw import TRIES
from sim.theory.bounds import count, number


def stall_probability(*, verifiers: int, up: float, redraws: int) -> float:
    """Return the chance that at least one of V seats is still silent after R redraws: 1 - (1 - (1 - u)^(R +
    1))^V.

    V is `verifiers`, R is `redraws`, and u is `up`, the chance that an account answers. For each seat, up to
    R + 1 accounts are drawn in turn, and one of them must answer.
    """
    v, silent = count("verifiers", verifiers, 1), 1 - number("up", up, 0, 1)
    return float(1 - (1 - silent ** (count("redraws", redraws, 0) + 1)) ** v)


def expected_redraws(*, verifiers: int, up: float, redraws: int) -> float:
    """Return the mean number of redraws of a task: the sum over r = 1 to R of `stall_probability` after r - 1
    redraws.

    The r-th redraw happens iff some seat is silent after r - 1 redraws. Each redraw takes a draw delay and an
    attestation period.
    """
    return sum(
        stall_probability(verifiers=verifiers, up=up, redraws=n) for n in range(count("redraws", redraws, 0))
    )


def expected_silences(*, verifiers: int, up: float, redraws: int) -> float:
    """Return the mean number of accounts that lose their seat in a task because they are silent: V (s + s^2 +
    ... + s^R). V is `verifiers`, R is `redraws`, and s = 1 - `up` is the chance that an account is silent.
    """
    v, silent = count("verifiers", verifiers, 1), 1 - number("up", up, 0, 1)
    return float(v * sum(silent**n for n in range(1, count("redraws", redraws, 0) + 1)))


def unfilled_probability(*, bound: float, draws: int = 1) -> float:
    """Return the chance that a seat is still empty after `draws` draws, if a share `bound` of the stake
    belongs to accounts that already have a seat.

    Each draw tries 32 slots of the pool (`MAX_TRIES` of contracts/src/audit/Draws.sol), and leaves the seat
    empty only if all of them belong to such bound accounts.
    """
    return float(number("bound", bound, 0, 1) ** (TRIES * count("draws", draws, 1)))


def least_up(*, verifiers: int, redraws: int, stalled: float) -> float:
    """Return the least `up`, the chance that an account answers, at which the chance that a task stalls is at
    most `stalled`.
    """
    v, most = count("verifiers", verifiers, 1), number("stalled", stalled, 0, 1)
    each = 1 - (1 - most) ** (1 / v)
    return float(1 - each ** (1 / (count("redraws", redraws, 0) + 1)))
