"""Shape classes: a kernel is tested on a class before its first product of that class, and is dropped if it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from protocol.numerics import rows
from protocol.numerics.contract import contract, dot
from protocol.numerics.kernels import dispatch
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.kernels.compiled import int8_amx, int16
from protocol.numerics.kernels.float64 import Float64
from protocol.numerics.kernels.self_test import failure_of_class, round_scaled_bits
from protocol.numerics.kernels.shape_classes import (
    Layout,
    Order,
    ProductCall,
    ShapeClass,
    call_of,
    least_size,
    shape_classes_of,
)
from protocol.numerics.reference import rows as plain

CPU = torch.device("cpu")
HERE = [kernel for kernel in dispatch.KERNELS if kernel.available(CPU)]
SIZES = st.integers(1, 3000)
PAIRS = [(13, 13), (20, 13), (13, 20), (20, 20)]


@given(
    acc=st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(2**26), 2**26),
    e=st.integers(-230, 120),
)
def test_the_self_test_rounds_as_the_reference_does(acc: int, e: int) -> None:
    bits = int(round_scaled_bits(torch.tensor([acc]), torch.tensor([e]))[0])
    assert bits & 0xFFFFFFFF == plain.round_scaled(acc, (e,), 0)


@given(acc=st.integers(2**23, 2**25), drop=st.integers(1, 38), below=st.sampled_from([-1, 0, 1]))
def test_the_self_test_rounds_halves_to_even(acc: int, drop: int, below: int) -> None:
    near = (acc << drop) + (1 << (drop - 1)) + below
    for sign in (1, -1):
        for e in (-20, -149, -170):
            bits = int(round_scaled_bits(torch.tensor([sign * near]), torch.tensor([e]))[0])
            assert bits & 0xFFFFFFFF == plain.round_scaled(sign * near, (e,), 0)


@given(size=SIZES, tiles=st.sampled_from([(12, 120), (32, 128), (30, 64), (16, 32, 128), (8,), ()]))
def test_a_size_and_its_stand_in_are_cut_alike(size: int, tiles: tuple[int, ...]) -> None:
    stand_in = least_size(size, tiles)
    assert stand_in <= size
    assert least_size(stand_in, tiles) == stand_in
    rest, rest_in = size, stand_in
    for tile in reversed(tiles):
        assert min(rest // tile, 2) == rest_in // tile
        rest, rest_in = rest % tile, rest_in % tile
        assert (rest == 0) == (rest_in == 0)


@given(m=SIZES, n=SIZES, k=SIZES, batch=st.integers(1, 40), pair=st.sampled_from(PAIRS))
def test_a_case_is_a_call_of_its_own_class(m: int, n: int, k: int, batch: int, pair: tuple[int, int]) -> None:
    for kernel in (int16("baseline"), int8_amx(), Float64()):
        cuts = kernel.tiling(*pair)
        call = call_of(torch.empty(1).expand(batch, m, k), torch.empty(1).expand(batch, n, k))
        for case in shape_classes_of(call, cuts, *pair):
            assert case in shape_classes_of(case.call, cuts, *pair)
            assert (case.call.k - k) % 2 == 0


def test_layouts_are_told_apart() -> None:
    x = torch.zeros(4, 6, 8)

    def layout(y: Tensor) -> Layout:
        return call_of(y, y).x

    assert layout(x) == Layout(Order.TERMS, True, True)
    assert layout(x[0, :, 1:7]) == Layout(Order.TERMS, False, False)
    assert layout(x[:1].mT) == Layout(Order.ROWS, True, False)
    assert layout(x[:, :3].mT) == Layout(Order.ROWS, True, True)
    assert layout(x[:, :, :3].mT) == Layout(Order.ROWS, False, True)
    assert layout(x.permute(1, 0, 2)) == Layout(Order.TERMS, False, True)
    assert layout(x[..., ::2]) == Layout(Order.APART, False, True)
    assert call_of(x, x[:1]).batch == 4


@pytest.mark.parametrize("kernel", HERE, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(("px", "py"), PAIRS[1::2])
def test_every_kernel_passes_in_every_corner(kernel: ProductKernel, px: int, py: int) -> None:
    """The calls cover all orders of the operands, operands with and without gaps, batches, given exponents,
    and a bias. Their tiles are whole or partial.
    """
    x, y = torch.zeros(6, 125, 300), torch.zeros(6, 133, 300)
    seen: set[ShapeClass] = set()
    for m, n, k, batch in (
        (125, 133, 300, 1),
        (120, 128, 128, 1),
        (1, 1, 65, 6),
        (24, 3, 7, 6),
        (5, 64, 129, 2),
    ):
        for left in (x[:batch, :m, :k], x[:batch, :k, :m].mT, x[:batch, :m, : 2 * k : 2]):
            for right in (y[:batch, :n, :k], y[:batch, :k, :n].mT, y[0, :n, :k].contiguous()):
                if left.shape[-1] != right.shape[-1] or left.shape[-2] != m or right.shape[-2] != n:
                    continue
                for given_, bias in (((False, False), True), ((True, False), False), ((True, True), False)):
                    call = call_of(left, right, given_, bias)
                    for case in set(shape_classes_of(call, kernel.tiling(px, py), px, py)) - seen:
                        integers = case._replace(call=case.call._replace(integers=True))
                        assert failure_of_class(kernel, CPU, case) is None
                        assert failure_of_class(kernel, CPU, integers) is None
                        seen.add(case)
    assert len(seen) > 50


class Planted(Float64):
    """A planted kernel with one wrong bit in the results of calls for which `when` holds."""

    def __init__(self, name: str, when: Callable[[ProductCall], bool]) -> None:
        self.name = name
        self._when = when

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
        if self._when(call_of(x, y)):
            result.view(torch.int32).view(-1)[-1] ^= 1
        return result


Operands = Callable[[Tensor], tuple[Tensor, Tensor]]
PLANTS: dict[str, tuple[Callable[[ProductCall], bool], Operands]] = {
    "a rest of columns": (lambda c: c.n > 40 and c.n % 32 > 0, lambda x: (x, x[:75])),
    "odd terms": (lambda c: 200 < c.k < 1000 and c.k % 2 > 0, lambda x: (x[:, :777], x[:, :777])),
    "a single row": (lambda c: c.m == 1 and c.k > 1, lambda x: (x[:1], x)),
    "a batch": (lambda c: c.batch > 1, lambda x: (x.expand(7, 96, 1000), x.expand(7, 96, 1000))),
    "rows side by side": (lambda c: c.x.order is Order.ROWS and c.m > 20, lambda x: (x.mT, x.mT)),
    "gaps": (lambda c: not c.x.dense, lambda x: (x[:, :64], x[:, :64])),
    "a batch as rows": (
        lambda c: c.batch == 1 and c.x.dense and c.m > 64,
        lambda x: (x[:90].reshape(3, 30, 1000), x[:40]),
    ),
    "a batch as rows, with gaps": (
        lambda c: c.batch == 1 and not c.x.dense and c.m > 64,
        lambda x: (x[:90].reshape(3, 30, 1000)[..., :96], x[:40, :96]),
    ),
}
"""For each kind of product: the calls in which the planted kernel errs, and operands for such a call. The
planted kernel is right for the test's ordinary product.
"""


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that replaces the available kernels."""

    def put(*found: ProductKernel) -> None:
        monkeypatch.setattr(dispatch, "KERNELS", found)
        dispatch._chosen.cache_clear()

    monkeypatch.delenv(dispatch.VARIABLE, raising=False)
    yield put
    dispatch._chosen.cache_clear()


