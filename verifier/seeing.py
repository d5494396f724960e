"""Notes, at each look, what the events of a task tell of its looks and juries. A node of the chain without events
does not keep seats from their duties.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocol.chain.errors import RpcUnavailable
from protocol.node.party.exits import Observation
from verifier.context import Context
from verifier.jobs import Jobs


def see_events(context: Context, seen: Observation, fetching: Iterable[Jobs]) -> None:
    """Note new events. A juror that has something that was requested unsuccessfully is asked at once. Raises
    RpcUnavailable.
    """
    _see_looks(context, seen)
    _see_juries(context, seen, fetching)


def _see_looks(context: Context, seen: Observation) -> None:
    """Without these events a seat still opens its digest."""
    try:
        context.looks.see(seen)
    except RpcUnavailable:
        raise
    except Exception as error:
        context.failed(seen.view.task, "looks", error)


def _see_juries(context: Context, seen: Observation, fetching: Iterable[Jobs]) -> None:
    """Without these events the available segments are still attested."""
    if seen.audit is None:
        return
    try:
        if context.juries.see(seen, context.terms(seen.view.task)):
            for work in fetching:
                work.rests.succeeded(seen.view.task)
    except RpcUnavailable:
        raise
    except Exception as error:
        context.failed(seen.view.task, "juries", error)
