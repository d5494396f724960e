"""Compares a solver's server with static file servers of the same bytes: Starlette's `StaticFiles` under
uvicorn, and nginx if it is on PATH.

Each server is a separate process on loopback. The verifiers' client queries it and competes for the
processor, so the servers' processor time, which excludes the client, is compared too. The data are the
tensors of a small GPT and its optimiser. A file server has each chunk as a separate file, because
`HttpClient` does not request ranges.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from benchmarks.measure import Row, ratio_row, side_by_side
from benchmarks.serving import HOST, process
from examples import gpt
from protocol.commitments import CHUNK, BlobStore
from protocol.commitments.groups import groups
from protocol.execution.replay import HonestExecutor
from protocol.node.addresses import Address, parsed
from protocol.node.database import Identity
from protocol.node.http import free_port
from protocol.node.http_client import HttpClient
from protocol.node.reach import Reach
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, StepProgram, TensorType
from solver.database import Database, Stage
from solver.run_store import RunStore
from verifier.solver_client import Shapes, SolverClient

SHAPE = gpt.Shape(4, 4, 256, 256, dropout=0.0)
"""The shape of a GPT whose weights, with two moments each, have 40 MB."""
TASK = 1
CLIENTS = 8
"""Number of concurrent clients, all from one address. The solver's server reads from at most this many
connections of one address.
"""
CHUNKS = 200
ROUNDS = 9
GOAL = "2x"
SOLVER, STATIC, NGINX = "solver's server", "StaticFiles under uvicorn", "nginx"
NGINX_CONFIG = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
events {{ }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen {host}:{port}; root {folder}/files; }}
}}
"""


class Server(NamedTuple):
    """A server's address, its process id, and whether it serves chunks of a tensor."""

    base: Address
    process: int
    knows_chunks: bool


class Cost(NamedTuple):
    """Wall seconds that the answers took, and processor seconds of the server."""

    seconds: float
    computed: float


Question = tuple[Address, dict[str, str], int]
"""One request: its address, its parameters, and the number of bytes expected in the answer."""


def rows() -> list[Row]:
    """Rows for whole tensors and single chunks, with one client and several."""
    program = state_program()
    with TemporaryDirectory() as name, serving(Path(name), program) as servers:
        return [row for question in questions(program) for row in _rows(servers, *question)]


def state_program() -> StepProgram:
    """A step whose state is that of a GPT in training. The step is never run; only its state matters."""
    shapes = [tuple(weight.shape) for weight in gpt.make_model(SHAPE).parameters()]
    b = Builder("state")
    tensors = [b.input(TensorType(DType.F32, shape)) for shape in shapes for _ in range(3)]
    for tensor in tensors:
        b.output(b.add(tensor, tensor))
    names = tuple(f"tensor.{k}" for k in range(len(tensors)))
    return StepProgram(b.build(), names, datasets=0, constants=0)


def questions(program: StepProgram) -> Iterator[tuple[str, Callable[[Server], None], int, int]]:
    """Workloads. Each has a description, an action, the number of requests, and the number of bytes in the
    answers.
    """
    sizes = [type_.nbytes for type_ in program.state_types]
    shapes, total = Shapes(program, 1, 1), sum(sizes)
    tensors = f"{len(sizes)} tensors of {total / 1e6:.0f} MB"
    asked = len(groups(sizes))
    yield f"{tensors} in {asked} groups, one client", partial(_checkpoint, shapes), asked, total
    yield f"{CHUNKS} chunks at random, one client", partial(_drawn, sizes, 1), CHUNKS, CHUNKS * CHUNK
    yield (
        f"{tensors}, {CLIENTS} clients each",
        partial(_tensors, sizes),
        CLIENTS * len(sizes),
        CLIENTS * total,
    )
    yield (
        f"{CHUNKS} chunks at random, {CLIENTS} clients",
        partial(_drawn, sizes, CLIENTS),
        CHUNKS,
        CHUNKS * CHUNK,
    )


def _rows(
    servers: dict[str, Server], what: str, ask: Callable[[Server], None], requests: int, size: int
) -> Iterator[Row]:
    costs: dict[str, list[Cost]] = {name: [] for name in servers}

    def asked(name: str) -> None:
        before, start = processor_seconds(servers[name].process), time.perf_counter()
        ask(servers[name])
        seconds = time.perf_counter() - start
        costs[name].append(Cost(seconds, processor_seconds(servers[name].process) - before))

    ours, *others = [partial(asked, name) for name in servers]
    names = [name for name in servers if name != SOLVER]
    for name, ratios in side_by_side(ours, dict(zip(names, others, strict=True)), ROUNDS).items():
        yield ratio_row(f"{what}: {SOLVER} / {name}, time", ratios, GOAL)
        computed, reference = (sum(cost.computed for cost in costs[one][1:]) for one in (SOLVER, name))
        yield Row("of it processor time of the servers", f"{computed / reference:.2f}x", "")
    for name, found in costs.items():
        seconds = median(cost.seconds for cost in found[1:])
        yield Row(
            f"{what}: {name}", f"{requests / seconds:.0f} requests/s, {size / seconds / 1e6:.1f} MB/s", ""
        )


def processor_seconds(number: int) -> float:
    """Processor seconds of all threads of a process (Linux: the clock of clock_getcpuclockid)."""
    return time.clock_gettime(~number << 3 | 2)


def _checkpoint(shapes: Shapes, server: Server) -> None:
    """Fetch all groups of tensors one after another, as a verifier does."""
    client = SolverClient(server.base, TASK, shapes, patience=60.0, reach=Reach())
    assert client.checkpoint(0) is not None


