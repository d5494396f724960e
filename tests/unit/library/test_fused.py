"""Compiled functions: the expected digests are those of the plain implementations' results, and a wrong
compiled function is refused.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from protocol.numerics import elementary_torch, elementwise, indexing, reductions
from protocol.numerics.kernels import fused_dispatch, lists
from protocol.numerics.kernels.dispatch import VARIABLE
from protocol.numerics.kernels.fused import FUSED, Fused, Map, Pair
from protocol.numerics.kernels.fused_digests import CPU_DIGESTS, DIGESTS
from protocol.numerics.kernels.fused_self_test import NANS, SCALARS, digest, digests_of, numbers
from protocol.numerics.types import DType, canonical
from protocol.program.library.function import CATALOGUE

HERE = [f for f in (*FUSED, Fused("portable")) if f.available()]
GELU = {Map.GELU_ERF: False, Map.GELU_TANH: True, Map.GELU_ERF_GRAD: False, Map.GELU_TANH_GRAD: True}


class Plain(Fused):
    """The same functions as the compiled ones, computed by the library without compiled code."""

    def map(self, function: Map, x: Tensor, g: Tensor | None = None) -> Tensor:
        name = function.name.lower()
        if function in GELU:
            return _library("gelu" if g is None else "gelu_grad", *_given(g, x), tanh=GELU[function])
        if function in (Map.SILU, Map.SILU_GRAD):
            return _library(name, *_given(g, x))
        result: Tensor = getattr(elementary_torch, f"{name}_f32")(x)
        return result

    def pair(self, operation: Pair, x: Tensor, y: Tensor) -> Tensor:
        run = getattr(elementwise, operation.name.lower())
        result: Tensor = run(x, y, DType.F32) if operation >= Pair.LT else run(x, y)
        return result

    def select(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return elementwise.select(condition, x, y)

    def softmax(self, x: Tensor, safe: bool) -> Tensor:
        return _library("softmax", x, safe=safe)

    def softmax_grad(self, g: Tensor, y: Tensor) -> Tensor:
        return _library("softmax_grad", g, y)

    def log_softmax(self, x: Tensor) -> Tensor:
        return _library("log_softmax", x)

    def log_softmax_grad(self, g: Tensor, y: Tensor) -> Tensor:
        return _library("log_softmax_grad", g, y)

    def sum_rows(self, x: Tensor) -> Tensor:
        return reductions.sum_f32(x)

    def sum_columns(self, x: Tensor) -> Tensor:
        return reductions.sum_f32(x, axis=0)

    def layer_norm(
        self, x: Tensor, gain: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        assert gain is not None
        assert bias is not None
        y, mean, rstd = CATALOGUE["layer_norm"].kernel({"eps": eps})([x, gain, bias])
        return y, mean, rstd

    def layer_norm_grad(
        self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None
    ) -> Tensor:
        return _library("layer_norm_grad", *_given(g, x, mean, rstd, gain))

    def layer_norm_grad_gain(self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
        return _library("layer_norm_grad_gain", g, x, mean, rstd)

    def adamw(
        self, tensors: tuple[Tensor, Tensor, Tensor, Tensor], scalars: tuple[float, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        scales = [torch.tensor(value) for value in scalars[:3]]
        kernel = CATALOGUE["adamw"].kernel({"beta1": scalars[3], "beta2": scalars[5]})
        p, m, v = kernel([*tensors, *scales])
        return p, m, v

    def sgd(
        self,
        tensors: tuple[Tensor, ...],
        rate: float,
        weight_decay: float,
        momentum: float = 0.0,
        nesterov: bool = False,
    ) -> tuple[Tensor, ...]:
        given = [*tensors, torch.tensor(rate)]
        if len(tensors) == 2:
            return CATALOGUE["sgd"].kernel({"weight_decay": weight_decay})(given)
        attributes = {"weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov}
        return CATALOGUE["sgd_momentum"].kernel(attributes)(given)

    def scatter_sum(self, index: Tensor, value: Tensor, rows: int) -> Tensor:
        return canonical(indexing.scatter_sum(index, value, rows))

    def lstm_cell(self, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        x, product, cell = given
        raw = elementwise.add(x, product).chunk(4, 1)
        i, f, o = (elementary_torch.sigmoid_f32(raw[k]) for k in (0, 1, 3))
        g = elementary_torch.tanh_f32(raw[2])
        after = elementwise.add(elementwise.mul(f, cell), elementwise.mul(i, g))
        h = elementwise.mul(o, elementary_torch.tanh_f32(after))
        for to, found in zip(made, (torch.cat([i, f, g, o], 1), after, h)):
            to.copy_(found)

    def lstm_cell_grad(self, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        own_h, later_h, own_c, later_c, gates, cell, before = given
        add, mul, one = elementwise.add, elementwise.mul, torch.ones(())
        i, f, g, o = gates.chunk(4, 1)
        dh, t = add(own_h, later_h), elementary_torch.tanh_f32(cell)
        dc = add(add(own_c, later_c), mul(mul(dh, o), elementwise.sub(one, mul(t, t))))
        slopes = [mul(y, elementwise.sub(one, y)) for y in (i, f, o)]
        raw = [
            mul(mul(dc, g), slopes[0]),
            mul(mul(dc, before), slopes[1]),
            mul(mul(dc, i), elementwise.sub(one, mul(g, g))),
            mul(mul(dh, t), slopes[2]),
        ]
        for to, found in zip(made, (torch.cat(raw, 1), mul(dc, f))):
            to.copy_(found)

    def emit(
        self, tensors: tuple[Tensor, Tensor, Tensor], block: int, decay: float, top: float
    ) -> tuple[Tensor, ...]:
        attributes = {"block": block, "decay": decay, "most_exponent": math.frexp(top)[1]}
        return CATALOGUE["lane_emit"].kernel(attributes)(tensors)

    def absorb(
        self,
        tensors: tuple[Tensor, Tensor],
        messages: Sequence[Sequence[Tensor]],
        sizes: tuple[int, int],
        scalars: tuple[float, float, float],
    ) -> tuple[Tensor, Tensor]:
        rate, divisor, returned = scalars
        assert returned == 1.0, "of a lane that is not a member"
        counts = [divisor, *([0.0] * (len(messages) - 2))]
        own, *inbox = messages
        operands = [*own, *(t for m, count in zip(inbox, counts) for t in (*m, torch.tensor(count)))]
        attributes = {"block": sizes[0], "rate": rate, "most_exponent": sizes[1]}
        nobody = torch.tensor(-1, dtype=torch.int32)
        moved, kept = CATALOGUE["lane_absorb"].kernel(attributes)([*tensors, nobody, *operands])
        return moved, kept

    def canonical_in_place(self, x: Tensor) -> Tensor:
        return canonical(x)


def _library(name: str, *operands: Tensor, **attributes: bool) -> Tensor:
    return CATALOGUE[name].kernel(attributes)(operands)[0]


def with_other_nans(x: Tensor) -> Tensor:
    """A copy in which the NaNs of `x` have other bits than the canonical one."""
    found = x.clone()
    words = found.view(torch.int32)
    for k, word in enumerate(NANS):
        words.view(-1)[k :: len(NANS)].masked_fill_(found.view(-1)[k :: len(NANS)].isnan(), word)
    return found


def _given(*operands: Tensor | None) -> list[Tensor]:
    return [x for x in operands if x is not None]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def test_the_digests_are_those_of_the_plain_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "float64")
    assert fused_dispatch.fused_for(torch.ones(1)) is None
    assert digests_of(Plain("none")) == {**DIGESTS, **CPU_DIGESTS}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("compiled", HERE, ids=lambda f: f.name)
def test_every_instruction_set_passes_its_self_test(compiled: Fused) -> None:
    assert digests_of(compiled) == {**DIGESTS, **CPU_DIGESTS}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("compiled", HERE, ids=lambda f: f.name)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (700, 3), (3, 4099), (513, 130)], ids=str)
def test_arrays_of_every_size_have_the_bits_of_the_plain_lists(
    compiled: Fused, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some sizes are multiples of the number of threads, of the width of a column strip or of the vector
    length, and others are not.
    """
    x, g = numbers(11, *(max(n, 30) for n in shape)), numbers(12, *(max(n, 30) for n in shape))
    x, g = x[-shape[0] :, : shape[1]].contiguous(), g[-shape[0] :, : shape[1]].contiguous()
    wide = x.clamp(-50, 50)  # no specials, so that rows and columns stay finite
    wide = torch.where(wide == wide, wide, 0.5)
    index = ((torch.arange(len(x)) * 2654435761 >> 7) % 43 - 2).to(torch.int32)
    mean, rstd, gain = x[:, :1].contiguous(), g[:, :1].contiguous(), g[0].contiguous()
    monkeypatch.setenv(VARIABLE, "float64")
    plain = Plain("none")
    for which in Map:
        slope = g if which >= Map.GELU_ERF_GRAD else None
        assert digest(compiled.map(which, x, slope)) == digest(plain.map(which, x, slope))
    functions: tuple[Callable[[Fused], Tensor | tuple[Tensor, ...]], ...] = (
        lambda f: f.softmax(x, True),
        lambda f: f.softmax_grad(g, x),
        *(
            lambda f, operation=operation, y=y: (f.pair(operation, x, y), f.pair(operation, y, x))
            for operation in Pair
            for y in (g, *(x.new_tensor(one) for one in (0.0, -0.0, math.nan, -math.inf, 1.5)))
        ),
        *(
            lambda f, one=one: (f.select(g < x, x, one), f.select(g < x, one, g), f.select(g < x, x, g))
            for one in (x.new_tensor(0.0), x.new_tensor(math.nan), x.new_tensor([[-0.0]]))
        ),
        lambda f: f.log_softmax(x),
        lambda f: f.log_softmax(wide),
        lambda f: f.log_softmax_grad(g, x),
        lambda f: f.sum_rows(x),
        lambda f: f.sum_columns(x),
        lambda f: f.layer_norm(x, gain, gain, 1e-5),
        lambda f: f.layer_norm_grad(g, x, mean, rstd, gain),
        lambda f: f.layer_norm_grad(g, x, mean, rstd, None),
        lambda f: f.layer_norm_grad_gain(g, x, mean, rstd),
        lambda f: f.adamw((x, g, g, x), SCALARS),
        *(
            lambda f, operands=operands, given=given: f.sgd(operands, *given)
            for operands in ((x, g), (x, g, mean.expand_as(x)))
            for given in (
                (0.1, 0.0),
                (0.1, 0.01),
                (math.nan, 1e-60),
                (0.1, 0.0, 0.9, True),
                (0.1, 0.01, 0.9, True),
            )
            if len(given) == 2 or len(operands) == 3
        ),
        lambda f: f.scatter_sum(index, x, 40),
        lambda f: f.scatter_sum(index, wide, 3),
        lambda f: f.canonical_in_place(with_other_nans(x)),
    )
    for run in functions:
        assert digest(run(compiled)) == digest(run(plain))


