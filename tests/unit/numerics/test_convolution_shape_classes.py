"""Shape classes of convolutions: each is tested before its first call, and a failing kernel is dropped."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
import torch
from torch import Tensor

from protocol.numerics.kernels import convolution_dispatch, dispatch
from protocol.numerics.kernels.compiled import Compiled
from protocol.numerics.kernels.convolution import Convolution
from protocol.numerics.kernels.convolution_dispatch import convolution_for
from protocol.numerics.kernels.convolution_self_test import failure_of_class, operands, plain
from protocol.numerics.kernels.convolution_shape_classes import (
    AT_INPUT,
    AT_WEIGHT,
    BLOCK_PAIRS,
    FORWARD,
    ConvolutionCall,
    convolution_call,
    shape_classes_of,
)
from protocol.numerics.kernels.native import variants
from protocol.numerics.types import canonical
from protocol.program.library import CATALOGUE
from protocol.program.library import convolution as library
from protocol.program.library.windows import Sliding

ROOT = Path(__file__).parents[3]
VARIANTS = [variant for variant in variants() if variant != "amx"]  # amx has no separate convolutions
BITS = {FORWARD: (20, 20), AT_INPUT: (13, 13), AT_WEIGHT: (20, 13)}
EVERY_BITS = ((13, 13), (13, 20), (20, 13), (20, 20))
SEEDS = range(40)

pytestmark = pytest.mark.skipif(not VARIANTS, reason="the compiled library is not built")


def call(
    kind: int,
    n: int = 2,
    channels: tuple[int, int, int] = (1, 3, 5),
    size: tuple[int, int] = (9, 9),
    windows: tuple[int, ...] = (3, 3, 1, 1, 1, 1, 1, 1),
    bits: tuple[int, int] | None = None,
) -> ConvolutionCall:
    groups, inputs, outputs = channels
    names = (f"{name}_{axis}" for name in ("kernel", "stride", "padding", "dilation") for axis in "yx")
    sliding = dict(zip(names, windows, strict=True))
    s = Sliding(**sliding)
    x, g = (n, groups * inputs, *size), (n, groups * outputs, *s.count(*size))
    return convolution_call(kind, x, g, groups, sliding, bits or BITS[kind], kind == FORWARD and n % 2 == 0)


def random_call(r: Random) -> ConvolutionCall:
    """A random call: any windows that fit, with sizes around the limits of runs and panels."""
    while True:
        windows = tuple(
            r.randrange(a, b) for a, b in ((1, 6),) * 2 + ((1, 4),) * 2 + ((0, 4),) * 2 + ((1, 3),) * 2
        )
        size = r.choice((1, 2, 3, 5, 8, 19)), r.choice((1, 3, 4, 7, 15, 16, 17, 32, 33, 56))
        channels = (
            r.choice((1, 1, 2, 5)),
            r.choice((1, 2, 3, 17, 33, 130)),
            r.choice((1, 2, 11, 12, 13, 25, 64)),
        )
        if r.random() < 0.3:  # one channel per group
            size, channels = (r.choice((1, 3, 33, 70)), size[1]), (r.choice((1, 7, 8, 9, 21)), 1, 1)
        kind = r.choice((FORWARD, AT_INPUT, AT_WEIGHT))
        found = call(
            kind,
            r.choice((1, 2, 3, 5, 24)),
            channels,
            size,
            windows,
            r.choice(EVERY_BITS) if r.random() < 0.5 else None,
        )
        if min(found.result) > 0:
            return found


def written_out(given: ConvolutionCall, left: Tensor, image: Tensor, bias: Tensor | None) -> Tensor:
    """Compute the call with the library's windows and products."""
    name = ("conv", "conv_grad_input", "conv_grad_weight")[given.kind]
    more: dict[str, int] = {}
    operands, bits = (image, left), given.bits[::-1]
    if given.kind == AT_INPUT:
        more = {"height": given.size[0], "width": given.size[1]}
    if given.kind == AT_WEIGHT:
        operands, bits, more = (left, image), given.bits, {"gradient_in_windows": False}
    attributes = {"groups": given.groups, "px": bits[0], "py": bits[1], **given.sliding(), **more}
    (found,) = CATALOGUE[name].kernel(attributes)([t for t in (*operands, bias) if t is not None])
    return canonical(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_self_test_expects_the_plain_windows_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "convolution_for", lambda *_: None)
    for case in shape_classes_of(random_call(Random(f"plain {seed}"))):
        if case.pairs() > BLOCK_PAIRS:
            continue
        given = operands(case)
        found = plain(case, *given)
        assert torch.equal(found.view(torch.int32), written_out(case, *given).view(torch.int32)), case


