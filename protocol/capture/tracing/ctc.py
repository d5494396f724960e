"""`torch.ctc_loss` in operations that can be traced. torch's own kernel reads the values of the lengths,
which a trace does not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

NEVER = -1e30
"""The logarithm of an impossible event's probability. It is finite, so that differences are not NaN."""
Lengths = Tensor | Sequence[int]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """The loss of each row: minus the logarithm of the probability of the row's labels. This probability is
    the sum over all alignments of the labels. `reduction` 0 gives one loss per row; 1 divides each loss by
    the row's number of labels and gives the mean; 2 gives the sum.

    `log_probs` is [T, N, C] or [T, C]; `targets` is [N, S], or the labels of all rows concatenated. As in
    torch, the gradient with respect to `log_probs` assumes that they come from a softmax.
    """
    alone = log_probs.dim() == 2
    if alone:
        log_probs = log_probs.unsqueeze(1)
    steps, rows, classes = log_probs.shape
    spoken = _of_rows(input_lengths, rows, log_probs.device)
    written = _of_rows(target_lengths, rows, log_probs.device)
    labels = _by_row(targets.to(torch.int64), target_lengths, written, rows)

    # Blanks before, between and after the labels.
    states = torch.full((rows, 2 * labels.shape[1] + 1), blank, dtype=torch.int64, device=log_probs.device)
    states[:, 1::2] = labels.clamp(0, classes - 1)
    skipped = states[:, 2:]
    may_skip = (skipped != blank) & (skipped != states[:, :-2])
    may_skip = torch.cat([torch.zeros_like(states[:, :2], dtype=torch.bool), may_skip], 1)[
        :, : states.shape[1]
    ]
    chances = log_probs.gather(2, states.expand(steps, -1, -1))

    place = torch.arange(states.shape[1], device=log_probs.device)
    # Without any frame, only the state before the first label is possible.
    unspoken = torch.where(place < 1, 0.0, NEVER).to(chances.dtype)
    paths = torch.where((spoken > 0).unsqueeze(1), torch.where(place < 2, chances[0], NEVER), unspoken)
    for k in range(1, steps):
        one, two = (_moved(paths, count) for count in (1, 2))
        ways = torch.stack([paths, one, torch.where(may_skip, two, NEVER)])
        paths = torch.where((k < spoken).unsqueeze(1), ways.logsumexp(0) + chances[k], paths)

    last = 2 * written.unsqueeze(1)
    after_label = torch.where(last > 0, paths.gather(1, (last - 1).clamp(0, states.shape[1] - 1)), NEVER)
    ends = torch.cat([paths.gather(1, last.clamp(0, states.shape[1] - 1)), after_label], 1)
    loss = -ends.logsumexp(1)
    impossible = loss > -NEVER / 2
    loss = torch.where(impossible, 0.0, loss + _of_softmax(log_probs, spoken))
    if not zero_infinity:
        loss = torch.where(impossible, math.inf, loss)
    if reduction == 1:
        return (loss / written.clamp_min(1).to(loss.dtype)).mean()
    if reduction == 2:
        return loss.sum()
    return loss.squeeze(0) if alone else loss


def _of_softmax(log_probs: Tensor, spoken: Tensor) -> Tensor:
    """Zeros [N], one for each row, whose gradient with respect to `log_probs` is not zero. Added to the loss,
    they leave its value unchanged and add a term to its gradient. torch's gradient has this term too, because
    torch assumes that the probabilities of each step come from a softmax, and so sum to one.
    """
    chances = log_probs.exp()
    step = torch.arange(len(log_probs), device=log_probs.device).unsqueeze(1)
    return torch.where((step < spoken).unsqueeze(2), chances - chances.detach(), 0.0).sum((0, 2))


def _of_rows(lengths: Lengths, rows: int, device: torch.device) -> Tensor:
    """The lengths as i64 [N]."""
    if not isinstance(lengths, Tensor):
        lengths = torch.tensor(tuple(lengths), dtype=torch.int64, device=device)
    return lengths.to(torch.int64).reshape(rows)


def _by_row(targets: Tensor, lengths: Lengths, written: Tensor, rows: int) -> Tensor:
    """Labels [N, S]; entries beyond a row's own labels are arbitrary."""
    if targets.dim() == 2 or rows == 1:
        return targets.reshape(rows, -1)
    width = targets.shape[0] if isinstance(lengths, Tensor) else max(lengths, default=0)
    places = (written.cumsum(0) - written).unsqueeze(1) + torch.arange(width, device=targets.device)
    return targets[places.clamp(0, targets.shape[0] - 1)]


def _moved(paths: Tensor, count: int) -> Tensor:
    """`paths` with its columns, one per state, shifted right by `count` places."""
    return torch.nn.functional.pad(paths, (count, 0), value=NEVER)[:, : paths.shape[1]]
