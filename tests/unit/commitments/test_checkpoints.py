"""Checkpoints load as they were saved; damaged, malformed and oversized ones are refused."""

from __future__ import annotations

import json
import os
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol.commitments import (
    BlobStore,
    BlobTooLarge,
    CheckpointError,
    CorruptBlob,
    MissingBlob,
    state_root,
    tensor_root,
)
from protocol.commitments.checkpoints import (
    Piece,
    Stored,
    load_checkpoint,
    save_checkpoint,
    write_state,
)
from protocol.commitments.states import Checkpoint
from protocol.commitments.tensors import DTYPES, Tensor, is_canonical, tensor_bytes

RNG = np.random.default_rng(7)
ARRAYS: dict[str, NDArray[Any]] = {
    "layers.0.weight": RNG.standard_normal((64, 33)).astype(np.float32),
    "step": np.array(12, np.int64),
    "tokens": RNG.integers(0, 255, (2, 3, 5), np.uint8),
    "index": RNG.integers(-9, 9, (4,), np.int32),
    "key": np.array([1, 2**32 - 1], np.uint32),
    "mask": np.array([[True, False]]),
}


def checkpoint() -> Checkpoint:
    return Checkpoint([Tensor.from_array(name, array) for name, array in ARRAYS.items()])


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path: Path) -> None:
    saved = checkpoint()
    name = save_checkpoint(BlobStore(tmp_path), saved)
    loaded = load_checkpoint(BlobStore(tmp_path), name, state_root=saved.state_root)
    assert loaded.tensors == saved.tensors
    assert loaded.state_root == saved.state_root
    for tensor, (key, array) in zip(loaded.tensors, ARRAYS.items(), strict=True):
        assert tensor.name == key
        assert tensor.array().dtype == array.dtype
        np.testing.assert_array_equal(tensor.array(), array)
    assert save_checkpoint(BlobStore(tmp_path), checkpoint()) == name


def test_the_state_root_is_over_tensor_roots_in_order() -> None:
    roots = [tensor_root(array.tobytes()) for array in ARRAYS.values()]
    assert checkpoint().state_root == state_root(roots)
    assert [tree.root for tree in checkpoint().trees] == roots


def test_a_tensors_root_is_computed_once_and_goes_with_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = Tensor.from_array("layers.0.weight", ARRAYS["layers.0.weight"])
    assert tensor.root == tensor_root(tensor.data)
    monkeypatch.setattr("protocol.commitments.tensors.tensor_root", None)
    assert tensor.renamed("flat", (64 * 33,)).root == tensor.root


def test_nans_become_canonical_and_nothing_else_changes() -> None:
    bits = np.array([0xFFC00001, 0x7F800001, 0x7FC00000, 0x80000000, 1, 0xFF800000], np.uint32)
    source = bits.view(np.float32).copy()
    stored = np.frombuffer(Tensor.from_array("x", source).data, np.uint32)
    assert stored.tolist() == [0x7FC00000] * 3 + [0x80000000, 1, 0xFF800000]
    assert source.view(np.uint32).tolist() == bits.tolist(), "the caller's array is not written to"
    assert Tensor.from_array("x", source[0].reshape(())).data == (0x7FC00000).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("dtype", "data", "canonical"),
    [
        (0, "0000803f0000c07f000080ff", True),
        (0, "0000803f0100c07f", False),
        (0, "0100807f0000803f", False),
        (0, "0000c0ff0000c07f", False),
        (2, "0100c07f", True),
        (1, "ff02", True),
        (5, "0001", True),
        (5, "000102", False),
    ],
)
def test_nans_and_bools_have_one_form(dtype: int, data: str, canonical: bool) -> None:
    assert is_canonical(dtype, bytes.fromhex(data)) == canonical


def test_layout_and_byte_order_do_not_matter() -> None:
    array = ARRAYS["layers.0.weight"]
    plain = Tensor.from_array("w", array)
    assert Tensor.from_array("w", np.asfortranarray(array)) == plain
    assert Tensor.from_array("w", array.astype(">f4")) == plain


def test_a_bool_is_true_where_its_byte_is_not_zero() -> None:
    assert Tensor("m", 5, (3,), b"\x00\x01\x02").array().tolist() == [False, True, True]


