"""Each line of `solver check` has the right level, even for values at the bounds between levels. Each warning
and each problem says what to do.
"""

from __future__ import annotations

import pytest
import torch

from protocol.chain.parameters import TOKEN
from protocol.errors import ExitCode
from solver import checking, checks, gpu
from solver.checks import COIN, GAMES, GIB, Level, Line, Prospect

OK, WARNING, PROBLEM = Level


@pytest.mark.parametrize(
    ("line", "level", "words"),
    [
        (checks.memory(8 * GIB, 4 * GIB), OK, "4.0 of 8.0 GiB free"),
        (checks.memory(8 * GIB, GIB), WARNING, "end what else uses it"),
        (checks.memory(2 * GIB, 2 * GIB, "GPU 0: "), WARNING, "GPU 0: 2.0 of 2.0"),
        (checks.disk(20 * GIB, 16 * GIB), OK, "20.0 GiB free, 16.0 for"),
        (checks.disk(20 * GIB - 1, 0), WARNING, "20 GiB or more"),
        (checks.disk(GIB - 1, 0), PROBLEM, "make room below --home"),
        (checks.clock(1_000.0, 990.0, 12.0, False), OK, "10 s after"),
        (checks.clock(1_090.0, 1_000.0, 12.0, False), OK, "90 s after"),
        (
            checks.clock(1_091.0, 1_000.0, 12.0, False),
            WARNING,
            "by a time server; where it is right, the chain",
        ),
        (checks.clock(1_000.0, 1_031.0, 12.0, False), WARNING, "31 s before the newest block's time; set"),
        (checks.clock(1_000.0, 1_601.0, 12.0, False), PROBLEM, "601 s before"),
        (checks.clock(1_000.0, 9_999.0, 1.0, True), WARNING, "moved by hand"),
        (
            checks.stake(400 * TOKEN, 500 * TOKEN, 100 * TOKEN, 1000 * TOKEN, "0xme"),
            OK,
            "1000 tokens (400 free",
        ),
        (checks.stake(0, 999 * TOKEN, 0, 1000 * TOKEN, "0xme"), PROBLEM, "send 1 tokens to 0xme or lower"),
        (checks.defence((GAMES + 1) * COIN, COIN, COIN, "0xme"), OK, "16 false games 16"),
        (checks.defence(2 * COIN, COIN, COIN, "0xme"), WARNING, "send 15 coin to 0xme"),
        (checks.defence(2 * COIN - 1, COIN, COIN, "0xme"), PROBLEM, "who cannot answer a game is slashed"),
        (checks.profit([], TOKEN), OK, "no task takes bids now; an hour of this machine costs 1 tokens"),
        (
            checks.profit([Prospect(3, refusal="too dear")], 0),
            WARNING,
            "none of 1 open tasks would be bid on",
        ),
        (
            checks.profit(
                [
                    Prospect(3, refusal="too dear"),
                    Prospect(4, 5 * TOKEN, 4 * TOKEN, 3600),
                    Prospect(5, 9 * TOKEN, 5 * TOKEN, 7200),
                ],
                0,
            ),
            OK,
            "2 of 3 open tasks pay; task 5 brings 9 tokens for 2 hours, 2 an hour above its costs",
        ),
    ],
)
def test_each_fact_has_its_level_and_says_what_to_do(line: Line, level: Level, words: str) -> None:
    assert line.level is level
    assert words in str(line)
    assert bool(line.remedy) is (level is not OK)


def test_the_exit_code_is_that_of_the_gravest_problem_and_warnings_have_none() -> None:
    lines = [Line("a", WARNING, "", code=ExitCode.HOPELESS), Line("b", OK, "")]
    assert checks.exit_code(lines) is ExitCode.FINE
    lines.append(Line("c", PROBLEM, "", code=ExitCode.RETRY))
    assert checks.exit_code(lines) is ExitCode.RETRY
    lines.append(Line("d", PROBLEM, ""))
    assert checks.exit_code(lines) is ExitCode.HOPELESS


def test_a_gpu_without_a_build_of_torch_for_it_gets_the_command_that_installs_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`assay[cuda]` installs only Triton."""
    monkeypatch.setattr(gpu, "read_gpus", lambda: [object()])
    monkeypatch.setattr(checking, "device_of", lambda _setting: torch.device("cpu"))
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")
    line = checking._device("auto")
    assert line.level is Level.WARNING
    wanted = "pip install torch==2.13.0+cu130 --index-url https://download.pytorch.org/whl/cu130"
    assert line.remedy.endswith(wanted)