def _tensors(sizes: Sequence[int], server: Server) -> None:
    """Fetch all tensors with each of several concurrent clients, which start at different tensors."""
    each = len(sizes) // CLIENTS
    whole = [(_tensor(server, k), dict[str, str](), size) for k, size in enumerate(sizes)]
    asyncio.run(_at_once([whole[n * each :] + whole[: n * each] for n in range(CLIENTS)]))


def _drawn(sizes: Sequence[int], clients: int, server: Server) -> None:
    """Fetch random chunks, divided among several clients."""
    asked: list[Question] = []
    for k, at in drawn(sizes):
        due = min(CHUNK, sizes[k] - at * CHUNK)
        if server.knows_chunks:
            asked.append((_tensor(server, k), {"chunk": f"{at}:{at + 1}"}, due))
        else:
            asked.append((server.base / f"chunks/{k}/{at}", {}, due))
    asyncio.run(_at_once([asked[n::clients] for n in range(clients)]))


def _tensor(server: Server, k: int) -> Address:
    return server.base / f"tasks/{TASK}/checkpoints/0/tensors/{k}"


def drawn(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of a tensor's number and the number of a chunk in this tensor, drawn uniformly from all chunks.
    Every call draws the same pairs.
    """
    draw, every = random.Random(0), [-(-size // CHUNK) for size in sizes]
    tensors = draw.choices(range(len(sizes)), every, k=CHUNKS)
    return [(k, draw.randrange(every[k])) for k in tensors]


async def _at_once(each: Sequence[Sequence[Question]]) -> None:
    async def ask(asked: Sequence[Question]) -> None:
        async with HttpClient() as client:
            for address, parameters, due in asked:
                data = bytearray()
                await client.get(address, due, data, parameters)
                assert len(data) == due

    await asyncio.gather(*map(ask, each))


@contextmanager
def serving(folder: Path, program: StepProgram) -> Iterator[dict[str, Server]]:
    """Start servers of the same run store, and yield them by name. The solver's server comes first."""
    run_store = kept(folder, program)
    draw = torch.Generator().manual_seed(1)
    types = dict(zip(program.state, program.state_types, strict=True))
    run_store.append({name: torch.randn(type_.shape, generator=draw) for name, type_ in types.items()})
    run_store.commit(1)
    sizes = [type_.nbytes for type_ in types.values()]
    for k in range(len(sizes)):
        _write(folder / f"files/tasks/{TASK}/checkpoints/0/tensors/{k}", run_store.tensor(0, k))
    for g in range(len(run_store.groups)):
        _write(folder / f"files/tasks/{TASK}/checkpoints/0/groups/{g}", run_store.group(0, g))
    for k, at in drawn(sizes):
        _write(folder / f"files/chunks/{k}/{at}", run_store.tensor(0, k)[at * CHUNK : (at + 1) * CHUNK])
    ours = [sys.executable, "-m", "benchmarks.chunks"]
    with ExitStack() as stack:
        found = {
            SOLVER: stack.enter_context(_served([*ours, "solver", str(folder)], knows_chunks=True)),
            STATIC: stack.enter_context(_served([*ours, "static", str(folder / "files")])),
        }
        if (nginx := shutil.which("nginx")) is not None:
            port = free_port(HOST)
            config = folder / "nginx.conf"
            config.write_text(NGINX_CONFIG.format(folder=folder, host=HOST, port=port))
            command = [nginx, "-p", str(folder), "-e", "stderr", "-c", str(config)]
            found[NGINX] = stack.enter_context(_listening(command, port))
        yield found


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@contextmanager
def _served(command: list[str], knows_chunks: bool = False) -> Iterator[Server]:
    port = free_port(HOST)
    with _listening([*command, str(port)], port, knows_chunks) as server:
        yield server


@contextmanager
def _listening(command: list[str], port: int, knows_chunks: bool = False) -> Iterator[Server]:
    """Start a server and wait until it accepts connections."""
    base = parsed(f"http://{HOST}:{port}")
    assert base is not None
    with process(command, {}) as number:
        while not _is_up(port):
            time.sleep(0.1)
        yield Server(base, number, knows_chunks)


def _is_up(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port)):
        return True
    return False


def kept(folder: Path, program: StepProgram) -> RunStore:
    """The run store in a folder."""
    database = Database(folder / "solver.sqlite", Identity("", "", ""))
    if database.task(TASK) is None:
        database.put(TASK, Stage.TRAINING)
    executor = HonestExecutor(program, (), Interpreter())
    store = BlobStore(folder / "blobs")
    return RunStore(TASK, program, lambda: ((), executor), 1, 1, database, store)


def serve_solver(folder: Path, port: int) -> None:
    """Serve a run store forever, as a solver does."""
    from protocol.execution.turns import Turns
    from protocol.node.serving import Serving
    from solver.catalog import Catalog
    from solver.metrics import Metrics
    from solver.server import application

    catalog = Catalog(folder / "bundles", Metrics(), Turns())
    catalog.put(kept(folder, state_program()))
    with Serving(application(catalog), HOST, port):
        signal.pause()


def serve_files(folder: Path, port: int) -> None:
    """Serve a folder forever."""
    import uvicorn
    from starlette.staticfiles import StaticFiles

    uvicorn.run(StaticFiles(directory=folder), host=HOST, port=port, access_log=False, log_level="error")


if __name__ == "__main__":
    {"solver": serve_solver, "static": serve_files}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