@pytest.mark.parametrize("seed", SEEDS)
def test_a_case_is_of_its_own_class_and_no_larger_than_its_call(seed: int) -> None:
    r = Random(f"classes {seed}")
    for _ in range(20):
        given = random_call(r)
        for number, case in enumerate(shape_classes_of(given)):
            assert case.kernel == given.kernel
            assert case.stride == given.stride
            assert case.samples <= given.samples
            assert case.groups <= given.groups
            assert case.inputs <= given.inputs
            assert case.outputs <= given.outputs
            assert all(a <= b for a, b in zip(case.size, given.size, strict=True))
            assert all(1 <= a <= b for a, b in zip(case.result, given.result, strict=True))
            # the elements after the last window stay the same
            for axis in range(2):
                less = given.result[axis] - case.result[axis]
                assert given.size[axis] - case.size[axis] == less * given.stride[axis]
            if number == 0:
                assert shape_classes_of(case)[0] == case


def test_what_only_many_terms_reach_is_a_case_of_its_own() -> None:
    def pairs(given: ConvolutionCall) -> list[int]:
        return [case.pairs() for case in shape_classes_of(given)]

    few = call(AT_WEIGHT, 8, size=(8, 8))
    assert len(pairs(few)) == 1
    many = call(AT_WEIGHT, 128, (1, 64, 64), (32, 32))
    assert len(pairs(many)) == 2
    assert pairs(many)[0] <= BLOCK_PAIRS < pairs(many)[1] < 2 * BLOCK_PAIRS
    wide = call(AT_WEIGHT, 256, (1, 64, 64), (56, 56))
    assert [2 * k >= 1 << 18 for k in pairs(wide)] == [False, False, True]
    both = call(AT_WEIGHT, 128, (1, 64, 64), (32, 32), bits=(20, 20))
    assert [1 << 10 <= k < 1 << 12 for k in pairs(both)] == [False, True, True]


@pytest.mark.parametrize("kind", [FORWARD, AT_INPUT])
@pytest.mark.parametrize(
    ("bits", "most"),
    [((20, 20), (64, 228)), ((20, 13), (64,)), ((13, 13), (64,))],
    ids=["20x20", "20x13", "13x13"],
)
def test_sums_of_20_by_20_bits_beyond_2_to_51_are_a_case_of_their_own(
    kind: int, bits: tuple[int, int], most: tuple[int, ...]
) -> None:
    """2^11 terms of 2^40 sum to 2^51. With windows of 9 elements, 228 channels have that many terms."""
    found = shape_classes_of(call(kind, 4, (1, 512, 512), bits=bits))
    assert len(found) == len(most)
    for case, channels in zip(found, most, strict=True):
        assert (case.inputs if kind == FORWARD else case.outputs) <= channels
    assert len(shape_classes_of(call(kind, 4, (1, 200, 200), bits=bits))) == 1


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_instruction_set_passes_every_class(variant: str, seed: int) -> None:
    for case in shape_classes_of(random_call(Random(f"passes {seed}"))):
        assert failure_of_class(Convolution(variant), case) is None


@pytest.mark.parametrize("kind", [FORWARD, AT_INPUT, AT_WEIGHT])
@pytest.mark.parametrize("windows", [(1, 1, 2, 2, 0, 0, 1, 1), (3, 3, 1, 1, 1, 1, 1, 1)], ids=["1x1", "3x3"])
def test_any_number_of_panels_is_shared_by_any_number_of_threads(kind: int, windows: tuple[int, ...]) -> None:
    """Threads share the panels correctly even if the number of threads does not divide the number of panels.
    Examples are 5 panels for 4 threads, 11 for 8, and 22 for 16.
    """
    convolution = Convolution(VARIANTS[0])
    for panels in range(1, 25):
        wide = 12 * panels - 5
        channels = (1, 3, wide) if kind != AT_INPUT else (1, wide, 3)
        given = call(kind, 2, channels, (20, 11), windows)
        of = operands(given)
        expected = plain(given, *of).view(torch.int32)
        for threads in (1, 2, 3, 4, 5, 8, 16):
            found = canonical(convolution.run(given._replace(threads=threads), *of))
            assert torch.equal(found.view(torch.int32), expected), (wide, threads)


