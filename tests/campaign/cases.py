"""The cases: every fault against every party at every stage, except for combinations that are impossible or
left out; each of these has a reason.

The heavy tests play a covering set of at most 60 cases, too few for all pairs of fault and stage. The set
covers each fault (the depths of re-organisations count as one), each stage of each party, each kind of fault
in each part of a task's life, and as many pairs of fault and party as there is room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

from tests.campaign.clock_faults import ClockJump, may_jump
from tests.campaign.disks import may_mount
from tests.campaign.fault import Fault, Needs
from tests.campaign.faults import DEEP, FAULTS, SHALLOW
from tests.campaign.file_faults import DiskFull
from tests.campaign.network_faults import Reorganisation
from tests.campaign.play import Scene
from tests.campaign.scenes.games import accused, convicted, unserved
from tests.campaign.scenes.juries import jury
from tests.campaign.scenes.looks import looked_at, looking
from tests.campaign.scenes.paid import paid
from tests.campaign.scenes.submitting import fetching, posting, serving_bundles
from tests.campaign.stages import Stage, Who

COVERING: Final = 60
WEIGHTS: Final = {"fault": 8, "stage": 8, "kind in part": 8, "fault of party": 1}
"""The weights by which `covering` chooses cases. Each pair that a case covers (see `pairs`) has the weight of
its kind. The chosen cases need not cover all pairs of the last kind.
"""
_NODE: Final = frozenset({Needs.PROCESS, Needs.DATABASE, Needs.JOURNAL, Needs.CHAIN})
_SENDS: Final = _NODE | {Needs.SENDS, Needs.WRITES}
_ASKS: Final = _SENDS | {Needs.PEERS}
_DRAWS: Final = _SENDS | {Needs.BEACON}
_SERVER: Final = frozenset({Needs.PROCESS})
_COMMAND: Final = _SERVER | {Needs.CHAIN, Needs.WRITES, Needs.PEERS}


@dataclass(frozen=True)
class Place:
    """A party at a stage: the scene that reaches it, and what the party has and does there."""

    scene: Scene
    has: frozenset[Needs]


PLACES: Final[Mapping[tuple[Who, Stage], Place]] = {
    (Who.SOLVER, Stage.BEFORE_THE_BID): Place(paid, _ASKS),
    (Who.SOLVER, Stage.BIDDING): Place(paid, _SENDS),
    (Who.SOLVER, Stage.TRAINING): Place(paid, _SENDS),
    (Who.SOLVER, Stage.SUBMITTED): Place(paid, _DRAWS),
    (Who.SOLVER, Stage.DRAWN): Place(paid, _NODE),
    (Who.SOLVER, Stage.REPLAYING): Place(paid, _NODE),
    (Who.SOLVER, Stage.LOOKING): Place(looking, _SENDS),
    (Who.SOLVER, Stage.JURY): Place(jury, _NODE),
    (Who.SOLVER, Stage.ACCUSED): Place(accused, _SENDS),
    (Who.SOLVER, Stage.TRACE): Place(accused, _SENDS),
    (Who.SOLVER, Stage.CALL_TRACE): Place(accused, _SENDS),
    (Who.SOLVER, Stage.REVEAL): Place(unserved, _SENDS),
    (Who.SOLVER, Stage.SETTLING): Place(paid, _SENDS),
    (Who.SOLVER, Stage.WITHDRAWING): Place(paid, _SENDS),
    (Who.VERIFIER, Stage.BEFORE_THE_BID): Place(paid, _NODE),
    (Who.VERIFIER, Stage.SUBMITTED): Place(paid, _DRAWS),
    (Who.VERIFIER, Stage.DRAWN): Place(paid, _ASKS),
    (Who.VERIFIER, Stage.REPLAYING): Place(paid, _SENDS),
    (Who.VERIFIER, Stage.LOOKING): Place(looking, _ASKS),
    (Who.VERIFIER, Stage.LOOKED_AT): Place(looked_at, _SENDS),
    (Who.VERIFIER, Stage.JURY): Place(jury, _ASKS),
    (Who.VERIFIER, Stage.ACCUSED): Place(looked_at, _SENDS),
    (Who.VERIFIER, Stage.COMMIT): Place(convicted, _SENDS),
    (Who.VERIFIER, Stage.CHALLENGE): Place(convicted, _SENDS),
    (Who.VERIFIER, Stage.STEP): Place(convicted, _ASKS),
    (Who.VERIFIER, Stage.CALL): Place(convicted, _ASKS),
    (Who.VERIFIER, Stage.JUDGE): Place(convicted, _ASKS),
    (Who.VERIFIER, Stage.SETTLING): Place(paid, _SENDS),
    (Who.VERIFIER, Stage.WITHDRAWING): Place(paid, _SENDS),
    (Who.SUBMITTER, Stage.BEFORE_THE_BID): Place(posting, _COMMAND | {Needs.SENDS, Needs.BEACON}),
    (Who.SUBMITTER, Stage.POSTING): Place(posting, _COMMAND - {Needs.PEERS} | {Needs.JOURNAL}),
    (Who.SUBMITTER, Stage.BIDDING): Place(serving_bundles, _SERVER),
    (Who.SUBMITTER, Stage.REPLAYING): Place(serving_bundles, _SERVER),
    (Who.SUBMITTER, Stage.WITHDRAWING): Place(fetching, _COMMAND),
}
"""All places by party and stage, in the order in which they are played."""
CHALLENGERS: Final = (Stage.COMMIT, Stage.CHALLENGE, Stage.STEP, Stage.CALL, Stage.JUDGE)
SOLVERS: Final = (Stage.TRACE, Stage.CALL_TRACE, Stage.REVEAL)
PARTS: Final[Mapping[str, Sequence[Stage]]] = {
    "market": (Stage.BEFORE_THE_BID, Stage.POSTING, Stage.BIDDING, Stage.TRAINING, Stage.SUBMITTED),
    "audit": (Stage.DRAWN, Stage.REPLAYING, Stage.LOOKING, Stage.LOOKED_AT, Stage.JURY),
    "games": (Stage.ACCUSED, *CHALLENGERS, *SOLVERS),
    "end": (Stage.SETTLING, Stage.WITHDRAWING),
}
"""The stages of each part of a task's life."""
NOT_THERE: Final[Mapping[Needs, str]] = {
    Needs.DATABASE: "it keeps no database",
    Needs.JOURNAL: "it has sent nothing yet, or never does",
    Needs.WRITES: "it writes nothing to its disk then",
    Needs.CHAIN: "it does not ask the chain",
    Needs.SENDS: "it has no transaction to send then",
    Needs.BEACON: "it does not ask the beacon then",
    Needs.PEERS: "it asks no other party then",
}


