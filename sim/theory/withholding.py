"""The theory of withheld data: the chances of a jury's verdicts, the chance that somebody retrains, and what
a cheater gains if it withholds data instead of being convicted.

The rules are those of audit.md section 7. A seat that cannot fetch what it needs files a claim, and J
accounts are drawn to try the same. Honest accounts that are free try to fetch the data, fail, and say no.
Accounts in league with the solver have received the data from it, say yes, and can open any chunk. All others
are silent. The verdict is *available* if more than J / 2 say yes, *withheld* if more than J / 2 say no, and
otherwise *undecided*, in which case the claimant may claim again.

All accounts are assumed to have one stake unit. Amounts are token units as floats (any unit works). The
solver withholds only if an honest seat holds a false segment. In that case, the solver is paid for its result
only if it escapes in the end.
"""

from math import comb, exp
from typing import NamedTuple

from sim.theory.bounds import TheoryError, count, number

CLAIMS = 3
"""Maximum number of claims that an account can file for its seat."""


class Verdict(NamedTuple):
    """Chances of the verdicts of a jury, or of the last jury of several claims."""

    available: float
    withheld: float
    undecided: float


class Withheld(NamedTuple):
    """The amounts that decide what is better for a cheater that an honest seat would convict: to serve its
    data and be convicted, or to withhold its data.
    """

    stake: float
    """S: stake of the solver."""
    burn: float
    """The part of the stake that the solver loses if a jury finds data withheld. It includes the claimant's
    payment.
    """
    reward: float
    """R: reward of a conviction while the task can still be settled."""
    retrain_reward: float
    """R_w: reward of a conviction when the task can no longer be settled."""
    restitution: float
    """Paid to the submitter on a conviction."""
    price: float
    gain: float
    """G: value of a false result to its maker. It counts in full, as in `cheating`, because the result may be
    used before a conviction.
    """
    shared: bool = True
    """Whether the cheater is also the submitter, as the recommended stake assumes. It then recovers the
    restitution, and cannot lose the price, because it pays the price to itself.
    """


def jury_verdict(*, jurors: int, accounts: int, honest: int, league: int) -> Verdict:
    """Return the chances of each verdict of a jury about data that only the league has. The jury has
    min(`jurors`, `accounts`) distinct accounts.

    The jury is drawn from `accounts` accounts. Of these, `honest` try to fetch the data and say no, `league`
    say yes, and the rest are silent. The number of each kind in the jury is hypergeometric. A verdict needs
    more than half of `jurors`, even if fewer accounts were drawn, so at most one side can have it. Otherwise
    the jury is undecided.
    """
    j, n = count("jurors", jurors, 1), count("accounts", accounts, 0)
    no, yes = count("honest", honest, 0, n), count("league", league, 0, n)
    if no + yes > n:
        raise TheoryError(f"honest and league must be at most {n} together, got {no + yes}")
    withheld, available = (_more_than_half(j, n, kind) for kind in (no, yes))
    return Verdict(available, withheld, max(0.0, 1 - withheld - available))


def after_claims(verdict: Verdict, claims: int = CLAIMS) -> Verdict:
    """Return the final verdict if an account claims again while juries are undecided.

    Each claim draws a new jury. Let u be the chance that one jury is undecided, and m the number of claims.
    The chances of *available* and *withheld* are those of one jury, multiplied by 1 + u + ... + u^(m - 1).
    The chance that all juries are undecided is u^m.
    """
    m, u = count("claims", claims, 1), verdict.undecided
    tries = sum(u**k for k in range(m))
    return Verdict(verdict.available * tries, verdict.withheld * tries, u**m)


def withheld_in_the_end(verdict: Verdict, *, honest: float, claims: int = CLAIMS) -> float:
    """Return the chance w that a jury finds the data of a seat's segment withheld before an account in league
    with the solver gets that seat.

    `verdict` is that of one jury. The first account in the seat is honest, and claims. If no jury finds the
    data withheld, the account stays silent and the seat is drawn again. The next account is honest with
    chance h, and claims too; otherwise it is in league with the solver and attests. So w = s / (1 - h (1 -
    s)), where s is the chance that one account's claims succeed. Here the seat is drawn again without limit.
    In fact the task may stall first, and then the cheater does not escape. So the cheater's chance of escape
    is at most 1 - w, and assuming that it is 1 - w favours the cheater.
    """
    h, found = number("honest", honest, 0, 1), after_claims(verdict, claims).withheld
    left = 1 - h * (1 - found)
    return found / left if left > 0 else 0.0


