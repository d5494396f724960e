"""The operations that `capture` expands into other operations. Their results and gradients are compared with
those of plain torch in float64.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CaptureError, capture
from protocol.capture.expansion.table import EXPANSIONS
from tests.unit.capture.expansion_cases import CASES, cross, one
from tests.unit.capture.operations import Case, by_capture, by_torch
from tests.unit.capture.steps import captured

aten = torch.ops.aten


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward_and_backward_are_torchs(case: Case) -> None:
    result, gradients = by_capture(case)
    expected, expected_gradients = by_torch(case)
    for ours, theirs in zip([result, *gradients], [expected, *expected_gradients], strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=case.rtol, atol=case.atol)


NAN, INFINITE = math.nan, math.inf
SPECIAL = torch.tensor([3.0, NAN, 1.0, -INFINITE, 2.0, NAN, INFINITE, 1.0])


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (aten.sort.default, (SPECIAL, 0)),
        (aten.sort.default, (SPECIAL, 0, True)),
        (aten.topk.default, (SPECIAL, 4)),
        (aten.cummax.default, (SPECIAL, 0)),
        (aten.cummin.default, (SPECIAL, 0)),
        (aten.histc.default, (torch.full((5,), 2.0), 4)),
        (aten.acosh.default, (torch.tensor([-1e9, 0.5, 1.0, INFINITE, NAN]),)),
        (aten.asin.default, (torch.tensor([1.5, -1.5, 1.0, -1.0, 0.0, NAN]),)),
        (aten.acos.default, (torch.tensor([1.5, -1.5, 1.0, -1.0, 0.0, NAN]),)),
        (
            aten.atan2.default,
            (
                torch.tensor([1.0, NAN, INFINITE, -INFINITE, 0.0]),
                torch.tensor([NAN, 1.0, INFINITE, INFINITE, -1.0]),
            ),
        ),
        (aten.hypot.default, (torch.tensor([INFINITE, 3.0, 0.0]), torch.tensor([INFINITE, 4.0, 0.0]))),
        (aten.trunc.default, (torch.tensor([3, -2]),)),
        (aten.logaddexp.default, (torch.tensor([INFINITE, -INFINITE]), torch.tensor([INFINITE, -INFINITE]))),
        (aten.exp2.default, (torch.tensor([NAN, INFINITE, -INFINITE, 500.0, -500.0]),)),
    ],
    ids=str,
)
def test_what_is_not_finite_is_torchs(operation: Any, args: tuple[Any, ...]) -> None:
    if operation is aten.exp2.default:
        result, _ = by_capture(Case("exp2", lambda x: torch.exp2(x.detach()), args))
        torch.testing.assert_close(result, operation(*args), equal_nan=True)
        return
    ours, theirs = EXPANSIONS[operation](*args), operation(*args)
    if (
        operation is aten.sort.default or operation is aten.topk.default
    ):  # torch may order equal elements either way
        ours, theirs = ours[0], theirs[0]
    torch.testing.assert_close(ours, tuple(theirs) if isinstance(theirs, tuple) else theirs, equal_nan=True)


FINITE = torch.tensor([1.0, -1.0, 0.0, 5.0, 7.0, -7.0, 3.3, -1e-9, 123456.0])
DIVISORS = torch.tensor([0.1, 0.1, INFINITE, INFINITE, -INFINITE, -0.1, 0.3, 0.1, 0.7])
WITH_NAN = torch.tensor([[1.0, NAN, 2.0, NAN], [3.0, 1.0, 2.0, 4.0]])
EDGES = torch.tensor([-1.0, 1.5, 2.0])
BYTES = torch.tensor([44, 255, 0, 3], dtype=torch.uint8)
EXACT: list[tuple[str, Any, list[Tensor]]] = [
    ("remainder", lambda x: torch.remainder(x, 0.1), [FINITE]),
    ("remainder of less than 0", lambda x: torch.remainder(x, -0.1), [FINITE]),
    ("remainder by tensors", torch.remainder, [FINITE, DIVISORS]),
    ("remainder by a power of two", lambda x: torch.remainder(x, 0.5), [FINITE]),
    ("remainder of what is not finite", lambda x: torch.remainder(x, 0.1), [SPECIAL]),
    ("remainder by 0", lambda x: torch.remainder(x, 0.0), [FINITE]),
    ("fmod", lambda x: torch.fmod(x, 0.1), [FINITE]),
    ("fmod by tensors", torch.fmod, [FINITE, DIVISORS]),
    ("floor divide", lambda x: torch.floor_divide(x, 0.1), [FINITE]),
    ("floor divide by tensors", torch.floor_divide, [FINITE, DIVISORS]),
    ("floor divide of what is not finite", lambda x: torch.floor_divide(x, 0.1), [SPECIAL]),
    ("floor divide by 0", lambda x: torch.floor_divide(x, 0.0), [FINITE]),
    (
        "floor divide by powers of two",
        lambda x: torch.stack([torch.floor_divide(x, y) for y in (2.0, -2.0, 4, 2.0**127, 1.0, -0.5)]),
        [torch.tensor([-(2.0**-149), 2.0**-149, -1.0, 3.0, -7.5, -0.0, 1e6])],
    ),
    ("norm -2", lambda x: torch.linalg.vector_norm(x, -2, 1), [torch.tensor([[0.0, 2.0], [3.0, 0.0]])]),
    ("norm -2 of infinity", lambda x: torch.linalg.vector_norm(x, -2), [torch.tensor([INFINITE, -INFINITE])]),
    ("median of NaN", torch.median, [WITH_NAN]),
    ("medians of NaN", lambda x: torch.stack(x.median(1)[:1]), [WITH_NAN]),
    ("places of medians", lambda x: x.median(1, True).indices, [WITH_NAN]),
    ("bucketize NaN", lambda x, y: torch.bucketize(x, y), [WITH_NAN, EDGES]),
    ("bucketize NaN right", lambda x, y: torch.bucketize(x, y, right=True), [WITH_NAN, EDGES]),
    ("searchsorted NaN", lambda x, y: torch.searchsorted(y, x), [WITH_NAN, EDGES]),
    ("addr", lambda x, y: torch.addr(x[:, :3] * NAN, x[:, 0], y, beta=0), [WITH_NAN[1:] + 1, EDGES]),
    ("bool eq", lambda m: torch.stack([m == k for k in (0, 1, 2, -1)]), [BYTES > 3]),
    ("bool ne", lambda m: torch.stack([m != k for k in (0, 1, 2, -1)]), [BYTES > 3]),
    ("byte eq", lambda x: torch.stack([x == k for k in (44, 300, -1)]), [BYTES]),
    ("byte lt", lambda x: torch.stack([x < k for k in (44, 300, -1)]), [BYTES]),
]


@pytest.mark.parametrize(("operation", "operands"), [each[1:] for each in EXACT], ids=[x[0] for x in EXACT])
def test_a_result_is_exactly_torchs_in_f32(operation: Any, operands: list[Tensor]) -> None:
    case = Case("exact", lambda *given: operation(*(t.detach() for t in given)), operands)
    result, _ = by_capture(case)
    torch.testing.assert_close(result, operation(*operands).float(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("operation", [torch.remainder, torch.fmod, torch.floor_divide])
def test_divisions_with_a_rest_are_exact(operation: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2000, generator=generator) * 10.0 ** torch.randint(-3, 6, (2000,), generator=generator)
    y = torch.randn(2000, generator=generator)
    y = torch.where(x.abs() / y.abs() < 2**23, y, 1.0)
    for other in (y, x / torch.randint(1, 100, (2000,), generator=generator)):
        result, _ = by_capture(Case("exact", lambda x, y: operation(x.detach(), y.detach()), [x, other]))
        torch.testing.assert_close(result, operation(x, other), rtol=0, atol=0)


@pytest.mark.parametrize("values", [[1e12, 1e-12], [-INFINITE, 1.0], [-INFINITE, -INFINITE]], ids=str)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_write_at_distinct_places_is_a_copy(values: list[float], ordered: bool) -> None:

    class Copy(nn.Module):
        """Writes the values into a buffer."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("given", torch.tensor(values))
            self.register_buffer("scores", torch.tensor([3.0, 1.0, 2.0, 1e20]))
            self.register_buffer("result", torch.zeros(4))

        def forward(self) -> Tensor:
            y = self.get_buffer("scores") * 2
            if ordered:
                y = y.index_put((y.topk(2).indices,), self.get_buffer("given"))
            else:
                y[[0, 2]] = self.get_buffer("given")
            self.get_buffer("result").copy_(y)
            return self.weight.square().sum()

    model = Copy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = {"rows": torch.zeros(1, 1)}
    step = capture(model, lambda m, _: m(), optimizer, rows, batch_size=1, steps=1)
    result = step.step(step.initial_state(0))["result"]
    assert result[[3, 0] if ordered else [0, 2]].tolist() == torch.tensor(values).tolist()
    assert result[1] == 2.0


