"""Serves a shelf over HTTP: plain files by name, read-only. Clients check every byte against signed roots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, HTTPException
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse

from protocol.exchange.shelf import ROUNDS, TENSORS

Number = Annotated[int, PathParameter(ge=0, lt=1 << 31)]
Prefix = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{2}$")]
Root = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{64}$")]


def application(folder: Path) -> FastAPI:
    """The app that answers GET /rounds/<round>/<lane>.json and GET /tensors/<2 digits>/<root> from a
    shelf's folder.
    """
    api = FastAPI(title="Assay lane", openapi_url=None, docs_url=None, redoc_url=None)

    @api.get(f"/{ROUNDS}/{{number}}/{{lane}}.json")
    def announcement(number: Number, lane: Number) -> FileResponse:
        return _file(folder / ROUNDS / str(number) / f"{lane}.json")

    @api.get(f"/{TENSORS}/{{prefix}}/{{root}}")
    def tensor(prefix: Prefix, root: Root) -> FileResponse:
        return _file(folder / TENSORS / prefix / root)

    return api


def _file(path: Path) -> FileResponse:
    if not path.is_file():
        raise HTTPException(404, "not here")
    return FileResponse(path, media_type="application/octet-stream")
