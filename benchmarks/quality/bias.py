"""Measures, for each number of bits, the bias from rounding small values to zero, in the cases of
arithmetic.md section 4.

Norms hide a bias, so the signed sum of the errors is measured too. A value is small if it is below 2^-(p+1)
times the largest value of its row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from protocol.numerics.contract import contract

SINK = 0.94
"""The probability of one key, the sink. The other keys share the rest."""


@dataclass(frozen=True)
class Errors:
    """`signed`: sum of the errors, divided by the sum of the true values' magnitudes. `norm`: norm of the
    errors, divided by the norm of the true values.
    """

    signed: float
    norm: float


def errors(got: Tensor, true: Tensor) -> Errors:
    """Errors of f32 `got` against f64 `true`."""
    difference = got.double() - true
    return Errors(float(difference.sum() / true.abs().sum()), float(difference.norm() / true.norm()))


def attention_sink(px: int, py: int, keys: int = 4096) -> Errors:
    """Errors of the product P V. One key, the sink, has the value 0; each of the other keys has about 2^-16
    of the sink's probability.
    """
    g = torch.Generator().manual_seed(0)
    tail = torch.softmax(torch.randn(32, keys - 1, generator=g) * 0.3, dim=-1) * (1 - SINK)
    p = torch.cat([torch.full((32, 1), SINK), tail], dim=1)
    v = 1.0 + 0.1 * torch.randn(16, keys, generator=g)
    v[:, 0] = 0.0
    return errors(contract(p, v, px, py), p.double() @ v.double().mT)


def tail_words(px: int, py: int, tokens: int = 65_536) -> float:
    """Signed error of rare words' gradients near the optimum of a unigram model, relative to the sum of the
    gradients' positive terms.

    Every token adds the word's probability to the gradient, and each occurrence of the word subtracts 1. Near
    the optimum these nearly cancel, so the true gradient is nearly 0.
    """
    seen = torch.tensor([1, 2, 3])
    g = torch.Generator().manual_seed(1)
    probability = seen[:, None] / tokens * torch.exp(0.3 * torch.randn(3, tokens, generator=g))
    gradient = probability.clone()
    for word, count in enumerate(seen.tolist()):
        gradient[word, 1000 * word : 1000 * word + count] -= 1.0
    ones = torch.ones(1, tokens)
    true = gradient.double() @ ones.double().mT
    return float((contract(gradient, ones, px, py).double() - true).sum()) / float(probability.double().sum())


def unigram(px: int, py: int, tokens: int = 65_536, words: int = 1024, steps: int = 24) -> float:
    """KL divergence, in nats, from the empirical distribution of words, which is Zipf's, to the distribution
    that a softmax learns.

    A logit's gradient is the sum over tokens of (probability - onehot). It is one contraction, as in an LM
    head. A word's probability minus its mean gradient estimates the word's frequency. Each step moves the
    logarithm of the probability half of the way to the logarithm of this estimate.
    """
    frequency = 1.0 / torch.arange(1, words + 1, dtype=torch.float64)
    counts = torch.clamp((frequency / frequency.sum() * tokens).floor().long(), min=1)
    target = torch.repeat_interleave(torch.arange(words), counts)
    total = len(target)
    empirical = counts.double() / total
    logits, ones = torch.zeros(words, dtype=torch.float64), torch.ones(1, total)
    for _ in range(steps):
        probability = torch.softmax(logits, 0)
        gradient = probability.float()[:, None].repeat(1, total)
        gradient[target, torch.arange(total)] -= 1.0
        mean = contract(gradient, ones, px, py)[:, 0].double() / total
        logits += 0.5 * torch.log(torch.clamp(probability - mean, min=0.5 / total) / probability)
    return float((empirical * (empirical.log() - torch.log_softmax(logits, 0))).sum())


def ordinary(px: int, py: int) -> tuple[float, float]:
    """Mean and standard deviation of the errors in the product of two matrices. The elements of the matrices
    are normally distributed. Both values are divided by the expected standard deviation of the product's
    elements.
    """
    g = torch.Generator().manual_seed(2)
    x, w = torch.randn(128, 512, generator=g), torch.randn(96, 512, generator=g)
    error = (contract(x, w, px, py).double() - x.double() @ w.double().mT) / math.sqrt(512)
    return float(error.mean()), float(error.std())