@dataclass(frozen=True, order=True)
class Case:
    """One fault against one party at one stage."""

    who: Who
    stage: Stage
    fault: str

    def __str__(self) -> str:
        return f"{self.who}, {self.stage}: {self.fault}"

    @property
    def place(self) -> Place:
        """The place of the case's party and stage."""
        return PLACES[self.who, self.stage]

    @property
    def slug(self) -> str:
        """The form of the case's name that is used in names of files and tests."""
        words = "".join(letter if letter.isalnum() else " " for letter in str(self))
        return "-".join(words.lower().split())


@cache
def fault_of(name: str) -> Fault:
    """An instance of the fault with this name, to inspect and not to play."""
    return FAULTS[name]()


def why_not(who: Who, stage: Stage, fault: str) -> str | None:
    """The reason why there is no case of a fault against a party at a stage; None if there is a case. One
    reason is that the combination is impossible, in general or on this machine. The other is that the fault
    is a re-organisation, and other depths are played there.
    """
    place = PLACES.get((who, stage))
    if place is None:
        return not_at(who, stage)
    kind = fault_of(fault)
    if kind.needs not in place.has:
        return NOT_THERE[kind.needs]
    if isinstance(kind, DiskFull) and (why := may_mount()) is not None:
        return f"no small disk on this machine: {why}"
    if isinstance(kind, ClockJump) and (why := may_jump()) is not None:
        return f"no other clock on this machine: {why}"
    if isinstance(kind, Reorganisation) and kind.depth not in depths_at(who, stage):
        return "each stage has two of the eight depths"
    return None


def not_at(who: Who, stage: Stage) -> str:
    """The reason why `PLACES` has no place for this party at this stage."""
    if who is Who.SUBMITTER:
        return "a submitter has nothing to do then: anybody may take its task further"
    if stage is Stage.POSTING:
        return "the submitter posts"
    if stage in CHALLENGERS:
        return "a move of challengers"
    if stage in SOLVERS:
        return "a move of solvers"
    if who is Who.SOLVER:
        return "seats alone are looked at"
    return "a verifier does nothing before a task is submitted: its case is that before the bid"


def depths_at(who: Who, stage: Stage) -> tuple[int, int]:
    """The two depths of re-organisations that are played at a place. They rotate over the places, so that all
    depths are played.
    """
    number = list(PLACES).index((who, stage))
    return SHALLOW[number % len(SHALLOW)], DEEP[number % len(DEEP)]


@cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order in which they are played."""
    found = (Case(who, stage, fault) for who, stage in PLACES for fault in FAULTS)
    return tuple(case for case in found if why_not(case.who, case.stage, case.fault) is None)


def impossible() -> Iterator[tuple[Case, str]]:
    """Yields every combination that is not a case, with the reason."""
    for who, stage, fault in product(Who, Stage, FAULTS):
        why = why_not(who, stage, fault)
        if why is not None:
            yield Case(who, stage, fault), why


def pairs(case: Case) -> Iterator[tuple[str, ...]]:
    """Yields the pairs that a case covers. Each starts with its kind, a key of `WEIGHTS`."""
    kind, part = type(fault_of(case.fault)).__name__, next(p for p, s in PARTS.items() if case.stage in s)
    fault = "re-org" if isinstance(fault_of(case.fault), Reorganisation) else case.fault
    yield "fault", fault
    yield "stage", case.who, case.stage
    yield "kind in part", kind, part
    yield "fault of party", fault, case.who


@cache
def covering() -> tuple[Case, ...]:
    """At most `COVERING` cases, chosen greedily. Each time, the case with the largest total weight of pairs
    that are not covered yet is chosen; among equals, the one at the place with the fewest chosen cases.
    """
    left = {pair for case in cases() for pair in pairs(case)}
    chosen: list[Case] = []
    there: Counter[tuple[Who, Stage]] = Counter()

    def worth(case: Case) -> tuple[int, int]:
        gained = sum(WEIGHTS[pair[0]] for pair in pairs(case) if pair in left)
        return gained, -there[case.who, case.stage]

    while left and len(chosen) < COVERING:
        best = max(cases(), key=worth)
        chosen.append(best)
        there[best.who, best.stage] += 1
        left -= set(pairs(best))
    return tuple(sorted(chosen, key=cases().index))


def uncovered() -> set[tuple[str, ...]]:
    """The pairs that some case covers, but no case of the covering set."""
    return {p for case in cases() for p in pairs(case)} - {p for case in covering() for p in pairs(case)}
