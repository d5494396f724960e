"""Withheld data: what juries find, who trains again, and what a cheater has that withholds instead of being convicted.

audit.md section 7. A seat that cannot fetch what it needs claims so, and J accounts are drawn to try it too. Who
is honest and free can fetch nothing and says no; who is in league with the solver has the data from it and says yes,
and can open any chunk of them; all others are silent. The verdict is *available* where more than J / 2 say yes,
*withheld* where more than J / 2 say no, else *undecided*, and the claimant may claim again.

Assumes accounts of one stake unit. Amounts are token units as floats, any unit will do. The solver withholds only where
an honest seat holds a false segment; then its result is not paid unless it escapes in the end.
"""

from math import comb, exp
from typing import NamedTuple

from sim.theory.bounds import TheoryError, count, number

CLAIMS = 3
"""Most claims of an account in its seat."""


class Verdict(NamedTuple):
    """Chances of what a jury, or the last jury of several claims, finds."""

    available: float
    withheld: float
    undecided: float


class Withheld(NamedTuple):
    """What decides for a cheater that an honest seat would convict."""

    stake: float
    """S."""
    burn: float
    """Of the stake, where a jury finds that data are withheld; at least what it pays the claimant."""
    reward: float
    """R: of who convicts while the task can still be settled."""
    retrain_reward: float
    """R_w: of who convicts after that."""
    restitution: float
    """The submitter's, on a conviction."""
    price: float
    gain: float
    """G: worth of a false result to its maker, counted in full as in `cheating`: it may have served before it fell."""
    shared: bool = True
    """Whether the submitter is the cheater's, as the recommended stake assumes: then it has the restitution back, and
    the price is its own either way.
    """


def jury_verdict(*, jurors: int, accounts: int, honest: int, league: int) -> Verdict:
    """Return what a jury of min(`jurors`, `accounts`) distinct accounts finds about data that only the league has.

    `accounts` are those that a draw finds, `honest` of them try and say no, `league` say yes, the rest is silent. The
    number of each kind is hypergeometric. More than half of the *whole* jury is needed, drawn or not, so both cannot
    be met, and what is left is undecided.
    """
    j, n = count("jurors", jurors, 1), count("accounts", accounts, 0)
    no, yes = count("honest", honest, 0, n), count("league", league, 0, n)
    if no + yes > n:
        raise TheoryError(f"honest and league must be at most {n} together, got {no + yes}")
    withheld, available = (_more_than_half(j, n, kind) for kind in (no, yes))
    return Verdict(available, withheld, max(0.0, 1 - withheld - available))


def after_claims(verdict: Verdict, claims: int = CLAIMS) -> Verdict:
    """Return what is found in the end, where an account claims again while juries are undecided: juries of each claim
    are drawn again, so the chances of the first verdict grow by 1 + u + ... + u^(m - 1), u that of no verdict.
    """
    m, u = count("claims", claims, 1), verdict.undecided
    tries = sum(u**k for k in range(m))
    return Verdict(verdict.available * tries, verdict.withheld * tries, u**m)


def withheld_in_the_end(verdict: Verdict, *, honest: float, claims: int = CLAIMS) -> float:
    """Return the chance w that the data of a seat's segment are found withheld before somebody in league has the
    seat.

    `verdict` is one jury's. Anyone who has the seat is honest at first, and claims; where no verdict is withheld it
    stays silent, the seat is drawn again, and is an honest account's with chance h, who claims like the first,
    otherwise the league's, who attests. So w = s / (1 - h (1 - s)), s the chance of an account's claims. Redraws are
    endless here: a stalled task is not an escape, so this errs in the cheater's favour.
    """
    h, found = number("honest", honest, 0, 1), after_claims(verdict, claims).withheld
    left = 1 - h * (1 - found)
    return found / left if left > 0 else 0.0


def retraining_chance(*, cost: float, reward: float) -> float:
    """Return the chance that somebody trains a withheld task again, where as many do as are paid for it.

    Of those that come the first is rewarded, each with the same chance, and their number is a Poisson one with the mean
    x at which the share of the reward pays the cost: R (1 - e^-x) / x = c. The chance is 1 - e^-x, 0 where c >= R.
    """
    c, r = number("cost", cost, 0), number("reward", reward, 0)
    if c == 0:
        return 1.0 if r > 0 else 0.0
    if c >= r:
        return 0.0
    low, high = 0.0, r / c  # At x = R / c the share is less than c.
    for _ in range(200):
        x = (low + high) / 2
        low, high = (x, high) if r * (1 - exp(-x)) > c * x else (low, x)
    return 1 - exp(-low)


def conviction_loss(terms: Withheld) -> float:
    """Return what a cheater loses beside honest work that is convicted at once and is its own challenger."""
    return terms.stake - terms.reward + _submitter(terms)


def retrained_loss(terms: Withheld) -> float:
    """Return what it loses where its data are found withheld and somebody trains again.

    It sees the retrainer's commitment, convicts itself first and has that reward. What a jury takes is a part of what a
    conviction burns, so nothing is lost twice.
    """
    return terms.stake - terms.retrain_reward + _submitter(terms)


def withholding_loss(terms: Withheld, retrained: float) -> float:
    """Return what it loses on average, where somebody trains again with chance `retrained`; else what burns, and the
    price.
    """
    share = number("retrained", retrained, 0, 1)
    unpaid = 0.0 if terms.shared else terms.price
    return share * retrained_loss(terms) + (1 - share) * (terms.burn + unpaid)


def conviction_advantage(terms: Withheld, *, caught: float, saved: float = 0.0) -> float:
    """Return what a cheater earns over honest work that serves its data, and is convicted with chance `caught`, D:
    `cheating.advantage_at` with what it gets back. `saved` is what false segments need not be trained.
    """
    return saved + terms.gain - number("caught", caught, 0, 1) * conviction_loss(terms)


def withholding_advantage(
    terms: Withheld, *, caught: float, found: float, retrained: float, saved: float = 0.0
) -> float:
    """Return what one earns over honest work that withholds where an honest seat holds a false segment.

    Data are then found withheld in the end with chance `found` (`withheld_in_the_end`), otherwise it escapes.
    """
    lost = number("caught", caught, 0, 1) * number("found", found, 0, 1)
    return saved + terms.gain - lost * withholding_loss(terms, retrained)


def least_retrained_stake(
    terms: Withheld, *, caught: float, saved: float = 0.0, retrained: float = 1.0
) -> float:
    """Return the stake at which withholding does not pay, where juries find what is withheld and somebody trains
    again with chance `retrained`; rewards stay unchanged and the burn is the same share of the stake. Infinite where
    nothing is lost.
    """
    d, share = number("caught", caught, 0, 1), number("retrained", retrained, 0, 1)
    unpaid = 0.0 if terms.shared else terms.price
    back = share * (terms.retrain_reward - _submitter(terms)) - (1 - share) * unpaid
    slope = share + (1 - share) * terms.burn / terms.stake
    return ((saved + terms.gain) / d + back) / slope if d * slope > 0 else float("inf")


def _submitter(terms: Withheld) -> float:
    """What a conviction costs the cheater beside the stake: it gets the restitution back, or loses the price."""
    return -terms.restitution if terms.shared else terms.price


def _more_than_half(jurors: int, accounts: int, kind: int) -> float:
    """Chance that more than half of the jury are of a kind, of which there are that many among the accounts."""
    drawn = min(jurors, accounts)
    ways = sum(comb(kind, k) * comb(accounts - kind, drawn - k) for k in range(jurors // 2 + 1, drawn + 1))
    return ways / comb(accounts, drawn)
