"""Bits of the Triton kernels without a GPU: numpy runs every operation of a kernel.

This shows that the kernels follow the arithmetic. `test_compiled` checks the code to which the kernels are
compiled. `test_cuda` checks the kernels' bits on a GPU.
"""

from __future__ import annotations

import pytest
import torch

from protocol.commitments import tensor_root
from protocol.numerics.cuda import generate, hashing, launch
from protocol.numerics.cuda.fused import CudaFused
from protocol.numerics.kernels import fused_self_test
from protocol.numerics.kernels.fused_digests import DIGESTS
from protocol.numerics.types import DType, to_bytes
from protocol.program.library.lanes import BLOCKS
from tests.gpu.conftest import Interpret, needs_triton
from tests.gpu.interpreted import by_library


def test_the_lists_are_those_of_elementary() -> None:
    assert generate.FILE.read_text() == generate.source()


def test_the_digests_that_only_cuda_has_are_those_of_the_plain_functions() -> None:
    table, other = fused_self_test.numbers(3), fused_self_test.numbers(4)
    assert fused_self_test.digest(by_library("log_softmax", table)) == DIGESTS["log_softmax"]
    assert fused_self_test.digest(by_library("log_softmax_grad", table, other)) == DIGESTS["log_softmax_grad"]


@needs_triton
def test_functions_of_elements_and_rows_pass_their_self_test(interpret: Interpret) -> None:
    assert interpret("functions") == DIGESTS


@needs_triton
def test_rows_longer_than_a_block(interpret: Interpret) -> None:
    found = interpret("rows")
    assert len(found) == 5
    assert all(found)


@needs_triton
@pytest.mark.parametrize("block", BLOCKS)
def test_lanes(interpret: Interpret, block: int) -> None:
    found = interpret("lanes", block)
    assert len(found) == 33
    assert [name for name, same in found.items() if not same] == []


@needs_triton
@pytest.mark.parametrize("px", [13, 20])
@pytest.mark.parametrize("py", [13, 20])
def test_products(interpret: Interpret, px: int, py: int) -> None:
    assert interpret("products", px, py) == [None] * 6


@needs_triton
def test_products_of_batches(interpret: Interpret) -> None:
    found = interpret("batches")
    assert len(found) == 5
    assert all(found)


@needs_triton
def test_slices_beyond_2_to_the_31_bytes(interpret: Interpret) -> None:
    assert interpret("planes") is True


@needs_triton
def test_columns(interpret: Interpret) -> None:
    assert interpret("columns") == [True] * 4


def test_no_launch_uses_the_axes_that_end_at_65_535(monkeypatch: pytest.MonkeyPatch) -> None:
    # A step on CUDA sums a gradient over its units as one block of as many columns as it has elements.
    grids: list[tuple[int, ...]] = []
    monkeypatch.setattr(launch, "start", lambda _module, _kernel, grid, *_, **__: grids.append(grid))
    CudaFused().sum_columns(torch.zeros(2, 5_000_000))
    assert len(grids) == 3
    assert all(len(grid) == 1 for grid in grids)


@needs_triton
def test_roots(interpret: Interpret) -> None:
    assert interpret("roots") == [True] * 4


def test_the_plain_hash_that_roots_are_compared_with_is_the_commitments() -> None:
    x = torch.arange(3 * 256 + 1, dtype=torch.float32)
    data = to_bytes(x, DType.F32)
    assert hashing._by_hashlib(data) == tensor_root(data)
