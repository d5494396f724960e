"""A bundle with non-canonical bytes: a NaN other than the canonical one, or a bool of 2 (encoding.md section
1).

Its roots match the terms. But a party that runs the step reads and writes 0x7fc00000 and 1 instead. So an
honest solver's `input` values, or its first state, would differ from what the terms commit to, and the
submitter would win a game about an edge or the step tree. Therefore fetching refuses such a bundle.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from protocol.commitments import BlobStore
from protocol.commitments.tensors import Tensor
from protocol.numerics.types import DType
from protocol.program import Builder, StepProgram, TensorType
from protocol.tasks.bundles import Bundle, BundleMismatch, Limits, fetch_bundle, load_bundle, write_bundle

ROW = TensorType(DType.F32, (3,))
FLAGS = TensorType(DType.BOOL, (3,))
ONES = bytes.fromhex("0000803f") * 3
OTHER_NAN = bytes.fromhex("0000803f0000c0ff0000803f")
NAN = bytes.fromhex("0000803f0000c07f0000803f")


def bundle(state: bytes = ONES, data: bytes = ONES, flags: bytes = b"\x01\x00\x01") -> Bundle:
    b = Builder("step")
    weights, row, mask = b.input(ROW), b.input(ROW), b.input(FLAGS)
    b.output(b.select(mask, b.add(weights, row), weights))
    return Bundle(
        "hostile",
        StepProgram(b.build(), ("weights",), datasets=1, constants=1),
        (Tensor("weights", int(DType.F32), (3,), state),),
        (Tensor("row", int(DType.F32), (3,), data),),
        (Tensor("mask", int(DType.BOOL), (3,), flags),),
    )


@pytest.mark.parametrize(
    ("hostile", "name"),
    [
        (bundle(state=OTHER_NAN), "weights"),
        (bundle(data=OTHER_NAN), "row"),
        (bundle(flags=b"\x01\x00\x02"), "mask"),
    ],
    ids=["state", "dataset", "constant"],
)
def test_a_bundle_that_no_honest_run_can_begin_with_is_refused(
    hostile: Bundle, name: str, tmp_path: Path
) -> None:
    hash_ = write_bundle(hostile, tmp_path / "bundle")
    limits = replace(Limits(), allowed=(tmp_path.as_uri(),))
    with pytest.raises(BundleMismatch, match=f"canonical bytes of tensor {name}"):
        fetch_bundle((tmp_path / "bundle").as_uri(), hash_, BlobStore(tmp_path / "store"), limits)


def test_the_canonical_nan_is_a_value_like_any_other(tmp_path: Path) -> None:
    made = bundle(state=NAN, data=NAN)
    write_bundle(made, tmp_path / "bundle")
    back = load_bundle(tmp_path / "bundle")
    assert back.step.constants_root(back.fixed()) == made.constants_tree.root
    assert back.step.state_root(back.initial_state()) == made.state_tree.root
