"""Griefing: what an attacker that wants nothing but harm does to others for each unit that it loses.

The factor is harm / loss, after Buterin et al., *Incentives in Ethereum's Hybrid Casper Protocol*
(arXiv:1903.04205): 0.5 is a bad bargain for the attacker, infinite is free harm. Amounts are token units,
whole where the contracts book them. Gas, replays and waiting are costs that no contract books: they come in
as figures of the market's parameters.
"""

from typing import NamedTuple

from protocol.tasks.economics import settle_split
from protocol.tasks.task import GAMES_AT_ONCE
from sim.theory.bounds import TheoryError, count, number
from sim.theory.escape import raised_segments

FREE = float("inf")


class Griefing(NamedTuple):
    """Expected harm to others and loss of the attacker, in token units."""

    harm: float
    loss: float

    @property
    def factor(self) -> float:
        """Harm for each unit lost: infinite where it is free, 0 where there is none."""
        if self.harm <= 0:
            return 0.0
        return self.harm / self.loss if self.loss > 0 else FREE


def false_challenge(*, bond: int, defence: float, delay: float = 0.0, gas: float = 0.0) -> Griefing:
    """Return the griefing of one challenge that is lost, in the contracts as they stand.

    `GameState._dismiss` pays floor(B / 2) to the solver and burns the rest. The challenger loses B and its
    own `gas`; the solver bears `defence` (gas and re-execution), it and the submitter bear `delay`
    (`waiting_cost` of what is held while the game runs), and half the bond is paid: harm max(0, defence +
    delay - floor(B / 2)) against B + gas. Who challenges itself loses the half that burns, whatever that is
    for.
    """
    paid = count("bond", bond, 0) // 2
    harm = number("defence", defence, 0) + number("delay", delay, 0) - paid
    return Griefing(max(0.0, harm), bond + number("gas", gas, 0))


