"""Fused attention has the bits of the separate functions for many shapes and masks, and for 1 and 2
threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
import torch
from torch import Tensor

from protocol.numerics.contract import contract
from protocol.numerics.kernels.attention import Backward, Change, Dropout, Forward, Fused
from protocol.numerics.kernels.attention_shape_classes import WHOLE, Kind
from protocol.numerics.kernels.fused import FUSED
from protocol.numerics.kernels.fused_self_test import digest
from protocol.numerics.operations import add, div, mul
from protocol.numerics.philox import mask
from protocol.program.library.function import CATALOGUE

VARIANTS = [f.name.removeprefix("fused-") for f in FUSED if f.available()]


class Plain(Fused):
    """Attention computed with the library's separate functions on whole tables of scores."""

    def __init__(self) -> None:
        super().__init__("none")

    def forward(self, given: Forward) -> Tensor:
        return contract(self._probabilities(given)[1], given.v, *given.out)

    def backward(self, given: Backward) -> tuple[Tensor, Tensor, Tensor]:
        kept, dropped = self._probabilities(given.forward)
        of_p = self._drop(given.forward, contract(given.g, given.v, *given.of_p))
        of_s = changed(_function("softmax_grad", of_p, kept), given.changes)
        of_v = contract(dropped.mT, given.g_v, *given.of_v)
        of_q = contract(of_s, given.k_q, *given.of_q)
        of_k = contract(of_s.mT, given.q_k, *given.of_k)
        return of_v.mT if given.v_turned else of_v, of_q, of_k.mT if given.k_turned else of_k

    def _probabilities(self, given: Forward) -> tuple[Tensor, Tensor]:
        scores = changed(contract(given.q, given.k, *given.scores), given.changes)
        kept = _function("softmax", scores, safe=given.safe)
        return kept, self._drop(given, kept)

    def _drop(self, given: Forward, x: Tensor) -> Tensor:
        drop = given.dropout
        if drop is None:
            return x
        drawn = mask(drop.key, drop.step, drop.stream, x.shape, drop.below)
        return mul(x, mul(drawn, torch.tensor(drop.kept)))


def changed(x: Tensor, changes: Sequence[Change]) -> Tensor:
    for change in changes:
        value = torch.tensor(change.value)
        if change.kind in (Kind.TIMES, Kind.OVER):
            x = (mul if change.kind is Kind.TIMES else div)(x, value)
        elif change.table is not None and change.kind is Kind.PLUS:
            x = add(x, change.table)
        elif change.table is not None:
            x = torch.where(change.table == (change.kind is Kind.FILL_TRUE), value, x)
    return x


def _function(name: str, *operands: Tensor, **attributes: bool) -> Tensor:
    return CATALOGUE[name].kernel(attributes)(operands)[0]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


A, B = (13, 13), (20, 20)
WORDS = torch.tensor([-7, 5, 9], dtype=torch.int32)
SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 5, 7, 4, 1),
    (1, 2, 121, 121, 16, 16),
    (2, 1, 250, 250, 8, 24),
    (1, 1, 3, 300, 5, 2),
    (1, 3, 130, 2, 33, 65),
]
"""(batch, heads, queries, keys, columns of queries and keys, columns of values)."""


def causal(m: int, n: int) -> Tensor:
    """A mask that is true where a key comes after its query. The last key belongs to the last query."""
    return torch.ones(m, n, dtype=torch.bool).triu(n - m + 1)


def case(
    shape: tuple[int, ...],
    changes: Sequence[Change],
    back: Sequence[Change] = (),
    *,
    drop: bool,
) -> Backward:
    """Random operands of an attention. Heads are slices of wider token rows, as in a model.

    With a batch of 1, the gradients of values and keys are transposed.
    """
    batch, heads, m, n, d, e = shape
    drawn = torch.Generator().manual_seed(1)
    q, k, v, g = (
        torch.randn(batch, rows, 2 * heads, columns, generator=drawn)[:, :, 1::2].transpose(1, 2)
        for rows, columns in ((m, d), (n, d), (n, e), (m, e))
    )
    dropout = Dropout(WORDS[:2], WORDS[2], 3, 0xB0000000, 1 / 0.6875) if drop else None
    forward = Forward(q, k, v.mT, changes, False, dropout, A, B)
    return Backward(forward, g, v, g.mT, k.mT, q.mT, back, A, B, B, B, batch == 1, batch == 1)


def same(given: Backward, whole: int) -> bool:
    """Whether fused attention with the fastest instruction set gives the same bits as the plain functions,
    forward and backward.
    """
    ours, plain = Fused(VARIANTS[0], whole), Plain()
    both = ((f.forward(given.forward), *f.backward(given)) for f in (ours, plain))
    return len({digest(results) for results in both}) == 1


