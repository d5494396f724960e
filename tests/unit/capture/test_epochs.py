"""Batches without replacement: every row once an epoch, as a DataLoader that shuffles and drops what fills no batch."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, CaptureError, capture

ROWS, BATCH = 11, 2
DATA = {"row": torch.arange(ROWS)}


class Seen(nn.Module):
    """A number for each row, which SGD at a rate of 1 counts down each time that the row is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.count = nn.Parameter(torch.zeros(ROWS))


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The sum of the rows' numbers."""
    count: Tensor = model.count  # type: ignore[assignment]
    return count[batch["row"]].sum()


def captured(batch_size: int = BATCH, **options: int) -> CapturedStep:
    """Two epochs."""
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
