"""Contractions, sums and indexing on torch: exact at limits, independent of order, right on special rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from protocol.numerics import reductions, rows, sums
from protocol.numerics.contract import contract, dot
from protocol.numerics.errors import SelfCheckError
from protocol.numerics.indexing import gather, scatter_sum, scatter_sum_i64
from protocol.numerics.philox import philox
from protocol.numerics.reference import philox as plain_philox
from protocol.numerics.reference import rows as plain
from protocol.numerics.self_check import self_check
from protocol.numerics.types import DType, NumericsError, to_bytes


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def patterns(x: Tensor) -> list[int]:
    return [v & 0xFFFFFFFF for v in x.contiguous().view(torch.int32).flatten().tolist()]


def same(x: Tensor, y: Tensor) -> bool:
    return x.shape == y.shape and to_bytes(x, DType.F32) == to_bytes(y, DType.F32)


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


@pytest.mark.parametrize(("px", "py"), [(13, 13), (20, 13), (20, 20)])
@pytest.mark.parametrize("length", [1, 7, 300, 8193, 20_000])
def test_contract_is_its_four_primitives(px: int, py: int, length: int) -> None:
    """`contract` gives the same bits as its four primitives: exponent, quantise, dot and round_scaled. With
    20 x 20 bits, a float64 block holds 8192 terms, so longer rows need several blocks.
    """
    x, y = normal(2, 3, length), normal(2, 4, length, seed=1)
    x[0, 0] = 0.999  # all terms are near the limit and have one sign
    y[0, 0] = 0.999
    ex, ey = rows.exponent(x), rows.exponent(y)
    acc = dot(rows.quantise(x, ex, px), rows.quantise(y, ey, py))
    assert same(contract(x, y, px, py), rows.round_scaled(acc, (ex, ey.mT), px + py))


def test_contract_has_the_bits_of_the_reference() -> None:
    x, y = normal(3, 50), normal(4, 50, seed=1) * 1e-30
    expected = [plain.contract(patterns(a), patterns(b), 20, 13) for a in x for b in y]
    assert patterns(contract(x, y, 20, 13)) == expected


@pytest.mark.parametrize("bits", [1, 13, 20, 24, 27, 31])
@pytest.mark.parametrize("length", [1, 129, 9000])
def test_dot_is_exact_for_every_width(bits: int, length: int) -> None:
    g = torch.Generator().manual_seed(bits)
    x, y = (torch.randint(-(2**bits), 2**bits, (3, length), generator=g).to(torch.int32) for _ in range(2))
    x[0], y[0] = -(2**bits), -(2**bits)
    expected = (x.to(torch.int64)[:, None] * y.to(torch.int64)[None]).sum(-1)
    assert torch.equal(dot(x, y), expected)


def test_dot_wraps_as_i64() -> None:
    x = torch.full((1, 4), -(2**31), dtype=torch.int32)
    assert int(dot(x, x)) == 0  # 4 * 2^62 = 2^64
    assert int(dot(x[:, :2], x[:, :2])) == -(2**63)


def test_thread_count_and_batching_do_not_change_bits(threads: int) -> None:
    x, y = normal(64, 4096), normal(48, 4096, seed=1)
    torch.set_num_threads(1)
    single, total = contract(x, y, 13, 13), sums.sum_f32(x)
    torch.set_num_threads(max(threads, 2))
    assert same(single, contract(x, y, 13, 13))
    assert same(single, torch.cat([contract(row[None], y, 13, 13) for row in x]))
    assert same(total, sums.sum_f32(x))


def test_sums_do_not_depend_on_order_or_layout() -> None:
    x = normal(5, 1000) * torch.exp(normal(5, 1000, seed=1) * 5)
    order = torch.randperm(1000, generator=torch.Generator().manual_seed(2))
    assert same(sums.sum_f32(x), sums.sum_f32(x[:, order]))
    assert same(sums.sum_f32(x), sums.sum_f32(x.T.contiguous(), axis=0).T)
    assert patterns(sums.sum_f32(x)) == [plain.sum_f32(patterns(row)) for row in x]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_nan_or_infinity_poisons_its_row_and_no_other(bad: float) -> None:
    x, y = normal(4, 40), normal(3, 40, seed=1)
    clean = contract(x, y, 13, 13)
    x[2, 5] = bad
    result = contract(x, y, 13, 13)
    assert patterns(result[2]) == [0x7FC00000] * 3
    assert same(result[[0, 1, 3]], clean[[0, 1, 3]])
    assert patterns(sums.sum_f32(x))[2] == 0x7FC00000
    assert int(rows.exponent(x)[2]) == 32767
    assert not rows.quantise(x, rows.exponent(x), 13)[2].any()


def test_zero_rows_and_exact_cancellation_give_positive_zero() -> None:
    x = torch.tensor([[-0.0, -0.0], [1.0, -1.0], [-1.0, 1.0]])
    assert patterns(sums.sum_f32(x)) == [0, 0, 0]
    assert patterns(contract(x, -torch.ones(1, 2), 13, 13)) == [0, 0, 0]
    assert patterns(contract(torch.zeros(1, 1), -torch.ones(1, 1), 13, 13)) == [0]
    assert int(rows.exponent(x)[0]) == -95


def test_rows_far_below_one_keep_their_bits() -> None:
    """Sums keep rows of any magnitude. Products with 20 bits keep values of magnitude 2^-115 and above
    (arithmetic.md section 9, point 3).
    """
    tiny = torch.tensor([[2.0**-120, 2.0**-121]])
    assert float(sums.sum_f32(tiny)) == 2.0**-120 + 2.0**-121
    assert float(contract(tiny, torch.ones(1, 2), 20, 13)) == 0.0  # 2^-120 is below half a unit of 2^(-95-20)
    assert float(contract(torch.tensor([[2.0**-110]]), torch.ones(1, 1), 20, 13)) == 2.0**-110


def test_overflow_is_an_infinity_and_underflow_a_signed_zero() -> None:
    huge, tiny = torch.full((1, 2), 3e38), torch.full((1, 2), 1e-28)
    assert patterns(contract(huge, -huge, 13, 13)) == [0xFF800000]
    assert patterns(contract(tiny, -tiny, 13, 13)) == [0x80000000]
    assert patterns(sums.sum_f32(huge)) == [0x7F800000]


def test_an_exponent_of_a_larger_group_serves_every_row() -> None:
    x, y = normal(3, 16), normal(2, 16, seed=1)
    e = rows.exponent(x.reshape(1, -1))
    acc = dot(rows.quantise(x, e, 13), rows.quantise(y, rows.exponent(y), 13))
    assert same(
        contract(x, y, 13, 13, ex=e.expand(3, 1)), rows.round_scaled(acc, (e, rows.exponent(y).mT), 26)
    )


def test_argmax_takes_the_first_nan_else_the_lowest_index() -> None:
    nan, inf = math.nan, math.inf
    x = torch.tensor(
        [[1.0, 3.0, 3.0], [0.0, nan, nan], [-0.0, 0.0, -0.0], [-inf, -inf, -inf], [inf, nan, inf]]
    )
    assert reductions.argmax(x).flatten().tolist() == [1, 1, 0, 0, 1]
    assert patterns(reductions.max_f32(x)) == [0x40400000, 0x7FC00000, 0, 0xFF800000, 0x7FC00000]


def test_prefix_sum_wraps_and_is_inclusive() -> None:
    x = torch.tensor([[2**62, 2**62, 2**62, 2**62, 5]])
    assert reductions.prefix_sum(x).flatten().tolist() == plain.prefix_sum(x.flatten().tolist())


def test_gather_reads_zero_bits_outside_the_table() -> None:
    table = -torch.ones(3, 2)
    index = torch.tensor([[2, 3], [-1, -(2**31)]], dtype=torch.int32)
    assert patterns(gather(table, index)) == [0xBF800000] * 2 + [0] * 6


@pytest.mark.parametrize("columns", [1, 3])
def test_scatter_sum_drops_strays_and_ignores_order(columns: int) -> None:
    value = normal(40, columns)
    index = torch.randint(-2, 6, (40,), generator=torch.Generator().manual_seed(1)).to(torch.int32)
    result = scatter_sum(index, value, 4)
    expected = [plain.scatter_sum(index.tolist(), patterns(column), 4) for column in value.T]
    assert result.shape == (4, columns)
    assert patterns(result.T) == [x for column in expected for x in column]
    assert same(result, scatter_sum(index.flip(0), value.flip(0), 4))
    assert int(scatter_sum_i64(index, torch.ones(40, 1, dtype=torch.int64), 4).sum()) == int(
        ((index >= 0) & (index < 4)).sum()
    )


def test_philox_tensor_is_the_words_in_order() -> None:
    key = torch.tensor([-1, 0x12345678], dtype=torch.int32)
    result = philox(key, torch.tensor(-2, dtype=torch.int32), 2**32 - 1, (3, 7))
    words = [plain_philox.word((2**32 - 1, 0x12345678), 2**32 - 2, 2**32 - 1, i) for i in range(21)]
    assert [v & 0xFFFFFFFF for v in result.flatten().tolist()] == words


def test_self_check_passes_here_and_finds_flushed_subnormals() -> None:
    self_check()
    assert torch.set_flush_denormal(True)
    try:
        with pytest.raises(SelfCheckError, match="flushed"):
            self_check()
    finally:
        torch.set_flush_denormal(False)
    self_check()


@pytest.mark.parametrize(("x", "y"), [((2, 3), (2, 4)), ((3,), (2, 3))], ids=["different length", "a vector"])
def test_contract_refuses_shapes_that_do_not_fit(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    with pytest.raises(NumericsError, match="contracted axis"):
        contract(torch.ones(x), torch.ones(y), 13, 13)


def test_bits_outside_the_table_are_refused() -> None:
    with pytest.raises(NumericsError, match="13 or 20"):
        contract(torch.ones(1, 2), torch.ones(1, 2), 13, 14)
    with pytest.raises(NumericsError, match="13, 20 or 30"):
        rows.quantise(torch.ones(1, 2), torch.ones(1, 1, dtype=torch.int32), 12)
