"""This machine is measured, and a measurement is saved in full or not at all."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from protocol.execution import measuring
from protocol.execution.device import device_name
from protocol.execution.families import Family
from protocol.execution.measured import Measured, MeasuredError, keep, measured, measured_file
from protocol.execution.measuring import STAGES, MeasuringError, measure
from protocol.node.home import Home

CPU = torch.device("cpu")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit the size of files in bytes, to imitate a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signals = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, signals)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A quick measurement: few runs of each family, and a small file."""
    stages: list[str] = []
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "DISK_BYTES", 16 << 20)
        found = measure(CPU, folder, stages.append, seconds=0.0)
    assert tuple(stages) == STAGES
    assert list(folder.iterdir()) == []
    return found


def test_every_family_is_measured(made: Measured) -> None:
    assert set(made.operations) == set(Family)
    assert 0 < made.slowest < made.fastest
    assert min(made.hashing, made.written, made.read) > 0
    assert made.torch == torch.__version__


def test_a_device_finds_its_own_measurement(made: Measured, tmp_path: Path) -> None:
    home, name = Home(tmp_path), device_name(CPU)
    assert measured(home, name) is None
    keep(home, name, made)
    keep(home, "another", made.model_copy(update={"hashing": 1.0}))
    assert measured(home, name) == made
    assert measured(home, f"{name} of another machine") is None


def test_a_measurement_without_all_families_is_none(made: Measured, tmp_path: Path) -> None:
    home = Home(tmp_path)
    keep(home, "x", made.model_copy(update={"operations": {Family.PRODUCTS: 1.0}}))
    assert measured(home, "x") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["devices"]["x"]["operations"].update(products=0),
        lambda data: data["devices"]["x"]["operations"].update(products="1e999"),
        lambda data: data["devices"]["x"]["operations"].update(guesses=1),
        lambda data: data["devices"]["x"].update(written=-1),
        lambda data: data.update(version=2),
        lambda data: data.update(devices=[]),
    ],
)
def test_a_file_that_is_none_is_refused_and_not_written_over(
    made: Measured, tmp_path: Path, change: object
) -> None:
    home = Home(tmp_path)
    keep(home, "x", made)
    data = json.loads(measured_file(home).read_text())
    change(data)  # type: ignore[operator]
    text = json.dumps(data)
    for written in (text, text[: len(text) // 2], "", "x" * (2 << 20)):
        measured_file(home).write_text(written)
        with pytest.raises(MeasuredError, match="delete the file and run `solver bench`"):
            measured(home, "x")
        with pytest.raises(MeasuredError):
            keep(home, "x", made)
        assert measured_file(home).read_text() == written


def test_a_disk_that_is_full_ends_it_and_what_was_measured_before_stands(
    made: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    keep(home, "x", made)
    with files_of_at_most(20 << 20), pytest.raises(MeasuringError, match="File too large; make room on it"):
        measuring._disk(home.root)
    with files_of_at_most(4), pytest.raises(MeasuringError, match="100 small files"):
        measuring._files(home.root)
    with files_of_at_most(10), pytest.raises(OSError, match="File too large"):
        keep(home, "x", made.model_copy(update={"hashing": 1.0}))
    monkeypatch.setattr(measuring, "room", lambda _folder, _spare: (16 << 20) - 1)
    with pytest.raises(MeasuringError, match="got 12 MiB"):
        measuring._disk(home.root)
    assert measured(home, "x") == made
    assert [path.name for path in home.root.iterdir()] == ["measured.json"]
