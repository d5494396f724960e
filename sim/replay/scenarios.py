"""The scenarios of `sim replay`.

The chain makes the draws, so a scenario with one intended end must reach it no matter which accounts are
drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from sim.agents.bystanders import Bystander, Forgetful, Griefer, Retrainer
from sim.agents.solvers import Crashing, Lazy, Skipper, Solver, Withholder
from sim.agents.submitters import Insider
from sim.agents.verifiers import Absent, Accusing, Colluding, Mixing, Trusting, Verifier
from sim.errors import StudyError
from sim.replay.look_scenarios import LOOKED
from sim.replay.scenario import Scenario, market_of, story
from sim.units import TOKEN

_HONEST = Verifier()
_LOOKED: Final = 1
"""A seed with which the bystander looks at the first of two segments."""
_SILENT_ONCE: Final = 11
"""A seed with which two of three seats are silent, and their replacements are online."""
_SILENT_TWICE: Final = 10
"""A seed with which one of two seats is attested at once, and two accounts in a row are silent in the other seat."""
_ACCUSED: Final = 1
"""A seed with which the first account of a seat challenges, and the second attests."""

_ALL = (
    story(
        "honest",
        "an honest solver trains, everybody attests, all are paid",
        "settled",
        Solver(),
        (_HONEST,) * 2,
    ),
    story(
        "cheat",
        "one false segment, found and judged by the EVM at one element",
        "convicted",
        Skipper(),
        (_HONEST,),
    ),
    story(
        "false_challenge",
        "a right result is challenged: the bond is lost, half to the solver; then it settles",
        "settled",
        Solver(),
        (_HONEST,) * 2,
        bystanders=(Griefer(chance=1.0, games=2),),
    ),
    story(
        "deadline",
        "the solver misses its deadline: a penalty burns",
        "expired",
        Crashing(rate=1.0),
        (_HONEST,),
    ),
    story(
        "silent",
        "a solver that serves nothing is challenged blindly and convicted by the clock",
        "convicted",
        Withholder(),
        (_HONEST,),
    ),
    story(
        "asleep",
        "an honest solver misses its move in a game about nothing and is convicted by the clock",
        "convicted",
        Solver(),
        (_HONEST,) * 2,
        bystanders=(Griefer(chance=1.0),),
        terms={"silence_rate": 1.0},
    ),
    story(
        "two_challengers",
        "a bystander's game convicts: the seat that committed first is rewarded; both seats have costs and fees",
        "convicted",
        Skipper(),
        (_HONEST,) * 2,
        bystanders=(Bystander(chance=1.0),),
        newest_first=True,
        terms={"segments": 1, "segments_per_verifier": 1},
    ),
    story(
        "preempted",
        "an accomplice convicts before a seat opens its commitment, which opens it late and is whole; a seat elsewhere "
        "has its fee",
        "convicted",
        Skipper(),
        (_HONEST,) * 2,
        submitter=Insider(),
        drawn=((1,), (2,)),
        terms={"segments_per_verifier": 1},
    ),
    story(
        "vouched",
        "a bystander convicts what seats have attested: the seat of that segment has nothing, another its fee",
        "convicted",
        Skipper(),
        (Trusting(),) * 2,
        bystanders=(Bystander(chance=1.0),),
        seed=_LOOKED,
        drawn=((1,), (2,)),
        terms={"segments_per_verifier": 1},
    ),
    story(
        "unnamed",
        "a solver that serves nothing is convicted before a segment is named: all that attested have their fees",
        "convicted",
        Withholder(),
        (Colluding(),) * 2,
        bystanders=(Bystander(chance=1.0),),
    ),
    story(
        "forgetful",
        "two commitments are never opened: their bonds burn, conviction or not",
        "convicted",
        Skipper(),
        (_HONEST,),
        bystanders=(Forgetful(chance=1.0, commitments=2),),
    ),
    story(
        "crowd",
        "seventeen challenges of a right result by one account: the last bond is twice the others, all are lost",
        "settled",
        Solver(),
        (_HONEST,),
        bystanders=(Griefer(chance=1.0, games=17),),
    ),
    story(
        "late_bids",
        "late bids prolong bidding down to a small price, which settles",
        "settled",
        Solver(),
        (_HONEST,),
        solvers=2,
        late=True,
        terms={"training_cost": 1, "markup": 0.0},
    ),
    story(
        "no_bid",
        "nobody can do the task within its budget: everything returns",
        "unsold",
        Solver(),
        (_HONEST,),
        terms={"training_cost": 200 * TOKEN},
    ),
    story(
        "cancelled",
        "nobody bids, and the submitter takes the task back before bidding ends: everything returns",
        "unsold",
        Solver(),
        (_HONEST,),
        cancelled=True,
        terms={"training_cost": 200 * TOKEN},
    ),
    story(
        "silent_seat",
        "two seats are silent and drawn again: the first pays the draw, what else both lose burns; then all are paid",
        "settled",
        Solver(),
        (_HONEST,) * 5,
        seed=_SILENT_ONCE,
        terms={"downtime": 0.5, "verifiers": 3},
    ),
    story(
        "accuser",
        "a seat accuses what is right: its bond is lost, then its seat; another one attests",
        "settled",
        Solver(),
        (Accusing(rate=0.5),) * 3,
        seed=_ACCUSED,
        terms={"verifiers": 1},
    ),
    story(
        "empty_seat",
        "there are fewer verifiers than seats: eight draws later the task is void, and the attested seat is paid",
        "void",
        Solver(),
        (_HONEST,),
        terms={"verifiers": 2},
    ),
    story(
        "unattested",
        "a seat stays silent until the task stalls: who attested is paid, the solver is not",
        "stalled",
        Solver(),
        (_HONEST,) * 4,
        seed=_SILENT_TWICE,
        terms={"downtime": 0.5, "redraws": 1},
    ),
    story(
        "beacon_stops",
        "no round is shown within the stall period: half of the price is paid, and at last the draw",
        "stalled",
        Solver(),
        (_HONEST,) * 2,
        # An ask above nine tenths of the budget is the price, and here it is odd.
        terms={"beacon_stops": 1.0, "training_cost": 95 * TOKEN, "markup": 0.0, "device_spread": 0.0},
    ),
    story(
        "retrained",
        "nobody attests a false result; it stalls, and its retrainer convicts its solver",
        "convicted",
        Lazy(),
        (Absent(),) * 2,
        bystanders=(Retrainer(),),
        terms={"verifiers": 1, "redraws": 1},
    ),
    story(
        "retrained_undrawn",
        "the same where the beacon stops: the draw is paid when its round comes at last",
        "convicted",
        Lazy(),
        (_HONEST,),
        bystanders=(Retrainer(),),
        terms={"beacon_stops": 1.0},
    ),
    story(
        "collusion",
        "a false result that its verifiers attest is settled: nobody challenged it",
        "settled",
        Lazy(),
        (Colluding(),) * 2,
    ),
    market_of(
        "market",
        "tasks in a row among solvers and verifiers of all kinds, by a seed",
        12,
        5,
        [(Verifier(), 2), (Mixing(0.5), 1, 4), (Trusting(), 1), (Accusing(rate=0.3), 1), (Absent(), 1)],
        verifiers=3,
    ),
    *LOOKED,
)

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType({each.name: each for each in _ALL})
"""All scenarios by name."""


def market(tasks: int, seed: int, *, exact: bool = False, name: str = "market") -> Scenario:
    """The market scenario `name` with the given number of tasks and seed."""
    return replace(SCENARIOS[name], tasks=tasks, seed=seed, exact=exact)


def scenario(name: str) -> Scenario:
    """The scenario of this name. Raises StudyError, which lists all names, if there is none."""
    if name not in SCENARIOS:
        near = get_close_matches(name, SCENARIOS, n=1)
        hint = f"did you mean {near[0]}?" if near else "choose one of them"
        raise StudyError(f"scenario {name!r}: expected {', '.join(SCENARIOS)}; {hint}")
    return SCENARIOS[name]
