"""Turns each event of the contracts into one plain line.

Pure: facts that the event does not contain, such as an account's name, come from `Told`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from protocol.chain.receipts import Event
from protocol.chain.views import NOBODY
from protocol.dispute.juries import UNAVAILABLE, JuryVerdict, is_juror
from protocol.dispute.looks import Look, is_look
from protocol.dispute.names import WORD, Names, number, position
from protocol.dispute.view import TreeKind, Verdict
from protocol.node.words import exact

ENDINGS = {
    Verdict.SOLVER_FALSE: "the solver's number is false",
    Verdict.SOLVER_SILENT: "the solver owed an answer and gave none",
    Verdict.CHALLENGER_SILENT: "the challenger found nothing to judge in time and loses its bond",
    Verdict.MOOT: "the task was decided in another game",
    Verdict.DROPPED: "its challenger accuses a seat instead",
}
JURY_LEVEL = 5
"""The level of a jury's draw. Level 0 is that of seats; levels 1 to 4 are those of looks."""


class Told(Protocol):
    """Facts that the words need besides the event."""

    def who(self, address: str) -> str:
        """An account in words."""

    def segments(self, task: int, seat: int) -> Sequence[int]:
        """The segments of a seat or look."""

    def segments_per_seat(self, task: int) -> int:
        """The number of segments per seat in the task's terms."""

    def names(self, event: Event) -> Names | None:
        """Names from the program of the event's game; None if the program is not here."""

    def calls(self, game: int) -> tuple[int, ...]:
        """The call instructions that a game descended into."""

    def is_split(self, game: int) -> bool:
        """Whether a game descended to the blocks of a single sum."""


