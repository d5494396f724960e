"""Each time the verifier observes the chain, this module notes the new events of a task's looks and juries.
If the chain's node does not provide events, seats still do their duties.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocol.chain.errors import RpcUnavailable
from protocol.node.party.exits import Observation
from verifier.context import Context
from verifier.jobs import Jobs


def see_events(context: Context, seen: Observation, fetching: Iterable[Jobs]) -> None:
    """Record new events. If another juror has voted yes, or there is a verdict, failed requests are repeated
    at once. Raises RpcUnavailable.
    """
    _see_looks(context, seen)
    _see_juries(context, seen, fetching)


def _see_looks(context: Context, seen: Observation) -> None:
    """Record the events of looks. If that fails, the failure is only counted and logged, because a seat
    reveals its digest even without these events. Raises RpcUnavailable.
    """
    try:
        context.looks.see(seen)
    except RpcUnavailable:
        raise
    except Exception as error:
        context.failed(seen.view.task, "looks", error)


def _see_juries(context: Context, seen: Observation, fetching: Iterable[Jobs]) -> None:
    """Record the events of juries. If that fails, the failure is only counted and logged, because segments
    that are available are attested even without these events. Raises RpcUnavailable.
    """
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
