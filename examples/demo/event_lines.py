"""One plain line for each thing that happens on the chain, by the letter of its story.

A pure function of acts and names; whoever calls it prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from examples.demo.ledger import Act, Ledger
from examples.demo.names import WORD, Names, number, position
from examples.demo.report import tokens
from protocol.chain.receipts import Event
from protocol.chain.views import NOBODY
from protocol.dispute.juries import UNAVAILABLE, JuryVerdict, is_juror
from protocol.dispute.looks import Look, is_look
from protocol.dispute.view import TreeKind, Verdict

ENDINGS = {
    Verdict.SOLVER_FALSE: "the solver's number is false",
    Verdict.SOLVER_SILENT: "the solver owed an answer and gave none",
    Verdict.CHALLENGER_SILENT: "the challenger found nothing to judge in time and loses its bond",
    Verdict.MOOT: "the task was decided in another game",
    Verdict.DROPPED: "its challenger accuses a seat instead",
}


@dataclass(frozen=True)
class Line:
    """What happened to a task. `time` is the block's, in seconds since 1970."""

    time: int
    task: int
    text: str


class EventLines:
    """Turns acts into lines. `names` are those of each task's program, `who` names accounts."""

    def __init__(self, ledger: Ledger, names: Mapping[int, Names], who: Mapping[str, str]) -> None:
        self._ledger = ledger
        self._all_names = names
        self._who = {address.lower(): name for address, name in who.items()}
        self._texts: dict[str, Callable[[Act, Event], str]] = {
            "BidPlaced": lambda _a, e: f"{self._name(e, 'bidder')} bids {tokens(e.arguments['price'])}",
            "Assigned": lambda _a, e: f"assigned to {self._name(e, 'solver')}",
            "Progressed": lambda _a, e: f"{e.arguments['size'] - 1} checkpoints committed",
            "Submitted": lambda _a, e: (
                f"submitted, its stake is locked; result {e.arguments['result'].hex()[:16]}…"
            ),
            "Seated": self._seated,
            "Silent": self._silent,
            "Attested": self._attested,
            "Informed": self._informed,
            "Revealed": lambda a, e: f"seat {self._looked_at(e)} opens its digest to the look{_cost(a)}",
            "Accused": self._accused,
            "Answered": lambda a, e: f"seat {self._looked_at(e)} shows that leaf in its digest{_cost(a)}",
            "Unanswered": self._caught,
            "Unrevealed": self._caught,
            "Committed": lambda _a, e: (
                f"{self._name(e, 'challenger')} commits to a challenge, with a bond of {tokens(e.arguments['bond'])}"
            ),
            "OpenedLate": lambda _a, e: (
                f"{self._name(e, 'challenger')} opens its commitment late: its bond is back"
            ),
            "Forfeited": lambda _a, e: (
                f"{self._name(e, 'challenger')} has not opened its commitment: {tokens(e.arguments['bond'])} burn"
            ),
            "Compensated": lambda _a, e: (
                f"{self._name(e, 'account')} in seat {e.arguments['seat']} gets {tokens(e.arguments['amount'])} "
                "out of the stake"
            ),
            "Challenged": lambda _a, e: f"{self._name(e, 'challenger')} challenges",
            "SegmentSelected": lambda _a, e: f"  about segment {e.arguments['segment']}",
            "StepsPosted": lambda a, _e: f"  the solver posts its step tree{_cost(a)}",
            "StepSelected": lambda a, e: f"  step {e.arguments['step']}{_cost(a)}",
            "TracePosted": lambda a, _e: f"  the solver posts its trace{_cost(a)}",
            "CallSelected": self._called,
            "Demanded": self._demanded,
            "NodeRevealed": lambda a, e: f"  revealed: {len(e.arguments['descendants'])} hashes{_cost(a)}",
            "LeafRevealed": lambda a, e: f"  revealed: {len(e.arguments['data'])} bytes{_cost(a)}",
            "ElementSelected": self._selected,
            "Split": lambda a, e: f"  the solver states {len(e.arguments['words'])} block results{_cost(a)}",
            "Judged": lambda a, e: self._verdict(a, e) if e.contract == "Juries" else self._judged(a, e),
            "Claimed": self._claimed,
            "Objected": lambda a, _e: f"the claimant still lacks it: a chunk is to be opened{_cost(a)}",
            "Opened": lambda a, e: f"{self._name(e, 'account')} opens the chunk{_cost(a)}",
            "Unopened": lambda _a, e: (
                f"{self._name(e, 'account')} has not shown what it said: its lock burns"
            ),
            "EdgeJudged": self._edge_judged,
            "Ended": lambda _a, e: f"game over: {ENDINGS[Verdict(e.arguments['verdict'])]}",
            "Slashed": lambda _a, e: (
                f"SLASHED: stake {tokens(e.arguments['stake'])}, {self._name(e, 'challenger')} earns "
                f"{tokens(e.arguments['reward'])}"
            ),
            "Settled": lambda _a, e: f"SETTLED: the solver is paid {tokens(e.arguments['paid'])}",
            "Refunded": lambda _a, e: (
                f"REFUNDED: {tokens(e.arguments['refund'])} to the submitter, penalty "
                f"{tokens(e.arguments['penalty'])}"
            ),
            "Stalled": lambda _a, _e: "STALLED: it will not be paid as its terms say",
            "Voided": lambda _a, e: (
                f"VOID: {tokens(e.arguments['refund'])} to the submitter, the solver is paid "
                f"{tokens(e.arguments['paid'])}"
            ),
        }

    def lines(self, act: Act) -> Iterator[Line]:
        """What an act means, event by event."""
        for event in act.events:
            task = self._task(event)
            if task is not None and event.name in self._texts:
                yield Line(act.time, task, self._texts[event.name](act, event))

    def who(self, address: str) -> str:
        """The name of an account; its address without one."""
        return self._who.get(address.lower(), address)

    def _task(self, event: Event) -> int | None:
        if "task" in event.arguments:
            return int(event.arguments["task"])
        if "game" not in event.arguments:
            return None
        opened = self._ledger.events("Challenged", game=event.arguments["game"])
        return int(opened[0].arguments["task"]) if opened else None

    def _names(self, event: Event) -> Names:
        """Names for the task of a game's event."""
        task = self._task(event)
        assert task is not None, "a game that goes somewhere has been opened"
        return self._all_names[task]

    def _name(self, event: Event, argument: str) -> str:
        return self.who(str(event.arguments[argument]))

    def _calls(self, event: Event) -> tuple[int, ...]:
        return self._ledger.calls(event.arguments["game"])

    def _looked_at(self, event: Event) -> int:
        """The seat of the first level of looks; higher ones look at looks."""
        look = Look.of(event.arguments["look"])
        return look.looked_at(self._ledger.segments_per_seat(event.arguments["task"]))

    def _accused(self, act: Act, event: Event) -> str:
        (step, tensor, _turns, _depth), leaf, _root = event.arguments["accusation"]
        return (
            f"the look ACCUSES seat {self._looked_at(event)}: under its salt a chunk of tensor {tensor} in state "
            f"{step} has the hash {leaf.hex()[:16]}…, its digest has another{_cost(act)}"
        )

    def _caught(self, _act: Act, event: Event) -> str:
        paid, seat = tokens(event.arguments["paid"]), self._looked_at(event)
        return (
            f"{self._name(event, 'account')} in seat {seat} had no answer: it has lost its lock, "
            f"{self._name(event, 'looker')} gets {paid} of it"
        )

    def _claimed(self, act: Act, event: Event) -> str:
        return (
            f"{self._name(event, 'account')} in seat {event.arguments['seat']} CLAIMS that it cannot fetch item "
            f"{event.arguments['item']}: a jury is drawn{_cost(act)}"
        )

    def _verdict(self, act: Act, event: Event) -> str:
        told = event.arguments
        found = JuryVerdict(told["verdict"]).name
        return f"the jury finds item {told['item']} {found}: {told['yes']} yes, {told['no']} no{_cost(act)}"

    def _seated(self, _act: Act, event: Event) -> str:
        seat = event.arguments["seat"]
        if is_juror(seat):
            nobody = event.arguments["account"] == NOBODY
            return f"{'nobody' if nobody else self._name(event, 'account')} is drawn into the jury"
        segments = self._segments(event)
        if is_look(seat):
            if event.arguments["account"] == NOBODY:
                return "nobody is found to look"
            return f"{self._name(event, 'account')} is drawn to look at {segments}"
        if event.arguments["account"] == NOBODY:
            return f"nobody is found for seat {seat}"
        return f"{self._name(event, 'account')} is drawn into seat {seat}, to replay {segments}"

    def _attested(self, _act: Act, event: Event) -> str:
        seat = event.arguments["seat"]
        if is_juror(seat):
            has = event.arguments["digest"] != UNAVAILABLE
            return f"{self._name(event, 'account')} votes {'yes: it has it' if has else 'no: it cannot fetch it'}"
        segments = self._segments(event)
        return f"the look at {segments} attested" if is_look(seat) else f"seat {seat} attested: {segments}"

    def _silent(self, _act: Act, event: Event) -> str:
        lost, seat = tokens(event.arguments["penalty"]), event.arguments["seat"]
        return f"{self._name(event, 'account')} was SILENT in seat {seat}: it loses {lost}, and the seat is drawn again"

    def _informed(self, _act: Act, event: Event) -> str:
        paid, seat = tokens(event.arguments["paid"]), event.arguments["seat"]
        return (
            f"{self._name(event, 'informer')} shows the salt of seat {seat} and gets {paid}: "
            f"{self._name(event, 'account')} has lost its lock, and the seat is drawn again"
        )

    def _segments(self, event: Event) -> str:
        segments = self._ledger.segments(event.arguments["task"], event.arguments["seat"])
        return f"segment{'s' * (len(segments) > 1)} {', '.join(map(str, segments))}"

    def _called(self, act: Act, event: Event) -> str:
        n, calls = event.arguments["n"], self._calls(event)
        return (
            f"  instruction {n}: into {self._names(event).path(calls[: calls.index(n) + 1])[-1]}{_cost(act)}"
        )

    def _demanded(self, act: Act, event: Event) -> str:
        kind = TreeKind(event.arguments["tree"]).name.lower()
        nodes = ", ".join(f"{lo} to {lo + size - 1}" for lo, size, _hash in event.arguments["nodes"])
        return f"  demanded on-chain: {kind} tree, leaves {nodes}{_cost(act)}"

    def _selected(self, act: Act, event: Event) -> str:
        n, element = event.arguments["n"], event.arguments["element"]
        instruction = self._names(event).instruction(self._calls(event), n)
        where = position(instruction.result, element)
        return f"  instruction {n}, {instruction.op.label}, element {where}: state its blocks{_cost(act)}"

    def _judged(self, act: Act, event: Event) -> str:
        n, element, claimed, computed = (event.arguments[k] for k in ("n", "element", "claimed", "computed"))
        instruction = self._names(event).instruction(self._calls(event), n)
        type_ = WORD if act.function == "judgeBlock" else instruction.result
        where = position(instruction.result, element)
        path = " > ".join(self._names(event).path(self._calls(event)))
        return (
            f"JUDGED: {path}, instruction {n} ({instruction.op.label}), "
            f"element {where}: claimed {number(type_, claimed)}, the EVM computes {number(type_, computed)}{_cost(act)}"
        )

    def _edge_judged(self, act: Act, event: Event) -> str:
        n, claimed, due = (event.arguments[k] for k in ("n", "claimed", "due"))
        calls = self._calls(event)
        label = self._names(event).instruction(calls, n).op.label
        return (
            f"JUDGED: {' > '.join(self._names(event).path(calls))}, instruction {n} ({label}): claimed root "
            f"{claimed.hex()[:16]}…, the trace gives {due.hex()[:16]}…{_cost(act)}"
        )


def _cost(act: Act) -> str:
    return f" · {act.gas:,} gas"
