"""Collusion: the gain from colluding stake in the draw, the effect of splitting that stake, and the cost of a
self-challenge.

Amounts are token units: floats if they are expectations, integers if the contracts pay them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim.theory.bounds import TheoryError, Values, count, within
from sim.theory.cheating import cheating_advantage


class SelfChallenge(NamedTuple):
    """A cheater's cost of convicting itself, and the part of its stake that it recovers."""

    net_cost: int
    recovered: int


def collusion_threshold(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    price: float,
    gain: float,
    stake: float,
    cost: float,
    accounts: int | None = None,
) -> float:
    """Return the colluding share of the stake above which cheating pays for some number m of false segments.

    Colluders attest and never challenge. The share is 0 if cheating pays without them, and 1 if it never
    pays. The colluders' own costs and earnings are left out. The earnings make no difference: colluders lose
    no stake under the contracts, and would earn the same fees from an honest solver. Leaving out the costs
    favours the cheater. The chance of conviction grows with the honest share for every m, so bisection finds
    the share, to 2^-40.
    """
    false = np.arange(1, count("segments", segments, 1) + 1)

    def pays(share: float) -> bool:
        advantage = cheating_advantage(
            segments=segments,
            false=false,
            segments_per_verifier=segments_per_verifier,
            verifiers=verifiers,
            honest=1 - share,
            price=price,
            gain=gain,
            stake=stake,
            cost=cost,
            accounts=accounts,
        )
        return bool((advantage > 0).any())

    if pays(0.0):
        return 0.0
    if not pays(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def seats_law(*, verifiers: int, accounts: int, others: int, slots: int = 1) -> Values:
    """Return the distribution of the number of seats, out of V, that one owner holds. It has shape (V + 1,).
    The owner has `accounts` accounts of `slots` stake units each; there are `others` other accounts of one
    unit each.

    For each seat, one of the accounts that have no seat yet is drawn. Their chances are in proportion to
    their stakes (`AuditBoard.draw`). If the owner has n accounts of w units and holds j of the first i seats,
    it gets the next seat with chance (n - j) w / ((n - j) w + N - (i - j)), where N is `others`. With single
    units (w = 1) the distribution is hypergeometric. Raises `TheoryError` if there are fewer accounts than
    seats.

    **Splitting.** An account has one seat at a time. So a stake in one account holds at most one seat of a
    task, while the same stake split into V or more accounts may hold all seats.
    """
    v, n = count("verifiers", verifiers, 1), count("accounts", accounts, 0)
    m, w = count("others", others, 0), count("slots", slots, 1)
    if n + m < v:
        raise TheoryError(f"accounts and others must be at least {v} seats, got {n + m}")
    law = np.zeros(v + 1)
    law[0] = 1.0
    for i in range(v):
        mine = np.maximum(n - np.arange(v + 1), 0) * w
        rest = np.maximum(m - i + np.arange(v + 1), 0)
        chance = np.divide(mine, mine + rest, out=np.zeros(v + 1), where=mine + rest > 0)
        moved = law * chance
        law -= moved
        law[1:] += moved[:-1]
    return law


def caught_by_others(law: ArrayLike, missed: ArrayLike) -> Values:
    """Return the chance that a seat of somebody other than the owner finds something. This is the sum over j
    of law_j (1 - a^(V - j)), where j is the number of the owner's seats and a is `missed`.

    `law` is the result of `seats_law`, of shape (V + 1,). `missed` is the chance that no segment of a seat is
    false. It can be one number, or an array with a chance for each number of false segments.
    """
    held = within("law", law, 0, 1 + 1e-9)
    a = within("missed", missed, 0, 1)[..., None]
    return np.asarray((held * (1 - a ** np.arange(len(held) - 1, -1, -1))).sum(axis=-1))


def self_challenge(
    *,
    stake: int,
    reward: int,
    restitution: int = 0,
    seats: int = 0,
    seat_pay: int = 0,
    own_task: bool = False,
) -> SelfChallenge:
    """Return what a self-challenge costs, in integer token units (gas and the bond's capital are extra).

    Let S be the `stake`. A conviction pays the reward R to the challenger, the restitution T to the
    submitter, and `seat_pay` (a game's cost and the fee) to each of the cheater's own `seats` that
    challenged; the rest of S burns (`Commitments`, `TaskMarket.burnRest`). A cheater that is its own
    challenger gets R back. If it is also its own submitter (`own_task`), it gets T back too. Under valid
    terms, a conviction pays at most three quarters of S, so the cheater loses ceil(S / 4) or more, whatever
    roles it plays. Raises `TheoryError` if a conviction would pay more than valid terms allow. The escrow
    returns to the party that paid it and is not a gain.
    """
    whole, paid = count("stake", stake, 0), count("reward", reward, 0)
    claimed = count("seats", seats, 0) * count("seat_pay", seat_pay, 0)
    owed = paid + count("restitution", restitution, 0) + claimed
    if owed > whole - -(-whole // 4):
        raise TheoryError(
            f"what a conviction owes must be at most three quarters of the stake {whole}, got {owed}"
        )
    recovered = paid + claimed + (restitution if own_task else 0)
    return SelfChallenge(whole - recovered, recovered)


def concession_pays(
    *, stake: int, reward: int, delay_penalty: int, restitution: int = 0, own_task: bool = False
) -> bool:
    """Return whether a solver loses less by convicting itself than by letting its deadline pass
    (`TaskMarket.expire`).

    Expiry takes the delay penalty D, of which floor(D / 2) goes to the submitter. So a solver loses D, or D -
    floor(D / 2) if it is also the submitter. Conceding pays if and only if the cost that `self_challenge`
    returns is less than this loss. This is impossible if D <= ceil(S / 4), where S is the stake.
    """
    penalty = count("delay_penalty", delay_penalty, 0)
    if penalty > stake:
        raise TheoryError(f"delay_penalty must be at most the stake {stake}, got {delay_penalty}")
    cost = self_challenge(stake=stake, reward=reward, restitution=restitution, own_task=own_task).net_cost
    return cost < penalty - (penalty // 2 if own_task else 0)


def least_effective_stake(
    *, stake: int, reward: int, restitution: int, seats: int = 0, seat_pay: int = 0
) -> int:
    """Return the part of a stake S that a cheater risks if it plays every role of `self_challenge`.

    This amount, not S, enters the no-cheating condition. If the stake is the least that terms allow and the
    cheater also holds all seats, this amount is a quarter of the stake, rounded up.
    """
    return self_challenge(
        stake=stake, reward=reward, restitution=restitution, seats=seats, seat_pay=seat_pay, own_task=True
    ).net_cost
