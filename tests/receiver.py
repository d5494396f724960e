"""A webhook's receiver: a real HTTP server that accepts alerts or gives chosen answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Self

from protocol.node.monitoring.webhook import Webhook
from tests.listener import Handler, Listener

SECRET: Final = "t0p5ecret"
"""Part of the webhook's URL. It must not appear in any log or error."""


class Receiver:
    """A server that accepts alerts. `answers` are for its next requests. Each is a status to send, or a
    function to call instead, with the request's handler.
    """

    def __init__(self, *answers: int | Callable[[Any], None]) -> None:
        self.answers = list(answers)
        self.taken: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.listener = Listener(_Taking, self)

    @property
    def url(self) -> str:
        """The URL that an operator would set."""
        return f"{self.listener.url}/hooks/{SECRET}?sig={SECRET}"

    @property
    def hook(self) -> Webhook:
        """The URL as a parsed webhook."""
        return Webhook.parse(self.url)

    @property
    def events(self) -> list[str]:
        """The events of the accepted documents, in order."""
        return [document["event"] for document in self.taken]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()


class _Taking(Handler):
    server: Listener

    def do_POST(self) -> None:
        owner: Receiver = self.server.owner
        body = self.rfile.read(int(self.headers["content-length"]))
        owner.paths.append(self.path)
        answer = owner.answers.pop(0) if owner.answers else 204
        if callable(answer):
            answer(self)
            return
        if answer < 300:
            owner.taken.append(json.loads(body))
        self.send_response(answer)
        if 300 <= answer < 400:
            self.send_header("location", f"{self.server.url}/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST
