"""Product kernels: each has the bits of plain integers, and a wrong kernel is never used."""

from __future__ import annotations

import logging
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest
import torch
from torch import Tensor

from protocol.numerics import rows
from protocol.numerics.contract import contract
from protocol.numerics.kernels import dispatch, native
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.kernels.float64 import Float64
from protocol.numerics.kernels.int8 import Int8
from protocol.numerics.kernels.self_test import failure_of_widths
from protocol.numerics.reference import floats
from protocol.numerics.reference import rows as plain
from protocol.numerics.types import NumericsError

CPU = torch.device("cpu")
HERE = [kernel for kernel in dispatch.KERNELS if kernel.available(CPU)]
PAIRS = [(13, 13), (20, 13), (13, 20), (20, 20)]
every_kernel = pytest.mark.parametrize("kernel", HERE, ids=lambda kernel: kernel.name)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def patterns(x: Tensor) -> list[int]:
    return [v & 0xFFFFFFFF for v in x.contiguous().view(torch.int32).flatten().tolist()]


def spread(generator: torch.Generator, *shape: int) -> Tensor:
    """Rows of very different magnitudes, with terms over twenty binades and some zeros."""
    x = torch.randn(shape, generator=generator)
    x *= torch.exp2(torch.randint(-20, 1, shape, generator=generator).float())
    x *= torch.exp2(torch.randint(-90, 60, (*shape[:-1], 1), generator=generator).float())
    return torch.where(torch.rand(shape, generator=generator) < 0.2, 0.0, x)


@cache
def judged(px: int, py: int, seed: int) -> tuple[Tensor, Tensor, list[int]]:
    """Operands of a random shape and layout, and the integer reference's result."""
    g = torch.Generator().manual_seed(seed)
    m, n, k = (int(torch.randint(1, high, (), generator=g)) for high in (16, 40, 150))
    x, y = spread(g, m, k), spread(g, n, k)
    if seed % 2:
        x, y = x.mT.contiguous().mT, y.mT.contiguous().mT
    y[0, 0] = (math.inf, math.nan, -math.inf, 3e38, 1e-44, -0.0)[seed]
    return x, y, [plain.contract(patterns(a), patterns(b), px, py) for a in x for b in y]


def test_the_library_is_built_where_there_is_a_compiler() -> None:
    """`make setup` builds the library. This test is skipped without a compiler."""
    if shutil.which("c++") is None or sys.platform != "linux":
        pytest.skip("no C++ compiler that is known to have OpenMP: `c++` on Linux")
    assert {"baseline", "portable"} <= set(native.variants())


@cache
def ties() -> tuple[Tensor, Tensor, list[int]]:
    """Rows x [M, K] and y [1, K], and the bits of their products as f32.

    Each product is a 54-bit integer halfway between two f32, or 2^k above or below halfway, for k from 0 to
    28.
    """
    largest = 2.0**20 - 2.0**-4  # below 2^20, so that the exponent is 20, and rounded to 2^20
    y = torch.tensor([[*[largest] * 2**13, 2.0**15, 2.0**10, 1.0, 2.0**10]])
    found, right = [], []
    for odd in (0, 1):
        for more in (0, *(sign << k for k in range(29) for sign in (1, -1))):
            low, high = (more, 0) if abs(more) < 1 << 20 else (0, more >> 10)
            row = torch.tensor([*[largest] * 2**13, odd * 2.0**15, 2.0**19, float(low), float(high)])
            whole = (1 << 53) + (odd << 30) + (1 << 29) + more
            for sign in (0, 1):
                found.append(-row if sign else row)
                right.append(floats.round_f32(sign, whole, 0))
    return torch.stack(found), y, right


@every_kernel
def test_every_kernel_rounds_sums_beside_halfway_points_to_the_nearest(kernel: ProductKernel) -> None:
    x, y, right = ties()
    assert patterns(kernel.contract(x, y, 20, 20)) == right


@pytest.mark.usefixtures("threads")
@every_kernel
@pytest.mark.parametrize(("px", "py"), PAIRS)
def test_every_kernel_passes_its_self_test(kernel: ProductKernel, px: int, py: int) -> None:
    assert failure_of_widths(kernel, CPU, px, py) is None


@pytest.mark.usefixtures("threads")
@every_kernel
@pytest.mark.parametrize(("px", "py"), PAIRS)
@pytest.mark.parametrize("seed", range(6))
def test_contract_has_the_bits_of_the_reference(kernel: ProductKernel, px: int, py: int, seed: int) -> None:
    x, y, expected = judged(px, py, seed)
    assert patterns(kernel.contract(x, y, px, py)) == expected


