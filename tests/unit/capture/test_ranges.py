"""Integers out of range are found on the committed data; integers in range are computed as in torch."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CaptureError
from protocol.capture.analysis.ranges import bounds_of_shared, bounds_of_written, require_ranges
from protocol.capture.analysis.transfers import TRANSFERS
from protocol.capture.inputs.dataset import example_batch
from protocol.capture.lowering.rules import RULES
from protocol.capture.tracing.tracer import TracedStep, trace_step
from tests.unit.capture.integers import Batch, both, checked
from tests.unit.capture.steps import DATASET, captured, cross_entropy

ROWS = 11
GENERATOR = torch.Generator().manual_seed(4)
DATA = {
    "small": torch.randint(-9, 10, (ROWS,), generator=GENERATOR),
    "large": torch.randint(0, 2**31, (ROWS,), generator=GENERATOR),
    "any": torch.randint(-(2**31), 2**31, (ROWS,), generator=GENERATOR),
}
"""Tensors that can be an operation's second operand. The first operand is the previous result. Some
operations take a number in place of the tensor.
"""
FACTORS = [-31, -1, 0, 1, 2, 3, 31, 1000, 2**20]
DIVISORS = [1, 2, 3, 7, 64, 1000, 65_537, 2**20, 2**31 - 1, 2**31, 2**33]
OF_ROWS: dict[str, tuple[list[int], Callable[[Tensor, Tensor, int], Tensor]]] = {
    "add": ([0], lambda x, y, _: x + y),
    "add number": (FACTORS, lambda x, _, k: x + k),
    "sub": ([0], lambda x, y, _: x - y),
    "rsub": (FACTORS, lambda x, _, k: k - x),
    "mul": ([0], lambda x, y, _: x * y),
    "mul number": (FACTORS, lambda x, _, k: x * k),
    "remainder": (DIVISORS, lambda x, _, k: x % k),
    "floor_divide": (DIVISORS, lambda x, _, k: x // k),
    "where": ([0], lambda x, y, _: torch.where(x < y, y, x - 1)),
    "clamp": (DIVISORS[:-2], lambda x, _, k: x.clamp(-k, k)),
    "abs": ([0], lambda x, _, __: x.abs()),
    "and": (DIVISORS[:-2], lambda x, _, k: x & k),
    "xor": ([0], lambda x, y, _: x ^ y),
    "not": ([0], lambda x, _, __: ~x),
    "shift left": ([0, 1, 7, 31, 40, 64], lambda x, _, k: x << k),
    "shift right": ([0, 1, 7, 31, 40, 64], lambda x, _, k: x >> k),
    "int32": (FACTORS, lambda x, y, k: (x.int() * k + y.int()).long()),
    "max": ([0], lambda x, y, _: torch.maximum(x, y)),
}
"""Operations that compute each row separately. Each entry has the list from which the operation's scalar `k`
is drawn ([0] if it uses none), and the operation.
"""
OF_BATCHES: dict[str, tuple[list[int], Callable[[Tensor, Tensor, int], Tensor]]] = {
    "sum": ([0], lambda x, _, __: x.sum().expand(x.shape)),
    "cumsum": ([0], lambda x, _, __: x.cumsum(0)),
    "flip": ([0], lambda x, _, __: x.flip(0)),
}
ALL = OF_ROWS | OF_BATCHES
Steps = list[tuple[str, str, int]]


def results(steps: Steps, batch: Batch) -> list[Tensor]:
    """The tensor `small`, and then the result of each operation in order."""
    found = [batch["small"]]
    for name, other, number in steps:
        found.append(ALL[name][1](found[-1], batch[other], number))
    return found


def drawn(seed: int) -> Steps:
    """One to five random operations.

    They do not come from hypothesis, because it reads the clock at every garbage collection.
    """
    rng = random.Random(seed)
    names = rng.choices(sorted(ALL), k=rng.randint(1, 5))
    return [(name, rng.choice(sorted(DATA)), rng.choice(ALL[name][0])) for name in names]


@pytest.mark.parametrize("seed", range(60))
def test_integers_are_refused_or_torchs(seed: int) -> None:
    steps = drawn(seed)
    every = torch.cat(results(steps, DATA))
    try:
        step, data = checked(lambda batch: results(steps, batch)[-1], DATA)
    except CaptureError as refusal:
        found = str(refusal)
    else:
        for ours, theirs in both(lambda batch: results(steps, batch)[-1], step, data):
            assert ours.tolist() == theirs.tolist()
        return
    assert "beyond 32 bits" in found
    if all(name in OF_ROWS and name != "int32" for name, _, _ in steps):
        assert every.min() < -(2**31) or every.max() >= 2**31


def test_the_row_that_is_too_large_is_named() -> None:
    def function(batch: Batch, number: int) -> Tensor:
        return (batch["large"] + batch["small"]) % 1000 * number * batch["small"]

    checked(lambda batch: function(batch, 7), DATA)
    with pytest.raises(
        CaptureError, match=r"row 1 of dataset tensor small, large gives aten.mul.Tensor the result"
    ):
        checked(lambda batch: function(batch, 2**20), DATA)


def test_int32_wraps_as_in_torch() -> None:
    def function(batch: Batch) -> Tensor:
        x = batch["any"].int()
        return torch.stack([x * 31, x + 2**30, -x, x << 5, (x * 31) // 7, (x * 31) % 1000, x.abs()])

    step, data = checked(function, DATA)
    for ours, theirs in both(function, step, data):
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_a_micro_batch_is_what_is_summed(micro_batches: int) -> None:
    dataset = {**DATASET, "n": torch.full((50,), 2**29)}

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return cross_entropy(model, batch) * (batch["n"].sum() % 7 + 1)

    options: dict[str, Any] = {"batch_size": 6, "micro_batches": micro_batches, "preflight": False}
    if micro_batches == 2:  # 3 * 2^29 < 2^31
        captured(nn.Linear(8, 3), objective, dataset=dataset, **options)
        return
    with pytest.raises(CaptureError, match=r"may give aten\.sum\.default results from 3221225472"):
        captured(nn.Linear(8, 3), objective, dataset=dataset, **options)


def test_a_row_is_found_in_the_batches_of_one_unit() -> None:
    labels = DATASET["y"].clone()
    labels[37] = 5
    with pytest.raises(CaptureError, match=r"row 37 of dataset tensor y .* index 5"):
        captured(nn.Linear(8, 3), dataset={**DATASET, "y": labels}, batch_size=8, micro_batches=4)


def test_columns_that_are_not_used_do_not_matter() -> None:
    data = {"n": torch.tensor([[99, 3, 4], [98, 9, 0], [-7, 0, 1]])}
    checked(lambda batch: torch.arange(10)[batch["n"][:, 1:]], data, rows=2)
    with pytest.raises(
        CaptureError, match=r"row 0 of dataset tensor n gives aten.index.Tensor the index 99; .* -10 to 9"
    ):
        checked(lambda batch: torch.arange(10)[batch["n"][:, :2]], data, rows=2)


def shifted(batch: Batch) -> Tensor:
    """Labels as decoder inputs: shifted by one position, with -100 replaced by 0."""
    words = batch["labels"].new_zeros(batch["labels"].shape)
    words[..., 1:] = batch["labels"][..., :-1].clone()
    words[..., 0] = 4
    return words.masked_fill(words == -100, 0)


def test_gathered_indices_are_those_of_their_rows() -> None:
    data = {"labels": torch.tensor([[1, -100, 3], [5, -100, 2], [7, -100, 9]])}

    def gathered(batch: Batch) -> Tensor:
        return batch["labels"].gather(1, (batch["labels"] < 3).long() * 2)

    checked(lambda batch: torch.arange(10)[gathered(batch)], data, rows=2)
    data["labels"][1, 2] = 12
    with pytest.raises(CaptureError, match=r"row 1 of dataset tensor labels .* the index 12"):
        checked(lambda batch: torch.arange(10)[gathered(batch)], data, rows=2)


def test_shifted_labels_are_indices_of_their_rows() -> None:
    data = {"labels": torch.tensor([[1, 2, 3], [5, -100, -100], [7, 8, 99], [9, -100, 1]])}
    step, data = checked(lambda batch: torch.arange(10)[shifted(batch)], data, rows=2)
    for ours, theirs in both(lambda batch: torch.arange(10)[shifted(batch)], step, data, rows=2):
        assert ours.tolist() == theirs.tolist()
    data["labels"][2, 1] = 12
    with pytest.raises(CaptureError, match=r"row 2 of dataset tensor labels .* the index 12"):
        checked(lambda batch: torch.arange(10)[shifted(batch)], data, rows=2)


def test_a_place_in_the_batch_may_decide() -> None:
    data = {"n": torch.tensor([5, 0, 5, 0])}
    with pytest.raises(CaptureError, match=r"may give aten.index.Tensor any index from 0 to 10"):
        checked(
            lambda batch: torch.arange(10)[batch["n"] + torch.arange(2) * 5],
            data,
            rows=2,
        )
    checked(lambda batch: torch.arange(10)[batch["n"] + torch.arange(2)], data, rows=2)


def test_floats_of_the_dataset_become_indices() -> None:
    x = torch.linspace(0.0, 9.5, 7)
    checked(lambda batch: torch.arange(10)[batch["x"].long()], {"x": x}, rows=3)
    with pytest.raises(CaptureError, match=r"row 6 of dataset tensor x gives aten.index.Tensor the index 19"):
        checked(
            lambda batch: torch.arange(10)[(batch["x"] * 2).long()], {"x": torch.where(x < 9, 0, x)}, rows=3
        )
    with pytest.raises(CaptureError, match=r"row 6 .*_to_copy.* the result 9500000256"):
        checked(lambda batch: (torch.where(batch["x"] < 9, 0, batch["x"]) * 1e9).long() % 7, {"x": x}, rows=3)


def test_what_torch_refuses_is_refused() -> None:
    data = {"n": torch.tensor([4, 2, 0])}
    with pytest.raises(CaptureError, match=r"torch refuses rows 2 to 2 of the dataset: .*ZeroDivisionError"):
        checked(lambda batch: (2**31 // batch["n"]) * 9, data, rows=1)


WRITTEN: dict[str, tuple[int, Callable[[Tensor, Tensor], Tensor], str | None]] = {
    "counts on": (0, lambda kept, _: kept + 1, None),
    "counts on beyond 32 bits": (2**31 - 4, lambda kept, _: kept + 1, "to 2147483648"),
    "adds up a batch": (0, lambda kept, n: kept + n.sum(), "from 0 to 4000000000"),
    "hashes": (1, lambda kept, n: kept * 31 + n[0], "beyond 32 bits"),
    "hashes in range": (1, lambda kept, n: (kept * 31 + n[0]) % 1000, None),
    "starts again": (0, lambda kept, n: torch.where(n[0] > 5, kept + 1, 0), None),
    "keeps the last": (0, lambda kept, n: n[0] + 0 * kept, None),
    "counts down": (-(2**31) + 2, lambda kept, _: kept - 1, "from -2147483649"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_buffers_over_all_steps(name: str) -> None:
    start, update, refusal = WRITTEN[name]
    data = {"n": torch.tensor([0, 10, 500_000_000])}

    class Writing(nn.Module):
        kept: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))
            self.register_buffer("kept", torch.tensor(start))

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(model, Writing)
        model.kept.copy_(update(model.kept, batch["n"]))
        return model.weight * 2

    step = trace_step(Writing(), objective, example_batch(data, 2))
    if refusal is None:
        require_ranges(step, data, steps=4)
    else:
        with pytest.raises(CaptureError, match=refusal):
            require_ranges(step, data, steps=4)


FLOATS = {
    *(
        "_adaptive_avg_pool2d",
        "_log_softmax",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_functional",
    ),
    *("_native_batch_norm_legit_no_training", "_safe_softmax", "_softmax", "addcdiv", "addmm", "addmv"),
    *(
        "avg_pool2d",
        "baddbmm",
        "bernoulli",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "bmm",
    ),
    *(
        "ceil",
        "celu",
        "convolution",
        "cos",
        "div",
        "dot",
        "elu",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "gelu",
    ),
    *(
        "glu",
        "hardsigmoid",
        "hardswish",
        "huber_loss",
        "index_add",
        "leaky_relu",
        "lerp",
        "linalg_vector_norm",
    ),
    *(
        "log",
        "log1p",
        "log_sigmoid_forward",
        "logsumexp",
        "mean",
        "mish",
        "mm",
        "mse_loss",
        "mv",
    ),
    *("native_batch_norm", "native_dropout", "native_group_norm", "native_layer_norm", "nll_loss2d_forward"),
    *("nll_loss_forward", "rand", "reciprocal", "round", "rsqrt", "scatter_add", "sigmoid", "silu", "sin"),
    *("smooth_l1_loss", "softplus", "sqrt", "std", "tanh", "threshold", "var", "var_mean", "xlogy"),
    *("lstm", "lstm_grad", "gru", "gru_grad", "rnn", "rnn_grad"),
}
"""Operations whose rules refuse integers or convert them to floats."""
BOOLS = {"all", "any", "eq", "ge", "gt", "isinf", "isnan", "le", "logical_and", "logical_not", "logical_or"}
BOOLS |= {"logical_xor", "lt", "ne"}


OF_COUNTERS: list[tuple[list[int], Callable[[Tensor, int], Tensor]]] = [
    ([-9, -1, 1, 2, 30], lambda n, k: n + k),
    ([-2, -1, 2, 3], lambda n, k: n * k),
    ([-4, 0, 3, 50], lambda n, k: n.clamp(min=k)),
    ([-4, 0, 3, 50], lambda n, k: n.clamp(max=k)),
    ([2, 5, 64], lambda n, k: n % k),
    ([2, 3], lambda n, k: n // k),
    ([4, 30], lambda n, k: torch.maximum(n + 10, n.clamp(max=k) * 3 // 2)),
]
"""Operations that a phase does with a counter. Each has the numbers from which its `k` is drawn."""


class TwoCounters(nn.Module):
    """A parameter and two counters."""

    def __init__(self, begun: tuple[int, int], dtype: torch.dtype) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(()))
        self.register_buffer("n", torch.tensor(begun[0], dtype=dtype))
        self.register_buffer("m", torch.tensor(begun[1], dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("seed", range(40))
def test_counters_that_several_phases_write_stay_within_their_bounds(seed: int, dtype: torch.dtype) -> None:
    """The phases' operations, and the steps in which a phase acts, are random. Some phases act in every step, and
    some only add to the counters, once per micro-batch. An int64 that leaves 32 bits is refused.
    """
    rng = random.Random(seed)
    steps = rng.choice([1, 2, 6, 40])
    begun = rng.randint(-5, 5), rng.choice([rng.randint(-5, 5), 2**31 - 7, -(2**31)])
    phases = [
        [(rng.choice("nm"), rng.choice("nm"), rng.choice(OF_COUNTERS), rng.random()) for _ in range(3)]
        for _ in range(rng.randint(2, 3))
    ]
    added = [rng.choice([None, None, (1, -3), (2**30, 7), (-(2**29), 2**20)]) for _ in phases]
    units = [1 if by is None else rng.randint(1, 3) for by in added]
    always = [rng.random() < 0.6 for _ in phases]

    def act(counters: dict[str, Tensor], phase: int) -> None:
        if (by := added[phase]) is not None:
            counters["n"], counters["m"] = counters["n"] + by[0], counters["m"] + by[1]
            return
        for to, of, (numbers, operation), share in phases[phase]:
            counters[to] = operation(counters[of], numbers[int(share * len(numbers))])
        counters["n"], counters["m"] = counters["n"] + 0, counters["m"] + 0  # each phase writes both

    def objective(phase: int) -> Callable[[nn.Module, Mapping[str, Tensor]], Tensor]:
        def writing(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
            counters = dict(model.named_buffers())
            act(counters, phase)
            for name, t in counters.items():
                setattr(model, name, t)
            return model.get_parameter("w") * batch["x"].mean()

        return writing

    traced, dataset = [], {"x": torch.zeros(4)}
    for phase in range(len(phases)):
        step = trace_step(TwoCounters(begun, dtype), objective(phase), {"x": torch.zeros(2)})
        assert set(step.written) == {"n", "m"}
        traced.append(replace(step, moving=frozenset("nm")))
    often = [dict.fromkeys("nm", times) for times in units]
    bounds = bounds_of_shared(traced, dataset, steps, often, always)

    def is_refused() -> bool:
        try:
            for step, moving, each in zip(traced, bounds, often):
                require_ranges(step, dataset, steps, moving, each)
        except CaptureError:
            return True
        return False

    refused = is_refused()
    for _ in range(20):
        counters = {"n": torch.tensor(begun[0], dtype=dtype), "m": torch.tensor(begun[1], dtype=dtype)}
        fit = True
        for _ in range(steps):
            for phase, each in enumerate(always):
                if (each or rng.random() < 0.5) and fit:
                    for name, t in counters.items():
                        assert bounds[phase][name].low <= int(t) <= bounds[phase][name].high
                    for _ in range(units[phase]):
                        act(counters, phase)
                    fit = all(-(2**31) <= int(t) < 2**31 for t in counters.values())
                    assert fit or refused


OF_TWO: list[tuple[list[int], Callable[[Tensor, Tensor, int], Tensor]]] = [
    ([-9, -1, 1, 2, 30], lambda n, _, k: n + k),
    ([1], lambda n, m, _: n + m),
    ([1], lambda n, m, _: n - m),
    ([-2, 2], lambda n, _, k: n * k),
    ([-4, 0, 3, 50], lambda n, m, k: torch.where(n > k, n, m)),
    ([-4, 0, 3, 50], lambda n, m, k: torch.maximum(n, m + k)),
    ([-4, 0, 3, 50], lambda n, m, k: torch.minimum(n, m + k)),
    ([3, 30, 300], lambda n, m, k: torch.maximum(n, m.clamp(max=k) * 3 // 2)),
    ([5, 64], lambda n, _, k: n % k),
    ([2, 3], lambda n, _, k: n // k),
    ([0], lambda n, m, _: torch.stack([n, m]).unbind()[1]),
]
"""Operations that a step does with two counters. Each has the numbers from which its `k` is drawn."""


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("seed", range(60))
def test_counters_stay_within_their_bounds_over_many_steps(seed: int, dtype: torch.dtype) -> None:
    """The operations are random. An int64 that leaves 32 bits is refused."""
    rng, steps = random.Random(seed), 70
    begun = rng.randint(-5, 5), rng.randint(-5, 5)
    operations = [(rng.random() < 0.5, *rng.choice(OF_TWO), rng.random()) for _ in range(rng.randint(1, 4))]

    def act(n: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        for swap, numbers, operation, share in operations:
            n, m = (m, n) if swap else (n, m)
            n = operation(n, m, numbers[int(share * len(numbers))])
        return n + 0, m + 0

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        model.n, model.m = act(model.get_buffer("n"), model.get_buffer("m"))
        return model.get_parameter("w") * batch["x"].mean()

    step = trace_step(TwoCounters(begun, dtype), objective, {"x": torch.zeros(2)})
    dataset = {"x": torch.zeros(4)}
    bounds = bounds_of_written(step, dataset, steps, {})
    try:
        require_ranges(step, dataset, steps)
        refused = False
    except CaptureError:
        refused = True
    n, m = (torch.tensor(number, dtype=dtype) for number in begun)
    for _ in range(steps):
        if not all(-(2**31) <= int(t) < 2**31 for t in (n, m)):
            assert refused
            break
        assert bounds["n"].low <= int(n) <= bounds["n"].high
        assert bounds["m"].low <= int(m) <= bounds["m"].high
        n, m = act(n, m)


def counted_by(update: Callable[[Tensor], Tensor]) -> TracedStep:
    """A step that replaces the counter `n` by `update(n)`. The counter is 0 at first."""

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        model.n = update(model.get_buffer("n"))
        return model.get_parameter("w") * batch["x"].mean()

    return trace_step(TwoCounters((0, 0), torch.int64), objective, {"x": torch.zeros(2)})


@pytest.mark.parametrize(
    ("update", "steps", "low", "high"),
    [
        (lambda n: torch.maximum(n + 10, n.clamp(max=30) * 3 // 2), 8, 0, 75),
        (lambda n: torch.maximum(n + 10, n.clamp(max=30) * 3 // 2), 4_000, 0, 39_995),
        (lambda n: torch.maximum(n + 10, n.clamp(max=30) * 3 // 2), 10**6, 10 - 2**31, 2**31 - 1),
        (lambda n: n + 1, 10**8, 0, 10**8 - 1),
        (lambda n: (n + 1).clamp(max=10_000), 10**8, 0, 10_000),
        (lambda n: (n + 1) % 10_000, 10**8, 0, 9_999),
        (lambda n: torch.where(n < 9_000, n + 3, n), 20_000, 0, 59_997),
        (lambda n: n + n.clamp(max=1), 50, 0, 0),
    ],
)
def test_bounds_of_a_counter(update: Callable[[Tensor], Tensor], steps: int, low: int, high: int) -> None:
    found = bounds_of_written(counted_by(update), {"x": torch.zeros(4)}, steps, {})["n"]
    assert (found.low, found.high) == (low, high)


def test_every_operation_on_integers_has_bounds() -> None:
    names = {overload: overload.overloadpacket.__name__ for overload in RULES if overload not in TRANSFERS}
    backward = {name for name in names.values() if name.endswith(("_backward", "_backward_data"))}
    assert set(names.values()) - backward == FLOATS | BOOLS
    assert all(overload in RULES for overload in TRANSFERS)


INTEGERS = torch.tensor([[3, -4], [7, 1]])


@pytest.mark.parametrize(
    "function",
    [
        lambda n: n @ n,
        lambda n: n[0].dot(n[1]),
        lambda n: n.floor(),
        lambda n: n.round(),
        lambda n: F.threshold(n, 1, 0),
        lambda n: n.index_add(0, torch.tensor([1, 0]), n),
        lambda n: n.scatter_add(0, n.clamp(0, 1), n),
        lambda n: n.index_put((torch.tensor([1, 0]),), n, accumulate=True),
        lambda n: n ** n.abs(),
    ],
)
def test_operations_without_bounds_refuse_integers(function: Callable[[Tensor], Tensor]) -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        loss: Tensor = model(batch["x"]).sum() * function(batch["n"]).sum()
        return loss

    dataset = {"x": torch.ones(2, 8), "n": INTEGERS}
    with pytest.raises(CaptureError, match="aten"):
        captured(nn.Linear(8, 3), objective, dataset=dataset, batch_size=2, preflight=False)