DEEP = 1_200
"""More operations one behind the other than Python allows nested calls."""


@pytest.mark.parametrize("of_constants", [False, True], ids=["a mask of the data", "constant indices"])
def test_a_write_behind_many_operations_is_captured(of_constants: bool) -> None:
    class Writing(nn.Linear):
        """Writes into its input."""

        def forward(self, x: Tensor) -> Tensor:
            y, index = x.clone(), torch.arange(8)
            for _ in range(DEEP):
                x, index = (x, (index + 1) % 8) if of_constants else (x * 1.001, index)
            y[:, index] = x * 2
            if not of_constants:
                y[x > 0.5] = 0.25
            return super().forward(y)

    report = captured(Writing(8, 3)).preflight
    assert report is not None
    assert report.gradient_error < 1e-2


def test_writes_at_one_place_are_refused() -> None:
    twice = Case("twice", cross, [(3, 4), (2, 2), torch.tensor([2, -1])])
    with pytest.raises(CaptureError, match="without adding up"):
        by_capture(twice)


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 1.5, 3.0, 4.0])
def test_distances_of_any_order_have_torchs_gradient(order: float) -> None:
    x, y = torch.randn(3, 4, generator=torch.Generator().manual_seed(1)), torch.zeros(2, 4)
    x[0, 1], x[1] = 0.0, 0.0
    g = torch.ones(3, 2)
    found = aten._cdist_forward(x, y, order, None)
    ours = EXPANSIONS[aten._cdist_backward.default](g, x, y, order, found)
    torch.testing.assert_close(ours, aten._cdist_backward(g, x, y, order, found))


