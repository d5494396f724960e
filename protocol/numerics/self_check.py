"""Run-time self-test of the machine: arithmetic.md section 8, "Self-tests".

Every party calls `self_check(device)` once per process, before it computes anything that others will check.
It tests what the other modules assume of torch: subnormals are kept in every thread, and addition, division,
square root and narrowing follow IEEE 754. It also tests each elementary function at one number, and the
product kernels, of which at least one must be exact.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from protocol.numerics import elementary_torch
from protocol.numerics.elementwise import sqrt
from protocol.numerics.errors import SelfCheckError
from protocol.numerics.kernels.dispatch import NoKernel, kernel_for

GRAIN = 1 << 15
"""torch gives each of its threads at least this many elements of an operation (at::internal::GRAIN_SIZE)."""

ELEMENTARY = {
    "exp": 0x4142EB7F,
    "log": 0x3F6A9208,
    "tanh": 0x3F7C92C1,
    "sigmoid": 0x3F6C948F,
    "erf": 0x3F7FE555,
    "sin": 0x3F193579,
    "cos": 0xBF4D17C0,
    "rsqrt": 0x3F21E89B,
}
"""The bits of each elementary function's value at 2.5."""


def self_check(device: torch.device | str = "cpu") -> None:
    """Raise `SelfCheckError` if a result of the self-test on `device` has a wrong bit, or if no product
    kernel may be used there.
    """
    where = torch.device(device)
    one = torch.ones(GRAIN * torch.get_num_threads(), dtype=torch.float32, device=where)
    smallest = _f32(0x00000001, where)
    _expect("subnormals flushed to zero", one * smallest, 0x00000001)
    _expect("subnormal operands read as zero", (one * smallest) / smallest, 0x3F800000)
    _expect("subnormals lost on the way to float64", (one * smallest).double().float(), 0x00000001)
    _expect(
        "f32 addition is not rounded to nearest even", one + _f32(0x33800000, where), 0x3F800000
    )  # 1 + 2^-24
    _expect("f32 division is not IEEE", one / 3.0, 0x3EAAAAAB)
    _expect("f32 square root is not IEEE", sqrt(one * _f32(0x3F7FFFFF, where)), 0x3F7FFFFF)
    for name, bits in ELEMENTARY.items():
        function = getattr(elementary_torch, f"{name}_f32")
        _expect(f"{name} has other bits", function(one * 2.5), bits)
    for px, py in ((13, 13), (20, 13), (13, 20), (20, 20)):
        try:
            kernel_for(where, px, py)
        except NoKernel as error:
            raise SelfCheckError(str(error)) from error


MODE = (
    (0x00000001, 0x3F800000, 0x00000001),  # the smallest subnormal times one, with both signs
    (0x80000001, 0x3F800000, 0x80000001),
    (0x3F800001, 0x3F800001, 0x3F800002),  # squares just above an f32 and just above a midpoint between two
    (0x3F800801, 0x3F800801, 0x3F801003),
)
"""Test cases: the bits of two factors and of their correct product. The computed product differs if
subnormals are flushed or if the rounding mode is not round to nearest even.
"""


def require_mode() -> None:
    """Raise `SelfCheckError` if a CPU thread of torch flushes subnormals or does not round to nearest even.

    When a library is loaded, it may change this floating-point mode for the thread that loads it, and for all
    threads that this thread starts later. So the mode is checked before every step. A check takes less than
    0.1 ms.
    """
    x, y, product = _mode(GRAIN * torch.get_num_threads() // len(MODE))
    if not torch.equal((x * y).view(torch.int32), product):
        raise SelfCheckError(
            "the processor's floating-point mode has changed since this process began: expected subnormals kept and "
            "rounding to nearest even; find the library that sets flush-to-zero (often one built with -ffast-math)"
        )


@lru_cache(maxsize=4)
def _mode(repeats: int) -> tuple[Tensor, Tensor, Tensor]:
    words = (
        torch.tensor(MODE, dtype=torch.int64, device="cpu").to(torch.int32).repeat(repeats, 1).T.contiguous()
    )
    return words[0].view(torch.float32), words[1].view(torch.float32), words[2]


def _expect(failure: str, got: Tensor, bits: int) -> None:
    wrong = got.contiguous().view(torch.int32) != bits
    if bool(wrong.any()):
        found = int(got.contiguous().view(torch.int32)[wrong][0]) & 0xFFFFFFFF
        raise SelfCheckError(
            f"{failure} on {got.device}: expected bits 0x{bits:08x}, got 0x{found:08x}; "
            "do not compute commitments on this machine (is torch.set_flush_denormal on?)"
        )


def _f32(bits: int, where: torch.device) -> Tensor:
    return torch.tensor(bits, dtype=torch.int32, device=where).view(torch.float32)
