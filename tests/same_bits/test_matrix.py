"""One hash for every instruction set, number of threads and kernel: arithmetic.md sections 8 and 9.

`make test` trains a little under seven settings that hold every value of each, and by bodies; `make test-heavy` whole
runs under all of them, one test per model and setting.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.same_bits.runs import FEW, MODELS, Machine, Model, Result, all_machines, train

PLAIN = Machine("1", "default", "SSE41", "float64")
"""The one that the others are compared with: the oldest instructions, one thread, no kernel of our own."""
BODY_STEPS = 2
"""Steps run primitive by primitive: each costs as much as dozens of fused ones."""

each_model = pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each model's bundle lies."""
    folder = tmp_path_factory.mktemp("bundles")
    return {name: model.write(folder / name) for name, model in MODELS.items()}


@cache
def plain(bundle: Path, steps: int) -> Result:
    """The run that others are compared with."""
    return train(bundle, steps, PLAIN)


@each_model
@pytest.mark.timeout(600)
def test_a_short_run_has_one_hash(bundles: dict[str, Path], model: Model) -> None:
    bundle = bundles[model.name]
    roots = {str(machine): train(bundle, model.quick_steps, machine).root for machine in FEW}
    assert set(roots.values()) == {plain(bundle, model.quick_steps).root}, roots


@each_model
@pytest.mark.timeout(600)
def test_bodies_and_kernels_have_one_hash(bundles: dict[str, Path], model: Model) -> None:
    bundle = bundles[model.name]
    bodies = train(bundle, BODY_STEPS, Machine(), "bodies")
    assert bodies == train(bundle, BODY_STEPS, Machine())


@each_model
def test_another_number_of_steps_has_another_hash(bundles: dict[str, Path], model: Model) -> None:
    bundle = bundles[model.name]
    assert plain(bundle, model.quick_steps).root != plain(bundle, model.quick_steps - 1).root


@pytest.mark.heavy
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("machine", all_machines(), ids=str)
@each_model
def test_a_whole_run_has_one_hash(bundles: dict[str, Path], model: Model, machine: Machine) -> None:
    bundle = bundles[model.name]
    assert train(bundle, model.steps, machine) == plain(bundle, model.steps)