def test_type_codes_are_those_of_the_arithmetic() -> None:
    from protocol.numerics.types import DType

    assert {code: name for code, (name, _) in DTYPES.items()} == {int(t): t.name.lower() for t in DType}
    assert all(tensor_bytes(t, (3,)) == 3 * t.itemsize for t in DType)


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"),
    [
        (0, (2, 2), 15),
        (0, (2, 2), 17),
        (0, (), 0),
        (6, (1,), 1),
        (0, (0,), 0),
        (0, (-1, -1), 4),
        (1, (1,) * 9, 1),
    ],
)
def test_a_tensor_whose_bytes_do_not_fit_is_refused(dtype: int, shape: tuple[int, ...], nbytes: int) -> None:
    with pytest.raises(CheckpointError):
        Tensor("x", dtype, shape, bytes(nbytes))


@pytest.mark.parametrize(
    ("largest", "larger"),
    [
        ((1 << 20, 1 << 20), ((1 << 20) + 1, 1 << 20)),
        (((1 << 31) - 1,), (1 << 31,)),
        ((1,) * 8, (1,) * 9),
    ],
    ids=["bytes", "dimension", "rank"],
)
def test_a_tensor_beyond_a_limit_is_refused(largest: tuple[int, ...], larger: tuple[int, ...]) -> None:
    assert tensor_bytes(1, largest) == prod(largest)
    with pytest.raises(CheckpointError, match="tensor shape"):
        tensor_bytes(1, larger)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int16, np.complex64])
def test_a_type_outside_the_arithmetic_is_refused(dtype: type) -> None:
    with pytest.raises(CheckpointError, match="expected one of f32, u8, i32, u32, i64, bool"):
        Tensor.from_array("x", np.zeros(2, dtype))


def test_names_are_distinct_and_present() -> None:
    one = Tensor.from_array("x", np.zeros(1, np.float32))
    for tensors in ([], [one, one]):
        with pytest.raises(CheckpointError, match="distinct names"):
            Checkpoint(tensors)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\ud800", "x" * 201])
def test_a_name_that_cannot_be_printed_safely_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="rename the tensor"):
        save_checkpoint(BlobStore(tmp_path), Checkpoint([Tensor.from_array(name, np.zeros(1, np.float32))]))


def test_an_entry_has_no_room_for_other_attributes() -> None:
    """An entry has no `__dict__`, because the manifest of a large state has many thousands of entries."""
    assert not hasattr(Stored("w", 0, (1,), bytes(32), "b"), "__dict__")


def test_a_damaged_tensor_is_refused_by_file(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    name = save_checkpoint(store, checkpoint())
    entry = json.loads(store.get(name))["tensors"][0]
    path = tmp_path / entry["blob"][:2] / entry["blob"]
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBlob, match=str(path)):
        load_checkpoint(store, name)
    path.unlink()
    with pytest.raises(MissingBlob):
        load_checkpoint(store, name)


