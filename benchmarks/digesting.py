"""Measures the cost of a seat's digest relative to the replay of its segments (audit.md section 4).

Both the digest and the replay can use all cores. Here they are measured alternately on one thread, in
processor time, which depends less on other work of the machine. A segment of n steps has n + 1 states.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks.gpt import captured
from benchmarks.measure import Row, quartiles, side_by_side
from protocol.commitments.digests import Digester
from protocol.program.cost import cost
from protocol.program.step import State
from protocol.tasks.thinning import MOST, recommended_thinning

SIZE = "11M"
SEGMENT_STEPS = 20
"""Steps per segment in examples/gpt.toml."""
ROUNDS = 15


def rows() -> list[Row]:
    """Rows with the digest's time as a share of a replay's: without thinning, with the recommended thinning,
    and with a thinning of 64.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _rows()
    finally:
        torch.set_num_threads(threads)


def _rows() -> list[Row]:
    step = captured(SIZE)
    program, state = step.step_program, step.initial_state(seed=1)
    operations = cost(program.program).operations
    best = recommended_thinning(SEGMENT_STEPS, operations, program.state_bytes)

    def digest(thinning: int) -> Callable[[], object]:
        digester = Digester(bytes(range(32)), thinning)
        # Each state is hashed only in part; a state in the middle is representative.
        return lambda: program.salted_state_root(state, digester, SEGMENT_STEPS // 2)

    def replay() -> State:
        return step.step(state)

    found: dict[int, list[float]] = {}
    for thinning in sorted({1, best, 64}):
        ratios = side_by_side(digest(thinning), {"step": replay}, ROUNDS, time.thread_time)["step"]
        found[thinning] = [100 * ratio * (SEGMENT_STEPS + 1) / SEGMENT_STEPS for ratio in ratios]
    return [
        Row(
            f"digest of every state, share of a replay, GPT of 10.8M, segments of {SEGMENT_STEPS} steps, one thread, "
            f"w = {thinning}{', recommended' * (thinning == best)}",
            f"{quartiles(shares).median:.1f} %",
            f"{100 * MOST:.0f} %" if thinning == best else "",
            str(quartiles(shares)),
        )
        for thinning, shares in found.items()
    ]
