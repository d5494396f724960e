"""One hash for every instruction set, number of threads and kernel: arithmetic.md sections 8 and 9.

`make test` trains for a few steps under seven choices of settings. These and the settings that they are
compared with have, together, every value of each setting. It also trains primitive by primitive. `make
test-heavy` does whole runs under more choices, with one test for each choice. For any three settings, these
choices have every combination of values.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.same_bits.runs import FEW, MODELS, Machine, Model, Result, all_machines, train_all

PLAIN = Machine("1", "default", "SSE41", "float64")
"""The settings that others are compared with: the oldest instructions, one thread, none of our kernels."""
BODY_STEPS = 2
"""Number of steps of a run in mode `bodies`. A step in this mode takes as long as dozens of steps with fused
kernels.
"""

each_model = pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each model's bundle."""
    folder = tmp_path_factory.mktemp("bundles")
    return {name: model.write(folder / name) for name, model in MODELS.items()}


@cache
def plain(runs: tuple[tuple[Path, int], ...]) -> list[Result]:
    """The results under `PLAIN`, which others are compared with."""
    return train_all(runs, PLAIN)


@pytest.fixture(scope="module")
def quick(bundles: dict[str, Path]) -> dict[str, dict[str, str]]:
    """Roots of every model's short run, by model, then machine. One process per machine trains all models."""
    runs = [(bundles[name], model.quick_steps) for name, model in MODELS.items()]
    found: dict[str, dict[str, str]] = {name: {} for name in MODELS}
    for machine in (PLAIN, *FEW):
        for name, result in zip(MODELS, train_all(runs, machine), strict=True):
            found[name][str(machine)] = result.root
    return found


@each_model
@pytest.mark.timeout(600)
def test_a_short_run_has_one_hash(quick: dict[str, dict[str, str]], model: Model) -> None:
    roots = quick[model.name]
    assert len(roots) == 1 + len(FEW)
    assert set(roots.values()) == {roots[str(PLAIN)]}, roots


@pytest.mark.timeout(600)
def test_bodies_and_kernels_have_one_hash(bundles: dict[str, Path]) -> None:
    runs = [(bundle, BODY_STEPS) for bundle in bundles.values()]
    bodies = train_all(runs, Machine(), "bodies")
    assert bodies == train_all(runs, Machine())


def test_another_number_of_steps_has_another_hash(
    bundles: dict[str, Path], quick: dict[str, dict[str, str]]
) -> None:
    runs = [(bundles[name], model.quick_steps - 1) for name, model in MODELS.items()]
    for name, one_less in zip(MODELS, train_all(runs, PLAIN), strict=True):
        assert one_less.root != quick[name][str(PLAIN)]


@pytest.mark.heavy
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("machine", all_machines(), ids=str)
def test_whole_runs_have_one_hash(bundles: dict[str, Path], machine: Machine) -> None:
    runs = tuple((bundles[name], model.steps) for name, model in MODELS.items())
    assert train_all(runs, machine) == plain(runs)
