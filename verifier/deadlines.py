"""Which task's duties come first where workers are few: deadlines decide, not the order in which tasks were posted."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.node.party.exits import Observation
from verifier import answering, juror
from verifier.context import Context
from verifier.seats import due_by


def due_next(context: Context, seen: Observation) -> int:
    """When the next attestation, vote, opening or answer of own accounts in a task is due; without one, when challenges
    end. Seconds since 1970.
    """
    return min([due_by(seen, context.clients), *juror.deadlines(context, seen), *_answers(context, seen)])


def _answers(context: Context, seen: Observation) -> Iterator[int]:
    for look, _, _ in answering.accused(context, seen):
        stands = context.looks.of(seen.view.task, look.number)
        if stands is not None and seen.now <= stands.until:
            yield stands.until
