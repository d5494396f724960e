"""Accepted datasets (tensors, numpy arrays, mapped files, items) and how the objective sees them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from protocol.capture import CaptureError, capture
from protocol.capture.inputs.dataset import committed, example_batch

ROWS = 6
X = torch.arange(ROWS * 2.0).reshape(ROWS, 2) / 4


class Items(Dataset[Any]):
    """A dataset of the given items."""

    def __init__(self, *items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: int) -> Any:
        return self._items[number]


class Noisy(Dataset[Any]):
    """A dataset whose items are augmented when they are read."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> Any:
        return {"x": number + torch.rand(2), "y": number}


class Reusing(Dataset[Any]):
    """A dataset that writes every item into the same memory, with noise."""

    def __init__(self) -> None:
        self._memory = torch.zeros(2)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> Any:
        self._memory[...] = number + torch.rand(2)
        return {"x": self._memory}


class Normalising(Dataset[Any]):
    """A dataset that normalises an item in place each time the item is read, so that the dataset's memory changes."""

    def __init__(self) -> None:
        self._rows = torch.ones(3, 2)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> Any:
        row = self._rows[number]
        row -= 0.25
        return {"x": row}


class Table:
    """A table with columns by name, like a data frame."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, name: str) -> Any:
        raise KeyError(name)


def refused(dataset: Any) -> str:
    with pytest.raises(CaptureError) as raised:
        committed(dataset)
    return str(raised.value)


@pytest.mark.parametrize(
    ("given", "kept", "seen"),
    [
        (torch.float32, torch.float32, torch.float32),
        (torch.float16, torch.float32, torch.float32),
        (torch.bfloat16, torch.float32, torch.float32),
        (torch.uint8, torch.uint8, torch.uint8),
        (torch.int8, torch.int32, torch.int64),
        (torch.int16, torch.int32, torch.int64),
        (torch.uint16, torch.int32, torch.int64),
        (torch.int32, torch.int32, torch.int64),
        (torch.int64, torch.int32, torch.int64),
        (torch.bool, torch.bool, torch.bool),
    ],
)
def test_types(given: torch.dtype, kept: torch.dtype, seen: torch.dtype) -> None:
    x = torch.tensor([[1, 0], [0, 1], [1, 1]]).to(given)
    arrays: dict[str, Any] = {"x": x}
    if given is not torch.bfloat16:
        arrays |= {"array": x.numpy(), "swapped": x.numpy().astype(x.numpy().dtype.newbyteorder(">"))}
    data = committed(arrays)
    for t in data.values():
        assert t.dtype is kept
        assert torch.equal(t.to(torch.int64), x.to(torch.int64))
    assert {t.dtype for t in example_batch(data, 2).values()} == {seen}


def test_what_is_committed_is_a_copy() -> None:
    array, t = X.clone().numpy(), X.clone()
    data = committed({"array": array, "t": t})
    array[0, 0] = t[0, 0] = 7
    assert float(data["array"][0, 0]) == float(data["t"][0, 0]) == 0


def test_whole_numbers_in_a_column_of_floats_are_taken() -> None:
    assert committed(Items({"y": 0.5}, {"y": 3}))["y"].tolist() == [0.5, 3.0]
    assert "of type int64" in refused(Items({"y": 0.5}, {"y": (1 << 24) + 1}))


def test_items_with_nan_are_the_same_when_they_are_read_again() -> None:
    data = committed(Items({"x": [float("nan"), 1.0]}, {"x": [2.0, 3.0]}))
    assert data["x"][:, 1].tolist() == [1.0, 3.0]


def test_datasets_of_items() -> None:
    whole = {"x": X, "y": torch.arange(ROWS, dtype=torch.int32)}
    items = [{"x": row, "y": number} for number, row in enumerate(X.tolist())]
    for dataset in (
        Items(*items),
        Items(*[{"x": np.array(one["x"], np.float32), "y": one["y"]} for one in items]),
    ):
        data = committed(dataset)
        assert data.keys() == whole.keys()
        assert all(torch.equal(data[name], whole[name]) for name in whole)
    by_place = committed(TensorDataset(X, whole["y"]))
    assert torch.equal(by_place["0"], X)
    assert torch.equal(by_place["1"], whole["y"])


@pytest.mark.parametrize(
    ("dataset", "what", "remedy"),
    [
        (
            Items({"x": [1.0]}, {"x": [1.0, 2.0]}),
            "item 1 of the dataset has 'x' of shape (2,), in the first item (1,)",
            "add a mask",
        ),
        (
            Items({"y": 1}, {"y": 0.5}),
            "item 1 of the dataset has 'y' of type float32, in the first item int64",
            "one type in all items",
        ),
        (
            Reusing(),
            "item 0 of the dataset has other values of 'x' when it is read again",
            "in the objective",
        ),
        (
            Normalising(),
            "item 0 of the dataset has other values of 'x' when it is read again",
            "in the objective",
        ),
        (Noisy(), "item 0 of the dataset has other values of 'x' when it is read again", "in the objective"),
        (Items({"x": 1.0}, {"y": 1.0}), "item 1 of the dataset has y, the first one x", "the same names"),
        (Items({"x": "text"}), "item 0 of the dataset has 'x' of type str", "numbers"),
        (Items({"x": None}), "'x' of type NoneType", "numbers"),
        (Items(torch.ones(2)), "item 0 of the dataset is of type Tensor", "dicts or tuples"),
        (Items(), "the dataset is empty", "at least one"),
        (Table(), "item 0 of the dataset raises KeyError: 0", "a table's columns by name"),
        ({"x": X.double()}, "dataset tensor x is torch.float64", "convert it"),
        ({"x": np.ones((2, 2), np.complex64)}, "dataset tensor x is torch.complex64", "convert it"),
        ({"x": np.array([object()])}, "dataset tensor 'x' is of type ndarray", "torch.from_numpy"),
        (X.numpy(), "the dataset is of type ndarray", "by name"),
    ],
)
def test_what_cannot_be_committed_is_refused(dataset: Any, what: str, remedy: str) -> None:
    said = refused(dataset)
    assert what in said
    assert remedy in said


class Masked(nn.Module):
    """Scales the columns by trained weights and ignores masked elements."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Adds `half` to the scaled elements, and returns the mean over all elements. Where `counts` is
        False, 0 is used in place of the scaled element.
        """
        assert batch["counts"].dtype is torch.bool
        assert batch["half"].dtype is torch.float32
        return (torch.where(batch["counts"], batch["x"] * self.w, 0.0) + batch["half"]).mean()


def test_bools_and_halves_reach_the_objective() -> None:
    model = Masked()
    counts = torch.tensor([[True, False]] * ROWS).numpy()
    data = {"x": X.numpy(), "counts": counts, "half": X.half()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = capture(model, lambda m, b: m(b), optimizer, data, batch_size=ROWS, steps=2)
    state = step.step(step.initial_state(0))
    assert float(state["w"][0]) < 1.0
    assert float(state["w"][1]) == 1.0


def mapped(folder: Path, array: np.ndarray[Any, Any], mode: Any = "r") -> np.memmap[Any, Any]:
    """The array, mapped from a file."""
    file = folder / "array.bin"
    array.tofile(file)
    return np.memmap(file, array.dtype, mode=mode, shape=array.shape)


def test_what_is_mapped_for_reading_is_not_copied(tmp_path: Path) -> None:
    array = mapped(tmp_path, X.numpy())
    assert committed({"x": array})["x"].data_ptr() == array.ctypes.data


@pytest.mark.parametrize("case", ["writable", "int64", "nan", "columns"])
def test_other_maps_are_copied(tmp_path: Path, case: str) -> None:
    given = {"int64": X.long().numpy(), "nan": X.numpy() * np.float32(np.nan)}.get(case, X.numpy())
    array = mapped(tmp_path, given, "r+" if case == "writable" else "r")
    seen = array.T if case == "columns" else array
    data = committed({"x": seen})["x"]
    assert not array.ctypes.data <= data.data_ptr() < array.ctypes.data + array.nbytes
    if case == "nan":
        assert data.view(torch.int32).unique().tolist() == [0x7FC00000]


LARGER_THAN_MEMORY = """
import resource, sys, threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
import numpy as np, torch
from torch import nn
from protocol.capture import capture
from protocol.commitments import tensor_tree
from protocol.dispute import defender
from protocol.dispute.openings import open_chunk
from protocol.dispute.view import Demand, DemandedNode, GameView, Phase, TreeKind
from protocol.program.execute import Interpreter
from protocol.program.opcodes import Op
from protocol.commitments import BlobStore
from protocol.tasks.bundles import Bundle, fetch_bundle, write_bundle

