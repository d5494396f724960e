"""Shape classes of attention: each is tested before its first use, and after one failure fused attention is
not used again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from random import Random

import pytest
import torch
from torch import Tensor

from protocol.numerics.kernels import attention_dispatch, dispatch
from protocol.numerics.kernels.attention import Backward, Forward, Fused
from protocol.numerics.kernels.attention_dispatch import attention_for
from protocol.numerics.kernels.attention_self_test import Plain as Listed
from protocol.numerics.kernels.attention_self_test import failure_of_class, operands
from protocol.numerics.kernels.attention_shape_classes import WHOLE, Kind, Plan, shape_class_of
from protocol.numerics.kernels.fused import FUSED
from protocol.numerics.kernels.fused_self_test import digest
from tests.unit.library.test_attention import Plain

VARIANTS = [f.name.removeprefix("fused-") for f in FUSED if f.available()]
A, B = (13, 13), (20, 20)
CAUSAL = ((Kind.TIMES, 0.35), (Kind.FILL_TRUE, -math.inf))
BACK = ((Kind.FILL_TRUE, 0.0), (Kind.TIMES, 0.35))
FORMS = (
    ((), ()),
    (CAUSAL, BACK),
    (((Kind.OVER, 2.5), (Kind.FILL_FALSE, -1e9)), ((Kind.FILL_FALSE, 0.0), (Kind.OVER, 2.5))),
    (((Kind.PLUS, 0.0), (Kind.TIMES, 0.5)), ((Kind.TIMES, 0.5),)),
)
GPT = Plan(128, 128, 64, 64, A, B, A, B, B, B, changes=CAUSAL, back=BACK)

pytestmark = pytest.mark.skipif(not VARIANTS, reason="the compiled library is not built")


def random_plan(r: Random) -> Plan:
    m = r.choice((1, 5, 64, 119, 120, 121, 200, 1024, 4096))
    n = m if r.random() < 0.5 else r.choice((1, 3, 77, 120, 240, 1000, 2049))
    changes, back = r.choice(FORMS)
    turned = (r.random() < 0.5, r.random() < 0.5)
    d, e = r.choice((1, 8, 33, 64, 128)), r.choice((1, 7, 64))
    plan = Plan(m, n, d, e, A, B, changes=changes, safe=r.random() < 0.3, dropout=r.random() < 0.5)
    if r.random() < 0.3:
        return plan
    return plan._replace(of_p=A, of_v=B, of_q=B, of_k=B, v_turned=turned[0], k_turned=turned[1], back=back)


@pytest.mark.parametrize("seed", range(30))
def test_a_case_goes_the_ways_of_its_plan(seed: int) -> None:
    plan = random_plan(Random(f"attention classes {seed}"))
    case, whole = shape_class_of(plan)
    assert shape_class_of(case)[0] == case
    assert max(case.m, case.n) < 160
    assert whole == (WHOLE if plan.m * plan.n <= WHOLE else 1)
    for size, stand_in in ((plan.m, case.m), (plan.n, case.n), (plan.d, case.d), (plan.e, case.e)):
        assert stand_in <= size
    assert (case.n > 120) == (plan.n > 120)
    assert case.n % 32 == plan.n % 32 or case.n == plan.n
    assert (case.m == case.n) or plan.m != plan.n
    assert case[4:] == plan[4:]


@pytest.mark.parametrize("seed", range(12))
def test_every_instruction_set_passes_every_class(seed: int) -> None:
    case, whole = shape_class_of(random_plan(Random(f"attention passes {seed}")))
    for variant in VARIANTS:
        assert failure_of_class(Fused(variant, whole), case) is None


@pytest.mark.parametrize("seed", range(6))
def test_the_self_test_expects_the_library_functions_bits(seed: int) -> None:
    given = operands(shape_class_of(random_plan(Random(f"attention plain {seed}")))[0])
    forward = given.forward if isinstance(given, Backward) else given
    assert digest(Listed().forward(forward)) == digest(Plain().forward(forward))
    if isinstance(given, Backward):
        assert digest(Listed().backward(given)) == digest(Plain().backward(given))


class Planted(Fused):
    """Attention with planted errors. Where `errs` holds, one bit is wrong in the forward result, and one in
    the last of the three backward results.
    """

    def __init__(self, variant: str, whole: int, errs: Callable[[Forward, bool], bool]) -> None:
        super().__init__(variant, whole)
        self.whole, self.errs = whole, errs

    def forward(self, given: Forward) -> Tensor:
        found = super().forward(given)
        if self.errs(given, self.whole > 1):
            found[0].view(torch.int32).view(-1)[-1] ^= 1
        return found

    def backward(self, given: Backward) -> tuple[Tensor, Tensor, Tensor]:
        found = super().backward(given)
        if self.errs(given.forward, self.whole > 1):
            found[2][0].view(torch.int32).view(-1)[-1] ^= 1
        return found


ERRORS: dict[str, tuple[Callable[[Forward, bool], bool], Plan, Plan]] = {
    "a row's tail": (lambda f, _: f.k.shape[-2] % 32 == 5, GPT, GPT._replace(m=133, n=133)),
    "a second block": (lambda f, _: f.q.shape[-2] > 120, GPT._replace(m=96, n=96), GPT),
    "dropout": (lambda f, _: f.dropout is not None, GPT, GPT._replace(dropout=True)),
    "no mask": (lambda f, _: len(f.changes) == 0, GPT, GPT._replace(changes=(), back=())),
    "a head computed twice": (lambda _, whole: not whole, GPT, GPT._replace(m=4096, n=4096)),
    "terms beside a vector": (lambda f, _: f.q.shape[-1] % 16 == 3, GPT, GPT._replace(d=35)),
    "safe": (lambda f, _: f.safe, GPT, GPT._replace(safe=True)),
}
"""For each error: when it occurs, a plan whose class does not show it, and a plan whose class does."""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clear this process's self-test results before and after the test."""
    monkeypatch.delenv(dispatch.VARIABLE, raising=False)

    def forget() -> None:
        attention_dispatch._failed.clear()
        attention_dispatch._tested.cache_clear()

    forget()
    yield
    forget()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_one_class_is_refused_there(
    error: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errs, other, of_the_class = ERRORS[error]
    planted = {whole: Planted(VARIANTS[0], whole, errs) for whole in (1, WHOLE)}
    monkeypatch.setattr(attention_dispatch, "_of", lambda _, whole: planted[whole])
    assert attention_for(other) is not None
    with caplog.at_level(logging.WARNING):
        for plan in (of_the_class, other, of_the_class):  # after one wrong bit it is never used again
            assert attention_for(plan) is None
    assert caplog.text.count(f"{planted[1].name} is not used") == 1
    assert "has wrong bits" in caplog.text
