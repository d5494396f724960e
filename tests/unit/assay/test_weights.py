"""Files of weights are compared with the roots of a state's tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from assay.errors import WeightsMalformed, WeightsMismatch
from assay.proofs import METADATA
from assay.weights import TYPES, Weights, compare, embedded_proof
from protocol.commitments.tensors import DTYPES, Tensor
from protocol.tasks.bundles.manifest import TensorEntry

ARRAYS: dict[str, NDArray[Any]] = {
    "f32": np.array([[1.5, -0.0, np.nan]], np.float32),
    "u8": np.arange(5, dtype=np.uint8),
    "i32": np.array(-7, np.int32),
    "u32": np.array([2**32 - 1], np.uint32),
    "i64": np.arange(300, dtype=np.int64).reshape(3, 100),
    "bool": np.array([True, False]),
}
TENSORS = [Tensor.from_array(name, array) for name, array in ARRAYS.items()]
STATE = [
    TensorEntry(
        name=tensor.name,
        dtype=DTYPES[tensor.dtype][0],  # type: ignore[arg-type]
        shape=list(tensor.shape),
        root=tensor.root.hex(),
        blob="0" * 64,
    )
    for tensor in TENSORS
]
ROOTS = [tensor.root for tensor in TENSORS]


def test_every_type_is_compared_by_its_bytes(tmp_path: Path) -> None:
    assert TYPES.keys() == ARRAYS.keys() == {name for name, _ in DTYPES.values()}
    file = tmp_path / "all.safetensors"
    save_file(ARRAYS, file)
    assert compare(file, STATE, ROOTS) == Weights(6, ())
    save_file({"i64": ARRAYS["i64"]}, file)
    assert compare(file, STATE, ROOTS) == Weights(1, ("f32", "u8", "i32", "u32", "bool"))


def test_another_nan_and_another_true_are_other_bytes(tmp_path: Path) -> None:
    file = tmp_path / "other.safetensors"
    other = ARRAYS["f32"].copy()
    other.view(np.uint32)[0, 2] = 0x7FC00001
    save_file({"f32": other}, file)
    with pytest.raises(WeightsMismatch, match="f32 with root"):
        compare(file, STATE, ROOTS)
    save_file({"bool": ARRAYS["bool"]}, file)
    data = bytearray(file.read_bytes())
    data[-2] = 2
    file.write_bytes(data)
    with pytest.raises(WeightsMismatch, match="bool with root"):
        compare(file, STATE, ROOTS)


def test_tensors_of_one_form_may_not_change_places(tmp_path: Path) -> None:
    file = tmp_path / "swapped.safetensors"
    state = [
        entry.model_copy(update={"name": name}) for entry, name in zip([STATE[1]] * 2, "ab", strict=True)
    ]
    arrays = {"a": ARRAYS["u8"], "b": ARRAYS["u8"][::-1].copy()}
    roots = [Tensor.from_array(name, array).root for name, array in arrays.items()]
    save_file(arrays, file)
    assert compare(file, state, roots).tensors == 2
    save_file({"a": arrays["b"], "b": arrays["a"]}, file)
    with pytest.raises(WeightsMismatch):
        compare(file, state, roots)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"\xff" * 64, (1 << 40).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"{]"],
)
def test_what_is_no_safetensors_file_is_one_clear_error(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "none.safetensors"
    file.write_bytes(data)
    with pytest.raises(WeightsMalformed, match="expected a readable safetensors file"):
        compare(file, STATE, ROOTS)
    with pytest.raises(WeightsMalformed):
        embedded_proof(tmp_path)
    with pytest.raises(WeightsMalformed):
        embedded_proof(tmp_path / "nowhere")


def test_an_embedded_proof_is_read_and_its_absence_is_told(tmp_path: Path) -> None:
    file = tmp_path / "state.safetensors"
    save_file({"u8": ARRAYS["u8"]}, file)
    assert embedded_proof(file) is None
    save_file({"u8": ARRAYS["u8"]}, file, {METADATA: "{…}"})
    assert embedded_proof(file) == "{…}"
