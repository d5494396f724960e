"""The parameters that a deployment fixes for all its tasks (contracts/src/types/Parameters.sol). Amounts are
in token units, periods in seconds, and `data_fee` in wei of the chain's coin.

The values come from files: `presets/*.toml`, or the operator's own file in the same form. `assay deploy` and
`sim` read the same files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from protocol.errors import AssayError
from protocol.tasks.task import TOKEN as TOKEN

AMOUNTS: Final = ("draw_fee", "stake_unit", "game_floor")
"""Fields that are amounts. A file gives them in tokens, as text or an integer."""
PRESETS: Final = Path(__file__).with_name("presets")
MAX_BYTES: Final = 1 << 16


class ParametersError(AssayError):
    """The parameters of a deployment cannot be read or are not valid."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters, in the contract's order. The market checks them when it is deployed."""

    min_period: int
    max_period: int
    min_clock: int
    max_clock: int
    draw_delay: int
    stall_period: int
    unbonding_period: int
    opening_period: int
    draw_fee: int
    stake_unit: int
    game_floor: int
    data_fee: int
    capital_rate: int
    min_jurors: int

    def abi(self) -> tuple[int, ...]:
        """The struct as a tuple in ABI order."""
        return astuple(self)

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Parameters:
        """Inverse of `abi`."""
        return cls(*values)


def load_parameters(source: str) -> Parameters:
    """The parameters of a preset (`devnet`, `recommended`) or of a TOML file. Raises ParametersError."""
    table = _table(source)
    names = [known.name for known in fields(Parameters)]
    unknown, missing = sorted(table.keys() - set(names)), [name for name in names if name not in table]
    if unknown or missing:
        raise ParametersError(
            f"parameters of {source}",
            expected=", ".join(names),
            got=", ".join(unknown) if unknown else "no " + ", ".join(missing),
            remedy="correct the table [parameters]",
        )
    return Parameters(**{name: _value(source, name, table[name]) for name in names})


def _table(source: str) -> Mapping[str, Any]:
    preset = PRESETS / f"{source}.toml"
    file = preset if source.isidentifier() and preset.is_file() else Path(source)
    choices = ", ".join(sorted(each.stem for each in PRESETS.glob("*.toml")))
    try:
        data = file.read_bytes()
        if len(data) > MAX_BYTES:
            raise ParametersError(
                f"parameters file {file}",
                expected=f"at most {MAX_BYTES} bytes",
                got=len(data),
            )
        table = tomllib.loads(data.decode()).get("parameters")
    except OSError as error:
        raise ParametersError(
            f"parameters {source!r}",
            expected=f"{choices}, or a readable TOML file",
            got=type(error).__name__,
            remedy="name one of them",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParametersError(f"parameters file {file}: expected TOML; {error}; correct it there") from error
    if not isinstance(table, dict):
        raise ParametersError(
            f"parameters file {file}",
            expected="a table [parameters]",
            got="none",
            remedy="add it",
        )
    return table


def _value(source: str, name: str, given: object) -> int:
    """Return the contract's integer for the value that a file gives for a field. An amount in a file is in
    tokens, as text or an integer.
    """
    value = None
    if name in AMOUNTS and isinstance(given, (str, int)) and not isinstance(given, bool):
        try:
            units = Decimal(given) * TOKEN
        except InvalidOperation:
            units = Decimal("NaN")
        if units.is_finite() and units == units.to_integral_value():
            value = int(units)
    elif name not in AMOUNTS and isinstance(given, int) and not isinstance(given, bool):
        value = given
    if value is None or not 0 <= value < 2**128:
        kind = "an amount of tokens, as text" if name in AMOUNTS else "an integer"
        raise ParametersError(
            f"parameters of {source}, {name}",
            expected=kind,
            got=repr(given),
            remedy="correct this field",
        )
    return value


DEVNET: Final = load_parameters("devnet")
"""Parameters for anvil with a block each second."""
RECOMMENDED: Final = load_parameters("recommended")
"""Parameters for an L1."""
