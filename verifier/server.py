"""The verifier's HTTP service: the results that it holds for its seats, and the salts that it is offered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect

from verifier.errors import SaltRefused, TooManySalts
from verifier.results import Results

MAX_BODY = 1_024
"""Bytes of an offer: four times a long one."""
Number = Annotated[int, PathParameter(ge=0, lt=1 << 63)]
Offer = Callable[[int, int, bytes], object]
"""Takes a task, a seat and a salt; raises SaltRefused, TooManySalts."""


class OfferedSalt(BaseModel):
    """The body of POST /salts; `salt` is 32 bytes in hexadecimal digits."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: Annotated[int, Field(ge=1, lt=1 << 63)]
    seat: Annotated[int, Field(ge=0, lt=256)]
    salt: Annotated[str, Field(pattern=r"^(0x)?[0-9a-fA-F]{64}$")]


def application(results: Results, offer: Offer) -> FastAPI:
    """GET /tasks/<task>/checkpoints/<K>/tensors/<number>, as a solver serves it, POST /salts, and GET /healthz."""
    api = FastAPI(title="Assay verifier", openapi_url=None, docs_url=None, redoc_url=None)

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @api.get("/tasks/{task}/checkpoints/{checkpoint}/tensors/{tensor}")
    def held(task: Number, checkpoint: Number, tensor: Number) -> FileResponse:
        path = results.path(task, checkpoint, tensor)
        if not path.is_file():
            raise HTTPException(404, "not here")
        return FileResponse(path, media_type="application/octet-stream")

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


async def _read(request: Request) -> OfferedSalt:
    """The body, of which no more than `MAX_BODY` is ever in memory."""
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                raise HTTPException(413, f"an offer has at most {MAX_BODY} bytes")
    except ClientDisconnect as error:  # nobody reads the answer, but what is not caught is logged as a defect
        raise HTTPException(400, "the body was cut short") from error
    try:
        return OfferedSalt.model_validate_json(body)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise HTTPException(422, "; ".join(found)) from error