ENDS = torch.tensor([2, 2, 7, 8], dtype=torch.int32)


def in_groups(x: Tensor, y: Tensor) -> Tensor:
    """The products of the groups that `ENDS` delimits, in one tensor. Terms are grouped if both operands have
    two axes, rows if only `x` has two, and columns if only `y` has two. If both have three axes, nothing is
    grouped, and the result is the plain batched product.
    """
    starts, ends = [0, *ENDS.tolist()], ENDS.tolist()
    groups = [slice(start, end) for start, end in zip(starts, ends)]
    if x.dim() == y.dim():
        return torch.stack([x[:, group] @ y[group] for group in groups]) if x.dim() == 2 else x @ y
    if x.dim() == 2:
        return torch.cat([x[group] @ matrix for group, matrix in zip(groups, y)])
    return torch.cat([matrix @ y[:, group] for group, matrix in zip(groups, x)], 1)


@pytest.mark.parametrize(
    "shapes",
    [[(8, 4), (4, 4, 12)], [(4, 12, 4), (4, 8)], [(4, 8), (8, 12)], [(2, 8, 4), (2, 4, 12)]],
    ids=["rows", "columns", "terms", "none"],
)
def test_grouped_products_are_those_of_each_group(shapes: list[tuple[int, ...]]) -> None:
    offs = [] if len(shapes[0]) == len(shapes[1]) == 3 else [ENDS]
    operands: list[tuple[int, ...] | Tensor] = [*shapes, *offs]
    case = Case("grouped", lambda x, y, *ends: F.grouped_mm(x, y, offs=ends[0] if ends else None), operands)
    result, gradients = by_capture(case)
    expected, expected_gradients = by_torch(Case("grouped", lambda x, y, *_: in_groups(x, y), operands))
    for ours, theirs in zip([result, *gradients], [expected, *expected_gradients], strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(("before", "after"), [(1, 7), (2, 4), (6, 3), (7, 3)])
def test_adaptive_means_of_every_size(before: int, after: int) -> None:
    case = Case("adaptive", lambda x: F.adaptive_avg_pool2d(x, (after, after)), [(1, 2, before, before)])
    result, gradients = by_capture(case)
    expected, expected_gradients = by_torch(case)
    for ours, theirs in zip([result, *gradients], [expected, *expected_gradients], strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.sum().cumprod(0),
        lambda x: torch.searchsorted(x[0].sort().values, x[0, 0]),
        lambda x: (x * 2)[1:].as_strided((2, 4), (4, 1), 0),
    ],
)
def test_what_no_expansion_takes_is_refused_by_name(use: Any) -> None:
    with pytest.raises(CaptureError, match=r"aten\.(cumprod|searchsorted|as_strided)"):
        by_capture(one("refused", use))