class Words:
    """Turns events into lines."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._texts: dict[str, Callable[[Event], str]] = {
            "Posted": lambda e: f"posted by {self._name(e, 'submitter')}",
            "BidPlaced": lambda e: f"{self._name(e, 'bidder')} bids {exact(e.arguments['price'])}",
            "Assigned": lambda e: f"assigned to {self._name(e, 'solver')}",
            "Progressed": lambda e: f"{e.arguments['size'] - 1} checkpoints committed",
            "Submitted": lambda e: (
                f"submitted, its stake is locked; result {e.arguments['result'].hex()[:16]}…"
            ),
            "DrawAsked": self._asked,
            "Seated": self._seated,
            "Silent": self._silent,
            "Attested": self._attested,
            "Informed": self._informed,
            "Revealed": lambda e: f"seat {self._looked_at(e)} opens its digest to the look",
            "Accused": self._accused,
            "Answered": lambda e: f"seat {self._looked_at(e)} shows that leaf in its digest",
            "Contested": lambda e: (
                f"seat {self._looked_at(e)} contests the accusation by game {e.arguments['game']} with the solver"
            ),
            "Moot": lambda e: f"the accusation of seat {self._looked_at(e)} is void",
            "Unanswered": self._caught,
            "Unrevealed": self._caught,
            "Committed": lambda e: (
                f"{self._name(e, 'challenger')} commits to a challenge, with a bond of {exact(e.arguments['bond'])}"
            ),
            "OpenedLate": lambda e: (
                f"{self._name(e, 'challenger')} opens its commitment late: its bond is back"
            ),
            "Forfeited": lambda e: (
                f"{self._name(e, 'challenger')} has not opened its commitment: {exact(e.arguments['bond'])} burn"
            ),
            "Compensated": lambda e: (
                f"{self._name(e, 'account')} in seat {e.arguments['seat']} gets {exact(e.arguments['amount'])} "
                "out of the stake"
            ),
            "Challenged": lambda e: f"{self._name(e, 'challenger')} challenges",
            "SegmentSelected": lambda e: f"  about segment {e.arguments['segment']}",
            "StepsPosted": lambda _e: "  the solver posts its step tree",
            "StepSelected": lambda e: f"  step {e.arguments['step']}",
            "TracePosted": lambda _e: "  the solver posts its trace",
            "CallSelected": self._called,
            "Demanded": self._demanded,
            "NodeRevealed": lambda e: f"  revealed: {len(e.arguments['descendants'])} hashes",
            "LeafRevealed": lambda e: f"  revealed: {len(e.arguments['data'])} bytes",
            "ElementSelected": self._selected,
            "Split": lambda e: f"  the solver states {len(e.arguments['words'])} block results",
            "BlockSelected": lambda e: f"  blocks {e.arguments['lo']} to {e.arguments['hi'] - 1}",
            "Judged": lambda e: self._verdict(e) if e.contract == "Juries" else self._judged(e),
            "EdgeJudged": self._edge_judged,
            "Claimed": self._claimed,
            "Objected": lambda _e: "the claimant still lacks it: a chunk is to be opened",
            "Opened": lambda e: f"{self._name(e, 'account')} opens the chunk",
            "Unopened": lambda e: f"{self._name(e, 'account')} has not shown what it said: its lock burns",
            "Dropped": lambda e: f"no verdict: {self._name(e, 'account')} has its bond back",
            "Ended": lambda e: f"game over: {ENDINGS[Verdict(e.arguments['verdict'])]}",
            "Slashed": lambda e: (
                f"SLASHED: stake {exact(e.arguments['stake'])}, {self._name(e, 'challenger')} earns "
                f"{exact(e.arguments['reward'])}"
            ),
            "Settled": lambda e: f"SETTLED: the solver is paid {exact(e.arguments['paid'])}",
            "Refunded": lambda e: (
                f"REFUNDED: {exact(e.arguments['refund'])} to the submitter, penalty "
                f"{exact(e.arguments['penalty'])}"
            ),
            "Stalled": lambda _e: "STALLED: it will not be paid as its terms say",
            "Voided": lambda e: (
                f"VOID: {exact(e.arguments['refund'])} to the submitter, the solver is paid "
                f"{exact(e.arguments['paid'])}"
            ),
        }

    def line(self, event: Event) -> str | None:
        """The line for an event; None for events that only matter for bookkeeping."""
        text = self._texts.get(event.name)
        return None if text is None else text(event)

    def _name(self, event: Event, argument: str) -> str:
        return self._told.who(str(event.arguments[argument]))

    # ------------------------------------------------------------------ audit

    def _asked(self, event: Event) -> str:
        told = event.arguments
        level = int(told["level"])
        what = {0: "seats", JURY_LEVEL: "a jury"}.get(level, f"looks of level {level}")
        return f"a draw of {what} is asked for, by round {told['round']} of the beacon"

    def _looked_at(self, event: Event) -> int:
        """The number of the seat or look that a look examines. A look of the first level examines a seat; a
        look of any other level examines a look of the level below.
        """
        look = Look.of(event.arguments["look"])
        return look.looked_at(self._told.segments_per_seat(event.arguments["task"]))

    def _accused(self, event: Event) -> str:
        (step, tensor, _turns, _depth), leaf, _root = event.arguments["accusation"]
        return (
            f"the look ACCUSES seat {self._looked_at(event)}: under its salt a chunk of tensor {tensor} in state "
            f"{step} has the hash {leaf.hex()[:16]}…, its digest has another"
        )

    def _caught(self, event: Event) -> str:
        paid, seat = exact(event.arguments["paid"]), self._looked_at(event)
        return (
            f"{self._name(event, 'account')} in seat {seat} had no answer: it has lost its lock, "
            f"{self._name(event, 'looker')} gets {paid} of it"
        )

    def _claimed(self, event: Event) -> str:
        return (
            f"{self._name(event, 'account')} in seat {event.arguments['seat']} CLAIMS that it cannot fetch item "
            f"{event.arguments['item']}: a jury is drawn"
        )

    def _verdict(self, event: Event) -> str:
        told = event.arguments
        found = JuryVerdict(told["verdict"]).name
        return f"the jury finds item {told['item']} {found}: {told['yes']} yes, {told['no']} no"

    def _seated(self, event: Event) -> str:
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

    def _attested(self, event: Event) -> str:
        seat = event.arguments["seat"]
        if is_juror(seat):
            has = event.arguments["digest"] != UNAVAILABLE
            return f"{self._name(event, 'account')} votes {'yes: it has it' if has else 'no: it cannot fetch it'}"
        segments = self._segments(event)
        return f"the look at {segments} attested" if is_look(seat) else f"seat {seat} attested: {segments}"

    def _silent(self, event: Event) -> str:
        lost, seat = exact(event.arguments["penalty"]), event.arguments["seat"]
        return f"{self._name(event, 'account')} was SILENT in seat {seat}: it loses {lost}, and the seat is drawn again"

    def _informed(self, event: Event) -> str:
        paid, seat = exact(event.arguments["paid"]), event.arguments["seat"]
        return (
            f"{self._name(event, 'informer')} shows the salt of seat {seat} and gets {paid}: "
            f"{self._name(event, 'account')} has lost its lock, and the seat is drawn again"
        )

    def _segments(self, event: Event) -> str:
        segments = self._told.segments(event.arguments["task"], event.arguments["seat"])
        return f"segment{'s' * (len(segments) > 1)} {', '.join(map(str, segments))}"

    # ------------------------------------------------------------------ games

    def _called(self, event: Event) -> str:
        n, calls, names = event.arguments["n"], self._calls(event), self._told.names(event)
        into = "" if names is None else f": into {names.path(calls[: calls.index(n) + 1])[-1]}"
        return f"  instruction {n}{into}"

    def _demanded(self, event: Event) -> str:
        kind = TreeKind(event.arguments["tree"]).name.lower()
        nodes = ", ".join(f"{lo} to {lo + size - 1}" for lo, size, _hash in event.arguments["nodes"])
        return f"  demanded on-chain: {kind} tree, leaves {nodes}"

    def _selected(self, event: Event) -> str:
        n, element = event.arguments["n"], event.arguments["element"]
        names = self._told.names(event)
        if names is None:
            return f"  instruction {n}, element {element}: state its blocks"
        instruction = names.instruction(self._calls(event), n)
        where = position(instruction.result, element)
        return f"  instruction {n}, {instruction.op.label}, element {where}: state its blocks"

    def _judged(self, event: Event) -> str:
        n, element, claimed, computed = (event.arguments[k] for k in ("n", "element", "claimed", "computed"))
        names, calls = self._told.names(event), self._calls(event)
        if names is None:
            return (
                f"JUDGED: instruction {n}, element {element}: claimed bits {claimed:#x}, the EVM computes "
                f"{computed:#x}"
            )
        instruction = names.instruction(calls, n)
        type_ = WORD if self._told.is_split(event.arguments["game"]) else instruction.result
        where = position(instruction.result, element)
        return (
            f"JUDGED: {' > '.join(names.path(calls))}, instruction {n} ({instruction.op.label}), "
            f"element {where}: claimed {number(type_, claimed)}, the EVM computes {number(type_, computed)}"
        )

    def _edge_judged(self, event: Event) -> str:
        n, claimed, due = (event.arguments[k] for k in ("n", "claimed", "due"))
        names, calls = self._told.names(event), self._calls(event)
        where = f"instruction {n}"
        if names is not None:
            where = f"{' > '.join(names.path(calls))}, {where} ({names.instruction(calls, n).op.label})"
        return f"JUDGED: {where}: claimed root {claimed.hex()[:16]}…, the trace gives {due.hex()[:16]}…"

    def _calls(self, event: Event) -> tuple[int, ...]:
        return self._told.calls(event.arguments["game"])