def test_the_compiled_lists_are_written_from_the_lists() -> None:
    assert lists.FILE.read_text() == lists.source(), "run python -m protocol.numerics.kernels.lists"


def test_a_wrong_function_keeps_its_instruction_set_out(caplog: pytest.LogCaptureFixture) -> None:
    class OneBitOff(Plain):
        """A planted instruction set with an error: its AdamW replaces each new parameter by the next f32
        towards zero.
        """

        def adamw(
            self, tensors: tuple[Tensor, Tensor, Tensor, Tensor], scalars: tuple[float, ...]
        ) -> tuple[Tensor, Tensor, Tensor]:
            p, m, v = super().adamw(tensors, scalars)
            return torch.nextafter(p, torch.zeros(())), m, v

    with caplog.at_level(logging.WARNING):
        assert not fused_dispatch._passes(OneBitOff("planted"))
    assert "wrong bits in adamw" in caplog.text


BEYOND: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "a piece of elements": ("map", lambda y: y.view(-1)[1 << 14 :]),
    "a piece of chosen elements": ("select", lambda y: y.view(-1)[1 << 14 :]),
    "a piece of rows": ("softmax", lambda y: y.view(-1)[1 << 14 :]),
    "a block of a row": ("log_softmax", lambda y: y[..., 256:]),
    "a strip of columns": ("sum_columns", lambda y: y[..., 1024:]),
    "a piece of rows that are named": ("scatter_sum", lambda y: y[15:]),
    "a piece of what is made canonical": ("canonical_in_place", lambda y: y.view(-1)[1 << 16 :]),
}
"""For each kind of piece: the name of a function that works on such pieces, and a way to select the elements
of the function's result that lie beyond the first piece. The errors are planted in these elements.
"""


