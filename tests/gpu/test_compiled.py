"""The PTX that Triton compiles from the kernels. No test here runs it, so no GPU is needed.

The PTX must round only as in arithmetic.md section 2, and multiply int8 on the tensor cores.
"""

from __future__ import annotations

import re

import pytest

from tests.gpu.conftest import ROOT, Interpret, needs_triton

ROUNDED = re.compile(
    r"\b(?:add|sub|mul|fma|mad|div|sqrt|rcp|rsqrt|ex2|lg2|sin|cos|tanh)\.[a-z0-9.]*f(?:16|32|64)\b"
)
EXACT = {f"{operation}.rn.{type_}" for operation in ("add", "sub", "mul") for type_ in ("f32", "f64")}
ALLOWED = EXACT | {"div.rn.f32", "sqrt.rn.f32"}
"""Rounded operations that compiled kernels may use. `.rn` on a product or a sum also forbids the assembler
from fusing the two.
"""

DEVICE = ROOT / "protocol" / "numerics" / "cuda" / "device"
CALLED = {"lists", "scalar"}
"""Modules of functions that only kernels call. In the other modules, a function without a leading underscore
is a kernel.
"""


@needs_triton
@pytest.mark.timeout(600)
def test_every_kernel_is_compiled(compiled: Interpret) -> None:
    kernels = {
        f"{path.stem}.{name}"
        for path in DEVICE.glob("*.py")
        for name in re.findall(r"^@triton\.jit\ndef ([a-z]\w*)", path.read_text(), re.MULTILINE)
        if path.stem not in CALLED
    }
    assert {name.split("[")[0] for name in compiled("assembly", 90)} == kernels


@needs_triton
@pytest.mark.timeout(600)
@pytest.mark.parametrize("capability", [80, 90])
def test_every_operation_is_rounded_once_and_none_flushes_subnormals(
    compiled: Interpret, capability: int
) -> None:
    found = compiled("assembly", capability)
    assert len(found) > 30
    for name, text in found.items():
        assert set(ROUNDED.findall(text)) <= ALLOWED, name
        assert ".ftz" not in text, name
        assert not re.search(r"atom\.[a-z.]*add\.[a-z.]*f(?:16|32|64)", text), name


@needs_triton
def test_products_use_the_tensor_cores_of_int8(compiled: Interpret) -> None:
    products = {name: text for name, text in compiled("assembly", 90).items() if ".product[" in name}
    assert products
    assert all("wgmma.mma_async" in text and ".s32.s8.s8" in text for text in products.values())
