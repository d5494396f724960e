"""The verifier's HTTP service: the results it holds for its seats, its items as a juror, and an inbox for salts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect

from verifier.errors import SaltRefused, TooManySalts
from verifier.results import Items, Results

MAX_BODY = 1_024
"""Limit on the bytes of an offer's body: several times the length of a real one."""
Number = Annotated[int, PathParameter(ge=0, lt=1 << 63)]
Digest = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, PathParameter(pattern=r"^[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,128}){0,3}$")]
Offer = Callable[[int, int, bytes], object]
"""Takes a task, a seat and a salt; raises SaltRefused, TooManySalts."""


class OfferedSalt(BaseModel):
    """The body of POST /salts; `salt` is 32 bytes in hexadecimal."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: Annotated[int, Field(ge=1, lt=1 << 63)]
    seat: Annotated[int, Field(ge=0, lt=256)]
    salt: Annotated[str, Field(pattern=r"^(0x)?[0-9a-fA-F]{64}$")]


def application(results: Results, items: Items, offer: Offer) -> FastAPI:
    """The app with GET /tasks/<task>/checkpoints/<n>/groups/<number>, /tasks/<task>/segments and
    /bundles/<hash>/<file>, as a solver serves them, and POST /salts.
    """
    api = FastAPI(title="Assay verifier", openapi_url=None, docs_url=None, redoc_url=None)

    @api.get("/tasks/{task}/checkpoints/{checkpoint}/groups/{group}")
    def held(task: Number, checkpoint: Number, group: Number) -> FileResponse:
        paths = [kept.path(task, checkpoint, group) for kept in (results, items)]
        return _file(next((path for path in paths if path.is_file()), None))

    @api.get("/tasks/{task}/segments")
    def roots(task: Number) -> FileResponse:
        return _file(items.roots(task))

    @api.get("/bundles/{bundle}/{name:path}")
    def bundle(bundle: Digest, name: FileName) -> FileResponse:
        return _file(items.bundle_file(bundle, name))

    @api.post("/salts", status_code=202)
    async def salts(request: Request) -> dict[str, str]:
        offered = await _read(request)
        salt = bytes.fromhex(offered.salt.removeprefix("0x"))
        try:
            await run_in_threadpool(offer, offered.task, offered.seat, salt)
        except TooManySalts as error:
            raise HTTPException(503, str(error), {"retry-after": "5"}) from error
        except SaltRefused as error:
            raise HTTPException(409, str(error)) from error
        return {"status": "kept"}

    return api


def _file(path: Path | None) -> FileResponse:
    if path is None:
        raise HTTPException(404, "not here")
    return FileResponse(path, media_type="application/octet-stream")


async def _read(request: Request) -> OfferedSalt:
    """Read the body, of which at most about `MAX_BODY` bytes are ever in memory. The answer is 400 if the
    body is cut short, 413 if it is too long, and 422 if it is not valid.
    """
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                raise HTTPException(413, f"an offer has at most {MAX_BODY} bytes")
    except ClientDisconnect as error:  # otherwise it would be logged as a defect
        raise HTTPException(400, "the body was cut short") from error
    try:
        return OfferedSalt.model_validate_json(body)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise HTTPException(422, "; ".join(found)) from error
