"""`python -m tests.gpu.interpreted FUNCTION [JSON …]`: run a function of this module for a test; print JSON.

Triton decides at its import whether it interprets kernels, so a test cannot switch to interpreting in its own
process.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any
from unittest import mock

import torch

from protocol.commitments import tensor_root
from protocol.numerics.contract import contract as right_contract
from protocol.numerics.cuda import hashing, launch
from protocol.numerics.cuda.fused import CudaFused
from protocol.numerics.cuda.product import TritonInt8
from protocol.numerics.kernels import fused_self_test
from protocol.numerics.kernels.self_test import failure_of_class
from protocol.numerics.kernels.shape_classes import Layout, Order, ProductCall, ShapeClass
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType, to_bytes
from protocol.program.library import CATALOGUE
from protocol.program.library import lanes as library_lanes
from protocol.program.library.function import Attribute
from tests.gpu.lane_calls import calls

CPU = torch.device("cpu")
ROWS, COLUMNS = Layout(Order.TERMS, True, False), Layout(Order.ROWS, True, False)
APART = Layout(Order.APART, False, True)
CASES = (
    ProductCall(1, 1, 1, 1, ROWS, ROWS, True, (False, False), False, 1),
    ProductCall(18, 35, 130, 1, COLUMNS, ROWS, False, (False, True), True, 1),
    ProductCall(5, 3, 200, 2, APART, ROWS, False, (True, False), False, 1),
    ProductCall(5, 3, 200, 1, ROWS, COLUMNS, True, (False, False), False, 1),
    ProductCall(3, 18, 300, 1, ROWS, COLUMNS, False, (False, False), False, 1),
    ProductCall(2, 3, 2050, 1, ROWS, APART._replace(batched=False), False, (False, False), False, 1),
)
"""Product calls that together cover these cases: more than a tile of 16 in each direction; more terms than a
section of 128; every layout; exponents that are given, and exponents that are not; rows that one program
reads whole, and rows that are too long for that.
"""
BATCHES = (
    ((2, 3, 20, 9), (2, 3, 5, 9)),
    ((4, 1, 6, 70), (1, 5, 3, 70)),
    ((2, 3, 4, 10, 7), (7, 7)),
    ((3, 2, 2, 10, 7), (3, 2, 2, 6, 7)),
)


def functions() -> dict[str, str]:
    """Digests of the fused functions, by name."""
    return fused_self_test.digests_of(CudaFused())


def by_library(name: str, *operands: torch.Tensor, **attributes: Attribute) -> torch.Tensor:
    """The first result of a library function, computed on the CPU."""
    return CATALOGUE[name].kernel(attributes)(operands)[0]


def rows() -> list[bool]:
    """For each comparison, whether a fused function that works on rows, such as softmax, gives the same bits
    as the plain function. Some of the rows fit into a block, others are longer.
    """
    f = CudaFused()
    wide = torch.sin(torch.arange(3 * 2500, dtype=torch.float32)).reshape(3, 2500) * 9
    wide[1, 7] = -math.inf
    table, other = fused_self_test.numbers(3), fused_self_test.numbers(4)
    pairs = [
        (f.softmax(wide, False), by_library("softmax", wide, safe=False)),
        (f.sum_rows(wide), sum_f32(wide)),
        *((f.log_softmax(x), by_library("log_softmax", x)) for x in (wide, table)),
        (f.log_softmax_grad(table, other), by_library("log_softmax_grad", table, other)),
    ]
    return [torch.equal(a.view(torch.int32), b.view(torch.int32)) for a, b in pairs]


def lanes(block: int) -> dict[str, bool]:
    """Whether each call of `lane_calls` has the plain functions' bits, by the call's name. No call may copy a
    value back to the CPU.
    """
    found = {}
    for call in calls(block):
        run = CATALOGUE[call.function].kernel(call.attributes)
        with mock.patch.object(library_lanes, "fused_for", return_value=None):
            right = run(call.operands)
        with (
            mock.patch.object(library_lanes, "fused_for", return_value=CudaFused()),
            mock.patch.object(torch.Tensor, "item", side_effect=AssertionError("read back")),
        ):
            made = run(call.operands)
        found[call.name] = [bits(x) for x in made] == [bits(x) for x in right]
    return found


def bits(x: torch.Tensor) -> bytes:
    """A tensor's bytes, not made canonical."""
    return x.contiguous().numpy().tobytes()


def products(px: int, py: int) -> list[str | None]:
    """For each of `CASES`, what is wrong with the product of px by py bits; None if it is right."""
    kernel = TritonInt8(lambda *_: (16, 16), 128)
    return [failure_of_class(kernel, CPU, ShapeClass(call, px, py)) for call in CASES]


