"""TensorBoard reads from event files what was reported. Heavy, because its packages are not in the lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.watching.callbacks import TensorBoard, Told
from assay.watching.curve import Point

pytestmark = pytest.mark.heavy


def test_tensorboard_reads_what_was_told(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="make test-heavy installs it")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    told = Told()
    told.add(TensorBoard(tmp_path))
    told.take([Point(k, 50 * k, bytes([k]), {"loss": 1 / k, "accuracy": 0.25 * k}) for k in (1, 2, 3)])
    told.tell()
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    assert sorted(read.Tags()["scalars"]) == ["accuracy", "loss"]
    assert [(one.step, one.value) for one in read.Scalars("accuracy")] == [
        (50, 0.25),
        (100, 0.5),
        (150, 0.75),
    ]
    assert [one.step for one in read.Scalars("loss")] == [50, 100, 150]
