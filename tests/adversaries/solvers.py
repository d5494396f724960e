"""Solvers that cheat: for each cheat the conduct that the production solver runs with.

What is wrong is one collaborator: the executor, the first state, the server or the defence.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.numerics.types import from_bytes, to_bytes
from protocol.program.step import State
from protocol.replay import Work
from solver.conduct import Conduct
from solver.limits import App, Message, Receive, Send
from solver.shelf import Shelf
from tests.adversaries.covering import covers_up
from tests.adversaries.executors import (
    doubles_the_rate,
    falsifies_a_product,
    moves_one_weight,
    skips_a_segment,
)
from tests.adversaries.transformer import (
    doubles_a_denominator,
    keeps_what_is_dropped,
    moves_second_moment,
)


def starts_elsewhere(work: Work, initial: State) -> State:
    """One bit of the first weight is another one before training begins."""
    name, type_ = work.program.state[0], work.program.state_types[0]
    data = bytearray(to_bytes(initial[name], type_.dtype))
    data[0] ^= 1
    return {**initial, name: from_bytes(bytes(data), type_.dtype, type_.shape)}


def says_nothing(_shelf: Shelf) -> App:
    """A server that knows of nothing."""

    async def app(scope: Message, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return app


CHEATS: Mapping[str, Conduct] = {
    "one-ulp": Conduct(executor=moves_one_weight),
    "wrong-rate": Conduct(executor=doubles_the_rate),
    "skipper": Conduct(executor=skips_a_segment),
    "other-start": Conduct(start=starts_elsewhere),
    "silent": Conduct(executor=falsifies_a_product, app=says_nothing, defence=covers_up),
    "wrong-dot": Conduct(executor=falsifies_a_product, defence=covers_up),
    "second-moment": Conduct(executor=moves_second_moment, defence=covers_up),
    "dropout-mask": Conduct(executor=keeps_what_is_dropped, defence=covers_up),
    "softmax": Conduct(executor=doubles_a_denominator, defence=covers_up),
}
"""By the name that `python -m tests.adversaries` takes."""
