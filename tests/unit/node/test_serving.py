"""The parties' HTTP server as a context: it answers, it stops, and a port that is taken is said in one line."""

from __future__ import annotations

import httpx
import pytest

from protocol.node.http import PortTaken
from protocol.node.serving import Serving
from tests.unit.node.apps import answers


def test_it_answers_while_the_context_lasts_and_not_afterwards() -> None:
    with Serving(answers, "127.0.0.1", 0) as serving:
        url = serving.url
        assert httpx.get(url).text == "hello"
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_a_port_in_use_is_said_in_one_line() -> None:
    taken = Serving(answers, "127.0.0.1", 0)
    with taken, pytest.raises(PortTaken, match=f"expected to listen on 127.0.0.1:{taken.port}"):
        Serving(answers, "127.0.0.1", taken.port)
