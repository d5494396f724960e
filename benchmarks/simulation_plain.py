"""The baseline market in plain Python: the reference for the speed and the results of the simulation engine.

It plays one run of one market, task by task. Honest or lazy solvers bid, and the lowest bidder trains.
Verifiers are drawn; the honest ones replay and challenge, and the others attest everything. Fees, prices and
slashes are booked in whole units. The file does not import this project, so that other libraries' models can
use it in their own environments.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Terms = Mapping[str, Any]
"""Fields of `sim.parameters.MarketParameters`; `honest_verifiers`; and `false`, the number of segments that a
solver invents.
"""
Seat = tuple[int, int, list[int]]
"""A seat's account, the segment that it challenges (0 for none), and its drawn segments."""
FIRST_SOLVER = 2
"""The first solver's account, after the submitter's and the drawer's."""


def sell(asks: list[int], budget: int) -> tuple[int, int] | None:
    """The winner and the price, or None if all asks exceed the budget. The bidder with the lowest ask opens
    at 9/10 of the budget, or at its ask if that is higher. The two bidders with the lowest asks then undercut
    each other by 2 %.
    """
    pair = sorted(range(len(asks)), key=asks.__getitem__)[:2]
    if asks[pair[0]] > budget:
        return None
    turn, price = 0, max(asks[pair[0]], budget * 9 // 10)
    while len(pair) > 1 and asks[pair[1 - turn]] <= price - max(1, -(-price * 2 // 100)):
        turn, price = 1 - turn, price - max(1, -(-price * 2 // 100))
    return pair[turn], price


class Market:
    """A market and its books: lists by account number, in the order submitter, drawer, solvers, verifiers."""

    def __init__(self, terms: Terms, rounds: int, seed: int) -> None:
        self.terms = terms
        self.luck = random.Random(seed)
        solvers, verifiers = terms["solver_count"], terms["verifier_count"]
        self.first_verifier = FIRST_SOLVER + solvers
        self.fee = terms["audit_fee"] * terms["segments_per_verifier"]
        escrow = terms["budget"] + terms["verifiers"] * self.fee + terms["draw_fee"]
        self.deposits = [rounds * escrow, 0]
        self.deposits += [rounds * terms["stake"]] * solvers
        self.deposits += [terms["stake_unit"] + rounds * terms["bond"]] * verifiers
        self.free = list(self.deposits)
        self.outside = [0] * len(self.free)
        self.burned = 0
        self.ends: Counter[str] = Counter()
        spread = terms["device_spread"]
        self.costs = [
            round(terms["training_cost"] * math.exp(self.luck.gauss(0, spread))) for _ in range(solvers)
        ]

    def play(self) -> None:
        """Play one task."""
        terms, effort = self.terms, 1 - self.terms["false"] / self.terms["segments"]
        asks = [
            math.ceil(cost * effort * (1 + terms["markup"] * 2 * self.luck.random())) for cost in self.costs
        ]
        sold = sell(asks, terms["budget"])
        if sold is None:
            self.ends["unsold"] += 1
            return
        winner, price = sold
        solver = FIRST_SOLVER + winner
        self.outside[solver] -= round(self.costs[winner] * effort + self.gas("gas_task"))
        self.move(0, 1, terms["draw_fee"])
        seats = self.check()
        if any(named for _, named, _ in seats):
            self.convict(solver, seats)
        else:
            self.settle(solver, price, [account for account, _, _ in seats])

    def check(self) -> list[Seat]:
        """Draw the seats and book their costs. Honest verifiers replay, and challenge if a replay differs;
        the others attest.
        """
        terms, last = self.terms, self.terms["segments"]
        seats: list[Seat] = []
        for verifier in self.luck.sample(range(terms["verifier_count"]), terms["verifiers"]):
            drawn = self.luck.sample(range(1, last + 1), terms["segments_per_verifier"])
            looks = verifier < terms["honest_verifiers"]
            differs = looks and min(drawn) <= terms["false"]
            account = self.first_verifier + verifier
            spent = self.gas("gas_dispute") if differs else self.gas("gas_attest")
            if looks:
                spent += len(drawn) * terms["replay_cost"] * terms["training_cost"] / last
            self.outside[account] -= round(spent)
            seats.append((account, min(drawn) if differs else 0, drawn))
        return seats

    def convict(self, solver: int, seats: list[Seat]) -> None:
        """Distribute the solver's stake. The first seat that challenged gets the reward, and the submitter
        gets the restitution. Each seat that challenged gets its fee and the cost of a game.

        Each other seat gets its fee unless it attested the convicted segment. The rest of the stake is
        burned.
        """
        stake = self.terms["stake"]
        challenger, convicted, _ = next(seat for seat in seats if seat[1])
        paid = [(challenger, self.terms["reward"]), (0, self.terms["restitution"])]
        for account, named, drawn in seats:
            if named:
                paid.append((account, self.terms["game_cost"] + self.fee))
            elif convicted not in drawn:
                paid.append((account, self.fee))
        for account, amount in paid:
            self.move(solver, account, amount)
        rest = stake - sum(amount for _, amount in paid)
        self.free[solver] -= rest
        self.burned += rest
        self.outside[solver] -= round(self.gas("gas_defence"))
        self.ends["convicted"] += 1

    def settle(self, solver: int, price: int, seats: list[int]) -> None:
        """Pay the fees to the seats and the price to the solver."""
        for account in seats:
            self.move(0, account, self.fee)
        self.move(0, solver, price)
        if self.terms["false"]:
            self.outside[solver] += self.terms["gain"]
            self.ends["escaped"] += 1
        self.ends["settled"] += 1

    def move(self, giver: int, taker: int, amount: int) -> None:
        """Move tokens from one account to another."""
        self.free[giver] -= amount
        self.free[taker] += amount

    def gas(self, name: str) -> float:
        """The cost of a gas parameter in token units."""
        cost: float = self.terms[name] * self.terms["gas_price"] * 10**6
        return cost


def play(terms: Terms, rounds: int, seed: int) -> Market:
    """Play a market and return it. Raises ValueError if its books do not balance."""
    market = Market(terms, rounds, seed)
    for _ in range(rounds):
        market.play()
    if sum(market.free) + market.burned != sum(market.deposits):
        raise ValueError("expected books that add up; report this as a defect")
    return market


def serve(play: Callable[[Terms, int, int], object]) -> None:
    """Answer each line of stdin with one line. A line of stdin is a JSON list of arguments, with which `play`
    is called once.
    """
    for line in sys.stdin:
        play(*json.loads(line))
        print("played", flush=True)


if __name__ == "__main__":
    serve(play)
