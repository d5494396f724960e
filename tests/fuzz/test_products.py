"""Random products of every kernel that this machine runs, on one thread and on two, compared with plain
integers.

`make test` compares dozens of products for each kernel; `make test-heavy` thousands, a hundred in each test.
The number in a test's name is its seed, so that it can be run alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest
import torch

from protocol.numerics import sums
from protocol.numerics.contract import dot
from protocol.numerics.kernels import dispatch
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.kernels.fused import FUSED, Fused
from protocol.numerics.reference import rows as plain
from protocol.numerics.types import canonical
from tests.fuzz.products import COLUMNS, LONG, TERMS, Product, patterns, product

CPU = torch.device("cpu")
HERE = [kernel for kernel in dispatch.KERNELS if kernel.available(CPU)]
SUMS = [fused for fused in (*FUSED, Fused("portable")) if fused.available()]
FEW, SMALL = 60, 6_000
MANY, LARGE = 100, 60_000
THREADS = (1, 2)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@cache
def few() -> list[Product]:
    r = Random("few products")
    return [product(r, SMALL) for _ in range(FEW)]


def compare(kernel: ProductKernel, given: Product) -> None:
    for count in THREADS:
        torch.set_num_threads(count)
        found = kernel.contract(given.x, given.y, given.px, given.py, given.ex, given.ey, given.bias)
        wrong = canonical(found).view(torch.int32) != given.right
        assert found.shape == given.right.shape, f"{kernel.name}: {given}"
        assert not bool(wrong.any()), f"{kernel.name}, {count} threads, {int(wrong.sum())} wrong: {given}"


@pytest.mark.parametrize("kernel", HERE, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(("px", "py"), [(13, 13), (20, 13), (13, 20), (20, 20)])
@pytest.mark.parametrize("terms", [(1 << 17) - 1, 1 << 17, (1 << 17) + 1, (1 << 18) + 70])
def test_sums_longer_than_an_accumulator_are_exact(
    kernel: ProductKernel, px: int, py: int, terms: int
) -> None:
    """Operands at the limits, and numbers whose base-128 digits are all large and of one sign."""
    all_large = {13: -63 * 128 - 64, 20: -(63 * 128 + 64) * 128 - 64}
    x = torch.tensor([[1 << px], [-1 << px], [all_large[px]]]).expand(-1, terms).to(torch.int32)
    y = torch.tensor([[-1 << py], [all_large[py]]]).expand(-1, terms).to(torch.int32)
    right = x[:, :1].to(torch.int64) * y[:, 0].to(torch.int64) * terms
    assert torch.equal(kernel.dot(x, y, px, py), right)


@pytest.mark.parametrize("kernel", HERE, ids=lambda kernel: kernel.name)
def test_some_products_are_exact(kernel: ProductKernel) -> None:
    for given in few():
        compare(kernel, given)


@pytest.mark.heavy
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", range(20))
def test_thousands_of_products_are_exact(seed: int) -> None:
    r = Random(f"many products {seed}")
    for _ in range(MANY):
        given = product(r, LARGE)
        for kernel in HERE:
            compare(kernel, given)


def integers(r: Random, rows: int, terms: int, bits: int) -> torch.Tensor:
    """Random i32 values, shape [rows, terms]. No magnitude is greater than 2^bits; at 31 bits, every i32
    value is possible. Many of the values have the largest magnitude.
    """
    top = 2**bits
    values = [r.choice((top, -top, r.randint(-top, top))) for _ in range(rows * terms)]
    clipped = [max(-(2**31), min(2**31 - 1, value)) for value in values]
    return torch.tensor(clipped, dtype=torch.int32).reshape(rows, terms)


@pytest.mark.parametrize(
    "bits", [(13, 13), (20, 13), (13, 20), (20, 20), (30, 13), (13, 30), (30, 30), (31, 31)]
)
def test_integer_products_of_any_width_are_exact(bits: tuple[int, int]) -> None:
    """No kernel multiplies integers wider than 20 bits. If an operand is wider, `dot` multiplies blocks in
    float64, and first splits both operands into 16-bit halves if needed.
    """
    r = Random(f"integers {bits}")
    for _ in range(12):
        m, n, k = r.choice((1, 3, 13)), r.choice((1, 7, 33)), r.choice((1, 31, 64, 65, 129, 513))
        x, y = integers(r, m, k, bits[0]), integers(r, n, k, bits[1])
        right = [plain.dot(a, b) for a in x.tolist() for b in y.tolist()]
        for count in THREADS:
            torch.set_num_threads(count)
            assert dot(x, y).flatten().tolist() == right
            assert dot(x.mT.contiguous().mT, y).flatten().tolist() == right
        if max(bits) <= 20:
            assert all(kernel.dot(x, y, *bits).flatten().tolist() == right for kernel in HERE)


def summed(fused: Fused, r: Random, work: int) -> None:
    given = product(r, work).x.reshape(-1, 1).flatten()
    columns = min(r.choice((*COLUMNS, *TERMS, *LONG)), given.numel())
    x = given[: given.numel() // columns * columns].reshape(-1, columns)
    by_row = [plain.sum_f32(row) for row in patterns(x)]
    by_column = [plain.sum_f32(column) for column in patterns(x.mT)]
    for count in THREADS:
        torch.set_num_threads(count)
        assert patterns(canonical(fused.sum_rows(x)).mT)[0] == by_row
        assert patterns(canonical(fused.sum_columns(x)))[0] == by_column
    assert patterns(canonical(sums.sum_f32(x)).mT)[0] == by_row


@pytest.mark.parametrize("fused", SUMS, ids=lambda fused: fused.name)
def test_some_sums_of_30_bits_are_exact(fused: Fused) -> None:
    r = Random("some sums")
    for _ in range(15):
        summed(fused, r, SMALL // 4)


@pytest.mark.heavy
@pytest.mark.parametrize("fused", SUMS, ids=lambda fused: fused.name)
def test_many_sums_of_30_bits_are_exact(fused: Fused) -> None:
    r = Random("many sums")
    for _ in range(200):
        summed(fused, r, SMALL)
