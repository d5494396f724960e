"""A hint names a library function and attributes. It finds the function's kernel for a program only if the
function, with these attributes, gives a program with the same id.
"""

import pytest

from protocol.program.library import CATALOGUE, Hint, hints, kernels, recognise
from protocol.program.library.function import Attributes
from protocol.program.program import decode_closure
from tests.unit.library.cases import CASES, Case, f32

SGD = CATALOGUE["sgd"].program((f32(4), f32(4), f32()), {"weight_decay": 0.5})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_true_hint_finds_the_kernel_of_a_decoded_program(case: Case) -> None:
    program = CATALOGUE[case.function].program(case.operands, case.attributes)
    decoded = decode_closure([p.encode() for p in program.closure()])
    # A scan's frames only make calls. The called programs have kernels.
    known = {p.id for p in program.closure() if not p.name.startswith("scan ")}
    assert set(kernels(decoded, hints(program))) == known


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("sgd", {"weight_decay": 0.25}),
        ("sgd", {}),
        ("sgd", {"weight_decay": 0.5, "momentum": 0.9}),
        ("sgd", {"weight_decay": "half"}),
        ("sgd", {"weight_decay": 1e300}),
        ("sgd_momentum", {"momentum": 0.9, "weight_decay": 0.5, "nesterov": False}),
        ("linear", {}),
        ("no such function", {}),
    ],
)
def test_a_false_hint_finds_nothing(name: str, attributes: Attributes) -> None:
    assert recognise(SGD, Hint(name, attributes)) is None


def test_hints_for_other_programs_are_ignored() -> None:
    assert kernels(SGD, {bytes(32): Hint("sgd", {"weight_decay": 0.5})}) == {}
