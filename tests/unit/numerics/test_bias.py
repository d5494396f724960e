"""Why 13 bits are not enough everywhere: two cases of arithmetic.md section 4.

Rounding small values to zero biases both sums. Norms hide a bias, so the tests also check the signed sum of
the error, and show that 13 bits would fail.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.contract import contract


def exact(x: Tensor, y: Tensor) -> Tensor:
    return x.double() @ y.double().mT


def signed_error(got: Tensor, true: Tensor) -> float:
    """The sum of the errors, relative to the sum of the true magnitudes."""
    return abs(float((got.double() - true).sum() / true.abs().sum()))


def test_attention_sink_keeps_its_tail_at_20_bits() -> None:
    """One key has 0.94 of the probability and 4,095 keys share the rest, each near 2^-16 of the maximum."""
    g = torch.Generator().manual_seed(0)
    tail = torch.softmax(torch.randn(32, 4095, generator=g) * 0.3, dim=-1) * 0.06
    p = torch.cat([torch.full((32, 1), 0.94), tail], dim=1)
    v = 1.0 + 0.1 * torch.randn(16, 4096, generator=g)
    v[:, 0] = 0.0  # the sink's own value does not matter
    true = exact(p, v)
    assert signed_error(contract(p, v, 20, 20), true) < 1e-3
    assert float((contract(p, v, 20, 20).double() - true).norm() / true.norm()) < 2e-3
    assert signed_error(contract(p, v, 13, 13), true) > 0.9


def test_vocabulary_gradient_is_unbiased_over_65536_tokens() -> None:
    """At the optimum of a unigram model, a rare word's gradient is about 0.

    Every token adds the word's probability to the gradient, and each of the word's few occurrences adds -1.
    """
    tokens, seen = 65_536, torch.tensor([1, 2, 3])
    g = torch.Generator().manual_seed(1)
    probability = seen[:, None] / tokens * torch.exp(0.3 * torch.randn(3, tokens, generator=g))
    gradient = probability.clone()
    for word, count in enumerate(seen.tolist()):
        gradient[word, 1000 * word : 1000 * word + count] -= 1.0
    ones = torch.ones(1, tokens)
    true = exact(gradient, ones)
    mass = float(probability.double().sum())  # the positive half of the gradient, about 6
    bias_20 = abs(float((contract(gradient, ones, 20, 13).double() - true).sum())) / mass
    bias_13 = abs(float((contract(gradient, ones, 13, 13).double() - true).sum())) / mass
    assert bias_20 < 1e-3
    assert bias_13 > 0.5


def test_ordinary_products_at_13_bits_have_no_bias_beyond_chance() -> None:
    g = torch.Generator().manual_seed(2)
    x, w = torch.randn(128, 512, generator=g), torch.randn(96, 512, generator=g)
    error = contract(x, w, 13, 13).double() - exact(x, w)
    spread = float(error.std())
    assert spread < 0.01  # the products themselves have a spread of sqrt(512) = 22.6
    assert abs(float(error.mean())) < 4 * spread / error.numel() ** 0.5
