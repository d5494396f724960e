"""The routes of monitoring: GET /healthz, /readyz and /metrics, on a different port from the service for
strangers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

VERSION: Final = 1
"""Version of the JSON bodies."""
Checks = Mapping[str, str]
"""For each check, by name, the problem that it finds, in words; an empty text if it finds none."""


def application(
    is_alive: Callable[[], bool], checks: Callable[[], Checks], render: Callable[[], bytes]
) -> Starlette:
    """The ASGI app. /healthz answers 200 while the node is alive, and /readyz while no check finds a problem;
    otherwise each answers 503. The arguments are functions, which are called in threads.
    """
    from prometheus_client import CONTENT_TYPE_LATEST
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def healthz(_request: Request) -> Response:
        alive = is_alive()
        status = "alive" if alive else "stalled"
        return JSONResponse({"version": VERSION, "status": status}, 200 if alive else 503)

    def readyz(_request: Request) -> Response:
        found = dict(checks())
        ready = not any(found.values())
        return JSONResponse({"version": VERSION, "ready": ready, "checks": found}, 200 if ready else 503)

    def metrics(_request: Request) -> Response:
        return Response(render(), headers={"content-type": CONTENT_TYPE_LATEST})

    paths = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return Starlette(routes=[Route(path, answer, methods=["GET"]) for path, answer in paths.items()])
