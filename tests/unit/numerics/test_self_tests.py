"""Self-tests compare bits, so a kernel with a NaN that is not canonical fails."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from protocol.numerics.kernels import attention_self_test, convolution_self_test, self_test
from protocol.numerics.kernels.attention import Backward, Forward, Fused
from protocol.numerics.kernels.attention_shape_classes import Plan
from protocol.numerics.kernels.convolution_shape_classes import AT_INPUT, AT_WEIGHT, FORWARD, ConvolutionCall
from protocol.numerics.kernels.float64 import Float64

OTHERS = (-(1 << 22), 0x7F800001)
"""Bits of NaNs that are not canonical: 0xffc00000, which is 0 / 0 on x86, and a signalling NaN."""
A, B = (13, 13), (20, 20)
CONVOLUTIONS = [
    ConvolutionCall(kind, 6, 1, 5, 14, (8, 8), (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), bits, False, 2)
    for kind, bits in ((FORWARD, (13, 13)), (AT_INPUT, (13, 13)), (AT_WEIGHT, (20, 13)))
]
ATTENTION = Plan(5, 7, 4, 3, A, B, A, B, B, B)

other_nans = pytest.mark.parametrize("other", [None, *OTHERS], ids=["right", "negative", "signalling"])


def spoilt(x: Tensor, other: int | None) -> Tensor:
    """A copy with each NaN replaced by `other`, if given. `x` must have a NaN."""
    nan = x != x
    assert nan.any()
    found = x.clone(memory_format=torch.contiguous_format)
    if other is not None:
        found.view(torch.int32).masked_fill_(nan, other)
    return found


@dataclass(frozen=True)
class Product(Float64):
    """A planted product kernel with the NaN `other` in its results, if given."""

    other: int | None

    def contract(
        self,
        x: Tensor,
        y: Tensor,
        px: int,
        py: int,
        ex: Tensor | None = None,
        ey: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        result = super().contract(x, y, px, py, ex, ey, bias)
        return spoilt(result, self.other) if bool((result != result).any()) else result


@other_nans
def test_of_products(other: int | None) -> None:
    wrong = self_test.failure_of_widths(Product(other), torch.device("cpu"), 13, 13)
    assert (wrong is None) == (other is None)


class Convolution:
    """Planted convolutions: plain, but with the NaN `other` in their results, if given."""

    def __init__(self, other: int | None) -> None:
        self._other = other

    def run(self, call: ConvolutionCall, left: Tensor, image: Tensor, bias: Tensor | None) -> Tensor:
        return spoilt(convolution_self_test.plain(call, left, image, bias), self._other)


@other_nans
@pytest.mark.parametrize("call", CONVOLUTIONS, ids=["forward", "at input", "at weight"])
def test_of_convolutions(call: ConvolutionCall, other: int | None) -> None:
    wrong = convolution_self_test.failure_of_class(Convolution(other), call)
    assert (wrong is None) == (other is None)


class Attention(Fused):
    """A planted attention: plain, but with the NaN `other` in one result, if given."""

    def __init__(self, other: int | None, result: int) -> None:
        super().__init__("none")
        self._plain = attention_self_test.Plain()
        self._other, self._result = other, result

    def forward(self, given: Forward) -> Tensor:
        found = self._plain.forward(given)
        return spoilt(found, self._other) if self._result == 0 else found

    def backward(self, given: Backward) -> tuple[Tensor, Tensor, Tensor]:
        v, q, k = (
            spoilt(x, self._other) if self._result == number else x.contiguous()
            for number, x in enumerate(self._plain.backward(given), start=1)
        )
        return v, q, k


@other_nans
@pytest.mark.parametrize("result", range(4), ids=attention_self_test.RESULTS)
def test_of_attention(result: int, other: int | None) -> None:
    wrong = attention_self_test.failure_of_class(Attention(other, result), ATTENTION)
    assert (wrong is None) == (other is None)