def test_another_state_is_refused_before_its_tensors_are_read(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    name = save_checkpoint(store, checkpoint())
    for entry in json.loads(store.get(name))["tensors"]:
        (tmp_path / entry["blob"][:2] / entry["blob"]).unlink()
    with pytest.raises(CheckpointError, match="state root of checkpoint"):
        load_checkpoint(store, name, state_root=bytes(32))


def test_a_checkpoint_over_the_limit_is_refused_before_its_tensors_are_read(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    with pytest.raises(BlobTooLarge, match="at most 100 bytes"):
        load_checkpoint(store, save_checkpoint(store, checkpoint()), max_bytes=100)


def test_a_checkpoint_of_more_than_64_gib_needs_a_higher_limit(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    manifest = json.loads(store.get(save_checkpoint(store, checkpoint())))
    manifest["tensors"][0]["shape"] = [1 << 14, 1 << 20]
    with pytest.raises(BlobTooLarge, match=f"at most {64 << 30} bytes"):
        load_checkpoint(store, store.put(json.dumps(manifest).encode()))


MALFORMED: dict[str, Any] = {
    "not JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "nothing": b"",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "version": lambda m: m.update(version=2),
    "version as text": lambda m: m.update(version="1"),
    "format": lambda m: m.update(format="other"),
    "extra key": lambda m: m.update(extra=1),
    "no tensors": lambda m: m.update(tensors=[]),
    "missing key": lambda m: m.pop("state_root"),
    "root not hex": lambda m: m.update(state_root="0x" + "0" * 62),
    "dtype": lambda m: m["tensors"][0].update(dtype="f64"),
    "path as blob": lambda m: m["tensors"][0].update(blob="../../etc/passwd"),
    "name": lambda m: m["tensors"][0].update(name="\x1b[2J"),
    "same name twice": lambda m: m["tensors"].append(m["tensors"][0]),
    "float dimension": lambda m: m["tensors"][0].update(shape=[64.0, 33]),
    "bool dimension": lambda m: m["tensors"][0].update(shape=[True, 33]),
    "negative dimensions": lambda m: m["tensors"][0].update(shape=[-64, -33]),
    "huge dimension": lambda m: m["tensors"][0].update(shape=[10**30]),
    "another shape": lambda m: m["tensors"][0].update(shape=[64, 34]),
    "another order": lambda m: m["tensors"].reverse(),
    "tensor root": lambda m: m["tensors"][0].update(root="0" * 64),
    "state root": lambda m: m.update(state_root="0" * 64),
}


@pytest.mark.parametrize("damage", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_manifest_is_refused(tmp_path: Path, damage: Any) -> None:
    store = BlobStore(tmp_path)
    if isinstance(damage, bytes):
        text = damage
    else:
        manifest = json.loads(store.get(save_checkpoint(store, checkpoint())))
        damage(manifest)
        text = json.dumps(manifest).encode()
    with pytest.raises(CheckpointError):
        load_checkpoint(store, store.put(text))


@pytest.mark.parametrize("failing", range(len(ARRAYS) + 1))
def test_a_save_that_fails_at_any_write_names_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Each tensor takes one rename, then the manifest takes one.

    Whichever rename fails, no manifest exists, and saving again works.
    """
    store = BlobStore(tmp_path / "store")
    name = save_checkpoint(BlobStore(tmp_path / "elsewhere"), checkpoint())
    real, calls = os.replace, iter(range(100))

    def replace(source: str, target: Path) -> None:
        if next(calls) == failing:
            raise OSError("disk full")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(OSError, match="disk full"):
            save_checkpoint(store, checkpoint())
    assert not store.has(name)
    assert save_checkpoint(store, checkpoint()) == name
    assert load_checkpoint(store, name).tensors == checkpoint().tensors


def pieces(seen: list[str] | None = None) -> list[Piece]:
    """The state of `checkpoint()` as pieces. The bytes of each tensor are made on request, and its name is
    then added to `seen`, if given.
    """

    def data(tensor: Tensor) -> bytes:
        if seen is not None:
            seen.append(tensor.name)
        return bytes(tensor.data)

    return [Piece(t.name, t.dtype, t.shape, partial(data, t)) for t in checkpoint().tensors]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_state_written_by_pieces_is_the_checkpoint(tmp_path: Path, threads: int) -> None:
    seen: list[str] = []
    written = write_state(BlobStore(tmp_path / "a"), pieces(seen), threads)
    assert written.state_root == checkpoint().state_root
    assert written.manifest == save_checkpoint(BlobStore(tmp_path / "b"), checkpoint())
    loaded = load_checkpoint(BlobStore(tmp_path / "a"), written.manifest, state_root=written.state_root)
    assert loaded.tensors == checkpoint().tensors
    assert sorted(seen) == sorted(ARRAYS)


def test_pieces_that_are_no_state_are_refused_and_leave_no_manifest(tmp_path: Path) -> None:
    good = pieces()
    for wrong, words in (
        ([], "at least one tensor"),
        ([*good, good[0]], "7 tensors, 6 names"),
        ([*good, Piece("more", 0, (3,), lambda: bytes(11))], "expected 12 bytes for f32"),
        ([*good, Piece("a b", 0, (3,), lambda: bytes(12))], "tensor name"),
    ):
        with pytest.raises(CheckpointError, match=words):
            write_state(BlobStore(tmp_path), wrong, 2)
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"assay-checkpoint" in data for data in kept)
