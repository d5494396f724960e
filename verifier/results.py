"""The results that this verifier holds for its seats, on disk and over HTTP: canonical bytes, a file for each tensor.

They lie apart from what is needed to replay a task, which goes when the task is over; these are served for a time after
it was settled. Who fetches them compares their root with the chain's.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, HTTPException
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse

from protocol.commitments.atomic import write_atomically

Number = Annotated[int, PathParameter(ge=0, lt=1 << 63)]


class Results:
    """Under `folder`, by task, number of the checkpoint, and number of the tensor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hold(self, task: int, checkpoint: int, tensors: Sequence[bytes]) -> None:
        """Keep a task's last checkpoint. Raises OSError."""
        for number, data in enumerate(tensors):
            write_atomically(self.path(task, checkpoint, number), data)

    def drop(self, task: int) -> None:
        """Delete a task's."""
        shutil.rmtree(self._folder / str(task), ignore_errors=True)

    def path(self, task: int, checkpoint: int, tensor: int) -> Path:
        """Where a tensor is, if it is held."""
        return self._folder / str(task) / str(checkpoint) / str(tensor)


def application(results: Results) -> FastAPI:
    """GET /tasks/<task>/checkpoints/<K>/tensors/<number>, as a solver serves it, and GET /healthz."""
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

    return api
