"""Recommended terms of a task, the defaults of a submitter. audit.md section 9 explains them.

The rules are in `presets/recommended.toml`, next to the deployment's parameters, and `protocol.tasks.amounts`
computes terms from them. `assay submit` and `sim` read the same rules. Nobody can know how much a false
result is worth to a cheater, or what share of the stake honest verifiers hold. The rules therefore contain
assumed values for both. They also contain an assumed price of gas, used if no chain is asked, and an assumed
price of the chain's coin in tokens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, Final

from protocol.chain.duties import GAS
from protocol.chain.parameters import PRESETS, TOKEN, Parameters, ParametersError
from protocol.tasks.amounts import Rules, Setting

_PRICES: Final = ("gas_price", "coin_price")
COIN: Final = 10**18
"""Wei in one coin of the chain."""


def _table() -> tuple[Rules, Fraction, Fraction]:
    """Read the rules, the price of gas in wei, and the price of a coin in tokens. Raises ParametersError."""
    table: Mapping[str, Any] = tomllib.loads((PRESETS / "recommended.toml").read_text())["rules"]
    names = [known.name for known in fields(Rules)]
    if table.keys() != {*names, *_PRICES}:
        raise ParametersError(
            "rules of recommended",
            expected=", ".join(sorted({*names, *_PRICES})),
            got=", ".join(sorted(table)),
            remedy="correct the table [rules]",
        )
    values: dict[str, Any] = {name: Fraction(table[name]) for name in names}
    gas_price, coin_price = (Fraction(table[name]) for name in _PRICES)
    return Rules(**{**values, "verifiers": table["verifiers"]}), gas_price * 10**9, coin_price


LARGE_JURY: Final = 31
"""Size of a large jury. If liars hold 30 % of the stake, the chance that they are more than half of the
jurors in such a jury is 1 %.
"""

RULES, GAS_PRICE, COIN_PRICE = _table()
"""The rules, and the assumed prices: wei for one gas, tokens for one coin."""


def gas_units(wei: Fraction | int = GAS_PRICE, coin_price: Fraction = COIN_PRICE) -> Fraction:
    """Token units for one gas, if one gas costs `wei` and one coin costs `coin_price` tokens."""
    return Fraction(wei) * coin_price * TOKEN / COIN


def setting(
    parameters: Parameters,
    *,
    budget: int,
    segments: int,
    training_period: int,
    challenge_period: int,
    game_time: int,
    gas_price: Fraction | None = None,
    attest_period: int = 0,
    jurors: int = 0,
) -> Setting:
    """The arguments of `protocol.tasks.amounts.derive` for a task of a deployment with these parameters.
    `audit`, the time from the submission to the settlement, is the sum of the draw delay and the challenge
    period; `derive` adds the time of looks. `gas_price` is in token units (`gas_units`), by default the
    assumed price.
    """
    return Setting(
        budget=budget,
        segments=segments,
        training=training_period,
        audit=parameters.draw_delay + challenge_period,
        game_time=game_time,
        draw_fee=parameters.draw_fee,
        game_floor=parameters.game_floor,
        bond_rate=parameters.capital_rate,
        gas=GAS,
        gas_price=gas_units() if gas_price is None else gas_price,
        draw_delay=parameters.draw_delay,
        attest_period=attest_period,
        jurors=jurors,
    )


def default_jurors(parameters: Parameters) -> int:
    """The default number of jurors of a task: the deployment's minimum, if that is at least `LARGE_JURY`.
    Otherwise 0: the deployment is for a small network, whose tasks have neither juries nor looks.
    """
    return parameters.min_jurors if parameters.min_jurors >= LARGE_JURY else 0


def move_time(parameters: Parameters, attest_period: int) -> int:
    """Seconds that a seat has for each answer to a look: half of the attestation period. An answer is no more
    work than an attestation, and the recommended attestation period of a task with looks (`periods`) allows
    for twice that work. The result is at least the deployment's shortest period, but never more than the
    whole attestation period.
    """
    return min(attest_period, max(parameters.min_period, attest_period // 2))