def batches() -> list[bool]:
    """Whether products are right for batches that broadcast, and for permuted operands."""
    kernel, given = TritonInt8(lambda *_: (16, 16)), torch.Generator().manual_seed(1)
    found = []
    for left, right in BATCHES:
        x, y = torch.randn(left, generator=given), torch.randn(right, generator=given)
        found.append(torch.equal(kernel.contract(x, y, 13, 20), right_contract(x, y, 13, 20)))
    x = torch.randn(2, 20, 3, 9, generator=given).transpose(1, 2)
    return [*found, torch.equal(kernel.contract(x, x, 20, 20), right_contract(x, x, 20, 20))]


def planes() -> bool:
    """Whether a product is right if its slices begin 2^30 + 64 bytes apart, so that the last slice begins
    beyond 2^31. Only the first bytes of each slice are touched.
    """
    x = torch.randn(1, 18, 70, generator=torch.Generator().manual_seed(1))
    plane, padded, p = (1 << 30) + 64, 128, 20
    slices, exponents = torch.empty(3 * plane, dtype=torch.int8), torch.empty(18, dtype=torch.int32)
    out = torch.empty(18, 18)
    sizes, strides = (18, 70, padded, plane), (1, 0, 0, 70, 1)
    kind = {"COUNT": 3, "INTEGERS": False, "GIVEN": False, "WHOLE": True}
    launch.start(
        "product", "slice_rows", (1,), x, exponents, slices, *sizes, *strides, p, **kind, ROWS=32, BLOCK=128
    )
    operands = (slices, slices, exponents, exponents, exponents, out)
    numbers = (18, 18, padded, plane, plane, 0, 0, 2 * p)
    flags = dict.fromkeys(("INTEGERS", "BIAS", "GIVEN_X", "GIVEN_Y"), False)
    tile = {"SECTION": 0, "BM": 16, "BN": 16, "BK": 64}
    launch.start("product", "product", (4,), *operands, *numbers, X=3, Y=3, **flags, **tile)
    return torch.equal(out, right_contract(x[0], x[0], p, p))


def columns() -> list[bool]:
    """For each of several tables, whether the sums of its columns are right. Some tables have several blocks
    of rows and columns, and one has a single row.
    """
    table, given = fused_self_test.numbers(3), torch.Generator().manual_seed(1)
    wide = [torch.randn(shape, generator=given) for shape in ((70, 130), (1, 200), (33, 1))]
    f = CudaFused()
    return [bits(f.sum_columns(x)) == bits(sum_f32(x, axis=0)) for x in (table, *wide)]


def roots() -> list[bool]:
    """For each of four tensors, whether its root is right: f32 with a partial last chunk and a non-canonical
    NaN; bytes; bools; one element with stride 0.
    """
    x = torch.arange(600, dtype=torch.float32)
    x[3] = torch.tensor(-1, dtype=torch.int32).view(torch.float32)
    few = [(x, DType.F32), (torch.arange(7).to(torch.uint8), DType.U8), (torch.arange(3) == 1, DType.BOOL)]
    few.append((torch.tensor(-5).expand(1), DType.I64))
    found = []
    for value, dtype in few:
        words = hashing.root_words(value, dtype).numpy().astype(">i4").tobytes()
        found.append(words == tensor_root(to_bytes(value, dtype)))
    return found


def assembly(capability: int) -> dict[str, str]:
    """PTX of every kernel for a compute capability, by kernel and constants. This includes the code for sizes
    of 1, which Triton treats as constants.
    """
    f, product = CudaFused(), TritonInt8()
    one, whole = torch.zeros(1, 1), torch.zeros(2, 3, 1, dtype=torch.int32)
    with launch.compiled_only(capability) as found:
        for run in fused_self_test.TESTS.values():
            run(f)
        f.log_softmax(torch.zeros(3, 70))
        f.log_softmax_grad(torch.zeros(3, 70), torch.zeros(3, 70))
        f.layer_norm(one, None, None, 1e-5)
        f.softmax(one, True)
        f.softmax_grad(one, one)
        f.layer_norm_grad(one, one, one, one, None)
        f.layer_norm_grad_gain(one, one, one, one)
        product.contract(one, one, 13, 20)
        for rows in (1, 3):  # too long for a tile of whole rows
            product.contract(torch.zeros(rows, 2050), torch.zeros(rows, 2050), 13, 20)
        product.dot(whole, whole, 20, 13)
        for px in (13, 20):
            for py in (13, 20):
                product.contract(torch.zeros(200, 128), torch.zeros(70, 128), px, py, bias=torch.zeros(70))
        hashing.root_words(torch.zeros(300), DType.F32)
    return {name: stages["ptx"] for name, stages in found.items()}


if __name__ == "__main__":
    result: Any = globals()[sys.argv[1]](*map(json.loads, sys.argv[2:]))
    print(json.dumps(result))
