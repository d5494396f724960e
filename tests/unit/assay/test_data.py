"""Data read from files equals the arrays that were written, is mapped where possible, and is captured like
those arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from torch import Tensor, nn

from assay import data
from protocol.capture import CapturedStep, capture
from protocol.capture.inputs.dataset import committed

Arrays = dict[str, np.ndarray[Any, Any]]
ROWS = 12
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((ROWS, 4)).astype(np.float32)
Y = RANDOM.integers(0, 3, ROWS)
PIXELS = RANDOM.integers(0, 256, (ROWS, 2, 3), np.uint8)
MASK = RANDOM.integers(0, 2, (ROWS, 5)).astype(np.bool_)
ARRAYS: Arrays = {"x": X, "y": Y, "pixels": PIXELS, "mask": MASK}


def table(arrays: Arrays, rows: slice = slice(None)) -> pa.Table:
    """A table with a column for each array. Axes after the first become nested lists; the lists of `x` have
    a fixed size.
    """
    columns = {name: pa.array(array[rows].tolist(), kind(array)) for name, array in arrays.items()}
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(arrays["x"][rows].reshape(-1)), arrays["x"].shape[1])
    return pa.table({**columns, "x": fixed})


def kind(array: np.ndarray[Any, Any]) -> pa.DataType:
    found = pa.from_numpy_dtype(array.dtype)
    for _ in array.shape[1:]:
        found = pa.list_(found)
    return found


def parquet_folder(folder: Path, arrays: Arrays) -> Path:
    (folder / "parts").mkdir()
    for number, rows in enumerate((slice(0, 5), slice(5, ROWS))):
        pq.write_table(table(arrays, rows), folder / "parts" / f"{number}.parquet", row_group_size=2)
    (folder / "parts" / "README.md").write_text("other files are left out")
    return folder / "parts"


def saved(folder: Path, arrays: Arrays) -> Path:
    """Write the arrays in the layout of `Dataset.save_to_disk` of `datasets` 4."""
    names = [f"data-0000{number}-of-00002.arrow" for number in range(2)]
    for name, rows in zip(names, (slice(0, 5), slice(5, ROWS)), strict=True):
        part = table(arrays, rows)
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, part.schema) as stream:
            stream.write_table(part, max_chunksize=3)
    state = {"_data_files": [{"filename": name} for name in names], "_format_type": None, "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def one_parquet(folder: Path, arrays: Arrays) -> Path:
    pq.write_table(table(arrays), folder / "data.parquet")
    return folder / "data.parquet"


def npz(folder: Path, arrays: Arrays) -> Path:
    np.savez(folder / "data.npz", allow_pickle=False, **arrays)
    return folder / "data.npz"


def packed_npz(folder: Path, arrays: Arrays) -> Path:
    np.savez_compressed(folder / "data.npz", allow_pickle=False, **arrays)
    return folder / "data.npz"


def safetensors(folder: Path, arrays: Arrays) -> Path:
    save_file(dict(arrays), folder / "data.safetensors")
    return folder / "data.safetensors"


WRITERS: list[Callable[[Path, Arrays], Path]] = [
    *(npz, packed_npz, safetensors, one_parquet, parquet_folder, saved)
]


@pytest.mark.parametrize("write", WRITERS)
def test_what_was_written_is_read(tmp_path: Path, write: Callable[[Path, Arrays], Path]) -> None:
    found = data.read(write(tmp_path, ARRAYS))
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("write", WRITERS)
def test_columns_are_chosen(tmp_path: Path, write: Callable[[Path, Arrays], Path]) -> None:
    assert list(data.read(write(tmp_path, ARRAYS), columns=["y", "mask"])) == ["y", "mask"]


@pytest.mark.parametrize("write", WRITERS)
def test_a_capture_of_what_is_read_is_that_of_the_arrays(
    tmp_path: Path, write: Callable[[Path, Arrays], Path]
) -> None:
    read = captured(data.read(write(tmp_path, ARRAYS), columns=["x", "y"]))
    ours = captured({"x": X, "y": Y})
    assert {name: t.tolist() for name, t in read.dataset.items()} == {
        name: t.tolist() for name, t in ours.dataset.items()
    }
    assert read.step_program.constants_root(read.fixed) == ours.step_program.constants_root(ours.fixed)
    state, same = (one.step(one.initial_state(1)) for one in (read, ours))
    assert read.step_program.state_root(state) == ours.step_program.state_root(same)


def captured(dataset: Arrays) -> CapturedStep:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return capture(model, objective, optimizer, dataset, batch_size=4, steps=2)


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch["x"]), batch["y"])


@pytest.mark.parametrize(
    ("write", "names"),
    [
        (npz, ["pixels", "mask"]),  # one byte per element, so always aligned
        (safetensors, ["x", "pixels", "mask"]),
    ],
)
def test_what_is_mapped_is_not_copied(
    tmp_path: Path, write: Callable[[Path, Arrays], Path], names: list[str]
) -> None:
    found = data.read(write(tmp_path, ARRAYS))
    tensors = committed({name: found[name] for name in names})
    for name in names:
        assert isinstance(found[name], np.memmap)
        assert tensors[name].data_ptr() == found[name].ctypes.data


@pytest.mark.parametrize(
    "array", [X, np.asfortranarray(X), X.astype(">f4"), Y], ids=["c", "f", "big", "int64"]
)
def test_npy_is_mapped(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    np.save(tmp_path / "data.npy", array)
    found = data.read(tmp_path / "data.npy")
    assert isinstance(found["x"], np.memmap)
    assert found["x"].mode == "r"
    np.testing.assert_array_equal(found["x"], array)
    assert torch.equal(committed(found)["x"].double(), torch.from_numpy(array.astype(np.float64)))


def test_what_lies_beside_its_alignment_is_copied(tmp_path: Path) -> None:
    arrays = {"x" * length: X for length in range(1, 5)}
    np.savez(tmp_path / "data.npz", allow_pickle=False, **arrays)
    found = data.read(tmp_path / "data.npz")
    assert {type(array) for array in found.values()} == {np.memmap, np.ndarray}
    for array in found.values():
        assert array.flags.aligned
        np.testing.assert_array_equal(array, X)


def test_tensors_of_arrow_keep_their_shape(tmp_path: Path) -> None:
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(PIXELS)
    pq.write_table(pa.table({"pixels": column}), tmp_path / "data.parquet")
    np.testing.assert_array_equal(data.read(tmp_path / "data.parquet")["pixels"], PIXELS)