def retraining_chance(*, cost: float, reward: float) -> float:
    """Return the chance that somebody retrains a withheld task, if people retrain for as long as it pays.

    Only the first retrainer is rewarded, and all retrainers are equally likely to be first. Their number is
    Poisson with the mean x at which the expected reward equals the cost: R (1 - e^-x) / x = c. The chance is
    1 - e^-x, or 0 if c >= R.
    """
    c, r = number("cost", cost, 0), number("reward", reward, 0)
    if c == 0:
        return 1.0 if r > 0 else 0.0
    if c >= r:
        return 0.0
    low, high = 0.0, r / c  # At x = R / c the expected reward is less than c.
    for _ in range(200):
        x = (low + high) / 2
        low, high = (x, high) if r * (1 - exp(-x)) > c * x else (low, x)
    return 1 - exp(-low)


def conviction_loss(terms: Withheld) -> float:
    """Return the loss, relative to honest work, of a cheater that is convicted at once by its own challenge."""
    return terms.stake - terms.reward + _submitter(terms)


def retrained_loss(terms: Withheld) -> float:
    """Return the cheater's loss if its data are found withheld and somebody retrains.

    The cheater sees the retrainer's commitment, convicts itself first and takes the retrainer's reward. It
    loses its stake only once: the jury's verdict takes a part of it, and the conviction takes the rest.
    """
    return terms.stake - terms.retrain_reward + _submitter(terms)


def withholding_loss(terms: Withheld, retrained: float) -> float:
    """Return the cheater's mean loss if its data are found withheld and somebody retrains with chance
    `retrained`.

    Without a retrainer, the cheater loses `burn`, and also the price unless it is the submitter too.
    """
    share = number("retrained", retrained, 0, 1)
    unpaid = 0.0 if terms.shared else terms.price
    return share * retrained_loss(terms) + (1 - share) * (terms.burn + unpaid)


def conviction_advantage(terms: Withheld, *, caught: float, saved: float = 0.0) -> float:
    """Return the advantage over honest work of a cheater that serves its data and is convicted with chance
    `caught`.

    This is `cheating.advantage_at`, but with the payments that the cheater recovers. `saved` is the training
    cost saved by false segments.
    """
    return saved + terms.gain - number("caught", caught, 0, 1) * conviction_loss(terms)


def withholding_advantage(
    terms: Withheld, *, caught: float, found: float, retrained: float, saved: float = 0.0
) -> float:
    """Return the advantage over honest work of a cheater that withholds if an honest seat holds a false
    segment.

    The data are then finally found withheld with chance `found` (`withheld_in_the_end`); otherwise the
    cheater escapes.
    """
    lost = number("caught", caught, 0, 1) * number("found", found, 0, 1)
    return saved + terms.gain - lost * withholding_loss(terms, retrained)


def least_retrained_stake(
    terms: Withheld, *, caught: float, saved: float = 0.0, retrained: float = 1.0
) -> float:
    """Return the least stake at which withholding does not pay, assuming that juries always find out that
    data are withheld.

    Somebody retrains with chance `retrained`. Rewards are fixed, and `burn` is a fixed share of the stake.
    The least stake is infinite if the cheater never loses any of its stake.
    """
    d, share = number("caught", caught, 0, 1), number("retrained", retrained, 0, 1)
    unpaid = 0.0 if terms.shared else terms.price
    back = share * (terms.retrain_reward - _submitter(terms)) - (1 - share) * unpaid
    slope = share + (1 - share) * terms.burn / terms.stake
    return ((saved + terms.gain) / d + back) / slope if d * slope > 0 else float("inf")


def _submitter(terms: Withheld) -> float:
    """What a conviction costs the cheater in addition to the stake. If the cheater is not the submitter, this
    is the lost price. If it is also the submitter, it pays the price to itself and recovers the restitution.
    The cost is then negative: the restitution with a minus sign.
    """
    return -terms.restitution if terms.shared else terms.price


def _more_than_half(jurors: int, accounts: int, kind: int) -> float:
    """Chance that more than half of the jury belongs to a group that has `kind` of the accounts."""
    drawn = min(jurors, accounts)
    ways = sum(comb(kind, k) * comb(accounts - kind, drawn - k) for k in range(jurors // 2 + 1, drawn + 1))
    return ways / comb(accounts, drawn)
