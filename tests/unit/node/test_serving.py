"""The parties' HTTP server as a context: it answers, stops, and reports a port in use in one line."""

from __future__ import annotations

import errno
import socket

import httpx
import pytest
from fastapi import FastAPI

from protocol.node.http import PortRefused, PortTaken
from protocol.node.serving import Serving, addresses, by_market
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


def test_a_port_that_the_system_refuses_is_not_one_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_socket: socket.socket, _address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(PortRefused, match=r"Permission denied; choose another --port"):
        Serving(answers, "127.0.0.1", 80)


def test_each_deployment_answers_below_its_market_and_the_earliest_at_the_root_too() -> None:
    def app(name: str) -> FastAPI:
        api = FastAPI()
        api.get("/tasks/{task}")(lambda task: f"{name} {task}")
        return api

    together = by_market([("0xold", app("old")), ("0xnew", app("new"))])
    with Serving(together, "127.0.0.1", 0) as serving:
        new = addresses(f"{serving.url}/", "0xnew", first=False)
        old = addresses(serving.url, "0xold", first=True)
        assert [httpx.get(f"{url}/tasks/1").json() for url in (*new, *old)] == ["new 1", "old 1", "old 1"]
        assert httpx.get(f"{serving.url}/0xother/tasks/1").status_code == 404
