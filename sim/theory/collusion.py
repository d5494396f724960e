"""What stake in the draw buys a cheater, what splitting a stake changes, and what conceding to oneself costs.

Amounts are token units: floats where they are expectations, integers where `protocol.tasks.economics` splits them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from protocol.tasks.economics import REROLLS, slash_split
from sim.theory.bounds import TheoryError, Values, count, counts, number, within
from sim.theory.escape import missed_probability


class SelfChallenge(NamedTuple):
    """What convicting itself costs a cheater: `net_cost`, with the first quarter `burned`; and what it takes back."""

    net_cost: int
    burned: int
    recovered: int


def least_honest_share(
    *,
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    price: ArrayLike,
    gain: ArrayLike,
    stake: ArrayLike,
    cost: ArrayLike,
    rerolls: ArrayLike = REROLLS,
) -> Values:
    """Return h at which m false segments earn just what honest work earns; above 1 cheating pays regardless.

    Needed is a chance of conviction D = (f c + G) / (S + p) (`cheating.cheating_advantage` = 0 with `kept` =
    1), that is d = D^(1 / 2^k) with each seed, and d = 1 - (1 - h (1 - a))^V; so h = (1 - (1 - d)^(1 / V)) /
    (1 - a). D > 1 has no such h: infinite.
    """
    p, s = within("price", price, 0), within("stake", stake, 0)
    within("stake + price", s + p, np.finfo(np.float64).tiny)
    m, k = counts("false", false, 1), counts("segments", segments, 1)
    won = m / k * within("cost", cost, 0) + within("gain", gain, 0)
    v = counts("verifiers", verifiers, 1)
    needed = won / (s + p)
    once = np.minimum(needed, 1.0) ** (1 / 2.0 ** counts("rerolls", rerolls, 0, 64))
    hit = 1 - missed_probability(segments, false, segments_per_verifier)
    hit, once, needed, v = np.broadcast_arrays(hit, once, needed, v)
    each = 1 - (1 - once) ** (1 / v)
    share = np.divide(each, hit, out=np.where(each > 0, np.inf, 0.0), where=hit > 0)
    return np.asarray(np.where(needed > 1, np.inf, share))


def collusion_threshold(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    price: float,
    gain: float,
    stake: float,
    cost: float,
    rerolls: int = REROLLS,
) -> float:
    """Return the share of slots above which some m pays a cheater whose colluders attest and never challenge.

    1 - max over m of `least_honest_share`; 0 when cheating pays without colluders. The colluders' own money
    is left out in the cheater's favour: what they hold in slots is lost to nobody under the contracts
    (dispute.md section 3 slashes seals equal to a root judged false), and their fees they would earn from an
    honest solver too, with certainty.
    """
    false = np.arange(1, count("segments", segments, 1) + 1)
    needed = least_honest_share(
        segments=segments,
        false=false,
        segments_per_verifier=segments_per_verifier,
        verifiers=verifiers,
        price=price,
        gain=gain,
        stake=stake,
        cost=cost,
        rerolls=rerolls,
    )
    return max(0.0, 1.0 - float(needed.max()))


def colluding_seats(*, verifiers: int, share: ArrayLike) -> Values:
    """Return the distribution of how many of V seats colluders with `share` of the slots hold: shape (..., V + 1).

    Binomial (V, s): each seat is the holder of a uniform slot, drawn with replacement (`AuditBoard._drawVerifier`).

    **Sybil neutrality.** Only the number of slots enters: an account with n_i of N slots holds a seat with
    chance n_i / N, accounts of one owner are disjoint events for one seat, so any split of n slots has sum
    n_i / N = n / N, and seats are independent. So the joint law of the owner's seats, not just its mean V s,
    is the same however the stake is split. What is not neutral is what a seat holds: `expected_duties`.
    """
    v = count("verifiers", verifiers, 1)
    s = within("share", share, 0, 1)[..., None]
    ways = np.ones(v + 1)
    for i in range(v):
        ways[i + 1] = ways[i] * (v - i) / (i + 1)
    held = np.arange(v + 1)
    return np.asarray(ways * s**held * (1 - s) ** (v - held))


def expected_duties(
    *, segments: int, segments_per_verifier: int, verifiers: int, share: ArrayLike, accounts: int = 1
) -> Values:
    """Return the expected number of paid duties of an owner with `share` of the slots in `accounts` equal accounts.

    An account holds a duty once however often it was drawn for it (`AuditBoard._add`). One seat brings
    segment K for certain, and each other with chance q / K (q at most K); so an account with share t has K
    with chance 1 - (1 - t)^V and each of K - 1 others with 1 - (1 - t q / K)^V. With t = s / accounts the sum
    over accounts rises with their number, to V s (1 + q (K - 1) / K): each summand is concave in t. So
    splitting a stake leaves seats alone but earns a few more fees, and more so for a segment that several
    accounts of one owner are drawn for, which it replays once. Further draws for segment K when fewer than A
    accounts were drawn are not counted: exact for A = 1.
    """
    k = count("segments", segments, 1)
    q = min(count("segments_per_verifier", segments_per_verifier, 1), k)
    v, n = count("verifiers", verifiers, 1), count("accounts", accounts, 1)
    each = within("share", share, 0, 1) / n
    return np.asarray(n * ((k - 1) * (1 - (1 - each * q / k) ** v) + 1 - (1 - each) ** v))


def split_advantage(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    share: float,
    accounts: int,
    audit_fee: float,
) -> float:
    """Return what splitting one account into `accounts` earns in fees, in token units for each task: never negative.

    The difference of `expected_duties`, times the fee. Small for small owners: to second order in s it is
    audit_fee (1 - 1 / accounts) V (V - 1) s^2 / 2 (1 + (K - 1) q^2 / K^2).
    """
    split, whole = (
        float(
            expected_duties(
                segments=segments,
                segments_per_verifier=segments_per_verifier,
                verifiers=verifiers,
                share=share,
                accounts=n,
            )
        )
        for n in (accounts, 1)
    )
    return number("audit_fee", audit_fee, 0) * (split - whole)


def self_challenge(*, stake: int, reward: int, restitution: int = 0, own_task: bool = False) -> SelfChallenge:
    """Return what conceding to oneself costs, in integer token units (gas and the bond's capital come on top).

    `StakeVault.slash` burns ceil(S / 4) first, then pays the challenger min(R, rest), the submitter min(T,
    what is then left), and burns what remains. A cheater that is its own challenger gets the first back, one
    that is also its own submitter (`own_task`) both. So it loses S - R' - T' >= ceil(S / 4): never nothing,
    and no split of roles lowers it further. The escrow returns to whoever paid it and is no gain.
    `minimum_stake` therefore adds reward and restitution.
    """
    parts = slash_split(
        count("stake", stake, 0), count("reward", reward, 0), count("restitution", restitution, 0)
    )
    recovered = parts.rewarded + (parts.restored if own_task else 0)
    return SelfChallenge(stake - recovered, parts.burned, recovered)


def concession_pays(
    *, stake: int, reward: int, delay_penalty: int, restitution: int = 0, own_task: bool = False
) -> bool:
    """Tell whether convicting itself is cheaper for a solver than letting its deadline pass (`TaskMarket.expire`).

    Expiring burns the delay penalty D and returns the rest of the stake. So conceding pays iff
    `self_challenge` costs less than D, and never does if D <= ceil(S / 4): a bound on terms that `TermsCheck`
    does not set (it allows D = S).
    """
    penalty = count("delay_penalty", delay_penalty, 0)
    if penalty > stake:
        raise TheoryError(f"delay_penalty must be at most the stake {stake}, got {delay_penalty}")
    cost = self_challenge(stake=stake, reward=reward, restitution=restitution, own_task=own_task).net_cost
    return cost < penalty


def least_effective_stake(*, stake: int, reward: int, restitution: int) -> int:
    """Return what the best placed cheater has at risk of a stake S: `self_challenge` with every role its own.

    It, not S, stands in the no-cheating condition. At the least stake that terms allow, ceil(4 R / 3), it is
    just the quarter.
    """
    return self_challenge(stake=stake, reward=reward, restitution=restitution, own_task=True).net_cost
