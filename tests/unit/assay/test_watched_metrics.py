"""Metrics are shown only as committed: every false answer of a server is refused."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay.errors import MetricsError
from assay.watching.metrics import Committed, points_of
from protocol.commitments import segment_tree, state_root, tensor_root
from protocol.node.http_client import Body
from protocol.tasks.bundles import BundleError
from protocol.tasks.bundles.sources import FileSource
from protocol.tasks.task import Terms
from tests.unit.node.servers import answers, serving

TERMS = cast(Terms, SimpleNamespace(segments=4, segment_steps=5, state_tensors=2))
SIZE = 3
"""Number of committed checkpoints. They are the checkpoints 0, 1 and 2; the task's last checkpoint is 4."""
TENSORS = {"loss": 1}


def loss(number: int) -> bytes:
    return struct.pack("<f", 8.0 / (number + 1))


@dataclass
class Served:
    """The files of an honest server, below a folder."""

    folder: Path
    committed: Committed

    def put(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def checkpoint(self, number: int, roots: Sequence[bytes]) -> None:
        # Over HTTP, `checkpoints/N` is a manifest with tensors below it. On disk it cannot be both.
        entries = [{"root": "0x" + root.hex()} for root in roots]
        self.put(f"checkpoints/{number}.json", json.dumps({"tensors": entries}).encode())

    def show(self, number: int, loss: bytes, roots: Sequence[bytes]) -> None:
        self.put(f"checkpoints/{number}/tensors/1", loss)
        self.checkpoint(number, roots)

    @property
    def source(self) -> FileSource:
        return Names(self.folder.as_uri())

    def read(self, checkpoints: Sequence[int] = (1, 2)) -> list[float]:
        points = points_of(self.source, self.committed, TERMS, TENSORS, checkpoints)
        assert [point.step for point in points] == [5 * number for number in checkpoints]
        return [point.values["loss"] for point in points]


class Names(FileSource):
    """Reads the manifest `checkpoints/N` from the file `checkpoints/N.json`."""

    def copy(self, name: str, limit: int, into: Body) -> None:
        parts = name.split("/")
        there = f"{name}.json" if len(parts) == 2 and parts[0] == "checkpoints" else name
        super().copy(there, limit, into)


def tensor_roots(number: int) -> list[bytes]:
    return [tensor_root(bytes([number] * 8)), tensor_root(loss(number))]


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """A server with one more checkpoint than is committed, because the next commitment is not mined yet."""
    states = [state_root(tensor_roots(number)) for number in range(SIZE + 1)]
    made = Served(tmp_path, Committed(segment_tree(states[:SIZE]).root, SIZE))
    made.put("segments", b"".join(states))
    for number in range(SIZE + 1):
        made.checkpoint(number, tensor_roots(number))
        made.put(f"checkpoints/{number}/tensors/1", loss(number))
    return made


def test_what_was_committed_is_shown(served: Served) -> None:
    assert served.read() == [4.0, pytest.approx(8 / 3)]


LIES: dict[str, Callable[[Served], None]] = {
    "a better loss": lambda s: s.put("checkpoints/2/tensors/1", struct.pack("<f", 0.1)),
    "a loss and its root": lambda s: s.show(2, loss(9), [tensor_roots(2)[0], tensor_root(loss(9))]),
    "another state in the tree": lambda s: s.put(
        "segments", b"".join(state_root(tensor_roots(number)) for number in (0, 1, 3))
    ),
    "states of another segment": lambda s: s.show(2, loss(1), tensor_roots(1)),
    "fewer checkpoints than committed": lambda s: s.put("segments", state_root(tensor_roots(0))),
    "no checkpoints": lambda s: s.put("segments", b""),
    "half a root": lambda s: s.put("segments", bytes(80)),
    "too few tensors": lambda s: s.checkpoint(2, tensor_roots(2)[:1]),
    "too many tensors": lambda s: s.checkpoint(2, [*tensor_roots(2), bytes(32)]),
    "no tensors": lambda s: s.checkpoint(2, []),
    "roots of another length": lambda s: s.checkpoint(2, [bytes(31), bytes(33)]),
    "no JSON": lambda s: s.put("checkpoints/2.json", b"\xff\xfe"),
    "JSON of another form": lambda s: s.put("checkpoints/2.json", b'{"tensors": 7}'),
    "JSON without an end": lambda s: s.put("checkpoints/2.json", b"[" * 4_000),
    "a long loss": lambda s: s.put("checkpoints/2/tensors/1", loss(2) + b"\0"),
    "a short loss": lambda s: s.put("checkpoints/2/tensors/1", loss(2)[:3]),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_was_not_committed_is_not_shown(served: Served, lie: str) -> None:
    LIES[lie](served)
    with pytest.raises((MetricsError, BundleError)):
        served.read()


def test_what_is_not_served_is_not_shown(served: Served) -> None:
    (served.folder / "checkpoints/2/tensors/1").unlink()
    assert served.read([1]) == [4.0]
    with pytest.raises(BundleError):
        served.read([2])


WATCHED = """
import sys
from types import SimpleNamespace
import assay.commands  # loads py_ecc, which raises the recursion limit
from assay.errors import MetricsError
from assay.watching.metrics import Committed, read_points
from protocol.node.addresses import Address
from protocol.tasks.bundles import Limits
terms = SimpleNamespace(segments=4, segment_steps=5, state_tensors=128)
committed = Committed(bytes.fromhex(sys.argv[2]), 2)
try:
    read_points(Address.parse(sys.argv[1]), committed, terms, {"loss": 1}, [1], Limits())
except MetricsError as error:
    print(sys.getrecursionlimit(), error)
"""


def test_a_server_that_answers_with_brackets_does_not_end_the_process() -> None:
    """The served roots are the committed ones. The checkpoint's JSON has 100,000 nested brackets, which the
    limit on its size allows.
    """
    states = [bytes([number] * 32) for number in range(2)]
    nested = b'{"tensors":' + b"[" * 100_000

    def answer(connection: socket.socket, target: str) -> None:
        answers(b"".join(states) if target == "/segments" else nested)(connection, target)

    with serving(answer) as server:
        command = [sys.executable, "-c", WATCHED, server.url, segment_tree(states).root.hex()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert server.targets == ["/segments", "/checkpoints/1"]
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("100000 a checkpoint's tensors: expected JSON with their roots")
