"""Solvers that cheat: the strategies that the production solver runs with in order to cheat.

A cheat replaces one or more collaborators: the executor, the first state, the server, the defence. The honest
solver replaces none; it is for tests in which steps are late or fail.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.execution.replay import Work
from protocol.numerics.types import from_bytes, to_bytes
from protocol.program.step import State
from solver.catalog import Catalog
from solver.limits import App, Message, Receive, Send
from solver.strategy import Strategy
from tests.adversaries.covering import all_covered_up
from tests.adversaries.executors import (
    doubles_the_rate,
    falsifies_a_product,
    moves_one_weight,
    skips_a_segment,
)
from tests.adversaries.tiny import moves_a_weight_far
from tests.adversaries.transformer import (
    doubles_a_denominator,
    keeps_what_is_dropped,
    moves_second_moment,
)
from tests.adversaries.withholding import WITHHOLDER, serves_its_accomplice


def starts_elsewhere(work: Work, initial: State) -> State:
    """The initial state with one bit of the first weight flipped."""
    name, type_ = work.program.state[0], work.program.state_types[0]
    data = bytearray(to_bytes(initial[name], type_.dtype))
    data[0] ^= 1
    return {**initial, name: from_bytes(bytes(data), type_.dtype, type_.shape)}


def says_nothing(_catalog: Catalog) -> App:
    """A server that answers every request with status 404."""

    async def app(scope: Message, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return app


CHEATS: Mapping[str, Strategy] = {
    "honest-solver": Strategy(),
    "far-weight": Strategy(executor=moves_a_weight_far),
    "one-ulp": Strategy(executor=moves_one_weight),
    "wrong-rate": Strategy(executor=doubles_the_rate),
    "skipper": Strategy(executor=skips_a_segment),
    "other-start": Strategy(start=starts_elsewhere),
    "silent": Strategy(executor=falsifies_a_product, app=says_nothing, defence=all_covered_up),
    "wrong-dot": Strategy(executor=falsifies_a_product, defence=all_covered_up),
    "second-moment": Strategy(executor=moves_second_moment, defence=all_covered_up),
    "dropout-mask": Strategy(executor=keeps_what_is_dropped, defence=all_covered_up),
    "softmax": Strategy(executor=doubles_a_denominator, defence=all_covered_up),
    WITHHOLDER: Strategy(app=serves_its_accomplice),
}
"""The strategies, by their command-line names for `python -m tests.adversaries`."""
