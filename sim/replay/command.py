"""`sim replay`: plays a scenario on its own chain, prints each event, and shows all accounts at the end."""

from __future__ import annotations

import time

from protocol.node.output import Output
from sim.errors import Disagreement, StudyError
from sim.replay.comparison import Comparison, Line
from sim.replay.scenarios import SCENARIOS, market, scenario


def show_scenarios(output: Output) -> None:
    """Print the scenarios' names and descriptions."""
    rows = [{"scenario": each.name, "tasks": each.tasks, "text": each.text} for each in SCENARIOS.values()]
    for row in rows:
        output.say(f"{row['scenario']:16} {row['text']}")
    output.result(rows)


def run(name: str, tasks: int | None, seed: int | None, output: Output) -> None:
    """Replay a scenario and show all accounts. Raises Disagreement, after showing the accounts, if balances
    differ.

    `tasks` and `seed` apply only to scenarios without a fixed end. Raises StudyError if they are given for
    another scenario, or if the scenario is unknown.
    """
    from sim.replay.play import replay  # torch and the chain's client are not needed for a list

    story = scenario(name)
    if tasks is not None or seed is not None:
        if story.outcomes is not None:
            raise StudyError(
                f"scenario {name!r}: expected no --tasks or --seed, for its end is fixed, got one; replay market, or "
                f"looked_market"
            )
        story = market(tasks or story.tasks, story.seed if seed is None else seed, name=name)
    start = time.monotonic()
    try:
        ended = replay(story, lambda event: output.say(f"{time.monotonic() - start:6.1f} s  {event}"))
    except Disagreement as error:
        if isinstance(error.comparison, Comparison):
            _show(error.comparison.lines, output)
        raise
    _show(ended.lines, output)
    for owner, gain in ended.gains.items():
        output.say(f"{owner:28} gained {gain:+27d}")
    for what in ended.judged:
        output.say(f"judged by the EVM: {what}")
    output.say(
        f"{', '.join(ended.outcomes)}: engine and contracts agree in {ended.compared} balances, "
        f"after each of {len(ended.events)} events, to the last unit"
    )
    output.result(
        {
            "scenario": story.name,
            "outcomes": ended.outcomes,
            "events": ended.events,
            "compared": ended.compared,
            "judged": ended.judged,
            "gains": ended.gains,
            "balances": [
                {
                    "owner": line.place.owner,
                    "where": line.place.where,
                    "expected": line.expected,
                    "chain": line.chain,
                    "difference": line.difference,
                }
                for line in ended.lines
            ],
        }
    )


def _show(lines: tuple[Line, ...], output: Output) -> None:
    """Print the places that hold tokens in the engine's ledger or on the chain."""
    output.say(f"{'account':28} {'where':12} {'expected':>27} {'chain':>27} {'difference':>12}")
    for line in lines:
        if line.expected or line.chain:
            place = line.place
            output.say(
                f"{place.owner:28} {place.where:12} {line.expected:27d} {line.chain:27d} {line.difference:12d}"
            )
