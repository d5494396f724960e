"""The bundle server: serves the bundles under the home folder read-only, by hash. Clients check every byte.

Only valid names are looked up: `manifest.json`, and blobs named by their hashes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, HTTPException
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse

from protocol.tasks.bundles.write import BLOBS, MANIFEST

Digest = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{64}$")]
Prefix = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{2}$")]


def application(bundles: Path) -> FastAPI:
    """The app. It answers GET /bundles/<hash>/manifest.json, GET /bundles/<hash>/blobs/<2 digits>/<blob>
    and GET /healthz.
    """
    api = FastAPI(title="Assay bundles", openapi_url=None, docs_url=None, redoc_url=None)

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @api.get(f"/bundles/{{bundle}}/{MANIFEST}")
    def manifest(bundle: Digest) -> FileResponse:
        return _file(bundles / bundle / MANIFEST)

    @api.get(f"/bundles/{{bundle}}/{BLOBS}/{{prefix}}/{{blob}}")
    def blob(bundle: Digest, prefix: Prefix, blob: Digest) -> FileResponse:
        return _file(bundles / bundle / BLOBS / prefix / blob)

    return api


def _file(path: Path) -> FileResponse:
    if not path.is_file():
        raise HTTPException(404, "not here")
    return FileResponse(path, media_type="application/octet-stream")
