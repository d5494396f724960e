"""Chances of detection, and the least stakes and locks, without floats: audit.md section 9.

Amounts are token units. Chances of the audit are integers in units of 10^-18 (`ONE`); those of looks are
fractions. Every rounding favours the submitter: chances of escape and the stake are rounded up, and chances
of detection are rounded down. Clients call the functions through `protocol.tasks.amounts`; `sim.theory` calls
them directly. `tests/vectors/economics.json` has results for some terms.

Notation of audit.md: K segments, of which m are false (f = m / K); V verifiers drawn, each with q distinct
segments; h the honest share of the registered stake; p the price, G what a false result is worth to the
cheater, S the stake. e is the chance that a second look picks a given segment of a seat, and L the lock of a
seat or look.
"""

from fractions import Fraction
from typing import NamedTuple

from protocol.dispute.looks import LEVELS
from protocol.errors import AssayError
from protocol.tasks.task import RATE_OF_ALL

ONE = 10**18
"""A chance of 1, in units of 10^-18."""


class StakeError(AssayError, ValueError):
    """No stake or lock makes cheating unprofitable under these audit terms, or a term is out of bounds."""


class Audit(NamedTuple):
    """K, q and V of a task's terms, and the assumed honest share h in units of `ONE`."""

    segments: int
    segments_per_verifier: int
    verifiers: int
    honest: int


def missed_chance(segments: int, false: int, drawn: int) -> int:
    """a(f) = C(K - m, q) / C(K, q): the chance that q distinct segments out of K include none of the m false ones."""
    chance = ONE
    for i in range(min(drawn, segments)):
        chance = _up(chance * max(0, segments - false - i), segments - i)
    return chance


def escape_chance(audit: Audit, false: int) -> int:
    """P(f) = (1 - h + h a(f))^V: the chance that no drawn verifier is honest and has a false segment."""
    missed = missed_chance(audit.segments, false, audit.segments_per_verifier)
    one_verifier = ONE - audit.honest + _up(audit.honest * missed, ONE)
    chance = ONE
    for _ in range(audit.verifiers):
        chance = _up(chance * one_verifier, ONE)
    return chance


def minimum_stake(audit: Audit, price: int, gain: int, *, recoverable: int = 0, margin: int = 0) -> int:
    """S_min: the smallest stake with which cheating does not pay, no matter how many segments are false.

    S_min = max(0, max over m of (m p / K + G) / (1 - P(m / K)) - p) + margin + recoverable. `recoverable` is
    the reward and the restitution, which a cheater gets back if it is also its own challenger and submitter.
    `margin` is added to the stake.

    Only m = 1 and m = K are computed, because the maximum is at one of them. The chance a(m / K) of
    `missed_chance` is convex in m. The chance P of `escape_chance` is an increasing convex function of a(m /
    K), so P is convex in m too, and 1 - P is concave. A line divided by a positive concave function is
    quasiconvex, and is therefore largest at an end.

    Raises `StakeError` if some m is never caught, or if a number is out of bounds.
    """
    _check(audit)
    needed = 0
    for false in {1, audit.segments}:
        caught = ONE - escape_chance(audit, false)
        if caught == 0:
            raise StakeError(
                f"{false} false segments of {audit.segments} are never caught: raise q or V, got {audit}"
            )
        profit = _up(false * price, audit.segments) + gain
        needed = max(needed, _up(profit * ONE, caught))
    return max(0, needed - price) + margin + recoverable


def picked_chance(look_chance: int, segments: int) -> Fraction:
    """1 - (1 - e)^q: the chance that at least one of a seat's q `segments` is picked. e is `look_chance` /
    RATE_OF_ALL.
    """
    return 1 - Fraction(RATE_OF_ALL - look_chance, RATE_OF_ALL) ** segments


def least_look_lock(saved: int, look_chance: int, segments: int, honest: Fraction) -> int:
    """The least lock L, among even numbers, with which skipping does not pay: (1 - (1 - e)^q) h L / 2 >
    `saved`.

    `saved` is the amount that a seat of q = `segments` segments saves if it replays none of them. Only half
    of a lost lock counts, because a caught account may be its own looker, or bribe the looker. A seat may
    also skip only a share f of the steps of each segment. It then saves f of the cost, and an accusation hits
    a skipped step with chance f. Since 1 - (1 - e f)^q is concave in f, f = 1 needs the largest lock. A look
    needs no larger lock than a seat: it has one segment, so it saves `saved` / q and is caught with chance e,
    and (1 - (1 - e)^q) / q <= e.

    Raises StakeError if no segment is ever picked, or if no looker is honest.
    """
    caught = picked_chance(look_chance, segments) * honest
    if caught <= 0:
        raise StakeError(
            f"a look chance of {look_chance}, an honest share of {honest}: expected both above 0, for nobody is "
            "caught otherwise"
        )
    return 2 * (int(saved / caught) + 1)


def expected_looks(look_chance: int, slots: int) -> Fraction:
    """Upper bound of the mean number of looks of a task: V q (e + e^2 + e^3 + e^4), but at most V q. `slots`
    = V q is the number of attested segments of all seats. The bound is slightly too high: each task has at
    most V q looks, but here this limit is applied only to the mean.
    """
    chance = Fraction(look_chance, RATE_OF_ALL)
    return min(Fraction(slots), slots * sum((chance**level for level in range(1, LEVELS + 1)), Fraction()))


def expected_look_draws(look_chance: int, slots: int) -> Fraction:
    """Mean number of draws for the looks of a task. `slots` = V q is the number of attested segments of all
    seats. One draw is for level 1, and one is for each further level if the level before has a look. A slot
    has a look of level n with chance e^n. The result is slightly too high, like that of `expected_looks`.
    """
    if not look_chance:
        return Fraction()
    chance = Fraction(look_chance, RATE_OF_ALL)
    return 1 + sum((1 - (1 - chance**level) ** slots for level in range(1, LEVELS)), Fraction())


def _check(audit: Audit) -> None:
    for name, value, most in (
        ("segments", audit.segments, 1 << 20),
        ("segments_per_verifier", audit.segments_per_verifier, 64),
        ("verifiers", audit.verifiers, 32),
        ("honest", audit.honest, ONE),
    ):
        if not 1 <= value <= most:
            raise StakeError(f"{name} must be from 1 to {most}, got {value}")


def _up(numerator: int, denominator: int) -> int:
    """Divide, rounding up."""
    return -(-numerator // denominator)
