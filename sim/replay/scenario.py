"""What a scenario of `sim replay` is: who takes part, under which parameters, and how it should end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from protocol.tasks.task import RATE_OF_ALL
from sim.agents.bystanders import Bystander, Forgetful, Griefer, Retrainer
from sim.agents.population import HONEST_SUBMITTER, Population, population
from sim.agents.solvers import Crashing, Noisy, Skipper, Solver, Withholder
from sim.agents.verifiers import Verifier
from sim.parameters import MarketParameters
from sim.units import TOKEN


@dataclass(frozen=True)
class Scenario:
    """One story, or many tasks of a market. `outcomes` are the ends of its tasks in order; None: whatever comes."""

    name: str
    text: str
    population: Population
    parameters: MarketParameters
    outcomes: tuple[str, ...] | None
    tasks: int = 1
    seed: int = 1
    newest_first: bool = False
    """Of several games on a task, the one that was opened last is played first."""
    late: bool = False
    """Each bid comes in the last second that it may, and so prolongs bidding."""
    drawn: tuple[tuple[int, ...], ...] = ()
    """Segments that the first draw is to give to each seat: the solver submits at such a time. Empty: any."""
    picked: tuple[tuple[int, ...], ...] = ()
    """Slots that the first draw of each level of looks is to pick: what is attested last is at such a time."""
    cancelled: bool = False
    """The submitter takes a task back that nobody has bid on, before bidding ends."""
    moot: bool = False
    """Accusations that could be answered are still open when games are played."""
    exact: bool = False
    """Amounts are whole units of the engine, so that its own `Market` can play the same."""

    @property
    def look_chance(self) -> int:
        """As the terms have it, in hundredths of a percent."""
        return round(self.parameters.look_chance * RATE_OF_ALL)


def parameters(people: Population, **changes: Any) -> MarketParameters:
    """A small market: amounts of the default parameters, few segments, so that training and games take no time."""
    given: dict[str, Any] = {
        "segments": 2,
        "segments_per_verifier": 2,
        "solver_count": people.solver_count,
        "verifier_count": people.verifier_count,
    }
    return MarketParameters(**(given | changes))


def story(
    name: str, text: str, end: str, solver: Solver, verifiers: tuple[Verifier, ...], **more: Any
) -> Scenario:
    """One task of one solver, or of `solvers` alike; `more` are fields of Scenario, of MarketParameters in `terms`, and
    `bystanders` and `submitter`.
    """
    terms = more.pop("terms", {})
    others = [(each, 1) for each in more.pop("bystanders", ())]
    submitter = more.pop("submitter", HONEST_SUBMITTER)
    people = population(
        [(solver, more.pop("solvers", 1))], [(each, 1) for each in verifiers], others, submitter
    )
    terms = {"verifiers": min(2, len(verifiers))} | terms
    return Scenario(name, text, people, parameters(people, **terms), (end,), **more)


@dataclass(frozen=True)
class Bluffing(Withholder):
    """Asks as if it trained, so that it does not win every task."""

    name = "bluffing"

    def expected_effort(self, parameters: MarketParameters) -> float:
        """An honest solver's."""
        return Solver.expected_effort(self, parameters)


def market_of(
    name: str, text: str, tasks: int, seed: int, verifiers: Sequence[Any], /, **terms: Any
) -> Scenario:
    """Strategies side by side, many tasks in a row: how each ends is drawn."""
    people = population(
        [(Solver(), 1), (Skipper(), 1), (Bluffing(), 1), (Crashing(rate=0.5), 1), (Noisy(rate=0.4), 1)],
        verifiers,
        [
            (Bystander(chance=0.3), 1),
            (Griefer(chance=0.2), 1),
            (Forgetful(chance=0.2), 1),
            (Retrainer(chance=0.5), 1),
        ],
    )
    # Everybody wins at times, and at times nobody: chance decides about the bids, more than devices do.
    given = parameters(
        people,
        segments=3,
        segments_per_verifier=1,
        training_cost=60 * TOKEN,
        markup=1.0,
        device_spread=0.05,
        downtime=0.1,
        beacon_stops=0.1,
        redraws=3,
        **terms,
    )
    return Scenario(name, text, people, given, None, tasks=tasks, seed=seed)
