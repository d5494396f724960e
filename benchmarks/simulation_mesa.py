"""The baseline market as a Mesa model. Its agents belong to agent sets and act one by one. Needs an
environment with Mesa.

The rules are those of simulation_plain.py, but each solver and each verifier is an agent.
"""

from __future__ import annotations

import math

import mesa
from simulation_plain import FIRST_SOLVER, Market, Seat, Terms, sell, serve


class Solver(mesa.Agent):
    """Bids its cost plus a markup, and invents some segments."""

    def __init__(self, model: Baseline, cost: int) -> None:
        super().__init__(model)
        self.cost = cost
        self.ask = 0

    def bid(self) -> None:
        """Choose the ask for the next task."""
        terms = self.model.terms
        markup = 1 + terms["markup"] * 2 * self.model.random.random()
        self.ask = math.ceil(self.cost * self.model.effort * markup)


class Verifier(mesa.Agent):
    """Replays the segments that it has drawn, or attests without replaying."""

    def __init__(self, model: Baseline, number: int, looks: bool) -> None:
        super().__init__(model)
        self.number = number
        self.looks = looks

    def check(self) -> None:
        """Fill one seat, and challenge if a replay differs."""
        model, terms, last = self.model, self.model.terms, self.model.terms["segments"]
        drawn = model.random.sample(range(1, last + 1), terms["segments_per_verifier"])
        differs = self.looks and min(drawn) <= terms["false"]
        account = model.books.first_verifier + self.number
        model.seats.append((account, min(drawn) if differs else 0, drawn))
        spent = model.books.gas("gas_dispute" if differs else "gas_attest")
        if self.looks:
            spent += len(drawn) * terms["replay_cost"] * terms["training_cost"] / last
        model.books.outside[account] -= round(spent)


class Baseline(mesa.Model):
    """A market with the books of the plain model."""

    def __init__(self, terms: Terms, rounds: int, seed: int) -> None:
        super().__init__(seed=seed)
        self.terms = terms
        self.effort = 1 - terms["false"] / terms["segments"]
        self.books = Market(terms, rounds, seed)
        self.seats: list[Seat] = []
        for cost in self.books.costs:
            Solver(self, cost)
        for number in range(terms["verifier_count"]):
            Verifier(self, number, number < terms["honest_verifiers"])
        self.solvers = self.agents_by_type[Solver]
        self.verifiers = list(self.agents_by_type[Verifier])

    def step(self) -> None:
        """Play one task."""
        books, terms = self.books, self.terms
        self.solvers.do("bid")
        sold = sell([agent.ask for agent in self.solvers], terms["budget"])
        if sold is None:
            books.ends["unsold"] += 1
            return
        number, price = sold
        agent = self.solvers[number]
        solver = FIRST_SOLVER + number
        books.outside[solver] -= round(agent.cost * self.effort + books.gas("gas_task"))
        books.move(0, 1, terms["draw_fee"])
        self.seats = []
        for verifier in self.random.sample(self.verifiers, k=terms["verifiers"]):
            verifier.check()
        if any(named for _, named, _ in self.seats):
            books.convict(solver, self.seats)
        else:
            books.settle(solver, price, [account for account, _, _ in self.seats])


def play(terms: Terms, rounds: int, seed: int) -> Market:
    """The books of a market after its rounds."""
    model = Baseline(terms, rounds, seed)
    for _ in range(rounds):
        model.step()
    return model.books


if __name__ == "__main__":
    serve(play)
