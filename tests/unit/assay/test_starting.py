"""States from which no training can continue: each raises one StartError."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from assay.errors import StartError
from assay.starting import Start, read_start


def start(*key: float, dtype: torch.dtype) -> Start:
    return Start({"key": torch.tensor(key, dtype=dtype)}, "start here")


def test_the_seed_is_the_key_of_two_words() -> None:
    assert start(-1, 1, dtype=torch.int32).seed == 2**32 + 2**32 - 1


@pytest.mark.parametrize(
    ("key", "dtype", "got"),
    [
        ((float("nan"), 0), torch.float32, "2 values of torch.float32"),
        ((float("inf"), 0), torch.float64, "2 values of torch.float64"),
        ((1, 2), torch.complex64, "2 values of torch.complex64"),
        ((1, 2, 3), torch.int32, "3 values of torch.int32"),
    ],
)
def test_a_key_of_other_values_is_refused(key: tuple[float, ...], dtype: torch.dtype, got: str) -> None:
    with pytest.raises(StartError, match=got):
        _ = start(*key, dtype=dtype).seed


def test_a_state_without_a_key_is_refused(tmp_path: Path) -> None:
    save_file({"w": torch.zeros(2)}, tmp_path / "weights.safetensors")
    with pytest.raises(StartError, match="got a state without one"):
        _ = read_start(tmp_path / "weights.safetensors").seed


@pytest.mark.parametrize("name", ["a" * 5_000, "a\0b", "none"])
def test_a_place_that_is_no_result_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StartError, match="expected the folder of a result"):
        read_start(tmp_path / name)