@pytest.mark.parametrize("what", BEYOND)
def test_an_error_beyond_the_first_piece_keeps_a_set_out(what: str, caplog: pytest.LogCaptureFixture) -> None:
    function, beyond = BEYOND[what]
    planted = Plain("planted")
    run = getattr(planted, function)

    def one_bit_off(*operands: Any) -> Tensor:
        result: Tensor = run(*operands).clone()
        beyond(result).view(torch.int32).bitwise_xor_(1)
        return result

    setattr(planted, function, one_bit_off)
    with caplog.at_level(logging.WARNING):
        assert not fused_dispatch._passes(planted)
    assert caplog.text.count("wrong bits in") == 1
    assert f"wide {function.removesuffix('_in_place')}" in caplog.text


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_a_set_that_does_not_run_is_left_out(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> dict[str, str]:
        raise error("no memory")

    monkeypatch.setattr(fused_dispatch, "digests_of", fails)
    with caplog.at_level(logging.WARNING):
        assert not fused_dispatch._passes(Plain("planted"))
    assert "they do not run (no memory)" in caplog.text


@pytest.mark.parametrize("function", ["canonical_in_place", "softmax", "scatter_sum"])
def test_another_nan_keeps_a_set_out(function: str, caplog: pytest.LogCaptureFixture) -> None:
    planted = Plain("planted")
    run = getattr(planted, function)

    def negative(*operands: Any) -> Tensor:
        result: Tensor = run(*operands).clone()
        result.view(torch.int32).masked_fill_(result != result, NANS[0])
        return result

    setattr(planted, function, negative)
    with caplog.at_level(logging.WARNING):
        assert not fused_dispatch._passes(planted)
    assert f"wrong bits in {function.removesuffix('_in_place')}" in caplog.text


def turned(x: Tensor) -> Tensor:
    """The same matrix in column-major order."""
    return x.mT.contiguous().mT


X, G = torch.linspace(-2, 3, 35).view(5, 7), torch.linspace(1, -4, 35).view(5, 7)
GAIN, ROW = torch.linspace(0.5, 1.5, 7), torch.linspace(-1, 1, 5).view(5, 1)
CALLS: dict[str, Callable[[Fused, Tensor, Tensor], object]] = {
    "map": lambda f, x, g: f.map(Map.GELU_TANH_GRAD, x, g),
    "pair": lambda f, x, g: f.pair(Pair.ADD, x, g),
    "select": lambda f, x, g: f.select(x > 0, x, g),
    "softmax": lambda f, x, _: f.softmax(x, True),
    "softmax_grad": lambda f, x, g: f.softmax_grad(g, x),
    "log_softmax": lambda f, x, _: f.log_softmax(x),
    "log_softmax_grad": lambda f, x, g: f.log_softmax_grad(g, x),
    "sum_rows": lambda f, x, _: f.sum_rows(x),
    "sum_columns": lambda f, x, _: f.sum_columns(x),
    "layer_norm": lambda f, x, _: f.layer_norm(x, GAIN, GAIN, 1e-5),
    "layer_norm_grad": lambda f, x, g: f.layer_norm_grad(g, x, ROW, ROW.abs(), GAIN),
    "layer_norm_grad_gain": lambda f, x, g: f.layer_norm_grad_gain(g, x, ROW, ROW.abs()),
    "adamw": lambda f, x, g: f.adamw((x, g, g, x.abs()), (1e-3, 1e-8, 0.99, 0.9, 0.1, 0.99, 0.01)),
    "sgd": lambda f, x, g: f.sgd((x, g, g), 0.1, 0.01, 0.9, True),
    "scatter_sum": lambda f, x, _: f.scatter_sum(torch.tensor([0, 2, 2, 1, 0], dtype=torch.int32), x, 3),
}


@pytest.mark.parametrize("fused", HERE, ids=lambda fused: fused.name)
@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_where_operands_lie(fused: Fused, name: str) -> None:
    right = CALLS[name](fused, X, G)
    for x, g in ((turned(X), G), (X, turned(G)), (turned(X), turned(G))):
        found = CALLS[name](fused, x, g)
        torch.testing.assert_close(found, right, rtol=0, atol=0)
