"""Callbacks get each verified step once and in order, and again if the step's state has changed. Without
TensorBoard, the error says what to install.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from assay.errors import PackageMissing
from assay.watching.callbacks import TensorBoard, Told
from assay.watching.curve import Point


def point(segment: int, loss: float = 1.0, root: bytes = b"a") -> Point:
    return Point(segment, 3 * segment, root, {"loss": loss})


def test_each_is_told_all_steps_once() -> None:
    told, early, late = Told(), list[tuple[int, float]](), list[int]()
    told.add(lambda step, metrics: early.append((step, metrics["loss"])))
    told.take([point(1), point(2, 0.5)])
    told.tell()
    told.take([point(2, 0.5), point(3)])
    told.add(lambda step, _metrics: late.append(step))
    told.tell()
    told.tell()
    assert early == [(3, 1.0), (6, 0.5), (9, 1.0)]
    assert late == [3, 6, 9]


def test_a_method_that_is_added_twice_is_told_once() -> None:
    class Log:
        def __init__(self) -> None:
            self.steps: list[int] = []

        def step(self, step: int, _metrics: Mapping[str, float]) -> None:
            self.steps.append(step)

    told, log = Told(), Log()
    for number in (1, 2):
        told.add(log.step)
        told.take([point(number)])
        told.tell()
    assert log.steps == [3, 6]


def test_a_step_comes_again_only_with_another_state() -> None:
    told, seen = Told(), list[float]()
    told.add(lambda _step, metrics: seen.append(metrics["loss"]))
    told.take([point(1, 1.0), point(1, 1.0), point(1, 2.0, b"b")])
    told.tell()
    assert seen == [1.0, 2.0]


def test_one_that_fails_is_not_called_twice_with_a_step() -> None:
    told, seen = Told(), list[int]()

    def fails_first(step: int, _metrics: Mapping[str, float]) -> None:
        seen.append(step)
        if len(seen) == 1:
            raise OSError("no space left")

    told.add(fails_first)
    told.take([point(1), point(2)])
    with pytest.raises(OSError, match="no space"):
        told.tell()
    told.tell()
    assert seen == [3, 6]


def test_a_callback_gets_values_of_its_own() -> None:
    told, seen = Told(), list[Mapping[str, float]]()

    def changes(_step: int, metrics: Mapping[str, float]) -> None:
        assert isinstance(metrics, dict)
        metrics.clear()

    told.add(changes)
    told.add(lambda _step, metrics: seen.append(metrics))
    told.take([point(1)])
    told.tell()
    assert seen == [{"loss": 1.0}]


def test_without_tensorboard_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(PackageMissing, match=r"pip install 'assay\[tensorboard\]'"):
        TensorBoard(tmp_path / "events")
    assert not (tmp_path / "events").exists()
