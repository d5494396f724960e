"""Findings of the study `dilemma` on the game and on fees, from the earnings of a seat at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sim.mechanism.arrays import Floats
from sim.studies.dilemma_seat import Seat
from sim.studies.grids import within
from sim.studies.points import crossing, grid
from sim.studies.study import Claim, Finding, Point, Study, Table
from sim.studies.tables import draws
from sim.theory import cheating_rate, least_attestation_fee
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GAME: Final = ("false_rate", "diligence")
FEES: Final = ("false_rate", "audit_fee")


@dataclass(frozen=True)
class Rows:
    """The gain from replaying, as theory expects it and as the engine measured it, and further measurements
    of the engine. Each array has one element per point.
    """

    study: Study
    points: Sequence[Point]
    seats: Sequence[Seat]
    expected: Floats
    gain: Floats
    error: Floats
    solver: Floats
    """Profit of all solvers per task. Its standard error is `solver_error`."""
    solver_error: Floats
    replaying: Floats
    """Earnings of a seat that replays. Their standard error is `replaying_error`."""
    replaying_error: Floats
    table: Table

    def draws(self, numbers: Sequence[int]) -> int:
        """Number of distinct random draws from which the rows of the points `numbers` were computed."""
        return draws(self.table, *numbers)


Part = tuple[list[Finding], list[Claim]]


def _line(rows: Rows, names: Sequence[str], along: str, fixed: Mapping[str, float]) -> list[int]:
    """Selects points from the grid that varies the parameters `names`: those whose parameters have the values
    in `fixed`. Returns their point numbers, sorted by the points' values of `along`.
    """
    chosen = within(rows.study, rows.points, names)
    here = [n for n in chosen if all(rows.points[n][name] == value for name, value in fixed.items())]
    return sorted(here, key=lambda n: rows.points[n][along])


def _zero(rows: Rows, numbers: Sequence[int], along: str) -> tuple[float, float] | None:
    """The value of `along` at which the measured gain first changes its sign, and the standard error of that
    value; None if the sign never changes.
    """
    at = np.array([rows.points[n][along] for n in numbers])
    return crossing(at, rows.gain[numbers], rows.error[numbers])


def _values(rows: Rows, names: Sequence[str], name: str) -> list[float]:
    return sorted({rows.points[n][name] for n in within(rows.study, rows.points, names)})


def game(rows: Rows) -> Part:
    """Findings and claims on where replaying pays, by the rate of cheating and the rate of replaying."""
    chosen = within(rows.study, rows.points, GAME)
    claims, contour = [], []
    for looking in _values(rows, GAME, "diligence"):
        numbers = _line(rows, GAME, "false_rate", {"diligence": looking})
        contour.append((rows.seats[numbers[0]].indifferent(), looking))
        zero = _zero(rows, numbers, "false_rate")
        if zero is not None:
            text = f"false results that make replaying pay, where {looking:g} of the verifiers do it"
            claims.append(Claim(text, contour[-1][0], *zero, draws=rows.draws(numbers)))
    rest = _rest(rows, contour, claims)
    across, up, laid = grid([rows.points[n] for n in chosen], rows.gain[chosen] / TOKEN, *GAME)
    if min(laid.shape) < 2 or not claims:
        return [], claims
    seen = [claim.measured for claim in claims]
    signs = [(rows.gain[n] > 0) == (rows.expected[n] > 0) for n in chosen if _clear(rows, n)]
    sentence = (
        f"Replaying pays from {min(seen):.1%} false results where few replay, from {max(seen):.1%} where most do; "
        f"engine and theory agree on who earns more at {sum(signs):,} of {len(signs):,} points"
    )
    seat = rows.seats[chosen[0]]
    lone = cheating_rate(seat.duty, hit=seat.hit)
    note = f"A verifier that is alone with a cheater is indifferent at {lone:.1%} false results."
    if rest:
        sentence += f"; it rests at {rest[0].measured:.1%} false results and {rest[1].measured:.1%} replaying"
    return [Finding(sentence, _map(across, up, laid, contour), note)], [*rest, *claims]


def _rest(rows: Rows, contour: Sequence[tuple[float, float]], claims: Sequence[Claim]) -> list[Claim]:
    """Claims on the mixed equilibrium: the rate of false results and the share of replaying verifiers at
    which neither side gains by deviating. There are no claims if the points do not show the equilibrium.
    """
    honest, cheating = (_line(rows, GAME, "diligence", {"false_rate": rate}) for rate in (0.0, 1.0))
    if not honest or len(honest) != len(cheating) or len(claims) < len(contour):
        return []
    looking = np.array([rows.points[n]["diligence"] for n in honest])
    more = rows.solver[cheating] - rows.solver[honest]
    zero = crossing(looking, more, np.hypot(rows.solver_error[cheating], rows.solver_error[honest]))
    if zero is None:
        return []
    theory = rows.seats[honest[0]].equilibrium()
    false = [float(np.interp(zero[0], looking, values)) for values in (
        [claim.measured for claim in claims], [claim.error for claim in claims])]  # fmt: skip
    return [
        Claim(
            "false results in equilibrium",
            theory.cheating,
            *false,
            draws=min(claim.draws for claim in claims),
        ),
        Claim(
            "share of the verifiers that replays in equilibrium",
            theory.checking,
            *zero,
            draws=rows.draws([*honest, *cheating]),
        ),
    ]


def _clear(rows: Rows, number: int) -> bool:
    return bool(abs(rows.gain[number]) > 4 * rows.error[number])


def _map(across: Floats, up: Floats, laid: Floats, contour: Sequence[tuple[float, float]]) -> Figure:
    from sim.figures import heat_map

    near = across <= max(3 * max(x for x, _ in contour), across[min(2, len(across) - 1)])
    figure = heat_map(
        across[near],
        up,
        laid[:, near],
        x="share x of false results (line: no difference by the closed form)",
        y="share d of verifiers that replay",
        label="replaying over rubber-stamping, tokens a seat",
        contours=(),
    )
    figure.axes[0].plot(*zip(*contour), color="black")
    return figure


def fees(rows: Rows) -> Part:
    """Findings and claims on the rate of fraud above which replaying pays, by fee."""
    found: list[tuple[float, Claim]] = []
    for fee in _values(rows, FEES, "audit_fee"):
        numbers = _line(rows, FEES, "false_rate", {"audit_fee": fee})
        zero = _zero(rows, numbers, "false_rate")
        if zero is not None:
            text = f"false results that make replaying pay at a fee of {fee / TOKEN:g} tokens"
            expected = rows.seats[numbers[0]].indifferent()
            found.append((fee / TOKEN, Claim(text, expected, *zero, draws=rows.draws(numbers))))
    claims = [claim for _, claim in found]
    paid = _paid(rows)
    if len(found) < 2:
        return [], [*paid, *claims]
    (low, first), (high, last) = found[0], found[-1]
    moved = (last.measured - first.measured) / float(np.hypot(first.error, last.error))
    verb = "do not make anybody look" if moved > -4 else "make verifiers look"
    sentence = (
        f"Fees {verb}: from {low:g} to {high:g} tokens a segment, the false results that it takes go from "
        f"{first.measured:.1%} to {last.measured:.1%}, for a copy is paid the same and a conviction pays no fee"
    )
    note = "".join(
        f"A verifier that replays is paid for it from {claim.measured:.2f} tokens a segment."
        for claim in paid
    )
    from sim.figures import Line, lines

    line = Line(
        "",
        [fee for fee, _ in found],
        [claim.expected for claim in claims],
        points=[claim.measured for claim in claims],
    )
    figure = lines(
        [line],
        x="audit fee, tokens a segment (line: theory, dots: engine)",
        y="false results that make replaying pay",
    )
    return [Finding(sentence, figure, note)], [*paid, *claims]


def _paid(rows: Rows) -> list[Claim]:
    """A claim on the least fee at which a seat that replays loses nothing if nobody cheats. There is no claim
    if the measured earnings never change sign. This fee pays for replaying but is no reason to replay: a seat
    that does not replay is paid the same fee.
    """
    numbers = _line(rows, FEES, "audit_fee", {"false_rate": 0.0})
    fee = np.array([rows.points[n]["audit_fee"] / TOKEN for n in numbers])
    zero = crossing(fee, rows.replaying[numbers], rows.replaying_error[numbers])
    if zero is None:
        return []
    seat = rows.seats[numbers[0]]
    least = least_attestation_fee(cost=seat.replay / seat.parameters.segments_per_verifier / TOKEN)
    return [Claim("tokens a segment from which replaying is paid", least, *zero, draws=rows.draws(numbers))]
