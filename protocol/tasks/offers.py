"""Decides whether to bid on a task, and at which price.

Pure: the input is the terms, the solver's own figures and the best bid; the output is a price or a reason not
to bid.

Bids are public and descending (dispute.md section 2, "bid"). So a solver first asks for a share of the
budget, then undercuts each lower bid by the least amount, and stops at its floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from protocol.node.words import amount, duration, tokens
from protocol.tasks import keeping, owed
from protocol.tasks.admission import Clocks, Rates, admission
from protocol.tasks.arithmetics import is_computed, versions
from protocol.tasks.bidding import least_undercut
from protocol.tasks.floor import Costs, Floor, floor, game_cost
from protocol.tasks.task import TENSOR_RATE, Terms

SLACK = 1.25
"""The training time, multiplied by this number, must fit before the deadline, because games go first, other
work slows the machine (strangers' questions take up to a tenth of the time), and a restart repeats a segment.
A late solver loses the whole price and the penalty. The worst case of games is not included: in that case the
solver would get half of sixteen bonds, which is worth more than what it loses (decision 135).
"""

NO_WAIT = Clocks(0.0)


class Training(NamedTuple):
    """A training that takes `seconds` and must be finished within `left` seconds from now."""

    seconds: float
    left: float


class Best(NamedTuple):
    """The best bid of another solver: its price, and the overtime so far. The overtime is the time by which
    bids have postponed the end of bidding, counted in whole extensions.
    """

    price: int
    extensions: int


@dataclass(frozen=True, slots=True)
class Figures:
    """A bidder's figures. Amounts are token units.

    `free` is the amount that the bidder may still lock: the stakes for tasks that it has won or bid on are
    already subtracted. `rates` are its measured or assumed speeds. `opening` is the fraction of the budget
    for which its first bid asks. `disk` is the limit for a task's checkpoints in bytes, and `uplink` the
    bytes a second that it can serve. `clocks` are the times that a move takes in addition to computing.
    `draw_delay` is the seconds from a submission to its draw's round. `taken` are the other tasks that it
    must train or defend, by name.

    `trainings` are the other trainings on the same device, by name. They leave `memory` bytes of the device
    free, and this task's training takes `needs` bytes. This task's bundle takes `maps` memory maps, and the
    bundles of other tasks leave `maps_left` for it. `traces` are the traces of the programs whose bundles
    were read, by program id.
    """

    free: int
    rates: Rates
    costs: Costs
    opening: float
    disk: float = math.inf
    clocks: Clocks = NO_WAIT
    draw_delay: float = 0.0
    taken: Mapping[str, Terms] = field(default_factory=dict)
    uplink: float = math.inf
    trainings: Mapping[str, Training] = field(default_factory=dict)
    memory: float = math.inf
    needs: int = 0
    maps: int = 0
    maps_left: float = math.inf
    traces: Mapping[bytes, owed.Traces] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """The price of a profitable bid, and the solver's floor, which is at most the price."""

    price: int
    floor: Floor


class Rule(StrEnum):
    """Reasons not to bid."""

    ARITHMETIC = "arithmetic"
    TRAINING = "training"
    BESIDE = "trainings beside"
    MEMORY = "memory"
    MAPS = "memory maps"
    DISK = "disk"
    UPLINK = "uplink"
    GAMES = "games"
    STAKE = "stake"
    BOND = "bond"
    PRICE = "price"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason for not bidding, and the rule behind it.

    `least` says how large the term that is too small must be. For `TRAINING`, `UPLINK` and `GAMES`, it is the
    smallest training period, attestation period or `game_time` that the rule accepts, in seconds. For
    `PRICE`, it is the smallest price, in token units. For `BOND`, it is half of the smallest bond, in token
    units. It is 0 for all other rules, and if no finite time is enough for the games.
    """

    reason: str
    rule: Rule
    least: int = 0


def seconds_needed(terms: Terms, figures: Figures) -> float:
    """Seconds that the training takes: the time of its steps or of writing the files of its checkpoints,
    whichever is longer. The files are written while the steps run.
    """
    return max(_computing(terms, figures), _writing(terms, figures))


def _computing(terms: Terms, figures: Figures) -> float:
    return terms.steps * terms.step_operations / figures.rates.of(terms.program_id)


def _writing(terms: Terms, figures: Figures) -> float:
    return keeping.files(terms) / figures.rates.files


def copies_at_once(terms: Terms) -> int:
    """Number of states that may be requested from the solver in one attestation period. It is the number of
    segments of all seats (looks do not add to this) or the number of jurors, whichever is greater. Jurors
    cannot fetch from each other, because only the solver has the state when they ask.
    """
    return max(terms.seat_segments, terms.jurors)


def _late(trainings: Mapping[str, Training]) -> Iterator[tuple[str, Training]]:
    """Yields each training that would be late if all trainings share a device and run in the order of their
    deadlines, the earliest first. The name joins the training's name with the names of those that run before
    it, and `seconds` is the time of all of these together (decision 173).
    """
    names: list[str] = []
    seconds = 0.0
    for name, training in sorted(trainings.items(), key=lambda item: item[1].left):
        names.append(name)
        seconds += training.seconds
        if seconds * SLACK > training.left:
            yield " and ".join(names), Training(seconds, training.left)


def decide(terms: Terms, figures: Figures, best: Best | None = None) -> Offer | Refusal:
    """Decide on a first bid, or on an answer to another solver's best bid."""
    if not is_computed(terms.arithmetic):
        return Refusal(
            f"arithmetic version {terms.arithmetic}, this release computes {versions()}: install a later one",
            Rule.ARITHMETIC,
        )
    computing, needed = _computing(terms, figures), seconds_needed(terms, figures)
    if needed * SLACK > terms.training_period:
        what = "training" if needed == computing else f"writing {keeping.files(terms)} files of checkpoints"
        return Refusal(
            f"{duration(needed)} of {what} do not fit into {duration(terms.training_period)} with a quarter to spare",
            Rule.TRAINING,
            math.ceil(needed * SLACK),
        )
    for name, row in _late({**figures.trainings, "this task": Training(needed, terms.training_period)}):
        return Refusal(
            f"{name}: {duration(row.seconds)} of training do not fit into {duration(row.left)} with a quarter to spare",
            Rule.BESIDE,
        )
    if figures.needs > figures.memory:
        return Refusal(
            f"its steps take up to {figures.needs} bytes of memory, {figures.memory:.0f} are free for them",
            Rule.MEMORY,
        )
    if figures.maps > figures.maps_left:
        return Refusal(
            f"its bundle takes {figures.maps} memory maps, {figures.maps_left:.0f} are left for it beside the bundles "
            "of other tasks",
            Rule.MAPS,
        )
    kept = (terms.segments + 1) * keeping.checkpoint_bytes(terms)
    if kept > figures.disk:
        return Refusal(
            f"its checkpoints take up to {kept} bytes, {figures.disk:.0f} are free for them on the disk",
            Rule.DISK,
        )
    served = copies_at_once(terms) * terms.state_bytes
    read = copies_at_once(terms) * terms.state_tensors
    serving = served / figures.uplink + read / TENSOR_RATE
    if 2 * serving > terms.attest_period:
        return Refusal(
            f"it may have to serve {served} bytes in {read} tensors within {duration(terms.attest_period / 2)}, half "
            f"of the attestation period, its line carries {figures.uplink:.0f} bytes a second (uplink_mbit), and its "
            f"disk {TENSOR_RATE} tensors",
            Rule.UPLINK,
            math.ceil(2 * serving),
        )
    # Until this task's bundle was read, only what its terms alone ask for counts; the decision is made again then.
    known = figures.traces
    mine = owed.games("games of this task", terms, known.get(terms.program_id, owed.Traces()))
    others = [
        owed.games(f"games of {name}", taken, known.get(taken.program_id))
        for name, taken in figures.taken.items()
    ]
    refused = admission([mine, *others], figures.clocks, figures.rates)
    if refused is not None:
        least = math.ceil(refused.needed) if math.isfinite(refused.needed) else 0
        return Refusal(str(refused), Rule.GAMES, least)
    if terms.stake > figures.free:
        return Refusal(
            f"it asks for a stake of {tokens(terms.stake)}, {amount(figures.free)} are free", Rule.STAKE
        )
    game = game_cost(terms, figures.rates.of(terms.program_id), figures.costs)
    if terms.bond // 2 < game:
        return Refusal(
            f"a false challenge costs it {tokens(game)}, and pays it half of a bond of {amount(terms.bond)}",
            Rule.BOND,
            game,
        )
    due = floor(terms, computing, figures.costs, figures.draw_delay)
    if best is None:
        price, most = max(due.price, int(terms.budget * figures.opening)), terms.budget
    else:
        price = most = best.price - least_undercut(best.price, best.extensions)
    if price > most or price < due.price:
        reason = f"it would pay at most {tokens(max(0, most), at_most=True)}, its floor is {due}"
        return Refusal(reason, Rule.PRICE, due.price)
    return Offer(price, due)
