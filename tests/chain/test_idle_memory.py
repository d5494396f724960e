"""A node without a task: the real process has not loaded torch and uses less than 150 MB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.soak.starting import NODES, Ground, ground
from benchmarks.soak.usage import usage_of

pytestmark = pytest.mark.chain

MOST = 150 * 10**6
TORCH = re.compile(r"/libtorch\w*\.so|/torch/")


@pytest.fixture(scope="module")
def stage() -> Iterator[Ground]:
    with ground() as made:
        yield made


@pytest.mark.parametrize("name", NODES)
def test_an_idle_node_has_no_torch_and_little_memory(stage: Ground, name: str) -> None:
    with stage.idle(NODES[name]) as pid:
        mapped = Path(f"/proc/{pid}/maps").read_text()
        resident = usage_of(pid).resident
    assert "python" in mapped
    assert not TORCH.findall(mapped)
    assert resident < MOST, f"{resident:,} bytes"


def test_the_pattern_finds_torch_where_it_is_loaded() -> None:
    import torch

    assert torch.__version__
    assert TORCH.findall(Path("/proc/self/maps").read_text())
