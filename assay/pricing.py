"""What a task will cost and how long it may take (`Price`). `assay price` prints this with the cost of the
chain's recent tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from assay import source as sources
from assay import submitting
from assay.budgeting import comparable
from assay.commands import Context
from assay.deriving import Derived, Place
from assay.description import Plan, RunTable, TermsTable, read
from assay.errors import NobodyTakes
from assay.places import place_of, reached
from assay.recent import RecentTask, recent_tasks, sold
from assay.submitting import Prepared
from assay.taking import require_taken
from protocol.chain.parameters import TOKEN
from protocol.chain.periods import Load
from protocol.errors import AssayError
from protocol.node.words import DECIMALS, duration
from protocol.tasks.amounts import TrustPrice
from protocol.tasks.bidding import longest_overtime
from protocol.tasks.task import AMOUNTS, Terms
from protocol.tasks.usual_solver import SPEED


@dataclass(frozen=True)
class Price:
    """What a task with these `terms` costs, in token units, and the parts of that cost. Its text is what
    `assay price` prints first.
    """

    derived: Derived
    terms: Terms

    @classmethod
    def of_terms(cls, place: Place, terms: Terms) -> Price:
        """The cost of posted terms, at a place's prices. Raises NoRecommendation."""
        run = RunTable(name="task", segments=terms.segments, segment_steps=terms.segment_steps)
        names = TermsTable.model_fields.keys()
        given: dict[str, Any] = {
            name: Decimal(value).scaleb(-DECIMALS) if name in AMOUNTS else value
            for name, value in asdict(terms).items()
            if name in names
        }
        # Not validated: a market may accept terms that a task file may not contain.
        plan = Plan.model_construct(task=run, terms=TermsTable.model_construct(**given))
        operations, state = terms.step_operations, terms.state_bytes
        load = Load(
            terms.segments,
            terms.segment_steps,
            operations,
            state,
            bundle_bytes=state,
            state_tensors=terms.state_tensors,
        )
        return cls(Derived.of(plan, place, load), terms)

    @property
    def budget(self) -> int:
        """The most that the training may cost. No bid is higher."""
        return self.terms.budget

    @property
    def escrow(self) -> int:
        """The amount that posting locks; the unused part comes back."""
        return self.terms.escrow(self.derived.place.parameters.draw_fee)

    @property
    def stake(self) -> int:
        """The solver's stake."""
        return self.terms.stake

    @property
    def operations(self) -> int:
        """Scalar operations of the whole training."""
        return self.terms.steps * self.terms.step_operations

    @property
    def trust(self) -> TrustPrice:
        """The parts of the cost of trust in the result."""
        return self.derived.trust

    @property
    def share(self) -> float:
        """The cost of trust as a share of the budget."""
        return float(self.trust.shares(self.budget)["total"])

    def lines(self) -> list[str]:
        """The price in words: costs, then times."""
        return [*_costs(self), *_times(self.derived, self.terms)]

    def report(self) -> dict[str, Any]:
        """The price as data for JSON."""
        return {
            "budget": self.budget,
            "escrow": self.escrow,
            "stake": self.stake,
            "operations": self.operations,
            "trust": self.derived.report(),
            "periods": self.derived.periods,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())


def price(context: Context, file: Path) -> None:
    """Print what the task in a file costs, part by part, and how long its stages take. Also print whether a
    solver with default settings would bid on the task. If a deployment is reachable, also print what its
    newest tasks cost. Raises DescriptionError, SourceError, StartError, CaptureError, NoRecommendation,
    TermsError, UnknownArithmetic, ChainError.
    """
    settings, output, description = context.settings, context.output, read(file)
    with reached(context) as client:
        place = place_of(settings, client)
        recent = [] if client is None else recent_tasks(client)
    prepared = submitting.drafted(sources.captured(description), place.arithmetic)
    derived = prepared.derived(place, [] if description.terms.budget is not None else sold(recent))
    terms = prepared.terms(settings.bundle_base, derived)
    if client is None:
        output.say("no deployment is reached: the recommended parameters and assumed prices count")
    found = Price(derived, terms)
    for line in found.lines():
        output.say(line)
    refused = _refused(terms, derived)
    if refused is None:
        output.say("a solver with default settings bids on it")
    else:
        output.say(f"nobody with default settings bids on it: {refused}")
    for line in _recent(prepared, recent, reaches=client is not None):
        output.say(line)
    output.result(
        {
            **found.report(),
            "refused": None if refused is None else str(refused),
            "recent": [asdict(one) for one in recent],
        }
    )


