"""Served traces on disk: a trace is read as a whole, exactly as it was kept, and is deleted with its task."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.commitments import step_tree
from verifier.served_traces import ServedTraces

LEAVES = [bytes([number]) * 32 for number in range(5)]
ROOT = step_tree(LEAVES).root


def test_a_trace_is_found_by_its_root_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "7" / "traces"
    assert ServedTraces(folder).get(ROOT, 5) is None
    ServedTraces(folder).put(ROOT, LEAVES)
    assert ServedTraces(folder).get(ROOT, 5) == LEAVES
    assert ServedTraces(folder).get(bytes(32), 5) is None
    assert [path.name for path in folder.iterdir()] == [ROOT.hex()]


@pytest.mark.parametrize("length", [0, 5 * 32 - 1, 6 * 32])
def test_a_file_of_another_length_is_not_read(tmp_path: Path, length: int) -> None:
    traces = ServedTraces(tmp_path)
    (tmp_path / ROOT.hex()).write_bytes(bytes(length))
    assert traces.get(ROOT, 5) is None
    traces.put(ROOT, LEAVES)
    assert traces.get(ROOT, 5) == LEAVES
