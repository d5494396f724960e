"""The report: the outcome of each task, and for each game, where it ended and what it cost.

Outcomes and costs are computed from the chain's events, receipts and call data (`ledger`); names come from
the task's program (`names`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from examples.demo.ledger import Act, Ledger
from protocol.chain.receipts import Event
from protocol.dispute.juries import JuryVerdict, is_juror
from protocol.dispute.names import WORD, Names, bits, number, position
from protocol.dispute.splitting import parts
from protocol.dispute.view import Verdict
from protocol.node.words import exact

SINGLE = {"commit": "commit", "challenge": "challenge", "challengeBlind": "challenge", "timeOut": "time_out"}
SINGLE |= dict.fromkeys(("judge", "judgeBlock", "judgeInput", "judgeOutput"), "judge")
REPEATED = {"demand": "demand", "split": "split"}
REPEATED |= dict.fromkeys(("expandSteps", "expandTrace"), "expand")
REPEATED |= dict.fromkeys(
    ("selectSegment", "selectStep", "selectCall", "selectElement", "selectBlock"), "select"
)
REPEATED |= dict.fromkeys(("revealNode", "revealLeaf"), "reveal")
ENDS = {"Settled": "settled", "Slashed": "slashed", "Refunded": "refunded", "Voided": "void"}


def verdict(ledger: Ledger, task: int) -> str | None:
    """How a task ended: settled, slashed, refunded or void; None before its end."""
    return next((word for name, word in ENDS.items() if ledger.events(name, task=task)), None)


def task_report(
    ledger: Ledger, names: Names, task: int, name: str, solver: str, segments: int
) -> dict[str, Any]:
    """The report on a task, and on the game that decided it, if any."""
    found: dict[str, Any] = {"task": name, "solver": solver, "verdict": verdict(ledger, task)}
    found |= {"task_id": task, "segments": segments}
    attested = [e for e in ledger.events("Attested", task=task) if not is_juror(e.arguments["seat"])]
    found["audited"] = sorted({n for e in attested for n in ledger.segments(task, e.arguments["seat"])})
    found["draws"] = len(ledger.events("Drawn", task=task))
    for event in ledger.events("Silent", task=task):
        found["silent"] = {"seat": event.arguments["seat"], "penalty": exact(event.arguments["penalty"])}
    for event in ledger.events("Informed", task=task):
        found["informed"] = {"seat": event.arguments["seat"], "paid": exact(event.arguments["paid"])}
    for event in ledger.events("Settled", task=task):
        found["paid"] = exact(event.arguments["paid"])
    for event in ledger.events("Slashed", task=task):
        found["stake"] = exact(event.arguments["stake"])
        found["reward"] = exact(event.arguments["reward"])
        game = deciding_game(ledger, event)
        found |= game_report(ledger, names, game)
    found |= {"compensated": compensated(ledger, task)} if ledger.events("Slashed", task=task) else {}
    return found


def compensated(ledger: Ledger, task: int) -> dict[str, str]:
    """What each seat was paid from a slashed stake for its costs and its fee, in tokens, by seat number."""
    paid: dict[str, int] = {}
    for event in ledger.events("Compensated", task=task):
        seat = str(event.arguments["seat"])
        paid[seat] = paid.get(seat, 0) + int(event.arguments["amount"])
    return {seat: exact(amount) for seat, amount in sorted(paid.items())}


def spoken_up(ledger: Ledger, task: int, account: str) -> dict[str, str] | None:
    """The outcome for an account whose challenge did not get the reward: its bond, how the challenge ended,
    and what the account was paid.

    None until the challenge is over and the account has been paid.
    """

    def own(name: str, party: str = "challenger") -> list[Event]:
        found = ledger.events(name, task=task)
        return [event for event in found if str(event.arguments[party]).lower() == account.lower()]

    committed, late, paid = own("Committed"), own("OpenedLate"), own("Compensated", "account")
    games = [event.arguments["game"] for event in own("Challenged")]
    ended = [event for game in games for event in ledger.events("Ended", game=game)]
    if not (committed and paid and (late or ended)):
        return None
    how = "opened late" if late else Verdict(ended[0].arguments["verdict"]).name.lower()
    return {
        "bond": exact(sum(int(event.arguments["bond"]) for event in committed)),
        "ended": how,
        "paid": exact(sum(int(event.arguments["amount"]) for event in paid)),
    }


def caught(ledger: Ledger, task: int) -> dict[str, Any]:
    """What a look did to a seat: the accused step and tensor, the looker's payment from the lock, and the gas
    of each call. Empty until the looker is paid for an accusation that was not answered.
    """
    found: dict[str, Any] = {}
    calls = {"Revealed": "reveal", "Accused": "accuse", "Unanswered": "take", "Unrevealed": "take"}
    for act in ledger.acts:
        for event in act.events:
            if event.name in calls and event.arguments["task"] == task:
                found.setdefault("gas", {})[calls[event.name]] = act.gas
    for event in ledger.events("Accused", task=task):
        (step, tensor, _turns, _depth), *_rest = event.arguments["accusation"]
        found["accused"] = {"step": step, "tensor": tensor}
    for event in ledger.events("Unanswered", task=task):
        found["paid"] = exact(event.arguments["paid"])
    return found if "paid" in found else {}


def withheld(ledger: Ledger, task: int) -> dict[str, Any]:
    """A jury's verdict that data are withheld: the item, the votes, and the gas of each call. Empty without
    such a verdict.
    """
    found: dict[str, Any] = {}
    calls = {"Claimed": "claim", "Judged": "close"}
    gas: dict[str, Any] = {"votes": []}
    for act in ledger.acts:
        for event in act.events:
            if event.arguments.get("task") != task:
                continue
            if event.contract == "Juries" and event.name in calls:
                gas[calls[event.name]] = act.gas
            elif event.name == "Attested" and is_juror(event.arguments["seat"]):
                gas["votes"].append(act.gas)
    for event in ledger.events("Judged", task=task, verdict=JuryVerdict.WITHHELD):
        told = event.arguments
        found |= {"item": told["item"], "yes": told["yes"], "no": told["no"], "gas": gas}
    return found


def deciding_game(ledger: Ledger, slashed: Event) -> int:
    """The game whose end slashed the stake. The game's end and the event `slashed` are in the same transaction."""
    act = next(act for act in ledger.acts if act.transaction == slashed.log.transaction)
    ended = act.event("Ended")
    assert ended is not None, "a stake is slashed by the end of a game"
    return int(ended.arguments["game"])


