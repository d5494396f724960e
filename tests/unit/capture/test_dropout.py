"""Dropout masks: drawn from the key, the same in the forward and backward pass, right on average."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, CaptureError
from protocol.program.library import CATALOGUE
from tests.unit.capture.steps import captured

Drop = Callable[[Tensor], Tensor]


class Scaled(nn.Module):
    """Applies `drop` to the weights. If the loss is the sum of the output (`total`), the gradient of each
    weight is just its dropout factor.
    """

    def __init__(self, drop: Drop, *shape: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(*shape, generator=torch.Generator().manual_seed(0)))
        self.drop = drop

    def forward(self) -> Tensor:
        return self.drop(self.w)


def total(model: nn.Module, _: Mapping[str, Tensor]) -> Tensor:
    loss: Tensor = model().sum()
    return loss


def dropped(drop: Drop, *shape: int) -> CapturedStep:
    model = Scaled(drop, *shape)
    return captured(model, total, torch.optim.SGD(model.parameters(), lr=1.0))


def gradient(step: CapturedStep, seed: int) -> tuple[Tensor, float, Tensor]:
    """The first step's gradient, its loss, and the initial weights."""
    before = step.initial_state(seed)
    after = step.step(before)
    return before["w"] - after["w"], float(after["metric.loss"]), before["w"]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("native", [False, True])
def test_both_passes_use_one_mask_of_the_right_density_and_scale(p: float, native: bool) -> None:
    drop = (lambda w: torch.native_dropout(w, p, True)[0]) if native else (lambda w: F.dropout(w, p))
    g, loss, w = gradient(dropped(drop, 100, 200), 3)
    kept = g.abs() > 0.5
    torch.testing.assert_close(g[kept], torch.full_like(g[kept], 1 / (1 - p)), rtol=1e-4, atol=1e-5)
    assert loss == pytest.approx(float((w * kept / (1 - p)).sum()), rel=1e-3, abs=1e-2)
    deviation = math.sqrt(p * (1 - p) / w.numel())
    assert abs(float(kept.float().mean()) - (1 - p)) < 5 * deviation
    # Every row and column has the same density, and neighbours are independent.
    assert float((kept.float().mean(0) - (1 - p)).abs().max()) < 5 * math.sqrt(p * (1 - p) / 100)
    assert float((kept.float().mean(1) - (1 - p)).abs().max()) < 5 * math.sqrt(p * (1 - p) / 200)
    both = float((kept[:, 1:] & kept[:, :-1]).float().mean())
    assert abs(both - (1 - p) ** 2) < 10 * deviation


def test_the_keep_probability_is_rounded_down_to_32_bits() -> None:
    attributes = [
        h.attributes for h in dropped(lambda w: F.dropout(w, 0.1), 4).hints.values() if h.name == "keep_mask"
    ]
    assert [a["below"] for a in attributes] == [math.floor(0.9 * 2**32)]


def test_masks_differ_by_place_by_step_and_by_key_and_repeat_for_the_same() -> None:
    def twice(w: Tensor) -> Tensor:
        return torch.stack([F.dropout(w[0], 0.5), F.dropout(w[1], 0.5)])

    step = dropped(twice, 2, 500)
    first, _, _ = gradient(step, 1)
    again, _, _ = gradient(step, 1)
    other, _, _ = gradient(step, 2)
    state = step.step(step.initial_state(1))
    later = state["w"] - step.step(state)["w"]
    assert torch.equal(first, again)
    for x, y in ((first[0], first[1]), (first, other), (first, later)):
        agreeing = ((x.abs() > 0.5) == (y.abs() > 0.5)).float().mean()
        assert abs(float(agreeing) - 0.5) < 5 * 0.5 / math.sqrt(x.numel())
    streams = [h.attributes["stream"] for h in step.hints.values() if h.name in ("keep_mask", "draw_batch")]
    assert sorted(streams) == [0, 1, 2]


@pytest.mark.parametrize(
    ("drop", "expected"),
    [
        (lambda w: F.dropout(w, 0.0), 1.0),
        (lambda w: F.dropout(w, 1.0), 0.0),
        (lambda w: F.dropout(w, 0.5, training=False), 1.0),
        (lambda w: torch.native_dropout(w, 0.5, False)[0], 1.0),
        (lambda w: torch.native_dropout(w, 1.0, True)[0], 0.0),
    ],
)
def test_nothing_is_drawn_where_nothing_is_left_to_chance(drop: Drop, expected: float) -> None:
    step = dropped(drop, 50)
    g, _, _ = gradient(step, 0)
    torch.testing.assert_close(g, torch.full((50,), expected), rtol=1e-5, atol=1e-5)
    assert not [h for h in step.hints.values() if h.name == "keep_mask"]


def test_whole_channels_are_dropped_together() -> None:
    g, _, _ = gradient(dropped(lambda w: F.dropout2d(w, 0.5), 30, 20, 3, 3), 0)
    kept = (g.abs() > 0.5).flatten(2).float().mean(2)
    assert set(kept.flatten().tolist()) == {0.0, 1.0}
    assert abs(float(kept.mean()) - 0.5) < 5 * 0.5 / math.sqrt(600)


def test_the_mask_of_a_step_is_philox_of_key_step_and_stream() -> None:
    step = dropped(lambda w: F.dropout(w, 0.5), 3, 5)
    state = step.initial_state(9)
    draw = CATALOGUE["keep_mask"].kernel({"below": 2**31, "stream": 1, "d0": 3, "d1": 5})
    (mask,) = draw([state["key"], state["step"]])
    g, _, _ = gradient(step, 9)
    torch.testing.assert_close(g, mask * 2, rtol=1e-5, atol=1e-5)


def test_room_that_nobody_wrote_is_refused() -> None:
    with pytest.raises(CaptureError, match="nobody has written"):
        dropped(lambda w: w * torch.empty_like(w), 4)


def written_in_part(w: Tensor) -> Tensor:
    room = torch.empty_like(w)
    room[:3] = w[1:]
    return room


def copied_unwritten(w: Tensor) -> Tensor:
    return torch.zeros_like(w).copy_(torch.empty_like(w)) + w


def written_with_gaps(w: Tensor) -> Tensor:
    room = torch.empty_like(w)
    room[::2] = w[:2] * 2
    return room


@pytest.mark.parametrize("use", [written_in_part, written_with_gaps, copied_unwritten])
def test_room_that_is_written_in_part_is_refused(use: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(CaptureError, match="nobody has written"):
        dropped(use, 4)


def test_room_that_is_written_in_turns_is_taken() -> None:
    def turned(w: Tensor) -> Tensor:
        room = torch.empty_like(w)
        room[..., ::2] = w[..., 1::2] * 2
        room[..., 1::2] = w[..., ::2] * 3
        return room

    g, _, _ = gradient(dropped(turned, 2, 4), 0)
    torch.testing.assert_close(g, torch.tensor([[3.0, 2.0, 3.0, 2.0]] * 2), rtol=1e-5, atol=1e-5)
