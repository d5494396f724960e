"""Compiled convolutions and batch norm have the plain functions' bits, and self-tests refuse wrong bits."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from protocol.numerics import elementwise, operations
from protocol.numerics.kernels import channels_dispatch, channels_self_test
from protocol.numerics.kernels.channels import Channels
from protocol.numerics.kernels.convolution import Convolution
from protocol.numerics.kernels.dispatch import VARIABLE
from protocol.numerics.kernels.native import variants
from protocol.numerics.types import canonical
from protocol.program.library import CATALOGUE, batch_norm
from protocol.program.library import convolution as library
from protocol.program.library.windows import Sliding

VARIANTS = [variant for variant in variants() if variant != "amx"]  # amx has no compiled layers
EACH = pytest.mark.parametrize("variant", VARIANTS)
SEEDS = range(24)
MEMORY_LIMIT = 1 << 22
"""Maximum number of window elements of a random case. Larger cases are skipped, because the plain path stores
all window elements.
"""


class PlainChannels(Channels):
    """Batch norm computed with the library's plain functions."""

    def statistics(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        mean, rstd, following = CATALOGUE["batch_statistics"].kernel({"eps": eps})([x])
        return mean, rstd, following

    def sums(self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
        first, second = CATALOGUE["batch_norm_sums"].kernel({})([g, x, mean, rstd])
        return first, second

    def normalise(
        self, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        return _run("batch_normalise", *(t for t in (x, mean, rstd, gain, bias) if t is not None))

    def grad(
        self,
        g: Tensor,
        x: Tensor,
        statistics: tuple[Tensor, Tensor],
        sums: tuple[Tensor, Tensor],
        gain: Tensor | None,
    ) -> Tensor:
        return _run("batch_norm_grad", *(t for t in (g, x, *statistics, *sums, gain) if t is not None))


def _run(name: str, *operands: Tensor, **attributes: Any) -> Tensor:
    (result,) = CATALOGUE[name].kernel(attributes)(operands)
    return result


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off compiled layers."""
    monkeypatch.setattr(library, "convolution_for", lambda *_: None)
    monkeypatch.setattr(batch_norm, "channels_for", lambda _: None)


@pytest.fixture
def fresh() -> Iterator[None]:
    """Clear this process's self-test results before and after the test."""
    channels_dispatch._usable.cache_clear()
    yield
    channels_dispatch._usable.cache_clear()


@pytest.mark.usefixtures("plain")
def test_digests_are_those_of_the_plain_functions() -> None:
    assert channels_self_test.digests_of(PlainChannels("plain")) == channels_self_test.DIGESTS


@EACH
@pytest.mark.parametrize("threads", [1, 2])
def test_every_instruction_set_gives_the_digests(variant: str, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert channels_self_test.digests_of(Channels(variant)) == channels_self_test.DIGESTS
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not VARIANTS, reason="the compiled library is not built")
@pytest.mark.usefixtures("fresh")
def test_a_wrong_bit_keeps_them_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    x = torch.ones(2, 3, 4)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert channels_dispatch.channels_for(x) is not None
    name = next(iter(channels_self_test.DIGESTS))
    monkeypatch.setitem(channels_self_test.DIGESTS, name, "0" * 16)
    channels_dispatch._usable.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert channels_dispatch.channels_for(x) is None
    assert name in caplog.text


@pytest.mark.usefixtures("plain")
def test_the_self_test_sees_beyond_the_first_piece() -> None:
    class OneBitOff(PlainChannels):
        """Flips a bit of every element beyond the first 2^14 of a channel."""

        def normalise(
            self, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None, bias: Tensor | None
        ) -> Tensor:
            y = super().normalise(x, mean, rstd, gain, bias).clone()
            y[..., 1 << 14 :].view(torch.int32).bitwise_xor_(1)
            return y

    found = channels_self_test.digests_of(OneBitOff("planted"))
    assert {name for name, made in found.items() if made != channels_self_test.DIGESTS[name]} == {
        "all of long channels"
    }


@pytest.mark.usefixtures("fresh")
def test_float64_products_run_torchs_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "float64")
    assert channels_dispatch.channels_for(torch.ones(1, 1, 1)) is None


def _values(chance: random.Random, generator: torch.Generator, shape: tuple[int, ...]) -> Tensor:
    """Random f32 values of one of six kinds: ordinary, of very different magnitudes by channel, just below 1
    in magnitude, half zeros, all zeros, or with one special value.
    """
    x = torch.randn(shape, generator=generator)
    kind = chance.randrange(6)
    if kind == 0:
        x = x * 2.0 ** torch.randint(-60, 60, shape[:2], generator=generator)[..., None, None]
    if kind == 1:
        x = torch.sign(x) * (1 - 2.0**-24)
    if kind == 2:
        x = torch.full(shape, 1 - 2.0**-24)
    if kind == 3:
        x = torch.relu(x)
    if kind == 4:
        x.view(-1)[chance.randrange(x.numel())] = chance.choice([math.nan, math.inf, -math.inf, 3e38, 1e-42])
    if kind == 5 and chance.random() < 0.3:
        x = x * 0
    return x


@EACH
@pytest.mark.parametrize("seed", SEEDS)
def test_convolutions_of_all_shapes_have_the_plain_bits(
    variant: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    done = 0
    while done < 3:
        groups = chance.choice([1, 1, 1, 2, 3])
        inputs, outputs = chance.choice([1, 2, 3, 5, 8, 16, 33]), chance.choice([1, 2, 4, 12, 13, 25])
        n, height = chance.randrange(1, 6), chance.randrange(1, 20)
        width = chance.choice([chance.randrange(1, 36), 4, 8, 16, 32])
        draws = [
            chance.randrange(a, b)
            for a, b in ((1, 4), (1, 4), (1, 4), (1, 4), (0, 4), (0, 4), (1, 3), (1, 3))
        ]
        s = Sliding(*draws)
        count = s.count(height, width)
        windows = n * groups * inputs * s.kernel_y * s.kernel_x * height * width
        if min(count) < 1 or windows > MEMORY_LIMIT:
            continue
        done += 1
        x = _values(chance, generator, (n, groups * inputs, height, width))
        w = _values(chance, generator, (groups * outputs, inputs, s.kernel_y, s.kernel_x))
        g = _values(chance, generator, (n, groups * outputs, *count))
        bias = [torch.randn(groups * outputs, generator=generator)] * chance.randrange(2)
        sliding = {"groups": groups, **s.attributes()}
        size = {"height": height + chance.randrange(3), "width": max(1, width - chance.randrange(2))}
        calls: list[tuple[str, tuple[Tensor, ...], dict[str, Any]]] = [
            ("conv", (x, w, *bias), {}),
            ("conv_grad_input", (g, w), {"height": height, "width": width}),
            ("conv_grad_input", (g, w), size),
            ("conv_grad_weight", (g, x), {"gradient_in_windows": False}),
            ("conv_grad_weight", (g, x), {"gradient_in_windows": True}),
        ]
        calls = [
            (name, operands, more | dict(zip(("px", "py"), bits, strict=False)))
            for name, operands, more in calls
            for bits in ((), (13, 13), (13, 20), (20, 13), (20, 20))
        ]
        for name, operands, more in calls:
            monkeypatch.setattr(library, "convolution_for", lambda *_: Convolution(variant))
            found = _run(name, *operands, **sliding, **more)
            monkeypatch.setattr(library, "convolution_for", lambda *_: None)
            expected = canonical(_run(name, *operands, **sliding, **more))
            assert torch.equal(found.view(torch.int32), expected.view(torch.int32)), (name, sliding, x.shape)


@EACH
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (2, 3, 1000), (4, 70, 16), (1, 2, 20000)], ids=str)
def test_batch_norm_has_the_plain_bits(
    variant: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, generator = random.Random(str(shape)), torch.Generator().manual_seed(1)
    for _ in range(6):
        g, x = (_values(chance, generator, (*shape, 1)).squeeze(-1) for _ in range(2))
        vectors = [torch.randn(shape[1], generator=generator) for _ in range(6)]
        calls: list[tuple[str, tuple[Tensor, ...], dict[str, Any]]] = [
            ("batch_statistics", (x,), {"eps": 1e-5}),
            ("batch_norm_sums", (g, x, *vectors[:2]), {}),
            *(("batch_normalise", (x, *vectors[:k]), {}) for k in (2, 3, 4)),
            *(("batch_norm_grad", (g, x, *vectors[:k]), {}) for k in (4, 5)),
        ]
        for name, operands, attributes in calls:
            kernel = CATALOGUE[name].kernel(attributes)
            monkeypatch.setattr(batch_norm, "channels_for", lambda _: Channels(variant))
            found = kernel(operands)
            monkeypatch.setattr(batch_norm, "channels_for", lambda _: None)
            for one, other in zip(found, kernel(operands), strict=True):
                assert torch.equal(one.view(torch.int32), canonical(other).view(torch.int32)), name


@pytest.mark.parametrize("x", [0.0, -0.0, math.nan, 2.5])
@pytest.mark.parametrize("shape", [(), (1, 1, 1), None], ids=["one", "one of more axes", "many"])
def test_select_without_branches_is_select(x: float, shape: tuple[int, ...] | None) -> None:
    generator = torch.Generator().manual_seed(2)
    size = (3, elementwise.MANY // 3 + 1)
    y = torch.randn(size, generator=generator)
    y[0, 5], y[1, 6], y[2, 7] = math.nan, math.inf, -0.0
    left = torch.full(size if shape is None else shape, x)
    zero = torch.zeros(())
    for condition in (torch.rand(size, generator=generator) < 0.5, torch.ones(1, size[1], dtype=torch.bool)):
        for a, b in ((left, y), (y, left), (zero, left), (left, zero)):
            expected = canonical(torch.where(condition, a, b))
            for select in (operations.select, elementwise.select):
                found = select(condition, a, b)
                assert found.shape == expected.shape
                assert torch.equal(found.view(torch.int32), expected.contiguous().view(torch.int32))