needs_library = pytest.mark.skipif(not VARIANTS, reason="the library is not built")


@needs_library
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("whole", [WHOLE, 1], ids=["whole", "twice"])
@pytest.mark.parametrize("drop", [False, True], ids=["all", "dropped"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_has_the_bits_of_the_plain_functions(
    shape: tuple[int, ...], drop: bool, whole: int
) -> None:
    scale, hidden = Change(Kind.TIMES, 0.35), causal(shape[2], shape[3])
    masked = (scale, Change(Kind.FILL_TRUE, -math.inf, hidden))
    assert same(case(shape, (), drop=drop), whole)
    assert same(case(shape, masked, (Change(Kind.FILL_TRUE, 0.0, hidden), scale), drop=drop), whole)


@needs_library
@pytest.mark.parametrize("whole", [WHOLE, 1], ids=["whole", "twice"])
def test_masks_of_every_form(whole: int) -> None:
    """Tests masks by head, by query, and by sample and key. Some masks fill where they are true, others where
    they are false, and some fill values are finite. Also tests tables that are added to the scores.
    """
    shape = (2, 3, 125, 127, 6, 5)
    _, heads, m, n, *_ = shape
    hidden = causal(m, n)
    late = torch.arange(n) > torch.tensor([40, 100])[:, None]
    by_head = torch.stack([hidden.roll(k, 1) for k in range(heads)])
    least = torch.finfo(torch.float32).min
    slopes = torch.randn(m, n, generator=torch.Generator().manual_seed(2))
    for change in (
        Change(Kind.FILL_FALSE, -math.inf, ~hidden),
        Change(Kind.FILL_TRUE, -math.inf, by_head),
        Change(Kind.FILL_TRUE, -1e9, hidden),
        Change(Kind.FILL_TRUE, least, late[:, None, None, :]),
        Change(Kind.FILL_TRUE, -math.inf, torch.ones(m, 1, dtype=torch.bool).tril(-3)),
        Change(Kind.PLUS, table=torch.where(hidden, least, 0.0)),
        Change(Kind.PLUS, table=torch.where(hidden, -math.inf, slopes)),
        Change(Kind.PLUS, table=torch.where(late, -math.inf, 0.0)[:, None, None, :]),
        Change(Kind.PLUS, table=slopes.mT.contiguous().mT),
        Change(Kind.PLUS, table=torch.tensor(0.5)),
    ):
        assert same(case(shape, (Change(Kind.OVER, 2.0), change), drop=False), whole), change
        assert same(case(shape, (change, Change(Kind.TIMES, -0.5)), drop=True), whole), change


@needs_library
@pytest.mark.parametrize("whole", [WHOLE, 1], ids=["whole", "twice"])
def test_hidden_keys_still_count_where_numbers_are_not_tame(whole: int) -> None:
    """An infinity, a NaN or an overflow under the mask turns rows into NaN, as without fusion."""
    shape = (2, 1, 130, 130, 4, 4)
    hidden, scale = causal(130, 130), Change(Kind.TIMES, 0.5)
    fill, plus = (
        Change(Kind.FILL_TRUE, -math.inf, hidden),
        Change(Kind.PLUS, table=torch.where(hidden, -math.inf, 0.0)),
    )
    for bad in (math.inf, math.nan, 3e38, -1e30):
        for how in (fill, plus):
            for name in ("q", "k", "v", "g"):
                given = case(shape, (scale, how), (scale,), drop=name == "g")
                x = {"q": given.forward.q, "k": given.forward.k, "v": given.v, "g": given.g}[name]
                x[0, 0, 128, 1] = bad  # the other operands are views of the same memory
                x[0, 0, 129, 2] = -bad
                assert same(given, whole), (bad, how.kind, name)
    for value in (math.inf, math.nan, 0.0, 1e25):
        assert same(
            case(shape, (Change(Kind.TIMES, value), fill), (Change(Kind.TIMES, value),), drop=False), whole
        )


@needs_library
@pytest.mark.parametrize("whole", [WHOLE, 1], ids=["whole", "twice"])
@pytest.mark.parametrize(
    "factors",
    [
        ((Kind.TIMES, 2.0**100), (Kind.OVER, 2.0**100)),
        ((Kind.TIMES, 2.0**-100), (Kind.TIMES, 2.0**-60), (Kind.TIMES, 2.0**127), (Kind.TIMES, 2.0**127)),
    ],
    ids=["over", "under and over"],
)
def test_a_hidden_score_that_overflows_on_the_way_counts(
    factors: tuple[tuple[Kind, float], ...], whole: int
) -> None:
    """A hidden score may overflow to infinity between two factors; adding -infinity then gives NaN."""
    hidden = causal(130, 130)
    plus = Change(Kind.PLUS, table=torch.where(hidden, -math.inf, 0.0))
    given = case((1, 1, 130, 130, 4, 4), (*(Change(*factor) for factor in factors), plus), drop=False)
    given.forward.q.zero_()
    given.forward.k.zero_()
    given.forward.q[0, 0, :, 0] = 2.0**10
    given.forward.k[0, 0, 129, 0] = 2.0**40
    assert same(given, whole)


@needs_library
@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("whole", [WHOLE, 1], ids=["whole", "twice"])
def test_rows_without_any_key(whole: int, safe: bool) -> None:
    """Rows without a key are NaN, or zero with `safe`. All rows have the bits of the plain functions."""
    hidden = causal(130, 130)
    hidden[3:6] = True
    for change in (
        Change(Kind.FILL_TRUE, -math.inf, hidden),
        Change(Kind.PLUS, table=torch.where(hidden, -math.inf, 0.0)),
    ):
        given = case((2, 1, 130, 130, 4, 4), (change,), drop=True)
        given = replace(given, forward=replace(given.forward, safe=safe))
        assert same(given, whole)
        result = Plain().forward(given.forward)
        rows = result[..., 3:6, :]
        assert torch.all(rows == 0 if safe else rows.isnan())
        assert torch.isfinite(result[..., 6:, :]).all()


@needs_library
@pytest.mark.parametrize("whole", [WHOLE, 1], ids=["whole", "twice"])
def test_a_row_of_nan_counts_behind_the_keys_that_its_mask_fills(whole: int) -> None:
    """A NaN or an infinity in an added table makes a whole row of gradients NaN. The fill in the backward
    pass then overwrites the gradients of all keys that are not hidden. The NaN that remains, only at hidden
    keys, must not be lost.
    """
    m, n, seen = 8, 256, 100
    prefix = torch.arange(n) < 120  # what the keys up to `seen` are rounded up to
    for bad in (math.nan, math.inf):
        table = torch.zeros(m, n)
        table[:, seen:], table[:, 5] = -math.inf, bad
        for kind, filled in ((Kind.FILL_TRUE, prefix), (Kind.FILL_FALSE, ~prefix)):
            back = Change(kind, 0.0, filled)
            assert same(
                case((1, 1, m, n, 4, 4), (Change(Kind.PLUS, table=table),), (back,), drop=False), whole
            )


@needs_library
@pytest.mark.parametrize("whole", [WHOLE, 1], ids=["whole", "twice"])
@pytest.mark.parametrize("seed", range(6))
def test_fills_that_end_where_a_block_of_keys_ends(seed: int, whole: int) -> None:
    """Tests attention whose last keys are hidden by a random table or mask. In the backward pass, a fill
    overwrites the gradients on one side of a boundary between keys. The boundary is the end of a block of
    keys, or the start of the hidden keys.
    """
    r = Random(f"fills {seed}")
    for _ in range(8):
        m, n = r.choice((3, 121, 130)), r.choice((121, 240, 250, 256))
        seen = r.randint(1, n)
        edge = min(-(-seen // 120) * 120, n) if r.random() < 0.7 else seen
        table = torch.randn(m, n, generator=torch.Generator().manual_seed(r.getrandbits(31)))
        table[:, seen:] = r.choice((-math.inf, -1e38))
        if r.random() < 0.6:
            table[r.randrange(m), r.randrange(seen)] = r.choice((math.nan, math.inf, 3e38))
        hidden = (torch.arange(n) >= seen).expand(m, n)
        change = r.choice(
            (Change(Kind.PLUS, table=table), Change(Kind.FILL_TRUE, -math.inf, hidden.contiguous()))
        )
        inside = (torch.arange(n) < edge).expand(m, n)
        fill = Change(r.choice((Kind.FILL_TRUE, Kind.FILL_FALSE)), r.choice((0.0, -0.0)), inside)
        back = [fill, *[Change(Kind.TIMES, 0.35)] * r.randint(0, 1)]
        r.shuffle(back)
        given = case((r.choice((1, 2)), 1, m, n, 4, 3), (change,), back, drop=r.random() < 0.4)
        safe = replace(given, forward=replace(given.forward, safe=r.random() < 0.3))
        assert same(safe, whole), (m, n, seen, edge, change.kind, [each.kind for each in back])