def held_seconds(*, game_time: float, solver: float, games: int = 1) -> float:
    """Return how long false challenges can hold a payout, in seconds.

    Each side of a game has `game_time` (the terms' clock and replay allowance), which runs while it is to
    move: the challenger uses up its own, an honest solver `solver` of its own. 16 games of a task are played at
    once (`GameState.GAMES_AT_ONCE`), the next 16 when those are dismissed.
    """
    rounds = -(-count("games", games, 0) // GAMES_AT_ONCE)
    most = number("game_time", game_time, 0)
    return rounds * (most + number("solver", solver, 0, most))


def waiting_cost(*, amount: float, seconds: float, yearly_rate: float) -> float:
    """Return what it costs to have `amount` later by `seconds`, at simple interest for 365 days a year."""
    share = number("seconds", seconds, 0) / (365 * 86_400)
    return number("amount", amount, 0) * number("yearly_rate", yearly_rate, 0) * share


def least_bond(*, defence: float, delay: float, factor: float, gas: float = 0.0) -> float:
    """Return the bond with which a false challenge has at most `factor`.

    defence + delay - B / 2 = t (B + gas) gives B = (defence + delay - t gas) / (t + 1 / 2): twice the
    solver's whole cost makes it whole (t = 0). The floor of an odd bond can cost one unit more.
    """
    t = number("factor", factor, 0)
    harm = number("defence", defence, 0) + number("delay", delay, 0)
    return max(0.0, (harm - t * number("gas", gas, 0)) / (t + 0.5))


def bond_schedule(*, bond: int, open_challenges: int, drawn: bool = False) -> int:
    """Return the bond of the next challenge by dispute.md section 6: doubled for each open one beyond four.

    With n games open before it, B 2^max(0, n + 1 - 4): the fifth costs 2 B. Verifiers drawn on the segment
    pay B. The contracts as they stand ask for B always (2^0 throughout).
    """
    extra = 0 if drawn else max(0, count("open_challenges", open_challenges, 0) + 1 - 4)
    return int(count("bond", bond, 0) << extra)


def bonds_together(*, bond: int, challenges: int) -> int:
    """Return what n simultaneous false challenges cost by `bond_schedule`.

    n B up to four, then B (4 + 2 + 4 + ... + 2^(n - 4)) = B (2^(n - 3) + 2), against n B in the contracts:
    harm is at most proportional to n, so its factor falls exponentially instead of staying where it is.
    """
    n = count("challenges", challenges, 0)
    each = count("bond", bond, 0)
    return n * each if n <= 4 else each * ((1 << (n - 3)) + 2)


def silent_verifier(
    *,
    price: float,
    audit_fee: float,
    duties: int,
    other_duties: int,
    replay_cost: float,
    draw_fee: float = 0.0,
    delay: float = 0.0,
    lock: float = 0.0,
    redraws: int = 0,
    seated_again: float = 1.0,
) -> Griefing:
    """Return the griefing of a drawn verifier whose silence is enough to void a task (`liveness` says when it is).

    `TaskMarket.voidTask` returns stake and escrow. So the solver is not paid its price, the others who
    attested (`other_duties`) are not paid theirs, the submitter has paid the drawer and waited (`delay`). The
    silent one forgoes its fees but saves its replays: it loses max(0, duties (F - k)) and, in dispute.md
    section 3, the fee-sized `lock` of each duty; under the contracts nothing else. Then harm is at least a
    price for a fee: voids, not slashes, are the cheap attack. Counted as harm is what settling would have
    paid, the costs being sunk in either case.

    dispute.md also redraws up to R times before it voids: the attacker must be drawn and silent again each
    time, which happens with chance `seated_again`, and pays a lock for each. Harm then has chance sigma^R;
    the loss is the sum over the tries.
    """
    sigma = number("seated_again", seated_again, 0, 1)
    tries = count("redraws", redraws, 0)
    fee = number("audit_fee", audit_fee, 0)
    own = count("duties", duties, 1)
    each = max(0.0, fee - number("replay_cost", replay_cost, 0)) + number("lock", lock, 0)
    harm = number("price", price, 0) + fee * count("other_duties", other_duties, 0)
    harm += number("draw_fee", draw_fee, 0) + number("delay", delay, 0)
    return Griefing(harm * sigma**tries, own * each * sum(sigma**i for i in range(tries + 1)))


def late_solver(*, delay_penalty: int, delay: float, stake: int, capital_cost: float = 0.0) -> Griefing:
    """Return the griefing of a solver that bids, wins and lets the deadline pass (`TaskMarket.expire`).

    The penalty burns, stake and escrow go back. The submitter has waited for nothing and is paid nothing:
    harm `delay`, loss min(penalty, S) + what the locked stake would have earned. A task may be taken so by
    whoever bids lowest, at a price of 0, and again when it is posted anew; only the penalty prices it.
    """
    taken = min(count("delay_penalty", delay_penalty, 0), count("stake", stake, 0))
    return Griefing(number("delay", delay, 0), taken + number("capital_cost", capital_cost, 0))


def least_delay_penalty(*, delay: float, factor: float, capital_cost: float = 0.0) -> float:
    """Return the delay penalty with which a late solver has at most `factor`: delay / t - capital cost, or 0."""
    if number("factor", factor, 0) == 0:
        raise TheoryError("a delay is never compensated, so no penalty brings its factor to 0")
    return max(0.0, number("delay", delay, 0) / factor - number("capital_cost", capital_cost, 0))


def missed_draw_excess(
    *, price: int, audit_fee: int, segments: int, segments_per_verifier: int, verifiers: int, misses: int
) -> int:
    """Return how much of its price a solver loses to audit fees after `misses` draws that nobody proved, in integers.

    Each miss raises q (`escape.raised_segments`), the escrow holds fees for the first q alone, and
    `Shares.settle` takes the rest from the price. Counted with all duties distinct and attested, the most
    there can be; q is at most K, and segment K comes once for each verifier (a draw that holds segment K adds
    no duty for it, which is left out in the solver's disfavour when q < K).
    """
    k = count("segments", segments, 1)
    q = raised_segments(segments_per_verifier, verifiers, misses)
    reserve = audit_fee * verifiers * (segments_per_verifier + 1)
    most = verifiers * (q + 1 if q < k else k)
    return price - settle_split(count("price", price, 0), reserve, audit_fee, most).to_solver


def unproved_draw(
    *,
    price: int,
    audit_fee: int,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    stake: int,
    misses: int,
    most_misses: int,
    censoring: float,
    delay: float = 0.0,
) -> Griefing:
    """Return the griefing of somebody who keeps everyone from proving draws, `misses` times at `censoring` each.

    Up to `most_misses` the harm is the solver's `missed_draw_excess` and `delay` each time. One miss more and
    the draw is lost for good (`AuditBoard.drawLost`): the task is void, the solver unpaid and its stake burned, so
    harm is price and stake. Nobody else who stays away loses anything, but anyone may draw and is paid for it, the
    solver too: the loss is what censoring costs, in each of the windows.
    """
    n = count("misses", misses, 1, count("most_misses", most_misses, 0) + 1)
    held = n * number("delay", delay, 0)
    if n > most_misses:
        lost = count("price", price, 0) + count("stake", stake, 0)
    else:
        lost = missed_draw_excess(
            price=price,
            audit_fee=audit_fee,
            segments=segments,
            segments_per_verifier=segments_per_verifier,
            verifiers=verifiers,
            misses=n,
        )
    return Griefing(lost + held, n * number("censoring", censoring, 0))
