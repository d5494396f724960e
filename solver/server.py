"""The solver's HTTP service: checkpoints, trees and values of its tasks, as far as they are committed
on-chain.

Clients do not trust the answers: each is checked against an on-chain root. Anything not served can be
demanded on-chain (dispute.md section 6), so refusing a request while busy costs only a little gas.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import to_thread
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, JSONResponse, Response

from protocol.commitments import segment_tree
from protocol.commitments.hashing import BytesLike
from protocol.dispute.provider import Frame, frame_at
from protocol.execution.turns import Stopped
from solver.answers import (
    CallPath,
    ChunkRange,
    Digest,
    FileName,
    FileOnDisk,
    Number,
    Positive,
    Share,
    TaskId,
    binary,
    call_path,
    chunk_range,
    encoded_manifest,
    hashes,
    json_bytes,
    missing,
)
from solver.catalog import Answering, Catalog
from solver.concurrency import Budget, Busy, OneAtATime
from solver.limits import App, Limits

if TYPE_CHECKING:
    from protocol.execution.replay import Replay
    from solver.run_store import RunStore

Answer = TypeVar("Answer")


def application(catalog: Catalog, questions: OneAtATime | None = None, budget: Budget | None = None) -> App:
    """The HTTP service for a catalog, as an ASGI app. `questions` limits the replays. `budget` limits the
    bytes of the answers that are in memory while they are sent. Both default to the catalog's.
    """
    api = FastAPI(title="Assay solver", openapi_url=None, docs_url=None, redoc_url=None)
    answering = catalog.answering
    budget = budget or answering.budget
    _general(api, catalog)
    _checkpoints(api, catalog, answering, budget)
    _insides(api, catalog, questions or answering.replays, budget)
    return Limits(api, catalog.metrics)


def _general(api: FastAPI, catalog: Catalog) -> None:
    @api.exception_handler(Stopped)
    @api.exception_handler(Busy)
    async def busy(_request: Request, _error: Exception) -> Response:
        detail = "too many questions that take time or memory; ask again later"
        return JSONResponse({"detail": detail}, 503, headers={"retry-after": "5"})

    @api.get("/mark")
    async def mark() -> dict[str, str]:
        return {"mark": catalog.mark}

    @api.get("/bundles/{bundle}/{name:path}")
    def bundle(bundle: Digest, name: FileName) -> FileResponse:
        path = catalog.bundle_file(bundle, name)
        if path is None:
            raise missing("file of a bundle")
        return FileResponse(path, media_type="application/octet-stream")


def _checkpoints(api: FastAPI, catalog: Catalog, answering: Answering, budget: Budget) -> None:
    readers, known = answering.readers, answering.hashes
    readers.on_idle = known.forget

    async def by_reading(share: Hashable, read: Callable[[], Answer]) -> Answer:
        async with readers.turn(share):
            return await to_thread.run_sync(read)

    async def manifest(run_store: RunStore, number: int, share: Hashable) -> Response:
        encoded = await by_reading(share, lambda: encoded_manifest(run_store, number))
        return json_bytes(encoded, budget, share)

    @api.get("/tasks/{task}")
    def overview(task: TaskId) -> dict[str, Any]:
        run_store = _run_store(catalog, task)
        root = segment_tree(run_store.roots(run_store.committed)).root if run_store.committed else b""
        return {
            "version": 1,
            "task": task,
            "segments": run_store.segments,
            "segment_steps": run_store.segment_steps,
            "committed_segments": max(0, run_store.committed - 1),
            "size": run_store.committed,
            "root": "0x" + root.hex(),
        }

    @api.get("/tasks/{task}/segments")
    async def segments(task: TaskId, share: Share) -> Response:
        run_store = _run_store(catalog, task)
        return hashes(run_store.roots(run_store.committed), budget, share)

    @api.get("/tasks/{task}/checkpoints/{i}")
    async def checkpoint(task: TaskId, i: Number, share: Share) -> Response:
        return await manifest(_with_checkpoint(catalog, task, i), i, share)

    @api.get("/tasks/{task}/checkpoints/{i}/tensors/{k}")
    async def tensor(task: TaskId, i: Number, k: Number, share: Share, chunk: ChunkRange = "") -> Response:
        run_store = _with_checkpoint(catalog, task, i)
        if k >= len(run_store.program.state):
            raise missing(f"tensor {k}")
        if not chunk:
            return FileOnDisk(await by_reading(share, lambda: run_store.open_tensor(i, k)))
        lo, hi = chunk_range(chunk, run_store.program.state_types[k].nbytes)
        return binary(await by_reading(share, lambda: run_store.chunks(i, k, lo, hi, known)), budget, share)

    @api.get("/tasks/{task}/checkpoints/{i}/groups/{g}")
    async def group(task: TaskId, i: Number, g: Number, share: Share) -> Response:
        run_store = _with_checkpoint(catalog, task, i)
        if g >= len(run_store.groups):
            raise missing(f"group {g}")
        numbers = run_store.groups[g]
        if len(numbers) == 1:  # it may be large
            return FileOnDisk(await by_reading(share, lambda: run_store.open_tensor(i, numbers.start)))
        return binary(await by_reading(share, lambda: run_store.group(i, g)), budget, share)

    @api.get("/tasks/{task}/result")
    async def result(task: TaskId, share: Share) -> Response:
        last = _run_store(catalog, task).segments
        return await manifest(_with_checkpoint(catalog, task, last), last, share)


def _insides(api: FastAPI, catalog: Catalog, questions: OneAtATime, budget: Budget) -> None:
    questions.on_idle = catalog.forget_replay

    async def by_replay(
        share: Hashable, task: int, i: int, j: int, ask: Callable[[Replay], Answer]
    ) -> Answer:
        run_store = _run_store(catalog, task)
        if not (1 <= i < run_store.committed and j <= run_store.segment_steps):
            raise missing(f"segment {i}, step {j}")

        def answer() -> Answer:
            with catalog.turns.asked():
                return ask(catalog.replay(run_store))

        async with questions.turn(share):
            return await to_thread.run_sync(answer)

    async def in_frame(
        share: Hashable, task: int, i: int, j: int, path: str, ask: Callable[[Frame], Answer]
    ) -> Answer:
        def answer(run: Replay) -> Answer:
            from protocol.program.errors import ProgramError

            try:
                run.frame(i, j)  # each step takes its own turn
                # Another turn: deeper frames, and values that the frame lacks, are computed on demand.
                with catalog.turns.ordinary(run.device):
                    return ask(frame_at(run, i, j, call_path(path)))
            except (ProgramError, IndexError) as error:  # a path without calls, a leaf that does not exist
                raise HTTPException(404, str(error)) from error

        return await by_replay(share, task, i, j, answer)

    @api.get("/tasks/{task}/segments/{i}/steps")
    async def steps(task: TaskId, i: Positive, share: Share) -> Response:
        return hashes(await by_replay(share, task, i, 0, lambda run: run.step_roots(i)), budget, share)

    @api.get("/tasks/{task}/segments/{i}/steps/{j}/state")
    async def state(task: TaskId, i: Positive, j: Number, share: Share) -> Response:
        return hashes(await by_replay(share, task, i, j, lambda run: run.tensor_roots(i, j)), budget, share)

    @api.get("/tasks/{task}/segments/{i}/steps/{j}/trace")
    async def trace(task: TaskId, i: Positive, j: Positive, share: Share, path: CallPath = "") -> Response:
        def roots(frame: Frame) -> list[bytes]:
            return [frame.root(leaf) for leaf in range(frame.tree.size)]

        return hashes(await in_frame(share, task, i, j, path, roots), budget, share)

    @api.get("/tasks/{task}/segments/{i}/steps/{j}/values/{leaf}")
    async def value(
        task: TaskId,
        i: Positive,
        j: Positive,
        leaf: Number,
        share: Share,
        path: CallPath = "",
        chunk: ChunkRange = "",
    ) -> Response:
        def data(frame: Frame) -> BytesLike:
            if leaf >= frame.tree.size:
                raise missing(f"trace leaf {leaf}")
            return frame.value(leaf)

        return binary(await in_frame(share, task, i, j, path, data), budget, share, chunk)


def _run_store(catalog: Catalog, task: int) -> RunStore:
    run_store = catalog.run_store(task)
    if run_store is None:
        raise missing(f"task {task}")
    return run_store


def _with_checkpoint(catalog: Catalog, task: int, number: int) -> RunStore:
    run_store = _run_store(catalog, task)
    if number >= run_store.committed:
        raise missing(f"checkpoint {number}")
    return run_store