@pytest.mark.parametrize("kind", [FORWARD, AT_INPUT, AT_WEIGHT])
@pytest.mark.parametrize("channels", [1, 8, 19])
def test_channels_and_samples_are_shared_by_any_number_of_threads(kind: int, channels: int) -> None:
    convolution = Convolution(VARIANTS[0])
    for samples in (1, 3, 7):
        given = call(kind, samples, (channels, 1, 1), (11, 6), (3, 3, 2, 1, 1, 1, 1, 1))
        of = operands(given)
        expected = plain(given, *of).view(torch.int32)
        for threads in (1, 2, 3, 8):
            found = canonical(convolution.run(given._replace(threads=threads), *of))
            assert torch.equal(found.view(torch.int32), expected), (samples, threads)


@pytest.mark.parametrize("kind", [FORWARD, AT_INPUT, AT_WEIGHT])
@pytest.mark.parametrize("apart", [32, 33, 100_000])
def test_windows_that_reach_far_take_no_memory_for_what_lies_between(kind: int, apart: int) -> None:
    """The elements of a window are up to 100,000 rows and columns apart. Storing everything between them
    would take terabytes.
    """
    given = call(kind, 2, (9, 1, 1), (2, 3), (3, 3, 1, 1, apart, apart, apart, apart))
    assert given.is_depthwise() == (apart == 32)
    of = operands(given)
    expected = plain(given, *of).view(torch.int32)
    for variant in VARIANTS:
        found = canonical(Convolution(variant).run(given, *of))
        assert torch.equal(found.view(torch.int32), expected), variant


FAR = 1 << 21
WIDE_CALLS = {
    "stride": (FORWARD, (FAR + 1, 1), (1, 1, FAR, 1, 0, 0, 1, 1)),
    "stride of a weight gradient": (AT_WEIGHT, (FAR + 1, 1), (1, 1, FAR, 1, 0, 0, 1, 1)),
    "padding": (FORWARD, (1, 8), (1, 1, 1, FAR, 0, FAR, 1, 1)),
    "padding at the input": (AT_INPUT, (1, 8), (1, 1, 1, 8, 0, FAR, 1, 1)),
    "width": (FORWARD, (1, FAR), (1, 3, 1, 1, 0, 1, 1, 1)),
    "width at the input": (AT_INPUT, (2, FAR // 4), (3, 3, 1, 1, 1, 1, 1, 1)),
}


@pytest.mark.parametrize("name", WIDE_CALLS)
def test_one_channel_a_group_is_computed_by_products_where_slabs_would_be_large(name: str) -> None:
    """A thread's slabs have 64 bytes for each position, even for positions that a stride leaves out."""
    kind, size, windows = WIDE_CALLS[name]
    given = call(kind, 1, (1, 1, 1), size, windows)
    assert not given.is_depthwise()
    for one in shape_classes_of(given):
        assert not one.is_depthwise()
        assert all(failure_of_class(Convolution(variant), one) is None for variant in VARIANTS)
    of = operands(given)
    expected = plain(given, *of).view(torch.int32)
    assert torch.equal(canonical(Convolution(VARIANTS[0]).run(given, *of)).view(torch.int32), expected)


@pytest.mark.parametrize("seed", range(20))
def test_a_class_is_of_one_channel_a_group_where_its_call_is(seed: int) -> None:
    r = Random(f"one channel a group {seed}")
    windows = [r.choice((1, 1, 2, 3, 7)) for _ in range(2)]
    windows += [r.choice((1, 1, 2, 5, 70_000)) for _ in range(2)] + [
        r.choice((0, 1, 3, 90_000)) for _ in range(2)
    ]
    windows += [r.choice((1, 2, 9)) for _ in range(2)]
    size = r.choice(((40, 3), (3, 40), (200_000, 2), (2, 200_000), (70, 70)))
    for kind in (FORWARD, AT_INPUT, AT_WEIGHT):
        given = call(kind, r.choice((1, 4)), (r.choice((1, 9)), 1, 1), size, tuple(windows))
        assert {one.is_depthwise() for one in shape_classes_of(given)} == {given.is_depthwise()}


LARGE_STRIDES = """
import resource, torch
from protocol.program.library import CATALOGUE
torch.set_num_threads(2)
step, rows = 1 << 21, (1 << 21) + 1
windows = {f"{name}_{axis}": 1 for name in ("kernel", "stride", "dilation") for axis in "yx"}
windows |= {"stride_y": step, "padding_y": 0, "padding_x": 0, "groups": 1}
x, g, w = torch.ones(1, 1, rows, 1), torch.ones(1, 1, 2, 1), torch.ones(1, 1, 1, 1)
CATALOGUE["conv"].kernel(windows | {"stride_y": 1})([x[:, :, :9], w])
CATALOGUE["conv_grad_input"].kernel(windows | {"stride_y": 1, "height": 2, "width": 1})([g, w])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
y = CATALOGUE["conv"].kernel(windows)([x, w])[0]
back = CATALOGUE["conv_grad_input"].kernel(windows | {"height": rows, "width": 1})([g, w])[0]
print(y.sum().item(), back.sum().item(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_a_large_stride_takes_no_more_memory_than_its_price_says() -> None:
    """For an image of 8 MiB, slabs would take 128 MiB for each thread, and phases would take 400 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE_STRIDES], capture_output=True, text=True, cwd=ROOT, check=True
    )
    forward, back, mib = done.stdout.split()
    assert (float(forward), float(back)) == (2.0, 2.0)
    assert int(mib) < 120  # five times a peak of 24 MiB


