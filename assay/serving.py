"""The bundle server: bundles under the home folder, read-only, by hash. Whoever fetches checks every byte.

Only names that a bundle can have are looked at: `manifest.json`, and blobs by their own hash.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse

from assay.errors import PortTaken
from protocol.bundles.write import BLOBS, MANIFEST

MAX_CONNECTIONS = 64

Digest = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{64}$")]
Prefix = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{2}$")]


def application(bundles: Path) -> FastAPI:
    """GET /bundles/<hash>/manifest.json, GET /bundles/<hash>/blobs/<2 digits>/<blob>, GET /healthz."""
    api = FastAPI(title="Assay bundles", openapi_url=None, docs_url=None, redoc_url=None)

    @api.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @api.get(f"/bundles/{{bundle}}/{MANIFEST}")
    def manifest(bundle: Digest) -> FileResponse:
        return _file(bundles / bundle / MANIFEST)

    @api.get(f"/bundles/{{bundle}}/{BLOBS}/{{prefix}}/{{blob}}")
    def blob(bundle: Digest, prefix: Prefix, blob: Digest) -> FileResponse:
        return _file(bundles / bundle / BLOBS / prefix / blob)

    return api


def bind(host: str, port: int) -> socket.socket:
    """A socket to serve on, before anything else is done. Raises PortTaken."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise PortTaken(
            f"bundle server: expected to listen on {host}:{port}, got {error.strerror}; "
            "stop the other server or choose another --port"
        ) from error
    return bound


def server(bundles: Path) -> uvicorn.Server:
    """The HTTP server; `run(sockets=[bound])` serves until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        application(bundles),
        log_config=None,
        access_log=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16_384,
        http="h11",
        ws="none",
        lifespan="off",
    )
    return uvicorn.Server(config)


def _file(path: Path) -> FileResponse:
    if not path.is_file():
        raise HTTPException(404, "not here")
    return FileResponse(path, media_type="application/octet-stream")
