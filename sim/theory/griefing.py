"""Griefing: the harm that a purely malicious attacker does to others for each unit that it loses.

The factor is harm / loss, after Buterin et al., *Incentives in Ethereum's Hybrid Casper Protocol*
(arXiv:1903.04205). A factor of 0.5 is a bad bargain for the attacker; an infinite factor is free harm.
Amounts are token units, whole if the contracts book them. No contract books the costs of gas, replays and
waiting; the market's parameters give them.
"""

from typing import NamedTuple

from protocol.tasks.task import GAMES_AT_ONCE
from sim.theory.bounds import count, number

FREE = float("inf")


class Griefing(NamedTuple):
    """Expected harm to others, and expected loss of the attacker, in token units."""

    harm: float
    loss: float

    @property
    def factor(self) -> float:
        """Harm per unit lost: infinite if harm costs nothing, 0 if there is no harm."""
        if self.harm <= 0:
            return 0.0
        return self.harm / self.loss if self.loss > 0 else FREE


def false_challenge(*, bond: int, defence: float, delay: float = 0.0, gas: float = 0.0) -> Griefing:
    """Return the griefing of one lost challenge, with a `bond` of B.

    The contracts pay floor(B / 2) to the solver and burn the rest (`GameState._leave`). The challenger loses
    B and its own `gas`. The solver bears `defence` (gas and re-execution), and solver and submitter bear
    `delay` (`waiting_cost` of the tokens held while the game runs). The solver's half of the bond offsets
    these costs. So the harm is max(0, defence + delay - floor(B / 2)), and the loss is B + gas. A solver that
    challenges itself loses the half that burns.
    """
    paid = count("bond", bond, 0) // 2
    harm = number("defence", defence, 0) + number("delay", delay, 0) - paid
    return Griefing(max(0.0, harm), bond + number("gas", gas, 0))


def held_seconds(*, game_time: float, solver: float, games: int = 1) -> float:
    """Return how long false challenges can hold a payout, in seconds.

    Each side of a game has `game_time` (the terms' clock and replay allowance), which runs while that side is
    to move. The challenger uses up all of its time. An honest solver uses `solver` seconds. 16 games of a
    task are played at once (`GameState.GAMES_AT_ONCE`), and the next 16 are played when those are dismissed.
    """
    rounds = -(-count("games", games, 0) // GAMES_AT_ONCE)
    most = number("game_time", game_time, 0)
    return rounds * (most + number("solver", solver, 0, most))


def waiting_cost(*, amount: float, seconds: float, yearly_rate: float) -> float:
    """Return the cost of receiving `amount` with a delay of `seconds`, at simple interest and with 365 days a
    year.
    """
    share = number("seconds", seconds, 0) / (365 * 86_400)
    return number("amount", amount, 0) * number("yearly_rate", yearly_rate, 0) * share


def least_bond(*, defence: float, delay: float, factor: float, gas: float = 0.0) -> float:
    """Return the least bond B with which a false challenge has a factor of at most t = `factor`.

    defence + delay - B / 2 = t (B + gas) gives B = (defence + delay - t gas) / (t + 1 / 2). For t = 0, the
    bond is twice the harm defence + delay, so the solver's half of the bond makes up for this harm. Half of
    an odd bond is rounded down, so up to one unit of the harm can remain.
    """
    t = number("factor", factor, 0)
    harm = number("defence", defence, 0) + number("delay", delay, 0)
    return max(0.0, (harm - t * number("gas", gas, 0)) / (t + 0.5))


def silent_verifier(*, seat_fee: float, seat_cost: float, draw_fee: float, delay: float) -> Griefing:
    """Return the griefing of an account that is silent in its seat once (`AuditBoard.redraw`).

    It loses the seat's fee and the draw fee, and forgoes what the seat earns above `seat_cost` (replays and
    gas). It is suspended, and its seat is redrawn with the same segments. Everybody else is paid as before,
    but waits for one more draw and one more attestation (`delay`).
    """
    fee = number("seat_fee", seat_fee, 0)
    lost = fee + number("draw_fee", draw_fee, 0)
    return Griefing(number("delay", delay, 0), lost + max(0.0, fee - number("seat_cost", seat_cost, 0)))


def late_solver(*, delay_penalty: int, delay: float, capital_cost: float = 0.0) -> Griefing:
    """Return the griefing of a solver that bids, wins and lets the deadline pass (`TaskMarket.expire`).

    The solver loses the penalty D (`delay_penalty`). The submitter gets half of D, rounded down, and its
    escrow back, but it has waited in vain. So the harm is max(0, `delay` - floor(D / 2)), and the loss is D
    plus `capital_cost`. An attacker can win a task this way with a bid of 0, and again after the task is
    reposted. Nothing but the penalty makes that costly.
    """
    lost = count("delay_penalty", delay_penalty, 0)
    harm = max(0.0, number("delay", delay, 0) - lost // 2)
    return Griefing(harm, lost + number("capital_cost", capital_cost, 0))


def least_delay_penalty(*, delay: float, factor: float, capital_cost: float = 0.0) -> float:
    """Return the least delay penalty D with which the factor of a late solver is at most t, the argument
    `factor`.

    With the `capital_cost` c, delay - D / 2 = t (D + c) gives D = (delay - t c) / (t + 1 / 2). For t = 0, the
    penalty is twice the delay, which makes the submitter whole.
    """
    t = number("factor", factor, 0)
    return max(0.0, (number("delay", delay, 0) - t * number("capital_cost", capital_cost, 0)) / (t + 0.5))