@pytest.mark.usefixtures("threads")
@every_kernel
@pytest.mark.parametrize(("px", "py"), PAIRS)
@pytest.mark.parametrize("terms", [1, 31, 64, 65, 1000, 9001])
def test_dot_is_exact_at_the_limit(kernel: ProductKernel, px: int, py: int, terms: int) -> None:
    """Rows mix blocks of zeros, of the largest integers and of small integers, so that rows are cut into runs
    in many ways.
    """
    g = torch.Generator().manual_seed(terms)
    sizes = torch.tensor([0.0, 1.0, 2.0**-4, 2.0**-9])

    def integers(count: int, bits: int) -> Tensor:
        scale = sizes[torch.randint(0, 4, (count, terms // 64 + 1), generator=g)].repeat_interleave(64, dim=1)
        sign = torch.randint(0, 2, (count, terms), generator=g) * 2 - 1
        found: Tensor = (sign * scale[:, :terms] * 2**bits).to(torch.int32)
        return found

    x, y = integers(13, px), integers(33, py)
    x[0], y[0] = 2**px, -(2**py)
    expected = (x.to(torch.int64)[:, None] * y.to(torch.int64)[None]).sum(-1)
    assert torch.equal(kernel.dot(x, y, px, py), expected)


@pytest.mark.usefixtures("threads")
@every_kernel
def test_batches_broadcast_and_layouts_do_not_matter(kernel: ProductKernel) -> None:
    g = torch.Generator().manual_seed(1)
    x, y = torch.randn(3, 2, 5, 70, generator=g), torch.randn(2, 9, 70, generator=g)
    each = torch.stack([contract(a[i], y[i], 20, 13) for a in x for i in range(2)]).reshape(3, 2, 5, 9)
    for left in (x, x.mT.contiguous().mT, x.permute(3, 0, 2, 1).contiguous().permute(1, 3, 2, 0)):
        for right in (y, y.mT.contiguous().mT, y[None]):
            assert patterns(kernel.contract(left, right, 20, 13)) == patterns(each)
    one = torch.stack([contract(a[i], y[0], 20, 13) for a in x for i in range(2)]).reshape(3, 2, 5, 9)
    assert patterns(kernel.contract(x, y[0], 20, 13)) == patterns(one)
    constant = torch.ones(1, 1).expand(4, 70)
    assert patterns(kernel.contract(constant, y[0], 13, 13)) == patterns(
        contract(constant.contiguous(), y[0], 13, 13)
    )


@every_kernel
def test_exponents_of_a_larger_group_are_taken_as_given(kernel: ProductKernel) -> None:
    g = torch.Generator().manual_seed(2)
    x, y = torch.randn(2, 6, 40, generator=g), torch.randn(2, 7, 40, generator=g)
    ex, ey = rows.exponent(x.reshape(2, 1, -1)), rows.exponent(y)
    acc = Float64().dot(rows.quantise(x, ex, 13), rows.quantise(y, ey, 20), 13, 20)
    expected = rows.round_scaled(acc, (ex, ey.mT), 33)
    for left in (x, x.mT.contiguous().mT):
        result = kernel.contract(left, y, 13, 20, ex.expand(2, 6, 1), ey)
        assert patterns(result) == patterns(expected)


class OneBitOff(Float64):
    """A planted kernel: the last bit of each result of long rows is wrong."""

    name = "planted"

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        result = super().dot(x, y, px, py)
        return result ^ 1 if x.shape[-1] > 1000 else result


class Saturating(Int8):
    """A planted kernel that saturates at 16 bits, as pair sums of `_int_mm` do on old processors."""

    name = "saturating"

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        return super().dot(x, y, px, py).clamp(-(2**15), 2**15 - 1)


class Broken(Float64):
    """A planted kernel that always fails."""

    name = "broken"

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        raise RuntimeError("not implemented for this build")


@pytest.mark.parametrize("planted", [OneBitOff(), Saturating(), Broken()], ids=lambda kernel: kernel.name)
def test_a_wrong_kernel_is_not_used_and_said_once(
    planted: ProductKernel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert dispatch.first_usable([planted, Float64()], CPU, 13, 13).name == "float64"
    assert [planted.name in record.getMessage() for record in caplog.records] == [True]


def test_a_kernel_with_one_wrong_rounding_is_not_used() -> None:
    class Truncates(Float64):
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
            ex, ey = rows.exponent(x), rows.exponent(y)
            acc = self.dot(rows.quantise(x, ex, px), rows.quantise(y, ey, py), px, py)
            cut = torch.where(acc >= 2**24, acc & ~0xFF, acc)
            return rows.round_scaled(cut, (ex, ey.mT), px + py)

    assert failure_of_widths(Truncates(), CPU, 13, 13) is not None


def test_no_sound_kernel_is_a_refusal() -> None:
    with pytest.raises(dispatch.NoKernel, match=r"planted: an integer of .* is wrong"):
        dispatch.first_usable([OneBitOff()], CPU, 13, 13)


def test_the_environment_names_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dispatch.VARIABLE, "int8, float64")
    assert dispatch.kernel_for(CPU, 13, 13).name in ("int8", "float64")
    monkeypatch.setenv(dispatch.VARIABLE, "float64")
    assert dispatch.kernel_for(CPU, 13, 13).name == "float64"
    monkeypatch.setenv(dispatch.VARIABLE, "int17")
    with pytest.raises(NumericsError, match=r"names out of .*float64.*int17"):
        dispatch.kernel_for(CPU, 13, 13)


def test_without_the_library_products_run_in_float64_and_say_so() -> None:
    """A separate process chooses the kernels. It finds no compiled files."""
    code = (
        "import logging, torch; logging.basicConfig()\n"
        "from protocol.numerics.kernels import native; native.EXTENSION_SUFFIXES.clear()\n"
        "from protocol.numerics.kernels.dispatch import kernel_for\n"
        "print(kernel_for(torch.device('cpu'), 13, 13).name, kernel_for(torch.device('cpu'), 20, 13).name)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["float64", "float64"]
    assert run.stderr.count("not built") == 1