rows, folder = int(sys.argv[1]), Path(sys.argv[2])
pixels = np.memmap(folder / "pixels.bin", np.uint8, mode="r", shape=(rows, 1024))
model = nn.Linear(1024, 1)
torch.set_num_threads(1)
nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()  # what torch itself takes, taken
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) << 10
most = used + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
step = capture(
    model, lambda m, b: m(b["pixels"].float() / 255).square().mean(), optimizer, {"pixels": pixels},
    batch_size=8, steps=4, replacement=False, preflight=True,
)
name = write_bundle(Bundle.of("large", step, step.initial_state(1)), folder / "bundle")
files = partial(SimpleHTTPRequestHandler, directory=folder / "bundle")
files.func.log_message = lambda *_: None
server = ThreadingHTTPServer(("127.0.0.1", 0), files)
threading.Thread(target=server.serve_forever, daemon=True).start()
bundle = fetch_bundle(f"http://127.0.0.1:{server.server_port}", name, BlobStore(folder / "fetched"))
again = bundle.step.step(bundle.initial_state(), bundle.fixed(), Interpreter())
ours = step.step(step.initial_state(1))
assert all(torch.equal(ours[name], t) for name, t in again.items())
assert bundle.step.constants_root(bundle.fixed()) == bundle.constants_tree.root
trace = bundle.step.trace(bundle.initial_state(), bundle.fixed())
draw = next(one for one in trace.program.instructions if one.op is Op.GATHER)
leaf = draw.operands[0].leaf
assert tensor_tree(trace.value(leaf)).root == trace.root(leaf) == bundle.dataset[0].root
assert open_chunk(0, 5, trace.value(leaf)).data == bytes(1024)
nodes = (DemandedNode(0, rows, trace.root(leaf)), DemandedNode(5, 1, tensor_tree(trace.value(leaf)).node(5, 1)))
demand = Demand(TreeKind.VALUE, trace.root(leaf), rows, 1024 * rows, nodes, (0, 1))
roots = (trace.tree.root,)
game = GameView(1, 1, "", Phase.FRAME, b"", b"", 2, segment=1, step=1, frame_roots=roots, demand=demand)
class Ours:
    def frame(self, segment, step):
        return trace
inner, outer = defender.moves(game, Ours())
assert (len(inner.arguments[-1]), outer.arguments[-1]) == (16, bytes(1024))
try:
    bytearray(2 * int(sys.argv[3]))
except MemoryError:
    print("right")
"""


def in_little_memory(folder: Path, data: int, most: int) -> str:
    """Train on `data` bytes in a process that may allocate `most` bytes once torch is loaded; returns its
    output.
    """
    rows = data // 1024
    with (folder / "pixels.bin").open("wb") as file:
        file.truncate(rows * 1024)
    command = [sys.executable, "-c", LARGER_THAN_MEMORY, str(rows), str(folder), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    return done.stdout + done.stderr[-2000:]


def test_data_may_be_larger_than_the_memory_that_there_is(tmp_path: Path) -> None:
    assert in_little_memory(tmp_path, 384 << 20, 192 << 20) == "right\n"


@pytest.mark.heavy
@pytest.mark.timeout(1000)
def test_three_gibibytes_in_two(tmp_path: Path) -> None:
    assert in_little_memory(tmp_path, 3 << 30, 2 << 30) == "right\n"
