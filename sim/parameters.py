"""All numeric parameters of a simulated market in one flat structure, with their units and bounds.

The names of terms and of deployment parameters are those of contracts/src/types/{Terms,Parameters}.sol. A
`Population` describes the agents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Final

from protocol.chain.duties import FILE as GAS_FILE
from protocol.chain.duties import GAS
from protocol.chain.parameters import RECOMMENDED
from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import gas_units
from protocol.dispute.looks import LEVELS, MAX_LOOKS
from protocol.tasks.amounts import YEAR
from protocol.tasks.task import ESCROW_DRAWS, LOOK_LOCK, MAX_SEAT_SEGMENTS, MAX_SEATS, MAX_SEGMENTS
from sim.errors import ParameterError
from sim.recommendation import recommended, setting_of
from sim.units import TOKEN, Unit

_MOST_TOKENS: Final = 10**9 * TOKEN
_SEGMENTS: Final = 100
_BUDGET: Final = 100
_THIN: Final = {
    "segments_per_verifier": 4,
    "audit_fee": 2 * CHAIN_TOKEN,
    "stake": 11 * _BUDGET * CHAIN_TOKEN,
}
"""Terms of the default market that differ from the recommended ones. The recommended terms deter cheating,
and studies also need markets where cheating pays.
"""
_TERMS: Final = recommended(_SEGMENTS, _BUDGET * CHAIN_TOKEN, _THIN)
_SETTING: Final = setting_of(_SEGMENTS, _BUDGET * CHAIN_TOKEN)
_GAS: Final[Mapping[str, int]] = json.loads(GAS_FILE.read_bytes())
MOST_SECONDS: Final = 10 * YEAR
"""The largest value allowed for any parameter that is a number of seconds."""
MOST_OVERLAP: Final = 64
"""Maximum number of tasks in flight."""
_SOLVER: Final = ("bid", "assign", "first progress", "submit", "settle")
"""Calls of a solver for one task. The call `post` is missing, because the submitter pays its gas."""
_ACCUSING: Final = ("commit from a seat", "challenge", "accuse")
"""Calls of a looker that accuses. The looker opens the game only to obtain the step tree, and then drops the game."""


def _number(default: float, unit: Unit, least: float, most: float, text: str) -> Any:
    return field(default=default, metadata={"unit": unit, "least": least, "most": most, "text": text})


def _tokens(default: float, text: str) -> Any:
    return _number(int(default * TOKEN), Unit.TOKENS, 0, _MOST_TOKENS, text)


def _deployed(name: str, text: str) -> Any:
    """A field for a deployment parameter. Its default is the recommended value, converted from the chain's
    finer units.
    """
    return _number(getattr(RECOMMENDED, name) * TOKEN // CHAIN_TOKEN, Unit.TOKENS, 0, _MOST_TOKENS, text)


def _recommended(name: str, text: str) -> Any:
    """A field for an amount of the terms. Its default is the amount in `_THIN`, if there is one. Otherwise it
    is what `assay submit` recommends for the default budget and the amounts in `_THIN`.
    """
    return _number(getattr(_TERMS, name) * TOKEN // CHAIN_TOKEN, Unit.TOKENS, 0, _MOST_TOKENS, text)


def _count(default: int, least: int, most: int, text: str) -> Any:
    return _number(default, Unit.COUNT, least, most, text)


def _share(default: float, text: str) -> Any:
    return _number(default, Unit.SHARE, 0.0, 1.0, text)


def _factor(default: float, text: str, most: float = 1e6) -> Any:
    return _number(default, Unit.FACTOR, 0.0, most, text)


def _gas(default: int, text: str) -> Any:
    return _number(default, Unit.GAS, 0, 10**9, text)


def _seconds(default: int, text: str) -> Any:
    return _number(default, Unit.SECONDS, 0, MOST_SECONDS, text)


@dataclass(frozen=True, slots=True)
class MarketParameters:
    """One market. Amounts are in units of 10^-6 token. Raises ParameterError if a value is out of its bounds."""

    # ---- terms of every task
    budget: int = _tokens(_BUDGET, "most that a solver may ask")
    stake: int = _recommended("stake", "S: what a solver locks")
    restitution: int = _recommended(
        "restitution", "what a conviction returns to the submitter, at most the budget"
    )
    audit_fee: int = _recommended("audit_fee", "paid for each segment of an attested seat")
    delay_penalty: int = _recommended(
        "delay_penalty", "lost by a solver that misses its deadline, half of it to the submitter"
    )
    segments: int = _count(_SEGMENTS, 1, MAX_SEGMENTS, "K: segments of a task")
    verifiers: int = _count(_TERMS.verifiers, 1, MAX_SEATS, "V: seats of a task")
    segments_per_verifier: int = _count(
        _TERMS.segments_per_verifier, 1, MAX_SEAT_SEGMENTS, "q: segments of a seat (also: audits)"
    )
    bond: int = _recommended("bond", "locked by a challenger; half of a lost one is the solver's")
    reward: int = _recommended("reward", "R: earned by the game that convicts")
    game_cost: int = _recommended(
        "game_cost", "what a game costs one side; paid to every seat that spoke up before a conviction"
    )
    retrain_reward: int = _recommended(
        "retrain_reward", "in place of the reward where the task had stalled: somebody did the work again"
    )
    look_chance: float = _share(
        0.0, "e: chance that a second look picks a segment of a seat, or a look of the level below"
    )
    seat_lock: int = _tokens(0, "lock of a seat or look; never less than what silence in a seat costs")
    # ---- parameters of the deployment: protocol/chain/presets/recommended.toml
    draw_fee: int = _deployed("draw_fee", "paid to the party that executes a draw")
    stake_unit: int = _deployed("stake_unit", "stake of a verifier for each of its slots")
    # ---- costs and values outside of the vault
    training_cost: int = _tokens(60, "c: cost of honest training on the median device")
    device_spread: float = _factor(0.25, "standard deviation of the logarithm of devices' costs", 3.0)
    device_range: float = _factor(0.0, "width of a uniform factor around 1 on devices' costs", 2.0)
    markup: float = _factor(0.1, "what a solver asks above its cost, as a share of it", 100.0)
    replay_cost: float = _factor(1.1, "cost of replaying a segment, as a multiple of training it")
    gain: int = _tokens(100, "G: worth of an accepted false result to the cheater")
    # ---- capital
    capital_rate: float = _factor(0.0, "what locked capital costs a year, as a share of it", 100.0)
    training_time: int = _seconds(_SETTING.training, "from a task's bid to its submission")
    audit_time: int = _seconds(_SETTING.audit, "T: from a task's submission to its settlement")
    game_time: int = _seconds(_SETTING.game_time, "that each side of a game has")
    # ---- gas
    gas_price: float = _factor(float(gas_units() / CHAIN_TOKEN), "tokens for one gas at the start", 1.0)
    gas_volatility: float = _factor(
        0.0, "standard deviation of the logarithm of the gas price, by round", 3.0
    )
    gas_attest: int = _gas(GAS.seat, "gas of a seat or look that attests")
    gas_reveal: int = _gas(GAS.reveal, "gas of a seat or look that is looked at")
    gas_accuse: int = _gas(
        sum(_GAS[call] for call in _ACCUSING),
        "the looker's gas in an accusation, with the game for the step tree",
    )
    gas_dispute: int = _gas(GAS.game, "the challenger's gas in a dispute")
    gas_defence: int = _gas(GAS.defence, "the solver's gas in a dispute")
    gas_task: int = _gas(sum(_GAS[call] for call in _SOLVER), "the solver's gas for a task without dispute")
    # ---- accidents, arrivals and load
    downtime: float = _share(0.0, "chance that a drawn verifier is offline")
    crash_rate: float = _share(0.0, "chance that a solver misses its deadline")
    silence_rate: float = _share(0.0, "chance that a solver misses a move, in each of its games by itself")
    beacon_stops: float = _share(0.0, "chance that the beacon shows no round within the stall period")
    redraws: int = _count(28, 0, 64, "R: redraws that the stall period has time for")
    arrival_rate: float = _share(1.0, "chance that a task is posted in a round")
    token_volatility: float = _factor(
        0.0, "standard deviation of the logarithm of what work costs in tokens, by round", 3.0
    )
    solver_capital: int = _count(
        0, 0, 10**6, "stakes that a solver owns at first; 0: it can never lose all of them"
    )
    overlap: int = _count(
        1, 1, MOST_OVERLAP, "tasks in flight at a time: seats and stakes of one are bound in the next ones"
    )
    # ---- sizes of the market
    solver_count: int = _count(20, 1, 10_000, "solvers that bid on every task")
    verifier_count: int = _count(200, 1, 100_000, "registered verifiers, of one stake unit each")

    def __post_init__(self) -> None:
        for name, known in KNOWN.items():
            unit, least, most = known.metadata["unit"], known.metadata["least"], known.metadata["most"]
            value = getattr(self, name)
            kind = int if unit.whole else (int, float)
            is_number = isinstance(value, kind) and not isinstance(value, bool)
            if not is_number or not least <= value <= most:
                given = unit.format(value) if is_number else repr(value)
                raise ParameterError(
                    f"{name}: expected {unit.format(least)} to {unit.format(most)} {unit.value}, got {given}; "
                    f"correct this parameter"
                )
        self._fits("segments_per_verifier", self.segments, "K")
        self._fits("restitution", self.budget, "the budget")
        self._fits("delay_penalty", self.stake, "the stake")
        if self.look_chance and self.slots > MAX_LOOKS:
            raise ParameterError(
                f"segments_per_verifier: expected at most {MAX_LOOKS} segments of all seats with looks, got "
                f"{self.slots}; lower it, or verifiers, or set look_chance to 0"
            )
        if self.owed > self.stake:
            written = KNOWN["stake"].metadata["unit"].format
            raise ParameterError(
                f"stake: expected at least {written(self.owed)} (reward, restitution, costs and fees of seats: what a "
                f"conviction owes), got {written(self.stake)}; correct one of them"
            )

    def _fits(self, name: str, most: int, reason: str) -> None:
        unit, value = KNOWN[name].metadata["unit"], getattr(self, name)
        if value > most:
            raise ParameterError(
                f"{name}: expected at most {unit.format(most)} ({reason}), got {unit.format(value)}; "
                f"correct one of them"
            )

    def with_values(self, values: Mapping[str, float]) -> MarketParameters:
        """A copy with other values, in the engine's units.

        Raises ParameterError for an unknown name or a value out of its bounds.
        """
        given: dict[str, Any] = {canonical(name): value for name, value in values.items()}
        return replace(self, **given)

    @property
    def seat_fee(self) -> int:
        """Payment to an attested seat."""
        return self.audit_fee * self.segments_per_verifier

    @property
    def slots(self) -> int:
        """V q: the number of segments of all seats together. This is also the maximum number of looks of a task."""
        return self.verifiers * self.segments_per_verifier

    @property
    def owed(self) -> int:
        """The most that a conviction can pay out of the stake."""
        seats = self.verifiers * (self.game_cost + self.seat_fee)
        if self.look_chance:
            seats += self.slots * (self.game_cost + self.audit_fee)
        return max(self.reward, self.retrain_reward) + seats + self.restitution

    @property
    def silence_costs(self) -> int:
        """What an account loses if it is silent in its seat. Every verifier's stake is assumed to cover this loss."""
        return self.seat_fee + self.draw_fee

    @property
    def lock(self) -> int:
        """The lock of a seat or look. It covers the cost of silence. If the terms have looks, it is also at
        least `LOOK_LOCK` times a game's cost.
        """
        games = LOOK_LOCK * self.game_cost if self.look_chance else 0
        return max(self.seat_lock, self.silence_costs, games)

    @property
    def escrow(self) -> int:
        """The amount that a submitter locks: the budget, and the fees of all seats, looks and draws that the
        escrow may pay.
        """
        looks = self.slots * self.audit_fee + LEVELS * self.draw_fee if self.look_chance else 0
        return self.budget + self.verifiers * self.seat_fee + ESCROW_DRAWS * self.draw_fee + looks


KNOWN: Final[Mapping[str, Field[Any]]] = {known.name: known for known in fields(MarketParameters)}
"""All parameters by name."""

ALIASES: Final = {"audits": "segments_per_verifier"}


def canonical(name: str) -> str:
    """Resolve an alias to the parameter's name. Raises ParameterError, which suggests similar names, if the
    name is unknown.
    """
    name = ALIASES.get(name, name)
    if name not in KNOWN:
        near = get_close_matches(name, [*KNOWN, *ALIASES], n=3, cutoff=0.4) or sorted(KNOWN)
        raise ParameterError(
            f"parameter {name!r}: expected one of the market's, got none of them; "
            f"did you mean {', '.join(near)}? `sim list --parameters` shows all"
        )
    return name


def unit_of(name: str) -> Unit:
    """The unit of a parameter."""
    unit: Unit = KNOWN[canonical(name)].metadata["unit"]
    return unit
