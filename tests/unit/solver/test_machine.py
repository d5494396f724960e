"""A solver's rates: those that the operator sets, otherwise measured ones. Without either, a solver bids only
on development chains.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from protocol.execution.counting import operations
from protocol.execution.families import Family, speed
from protocol.execution.measured import Measured
from protocol.execution.yardsticks import yardstick
from protocol.numerics.types import DType
from protocol.program.builder import Builder
from protocol.program.cost import DISPATCH, WEIGHTS, cost, run_operations
from protocol.program.library import hints, kernels
from protocol.program.library.sgd import sgd
from protocol.program.opcodes import Op
from protocol.program.types import TensorType
from protocol.tasks.task import FILE_RATE, HASH_RATE
from solver.machine import UNMEASURED, machine_of
from solver.settings import SolverSettings

RATES = {
    Family.PRODUCTS: 1e11,
    Family.CONVOLUTIONS: 1e10,
    Family.FUNCTIONS: 4e11,
    Family.PRIMITIVES: 1e9,
}
FOUND = Measured(
    date=datetime(2026, 11, 28, tzinfo=UTC),
    package="0",
    torch="2.13",
    operations=RATES,
    hashing=5e8,
    written=1e8,
    read=1e9,
    files=50,
)


def test_what_the_operator_sets_counts_before_what_was_measured() -> None:
    known = machine_of(SolverSettings(speed=3e9), FOUND, local=False)
    assert (known.source, known.why_not) == ("setting", "")
    assert known.rates({}).operations == known.hopes({}).operations == 3e9
    assert known.expected(yardstick(Family.PRODUCTS)[0]) is None


def test_a_measured_machine_is_cautious_of_what_it_defends_and_hopes_of_what_it_fetches() -> None:
    known = machine_of(SolverSettings(), FOUND, local=False)
    assert (known.source, known.why_not) == ("measured", "")
    assert (known.rates({}).operations, known.hopes({}).operations) == (1e9, 4e11)
    assert known.rates({}).hashed_bytes == 5e8
    assert known.rates({}).files == known.hopes({}).files == 50
    work, _ = yardstick(Family.PRODUCTS)
    expected = known.expected(work)
    assert expected is not None
    assert 1e10 < expected < 1e11, "products, and instructions that call them"


def test_a_machine_that_was_not_measured_bids_on_a_development_chain_alone() -> None:
    there = machine_of(SolverSettings(), None, local=False)
    assert there.why_not == UNMEASURED
    assert there.rates({}).operations == 2e9, "what it owes already is answered for"
    here = machine_of(SolverSettings(), None, local=True)
    assert (here.source, here.why_not) == ("assumed", "")
    assert here.rates({b"x": 5.0}).programs == {b"x": 5.0}
    assert here.rates({}).hashed_bytes == HASH_RATE
    assert here.rates({}).files == FILE_RATE


@pytest.mark.parametrize("family", Family)
def test_a_yardstick_consists_of_its_family(family: Family) -> None:
    work, state = yardstick(family)
    counted = operations(work.program.program, work.kernels)
    assert counted[family] > 0.99 * sum(counted.values())
    assert set(state) == set(work.program.state)
    unknown = operations(work.program.program, {})
    assert unknown[Family.PRIMITIVES] == sum(unknown.values()), "what has no kernel is run by primitives"
    assert speed(counted, RATES) == pytest.approx(RATES[family], rel=0.5)


def test_calls_with_a_kernel_do_not_hide_the_primitives_beside_them() -> None:
    """The step makes 100 calls of `sgd`, which has a kernel, and takes 100 square roots, which are
    primitives. Hashing the values takes far more than running the step, so it decides the cost. The
    primitives still get their share of the cost.
    """
    x = TensorType(DType.F32, (1 << 14,))
    b = Builder("step")
    p, g, rate = b.input(x), b.input(x), b.constant(DType.F32, (), 0.5)
    for _ in range(100):
        p = sgd.call(b, p, g, rate, weight_decay=0.0)
    for _ in range(100):
        p = b.sqrt(p)
    b.output(p)
    program = b.build()
    counted = operations(program, kernels(program, hints(program)))
    assert sum(counted.values()) == cost(program).operations
    run = run_operations(program)
    assert run < cost(program).operations, "hashing decides"
    due = 100 * (DISPATCH + WEIGHTS[Op.SQRT] * x.elements) / run
    assert counted[Family.FUNCTIONS] > 0
    assert counted[Family.PRIMITIVES] / cost(program).operations > due
