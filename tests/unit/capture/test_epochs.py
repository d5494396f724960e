"""Batches without replacement: each row is drawn at most once per epoch, as by a DataLoader with shuffle and
drop_last.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, CaptureError, capture

ROWS, BATCH = 11, 2
DATA = {"row": torch.arange(ROWS)}


class Seen(nn.Module):
    """One number per row, which SGD at rate 1 decrements each time the row is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.count = nn.Parameter(torch.zeros(ROWS))


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The sum of the batch rows' numbers."""
    count: Tensor = model.count  # type: ignore[assignment]
    return count[batch["row"]].sum()


def captured(batch_size: int = BATCH, **options: int) -> CapturedStep:
    """A captured step for two epochs."""
    model = Seen()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    steps = 2 * (ROWS // BATCH)
    return capture(
        model,
        objective,
        optimizer,
        DATA,
        batch_size=batch_size,
        steps=steps,
        replacement=False,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_an_epoch_sees_every_row_at_most_once(micro_batches: int) -> None:
    step = captured(micro_batches=micro_batches)
    state = step.initial_state(5)
    seen = []
    for _ in range(2):
        before = state["count"]
        for _ in range(ROWS // BATCH):
            state = step.step(state)
        rows = (before - state["count"]) * micro_batches
        assert sorted(rows.tolist()) == [0.0] + [1.0] * (ROWS - 1), "one row is left over"
        seen.append(rows)
    assert not torch.equal(*seen), "another one each time, with this seed"


def test_a_batch_of_more_rows_than_there_are_is_refused() -> None:
    with pytest.raises(CaptureError, match="a batch of 12 rows without replacement, of a dataset of 11"):
        captured(12)
