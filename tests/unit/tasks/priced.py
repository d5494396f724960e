"""Task settings from which tests derive amounts, and terms with those amounts."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from protocol.chain.parameters import DEVNET, RECOMMENDED, TOKEN, Parameters
from protocol.chain.recommendation import setting
from protocol.tasks.amounts import Amounts, Setting
from protocol.tasks.task import Terms

DAY = 86_400
L2 = MappingProxyType({"training_period": 7 * DAY, "game_time": 7 * DAY})
FIVE_DAYS = 5 * DAY - RECOMMENDED.draw_delay


def on_l2(segments: int = 60, budget: int = 1_000 * TOKEN, **changes: Any) -> Setting:
    """A task on a rollup at 0.01 gwei and 3,000 tokens per coin, settled five days after its submission."""
    values: dict[str, Any] = {**L2, "challenge_period": FIVE_DAYS, **changes}
    return setting(RECOMMENDED, budget=budget, segments=segments, **values)


@st.composite
def settings(draw: st.DrawFn) -> tuple[Setting, Parameters]:
    parameters = replace(
        draw(st.sampled_from([DEVNET, RECOMMENDED])),
        game_floor=draw(st.integers(1, 100 * TOKEN)),
        draw_fee=draw(st.integers(0, TOKEN)),
        capital_rate=draw(st.integers(0, 3_000)),
    )
    made = setting(
        parameters,
        budget=draw(st.integers(1, 10**7 * TOKEN)),
        segments=draw(st.integers(1, 5_000)),
        training_period=draw(st.integers(1, 90 * DAY)),
        challenge_period=draw(st.integers(1, 30 * DAY)),
        game_time=draw(st.integers(1, 14 * DAY)),
        gas_price=draw(st.fractions(0, 10**14, max_denominator=1000)),
    )
    return made, parameters


def terms(made: Setting, amounts: Amounts) -> Terms:
    """Terms with these amounts. Raises TermsError if no deployment accepts them."""
    root = bytes(31) + b"\1"
    return Terms(
        program_id=root,
        constants_root=root,
        initial_state=root,
        bundle_hash=root,
        constants=1,
        state_tensors=1,
        segments=made.segments,
        segment_steps=1,
        step_operations=1,
        state_bytes=1,
        budget=made.budget,
        bidding_period=1,
        training_period=made.training,
        challenge_period=made.audit + 2,
        attest_period=1,
        extension=1,
        clock=made.game_time,
        replay_allowance=0,
        arithmetic=1,
        thinning=1,
        move_time=1,
        jurors=0,
        bundle="http://127.0.0.1/",
        **amounts.terms(),
    )
