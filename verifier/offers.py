"""Lists the jobs that are due in a task, each with the workers that do it.

The modules that are asked here decide what is due; `Observer` offers the jobs, the most urgent ones first.
Fetches and replays are offered by `auditing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from protocol.node.party.exits import Observation
from verifier import accusing, answering, auditing, item_claims, juror, keeper, looking
from verifier.context import Context
from verifier.deadlines import due_next, sends_due
from verifier.games import Games
from verifier.jobs import Job, Jobs
from verifier.workers import Workers


class Offer(NamedTuple):
    """A job for one kind of work. Of jobs that must be done by the same time, the one whose task has the
    earliest deadline (`due`) goes first.
    """

    work: Jobs
    job: Job
    due: float

    @property
    def order(self) -> tuple[float, float]:
        """Sort key: the most urgent job goes first."""
        return self.job.until, self.due


def offers(context: Context, seen: Observation, games: Games, workers: Workers) -> Iterator[Offer]:
    """The jobs that are due in a task, except fetches and replays. Raises ChainError."""
    due, sent = due_next(context, seen), sends_due(context, seen)
    sends = (
        games.make_ready(seen),
        auditing.attestations(context, seen),
        looking.jobs(context, seen),
        answering.contests(context, seen),
        juror.refusals(context, seen),
        item_claims.jobs(context, seen),
    )
    for job in chain.from_iterable(sends):  # what has a deadline may need no free worker (`finds_worker`)
        yield Offer(workers.sends, job._replace(until=sent), due)
    for job in keeper.jobs(context, seen):
        yield Offer(workers.calls, job, due)
    answers = (
        answering.answers(context, seen),
        looking.asks(context, seen),
        accusing.jobs(context, seen),
        accusing.drops(context, seen),
        juror.openings(context, seen),
        juror.votes(context, seen),
    )
    for job in chain.from_iterable(answers):
        yield Offer(workers.answers, job, due)