def _costs(price: Price) -> Iterator[str]:
    derived, terms = price.derived, price.terms
    place, trust = derived.place, price.trust
    hours = duration(price.operations / place.usual_solver.rates.operations)
    whence = "given" if derived.description.terms.budget is not None else "derived"
    yield (
        f"training: {price.operations:.4g} operations in {terms.steps} steps, {hours} for a solver of {SPEED:.3g} "
        "a second"
    )
    yield f"budget {_tokens(terms.budget)} ({whence}): the most that you pay for the training; solvers bid below it"
    fees = terms.verifiers * terms.seat_fee
    replayed = (
        f"of {terms.segments} segments each of {terms.verifiers} seats replays {terms.segments_per_verifier}"
        if terms.verifiers > 1
        else f"one seat replays {terms.segments_per_verifier} of {terms.segments} segments"
    )
    yield f"audit fees {_tokens(fees)}: {replayed}"
    if trust.looks:
        yield f"second looks {_tokens(trust.looks)} on average"
    gas = derived.setting.gas_cost(derived.setting.gas.task)
    yield (
        f"draw {_tokens(derived.setting.draw_fee)}, gas of submitter and solver {_tokens(gas)} (at "
        f"{float(place.gas_price) / 1e9:g} gwei, {float(place.coin_price):g} tokens for a coin)"
    )
    yield (
        f"stake of the solver {_tokens(terms.stake)}, capital of it {_tokens(trust.stake)}; locks of seats and escrow "
        f"{_tokens(trust.locks)}"
    )
    yield f"trust in all {_tokens(trust.total)}, {100 * price.share:.3g} % of the budget"
    yield f"locked when you post: {_tokens(price.escrow)}, of which what is not used comes back"
    if price.share > 1:
        yield "note: for a task this small trust costs more than the training; larger tasks cost less a step"


def _times(derived: Derived, terms: Terms) -> Iterator[str]:
    parameters = derived.place.parameters
    most = terms.bidding_period + longest_overtime(terms.budget, terms.extension)
    yield f"bidding {duration(terms.bidding_period)}; late bids may prolong it, to {duration(most)} at the very most"
    yield f"training {duration(terms.training_period)} at most"
    yield (
        f"audit: seats are drawn {duration(parameters.draw_delay)} after the submission, attest within "
        f"{duration(terms.attest_period)}, and the task is settled {duration(derived.setting.audit)} after the "
        "submission if nobody objects" + (", later where there are looks" if terms.look_chance else "")
    )
    yield f"a dispute gives each side {duration(terms.game_time)}"


def _refused(terms: Terms, derived: Derived) -> AssayError | None:
    try:
        require_taken(terms, derived.usual_solver(terms))
    except NobodyTakes as error:
        return error
    return None


def _recent(prepared: Prepared, recent: list[RecentTask], *, reaches: bool) -> Iterator[str]:
    if not reaches:
        return
    if not recent:
        yield "no task was posted on this chain yet"
        return
    alike = comparable(prepared.load.operations, sold(recent))
    yield f"the last {len(recent)} tasks of the chain, {len(alike)} of them sold and of about this size:"
    for one in recent:
        yield f"  {one.line()}"


def _tokens(units: Any) -> str:
    return f"{units / TOKEN:,.4g} tokens"