class Planted(Convolution):
    """A convolution with a planted error: in calls for which `errs` holds, one bit of the result is wrong."""

    def __init__(self, variant: str, errs: Callable[[ConvolutionCall], bool]) -> None:
        super().__init__(variant)
        self.errs = errs

    def run(self, call: ConvolutionCall, left: Tensor, image: Tensor, bias: Tensor | None = None) -> Tensor:
        found = super().run(call, left, image, bias)
        if self.errs(call):
            found.view(torch.int32).view(-1)[-1] ^= 1
        return found


ERRORS: dict[str, tuple[Callable[[ConvolutionCall], bool], ConvolutionCall, ConvolutionCall]] = {
    "strides": (lambda c: c.stride == (2, 2), call(FORWARD), call(FORWARD, windows=(3, 3, 2, 2, 1, 1, 1, 1))),
    "groups": (lambda c: c.groups > 1, call(FORWARD), call(FORWARD, channels=(6, 3, 5))),
    "an odd channel": (
        lambda c: c.inputs % 2 == 1,
        call(FORWARD, channels=(1, 64, 5)),
        call(FORWARD, channels=(1, 65, 5)),
    ),
    "rows beside a panel": (
        lambda c: c.outputs % 12 == 4,
        call(FORWARD, channels=(1, 3, 24)),
        call(FORWARD, channels=(1, 3, 64)),
    ),
    "columns beside a run": (
        lambda c: c.result[1] % 4 == 3,
        call(FORWARD, size=(9, 64)),
        call(FORWARD, size=(9, 55)),
    ),
    "a full last panel": (
        lambda c: c.positions() % 32 == 0,
        call(FORWARD, 3, size=(7, 7)),
        call(FORWARD, 128, size=(8, 8)),
    ),
    "between strides": (
        lambda c: c.kind == AT_INPUT and c.stride == (2, 2),
        call(AT_INPUT, windows=(3, 3, 1, 1, 1, 1, 1, 1)),
        call(AT_INPUT, windows=(3, 3, 2, 2, 1, 1, 1, 1)),
    ),
    "an odd sample": (lambda c: c.samples % 2 == 1, call(AT_WEIGHT, 8), call(AT_WEIGHT, 9)),
    "the next block of terms": (
        lambda c: c.pairs() > BLOCK_PAIRS,
        call(AT_WEIGHT, 8),
        call(AT_WEIGHT, 128, (1, 64, 64), (32, 32)),
    ),
    "the gradient in the windows": (
        lambda c: c.bits == (13, 20),
        call(AT_WEIGHT),
        call(AT_WEIGHT, bits=(13, 20)),
    ),
    "20 x 20 bits": (
        lambda c: c.bits == (20, 20),
        call(FORWARD, bits=(13, 13)),
        call(FORWARD, bits=(20, 20)),
    ),
    "sums beyond 2^51": (
        lambda c: c.inputs >= 228,
        call(FORWARD, channels=(1, 64, 5)),
        call(FORWARD, channels=(1, 512, 5)),
    ),
    "a channel a group": (
        ConvolutionCall.is_depthwise,
        call(FORWARD, channels=(8, 1, 2)),
        call(FORWARD, channels=(8, 1, 1)),
    ),
    "channels beside eight": (
        lambda c: c.is_depthwise() and c.groups % 8 == 3,
        call(FORWARD, channels=(32, 1, 1)),
        call(FORWARD, channels=(35, 1, 1)),
    ),
    "the next slab of rows": (
        lambda c: c.is_depthwise() and c.result[0] > 32,
        call(FORWARD, channels=(8, 1, 1)),
        call(FORWARD, channels=(8, 1, 1), size=(112, 9)),
    ),
    "long sums in a sample": (
        lambda c: c.is_depthwise() and c.result[0] * c.result[1] > 1 << 11,
        call(AT_WEIGHT, 64, channels=(8, 1, 1), size=(16, 16), bits=(20, 20)),
        call(AT_WEIGHT, 4, channels=(8, 1, 1), size=(96, 48), bits=(20, 20)),
    ),
    "long sums over samples": (
        lambda c: c.is_depthwise() and 2 * c.pairs() >= 1 << 11,
        call(AT_WEIGHT, 4, channels=(8, 1, 1), size=(16, 16), bits=(20, 20)),
        call(AT_WEIGHT, 64, channels=(8, 1, 1), size=(16, 16), bits=(20, 20)),
    ),
    "a dilation": (
        lambda c: c.dilation == (2, 2),
        call(AT_WEIGHT),
        call(AT_WEIGHT, windows=(3, 3, 1, 1, 2, 2, 2, 2)),
    ),
}
"""For each error: when it occurs, a call whose class does not show it, and a call whose class does."""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clear this process's self-test results before and after the test."""
    monkeypatch.delenv(dispatch.VARIABLE, raising=False)

    def forget() -> None:
        convolution_dispatch._failed.clear()
        for known in (convolution_dispatch._chosen, convolution_dispatch._tested):
            known.cache_clear()

    forget()
    yield
    forget()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_one_class_is_refused_there(
    error: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errs, other, of_the_class = ERRORS[error]
    fastest, *rest = [v for v in VARIANTS if v != "portable"]
    planted = Planted(fastest, errs)
    monkeypatch.setattr(convolution_dispatch, "_of", lambda v: planted if v == fastest else Convolution(v))
    x = torch.ones(1)
    assert convolution_for(x, other) is planted
    with caplog.at_level(logging.WARNING):
        for given in (of_the_class, other, of_the_class):  # after one wrong bit it is never used again
            found = convolution_for(x, given)
            assert (found.name if found else None) == (f"convolution-{rest[0]}" if rest else None)
    assert caplog.text.count(f"{planted.name} is not used") == 1
    assert "wrong bits" in caplog.text


@pytest.mark.usefixtures("fresh")
def test_a_product_kernel_that_is_found_wrong_later_takes_its_convolutions_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A convolution was chosen before."""
    given, x = call(FORWARD), torch.ones(1)
    first = convolution_for(x, given)
    assert first is not None
    (pairs,) = (
        k for k in dispatch.KERNELS if isinstance(k, Compiled) and first.name.endswith(f"-{k.variant}")
    )
    try:
        with monkeypatch.context() as patch:
            patch.setitem(dispatch._failed, (pairs, "cpu"), "wrong bits")
            for known in (dispatch._chosen, dispatch.is_usable):
                known.cache_clear()
            found = convolution_for(x, given)
            assert found is None or found.name != first.name
    finally:
        for known in (dispatch._chosen, dispatch.is_usable):
            known.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_without_a_usable_one_windows_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_dispatch, "_of", lambda v: Planted(v, lambda _: True))
    assert convolution_for(torch.ones(1), call(FORWARD)) is None
    given = operands(call(FORWARD))
    assert torch.equal(written_out(call(FORWARD), *given), plain(call(FORWARD), *given))


@pytest.mark.usefixtures("fresh")
def test_the_order_of_products_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dispatch.VARIABLE, "float64")
    assert convolution_for(torch.ones(1), call(FORWARD)) is None
    monkeypatch.setenv(dispatch.VARIABLE, "int16-portable")
    found = convolution_for(torch.ones(1), call(FORWARD))
    assert found is not None
    assert found.name == "convolution-portable"


@pytest.mark.parametrize("kind", [FORWARD, AT_INPUT, AT_WEIGHT])
def test_a_huge_kernel_is_not_self_tested(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its self-test would multiply once for each of 2^24 elements.
    asked: list[ConvolutionCall] = []
    monkeypatch.setattr(convolution_dispatch, "_chosen", lambda _, given, *_others: asked.append(given))
    square, one = (4096, 4096), (1, 1, 1)
    huge = call(kind, 1, one, square, (*square, 1, 1, 0, 0, 1, 1))
    assert convolution_for(torch.ones(1), huge) is None
    assert asked == []
    most = call(kind, 1, one, (64, 64), (64, 64, 1, 1, 0, 0, 1, 1))
    convolution_for(torch.ones(1), most)
    assert asked == [most]
