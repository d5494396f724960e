"""Definition of a scenario of `sim replay`: its people, parameters, and expected end."""

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
    """One task with an intended end, or many tasks of a market. `outcomes` are the expected ends of the
    tasks, in order. If it is None, the tasks may end in any way.
    """

    name: str
    text: str
    population: Population
    parameters: MarketParameters
    outcomes: tuple[str, ...] | None
    tasks: int = 1
    seed: int = 1
    newest_first: bool = False
    """Which game is played if several can convict: the newest if True, the oldest if False."""
    late: bool = False
    """Whether each bid comes in the last possible second and so extends the bidding."""
    drawn: tuple[tuple[int, ...], ...] = ()
    """The segments that the first draw must give to each seat. The submission is timed so that the draw gives
    exactly these segments. If this is empty, any segments will do.
    """
    picked: tuple[tuple[int, ...], ...] = ()
    """For each level of looks, the slots that the first draw of this level must pick. The transaction that
    requests this draw is sent at a time that makes the draw pick them. Levels beyond the last entry may pick
    any slots.
    """
    cancelled: bool = False
    """Whether the submitter cancels the task before bidding ends. This requires that nobody has bid."""
    moot: bool = False
    """Whether answerable accusations are still open when games are played."""
    exact: bool = False
    """Whether amounts are whole engine units, so that the engine's `Market` can play the same scenario."""

    @property
    def look_chance(self) -> int:
        """The terms' look chance, in hundredths of a percent."""
        return round(self.parameters.look_chance * RATE_OF_ALL)


def parameters(people: Population, **changes: Any) -> MarketParameters:
    """A small market: default amounts, but few segments, so that training and games are fast."""
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
    """One task, usually with one solver. `more` takes fields of Scenario, `solvers` (the number of identical
    solvers), `terms` (fields of MarketParameters), `bystanders` and `submitter`.
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
    """A withholder that bids like an honest solver, so that it does not win every task."""

    name = "bluffing"

    def expected_effort(self, parameters: MarketParameters) -> float:
        """The effort of an honest solver."""
        return Solver.expected_effort(self, parameters)


def market_of(
    name: str, text: str, tasks: int, seed: int, verifiers: Sequence[Any], /, **terms: Any
) -> Scenario:
    """Many tasks in a row among competing strategies; chance decides how each ends."""
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
    # Every solver wins sometimes, and sometimes nobody does: chance affects bids more than devices do.
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
