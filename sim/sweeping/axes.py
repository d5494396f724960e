"""Converts `name=values` texts into a study's axes. The texts come from --param or from a call of `sim.run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sim.errors import ParameterError, SweepError
from sim.studies.study import Study
from sim.sweeping.grammar import values

Axes = Mapping[str, Sequence[float]]
"""The values of each swept parameter, by the parameter's canonical name. Values are in the engine's units."""


def axes_of(study: Study, given: Iterable[str]) -> Axes:
    """Read `name=values` texts (`sim.sweeping.grammar`).

    Raises ParameterError for an unknown name or a value that is not a number, and SweepError for a text that
    cannot be parsed, a name that is given twice, no values, or repeated values.
    """
    axes: dict[str, Sequence[float]] = {}
    for text in given:
        name, equals, right = text.partition("=")
        if not equals or not name.strip():
            raise SweepError(f"--param: expected name=values, got {text!r}; such as stake=100:5000:20")
        known = study.known(name.strip())
        if known in axes:
            raise SweepError(f"{known}: expected once, got it twice; write its values as a list: a,b,c")
        try:
            axes[known] = values(right.strip(), study.unit(known))
        except ParameterError as error:
            raise ParameterError(f"{known}: {error}") from error
        except SweepError as error:
            raise SweepError(f"{known}: {error}") from error
    return axes


def texts(params: Mapping[str, object]) -> list[str]:
    """Convert a notebook's parameters to `name=values` texts.

    Each parameter is a number, a text, or a sequence of these; amounts are in tokens.
    """
    return [f"{name}={_text(value)}" for name, value in params.items()]


def _text(value: object) -> str:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(_text(item) for item in value)
    return str(value)