@pytest.mark.parametrize("what", PLANTS)
def test_a_kernel_wrong_in_one_class_is_dropped_before_its_first_product(
    what: str, kernels: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    when, operands = PLANTS[what]
    planted = Planted(f"planted-{what}", when)
    kernels(planted, Float64())
    ordinary = torch.randn(24, 64, generator=torch.Generator().manual_seed(0))
    x, y = operands(torch.randn(96, 1000, generator=torch.Generator().manual_seed(1)))
    with caplog.at_level(logging.WARNING):
        contract(ordinary, ordinary, 13, 13)
        assert dispatch.kernel_for(CPU, 13, 13, call_of(ordinary, ordinary)) is planted
        found = [contract(x, y, 13, 13) for _ in range(2)]
        assert dispatch.kernel_for(CPU, 13, 13, call_of(ordinary, ordinary)) is not planted
        assert dispatch.kernel_for(CPU, 20, 20) is not planted
    assert torch.equal(found[0].view(torch.int32), Float64().contract(x, y, 13, 13).view(torch.int32))
    assert torch.equal(found[0], found[1])
    assert [r.getMessage() for r in caplog.records if "planted" in r.getMessage()] == [
        next(r.getMessage() for r in caplog.records if f"planted-{what} is not used on cpu" in r.getMessage())
    ]


def test_a_batch_under_one_matrix_has_the_bits_of_its_parts() -> None:
    g = torch.Generator().manual_seed(2)
    x, y = torch.randn(3, 5, 90, generator=g)[..., 10:50], torch.randn(9, 40, generator=g)
    each = rows.exponent(y)
    own_each, group = torch.stack((each, each + 1, each + 5)), rows.exponent(y.reshape(1, 1, -1))
    for ey in (None, each, each[None, None], group, own_each):
        own = ey if ey is own_each else [ey] * 3
        parts = torch.stack(
            [Float64().contract(a, y, 13, 20, None, e).reshape(5, 9) for a, e in zip(x, own, strict=True)]
        )
        for right in (y, y[None]):
            found = contract(x, right, 13, 20, None, ey)
            assert found.shape == parts.shape
            assert torch.equal(found.view(torch.int32), parts.view(torch.int32))
    whole = rows.quantise(x, rows.exponent(x), 13)
    assert torch.equal(dot(whole, whole[0]), torch.stack([dot(part, whole[0]) for part in whole]))


def test_no_kernel_for_a_class_is_a_refusal(kernels: Callable[..., None]) -> None:
    kernels(Planted("planted", lambda c: c.m == c.n == 64))
    x = torch.ones(128, 40)
    contract(x[:30], x, 13, 13)
    with pytest.raises(
        dispatch.NoKernel, match=r"planted: a rounded result of \[64, 16\] x \[64, 16\] .* is wrong"
    ):
        contract(x, x, 13, 13)
    with pytest.raises(dispatch.NoKernel, match="widen ASSAY_KERNELS"):
        contract(x, x, 13, 13)


class Refuses(Float64):
    """Fails on rows of 384 integers, as a library may."""

    name = "refuses"

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        if x.shape[-1] == 384:
            raise RuntimeError("not implemented for this size")
        return super().dot(x, y, px, py)


def test_a_kernel_that_does_not_run_is_passed_over_there_alone(
    kernels: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    refuses = Refuses()
    kernels(refuses, Float64())
    x = torch.ones(3, 640, dtype=torch.int32)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert int(dot(x, x)[0, 0]) == 640
    assert [r.getMessage() for r in caplog.records] == [
        "product kernel refuses is not used on cpu for this kind of product: "
        "it does not run (not implemented for this size)"
    ]
    assert dispatch.kernel_for(CPU, 13, 13) is refuses
