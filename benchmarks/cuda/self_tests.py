"""Results of each kernel's self-test on the device. In a dry run, Triton interprets its kernels on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from benchmarks.cuda.cells import Cells
from protocol.commitments import tensor_root
from protocol.numerics.cuda import hashing, launch
from protocol.numerics.cuda.fused import CudaFused
from protocol.numerics.cuda.product import CudaIntMM, TritonInt8
from protocol.numerics.kernels import fused_self_test
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.kernels.float64 import Float64
from protocol.numerics.kernels.fused_digests import DIGESTS
from protocol.numerics.kernels.int8 import Int8
from protocol.numerics.kernels.self_test import failure_of_class, failure_of_widths
from protocol.numerics.kernels.shape_classes import Layout, Order, ProductCall, ShapeClass
from protocol.numerics.self_check import self_check
from protocol.numerics.types import DType, to_bytes

KERNELS: dict[str, ProductKernel] = {
    "int8-triton": TritonInt8(),
    "int8-mm": CudaIntMM(),
    "float64": Float64(),
}
DRY: dict[str, ProductKernel] = {
    "int8-triton": TritonInt8(lambda *_: (16, 16), 128),
    "int8-mm": Int8(),
    "float64": Float64(),
}
WIDTHS = ((13, 13), (20, 13), (13, 20), (20, 20))
COUNTS = (1, 255, 256, 257, 100_003)
FEW = ProductCall(
    *(5, 3, 200, 2),
    Layout(Order.APART, False, True),
    Layout(Order.TERMS, True, False),
    *(False, (True, False), False, 1),
)
"""A small call for dry runs, because the interpreter takes seconds per tile. The elements of one operand are
apart in memory; the other operand is dense.
"""
MODULES = ("elements", "lanes", "product", "rows", "sha256")


def products(device: torch.device, name: str) -> Cells:
    """Cells of the product kernel `name`. The cell of a pair of widths holds the failure that the self-test
    found, or null if it found none.
    """
    dry = device.type == "cpu"
    kernel = (DRY if dry else KERNELS)[name]
    yield "available", partial(kernel.available, device)
    for px, py in WIDTHS:
        find = partial(failure_of_widths, kernel, device, px, py)
        if dry and name == "int8-triton":
            find = partial(failure_of_class, kernel, device, ShapeClass(FEW, px, py))
        yield f"{px} x {py}", partial(_wrong, find)
    if not dry:
        yield "registers", registers


def functions(device: torch.device) -> Cells:
    """A cell for the device's self-check, on CUDA a cell for the registers, and a cell for each function. A
    function's cell compares the digest of the function's results with the expected digest.
    """
    yield "self-check", partial(self_check, device)
    placed = _Placed(CudaFused(), device)
    for name, run in fused_self_test.TESTS.items():
        yield name, partial(_wrong, partial(_digest_wrong, name, run, placed))
    if device.type == "cuda":
        yield "registers", registers


def _digest_wrong(name: str, run: Callable[[Any], Tensor | tuple[Tensor, ...]], placed: object) -> str | None:
    found = fused_self_test.digest(run(placed))
    return None if found == DIGESTS[name] else f"expected digest {DIGESTS[name]}, got {found}"


def roots(device: torch.device) -> Cells:
    """Cells that compare tensor roots computed on the device with those that `protocol.commitments` computes
    on the CPU.
    """
    for count in COUNTS[: 2 if device.type == "cpu" else None]:
        yield f"{count} elements", partial(_wrong, partial(_root_wrong, device, count))


def _root_wrong(device: torch.device, count: int) -> str | None:
    x = torch.sin(torch.arange(count, dtype=torch.float32))
    found = hashing.root_words(x.to(device), DType.F32).cpu().numpy().astype(">i4").tobytes()
    expected = tensor_root(to_bytes(x, DType.F32))
    return None if found == expected else f"expected root {expected.hex()}, got {found.hex()}"


def _wrong(find: Callable[[], str | None]) -> dict[str, str | None]:
    return {"wrong": find()}


def registers() -> list[dict[str, object]]:
    """Registers, spills and shared memory of every kernel compiled in this process, from Triton's caches."""
    found: list[dict[str, object]] = []
    for module in MODULES:
        for name, function in vars(launch.code(module)).items():
            for cache in getattr(function, "device_caches", {}).values():
                for kernel in cache[0].values():
                    sizes = {"registers": kernel.n_regs, "spills": kernel.n_spills}
                    shared = kernel.metadata.shared
                    found.append({"kernel": f"{module}.{name}", **sizes, "shared": shared})
    return found


class _Placed:
    """Moves operands to the device before each function runs, because self-tests make them on the CPU."""

    def __init__(self, functions: CudaFused, device: torch.device) -> None:
        self._functions, self._device = functions, device

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def run(*operands: Any) -> Any:
            moved = tree_map_only(Tensor, lambda x: x.to(self._device), operands)
            return getattr(self._functions, name)(*moved)

        return run
