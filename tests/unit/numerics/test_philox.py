"""Random words of the compiled library equal those of torch for any shape and number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from protocol.numerics import philox, philox_torch
from protocol.numerics.kernels import native
from protocol.numerics.kernels import philox as kernel

KEY = torch.tensor([-5, 77], dtype=torch.int32)
STEP = torch.tensor(2**31 - 1, dtype=torch.int32)


@pytest.fixture(autouse=True, params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (255,), (256,), (257,), (2, 5, 7), (16384,), (3, 16389)])
def test_words_and_masks(shape: tuple[int, ...]) -> None:
    if native.library() is None:
        pytest.skip("the compiled library is not built: no C++ compiler with OpenMP")
    expected = philox_torch.philox(KEY, STEP, 9, shape)
    found = kernel.words(KEY, STEP, 9, shape)
    assert found is not None
    assert torch.equal(found, expected)
    for below in (0, 1, 2**31, 2**32 - 1):
        kept = kernel.mask(KEY, STEP, 9, shape, below)
        assert kept is not None
        assert torch.equal(kept, ((expected.to(torch.int64) & 0xFFFFFFFF) < below).to(torch.float32))


def test_without_the_library_the_bits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = philox.philox(KEY, STEP, 3, (1000,)), philox.mask(KEY, STEP, 3, (1000,), 2**31 + 12345)
    monkeypatch.setattr(kernel, "_tested", lambda: None)
    slow = philox.philox(KEY, STEP, 3, (1000,)), philox.mask(KEY, STEP, 3, (1000,), 2**31 + 12345)
    assert torch.equal(fast[0], slow[0])
    assert torch.equal(fast[1], slow[1])


def test_a_library_with_one_wrong_bit_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if native.library() is None:
        pytest.skip("the compiled library is not built: no C++ compiler with OpenMP")
    honest = kernel._words

    def wrong(*arguments: object) -> torch.Tensor:
        words = honest(*arguments)  # type: ignore[arg-type]
        words[-1] ^= 1
        return words

    monkeypatch.setattr(kernel, "_words", wrong)
    assert not kernel._is_right(native.library())