def game_report(ledger: Ledger, names: Names, game: int) -> dict[str, Any]:
    """A game's path and verdict, its number of transactions, and the gas of these."""
    acts = ledger.of_game(game)
    return {"game": whereabouts(ledger, names, game), "transactions": len(acts), "gas": gas(acts)}


def whereabouts(ledger: Ledger, names: Names, game: int) -> dict[str, Any]:
    """The path from the segment down to the judged number or root, as far as the game descended, and the
    game's verdict.
    """
    found: dict[str, Any] = {"id": game}
    for event in ledger.events("SegmentSelected", game=game):
        found["segment"] = event.arguments["segment"]
    for event in ledger.events("StepSelected", game=game):
        found["step"] = event.arguments["step"]
        found["path"] = names.path(ledger.calls(game))
    for event in ledger.events("Ended", game=game):
        found["verdict"] = Verdict(event.arguments["verdict"]).name.lower()
    for event in ledger.events("Judged", game=game):
        found |= judged(names, ledger.calls(game), event, _block(ledger, event))
    for event in ledger.events("EdgeJudged", game=game):
        found |= edge_judged(names, ledger.calls(game), event)
    return found


def judged(names: Names, calls: Sequence[int], event: Event, block: int | None) -> dict[str, Any]:
    """The computed and the claimed number in a judgment. If the row was split into blocks, both numbers are
    those of the judged block.
    """
    n, element, claimed, computed = (event.arguments[k] for k in ("n", "element", "claimed", "computed"))
    instruction = names.instruction(calls, n)
    type_ = instruction.result if block is None else WORD
    found = {
        "instruction": n,
        "primitive": instruction.op.label,
        "element": position(instruction.result, element),
        "claimed_bits": bits(type_, claimed),
        "computed_bits": bits(type_, computed),
        "claimed": number(type_, claimed),
        "computed": number(type_, computed),
    }
    return found if block is None else {**found, "block": block}


def edge_judged(names: Names, calls: Sequence[int], event: Event) -> dict[str, Any]:
    """The computed and the claimed root in a judgment of an input or output."""
    n = event.arguments["n"]
    return {
        "instruction": n,
        "primitive": names.instruction(calls, n).op.label,
        "element": [],
        "claimed_bits": "0x" + event.arguments["claimed"].hex(),
        "computed_bits": "0x" + event.arguments["due"].hex(),
    }


def gas(acts: Sequence[Act]) -> dict[str, int | list[int]]:
    """The gas of each kind of move, and the total. If a kind of move may occur several times, its gas is a
    list in the order of the moves.
    """
    found: dict[str, int | list[int]] = {}
    lists: Mapping[str, list[int]] = {kind: [] for kind in ("expand", "select", "demand", "reveal", "split")}
    for act in acts:
        if act.function in SINGLE:
            found[SINGLE[act.function]] = act.gas
        elif act.function in REPEATED:
            lists[REPEATED[act.function]].append(act.gas)
    return {**found, **lists, "total": sum(act.gas for act in acts)}


def _block(ledger: Ledger, event: Event) -> int | None:
    """The judged block of a split row, or None if the row was not split."""
    act = next(act for act in ledger.acts if act.transaction == event.log.transaction)
    if act.function != "judgeBlock":
        return None
    lo, hi = act.arguments["selection"][2:4]
    return parts(int(lo), int(hi))[int(act.arguments["part"])][0]
