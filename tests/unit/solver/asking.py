"""Requests to the solver's HTTP service without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from solver.limits import App


def get(app: App, *targets: str, **extra: Any) -> list[httpx.Response]:
    """Send the requests, by default GET, one after the other, and return the answers."""

    async def ask() -> list[httpx.Response]:
        async with client(app) as session:
            return [await session.request(extra.pop("method", "GET"), path, **extra) for path in targets]

    return asyncio.run(ask())


@asynccontextmanager
async def client(app: App) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the app without a network."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://solver") as session:
        yield session


def roots(answer: httpx.Response) -> list[bytes]:
    """The hashes of a binary answer."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    assert len(answer.content) % 32 == 0
    return [answer.content[at : at + 32] for at in range(0, len(answer.content), 32)]
