"""In a bundle, tensors with equal bytes are read once and shared. Initial states are fresh in each run."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from protocol.commitments import BlobStore, tensor_root
from protocol.commitments.tensors import Tensor, is_canonical
from protocol.numerics.types import DType, from_bytes, to_bytes
from protocol.program import Builder, StepProgram, TensorType
from protocol.tasks.bundles import Bundle, BundleMismatch, load_bundle, write_bundle

ROW, SQUARE = TensorType(DType.F32, (400,)), TensorType(DType.F32, (20, 20))
ZEROS = bytes(1600)


def bundle() -> Bundle:
    b = Builder("step")
    weights, mean, power, data = b.input(ROW), b.input(ROW), b.input(SQUARE), b.input(ROW)
    b.output(b.add(weights, data))
    b.output(b.add(mean, data))
    b.output(b.add(power, power))
    state = (
        Tensor.from_array("weights", np.arange(400, dtype=np.float32)),
        Tensor("mean", int(DType.F32), (400,), ZEROS),
        Tensor("power", int(DType.F32), (20, 20), ZEROS),
    )
    step = StepProgram(b.build(), ("weights", "mean", "power"), datasets=1, constants=0)
    return Bundle("tiny", step, state, (Tensor.from_array("data", np.ones(400, np.float32)),), ())


def test_the_same_bytes_are_read_once_and_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bundle(bundle(), tmp_path)
    asked: Counter[str] = Counter()
    real = BlobStore.map

    def counted(store: BlobStore, blob: str, *, small: int) -> memoryview:
        asked[blob] += 1
        return real(store, blob, small=small)

    monkeypatch.setattr(BlobStore, "map", counted)
    _, mean, power = load_bundle(tmp_path).state
    assert asked[sha256(ZEROS).hexdigest()] == 1
    assert mean.data is power.data
    assert (mean.name, mean.shape, power.name, power.shape) == ("mean", (400,), "power", (20, 20))
    assert mean.root == power.root == tensor_root(ZEROS)


def test_a_false_root_of_bytes_that_another_tensor_has_is_refused(tmp_path: Path) -> None:
    write_bundle(bundle(), tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    manifest["state"][2]["root"] = manifest["state"][0]["root"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleMismatch, match="root of tensor power"):
        load_bundle(tmp_path)


def test_initial_states_are_fresh_and_nothing_in_them_is_shared() -> None:
    made = bundle()
    first, second = made.initial_state(), made.initial_state()
    first["mean"].add_(1)
    first["weights"].add_(1)
    assert not first["power"].any()
    assert not second["mean"].any()
    assert torch.equal(second["weights"], torch.arange(400, dtype=torch.float32))
    assert not any(made.state[1].data)


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("shape", [(), (3,), (1, 5)])
def test_zeros_come_in_every_type_and_shape(dtype: DType, shape: tuple[int, ...]) -> None:
    data = bytes(TensorType(dtype, shape).nbytes)
    zeros = Tensor("zeros", int(dtype), shape, data)
    (found,) = Bundle("zeros", bundle().step, (), (zeros,), ()).fixed()
    due = from_bytes(data, dtype, shape)
    assert (found.dtype, found.shape) == (due.dtype, due.shape)
    assert torch.equal(found, due)


def test_mapped_bools_of_a_dataset_take_no_memory(tmp_path: Path) -> None:
    """Bools of a mapped dataset are used in place, without a copy. A stranger chooses their size, and they
    are kept as long as the task.
    """
    type_ = TensorType(DType.BOOL, (1 << 20,))
    b = Builder("step")
    flags, data = b.input(type_), b.input(type_)
    b.output(b.and_(flags, data))
    ones = bytes([1, 0]) * (1 << 19)
    state = Tensor("flags", int(DType.BOOL), type_.shape, bytes([0, 1]) * (1 << 19))
    dataset = Tensor("data", int(DType.BOOL), type_.shape, ones)
    step = StepProgram(b.build(), ("flags",), datasets=1, constants=0)
    write_bundle(Bundle("flags", step, (state,), (dataset,), ()), tmp_path)
    made = load_bundle(tmp_path)
    (found,), (again,) = made.fixed(), made.fixed()
    mapped = np.frombuffer(made.dataset[0].data, np.uint8)
    assert found.data_ptr() == again.data_ptr() == mapped.ctypes.data
    assert found.dtype is torch.bool
    assert torch.equal(found, from_bytes(ones, DType.BOOL, type_.shape))


def test_a_negative_zero_and_a_late_element_are_no_zeros() -> None:
    late = bytes(1599) + b"\x80"  # -0.0 at the end
    made = Bundle("late", bundle().step, (Tensor("late", int(DType.F32), (400,), late),), (), ())
    assert to_bytes(made.initial_state()["late"], DType.F32) == late


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize(
    "words",
    [
        (0x3F800000, 0x00000001),
        (0x7FC00000, 0x80000000),
        (0x7F800000, 0xFF800000),
        (0x3F800000, 0xFFC00000),
        (0x7F800001, 0x3F800000),
        (0x7FC00001, 0x7FC00000),
        (0x01000100, 0x00010001),
        (0x01000200, 0x00010001),
    ],
    ids=lambda words: "-".join(f"{word:08x}" for word in words),
)
def test_bytes_are_canonical_where_reading_and_writing_leaves_them(
    words: tuple[int, int], dtype: DType
) -> None:
    data = np.array(words, "<u4").tobytes()
    again = to_bytes(from_bytes(data, dtype, (8 // dtype.itemsize,)), dtype)
    assert is_canonical(int(dtype), data) == (again == data)


def test_a_root_is_that_of_the_bytes_under_every_name() -> None:
    tensor = Tensor.from_array("a", np.arange(1000, dtype=np.float32))
    assert tensor.renamed("b", (10, 100)).root == tensor.root == tensor_root(tensor.data)
    assert tensor.renamed("b", (10, 100)).renamed("a", (1000,)) == tensor


def test_a_program_in_use_is_shared_by_the_bundles_that_have_it(tmp_path: Path) -> None:
    write_bundle(bundle(), tmp_path / "a")
    write_bundle(bundle(), tmp_path / "b")
    first, second = load_bundle(tmp_path / "a"), load_bundle(tmp_path / "b")
    assert first.step is second.step


def test_a_program_in_use_does_not_hide_what_a_manifest_gets_wrong(tmp_path: Path) -> None:
    write_bundle(bundle(), tmp_path)
    right = load_bundle(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    manifest["programs"][-1]["id"] = bytes(32).hex()
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleMismatch, match="ids of the bundle's programs"):
        load_bundle(tmp_path)
    assert right.step.program.name == "step"
