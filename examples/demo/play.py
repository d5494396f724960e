"""Plays the stories: follows the chain and prints events until every story has ended or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from assay.errors import ResultError
from assay.results import fetch
from examples.demo.clock import Clock
from examples.demo.event_lines import EventLines, Line
from examples.demo.ledger import Ledger
from examples.demo.report import caught, game_report, spoken_up, task_report, verdict, withheld
from examples.demo.stage import ACCOMPLICE, OUTSOURCER_NAME, SEAT, STAMP_NAME, Stage
from examples.demo.stories import STORIES, Story
from protocol.chain.views import TaskStatus
from protocol.dispute.names import Names
from protocol.node.words import exact

LIMIT_SECONDS = 1800.0
"""Seconds after which the demo fails and reports unfinished stories: ten times what two idle cores need."""
POLL_SECONDS = 0.5
WHOLE = ("opened late", "moot", "solver_false")
"""Outcomes of a seat's challenge after which the seat gets back all that it has staked. `solver_false` means
that the seat's own game was judged before the accomplice's game. Even then the accomplice gets the reward,
because its commitment is older.
"""

Say = Callable[[str], None]


def play(folder: Path, say: Say, limit: float = LIMIT_SECONDS) -> dict[str, Any]:
    """Set up the stage in `folder`, play all stories, clean up, and return the report. Raises StageError and
    ChainError.
    """
    started = time.monotonic()

    def timed(text: str) -> None:
        say(f"{time.monotonic() - started:5.0f} s  {text}")

    with Stage(folder, timed) as stage:
        return _Play(stage, timed, started, limit).run()


def failures(report: dict[str, Any]) -> list[str]:
    """Descriptions of all outcomes that differ from what the stories expect; none if the demo succeeded."""
    wrong = []
    for story, run in zip(STORIES, report["runs"], strict=True):
        if run["verdict"] != story.verdict:
            wrong.append(f"({story.letter}) expected {story.verdict}, got {run['verdict']}")
        if story.judged and "computed_bits" not in run.get("game", {}):
            wrong.append(f"({story.letter}) expected a judgment, got {run.get('game')}")
        if story.cheat is None and "metrics" not in run:
            wrong.append(f"({story.letter}) expected the metrics of the result, got none")
        if story.refused and "refusal" not in run:
            wrong.append(f"({story.letter}) expected a typed revert, got none")
        if story.silent and "silent" not in run:
            wrong.append(f"({story.letter}) expected a silent seat, got none")
        if story.outsourced and run.get("informed_by") != "the verifier":
            wrong.append(f"({story.letter}) expected the verifier to inform, got {run.get('informed_by')}")
        if story.stamped and not run.get("caught", {}).get("accused"):
            wrong.append(f"({story.letter}) expected the look to accuse and to win, got {run.get('caught')}")
        if story.withheld and run.get("withheld", {}).get("no") != story.terms["jurors"]:
            wrong.append(f"({story.letter}) expected the whole jury to say no, got {run.get('withheld')}")
        if story.accomplice and run.get("convicted_by") != "the accomplice":
            wrong.append(
                f"({story.letter}) expected a conviction by the accomplice, got {run.get('convicted_by')}"
            )
        if story.accomplice and run.get("seat", {}).get("ended") not in WHOLE:
            wrong.append(f"({story.letter}) expected a seat with bond, cost and fee, got {run.get('seat')}")
        if story.accuser and run.get("accusation", {}).get("game", {}).get("verdict") != "challenger_silent":
            wrong.append(f"({story.letter}) expected the accuser to lose, got {run.get('accusation')}")
    return wrong


class _Play:
    def __init__(self, stage: Stage, say: Say, started: float, limit: float) -> None:
        self._stage = stage
        self._say = say
        self._started = started
        self._limit = limit
        self._ledger = Ledger(stage.client)
        self._names = {
            task: Names(stage.prepared[story.example].bundle.step.program)
            for story in STORIES
            for task in [stage.tasks[story.letter]]
        }
        self._clock = Clock(stage, self._ledger, say)
        self._event_lines = EventLines(self._ledger, self._names, stage.who)
        self._letters = {task: letter for letter, task in stage.tasks.items()}
        self._metrics: dict[int, dict[str, float]] = {}
        self._refusals: dict[str, str] = {}

    def run(self) -> dict[str, Any]:
        """Run until all stories are over or time is up; return the report."""
        for story in STORIES:
            self._say(f"({story.letter}) task {self._task(story)}: {story.title}")
        while True:
            self._look()
            left = [story for story in STORIES if not self._is_over(story)]
            if not left or time.monotonic() - self._started > self._limit:
                break
            self._clock.pass_idle_time(left)
            time.sleep(POLL_SECONDS)
        chain = {"client": self._stage.chain.client, "chain_id": self._stage.chain.chain_id}
        runs = [self._report(story) for story in STORIES]
        return {"chain": chain, "seconds": round(time.monotonic() - self._started), "runs": runs}

    def _look(self) -> None:
        for act in self._ledger.update():
            for line in self._event_lines.lines(act):
                self._say_line(line)
        for story in STORIES:
            self._note(story)
        self._stage.children.require_alive(self._stage.mortal, {OUTSOURCER_NAME, STAMP_NAME})

    def _note(self, story: Story) -> None:
        """Start late parties, and record what is not on the chain: the metrics of the results, and why a run
        was refused.
        """
        task, name = self._task(story), self._stage.process(story)
        if story.stamped or story.withheld or (story.accomplice and self._accomplice_committed(task)):
            self._stage.cast(story)
        if story.cheat is None and task not in self._metrics and self._submitted(task):
            with suppress(ResultError):  # retried at the next look; `failures` reports missing metrics
                self._metrics[task] = fetch(self._stage.client, self._stage.home, task).metrics
        if story.refused and name not in self._refusals and self._stage.children.exit_code(name) is not None:
            self._refusals[name] = self._stage.children.last_line(name)
            self._say(f"({story.letter}) REFUSED: its solver ends with {self._refusals[name].split('(')[0]}")

    def _accomplice_committed(self, task: int) -> bool:
        accomplice = self._stage.address(ACCOMPLICE).lower()
        events = self._ledger.events("Committed", task=task)
        return any(str(event.arguments["challenger"]).lower() == accomplice for event in events)

    def _submitted(self, task: int) -> bool:
        return self._stage.client.market.task(task).status is TaskStatus.SUBMITTED

    def _say_line(self, line: Line) -> None:
        if line.task in self._letters:
            self._say(f"({self._letters[line.task]}) {line.text}")

    def _is_over(self, story: Story) -> bool:
        if verdict(self._ledger, self._task(story)) is None:
            return False
        if story.refused:
            return self._stage.process(story) in self._refusals
        if story.accomplice:
            return self._seat(story) is not None
        return story.accuser is None or self._accusation(story) is not None

    def _seat(self, story: Story) -> dict[str, str] | None:
        """In the accomplice's story: the honest seat's bond, the outcome of its challenge, and its pay. None
        until the seat has been paid.
        """
        return spoken_up(self._ledger, self._task(story), self._stage.address(SEAT))

    def _accusation(self, story: Story) -> int | None:
        """The accuser's game if it is over, otherwise None."""
        for event in self._ledger.events("Challenged", task=self._task(story)):
            game = int(event.arguments["game"])
            if self._ledger.events("Ended", game=game):
                return game
        return None

    def _report(self, story: Story) -> dict[str, Any]:
        task, described = self._task(story), self._stage.prepared[story.example].description.task
        names = self._names[task]
        found = task_report(self._ledger, names, task, described.name, story.solver, described.segments)
        found |= {"story": story.letter}
        if task in self._metrics:
            found["metrics"] = self._metrics[task]
        if self._stage.process(story) in self._refusals:
            found["refusal"] = self._refusals[self._stage.process(story)]
        if story.accomplice:
            found["seat"] = self._seat(story) or {}
            for event in self._ledger.events("Slashed", task=task):
                found["convicted_by"] = self._event_lines.who(str(event.arguments["challenger"]))
        if story.stamped:
            found["caught"] = caught(self._ledger, task)
        if story.withheld:
            found["withheld"] = withheld(self._ledger, task)
        for event in self._ledger.events("Informed", task=task):
            found["informed_by"] = self._event_lines.who(str(event.arguments["informer"]))
        game = self._accusation(story) if story.accuser else None
        if game is not None:
            accusation = game_report(self._ledger, names, game)
            committed = [act.event("Committed") for act in self._ledger.of_game(game)]
            bonds = [event.arguments["bond"] for event in committed if event is not None]
            found["accusation"] = {"challenger": story.accuser, "bond": exact(sum(bonds)), **accusation}
        return found

    def _task(self, story: Story) -> int:
        return self._stage.tasks[story.letter]
