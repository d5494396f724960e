"""Files that `assay.data.read` refuses: each error names the file, and the array, column or row."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from assay import data
from assay.errors import DataError, PackageMissing

X = np.arange(6, dtype=np.float32)


def npy(array: Any, *, allow_pickle: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=allow_pickle)
    return out.getvalue()


def written(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def archive(members: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", packing) as file:
            for name, content in members.items():
                file.writestr(name, content)

    return write


def damaged(packing: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        archive({"x.npy": npy(np.random.default_rng(0).random(999))}, packing)(path)
        content = bytearray(path.read_bytes())
        content[4000:4010] = bytes(10)
        path.write_bytes(content)

    return write


def header_says(shape: tuple[int, ...]) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return out.getvalue() + bytes(24)


def columns(**arrays: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(arrays), path)


def tensors(content: dict[str, Any]) -> Callable[[Path], None]:
    return lambda path: save_file(content, path)


def bfloat(path: Path) -> None:
    header = json.dumps({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


def dataset(state: Any, **files: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.mkdir()
        (path / "state.json").write_text(state if isinstance(state, str) else json.dumps(state))
        for name, content in files.items():
            (path / f"{name}.arrow").write_bytes(content)

    return write


def splits(path: Path) -> None:
    path.mkdir()
    (path / "dataset_dict.json").write_text("{}")
    for split in ("train", "test"):
        dataset({})(path / split)


def different(path: Path) -> None:
    path.mkdir()
    columns(x=[1, 2], y=[1, 2])(path / "a.parquet")
    columns(x=[1.5, 2])(path / "b.parquet")


def other_types(path: Path) -> None:
    path.mkdir()
    columns(x=[1, 2])(path / "a.parquet")
    columns(x=[1.5, 2])(path / "b.parquet")


class Evil:
    """An object that would end the process if it were unpickled."""

    def __reduce__(self) -> Any:
        return exit, (1,)


OBJECTS = np.array([Evil(), None], dtype=object)
ZEROS = archive({"x.npy": npy(np.zeros(10_000_000, np.uint8))}, zipfile.ZIP_DEFLATED)
NULLS = pa.array([[1.0, 2.0], [3.0, None]])

CASES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "suffix": ("x.csv", written(b"a,b\n1,2\n"), r"x\.csv: expected \.npz, .*, got suffix '\.csv'"),
    "no suffix": ("x", written(b"1"), "got suffix ''"),
    "missing": ("x.npz", lambda _path: None, "got no such file"),
    "empty": ("x.npz", written(b""), "got an empty file"),
    "empty folder": ("x", Path.mkdir, "got a folder without such files"),
    "folder with a suffix": ("x.npz", Path.mkdir, "got a folder without such files"),
    "pickle": ("x.npy", written(pickle.dumps([1])), "a file that numpy.save wrote, got ValueError"),
    "objects": (
        "x.npy",
        written(npy(OBJECTS, allow_pickle=True)),
        "'x': .* got Python objects, which only pickle",
    ),
    "objects in npz": (
        "x.npz",
        archive({"a.npy": npy(OBJECTS, allow_pickle=True)}),
        "'a': .* got Python objects",
    ),
    "strings": ("x.npy", written(npy(["a", "b"])), "got <U1"),
    "complex": ("x.npy", written(npy([1j])), "got complex128"),
    "dates": ("x.npy", written(npy(np.array(["2026-01-01"], "M8[D]"))), r"got datetime64\[D\]"),
    "records": ("x.npy", written(npy(np.zeros(2, "i4,f4"))), "got .*'f0'"),
    "scalar": ("x.npy", written(npy(np.float32(1))), r"got shape \(\)"),
    "no rows": ("x.npy", written(npy(np.zeros((0, 3)))), r"got shape \(0, 3\)"),
    "cut": ("x.npy", written(npy(X)[:-1]), r"24 bytes, as its header says with shape \(6,\), got 23"),
    "more behind": ("x.npy", written(npy(X) + npy(X)), "got 176"),
    "declares much": ("x.npy", written(header_says((1 << 50,))), "expected 4,503,599,627,370,496 bytes"),
    "negative": ("x.npy", written(header_says((-2, -3))), "got 24"),
    "npz declares much": (
        "x.npz",
        archive({"x.npy": header_says((1 << 50,))}, zipfile.ZIP_DEFLATED),
        "expected 4,503,599,627,370,496 bytes",
    ),
    "bools": ("x.npy", written(npy(np.array([True, False]))[:-1] + b"\x02"), "got a byte 2"),
    "no archive": ("x.npz", written(npy(X)), "a file that numpy.savez wrote, got BadZipFile"),
    "damaged": ("x.npz", damaged(zipfile.ZIP_DEFLATED), "savez wrote, got (BadZipFile|error)"),
    "no arrays": ("x.npz", archive({}), "expected at least one array, got none"),
    "no array": ("x.npz", archive({"x.txt": b"some text"}), "savez wrote, got ValueError"),
    "bomb": ("x.npz", ZEROS, "at most 1,000,000 bytes when unpacked, got 10,000,128"),
    "rows": (
        "x.npz",
        archive({"a.npy": npy(X), "b.npy": npy(X[1:])}),
        "'b': expected 6 rows, as 'a' has, got 5",
    ),
    "no safetensors": (
        "x.safetensors",
        written(b"0" * 50),
        "expected a safetensors file, got SafetensorError",
    ),
    "no tensor": ("x.safetensors", tensors({}), "got none"),
    "bfloat16": ("x.safetensors", bfloat, "'x': expected one of BOOL, .*, got BF16"),
    "no parquet": ("x.parquet", written(b"0" * 50), "expected a Parquet file, got ArrowInvalid"),
    "text column": (
        "x.parquet",
        columns(a=[1], b=["s"], c=[["s"]]),
        r"column 'b', 'c': .* got string, list<element: string>; .*columns=\['a'\]",
    ),
    "time": (
        "x.parquet",
        columns(t=pa.array([1], pa.timestamp("s"))),
        r"'t': .* got timestamp\[ms\]; write columns of",
    ),
    "nulls": (
        "x.parquet",
        columns(a=[1, 2, None]),
        r"'a', row 2: expected a number, got null \(1 of 3 are\)",
    ),
    "nulls in lists": ("x.parquet", columns(a=NULLS), "'a', row 1: expected a number, got null"),
    "uneven lists": (
        "x.parquet",
        columns(a=[[1, 2], [3]]),
        "'a', row 1: expected lists of 2, .*, got a list of 1",
    ),
    "uneven in lists": (
        "x.parquet",
        columns(a=[[[1], [2]], [[3], [4, 5]]]),
        "'a', row 1: expected lists of 1",
    ),
    "empty lists": (
        "x.parquet",
        columns(a=pa.array([[], []], pa.list_(pa.int8()))),
        "row 0: expected lists with",
    ),
    "large table": ("x.parquet", columns(a=np.zeros(10_000_000, np.int8)), "at most 1,000,000 bytes"),
    "no rows of a table": (
        "x.parquet",
        columns(a=pa.array([], pa.int8())),
        r"'a': expected rows with elements",
    ),
    "columns differ": ("x", different, r"b\.parquet: expected an array 'y', got 'x'"),
    "types differ": (
        "x",
        other_types,
        r"b\.parquet, column 'x': expected int64, as in files before, got float64",
    ),
    "state": (
        "x",
        dataset("{"),
        r"state\.json: expected the state of a dataset .* got ValueError: Invalid JSON",
    ),
    "no files": ("x", dataset({"_data_files": []}), "got no file"),
    "elsewhere": ("x", dataset({"_data_files": [{"filename": "../a"}]}), "got a name that lies elsewhere"),
    "file is missing": (
        "x",
        dataset({"_data_files": [{"filename": "a.arrow"}]}),
        r"a\.arrow: .*no such file",
    ),
    "no stream": (
        "x",
        dataset({"_data_files": [{"filename": "a.arrow"}]}, a=b"0" * 50),
        "a stream of Arrow, got",
    ),
    "indices": (
        "x",
        dataset({"_data_files": [{"filename": "a"}], "_indices_data_files": [{"filename": "b"}]}),
        "flatten_indices",
    ),
    "splits": ("x", splits, "expected one dataset, got a folder of datasets: test, train"),
}


@pytest.mark.parametrize(("name", "write", "said"), CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, name: str, write: Callable[[Path], None], said: str) -> None:
    path = tmp_path / name
    write(path)
    with pytest.raises(DataError, match=said) as caught:
        data.read(path, most=1_000_000)
    assert str(tmp_path) in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"columns": ["y"]}, r"expected an array 'y', got 'x'; choose"),
        ({"columns": "x"}, r"expected a list of names, got 'x'"),
        ({"columns": []}, r"expected a list of names, got \[\]"),
        ({"most": 0}, "most: expected a whole number from 1 on, got 0"),
    ],
)
def test_arguments_are_refused(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DataError, match=said):
        data.read(tmp_path / "x.npy", **arguments)


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns(x=[1])(tmp_path / "x.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(PackageMissing, match=r"pip install 'assay\[data\]'"):
        data.read(tmp_path / "x.parquet")
