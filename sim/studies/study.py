"""Definition of a study: a question, a grid of points, the markets to play at each point, and the findings
from the table of results.

Each study is a subclass of `Study` in a separate file. The subclass overrides what differs.
`sim.studies.catalogue` lists all studies. docs/guide/studies.md shows how to write one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.errors import ParameterError
from sim.mechanism.arrays import Floats
from sim.parameters import ALIASES, KNOWN, MarketParameters, canonical, unit_of
from sim.studies.sizes import combined
from sim.units import Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = Mapping[str, float]
"""Values of the swept parameters, in the engine's units."""
Table = Mapping[str, Floats]
"""All results: a column for each swept parameter and each measure, and a row for each run of each point. The
columns `point` and `run` hold the numbers of the row's point and run. The column `rounds` holds the number of
tasks of a run. The functions of sim.studies.tables read the rows by point.
"""


SEEDS: Final = 2
"""Number of seeds per point; a `common` study uses only one. Each seed plays half of the point's runs. A
claim must hold with each seed alone and with both together (`checks`).
"""
CHANCE: Final = 0.02
"""The `bound` of every claim about a chance (a probability). Whatever the expected chance is, a tolerance up
to this absolute value is narrow enough.
"""


@dataclass(frozen=True)
class Claim:
    """A number that theory expects, and the number that the engine measured."""

    text: str
    expected: float
    measured: float
    error: float
    """Standard error of the measured number."""
    draws: int = field(kw_only=True)
    """Number of distinct draws behind the measurement (`sim.studies.tables.draws`)."""
    bound: float = field(default=0.0, kw_only=True)
    """A tolerance up to this absolute value is narrow enough, no matter how large the expected value is. For
    a chance, the bound is CHANCE. For an amount, it is CHANCE times a reference amount.
    """

    @property
    def tolerance(self) -> float:
        """The largest tolerated difference: 4 standard errors, so that a right claim fails once in 16,000 times."""
        return 4 * self.error + 1e-12

    @property
    def holds(self) -> bool:
        """Whether the measured number is within the tolerance of the expected one."""
        return abs(self.expected - self.measured) <= self.tolerance


@dataclass(frozen=True)
class Finding:
    """A result in one sentence. If a figure shows it, the sentence is the figure's title."""

    sentence: str
    figure: Figure | None = None
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """The findings and claims of a study."""

    findings: Sequence[Finding]
    claims: Sequence[Claim] = field(default=())


class Extra(NamedTuple):
    """A parameter that a study has in addition to the market's: its meaning, and its bounds in the engine's units."""

    text: str
    unit: Unit = Unit.SHARE
    least: float = 0.0
    most: float = 1.0


class Study(ABC):
    """Base of all studies. `runs` and `rounds` are defaults: the runs of each point,
    and the rounds of each run.
    """

    common: ClassVar[bool] = False
    """Whether all points use the same random numbers, from one seed. Only studies of differences between
    points need this, and they make no claims.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    runs: ClassVar[int] = 200
    rounds: ClassVar[int] = 50

    def parameters(self) -> MarketParameters:
        """The default parameters. Each point overrides some of them."""
        return MarketParameters()

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Swept parameters and their values, in the engine's units; the grid is their product."""
        return {}

    def extra(self) -> Mapping[str, Extra]:
        """This study's own parameters, which the market does not have. `axes` has a value for each."""
        return {}

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """The grid, in which the operator's axes replace the study's own. Raises SweepError for no points or
        too many, and ParameterError for an unknown name.
        """
        return combined({**self.axes(), **{self.known(name): values for name, values in given.items()}})

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """The population at a point: all honest unless overridden."""
        del point
        return population([(Solver(), parameters.solver_count)], [(Verifier(), parameters.verifier_count)])

    def case(self, point: Point) -> Case:
        """The market that the engine plays at a point. Raises ParameterError for an impossible value."""
        own = self.extra()
        for name, known in own.items():
            if not known.least <= point[name] <= known.most:
                raise ParameterError(
                    f"{name}: expected {known.unit.format(known.least)} to {known.unit.format(known.most)} "
                    f"{known.unit.value}, got {known.unit.format(point[name])}; correct this parameter"
                )
        parameters = self.parameters().with_values({name: v for name, v in point.items() if name not in own})
        return Case(parameters, self.population(parameters, point))

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Results of one point with one seed: a row for each run. Markets that the study compares use the
        same seed.
        """
        return simulate(self.case(point), runs=runs, rounds=rounds, seed=seed)

    @abstractmethod
    def answer(self, table: Table) -> Answer:
        """Findings with their figures, and claims, from a table of results."""

    def claims(self, table: Table) -> Sequence[Claim]:
        """The claims of `answer` without its findings, for one seed's rows. By default, this calls `answer`;
        override it if the findings take long to compute.
        """
        return self.answer(table).claims

    def known(self, name: str) -> str:
        """Resolve an alias to the parameter's name. Raises ParameterError, which suggests similar names, if
        the name is unknown.
        """
        if name in self.extra():
            return name
        if name in KNOWN or name in ALIASES:
            return canonical(name)
        names = [*self.extra(), *KNOWN, *ALIASES]
        near = get_close_matches(name, names, n=3, cutoff=0.4) or sorted(names)
        raise ParameterError(
            f"parameter {name!r}: expected one of the market's or of study {self.name!r}, got none of them; "
            f"did you mean {', '.join(near)}? `sim list --parameters` shows all"
        )

    def unit(self, name: str) -> Unit:
        """The unit of a parameter of the study or of the market."""
        own = self.extra()
        return own[name].unit if name in own else unit_of(name)
