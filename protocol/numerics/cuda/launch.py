"""Starts Triton kernels, if Triton is installed. Outside `device`, no other module uses Triton.

No kernel fuses a product and a sum into one rounding (`enable_fp_fusion` is off), and every kernel keeps
subnormals. Under TRITON_INTERPRET=1 Triton runs kernels on the CPU, operation by operation in numpy, so tests
can check their bits without a GPU. `compiled_only` compiles without running, to inspect the code.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

DEVICE = "protocol.numerics.cuda.device"
INTERPRETED = "TRITON_INTERPRET"

Compiled = Mapping[str, Any]
"""Outputs of Triton's compilation stages by name: "ptx" as text, "cubin" as bytes."""

_compiling: list[tuple[Any, dict[str, Compiled]]] = []


@cache
def present() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def runs_on(device: torch.device) -> bool:
    """Whether Triton is installed and its kernels can be started on `device`: a CUDA device, or the CPU while
    Triton interprets.
    """
    return present() and (device.type == "cuda" or (device.type == "cpu" and interprets()))


def interprets() -> bool:
    """Whether Triton runs kernels on the CPU, in numpy. Set TRITON_INTERPRET before Triton is imported."""
    return os.environ.get(INTERPRETED) == "1"


@cache
def code(name: str) -> ModuleType:
    """The module `device/<name>.py`."""
    if interprets():
        _repair_interpreter()
    return importlib.import_module(f"{DEVICE}.{name}")


@cache
def _repair_interpreter() -> None:
    """Let Triton 3.6 interpret loops under numpy 2.5, where int() of a one-element array is an error.

    Triton 3.7 has the same fix.
    """
    from triton.runtime import interpreter

    if not version("triton").startswith("3.6."):
        return
    patch = interpreter._patch_lang_tensor

    def repaired(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    interpreter._patch_lang_tensor = repaired


def start(
    module: str, kernel: str, grid: tuple[int], *arguments: object, warps: int = 4, **constants: Any
) -> None:
    """Run the function `kernel` of device/`module`.py in the current stream. It runs on the device of the
    first tensor among `arguments`.

    Inside `compiled_only`, the function is only compiled. `grid` is the number of programs, all along one
    axis, because CUDA's second and third axes end at 65,535. Tensors are passed as pointers: the caller is
    responsible for shapes and strides. Errors of Triton propagate.
    """
    function = getattr(code(module), kernel)
    if _compiling:
        target, found = _compiling[-1]
        found[f"{module}.{kernel}{sorted(constants.items())} {len(found)}"] = _compile(
            function, target, arguments, warps, constants
        )
        return
    tensor = next(a for a in arguments if isinstance(a, Tensor))
    if tensor.device.type == "cpu":
        with np.errstate(all="ignore"):
            function[grid](*arguments, **constants)
        return
    with torch.cuda.device(tensor.device):
        function[grid](*arguments, **constants, num_warps=warps, enable_fp_fusion=False)


@contextmanager
def compiled_only(capability: int) -> Iterator[dict[str, Compiled]]:
    """Compile kernels for a compute capability (90: Hopper) instead of running them; needs no GPU.

    Yields a dictionary that receives the compiled code, by kernel and constants. Until the context ends,
    functions that start kernels return uninitialised memory.
    """
    from triton.backends.compiler import GPUTarget

    found: dict[str, Compiled] = {}
    _compiling.append((GPUTarget("cuda", capability, 32), found))
    try:
        yield found
    finally:
        _compiling.pop()


TYPES = {
    torch.float32: "*fp32",
    torch.int8: "*i8",
    torch.uint8: "*u8",
    torch.int32: "*i32",
    torch.uint32: "*u32",
    torch.int64: "*i64",
}


def _compile(
    function: Any, target: Any, arguments: tuple[object, ...], warps: int, constants: dict[str, Any]
) -> Compiled:
    import triton

    signature, fixed = {}, dict(constants)
    for name, value in zip(function.arg_names, arguments, strict=False):
        if isinstance(value, int) and value == 1:  # Triton does the same at a launch
            signature[name], fixed[name] = "constexpr", 1
        else:
            signature[name] = _type(value)
    signature |= dict.fromkeys(constants, "constexpr")
    source = triton.compiler.ASTSource(function, signature, fixed)
    options = {"num_warps": warps, "enable_fp_fusion": False}
    stages: Compiled = triton.compile(source, target=target, options=options).asm
    return stages


def _type(value: object) -> str:
    if isinstance(value, Tensor):
        return TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i64" if abs(int(str(value))) >= 1 << 31 else "i32"
