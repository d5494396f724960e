"""The scenarios of `sim replay`: who takes part, under which parameters, and how it should end.

Draws are the chain's, so a scenario that is to end in one way is peopled so that it does whoever is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

from sim.agents.bystanders import Bystander, Griefer
from sim.agents.population import Population, population
from sim.agents.solvers import Crashing, Lazy, Noisy, Skipper, Solver, Withholder
from sim.agents.verifiers import Absent, Accusing, Colluding, Mixing, Trusting, Verifier
from sim.errors import StudyError
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
    missed_draws: int = 0
    """How often the draw block of each task gets out of reach before anybody draws."""
    newest_first: bool = False
    """Of several games on a task, the one that was opened last is played first."""
    late: bool = False
    """Each bid comes in the last second that it may, and so prolongs bidding."""
    exact: bool = False
    """Amounts are whole units of the engine, so that its own `Market` can play the same."""


def parameters(people: Population, **changes: Any) -> MarketParameters:
    """A small market: amounts of the default parameters, few segments, so that training and games take no time."""
    given: dict[str, Any] = {
        "segments": 2,
        "verifiers": 2,
        "segments_per_verifier": 2,
        "solver_count": people.solver_count,
        "verifier_count": people.verifier_count,
    }
    return MarketParameters(**(given | changes))


def _story(
    name: str, text: str, end: str, solver: Solver, verifiers: tuple[Verifier, ...], **more: Any
) -> Scenario:
    """One task of one solver, or of `solvers` alike; `more` are fields of Scenario, of MarketParameters in `terms`, and
    `bystanders`.
    """
    terms = more.pop("terms", {})
    others = [(each, 1) for each in more.pop("bystanders", ())]
    people = population([(solver, more.pop("solvers", 1))], [(each, 1) for each in verifiers], others)
    return Scenario(name, text, people, parameters(people, **terms), (end,), **more)


@dataclass(frozen=True)
class Bluffing(Withholder):
    """Asks as if it trained, so that it does not win every task."""

    name = "bluffing"

    def expected_effort(self, parameters: MarketParameters) -> float:
        """An honest solver's."""
        return Solver.expected_effort(self, parameters)


def _market(name: str, text: str, tasks: int, seed: int, *, exact: bool = False) -> Scenario:
    """Strategies side by side, many tasks in a row: how each ends is drawn."""
    people = population(
        [(Solver(), 1), (Skipper(), 1), (Bluffing(), 1), (Crashing(rate=0.5), 1), (Noisy(rate=0.4), 1)],
        [(Verifier(), 2), (Mixing(0.5), 1, 3), (Trusting(), 1), (Accusing(rate=0.3), 1), (Absent(), 1)],
        [(Bystander(chance=0.3), 1), (Griefer(chance=0.2), 1)],
    )
    # Everybody wins at times, and at times nobody: chance decides about the bids, more than devices do.
    terms = parameters(
        people,
        segments=3,
        verifiers=3,
        segments_per_verifier=1,
        training_cost=60 * TOKEN,
        markup=1.0,
        device_spread=0.05,
        downtime=0.1,
        matches=1 + seed % 2,
    )
    return Scenario(name, text, people, terms, None, tasks=tasks, seed=seed, exact=exact)


_HONEST = Verifier()
_RAISED: Final = {"segments": 7, "segments_per_verifier": 3, "verifiers": 1}
"""The escrow reserves 4 fees; after two missed draws q is 8, so that all 7 segments are due."""

_ALL = (
    _story(
        "honest",
        "an honest solver trains, everybody attests, all are paid",
        "settled",
        Solver(),
        (_HONEST,) * 2,
    ),
    _story(
        "cheat",
        "one false segment, found and judged by the EVM at one element",
        "convicted",
        Skipper(),
        (_HONEST,),
    ),
    _story(
        "false_challenge",
        "a right result is challenged: the bond is lost, half to the solver; then it settles",
        "settled",
        Solver(),
        (_HONEST,) * 2,
        bystanders=(Griefer(chance=1.0, games=2),),
    ),
    _story(
        "absent",
        "no verifier comes: void, everything returns but the draw's fee",
        "void",
        Solver(),
        (Absent(),),
    ),
    _story(
        "deadline",
        "the solver misses its deadline: a penalty burns",
        "expired",
        Crashing(rate=1.0),
        (_HONEST,),
    ),
    _story(
        "silent",
        "a solver that serves nothing is challenged blindly and convicted by the clock",
        "convicted",
        Withholder(),
        (_HONEST,),
        terms={"verifiers": 1},
    ),
    _story(
        "asleep",
        "an honest solver misses its move in a game about nothing and is convicted by the clock",
        "convicted",
        Solver(),
        (_HONEST,) * 2,
        bystanders=(Griefer(chance=1.0),),
        terms={"silence_rate": 1.0},
    ),
    _story(
        "two_challengers",
        "two challenge at once, the later game convicts: the earlier commitment is rewarded, its game is moot",
        "convicted",
        Skipper(),
        (_HONEST,),
        bystanders=(Bystander(chance=1.0),),
        newest_first=True,
        terms={"segments": 1, "verifiers": 1, "segments_per_verifier": 1},
    ),
    _story(
        "missed_draw",
        "the draw is missed twice, q is raised by half each time: the excess of fees comes out of the price",
        "settled",
        Solver(),
        (_HONEST,),
        missed_draws=2,
        terms=_RAISED,
    ),
    _story(
        "draw_lost",
        "nobody ever proves a draw: void, the stake burns, no fee for it",
        "void",
        Solver(),
        (_HONEST,),
        terms={"draw_missed": 1.0},
    ),
    _story(
        "small_price",
        "late bids prolong bidding down to a small price; after missed draws the escrow does not cover the fees: each "
        "attestation earns less, rounded down",
        "settled",
        Solver(),
        (_HONEST,),
        solvers=2,
        late=True,
        missed_draws=2,
        terms=_RAISED | {"training_cost": 1, "markup": 0.0},
    ),
    _story(
        "two_matches",
        "segments need two attestations: where one verifier got every seat, another is drawn for the last segment",
        "settled",
        Solver(),
        (_HONEST,) * 2,
        terms={"matches": 2},
    ),
    _story(
        "collusion",
        "a false result that its verifiers attest is settled: nobody challenged it",
        "settled",
        Lazy(),
        (Colluding(),) * 2,
    ),
    _market("market", "tasks in a row among solvers and verifiers of all kinds, by a seed", 12, 5),
)

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType({each.name: each for each in _ALL})
"""All scenarios by name."""


def market(tasks: int, seed: int, *, exact: bool = False) -> Scenario:
    """`market` with another number of tasks, or another seed."""
    return _market("market", SCENARIOS["market"].text, tasks, seed, exact=exact)


def scenario(name: str) -> Scenario:
    """The scenario of this name. Raises StudyError that names all of them."""
    if name not in SCENARIOS:
        near = get_close_matches(name, SCENARIOS, n=1)
        hint = f"did you mean {near[0]}?" if near else "choose one of them"
        raise StudyError(f"scenario {name!r}: expected {', '.join(SCENARIOS)}; {hint}")
    return SCENARIOS[name]
